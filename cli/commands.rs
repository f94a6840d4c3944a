//! The verbs, one file each.

mod bash;
mod bench;
mod check;
mod compact;
mod completions;
mod doctor;
mod export;
mod fork;
pub(crate) mod fs;
mod git;
mod guests;
pub(crate) mod history;
mod import;
mod info;
mod kv;
mod licenses;
mod man;
#[cfg(feature = "mcp")]
mod mcp;
mod pip;
mod policy;
mod presets;
mod python;
pub(crate) mod run;
pub(crate) mod self_test;
#[cfg(feature = "mcp")]
mod serve;
pub(crate) mod servers;
pub(crate) mod skill;
mod versions;
mod wasm;
mod watch;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtime::{Builder, NewFile, Sandbox};

use crate::args::{Args, GivenPolicy, Global, Verb};
use crate::engine;
use crate::exit::Code;
use crate::printer::{Hinted, Printer};

pub(crate) use fs::usage;
pub(crate) use pip::wheels;
#[cfg(feature = "mcp")]
pub(crate) use serve::tenant_line;

/// The default sandbox file.
const DEFAULT_DATABASE: &str = "sandlite.db";

/// Runs the verb.
pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Code> {
    let global = &args.global;
    if let Some(server) = &args.server {
        return crate::remote::run(server, global, &args.verb, printer);
    }
    local(global, &args.verb, printer)
}

/// Runs a verb on this machine.
pub(crate) fn local(global: &Global, verb: &Verb, printer: &Printer) -> anyhow::Result<Code> {
    refuse_missing_directory(global)?;
    refuse_lost_restrictions(global, verb)?;
    refuse_lost_version(global, verb)?;
    match verb {
        Verb::Bash(bash) => bash::run(global, bash, printer),
        Verb::Python(python) => python::run(global, python, printer),
        Verb::Wasm(wasm) => wasm::run(global, wasm, printer),
        Verb::Pip(pip) => pip::run(global, pip, printer),
        Verb::Fs(files) => fs::run(global, files, printer),
        Verb::Kv(kv) => kv::run(global, kv, printer),
        Verb::History(history) => history::run(global, history, printer),
        Verb::Log(log) => versions::log(global, log, printer),
        Verb::Diff(diff) => versions::diff(global, diff, printer),
        Verb::Show(show) => versions::show_run(global, show, printer),
        Verb::Blame(blame) => versions::blame(global, blame, printer),
        Verb::Bisect(bisect) => versions::bisect(global, bisect, printer),
        Verb::Replay(replay) => versions::replay(global, replay, printer),
        Verb::Changes(changes) => versions::changes(global, changes, printer),
        Verb::Apply(apply) => versions::apply(global, apply, printer),
        Verb::Undo(undo) => versions::undo(global, undo, printer),
        Verb::Restore(restore) => versions::restore(global, restore, printer),
        Verb::Update(update) => versions::update(global, update, printer),
        Verb::Checkpoint(checkpoint) => versions::checkpoint(global, checkpoint, printer),
        Verb::Checkpoints => versions::checkpoints(global, printer),
        Verb::Prune(prune) => versions::prune(global, prune, printer),
        Verb::Skill(skill) => skill::run(global, skill, printer),
        Verb::Git(git) => git::run(global, git, printer),
        Verb::Watch(watch) => watch::run(global, watch, printer),
        Verb::Policy(policy) => policy::run(global, policy, printer),
        Verb::Export(export) => export::run(global, export, printer),
        Verb::Import(import) => import::run(global, import, printer),
        Verb::Fork(fork) => fork::run(global, fork, printer),
        Verb::Check => check::run(global, printer),
        Verb::Compact => compact::run(global, printer),
        Verb::Info(info) => info::run(global, info, printer),
        Verb::Presets(presets) => presets::run(presets, printer),
        #[cfg(feature = "mcp")]
        Verb::Mcp(mcp) => mcp::run(global, mcp, printer),
        #[cfg(feature = "mcp")]
        Verb::Serve(serve) => serve::run(global, serve, printer),
        #[cfg(feature = "mcp")]
        Verb::Keys(keys) => serve::keys(keys, printer),
        #[cfg(feature = "mcp")]
        Verb::Tenants(tenants) => serve::tenants(tenants, printer),
        Verb::Guests(guests) => guests::run(guests, printer),
        Verb::Bench(bench) => bench::run(bench, printer),
        Verb::Doctor => doctor::run(global, printer),
        Verb::SelfTest => self_test::run(printer),
        Verb::Licenses => licenses::run(printer),
        Verb::Completions(completions) => completions::run(completions, printer),
        Verb::Man(man) => man::run(man, printer),
    }
}

