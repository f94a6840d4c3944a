//! `cargo xtask wheel`: builds the Python package including the guests, and tests it in a fresh virtual environment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{cargo, output, root, run, step, target};
use crate::{Fallible, Outcome, dist, guests, skips};

const PYTHON: &str = "install Python 3.9 or newer (`apt install python3 python3-venv` on Debian)";

/// The variable that selects the frameworks for the tests: `1` for all of them, `light` for those without large dependencies.
const FRAMEWORKS: &str = "SANDLITE_SDK_FRAMEWORKS";

/// Frameworks for which the package has tools.
const LIGHT: [&str; 5] = ["langchain-core", "openai", "anthropic", "pydantic-ai-slim", "mcp"];

/// Frameworks with large dependencies, and their own tests.
const HEAVY: [&str; 2] = ["langchain-tests", "deepagents"];

/// The message in pytest's report for a file that is skipped when it is imported.
const WHOLE_FILE: &str = "collection skipped";

/// Whether a wheel includes compiled guests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guests {
    /// For other machines: the first command takes a second there.
    Compiled,
    /// For this machine, which has compiled them in its cache.
    AsTheyAre,
}

/// `cargo xtask wheel`: builds the wheel and tests it in a fresh environment, with an empty cache.
pub(crate) fn build() -> Outcome {
    guests::build()?;
    let wheel = wheel(Guests::Compiled)?;
    let python = environment("try", &wheel)?;
    step("testing it with an empty cache");
    let cache = target().join("wheel/cache");
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    run(Command::new(python).arg(root().join("sdk/python/examples/hello.py")).env("SANDLITE_CACHE", &cache), PYTHON)?;
    eprintln!("    {} ({} MB)", wheel.display(), fs::metadata(&wheel)?.len() >> 20);
    Ok(())
}

/// Runs the package's own tests, if this machine has the prerequisites.
pub(crate) fn test() -> Outcome {
    if !has_python() {
        return skips::skip("the Python package", PYTHON);
    }
    let wheel = wheel(Guests::AsTheyAre)?;
    let python = environment("test", &wheel)?;
    if run(pip(&python).args(["pytest", "mypy"]), PYTHON).is_err() {
        return skips::skip("the Python package", "pip cannot install pytest and mypy here");
    }
    // One by one: without a framework, only its own tests are skipped.
    for package in frameworks(&std::env::var(FRAMEWORKS).unwrap_or_default()) {
        if run(pip(&python).arg(package), PYTHON).is_err() {
            eprintln!("    cannot install {package}");
        }
    }
    let sdk = root().join("sdk/python");
    step("types of the Python package");
    run(
        Command::new(&python)
            .args(["-m", "mypy", "--config-file"])
            .arg(sdk.join("pyproject.toml"))
            .args(["--cache-dir", "/dev/null", "-p", "sandlite"])
            .current_dir(sdk.join("tests")),
        PYTHON,
    )?;
    step("tests of the Python package");
    // One of them compares the package with the program.
    run(cargo().args(["build", "--workspace", "--release", "--quiet", "--bin", "sandlite"]), "install Rust with rustup")?;
    // Not from the source folder: the package under test is the installed one.
    let mut pytest = Command::new(&python);
    let report = target().join("wheel/pytest.xml");
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml"]).arg(&report).arg(".");
    run(pytest.current_dir(sdk.join("tests")).env("SANDLITE_BIN", target().join("release/sandlite")), PYTHON)?;
    skipped(&fs::read_to_string(report)?).into_iter().try_for_each(|reason| skips::skip("pytest", &reason))
}

fn frameworks(selected: &str) -> Vec<&'static str> {
    match selected {
        "1" => [&LIGHT[..], &HEAVY].concat(),
        "light" => LIGHT.to_vec(),
        _ => Vec::new(),
    }
}

// The reasons of the tests that were skipped, each once, from pytest's report.
fn skipped(report: &str) -> BTreeSet<String> {
    let reasons = report.split("<skipped").skip(1).filter_map(|element| {
        let (element, text) = element.split_once('>')?;
        let message = element.split_once("message=\"")?.1.split('"').next()?;
        // The reason of a whole file is in the text, as part of a tuple.
        let reason = match message == WHOLE_FILE {
            true => {
                let reason = text.split('<').next()?.split_once("Skipped: ")?.1;
                reason.strip_suffix("\")").or_else(|| reason.strip_suffix("')")).unwrap_or(reason)
            }
            false => message,
        };
        Some(reason.replace("&quot;", "'").replace("&#10;", " "))
    });
    reasons.collect()
}

/// Measures the bars of the Python package, as a user has it: installed from a wheel with compiled guests.
pub(crate) fn bench(parts: &[String]) -> Outcome {
    let python = environment("bench", &wheel(Guests::Compiled)?)?;
    run(Command::new(python).arg(root().join("benches/python_package.py")).args(parts), PYTHON)
}

fn has_python() -> bool {
    Command::new("python3").args(["-c", "import venv, ensurepip"]).output().is_ok_and(|output| output.status.success())
}

