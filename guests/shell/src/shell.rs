//! The shell itself: all state of one running interpreter, and how it speaks on standard error.

use std::fmt::Display;
use std::rc::Rc;

use crate::ast::Function;
use crate::bytes;
use crate::state::hash::{NameMap, NameSet};
use crate::state::jobs::Jobs;
use crate::state::options::{Options, SetOption, ShoptOption};
use crate::state::output::Output;
use crate::state::signals::Traps;
use crate::state::variables::Variables;
use crate::syntax;

/// Why a list of commands stops before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// `break n`: leaves this many loops.
    Break(u32),
    /// `continue n`: leaves all but one of this many loops, and continues with that one.
    Continue(u32),
    /// `return`.
    Return(i32),
    /// The shell ends.
    Exit(i32),
    /// An error that makes bash drop the rest of the current command line.
    Discard(i32),
}

/// A status, or why the list stops.
pub type Done<T = i32> = Result<T, Flow>;

/// A function as defined.
#[derive(Clone, Debug)]
pub struct FunctionEntry {
    /// The definition.
    pub function: Rc<Function>,
    /// The file it was defined in.
    pub source: Rc<str>,
    /// `export -f`.
    pub exported: bool,
    /// `readonly -f`.
    pub readonly: bool,
    /// `declare -ft`.
    pub traced: bool,
}

/// A function call or a sourced file that is running.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The function's name; `source` for a sourced file, `main` for the script.
    pub name: Rc<str>,
    /// The file its commands come from.
    pub source: Rc<str>,
    /// The line it was called on.
    pub call_line: u32,
    /// A function rather than a file.
    pub function: bool,
    /// The options to put back when it ends: `local -`.
    pub options: Option<Options>,
    /// Its arguments, for BASH_ARGV.
    pub arguments: Vec<String>,
}

/// A resource's limits as set by `ulimit`; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The one in force.
    pub soft: Option<u64>,
    /// How far the other may be raised.
    pub hard: Option<u64>,
}

/// The source of the shell's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `-c`.
    CommandString,
    /// A file.
    Script,
    /// Standard input.
    Stdin,
}

/// Maximum stack of the interpreter: all of it, except for the part that a last call may need.
///
/// In a sandbox this is the part of the stack in linear memory, of which `cargo xtask guests` gives 4 MiB.
const STACK_BUDGET: usize = if cfg!(target_arch = "wasm32") { 3_000_000 } else { 7_000_000 };

