//! `cargo xtask`: all developer tasks of this repository.

mod attack;
mod bench;
mod check;
mod cpython_tests;
mod cross;
mod demo;
mod dist;
mod docs;
mod embed;
mod guests;
mod nightly;
mod openapi;
mod package;
mod record;
mod reproduce;
mod run;
mod skillbox;
mod skips;
mod wasi_testsuite;
mod wheel;

use std::process::ExitCode;

/// An error for a person, in one sentence.
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// The result of a step.
type Outcome = Fallible<()>;

const HELP: &str = "\
Usage: cargo xtask <command>

  demo      install prerequisites, build everything, and give a short tour
  test      run every check of CI: format, lints, repository rules, tests
  nightly [PART]…
            run the extended checks: all of CPython's tests, AgentFS's SDKs, MCP clients, 10 000 kills, hostile files, soak
  guests    build the programs of the sandbox to WebAssembly
            (--python-sci: also install the scientific Python for its tests)
  wheel     build the Python package, including the guests
  dist      build everything that is distributed, in target/dist/packages: static program, .deb, wheel, bill of materials, checksums
  cross [PLATFORM]
            build the program for aarch64-unknown-linux-gnu or x86_64-unknown-linux-musl and run its self-test, in an emulator if needed
  reproduce build the distribution again in another directory, and compare the checksums
  embed     build and run a project outside the repository that depends on the runtime
  package   pack every crate as for a registry (--verify: also build the packed crates)
  licenses  write cli/licenses.txt, the licenses of all crates, after a change of dependencies
  attack    run extended versions of the attacks in the tests
  bench     measure commands and presets
  cpython-tests [PART]…
            run CPython's own tests inside the sandbox, downloaded from Debian (--fetch: only download them)
  wasi-testsuite DIR
            run the public tests of preview1 with `sandlite wasm`; DIR is a checkout with the compiled modules
  openapi [EXAMPLES]
            send requests made from the server's OpenAPI document by Schemathesis to a running server
  skillbox DIR
            Skillbox's own example programs against `sandlite serve`; DIR is a checkout of devs-group/skillbox
  docs      rewrite the generated pages in docs/reference and the copies of Rust blocks for the tests
  record    record the results of the machine's real bash for tests/bash

The first call builds everything, which takes some minutes (README.md has the measured time); later calls only build what changed.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = args.split_first().map_or(("help", &[][..]), |(command, rest)| (command.as_str(), rest));
    let outcome = match command {
        "demo" => demo::run_demo(),
        "test" => check::run(),
        "nightly" => nightly::run_nightly(rest),
        "guests" => guests::run(rest),
        "attack" => attack::attack(rest),
        "bench" => bench::bench(rest),
        "wheel" => wheel::build(),
        "dist" => dist::run_dist(rest),
        "cross" => cross::run_cross(rest),
        "docs" => docs::write(),
        "embed" => embed::run_embed(),
        "reproduce" => reproduce::run_reproduce(),
        "package" => package::run_package(rest),
        "licenses" => dist::licenses::write(),
        "cpython-tests" => cpython_tests::cpython_tests(rest),
        "wasi-testsuite" => wasi_testsuite::run(rest),
        "openapi" => openapi::check(rest),
        "skillbox" => skillbox::run(rest),
        "record" => record::run(rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command `{other}`\n\n{HELP}").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
