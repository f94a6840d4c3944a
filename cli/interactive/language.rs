//! The two languages of the interactive shell: their prompts, how to recognize a complete command, and how to run it.

use runtime::{Command, Error, ExitStatus, HOME, Output, PythonSession, Sandbox, Session};

use super::complete;
use super::editor::{Language, Prompt};

/// Prints whether the call before was ended by `SystemExit`, and changes no global.
const HAS_EXITED: &str = "print(__import__('_sandlite_main').Session.has_exited)";

/// An interactive session in one language.
pub(super) struct Conversation {
    speaker: Speaker,
    /// The sandbox that completion reads, without creating runs.
    looking: Sandbox,
    /// The sandbox in which commands are only checked, never stored.
    scratch: Sandbox,
    scratch_python: Option<PythonSession>,
    programs: Option<Vec<String>>,
    /// The initial directory of a new session.
    start: String,
    /// The status of an interrupted command, which the next command finds in `$?`.
    interrupted: Option<u8>,
    /// Whether the last command ended by itself.
    has_ended: bool,
}

enum Speaker {
    Bash(Session),
    Python(PythonSession),
}

impl Conversation {
    /// Returns bash, whose variables, functions and directory persist in a session.
    pub(super) fn bash(session: Session, looking: Sandbox, scratch: Sandbox) -> Self {
        Self::new(Speaker::Bash(session), looking, scratch)
    }

    /// Returns Python, whose interpreter persists.
    pub(super) fn python(session: PythonSession, looking: Sandbox, scratch: Sandbox) -> Self {
        Self::new(Speaker::Python(session), looking, scratch)
    }

    fn new(speaker: Speaker, looking: Sandbox, scratch: Sandbox) -> Self {
        let start = HOME.to_owned();
        Self { speaker, looking, scratch, scratch_python: None, programs: None, start, interrupted: None, has_ended: false }
    }

    /// Same as above, in another directory.
    pub(super) fn starting_in(self, directory: &str) -> Self {
        Self { start: directory.to_owned(), ..self }
    }

    /// Creates a command in this language.
    pub(super) fn command(&mut self, text: &str) -> Command {
        match (&self.speaker, self.interrupted.take()) {
            (Speaker::Bash(_), Some(status)) => Command::bash(text).last_status(status),
            (Speaker::Bash(_), None) => Command::bash(text),
            (Speaker::Python(_), _) => Command::python(text).echo(),
        }
    }

    /// Returns whether the last command ended its Python interpreter, and with it all state.
    pub(super) fn has_lost_python(&self) -> bool {
        matches!(&self.speaker, Speaker::Python(session) if !session.is_live())
    }

    /// Records that the last command was interrupted, with this status.
    pub(super) fn interrupted(&mut self, status: u8) {
        self.interrupted = Some(status);
    }

    /// Runs a command created by [`command`](Self::command).
    pub(super) fn run(&mut self, command: Command) -> Result<Output, Error> {
        let output = match &mut self.speaker {
            Speaker::Bash(session) => session.run(command),
            Speaker::Python(session) => session.run(command),
        };
        self.has_ended = output.as_ref().is_ok_and(|output| matches!(output.status, ExitStatus::Exited(_)));
        output
    }

    /// Returns whether the last command asked to leave. One that was stopped did not.
    pub(super) fn leaves(&mut self, text: &str) -> bool {
        if !self.has_ended {
            return false;
        }
        let text = text.trim();
        match &mut self.speaker {
            // The state of a command that was rolled back is that of the one before.
            Speaker::Bash(session) => {
                let status = text.strip_prefix("exit ").map(|status| status.trim().parse::<i64>());
                let is_plain = ["exit", "logout"].contains(&text) || matches!(status, Some(Ok(_)));
                is_plain || session.has_exited().unwrap_or(false)
            }
            Speaker::Python(_) if ["exit", "quit"].contains(&text) => true,
            Speaker::Python(session) => {
                let asked = session.is_live().then(|| session.run_in(&self.scratch, Command::python(HAS_EXITED)));
                matches!(asked, Some(Ok(output)) if output.stdout == b"True\n")
            }
        }
    }

    /// Returns the prompt of a command.
    pub(super) fn prompt(&self, colour: bool) -> Prompt {
        match &self.speaker {
            Speaker::Bash(_) => {
                let cwd = self.cwd();
                let place = match cwd.strip_prefix(HOME) {
                    Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
                    _ => cwd,
                };
                let place: String = place.chars().map(crate::printer::shown).collect();
                let width = unicode_width::UnicodeWidthStr::width(place.as_str()) + 2;
                let text = if colour { format!("\x1b[1;34m{place}\x1b[0m$ ") } else { format!("{place}$ ") };
                Prompt { text, width, continuation: "> " }
            }
            Speaker::Python(_) => Prompt { text: ">>> ".to_owned(), width: 4, continuation: "... " },
        }
    }

    fn cwd(&self) -> String {
        match &self.speaker {
            Speaker::Bash(session) => session.directory().ok().flatten().unwrap_or_else(|| self.start.clone()),
            Speaker::Python(_) => HOME.to_owned(),
        }
    }

    fn programs(&mut self) -> &[String] {
        self.programs.get_or_insert_with(|| {
            let output = self.scratch.bash("compgen -A builtin -A keyword -A command | sort -u");
            let text = output.map(|output| output.stdout).unwrap_or_default();
            String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
        })
    }

    // Uses the rule of Python's own prompt, in a sandbox that stores nothing.
    fn is_whole_python(&mut self, text: &str) -> bool {
        if self.scratch_python.is_none() {
            self.scratch_python = self.scratch.python_session().ok();
        }
        let Some(session) = &mut self.scratch_python else { return true };
        // A JSON string is a Python string.
        let source = serde_json::Value::from(text);
        let ask = format!(
            "import codeop\ntry:\n    print(codeop.compile_command({source}) is None)\nexcept Exception:\n    print(False)\n"
        );
        session.python(ask).is_ok_and(|output| output.stdout != b"True\n")
    }

    // The parser reports an unexpected end of input.
    fn is_whole_bash(&self, text: &str) -> bool {
        if text.chars().rev().take_while(|&c| c == '\\').count() % 2 == 1 {
            return false;
        }
        let Ok(output) = self.scratch.run(Command::bash_with(["-n", "-c", text])) else { return true };
        let complaint = String::from_utf8_lossy(&output.stderr);
        !["unexpected end of file", "unexpected EOF", "delimited by end-of-file"].iter().any(|early| complaint.contains(early))
    }
}

impl Language for Conversation {
    fn is_complete(&mut self, text: &str) -> bool {
        match &self.speaker {
            _ if text.trim().is_empty() => true,
            Speaker::Bash(_) => self.is_whole_bash(text),
            Speaker::Python(_) => self.is_whole_python(text),
        }
    }

    fn complete(&mut self, before: &str) -> (usize, Vec<String>) {
        if let Speaker::Python(session) = &mut self.speaker {
            return complete::python(session, &self.scratch, before);
        }
        let word = complete::last_word(before);
        let cwd = self.cwd();
        let mut choices = if word.is_command && !word.text.contains('/') {
            let programs = self.programs().iter().filter(|name| name.starts_with(&word.text));
            programs.cloned().collect()
        } else {
            complete::files(&self.looking, &cwd, HOME, &word.text)
        };
        choices.sort_unstable();
        choices.dedup();
        (word.start, choices)
    }

    fn after_word(&self) -> &'static str {
        match &self.speaker {
            Speaker::Bash(_) => " ",
            Speaker::Python(_) => "",
        }
    }
}
