//! `cargo xtask bench presets` runs this: the report on the terminal, and as files in the directory it is given.

use std::path::Path;
use std::process::ExitCode;

use sandlite_bench::{Effort, presets};

fn main() -> ExitCode {
    let directory = std::env::args_os().nth(1);
    match write(directory.as_deref().map(Path::new)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(directory: Option<&Path>) -> Result<(), Box<dyn std::error::Error>> {
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
        eprintln!("written: presets.md, presets.json and presets.svg in {}", directory.display());
    }
    Ok(())
}