/// One interpreter.
#[derive(Debug)]
pub struct Shell {
    /// All variables.
    pub variables: Variables,
    /// All functions.
    pub functions: NameMap<FunctionEntry>,
    /// `set` and `shopt`.
    pub options: Options,
    /// `$0`.
    pub name: String,
    /// `$1` and on.
    pub positional: Vec<String>,
    /// `$?`.
    pub status: i32,
    /// PIPESTATUS.
    pub pipe_status: Vec<i32>,
    /// The line being executed.
    pub line: u32,
    /// Running functions and sourced files, outermost first.
    pub frames: Vec<Frame>,
    /// Loops around the current command, within the current function.
    pub loops: u32,
    /// Above 0 where a failing command must not end the shell (conditions, `!`, the left of `&&`).
    pub lenient: u32,
    /// BASH_SUBSHELL.
    pub subshell: u32,
    /// `$$`.
    pub pid: u32,
    /// `$!`.
    pub last_background: Option<u32>,
    /// Traps.
    pub traps: Traps,
    /// Background work.
    pub jobs: Jobs,
    /// Standard output of builtins.
    pub output: Output,
    /// Where commands were found.
    pub hashed: NameMap<(String, u32)>,
    /// Aliases.
    pub aliases: Rc<syntax::Aliases>,
    /// Builtins switched off with `enable -n`.
    pub disabled: NameSet,
    /// The working directory as the user named it.
    pub directory: String,
    /// `pushd`'s directories below the current one.
    pub directory_stack: Vec<String>,
    /// Descriptors of process substitutions of the commands being run.
    pub process_substitutions: Vec<u32>,
    /// Processes that read what this one writes: `>(…)`.
    pub readers: Vec<u32>,
    /// Where `getopts` stands inside a group of option letters.
    pub getopts_at: usize,
    /// How the shell got its commands.
    pub origin: Origin,
    /// The name of the text in syntax errors: `-c`, `eval`, …
    pub input_name: Option<&'static str>,
    /// `$_`.
    pub last_argument: String,
    /// The command being run, for BASH_COMMAND.
    pub current_command: Rc<str>,
    /// RANDOM's state.
    pub random: u32,
    /// The wall clock when SECONDS was 0, in nanoseconds.
    pub seconds_from: i128,
    /// `-i`.
    pub interactive: bool,
    /// Arithmetic expressions already understood.
    pub arithmetic: crate::expand::ArithmeticCache,
    /// Regular expressions already understood.
    pub regexes: NameMap<Rc<posix_regex::Regex>>,
    /// The string given to `-c`.
    pub command_string: Option<String>,
    /// Set while a command substitution's status should become that of an assignment.
    pub substitution_status: Option<i32>,
    /// An address near the bottom of the stack: the distance to it is the used size.
    pub stack_base: usize,
    /// How deep functions are nested.
    pub call_depth: u32,
    /// A coprocess's name and pid.
    pub coprocesses: Vec<(String, u32)>,
    /// Signals that a `wait` noticed and whose traps have not run yet.
    pub signals_seen: u64,
    /// The limits set by `ulimit`.
    pub limits: Vec<(char, Limit)>,
    /// When the shell started, in nanoseconds since 1970.
    pub started: i128,
    /// The status with which the EXIT trap was entered.
    pub exiting: Option<i32>,
    /// Just forked for one command of a pipeline or for the background.
    pub fresh_child: bool,
    /// `set` has changed the positional parameters: a sourced file's changes then stay.
    pub positional_set: bool,
    /// Time spent waiting for children, in nanoseconds.
    pub waited: i128,
    /// Inside a pipeline or a redirection that feeds standard input.
    pub stdin_fed: u32,
    /// The status of a loop that `break` was refused in.
    pub break_status: i32,
    /// Completions set by `complete`, by command.
    pub completions: Vec<(String, String)>,
    /// The host keeps what this shell leaves for the next one.
    pub session: bool,
    /// `exit` or `set -e` ends this shell, and not the end of its commands.
    pub leaves: bool,
    /// How often the first character of PS4 is repeated.
    pub trace_level: u32,
    /// The commands that `history` knows.
    pub history: crate::state::history::History,
    /// How many command lines have been run: `\#` in a prompt.
    pub command_number: u32,
    /// Key bindings.
    pub bindings: crate::builtins::Bindings,
}

