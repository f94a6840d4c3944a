//! `cargo xtask`: everything a developer does with this repository, as one program without arcane flags.

mod attack;
mod bench;
mod check;
mod cpython_tests;
mod demo;
mod dist;
mod guests;
mod nightly;
mod openapi;
mod record;
mod run;
mod skillbox;
mod skips;
mod wasi_testsuite;
mod wheel;

use std::process::ExitCode;

/// What goes wrong is told to a person, in one sentence.
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// The end of a step.
type Outcome = Fallible<()>;

const HELP: &str = "\
Usage: cargo xtask <command>

  demo      set up what is missing, build everything, and take a short tour
  test      run every check of CI: format, lints, laws, tests
  nightly   run the long forms: all of CPython's tests, AgentFS's SDKs, MCP clients, 10 000 kills, hostile files, soak
  guests    build the programs of the sandbox to WebAssembly
            (--python-sci: and install the scientific Python for the tests of it)
  wheel     build the Python package, with the guests inside
  dist      build the program with its guests compiled beside it: target/dist
  attack    the long forms of what the tests attack briefly
  bench     measure: what a command costs, what a preset costs
  cpython-tests [PART]…
            CPython's own tests inside the sandbox, fetched from Debian
  wasi-testsuite DIR
            the public tests of preview1 against `sandlite wasm`; DIR is a checkout with the compiled modules
  openapi [EXAMPLES]
            requests made from the server's document by Schemathesis, against the running server
  skillbox DIR
            Skillbox's own example programs against `sandlite serve`; DIR is a checkout of devs-group/skillbox
  record    ask the machine's real bash what each case of tests/bash does

The first call builds everything and takes some minutes; later calls only build what changed.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = args.split_first().map_or(("help", &[][..]), |(command, rest)| (command.as_str(), rest));
    let outcome = match command {
        "demo" => demo::run_demo(),
        "test" => check::run(),
        "nightly" => nightly::run_nightly(),
        "guests" => guests::run(rest),
        "attack" => attack::attack(rest),
        "bench" => bench::bench(rest),
        "wheel" => wheel::build(),
        "dist" => dist::build(),
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