/// Returns a path of the sandbox; one that does not begin with a slash is below its working directory.
pub(crate) fn guest_path(path: &str) -> String {
    fs::guest(path)
}

/// Returns the database to use, if any: the named one, else the default one if it exists.
pub(crate) fn database(global: &Global) -> Option<PathBuf> {
    global.db.clone().or_else(|| Path::new(DEFAULT_DATABASE).exists().then(|| DEFAULT_DATABASE.into()))
}

// SQLite would report a file name that the user does not know.
fn refuse_missing_directory(global: &Global) -> anyhow::Result<()> {
    let parent = global.db.as_deref().and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
    match (&global.db, parent) {
        (Some(path), Some(parent)) if !parent.is_dir() => {
            let hint = format!("create it first: `mkdir -p {}`", parent.display());
            Err(Hinted::error(format!("cannot use `{}`: its directory does not exist", path.display()), hint))
        }
        _ => Ok(()),
    }
}

// Where a policy or a view would not apply, naming one is an error.
fn refuse_lost_restrictions(global: &Global, verb: &Verb) -> anyhow::Result<()> {
    let (what, hint) = match verb {
        Verb::Wasm(wasm) if !wasm.dir.is_empty() => ("`wasm --dir`", "mount the directory with `--mount` instead"),
        #[cfg(feature = "mcp")]
        Verb::Serve(_) => ("`serve`", "each sandbox has its own policy, and each key its own view: `keys create --view`"),
        _ => return Ok(()),
    };
    let given = [("--policy", global.policy.is_some()), ("--view", global.view.is_some())];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Hinted::error(format!("cannot apply `{option}` to {what}"), hint)),
        None => Ok(()),
    }
}

// Where a past version would not be used, naming one is an error: the verb would use the current state.
fn refuse_lost_version(global: &Global, verb: &Verb) -> anyhow::Result<()> {
    if global.at.is_none() {
        return Ok(());
    }
    let (what, hint) = match verb {
        Verb::Replay(_) => ("replay", "name the version to start from with `--from`"),
        Verb::Import(_) => ("import", "import the file first: its versions are imported too"),
        Verb::Policy(_) => ("policy", "the policy applies to every version"),
        Verb::Watch(_) => ("watch", "name the version to start after with `--from`"),
        #[cfg(feature = "mcp")]
        Verb::Mcp(_) => ("mcp", "pass `at` to its tools, or serve a copy: `sandlite fork --at VERSION FILE`"),
        #[cfg(feature = "mcp")]
        Verb::Serve(_) => ("serve", "pass `at` in requests"),
        _ => return refuse_new_file(global),
    };
    Err(Hinted::error(format!("cannot apply `--at` to `{what}`"), hint))
}

// A file that would be created has no past versions.
fn refuse_new_file(global: &Global) -> anyhow::Result<()> {
    match global.db.as_deref().filter(|path| !path.exists()) {
        Some(path) => Err(Hinted::error(format!("`{}` does not exist", path.display()), "omit `--at` to create it")),
        None => Ok(()),
    }
}

/// Configures the sandbox that the options select.
pub(crate) fn builder(global: &Global, printer: &Printer) -> Builder {
    builder_on(global, database(global), printer)
}

/// Configures a sandbox in the given database.
fn builder_on(global: &Global, database: Option<PathBuf>, printer: &Printer) -> Builder {
    let mut builder = global.preset.give(engine::give(Sandbox::builder())).wait(global.wait.0);
    if let Some(GivenPolicy(policy)) = &global.policy {
        builder = builder.policy(policy.clone());
    }
    match database {
        Some(path) => {
            printer.verbose(format_args!("using `{}`", path.display()));
            builder.database(path)
        }
        None => {
            printer.verbose("using a sandbox in memory");
            builder
        }
    }
}

/// Opens the sandbox of a verb that requires a file, creating the file if the user named it.
fn stored(global: &Global, printer: &Printer) -> anyhow::Result<Sandbox> {
    if database(global).is_none() {
        return Err(no_sandbox());
    }
    at(global, builder(global, printer).open()?)
}

/// Applies `--view` and `--at` to the sandbox.
pub(crate) fn at(global: &Global, sandbox: Sandbox) -> anyhow::Result<Sandbox> {
    let sandbox = viewed(global, sandbox)?;
    Ok(match &global.at {
        Some(version) => sandbox.at(version)?,
        None => sandbox,
    })
}

