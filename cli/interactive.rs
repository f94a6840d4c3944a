//! The interactive shell: a prompt and a line editor. Every command is a run with its own limits, transaction and history row.

mod complete;
mod editor;
mod keyboard;
mod language;
mod line;
mod screen;

use std::io::{self, IsTerminal, Write};

use runtime::{HistoryFilter, Sandbox};
use termion::raw::{IntoRawMode, RawTerminal};

use crate::args::{Global, RunOptions};
use crate::commands;
use crate::commands::run::{passed_on, tell, with_options, with_places};
use crate::exit::Code;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use editor::{Editor, Typed};
use keyboard::Keyboard;
use language::Conversation;

/// Number of earlier commands that the arrow keys reach.
const REMEMBERED: usize = 500;

/// Clears the screen and what was scrolled off it.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// The language of the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    /// `sandlite bash`.
    Bash,
    /// `sandlite python`.
    Python,
}

/// Returns the terminal's width; a terminal that does not report one is assumed to be an old one.
fn width() -> usize {
    termion::terminal_size().ok().map(|(width, _)| usize::from(width)).filter(|&width| width > 0).unwrap_or(80)
}

/// Returns whether a person uses the terminal.
pub(crate) fn is_wanted(printer: &Printer) -> bool {
    !printer.is_json() && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Reads and runs commands until the user leaves.
pub(crate) fn run(global: &Global, options: &RunOptions, tongue: Tongue, printer: &Printer) -> anyhow::Result<Code> {
    let opened = with_places(commands::builder(global, printer), options)?.open()?;
    let (opened, servers) = commands::servers::attach(opened, options, printer)?;
    let sandbox = commands::viewed(global, opened)?;
    let name = options.session.clone().unwrap_or_else(|| format!("terminal-{}", std::process::id()));
    let start = options.cwd.as_deref().unwrap_or(runtime::HOME);
    let mut conversation = open(global, options, &sandbox, &name, tongue)?.starting_in(start);
    welcome(global, tongue, printer);
    let outcome = talk(&mut conversation, &sandbox, options, tongue, printer);
    servers.close();
    // An unnamed session could not be resumed.
    if options.session.is_none() && tongue == Tongue::Bash {
        sandbox.session(&name)?.remove()?;
    }
    outcome
}

fn open(global: &Global, options: &RunOptions, sandbox: &Sandbox, name: &str, tongue: Tongue) -> anyhow::Result<Conversation> {
    let host = sandbox.host();
    // A sandbox in memory is the only one, and its rows disappear with it.
    let looking = match commands::database(global) {
        Some(path) => {
            let looking = Sandbox::builder().host(host).database(path).read_only();
            options.mounts.give(looking).open()?
        }
        None => sandbox.clone(),
    };
    // The same limits, because completion runs the session's own Python in it.
    let scratch = global.preset.give(Sandbox::builder().host(host)).python(options.python.into()).open()?;
    Ok(match tongue {
        Tongue::Bash => Conversation::bash(sandbox.session(name)?, looking, scratch),
        Tongue::Python => Conversation::python(sandbox.python_session()?, looking, scratch),
    })
}

fn welcome(global: &Global, tongue: Tongue, printer: &Printer) {
    let place = commands::database(global).map_or_else(|| "memory".to_owned(), |path| format!("`{}`", path.display()));
    let name = match tongue {
        Tongue::Bash => "bash",
        Tongue::Python => "Python",
    };
    printer.note(format_args!("{name} in {place}, preset {}; Ctrl-D leaves", global.preset));
}

fn talk(
    conversation: &mut Conversation,
    sandbox: &Sandbox,
    options: &RunOptions,
    tongue: Tongue,
    printer: &Printer,
) -> anyhow::Result<Code> {
    let interrupts = Interrupts::listen()?;
    let keyboard = Keyboard::open()?;
    let mut editor = Editor::new(keyboard.clone(), remembered(sandbox, tongue)?);
    let mut terminal = io::stdout().into_raw_mode()?;
    let mut code = Code::Success;
    let mut options = options.clone();
    loop {
        let prompt = conversation.prompt(printer.has_colour());
        let typed = editor.read(&prompt, conversation, &mut terminal)?;
        let text = match typed {
            Typed::Command(text) if text.trim().is_empty() => continue,
            Typed::Command(text) => text,
            Typed::Nothing => continue,
            Typed::End => return Ok(code),
        };
        // A guest cannot do this: its control sequences are made harmless.
        if tongue == Tongue::Bash && text.trim() == "clear" {
            write!(terminal, "{CLEAR}")?;
            terminal.flush()?;
            code = Code::Success;
            continue;
        }
        terminal.suspend_raw_mode()?;
        code = obey(conversation, &text, &options, &keyboard, &interrupts, printer)?;
        // The initial directory and variables. Later commands continue from the state that the first one left.
        (options.cwd, options.env) = (None, Vec::new());
        if conversation.leaves(&text) {
            return Ok(code);
        }
        fresh_line(&mut terminal)?;
    }
}

fn obey(
    conversation: &mut Conversation,
    text: &str,
    options: &RunOptions,
    keyboard: &Keyboard,
    interrupts: &Interrupts,
    printer: &Printer,
) -> anyhow::Result<Code> {
    let command = with_options(conversation.command(text), options);
    let command = passed_on(keyboard.feed(command), options, printer);
    let output = conversation.run(interrupts.watch(command));
    keyboard.take_back();
    let signal = interrupts.unwatch();
    let output = match output {
        Ok(output) => output,
        // A command that cannot run, such as one that is too long, does not end the shell.
        Err(error) => {
            printer.error(&error.into());
            return Ok(Code::Sandlite);
        }
    };
    if conversation.has_lost_python() {
        printer.note(runtime::RESTARTED);
    }
    if let Some(signal) = signal {
        conversation.interrupted(Code::Signal(signal).into());
        return Ok(Code::Signal(signal));
    }
    tell(&output, printer);
    Ok(Code::from(&output.status))
}

// The next prompt starts on a new line whatever the command printed. A mark is written, followed by enough spaces to wrap into
// the next row unless the cursor was in the first column; then everything after it is cleared.
fn fresh_line(terminal: &mut RawTerminal<io::Stdout>) -> io::Result<()> {
    let width = width();
    terminal.activate_raw_mode()?;
    write!(terminal, "\x1b[2m⏎\x1b[0m{}\r\x1b[K", " ".repeat(width.saturating_sub(1)))
}

fn remembered(sandbox: &Sandbox, tongue: Tongue) -> anyhow::Result<Vec<String>> {
    let name = match tongue {
        Tongue::Bash => "bash",
        Tongue::Python => "python",
    };
    let filter = HistoryFilter { limit: REMEMBERED, name: Some(name.to_owned()), ..HistoryFilter::default() };
    let mut commands: Vec<String> = sandbox.history_with(&filter)?.into_iter().map(|run| run.command).collect();
    commands.reverse();
    commands.dedup();
    Ok(commands)
}
