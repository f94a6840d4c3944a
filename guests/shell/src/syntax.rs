//! From text to syntax tree: bash's grammar, one complete command line at a time.
//!
//! The parser reads the next line only when the last one has run, because a line may change how the next is
//! read (`alias`, `shopt -s extglob`). It knows nothing of variables or files. What bash notices only when it expands
//! a word (`bad substitution`) is left in the tree for the interpreter to say.

use std::rc::Rc;

use crate::ast::{List, Word};

mod ansi;
mod commands;
mod compound;
mod conditional;
mod error;
mod heredoc;
mod input;
mod parameter;
mod skip;
mod words;

pub use ansi::decode_ansi_c;
pub use error::{SyntaxError, Warning};

/// The aliases of the shell, by name.
pub type Aliases = crate::state::hash::NameMap<String>;

/// How deep commands and expansions may stand inside one another, a `$( … )` counting twice: measured to need at most
/// 700 KiB of a native stack, in any mixture.
pub const MAX_DEPTH: u32 = 250;

/// Options for reading the text. They can change between commands.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// POSIX mode.
    pub posix: bool,
    /// `shopt -s extglob`.
    pub extglob: bool,
    /// The aliases, when `expand_aliases` is on.
    pub aliases: Option<Rc<Aliases>>,
}

/// Reads commands from a text.
#[derive(Debug)]
pub struct Parser {
    /// How to read; set it between calls of [`Parser::next`].
    pub options: Options,
    text: String,
    pos: usize,
    /// A position and its line: lines are counted from here, not from the start.
    line_mark: (usize, u32),
    depth: u32,
    /// How many `$( … )` and `<( … )` we are inside of.
    substitutions: u32,
    heredocs: heredoc::Pending,
    /// The text is a here-document's body.
    in_heredoc: bool,
    /// Added to the number of the last line when the text ends too early.
    extra_lines: u32,
    warnings: Vec<Warning>,
    alias_uses: Vec<AliasUse>,
    alias_next: Option<usize>,
    /// `alias_uses` may grow only so much between two tokens.
    alias_count: u32,
    /// The text holds joined lines; those that were joined inside of a token are taken out, and their places kept.
    may_join: bool,
    joints: Vec<usize>,
    /// The last command was ended by the end of the text.
    at_end: bool,
}

/// An alias whose text is being read: it is not expanded again inside itself.
#[derive(Debug)]
struct AliasUse {
    name: String,
    /// How much text was left after its value.
    left: usize,
}

/// The result of a parsing step.
type Parsed<T> = Result<T, SyntaxError>;

impl Parser {
    /// Creates a parser at the start of the text.
    pub fn new(source: &str, options: Options) -> Self {
        Self::starting_at(source, options, 1)
    }

    /// Creates a parser whose first line has another number than 1.
    pub fn starting_at(source: &str, options: Options, first_line: u32) -> Self {
        let text = if source.as_bytes().contains(&0) { source.replace('\0', "") } else { source.to_owned() };
        Self {
            options,
            text,
            pos: 0,
            line_mark: (0, first_line),
            depth: 0,
            substitutions: 0,
            heredocs: heredoc::Pending::default(),
            in_heredoc: false,
            extra_lines: 0,
            warnings: Vec::new(),
            alias_uses: Vec::new(),
            alias_next: None,
            alias_count: 0,
            may_join: source.contains("\\\n"),
            joints: Vec::new(),
            at_end: false,
        }
    }

    /// Returns the next complete command line, or `None` at the end of the text. Never an empty list.
    #[expect(clippy::should_implement_trait, reason = "an error ends the text, which an iterator could not say")]
    pub fn next(&mut self) -> Result<Option<List>, SyntaxError> {
        self.alias_count = 0;
        self.extra_lines = 0;
        self.at_end = false;
        self.complete_command()
    }

    /// Returns all that is left, as one list. For text that is read as a whole: `$( … )`, traps.
    pub fn all(&mut self) -> Result<List, SyntaxError> {
        let mut all = List::default();
        while let Some(list) = self.next()? {
            all.items.extend(list.items);
        }
        Ok(all)
    }

    /// Returns the here-documents that were ended by the end of the text, since the last call.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Returns whether a here-document was ended by the end of the text.
    pub fn wants_heredoc(&self) -> bool {
        self.warnings.iter().any(|warning| warning.message.contains("delimited by end-of-file"))
    }

    /// Returns the line that will be read next, from 1.
    pub fn line(&mut self) -> u32 {
        self.line_at(self.pos)
    }

    /// Returns the line on which the last command ended.
    pub fn last_line(&mut self) -> u32 {
        let end = self.text.get(..self.pos).map_or(self.pos, |read| read.trim_end_matches('\n').len());
        self.line_at(end)
    }

    /// Returns how many bytes of the text (as it is after alias expansion) have been read.
    pub fn position(&self) -> usize {
        self.pos
    }

    /// Returns whether the last command was ended by the end of the text and not by that of a line.
    pub fn stopped_at_end(&self) -> bool {
        self.at_end
    }

    /// Returns the text that has not been read yet.
    pub fn rest(&self) -> &str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    /// Continues after an error for which bash only drops a line ([`SyntaxError::recoverable`]).
    pub fn skip_line(&mut self) {
        self.depth = 0;
        self.substitutions = 0;
        self.heredocs = heredoc::Pending::default();
        self.pos = self.rest().find('\n').map_or(self.text.len(), |at| self.pos + at + 1);
    }

    /// Creates a parser for text found inside this one's text.
    fn inner(&self, text: &str, line: u32) -> Self {
        let mut inner = Self::starting_at(text, self.options.clone(), line);
        inner.depth = self.depth;
        inner
    }
}

/// Parses a text as if between double quotes, where `"` itself is an ordinary character: prompts (`${x@P}`, PS4).
pub fn parse_word(text: &str, options: Options) -> Result<Word, SyntaxError> {
    parse_heredoc_body(text, options, 1)
}

/// Parses the body of a here-document whose delimiter was not quoted.
pub fn parse_heredoc_body(text: &str, options: Options, line: u32) -> Result<Word, SyntaxError> {
    Parser::starting_at(text, options, line).heredoc_word()
}

/// Parses the text of an arithmetic expression with its expansions, as found in a subscript or an integer variable's value.
pub fn parse_arith_word(text: &str, options: Options) -> Result<Word, SyntaxError> {
    Parser::new(text, options).arithmetic_text()
}

/// Parses a text as one word of a command line: blanks and operators stand for themselves, quotes and expansions work.
pub fn parse_shell_word(text: &str, options: Options) -> Result<Word, SyntaxError> {
    Parser::new(text, options).whole_word()
}

#[cfg(test)]
mod tests;
