//! `cargo xtask openapi`: requests made from the server's own document, by Schemathesis, against the running server.
//!
//! No response may be a fault of the server, have an undocumented status or content type, or not fit its schema. `cargo xtask test` runs a
//! short form, and reports it as SKIPPED if the package cannot be installed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::run::{cargo, output, run, step, target};
use crate::{Fallible, Outcome};

const PACKAGE: &str = "schemathesis>=4,<5";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
/// Requests of each operation, if the command line does not name a number.
const EXAMPLES: &str = "20";
/// Requests of each operation in the short form: less than a minute for all of them.
const FEW: &str = "3";

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Builds the server and tries every operation: the cases of its schemas, and a number of random requests.
pub(crate) fn check(args: &[String]) -> Outcome {
    let examples = args.first().map_or(EXAMPLES, String::as_str);
    let program = installed().ok_or("cannot install Schemathesis: install Python with `venv` and `pip`")?;
    step("building the server");
    run(cargo().args(["build", "--release", "--workspace", "--bin", "sandlite"]), "install Rust")?;
    request(&program, "coverage,fuzzing", examples)
}

/// Tries every operation of the server that the tests have built with a few random requests.
pub(crate) fn check_briefly() -> Outcome {
    match installed() {
        Some(program) => request(&program, "fuzzing", FEW),
        None => crate::skips::skip("xtask::openapi", "Schemathesis cannot be installed with pip"),
    }
}

fn request(program: &Path, phases: &str, examples: &str) -> Outcome {
    let directory = target().join("openapi");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory)?;
    let (_server, address, key) = start(&directory)?;
    step("requests of every operation");
    let mut schemathesis = Command::new(program);
    schemathesis.current_dir(&directory).args([
        "run",
        &format!("http://{address}/openapi.json"),
        "--url",
        &format!("http://{address}"),
    ]);
    schemathesis.args(["--header", &format!("Authorization: Bearer {key}"), "--checks", CHECKS, "--max-examples", examples]);
    schemathesis.args(["--phases", phases, "--continue-on-failure", "--no-shrink", "--request-timeout", "60"]);
    schemathesis.args(["--suppress-health-check", "all", "--warnings", "off", "--seed", "1"]);
    run(&mut schemathesis, "remove `target/openapi-venv` to install it again")
}

// The program, installed with pip if it is missing; `None` if it cannot be.
fn installed() -> Option<PathBuf> {
    let place = target().join("openapi-venv");
    let program = place.join("bin/schemathesis");
    if !program.exists() {
        step("installing Schemathesis");
        output(Command::new("python3").args(["-m", "venv"]).arg(&place), "install Python").ok()?;
        output(Command::new(place.join("bin/pip")).args(["install", "--quiet", PACKAGE]), "install pip").ok()?;
    }
    program.exists().then_some(program)
}

fn start(directory: &Path) -> Fallible<(Server, String, String)> {
    // That of this target directory: another one may have a program that was built earlier.
    let mut command = Command::new(target().join("release/sandlite"));
    command.current_dir(directory).args([
        "serve",
        "--data",
        "data",
        "--listen",
        "127.0.0.1:0",
        "--set",
        "log=off",
        "--preset",
        "strict",
    ]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let stderr = child.stderr.take().ok_or("the server has no standard error")?;
    let server = Server(child);
    let (mut lines, mut key, mut address) = (BufReader::new(stderr).lines(), String::new(), None);
    for line in lines.by_ref() {
        let line = line?;
        if let Some((_, text)) = line.split_once("not shown again: ") {
            key = text.trim().to_owned();
        }
        if let Some((_, text)) = line.split_once("listening on http://") {
            address = Some(text.trim().to_owned());
            break;
        }
    }
    std::thread::spawn(move || lines.for_each(drop));
    Ok((server, address.ok_or("the server did not start")?, key))
}
