//! `cargo xtask cpython-tests`: CPython's own tests, inside the sandbox.
//!
//! The tests come from Debian's packages by name, through apt with its own lists: nothing on the machine is changed, and apt
//! checks the signatures. `tests/python/cpython.txt` lists the modules and the skipped tests.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{cargo, root, run, step, target};

/// The packages: the tests and their support files.
const PACKAGES: [&str; 2] = ["libpython3.14-testsuite", "libpython3.14-stdlib"];

/// The distribution that has them.
const SUITE: &str = "sid";

const DEBIAN: &str = "this requires Debian, with apt and dpkg";

/// A module, and the patterns of its skipped tests.
struct Module {
    name: String,
    left_out: Vec<String>,
}

/// Runs all modules, or those whose names contain one of `wanted`; with `--fetch`, only downloads the tests.
///
/// `cargo xtask test` runs a few modules if the tests have been downloaded (`tests/python/cpython.rs`).
pub(crate) fn cpython_tests(wanted: &[String]) -> crate::Outcome {
    let suite = suite()?;
    if wanted == ["--fetch"] {
        return Ok(());
    }
    let modules: Vec<_> = modules(&fs::read_to_string(root().join("tests/python/cpython.txt"))?)
        .into_iter()
        .filter(|module| wanted.is_empty() || wanted.iter().any(|part| module.name.contains(part)))
        .collect();
    step("building");
    run(cargo().args(["build", "--release", "--workspace", "--bins", "--quiet"]), "install Rust with rustup")?;
    let driver = fs::read_to_string(root().join("tests/python/cpython.py"))?;
    let mut failed = Vec::new();
    for module in &modules {
        if !passes(module, &suite, &driver)? {
            failed.push(module.name.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("{} of {} modules fail: {}", failed.len(), modules.len(), failed.join(", ")).into())
}

fn passes(module: &Module, suite: &Path, driver: &str) -> crate::Fallible<bool> {
    let mut command = Command::new(target().join("release/sandlite"));
    let mount = format!("{}:/suite:ro", suite.display());
    command.args(["--preset", "permissive", "python", "--mount", &mount, "--env", &format!("MODULE={}", module.name)]);
    command.args(["-c", driver]).current_dir(suite).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(module.left_out.join("\n").as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        println!("{}", text.lines().last().unwrap_or_default());
        return Ok(true);
    }
    print!("{text}{}", String::from_utf8_lossy(&output.stderr));
    println!("{}: ended with {}", module.name, output.status);
    Ok(false)
}

// Unindented names are modules; below them, pattern and reason.
fn modules(list: &str) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    for line in list.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        match (line.starts_with(' '), modules.last_mut()) {
            (true, Some(module)) => module.left_out.extend(line.split_whitespace().next().map(str::to_owned)),
            _ => modules.push(Module { name: line.trim().to_owned(), left_out: Vec::new() }),
        }
    }
    modules
}

// The parent directory of `test`, downloaded if missing.
fn suite() -> crate::Fallible<PathBuf> {
    let home = target().join("cpython-tests");
    let suite = home.join("suite");
    if suite.join("test/test_json").is_dir() {
        return Ok(suite);
    }
    step("downloading CPython's tests");
    for place in ["apt/state/lists/partial", "apt/cache/archives/partial", "debs", "unpacked"] {
        fs::create_dir_all(home.join(place))?;
    }
    let sources = home.join("apt/sources.list");
    fs::write(&sources, format!("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {} {SUITE} main\n", mirror()?))?;
    let apt = |verb: &[&str]| {
        let mut apt = Command::new("apt-get");
        let set = |name: &str, path: &Path| format!("{name}={}", path.display());
        for option in [
            set("Dir::State", &home.join("apt/state")),
            set("Dir::Cache", &home.join("apt/cache")),
            set("Dir::Etc::sourcelist", &sources),
            "Dir::State::status=/var/lib/dpkg/status".to_owned(),
            "Dir::Etc::sourceparts=-".to_owned(),
        ] {
            apt.arg("-o").arg(option);
        }
        apt.arg("-qq").args(verb).current_dir(home.join("debs"));
        run(&mut apt, DEBIAN)
    };
    apt(&["update"])?;
    apt(&[&["download"][..], &PACKAGES].concat())?;
    let unpacked = home.join("unpacked");
    for deb in fs::read_dir(home.join("debs"))? {
        run(Command::new("dpkg-deb").arg("-x").arg(deb?.path()).arg(&unpacked), DEBIAN)?;
    }
    fs::create_dir_all(&suite)?;
    fs::rename(unpacked.join("usr/lib/python3.14/test"), suite.join("test"))?;
    fs::remove_dir_all(&unpacked)?;
    Ok(suite)
}

// The mirror that this machine uses.
fn mirror() -> crate::Fallible<String> {
    let mut texts = vec![fs::read_to_string("/etc/apt/sources.list").unwrap_or_default()];
    for entry in fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten() {
        texts.push(fs::read_to_string(entry.path()).unwrap_or_default());
    }
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    let mut mirrors = words.filter(|word| word.starts_with("http") && word.trim_end_matches('/').ends_with("/debian"));
    mirrors.next().map(str::to_owned).ok_or_else(|| format!("no Debian mirror in apt's configuration: {DEBIAN}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_skipped_tests_are_read() {
        let modules = modules("# about\ntest_a\ntest_b\n    *.test_x   because of y\n    test_b.T.test_z  z\n");
        let read: Vec<_> = modules.iter().map(|module| (module.name.as_str(), module.left_out.join(" "))).collect();
        assert_eq!(read, [("test_a", String::new()), ("test_b", "*.test_x test_b.T.test_z".to_owned())]);
    }
}
