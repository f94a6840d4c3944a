//! The fields of a preset, with the value of each preset.

use std::fmt::Write as _;

use runtime::Preset;

use super::{cell, documented};

/// The page.
pub fn page() -> String {
    let mut page = String::from(
        "# Preset fields\n\nGenerated from `presets/` by `cargo xtask docs`. [Choosing a preset](../choosing-a-preset.md) explains them.\n\n\
         Each limit applies to one command and everything it starts, except for those of the sandbox as a whole.\n\n\
         | field |",
    );
    Preset::ALL.iter().for_each(|preset| page += &format!(" {} |", preset.name()));
    page += " meaning |\n|---|---:|---:|---:|---|\n";
    let meanings = meanings();
    for (limit, _) in Preset::Normal.limits().entries() {
        write!(page, "| `{limit}` |").unwrap();
        for preset in Preset::ALL {
            let entries = preset.limits().entries();
            let (_, value) = entries.iter().find(|(name, _)| *name == limit).unwrap();
            write!(page, " {value} |").unwrap();
        }
        let (_, meaning) = meanings.iter().find(|(name, _)| name == limit.as_str()).unwrap();
        writeln!(page, " {meaning} |").unwrap();
    }
    page += "\n## Presets\n\n| preset | purpose |\n|---|---|\n";
    for (variant, purpose) in documented("presets/src/preset.rs", "pub enum Preset") {
        writeln!(page, "| `{}` | {purpose} |", variant.to_lowercase()).unwrap();
    }
    page += "\n## Fields of a file\n\n\
             A file for `--preset ./mine.toml` has the fields above. `base` names the preset whose values it inherits; without it, every field is\n\
             required. Times are written as `\"500 ms\"`, `\"30 s\"` or `\"10 min\"`, sizes as `\"256 KB\"`, `\"64 MB\"` or `\"1 GB\"`.\n";
    page
}

/// Each limit with its documentation, from the list in `presets/src/limits.rs`.
fn meanings() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(crate::page::root().join("presets/src/limits.rs")).unwrap();
    let list = text.split("\nlimits! {\n").nth(1).unwrap().split("\n}\n").next().unwrap();
    let (mut found, mut words) = (Vec::new(), String::new());
    for line in list.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            words.push_str(comment);
        } else if let Some((name, _)) = line.split_once(':') {
            found.push((name.to_owned(), cell(&std::mem::take(&mut words))));
        }
    }
    found
}
