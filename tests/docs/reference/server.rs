//! The settings of `sandlite serve`.

use std::fmt::Write as _;

use server::SETTINGS;

use super::cell;

/// The page.
pub fn page() -> String {
    let mut page = String::from(
        "# Settings of the server\n\nGenerated from `server/src/serve/config.rs` by `cargo xtask docs`.\n\n\
         A setting is given as `--set NAME=VALUE`, or as the variable `SANDLITE_NAME` with `_` for each `-`. `sandlite serve --check` prints\n\
         the effective value of each setting and its origin.\n\n\
         | setting | default | meaning | other variable |\n|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        let default = if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
        let foreign = setting.foreign.map(|name| format!("`{name}`")).unwrap_or_default();
        writeln!(page, "| `{}` | {default} | {} | {foreign} |", setting.name, cell(setting.help)).unwrap();
    }
    page
}
