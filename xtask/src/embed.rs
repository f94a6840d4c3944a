//! `cargo xtask embed`: builds and runs a project outside this repository that depends on `sandlite-runtime` by path.

use std::fs;
use std::process::Command;

use crate::run::{output, root, step, target};
use crate::{Outcome, guests};

/// The project's program: the first lines of the runtime's documentation.
const MAIN: &str = r#"use sandlite_runtime::{Preset, Sandbox};

fn main() -> Result<(), sandlite_runtime::Error> {
    let sandbox = Sandbox::builder().database("agent.db").preset(Preset::Normal).open()?;
    let output = sandbox.bash("echo hello | tr a-z A-Z")?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    sandbox.close()
}
"#;

/// Runs `cargo xtask embed`.
pub(crate) fn run_embed() -> Outcome {
    guests::build()?;
    step("building a project outside the repository");
    let place = std::env::temp_dir().join(format!("sandlite-embed-{}", std::process::id()));
    fs::create_dir_all(place.join("src"))?;
    let runtime = root().join("runtime");
    let manifest = format!(
        "[package]\nname = \"embed\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nsandlite-runtime = {{ path = {runtime:?} }}\n"
    );
    fs::write(place.join("Cargo.toml"), manifest)?;
    fs::write(place.join("src/main.rs"), MAIN)?;
    // The same versions as here, so that nothing is fetched.
    fs::copy(root().join("Cargo.lock"), place.join("Cargo.lock"))?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Not by a variable: the build script of the guests would look for the modules there.
    cargo.args(["run", "--release", "--quiet", "--offline", "--target-dir"]).arg(target().join("embed")).current_dir(&place);
    let printed = output(&mut cargo, "install Rust with rustup");
    let has_file = place.join("agent.db").exists();
    fs::remove_dir_all(&place)?;
    match printed?.as_str() {
        "HELLO\n" if has_file => Ok(()),
        "HELLO\n" => Err("the project's program did not create `agent.db`".into()),
        other => Err(format!("the project's program printed {other:?}, expected \"HELLO\\n\"").into()),
    }
}
