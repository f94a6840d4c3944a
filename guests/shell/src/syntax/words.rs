//! Words: literals, quotes and the expansions between them; assignments.

use std::rc::Rc;

use crate::ast::{ArrayElement, AssignedValue, Assignment, CommandSubstitution, List, Part, QuoteStyle, Word};

use super::input::{Token, is_name_byte};
use super::{Parsed, Parser, SyntaxError, decode_ansi_c};

/// Where an unquoted word stands, and so what ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A word of a command: a blank or an operator.
    Command,
    /// The right-hand side of `==` in `[[ ]]`: as in a command, with `@( … )` always understood.
    Pattern,
    /// The right-hand side of `=~`: a blank outside parentheses.
    Regex,
    /// An operand in `${ … }`: the brace.
    Brace,
    /// A pattern in `${x/pattern/…}`: a slash or the brace.
    BraceSlash,
    /// Between brackets: the matching bracket.
    Subscript,
    /// The end of the text.
    Whole,
}

/// Where text that is treated as double-quoted stands, and so what ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotedMode {
    /// `" … "`.
    Double,
    /// An operand in `"${ … }"`: the brace.
    Brace,
    /// A here-document's body: the end of the text.
    HereDocument,
    /// `(( … ))`: a parenthesis that was not opened.
    Arithmetic,
    /// A part of `for (( ; ; ))`: also a semicolon.
    ArithmeticFor,
    /// `$[ … ]`.
    Bracket,
    /// The offset or length in `${x:o:l}`: a colon or the brace.
    Offset,
    /// Arithmetic without delimiters: the end of the text.
    ArithmeticText,
}

type Stops = [bool; 256];

const fn stops(bytes: &[u8]) -> Stops {
    let mut table = [false; 256];
    let mut i = 0;
    while i < bytes.len() {
        table[bytes[i] as usize] = true;
        i += 1;
    }
    table
}

static COMMAND: Stops = stops(b"\0\\'\"$` \t\n;&|<>()");
static COMMAND_EXTGLOB: Stops = stops(b"\0\\'\"$` \t\n;&|<>()?*+@!");
static BRACE: Stops = stops(b"\0\\'\"$`}<>");
static BRACE_SLASH: Stops = stops(b"\0\\'\"$`}/<>");
static SUBSCRIPT: Stops = stops(b"\0\\'\"$`[]");
static WHOLE: Stops = stops(b"\0\\'\"$`");
static GROUP: Stops = stops(b"\0\\'\"$`()");
static DOUBLE: Stops = stops(b"\0\\\"$`");
static DOUBLE_BRACE: Stops = stops(b"\0\\\"$`}'");
static HEREDOC: Stops = stops(b"\0\\$`");
static ARITHMETIC: Stops = stops(b"\0\\\"$`();:?}[]");

/// Collects the pieces of a word, joining neighbours that say the same.
#[derive(Default)]
pub(super) struct Parts(pub(super) Vec<Part>);

impl Parts {
    pub(super) fn literal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(Part::Literal(last)) = self.0.last_mut() {
            last.push_str(text);
        } else {
            self.0.push(Part::Literal(text.to_owned()));
        }
    }

    fn escaped(&mut self, text: &str) {
        if let Some(Part::Quoted(last, QuoteStyle::Backslash)) = self.0.last_mut() {
            last.push_str(text);
        } else {
            self.0.push(Part::Quoted(text.to_owned(), QuoteStyle::Backslash));
        }
    }
}

impl Parser {
    /// Reads a word that begins here.
    pub(super) fn word(&mut self, mode: Mode) -> Parsed<Word> {
        let mut parts = Parts::default();
        self.unquoted(&mut parts, mode)?;
        Ok(Word { parts: parts.0 })
    }

    pub(super) fn whole_word(&mut self) -> Parsed<Word> {
        self.word(Mode::Whole)
    }

    pub(super) fn arithmetic_text(&mut self) -> Parsed<Word> {
        self.quoted_word(QuotedMode::ArithmeticText)
    }

    pub(super) fn quoted_word(&mut self, mode: QuotedMode) -> Parsed<Word> {
        let mut parts = Parts::default();
        self.quoted(&mut parts, mode)?;
        Ok(Word { parts: parts.0 })
    }

