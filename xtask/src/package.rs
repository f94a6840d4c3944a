//! `cargo xtask package`: packs every crate as for a registry, and checks that each has what it needs.
//!
//! `--verify` also builds the packed crates from their archives, which compiles wasmtime once more: `cargo xtask nightly` does it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{cargo, output, root, run, step, target};
use crate::{Fallible, Outcome, check, guests};

/// Packages of this workspace that are not published.
const PRIVATE: [&str; 3] = ["xtask", "sandlite-python", "sandlite-probes"];

/// The guest's modules and what belongs to them; `guests/build.rs` embeds them.
const MODULES: [&str; 7] = [
    "python.licenses",
    "python.sha256",
    "python.wasm.xz",
    "python314-more.zip",
    "python314.zip",
    "shell.sha256",
    "shell.wasm.xz",
];

/// Runs `cargo xtask package`.
pub(crate) fn run_package(args: &[String]) -> Outcome {
    let verify = match args {
        [] => false,
        [option] if option == "--verify" => true,
        _ => return Err(format!("unknown options: {}", args.join(" ")).into()),
    };
    let built = guests::build()?;
    let carried = Carried::new(&built)?;
    let place = target().join("packing");
    step("packing every crate");
    let mut package = cargo();
    package.args(["package", "--workspace", "--offline", "--allow-dirty", "--quiet", "--target-dir"]).arg(&place);
    package.args(PRIVATE.iter().flat_map(|name| ["--exclude", name]));
    if !verify {
        package.arg("--no-verify");
    }
    run(package.env_remove("SANDLITE_GUESTS"), check::RUSTUP)?;
    drop(carried);
    let packed = place.join("package");
    let guests = contents(&packed.join(concat!("sandlite-guests-", env!("CARGO_PKG_VERSION"), ".crate")))?;
    for module in MODULES {
        if !guests.iter().any(|path| path.ends_with(&format!("/modules/{module}"))) {
            return Err(format!("the packed crate `sandlite-guests` does not contain `modules/{module}`").into());
        }
    }
    escaping()
}

/// The modules inside the crate while it is packed; removed at the end, also after an error.
struct Carried(PathBuf);

impl Carried {
    fn new(built: &Path) -> Fallible<Self> {
        let carried = Self(root().join("guests/modules"));
        fs::create_dir_all(&carried.0)?;
        for module in MODULES {
            fs::copy(built.join(module), carried.0.join(module))?;
        }
        Ok(carried)
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn contents(archive: &Path) -> Fallible<Vec<String>> {
    let listed = output(Command::new("tar").arg("-tzf").arg(archive), "install tar")?;
    Ok(listed.lines().map(str::to_owned).collect())
}

// Sources that include a file outside their crate build here, and not from a registry.
fn escaping() -> Outcome {
    let mut found = Vec::new();
    for path in sources()?.iter().filter(|path| path.contains("/src/") && !path.starts_with("xtask/")) {
        let text = fs::read_to_string(root().join(path))?;
        found.extend(included(&text).filter(|included| escapes(path, included)).map(|included| format!("{path}: {included}")));
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(format!("a packed crate contains only files below its own directory; these are not: {}", found.join(", ")).into())
}

// The sources by their paths in the repository. An unpacked archive has no list of them, and is read instead.
fn sources() -> Fallible<Vec<String>> {
    let tracked = output(Command::new("git").args(["ls-files", "*.rs"]).current_dir(root()), "install git").unwrap_or_default();
    if tracked.is_empty() {
        return below(&root());
    }
    Ok(tracked.lines().map(str::to_owned).collect())
}

fn below(root: &Path) -> Fallible<Vec<String>> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            match entry.file_type()?.is_dir() {
                true if !is_hidden && path != target() => left.push(path),
                false if is_source => found.push(path.strip_prefix(root)?.to_string_lossy().into_owned()),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

fn included(text: &str) -> impl Iterator<Item = &str> {
    let macros = ["include_str!(\"", "include_bytes!(\"", "include!(\""];
    macros.into_iter().flat_map(move |name| text.split(name).skip(1).filter_map(|rest| rest.split('"').next()))
}

// Whether a path relative to a source file leaves the crate, whose directory is the one above `src`.
fn escapes(source: &str, included: &str) -> bool {
    let Some((_, inside)) = source.split_once("/src/") else { return false };
    let mut depth = 1 + inside.matches('/').count();
    for part in included.split('/') {
        match part {
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_an_unpacked_archive_are_those_of_the_repository() {
        let read = below(&root()).unwrap();
        assert!(read.iter().any(|path| path == "runtime/src/lib.rs"));
        for listed in sources().unwrap() {
            assert!(read.contains(&listed) || !root().join(&listed).exists(), "{listed}");
        }
    }

    #[test]
    fn includes_outside_the_crate_are_found() {
        assert!(!escapes("server/src/serve/console.rs", "console/a.js"));
        assert!(!escapes("server/src/serve/console.rs", "../../assets/a.js"));
        assert!(escapes("server/src/serve/console.rs", "../../../sdk/a.js"));
        assert!(!escapes("presets/src/preset.rs", "../strict.toml"));
        assert!(escapes("presets/src/preset.rs", "../../strict.toml"));
        let text = "x(include_str!(\"../a\")); include_bytes!(\"b\")";
        assert_eq!(included(text).collect::<Vec<_>>(), ["../a", "b"]);
    }
}
