//! Run by `cargo xtask bench`: `presets DIRECTORY` writes the report, `targets [NANOSECONDS]` checks the performance targets.

use std::path::Path;
use std::process::ExitCode;

use sandlite_bench::{Effort, presets};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.first().map(String::as_str) {
        Some("presets") => write(args.get(1).map(Path::new)),
        Some("targets") => check(args.get(1)),
        _ => Err("expected `presets` or `targets`".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(directory: Option<&Path>) -> Outcome {
    let report = presets(Effort::Thorough, |step| eprintln!("  {step}"))?;
    let table = report.table();
    println!("{table}");
    if let Some(directory) = directory {
        std::fs::create_dir_all(directory)?;
        let page = format!(
            "# The same work under each preset\n\nWritten by `cargo xtask bench presets`.\n\n![chart](presets.svg)\n\n{table}"
        );
        std::fs::write(directory.join("presets.md"), page)?;
        std::fs::write(directory.join("presets.json"), format!("{:#}\n", report.json()))?;
        std::fs::write(directory.join("presets.svg"), report.svg())?;
        eprintln!("wrote presets.md, presets.json and presets.svg to {}", directory.display());
    }
    Ok(())
}

fn check(bashkit: Option<&String>) -> Outcome {
    let bashkit = bashkit.map(|nanos| nanos.parse().map(std::time::Duration::from_nanos)).transpose()?;
    for target in sandlite_bench::targets(bashkit)? {
        println!("{target}");
    }
    Ok(())
}
