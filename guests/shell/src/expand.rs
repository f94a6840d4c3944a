//! From words to fields: tilde, parameter, command and arithmetic expansion, splitting, globbing.
//!
//! A word becomes segments of text, each knowing whether it was quoted and whether it may be split; segments become
//! fields; fields that hold unquoted pattern characters become file names. Brace expansion happens before, on the tree.

mod arithmetic;
mod fields;
mod operation;
mod parameter;
mod pathname;
mod prompt;
mod purity;
mod substitution;
mod tilde;
mod transform;

pub use arithmetic::ArithmeticCache;
pub use purity::{is_pure_command, runs_in_place};
pub(crate) use substitution::HIGHEST;
pub use transform::{describe, quote_assignment};

use crate::ast::{Operation, ParameterName, Part, Word};
use crate::brace;
use crate::shell::Origin;
use crate::shell::{Done, Flow, Shell};
use crate::state::options::SetOption;
use crate::state::variables::Value;
use fields::Fields;

/// A piece of an expanded word.
#[derive(Debug)]
pub(crate) enum Segment {
    /// Text.
    Text {
        /// The text itself.
        text: String,
        /// It is literal: never split, never a pattern.
        quoted: bool,
        /// It came from an expansion: split by IFS.
        split: bool,
    },
    /// The border between two elements of `"$@"`.
    Break,
}

/// The treatment of the parts of a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    /// Inside double quotes.
    pub quoted: bool,
    /// The result will be split into fields; otherwise `$@` is joined.
    pub split: bool,
    /// Literal text is split too: the word of `${x:-word}`.
    pub split_literals: bool,
    /// Where tildes are looked for.
    pub tilde: Tilde,
}

/// Where tildes are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tilde {
    /// Nowhere.
    No,
    /// At the start, and in what looks like an assignment.
    Word,
    /// At the start and after each colon.
    Assignment,
}

impl Mode {
    const FIELDS: Self = Self { quoted: false, split: true, split_literals: false, tilde: Tilde::Word };
    const STRING: Self = Self { quoted: false, split: false, split_literals: false, tilde: Tilde::Word };
    const ASSIGNMENT: Self = Self { quoted: false, split: false, split_literals: false, tilde: Tilde::Assignment };
    const QUOTED: Self = Self { quoted: true, split: false, split_literals: false, tilde: Tilde::No };
}

/// More words than this from one word's braces are refused: they would only fill the memory.
const MAX_BRACE_WORDS: usize = 1_000_000;

