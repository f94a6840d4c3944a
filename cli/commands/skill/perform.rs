//! `skill run`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtime::{ByteSize, Cancel, Command};
use skills::{Artifact, Request, RunResult, Skills, Status};

use crate::args::SkillRun;
use crate::exit::Code;
use crate::input;
use crate::interrupt::Interrupts;
use crate::printer::Printer;

/// Maximum size of the input, and of each file passed to a skill.
const INPUT_MAX: ByteSize = ByteSize(16 << 20);
const FILE_MAX: ByteSize = ByteSize(256 << 20);

/// The exit code of a run that timed out, as for commands.
pub(crate) const TIMEOUT: u8 = 124;

pub(super) fn run(skills: &Skills, args: &SkillRun, printer: &Printer) -> anyhow::Result<Code> {
    let interrupts = Interrupts::listen()?;
    let cancel = Cancel::default();
    // A command that is never run carries the signal flag.
    drop(interrupts.watch(Command::bash("").cancelled_by(cancel.clone())));
    let mut request = Request::new(&args.name).cancelled_by(cancel);
    if let Some(given) = &args.input {
        request = request.input(read_input(given)?);
    }
    for path in &args.file {
        let name = path.file_name().with_context(|| format!("`{}` has no name", path.display()))?.to_string_lossy().into_owned();
        let is_taken = |other: &&PathBuf| other.file_name() == path.file_name();
        anyhow::ensure!(args.file.iter().filter(is_taken).count() == 1, "more than one file is named `{name}`");
        let content = input::bounded(input::regular_file(path)?, FILE_MAX, &format!("`{}`", path.display()))?;
        request = request.file(name, content);
    }
    for (name, value) in &args.env {
        request = request.env(name, value);
    }
    if let Some(session) = &args.session {
        request = request.session(session);
    }
    let mut result = skills.run(request)?;
    let signal = interrupts.unwatch();
    // The script has run, so its output must not be lost with its files.
    let lost = args.download.as_deref().and_then(|directory| result.save(directory).err());
    if printer.is_json() {
        result.notes.extend(lost.as_ref().map(|error| format!("the files were not copied: {error}")));
        printer.line(&printer.foreign(&result.to_json()));
    } else {
        tell(&result, args.download.as_deref().filter(|_| lost.is_none()), printer);
    }
    if let Some(error) = lost {
        if !printer.is_json() {
            printer.error(&super::hinted(error.into()));
        }
        return Ok(signal.map_or(Code::Failure, Code::Signal));
    }
    let code = match result.status {
        Status::Success => Code::Success,
        Status::Failed => Code::Failure,
        Status::Timeout => Code::Guest(TIMEOUT),
    };
    Ok(signal.map_or(code, Code::Signal))
}

/// Returns the input that an argument denotes: text, `@FILE`, or `-` for standard input.
pub(crate) fn read_input(given: &str) -> anyhow::Result<String> {
    let (bytes, name) = match given.strip_prefix('@') {
        _ if given == "-" => (input::bounded(std::io::stdin().lock(), INPUT_MAX, "standard input")?, "standard input".to_owned()),
        Some(path) => {
            let name = format!("`{path}`");
            (input::bounded(input::regular_file(Path::new(path))?, INPUT_MAX, &name)?, name)
        }
        None => return Ok(given.to_owned()),
    };
    String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))
}

// The output goes to standard output and everything else to standard error, so that the output can be piped.
fn tell(result: &RunResult, download: Option<&Path>, printer: &Printer) {
    if let Some(output) = &result.output {
        printer.line(&printer.foreign(output));
    }
    for line in result.logs.lines() {
        printer.note(printer.foreign(line));
    }
    for Artifact { path, size, .. } in &result.files {
        let place = download.map(|directory| format!(" in `{}`", directory.display())).unwrap_or_default();
        printer.note(printer.foreign(&format!("file {path} ({}){place}", crate::time::size(*size))));
    }
    for note in &result.notes {
        printer.note(printer.foreign(note));
    }
    if let Some(error) = &result.error {
        printer.error(&anyhow::anyhow!("{}: {}", result.status.as_str(), printer.foreign(error)));
    }
}
