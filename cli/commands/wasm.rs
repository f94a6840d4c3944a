//! `sandlite wasm`: runs a module from this machine.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtime::{Builder, Command, Sandbox, TreeMark};

use super::run::{run_in, with_places};
use crate::args::{Global, Wasm};
use crate::exit::Code;
use crate::interrupt::Interrupts;
use crate::printer::{Hinted, Printer};
use crate::{engine, input};

/// The program name for a module whose file name is not a valid program name.
const NAMELESS: &str = "program.wasm";

/// The mount point of directories of this machine while a module works on them.
const PLACES: &str = "/mnt";

pub(crate) fn run(global: &Global, args: &Wasm, printer: &Printer) -> anyhow::Result<Code> {
    let wasm = input::module(&args.module)?;
    let interrupts = Interrupts::listen()?;
    let options = args.options();
    let (name, builder) = program(&args.module, &wasm, builder(global, args, printer)?);
    let command = Command::program(name, &args.args).only_own_env();
    let sandbox = super::at(global, with_places(builder, &options)?.open_for(&command)?)?;
    let given = args.dir.iter().enumerate().map(|(number, (host, name))| give(&sandbox, number, host, name));
    let given = given.collect::<anyhow::Result<Vec<_>>>()?;
    // As in other engines, a module without directories cannot reach any file.
    let has_files = super::database(global).is_some() || !args.mount.is_empty() || !args.file.is_empty();
    let command = if given.is_empty() && has_files {
        command
    } else {
        command.directories(given.iter().map(|given| (given.name.clone(), given.place.clone())))
    };
    let code = run_in(&sandbox, &interrupts, &options, command, printer)?;
    for given in &given {
        let copy = sandbox.export_changes(&given.mark, &given.host)?;
        for path in &copy.skipped {
            printer.note(format_args!("`{path}` was not copied back: it leads out of `{}`", given.host.display()));
        }
    }
    Ok(code)
}

/// A directory on this machine that the module works on.
struct Given {
    host: PathBuf,
    name: String,
    place: String,
    mark: TreeMark,
}

fn give(sandbox: &Sandbox, number: usize, host: &Path, name: &str) -> anyhow::Result<Given> {
    let place = format!("{PLACES}/{number}");
    sandbox.import_tree(host, &place).with_context(|| format!("cannot copy `{}` for the module", host.display()))?;
    let mark = sandbox.mark_tree(&place)?;
    Ok(Given { host: host.to_owned(), name: name.to_owned(), place, mark })
}

// The program is named after its file if that is a valid name.
fn program(file: &Path, wasm: &[u8], builder: Builder) -> (String, Builder) {
    let is_name = |name: &&str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+');
        name.len() <= 64 && name.bytes().all(is_letter) && !name.starts_with(['-', '.'])
    };
    let name = file.file_name().and_then(|name| name.to_str()).filter(is_name).unwrap_or(NAMELESS);
    (name.to_owned(), builder.program(name, wasm))
}

fn builder(global: &Global, args: &Wasm, printer: &Printer) -> anyhow::Result<Builder> {
    if args.dir.is_empty() {
        return Ok(super::builder(global, printer));
    }
    if global.db.is_some() {
        let hint = "copy the directory in with `sandlite fs put`, or mount it with `--mount`";
        return Err(Hinted::error("cannot use `--dir` with a sandbox file: it works in memory", hint));
    }
    Ok(global.preset.give(engine::give(Sandbox::builder())).wait(global.wait.0))
}