/// Characters that may make a literal word more than itself.
fn is_plain(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{' | b'~' | b'(' | b'\\'))
}

impl Shell {
    /// Expands the words of a command to fields.
    pub fn expand_words(&mut self, words: &[Word]) -> Done<Vec<String>> {
        let mut out = Vec::with_capacity(words.len());
        for word in words {
            self.expand_word(word, &mut out)?;
        }
        Ok(out)
    }

    /// Expands one word to any number of fields.
    pub fn expand_word(&mut self, word: &Word, out: &mut Vec<String>) -> Done<()> {
        match word.parts.as_slice() {
            [Part::Literal(text)] if is_plain(text) => {
                out.push(text.clone());
                return Ok(());
            }
            [Part::Quoted(text, _)] => {
                out.push(text.clone());
                return Ok(());
            }
            _ => {}
        }
        if self.on(SetOption::BraceExpand) && brace::may_expand(word) {
            let Ok(words) = brace::expand(word, MAX_BRACE_WORDS) else {
                self.complain("brace expansion: too many words");
                return Err(self.discard());
            };
            for mut word in words {
                rejoin(&mut word);
                self.expand_braceless(&word, out)?;
            }
            return Ok(());
        }
        self.expand_braceless(word, out)
    }

    fn expand_braceless(&mut self, word: &Word, out: &mut Vec<String>) -> Done<()> {
        let mut segments = Vec::with_capacity(word.parts.len());
        self.expand_parts(&word.parts, Mode::FIELDS, &mut segments)?;
        if let [Segment::Text { quoted: true, text, .. }] = segments.as_mut_slice() {
            out.push(std::mem::take(text));
            return Ok(());
        }
        let ifs = self.ifs();
        let mut fields = Fields::new(&ifs);
        for segment in segments {
            fields.add(segment);
        }
        for field in fields.finish() {
            self.expand_pathname(field, out)?;
        }
        Ok(())
    }

    /// Expands a word to one string: no splitting, no globbing.
    pub fn expand_string(&mut self, word: &Word) -> Done<String> {
        self.expand_joined(word, Mode::STRING)
    }

    /// Expands the value of an assignment.
    pub fn expand_assigned(&mut self, word: &Word) -> Done<String> {
        self.expand_joined(word, Mode::ASSIGNMENT)
    }

    /// Expands a word to one string in which tildes stand for themselves.
    pub fn expand_untilded(&mut self, word: &Word) -> Done<String> {
        self.expand_joined(word, Mode { tilde: Tilde::No, ..Mode::STRING })
    }

    /// Expands a word as if it stood between double quotes: here-documents, arithmetic, prompts.
    pub fn expand_quoted(&mut self, word: &Word) -> Done<String> {
        self.expand_joined(word, Mode::QUOTED)
    }

    fn expand_joined(&mut self, word: &Word, mode: Mode) -> Done<String> {
        match word.parts.as_slice() {
            [] => return Ok(String::new()),
            [Part::Literal(text)] if mode.quoted || !text.contains('~') => return Ok(text.clone()),
            [Part::Quoted(text, _)] => return Ok(text.clone()),
            _ => {}
        }
        let mut segments = Vec::with_capacity(word.parts.len());
        self.expand_parts(&word.parts, mode, &mut segments)?;
        let mut out = String::new();
        for segment in segments {
            match segment {
                Segment::Text { text, .. } if out.is_empty() => out = text,
                Segment::Text { text, .. } => out.push_str(&text),
                Segment::Break => out.push(' '),
            }
        }
        Ok(out)
    }

    /// Expands a word to a pattern: what was quoted is escaped.
    pub fn expand_pattern(&mut self, word: &Word) -> Done<String> {
        self.expand_escaped(word, |c| !c.is_ascii_alphanumeric() && c.is_ascii())
    }

    /// Expands a word to a regular expression: what was quoted is escaped.
    pub fn expand_regex(&mut self, word: &Word) -> Done<String> {
        self.expand_escaped(word, |c| "\\.[]{}()*+?^$|".contains(c))
    }

    fn expand_escaped(&mut self, word: &Word, special: impl Fn(char) -> bool) -> Done<String> {
        let mut segments = Vec::with_capacity(word.parts.len());
        self.expand_parts(&word.parts, Mode::STRING, &mut segments)?;
        let mut out = String::new();
        for segment in segments {
            match segment {
                Segment::Text { text, quoted: false, .. } => out.push_str(&text),
                Segment::Text { text, .. } => {
                    for c in text.chars() {
                        if special(c) {
                            out.push('\\');
                        }
                        out.push(c);
                    }
                }
                Segment::Break => out.push(' '),
            }
        }
        Ok(out)
    }

    /// Expands parts side by side.
    pub(crate) fn expand_parts(&mut self, parts: &[Part], mode: Mode, out: &mut Vec<Segment>) -> Done<()> {
        for (at, part) in parts.iter().enumerate() {
            match part {
                Part::Literal(text) => {
                    let followed = at + 1 < parts.len();
                    let text = if mode.quoted || mode.tilde == Tilde::No || !text.contains('~') {
                        text.clone()
                    } else {
                        self.expand_tildes(text, mode.tilde, at == 0, followed, out)
                    };
                    out.push(Segment::Text { text, quoted: mode.quoted, split: mode.split_literals });
                }
                Part::Quoted(text, _) => out.push(Segment::Text { text: text.clone(), quoted: true, split: false }),
                Part::DoubleQuoted { parts, .. } => self.expand_double_quoted(parts, mode, out)?,
                Part::Parameter(parameter) => self.expand_parameter(parameter, mode, out)?,
                Part::Command(substitution) => {
                    let text = self.command_substitution(substitution)?;
                    out.push(Segment::Text { text, quoted: mode.quoted, split: mode.split });
                }
                Part::Arithmetic(word) => {
                    let text = self.evaluate_word(word)?.to_string();
                    out.push(Segment::Text { text, quoted: mode.quoted, split: mode.split });
                }
                Part::Process { writes, body } => {
                    let text = self.process_substitution(*writes, body)?;
                    out.push(Segment::Text { text, quoted: true, split: false });
                }
            }
        }
        Ok(())
    }

    fn expand_double_quoted(&mut self, parts: &[Part], mode: Mode, out: &mut Vec<Segment>) -> Done<()> {
        let inner = Mode { quoted: true, split_literals: false, tilde: Tilde::No, ..mode };
        if let [Part::Literal(text) | Part::Quoted(text, _)] = parts {
            out.push(Segment::Text { text: text.clone(), quoted: true, split: false });
            return Ok(());
        }
        let before = out.len();
        self.expand_parts(parts, inner, out)?;
        // `"$@"` without parameters is nothing at all; `""` is an empty field.
        if out.len() == before && !parts.iter().any(parameter::is_list) {
            out.push(Segment::Text { text: String::new(), quoted: true, split: false });
        }
        Ok(())
    }

    /// Expands without an `IFS` that is set for the command alone: `IFS=: declare -a x=($y)`.
    pub(crate) fn with_own_ifs<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let Some(temporary) = self.variables.get("IFS").filter(|variable| variable.temporary).cloned() else {
            return work(self);
        };
        // The value in the surrounding scope.
        let own = self.variables.outer("IFS", temporary.scope).cloned();
        let value = own.map_or_else(|| Value::Scalar(" \t\n".into()), |own| own.value);
        self.variables.entry("IFS").value = value;
        let result = work(self);
        self.variables.entry("IFS").value = temporary.value;
        result
    }

    /// Returns the characters that separate fields.
    pub(crate) fn ifs(&mut self) -> String {
        match self.variables.get("IFS") {
            Some(variable) if !variable.is_set() => " \t\n".to_owned(),
            Some(_) => self.get("IFS").unwrap_or_default(),
            None => " \t\n".to_owned(),
        }
    }

    /// Returns the separator of the elements of `"$*"`.
    pub(crate) fn ifs_joint(&mut self) -> String {
        self.ifs().chars().next().map(String::from).unwrap_or_default()
    }

    /// Ends the shell after an error that bash does not survive when it is not interactive.
    pub(crate) fn fatal(&mut self, message: impl std::fmt::Display) -> Flow {
        self.complain(message);
        if self.interactive {
            return Flow::Discard(1);
        }
        let plain = self.origin == Origin::CommandString && self.subshell == 0 && !self.on(SetOption::ErrExit);
        self.status = if plain { 127 } else { 1 };
        Flow::Exit(self.status)
    }
}

/// After brace expansion, `$x` with a letter behind it is another name: `$x{,y}` is `$x` and `$xy`.
fn rejoin(word: &mut Word) {
    for at in 1..word.parts.len() {
        let (head, tail) = word.parts.split_at_mut(at);
        let (Some(Part::Parameter(parameter)), Some(Part::Literal(text))) = (head.last_mut(), tail.first_mut()) else { continue };
        let (ParameterName::Variable(name), false, Operation::Get) =
            (&mut parameter.name, parameter.braced, &parameter.operation)
        else {
            continue;
        };
        let more = text.bytes().take_while(|byte| *byte == b'_' || byte.is_ascii_alphanumeric()).count();
        name.push_str(&text[..more]);
        text.drain(..more);
    }
}