/// Applies `--view` to the sandbox.
pub(crate) fn viewed(global: &Global, sandbox: Sandbox) -> anyhow::Result<Sandbox> {
    Ok(match &global.view {
        Some(view) => sandbox.view(&view.principal, view.labels.clone())?,
        None => sandbox,
    })
}

/// Opens the sandbox of a verb that changes it.
fn existing(global: &Global, printer: &Printer) -> anyhow::Result<Sandbox> {
    at(global, owned(global, known(global, None, printer)?).open()?)
}

/// Same as [`existing`], with additional settings.
fn existing_with(global: &Global, printer: &Printer, give: impl FnOnce(Builder) -> Builder) -> anyhow::Result<Sandbox> {
    at(global, give(owned(global, known(global, None, printer)?)).open()?)
}

/// Opens the sandbox of a verb that only reads it: nothing is written, and other processes are not disturbed.
fn looking(global: &Global, printer: &Printer) -> anyhow::Result<Sandbox> {
    at(global, owned(global, known(global, None, printer)?).read_only().open()?)
}

/// Same as [`existing`], for files and keys, which are subject to the stored policy.
fn existing_bound(global: &Global, printer: &Printer) -> anyhow::Result<Sandbox> {
    at(global, known(global, None, printer)?.open()?)
}

/// Same as [`looking`], for files and keys, which are subject to the stored policy.
fn looking_bound(global: &Global, printer: &Printer) -> anyhow::Result<Sandbox> {
    at(global, known(global, None, printer)?.read_only().open()?)
}

// Verbs for the whole sandbox run as its owner unless the options name a principal.
fn owned(global: &Global, builder: Builder) -> Builder {
    if global.policy.is_none() && global.view.is_none() { builder.as_owner() } else { builder }
}

fn known(global: &Global, named: Option<&PathBuf>, printer: &Printer) -> anyhow::Result<Builder> {
    match named.cloned().or_else(|| database(global)) {
        Some(path) if path.exists() => Ok(builder_on(global, Some(path), printer)),
        Some(path) => {
            let hint = "any command creates it: `sandlite --db FILE bash -c true`";
            Err(Hinted::error(format!("`{}` does not exist", path.display()), hint))
        }
        None => Err(no_sandbox()),
    }
}

fn no_sandbox() -> anyhow::Error {
    Hinted::error(format!("cannot find `{DEFAULT_DATABASE}` in the current directory"), "name the sandbox with `--db FILE`")
}

/// Reports a negative result: prints it and returns exit code 1.
fn answered(outcome: anyhow::Result<Code>, printer: &Printer) -> Code {
    outcome.unwrap_or_else(|error| {
        printer.error(&error);
        Code::Failure
    })
}

/// Writes a file on this machine atomically.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let failed = || format!("cannot write `{}`", path.display());
    write_whole_with(path, |file| file.write_all(content).with_context(failed))
}

/// Same as [`write_whole`], with a callback that writes the content. An existing path that is not a regular file, such as a
/// device, is written directly.
pub(crate) fn write_whole_with<T>(path: &Path, fill: impl FnOnce(&mut File) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let create = |at: &Path| File::create(at).with_context(|| format!("cannot write `{}`", path.display()));
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fill(&mut create(path)?);
    }
    // A symlink to a file is kept.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let new = NewFile::beside(&target).map_err(runtime::Error::from)?;
    let filled = fill(&mut create(new.path())?)?;
    new.replace().map_err(runtime::Error::from)?;
    Ok(filled)
}

/// Writes an HTML page to a file, or to standard output.
fn write_page(path: &Path, printer: &Printer, draw: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<Code> {
    if path == Path::new("-") {
        let mut out = BufWriter::new(Printed(printer));
        draw(&mut out)?;
        out.flush()?;
        return Ok(Code::Success);
    }
    let cannot = || format!("cannot write `{}`", path.display());
    let bytes = write_whole_with(path, |file| {
        let mut out = BufWriter::new(file);
        draw(&mut out)?;
        out.flush().with_context(cannot)?;
        Ok(out.get_ref().metadata().with_context(cannot)?.len())
    })?;
    if printer.is_json() {
        printer.json(&serde_json::json!({ "path": path, "bytes": bytes }));
    } else {
        printer.line(&format!("wrote `{}` ({})", path.display(), crate::time::size(bytes)));
    }
    Ok(Code::Success)
}

/// Our standard output, as a writer.
struct Printed<'a>(&'a Printer);

impl Write for Printed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.bytes(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