fn wheel(carried: Guests) -> Fallible<PathBuf> {
    step("building the Python package");
    // The whole workspace, like the tests: one package alone has other features, and builds wasmtime again. `--lib` would build the
    // guests for this machine.
    run(cargo().args(["build", "--workspace", "--release", "--quiet", "--bin", "sandlite-native"]), "install Rust with rustup")?;
    let library = target().join("release/deps/lib_native.so");
    let place = target().join("wheel");
    let compiled =
        if carried == Guests::Compiled { compile(&library, &place, &dist::compiled_by_release())? } else { Vec::new() };
    pack(&library, &compiled, &place.join(if carried == Guests::Compiled { "dist" } else { "test" }))
}

/// Packs the wheel of a distribution, with compiled guests, and tests it with an empty cache. Returns the wheel's path.
pub(crate) fn pack_for_others(library: &Path, place: &Path) -> Fallible<PathBuf> {
    step("packing the Python package");
    let built = target().join("dist-build/wheel");
    let compiled = compile(library, &built, &built.join("compiled"))?;
    let wheel = pack(library, &compiled, place)?;
    let python = environment("dist", &wheel)?;
    let cache = target().join("dist-build/wheel-cache");
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    run(Command::new(python).args(["-m", "sandlite", "self-test"]).env("SANDLITE_CACHE", &cache), PYTHON)?;
    audit(&wheel)?;
    Ok(wheel)
}

// The system tag of the wheel is computed from the symbols it needs; `auditwheel` is the tool that decides.
fn audit(wheel: &Path) -> Outcome {
    let tool = environment_with("audit", &["auditwheel"]);
    let Ok(python) = tool else {
        return skips::skip("auditwheel", "pip cannot install auditwheel here");
    };
    let shown = output(Command::new(python).args(["-m", "auditwheel", "show"]).arg(wheel), PYTHON)?;
    let name = wheel.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let tag = name.split('-').next_back().and_then(|tag| tag.strip_suffix(".whl")).unwrap_or_default().to_owned();
    let said = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("    auditwheel: {said}");
    if said.contains(&format!("\"{tag}\"")) && said.contains("abi3") {
        return Ok(());
    }
    Err(format!("`auditwheel show` does not confirm the tag `{tag}`: {said}").into())
}

fn environment_with(name: &str, packages: &[&str]) -> Fallible<PathBuf> {
    let directory = target().join("wheel/venv").join(name);
    let python = directory.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&directory), PYTHON)?;
    }
    run(pip(&python).args(packages), PYTHON)?;
    Ok(python)
}

fn pack(library: &Path, compiled: &[PathBuf], out: &Path) -> Fallible<PathBuf> {
    let mut pack = Command::new("python3");
    pack.arg(root().join("sdk/python/pack.py")).args(["--version", env!("CARGO_PKG_VERSION"), "--library"]).arg(library);
    pack.arg("--out").arg(out).arg("--compiled").args(compiled);
    Ok(PathBuf::from(output(&mut pack, PYTHON)?.trim()))
}

// The library itself compiles guests for other machines, unless `compiled` has them; Python can load it from anywhere.
fn compile(library: &Path, place: &Path, compiled: &Path) -> Fallible<Vec<PathBuf>> {
    step("compiling the guests for other machines");
    let loaded = place.join("native");
    fs::create_dir_all(&loaded)?;
    fs::copy(library, loaded.join("_native.abi3.so"))?;
    let script = "import _native, sys; print(*_native.compile_guests(sys.argv[1]), sep='\\n')";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(compiled).env("PYTHONPATH", &loaded);
    Ok(output(&mut python, PYTHON)?.lines().map(PathBuf::from).collect())
}

fn environment(name: &str, wheel: &Path) -> Fallible<PathBuf> {
    let directory = target().join("wheel/venv").join(name);
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory), PYTHON)?;
    let python = directory.join("bin/python");
    run(pip(&python).args(["--no-index", "--no-deps"]).arg(wheel), PYTHON)?;
    Ok(python)
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frameworks_are_selected_by_the_variable() {
        assert!(frameworks("").is_empty() && frameworks("0").is_empty());
        assert_eq!(frameworks("light").len(), 5);
        assert!(frameworks("1").contains(&"deepagents") && frameworks("1").contains(&"mcp"));
    }

    #[test]
    fn reasons_of_skipped_tests_are_found_in_the_report() {
        let report = r#"<testcase name="a"><skipped type="pytest.skip" message="could not import &quot;x&quot;">at</skipped></testcase>
            <testcase name="b"><skipped type="pytest.skip" message="no Deno">at</skipped></testcase><testcase name="c" />
            <testcase name="d"><skipped message="collection skipped">('/d.py', 7, "Skipped: could not import 'y': no module 'y'")</skipped></testcase>"#;
        let expected = ["could not import 'x'", "could not import 'y': no module 'y'", "no Deno"];
        assert_eq!(skipped(report).into_iter().collect::<Vec<_>>(), expected);
        assert!(skipped("<testsuite />").is_empty());
    }
}