impl Shell {
    /// Creates a shell with its defaults.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            variables: Variables::default(),
            functions: NameMap::default(),
            options: Options::default(),
            name: name.to_owned(),
            positional: Vec::new(),
            status: 0,
            pipe_status: Vec::new(),
            line: 1,
            frames: Vec::new(),
            loops: 0,
            lenient: 0,
            subshell: 0,
            pid: 0,
            last_background: None,
            traps: Traps::default(),
            jobs: Jobs::default(),
            output: Output::default(),
            hashed: NameMap::default(),
            aliases: Rc::default(),
            disabled: NameSet::default(),
            directory: String::new(),
            directory_stack: Vec::new(),
            process_substitutions: Vec::new(),
            readers: Vec::new(),
            getopts_at: 0,
            origin: Origin::CommandString,
            input_name: None,
            last_argument: String::new(),
            current_command: "".into(),
            random: 0,
            seconds_from: 0,
            interactive: false,
            arithmetic: crate::expand::ArithmeticCache::default(),
            regexes: NameMap::default(),
            command_string: None,
            substitution_status: None,
            stack_base: 0,
            call_depth: 0,
            coprocesses: Vec::new(),
            signals_seen: 0,
            limits: Vec::new(),
            started: 0,
            exiting: None,
            fresh_child: false,
            positional_set: false,
            waited: 0,
            stdin_fed: 0,
            break_status: 0,
            completions: Vec::new(),
            session: false,
            leaves: false,
            trace_level: 0,
            history: crate::state::history::History::default(),
            command_number: 1,
            bindings: crate::builtins::Bindings::default(),
        }
    }

    /// Returns whether a `set` option is on.
    #[must_use]
    pub fn on(&self, option: SetOption) -> bool {
        self.options.on(option)
    }

    /// Returns whether a `shopt` option is on.
    #[must_use]
    pub fn shopt(&self, option: ShoptOption) -> bool {
        self.options.shopt(option)
    }

    /// Returns how the parser is to read.
    #[must_use]
    pub fn syntax_options(&self) -> syntax::Options {
        let aliases = (self.shopt(ShoptOption::ExpandAliases) && !self.aliases.is_empty()).then(|| Rc::clone(&self.aliases));
        syntax::Options { posix: self.on(SetOption::Posix), extglob: self.shopt(ShoptOption::ExtGlob), aliases }
    }

    /// Returns how a command stops after an error that drops the rest of the line: `set -e` makes it the end of the shell.
    #[must_use]
    pub fn discard(&self) -> Flow {
        if self.on(SetOption::ErrExit) && !self.interactive { Flow::Exit(1) } else { Flow::Discard(1) }
    }

    /// Returns how bash goes back to reading commands, whatever it is in: a command string has none left to read.
    #[must_use]
    pub fn abandon(&self) -> Flow {
        if self.origin == Origin::CommandString { Flow::Exit(1) } else { Flow::Discard(1) }
    }

    /// Writes a message as `bash: line N: message`.
    pub fn complain(&mut self, message: impl Display) {
        let line = self.line;
        self.complain_at(line, message);
    }

    /// Writes a message about another line.
    pub fn complain_at(&mut self, line: u32, message: impl Display) {
        let source = self.frames.last().map(|frame| frame.source.to_string()).filter(|source| !source.is_empty());
        let text = match source {
            None if self.interactive => format!("{}: {message}\n", self.name.rsplit('/').next().unwrap_or_default()),
            source => format!("{}: line {line}: {message}\n", source.unwrap_or_else(|| self.name.clone())),
        };
        self.write_error(&text);
    }

    /// Writes a message about a syntax error: it names the kind of input too.
    pub fn complain_syntax(&mut self, line: u32, message: impl Display) {
        match self.input_name {
            None => self.complain_at(line, message),
            Some(input) => {
                let source = self.frames.last().map(|frame| frame.source.to_string()).filter(|source| !source.is_empty());
                let name = source.unwrap_or_else(|| self.name.clone());
                self.write_error(&format!("{name}: {input}: line {line}: {message}\n"));
            }
        }
    }

    /// Writes to standard error, after what builtins wrote to standard output.
    pub fn write_error(&mut self, text: &str) {
        self.output.flush();
        let _ = sys::write_all(2, &bytes::encode(text));
    }

    /// Writes to standard output.
    pub fn write(&mut self, text: &str) {
        self.output.write(&bytes::encode(text));
    }

    /// Returns the file that commands now come from, as BASH_SOURCE names it.
    #[must_use]
    pub fn source_name(&self) -> Rc<str> {
        match (self.frames.last(), self.origin) {
            (Some(frame), _) => Rc::clone(&frame.source),
            (None, Origin::CommandString) => "environment".into(),
            (None, Origin::Script) => self.name.as_str().into(),
            (None, Origin::Stdin) => "main".into(),
        }
    }

    /// Returns whether another function call or `eval` might not fit the stack.
    #[must_use]
    pub fn stack_is_full(&self) -> bool {
        let here = 0u8;
        self.stack_base != 0 && self.stack_base.abs_diff(std::ptr::from_ref(&here) as usize) > STACK_BUDGET
    }

    /// Counts a command for the host's limits.
    pub fn count_command(&mut self) {
        self.tell_host(sys::Counter::Commands, 1);
    }

    /// Counts a round of a loop for the host's limits.
    pub fn count_round(&mut self, rounds: &mut u32) {
        *rounds = rounds.saturating_add(1);
        self.tell_host(sys::Counter::Loops, *rounds);
    }

    // A limit ends the shell at once, but its output so far is kept.
    fn tell_host(&mut self, what: sys::Counter, amount: u32) {
        if !sys::count(what, amount) {
            self.output.flush();
            std::process::exit(126);
        }
    }
}