    /// Moves over bytes that are not in the table and adds them as they are.
    fn run(&mut self, parts: &mut Parts, table: &Stops) -> u8 {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let mut end = start;
        while let Some(&byte) = bytes.get(end) {
            if table[usize::from(byte)] {
                break;
            }
            end += 1;
        }
        self.pos = end;
        if end > start {
            parts.literal(self.text.get(start..end).unwrap_or_default());
        }
        self.here()
    }

    /// Parses one literal byte.
    fn push_here(&mut self, parts: &mut Parts) {
        let end = self.pos + 1;
        parts.literal(self.text.get(self.pos..end).unwrap_or_default());
        self.pos = end;
    }

    fn unquoted(&mut self, parts: &mut Parts, mode: Mode) -> Parsed<()> {
        let table = match mode {
            Mode::Command if !self.options.extglob => &COMMAND,
            Mode::Command | Mode::Pattern => &COMMAND_EXTGLOB,
            Mode::Regex => &COMMAND,
            Mode::Brace => &BRACE,
            Mode::BraceSlash => &BRACE_SLASH,
            Mode::Subscript => &SUBSCRIPT,
            Mode::Whole => &WHOLE,
        };
        let mut brackets = 0u32;
        loop {
            let byte = self.run(parts, table);
            match byte {
                0 => return Ok(()),
                b'\\' | b'\'' | b'"' | b'$' | b'`' => self.quote_or_expansion(parts)?,
                b'<' | b'>' if self.at(self.pos + 1) == b'(' => parts.0.push(self.process()?),
                b'<' | b'>' if matches!(mode, Mode::Brace | Mode::BraceSlash) => self.push_here(parts),
                b'?' | b'*' | b'+' | b'@' | b'!' => {
                    self.push_here(parts);
                    if self.here() == b'(' {
                        self.group(parts)?;
                    }
                }
                b'(' if mode == Mode::Regex => self.group(parts)?,
                b'|' if mode == Mode::Regex => self.push_here(parts),
                b'}' | b'/' => return Ok(()),
                b'[' => {
                    brackets += 1;
                    self.push_here(parts);
                }
                b']' if brackets > 0 => {
                    brackets -= 1;
                    self.push_here(parts);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Parses `( … )` of an extended pattern or a regular expression, with all that stands in it.
    fn group(&mut self, parts: &mut Parts) -> Parsed<()> {
        let line = self.line_at(self.pos);
        let mut depth = 0u32;
        loop {
            match self.run(parts, &GROUP) {
                0 => return Err(SyntaxError::unmatched(line, ')')),
                b'(' => {
                    depth += 1;
                    self.push_here(parts);
                }
                b')' => {
                    self.push_here(parts);
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.quote_or_expansion(parts)?,
            }
        }
    }

    /// Parses what `\`, a quote, `$` or a backquote begins in unquoted text.
    fn quote_or_expansion(&mut self, parts: &mut Parts) -> Parsed<()> {
        match (self.here(), self.at(self.pos + 1)) {
            (b'\\', b'\n') => self.pos += 2,
            (b'\\', 0) => self.push_here(parts),
            (b'\\', _) => {
                self.pos += 1;
                let length = self.rest().chars().next().map_or(1, char::len_utf8);
                parts.escaped(self.text.get(self.pos..self.pos + length).unwrap_or_default());
                self.pos += length;
            }
            (b'\'', _) => {
                let text = self.single_quoted(self.pos + 1)?;
                parts.0.push(Part::Quoted(text, QuoteStyle::Single));
            }
            (b'"', _) => parts.0.push(self.double_quoted(false)?),
            (b'$', b'\'') => {
                let text = self.ansi_quoted()?;
                parts.0.push(Part::Quoted(text, QuoteStyle::AnsiC));
            }
            (b'$', b'"') => {
                self.pos += 1;
                parts.0.push(self.double_quoted(true)?);
            }
            _ => self.expansion(parts, false)?,
        }
        Ok(())
    }

    fn single_quoted(&mut self, start: usize) -> Parsed<String> {
        let Some(length) = self.text.get(start..).and_then(|rest| rest.find('\'')) else {
            let line = self.line_at(start);
            return Err(SyntaxError::unmatched(line, '\''));
        };
        self.pos = start + length + 1;
        Ok(self.slice(start, start + length).to_owned())
    }

    fn ansi_quoted(&mut self) -> Parsed<String> {
        let start = self.pos + 2;
        let mut end = start;
        loop {
            match self.at(end) {
                0 => {
                    let line = self.line_at(start);
                    return Err(SyntaxError::unmatched(line, '\''));
                }
                b'\'' => break,
                b'\\' if self.at(end + 1) != 0 => end += 2,
                _ => end += 1,
            }
        }
        self.pos = end + 1;
        Ok(decode_ansi_c(self.slice(start, end)))
    }

    fn double_quoted(&mut self, locale: bool) -> Parsed<Part> {
        let open = self.pos;
        self.pos += 1;
        let mut parts = Parts::default();
        self.nested(|parser| parser.quoted(&mut parts, QuotedMode::Double))?;
        if self.here() != b'"' {
            let line = self.line_at(open);
            return Err(SyntaxError::unmatched(line, '"'));
        }
        self.pos += 1;
        Ok(Part::DoubleQuoted { parts: parts.0, locale })
    }

    fn quoted(&mut self, parts: &mut Parts, mode: QuotedMode) -> Parsed<()> {
        let table = match mode {
            QuotedMode::Double => &DOUBLE,
            QuotedMode::Brace => &DOUBLE_BRACE,
            QuotedMode::HereDocument => &HEREDOC,
            _ => &ARITHMETIC,
        };
        let (mut parentheses, mut brackets, mut questions) = (0u32, 0u32, 0u32);
        // In `"${x:-'}'}"` the single quotes stay, but hide the brace from bash's search for the end.
        let mut hidden_until = 0;
        loop {
            match self.run(parts, table) {
                0 => return Ok(()),
                b'\\' => self.quoted_backslash(parts, mode),
                b'"' if mode == QuotedMode::Double => return Ok(()),
                b'"' => parts.0.push(self.double_quoted(false)?),
                b'$' if mode == QuotedMode::Brace && !self.in_heredoc && matches!(self.at(self.pos + 1), b'\'' | b'"') => {
                    self.quote_or_expansion(parts)?;
                }
                b'$' | b'`' => self.expansion(parts, true)?,
                b'\'' => {
                    if self.pos >= hidden_until && !self.in_heredoc && !self.options.posix {
                        hidden_until = self.end_of_single_quotes()?;
                    }
                    self.push_here(parts);
                }
                b'}' if self.pos < hidden_until => self.push_here(parts),
                b'}' if matches!(mode, QuotedMode::Brace | QuotedMode::Offset) => return Ok(()),
                b'(' => {
                    parentheses += 1;
                    self.push_here(parts);
                }
                b')' if parentheses == 0 && matches!(mode, QuotedMode::Arithmetic | QuotedMode::ArithmeticFor) => {
                    return Ok(());
                }
                b')' => {
                    parentheses = parentheses.saturating_sub(1);
                    self.push_here(parts);
                }
                b';' if mode == QuotedMode::ArithmeticFor && parentheses == 0 => return Ok(()),
                b':' if mode == QuotedMode::Offset && parentheses == 0 && questions == 0 => return Ok(()),
                b':' => {
                    questions = questions.saturating_sub(1);
                    self.push_here(parts);
                }
                b'?' => {
                    questions += 1;
                    self.push_here(parts);
                }
                b'[' => {
                    brackets += 1;
                    self.push_here(parts);
                }
                b']' if brackets == 0 && mode == QuotedMode::Bracket => return Ok(()),
                b']' => {
                    brackets = brackets.saturating_sub(1);
                    self.push_here(parts);
                }
                _ => self.push_here(parts),
            }
        }
    }

    /// Returns the position after the quote that matches the one here.
    fn end_of_single_quotes(&mut self) -> Parsed<usize> {
        let start = self.pos + 1;
        match self.text.get(start..).and_then(|rest| rest.find('\'')) {
            Some(length) => Ok(start + length + 1),
            None => {
                let line = self.line_at(start);
                Err(SyntaxError::unmatched(line, '\''))
            }
        }
    }

    fn quoted_backslash(&mut self, parts: &mut Parts, mode: QuotedMode) {
        let next = self.at(self.pos + 1);
        let escapes = match next {
            b'\n' => {
                self.pos += 2;
                return;
            }
            b'$' | b'`' | b'\\' => true,
            b'"' => mode != QuotedMode::HereDocument,
            b'}' => mode == QuotedMode::Brace,
            _ => false,
        };
        if escapes {
            parts.escaped(self.text.get(self.pos + 1..self.pos + 2).unwrap_or_default());
            self.pos += 2;
        } else {
            self.push_here(parts);
            // The backslash stays, and yet the quote after it opens nothing.
            if next == b'\'' {
                self.push_here(parts);
            }
        }
    }

    /// Parses `$…` or a backquote; a `$` that begins nothing is literal.
    fn expansion(&mut self, parts: &mut Parts, quoted: bool) -> Parsed<()> {
        while self.here() == b'$' && self.join_at(self.pos + 1) {}
        let part = if self.here() == b'`' {
            Some(self.backquotes(quoted)?)
        } else {
            match self.at(self.pos + 1) {
                b'{' => Some(self.nested(|parser| parser.braced_parameter(quoted))?),
                b'(' => Some(self.nested(Self::dollar_parenthesis)?),
                b'[' => Some(self.nested(Self::dollar_bracket)?),
                _ => self.bare_parameter(),
            }
        };
        match part {
            Some(part) => parts.0.push(part),
            None => self.push_here(parts),
        }
        Ok(())
    }

    fn dollar_parenthesis(&mut self) -> Parsed<Part> {
        if self.at(self.pos + 2) == b'(' && self.arithmetic_ends(self.pos + 3)? {
            self.pos += 3;
            let word = self.quoted_word(QuotedMode::Arithmetic)?;
            self.pos += 2;
            return Ok(Part::Arithmetic(word));
        }
        let start = self.pos;
        let doubled = self.at(start + 2) == b'(';
        self.pos += 2;
        let substitution = self.substitution();
        match substitution {
            Err(error) if doubled && error.incomplete => {
                // bash was looking for the end of an expression when it started here.
                let line = self.line_at(start);
                Err(SyntaxError { line, ..error })
            }
            // bash looks into what began as an expression only when it runs it.
            Err(error) if doubled && !error.is_too_deep() => {
                let end = self.closing_parenthesis(start + 2)?;
                let source = self.slice(start + 2, end).to_owned();
                self.pos = end + 1;
                let error = Some(Rc::new(error));
                let body = List::default();
                Ok(Part::Command(Rc::new(CommandSubstitution { body, source, backquoted: false, error })))
            }
            other => other.map(Part::Command),
        }
    }

    fn dollar_bracket(&mut self) -> Parsed<Part> {
        let open = self.pos;
        self.pos += 2;
        let word = self.quoted_word(QuotedMode::Bracket)?;
        if self.here() != b']' {
            let line = self.line_at(open);
            return Err(SyntaxError::unmatched(line, ']'));
        }
        self.pos += 1;
        Ok(Part::Arithmetic(word))
    }

    fn process(&mut self) -> Parsed<Part> {
        let writes = self.here() == b'>';
        self.pos += 2;
        let body = self.nested(Self::substitution)?;
        Ok(Part::Process { writes, body })
    }

    /// Parses the commands up to `)`, which is passed.
    fn substitution(&mut self) -> Parsed<Rc<CommandSubstitution>> {
        let start = self.pos;
        let outer = self.take_heredocs();
        self.substitutions += 1;
        let parsed = self.nested(Self::substitution_list);
        self.substitutions -= 1;
        self.restore_heredocs(outer);
        let body = parsed.map_err(|error| SyntaxError { status: if error.incomplete { error.status } else { 127 }, ..error })?;
        let source = self.slice(start, self.pos).to_owned();
        self.pos += 1;
        Ok(Rc::new(CommandSubstitution { body, source, backquoted: false, error: None }))
    }

    fn substitution_list(&mut self) -> Parsed<List> {
        self.skip_newlines();
        let mut list = if self.peek() == Token::Close { List::default() } else { self.compound_list()? };
        if self.peek() != Token::Close {
            return Err(self.unexpected());
        }
        self.heredocs_at_close();
        self.fill_heredocs(&mut list);
        Ok(list)
    }

    /// Parses `` ` … ` ``: its text is unescaped first and read as a program of its own, whose errors show when it runs.
    fn backquotes(&mut self, quoted: bool) -> Parsed<Part> {
        let start = self.pos + 1;
        let mut end = start;
        let mut program = String::new();
        let mut copied = start;
        loop {
            match (self.at(end), self.at(end + 1)) {
                (0, _) => {
                    let line = self.line_at(start);
                    return Err(SyntaxError::unmatched(line, '`'));
                }
                (b'`', _) => break,
                (b'\\', next) => {
                    if matches!(next, b'$' | b'`' | b'\\') || (quoted && next == b'"') {
                        program.push_str(self.slice(copied, end));
                        copied = end + 1;
                    }
                    end += if next == 0 { 1 } else { 2 };
                }
                _ => end += 1,
            }
        }
        program.push_str(self.slice(copied, end));
        let line = self.line_at(start);
        let source = self.slice(start, end).to_owned();
        let mut inner = self.inner(&program, 1);
        let (body, error) = match inner.nested(Self::all) {
            Ok(body) => (body, None),
            Err(error) if error.is_too_deep() => return Err(SyntaxError { line, ..error }),
            Err(error) => (List::default(), Some(Rc::new(error))),
        };
        self.warnings.append(&mut inner.warnings);
        self.pos = end + 1;
        Ok(Part::Command(Rc::new(CommandSubstitution { body, source, backquoted: true, error })))
    }

    /// Parses `name=value` and its kin, which `assignment_ahead` has seen.
    pub(super) fn assignment(&mut self) -> Parsed<Assignment> {
        let start = self.pos;
        while is_name_byte(self.here()) {
            self.pos += 1;
        }
        let name = self.slice(start, self.pos).to_owned();
        let index = if self.here() == b'[' { Some(self.subscript()?) } else { None };
        let append = self.take_assignment_operator();
        let value = if self.here() == b'(' {
            AssignedValue::Array(self.array()?)
        } else {
            AssignedValue::Scalar(self.word(Mode::Command)?)
        };
        Ok(Assignment { name, index, append, value })
    }

    fn take_assignment_operator(&mut self) -> bool {
        let append = self.here() == b'+';
        self.pos += 1 + usize::from(append);
        append
    }

    /// Parses `[ … ]`.
    pub(super) fn subscript(&mut self) -> Parsed<Word> {
        let open = self.pos;
        self.pos += 1;
        let word = self.nested(|parser| parser.word(Mode::Subscript))?;
        if self.here() != b']' {
            let line = self.line_at(open);
            return Err(SyntaxError::unmatched(line, ']'));
        }
        self.pos += 1;
        Ok(word)
    }

    /// Parses `( … )` after `name=`.
    fn array(&mut self) -> Parsed<Vec<ArrayElement>> {
        let open = self.pos;
        self.pos += 1;
        let mut elements = Vec::new();
        loop {
            match self.peek() {
                Token::Newline => self.pos += 1,
                Token::Close => {
                    self.pos += 1;
                    return Ok(elements);
                }
                Token::End => {
                    let line = self.line_at(open);
                    return Err(SyntaxError { status: 1, ..SyntaxError::unmatched(line, ')') });
                }
                Token::Word => elements.push(self.array_element()?),
                _ => return Err(SyntaxError { recoverable: true, status: 1, ..self.unexpected() }),
            }
        }
    }

    fn array_element(&mut self) -> Parsed<ArrayElement> {
        if self.here() == b'['
            && let Some(close) = self.matching_bracket(self.pos)
            && matches!((self.at(close + 1), self.at(close + 2)), (b'=', _) | (b'+', b'='))
        {
            let index = Some(self.subscript()?);
            let append = self.take_assignment_operator();
            return Ok(ArrayElement { index, append, value: self.word(Mode::Command)? });
        }
        Ok(ArrayElement { index: None, append: false, value: self.word(Mode::Command)? })
    }
}
