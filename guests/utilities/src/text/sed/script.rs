//! Reading a sed script: addresses, commands, labels, blocks.

mod arguments;

use std::collections::HashMap;
use std::rc::Rc;

use super::replace::Replacement;
use super::{Chunk, Options};
use crate::io::show;
use posix_regex::{Regex, Syntax};

/// A pattern; `None` is the empty one, which stands for the last pattern used.
pub(super) type Pattern = Option<Rc<Regex>>;

#[derive(Debug)]
pub(super) enum Address {
    Line(u64),
    Step(u64, u64),
    Last,
    Match(Pattern),
    /// `addr,+N`.
    Plus(u64),
    /// `addr,~N`.
    Multiple(u64),
}

#[derive(Debug)]
pub(super) struct Command {
    pub first: Option<Address>,
    pub second: Option<Address>,
    pub negated: bool,
    pub kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Opens a block; where it ends.
    Block(usize),
    BlockEnd,
    Append(Vec<u8>),
    Insert(Vec<u8>),
    Change(Vec<u8>),
    Branch(usize),
    BranchIf(usize),
    BranchUnless(usize),
    Label,
    Delete,
    DeleteFirst,
    Execute(Vec<u8>),
    FileName,
    Get,
    GetAppend,
    Hold,
    HoldAppend,
    List(Option<usize>),
    Next,
    NextAppend,
    Print,
    PrintFirst,
    Quit(i32),
    QuitSilently(i32),
    ReadFile(Vec<u8>),
    ReadLine(usize),
    Substitute(Box<Substitute>),
    WriteFile(usize),
    WriteFirst(usize),
    Exchange,
    Translate(HashMap<Vec<u8>, Vec<u8>>),
    Zap,
    LineNumber,
}

#[derive(Debug)]
pub(super) struct Substitute {
    pub pattern: Pattern,
    pub replacement: Replacement,
    pub global: bool,
    pub print: bool,
    pub evaluate: bool,
    pub number: u64,
    pub write: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Program {
    pub commands: Vec<Command>,
    /// Files of `w` commands.
    pub outputs: Vec<Vec<u8>>,
    /// Files of `R` commands.
    pub inputs: Vec<Vec<u8>>,
}

struct Parser<'a> {
    text: Vec<u8>,
    at: usize,
    /// Where each chunk starts.
    starts: Vec<usize>,
    chunks: &'a [Chunk],
    options: &'a Options,
    program: Program,
    blocks: Vec<usize>,
    labels: HashMap<Vec<u8>, usize>,
    jumps: Vec<(usize, Vec<u8>)>,
}

type Result<T> = std::result::Result<T, String>;

pub(super) fn parse(chunks: &[Chunk], options: &mut Options) -> Result<Program> {
    let mut text = Vec::new();
    let mut starts = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        if index > 0 {
            text.push(b'\n');
        }
        starts.push(text.len());
        text.extend_from_slice(&chunk.text);
    }
    if text.starts_with(b"#n") && matches!(text.get(2), None | Some(b'\n')) {
        options.quiet = true;
    }
    let mut parser = Parser {
        text,
        at: 0,
        starts,
        chunks,
        options,
        program: Program::default(),
        blocks: Vec::new(),
        labels: HashMap::new(),
        jumps: Vec::new(),
    };
    parser.commands()?;
    parser.link()?;
    Ok(parser.program)
}

impl Parser<'_> {
    fn error<T>(&self, message: &str) -> Result<T> {
        self.error_at(self.at, message)
    }

    fn error_at<T>(&self, at: usize, message: &str) -> Result<T> {
        let index = self.starts.partition_point(|&start| start < at.max(1)).saturating_sub(1);
        let start = self.starts[index];
        let expression = 1 + self.chunks[..index].iter().filter(|chunk| chunk.file.is_none()).count();
        Err(match &self.chunks[index].file {
            None => format!("-e expression #{expression}, char {}: {message}", at - start),
            Some(file) => {
                let line = 1 + self.text[start..at.min(self.text.len())].iter().filter(|&&byte| byte == b'\n').count();
                format!("file {} line {line}: {message}", show(file))
            }
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() && byte != b'\n') {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn commands(&mut self) -> Result<()> {
        loop {
            while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() || byte == b';') {
                self.at += 1;
            }
            if self.peek().is_none() {
                break;
            }
            if self.peek() == Some(b'#') {
                while self.next().is_some_and(|byte| byte != b'\n') {}
                continue;
            }
            let (first, second) = self.addresses()?;
            self.skip_blank();
            let mut negated = false;
            while self.peek() == Some(b'!') {
                self.at += 1;
                if negated {
                    return self.error("multiple `!'s");
                }
                negated = true;
                self.skip_blank();
            }
            let Some(letter) = self.next() else { return self.error("missing command") };
            let addressed = first.is_some();
            let ranged = second.is_some();
            let slot = self.program.commands.len();
            self.program.commands.push(Command { first, second, negated, kind: Kind::Label });
            let kind = self.command(letter, addressed, ranged, slot)?;
            self.program.commands[slot].kind = kind;
        }
        if self.blocks.is_empty() { Ok(()) } else { self.error_at(self.starts.last().copied().unwrap_or(0), "unmatched `{'") }
    }

    fn addresses(&mut self) -> Result<(Option<Address>, Option<Address>)> {
        let Some(first) = self.address(false)? else { return Ok((None, None)) };
        self.skip_blank();
        let mut second = None;
        if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_blank();
            second = self.address(true)?;
            if second.is_none() {
                if self.peek().is_some() {
                    self.at += 1;
                }
                return self.error("unexpected `,'");
            }
        }
        if matches!(first, Address::Line(0)) && !matches!(second, Some(Address::Match(_))) {
            self.skip_blank();
            let at = (self.at + 1).min(self.text.len());
            return self.error_at(at, "invalid usage of line address 0");
        }
        Ok((Some(first), second))
    }

    fn number(&mut self) -> u64 {
        let mut value = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value = value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        value
    }

    fn address(&mut self, second: bool) -> Result<Option<Address>> {
        let Some(byte) = self.peek() else { return Ok(None) };
        Ok(Some(match byte {
            b'0'..=b'9' => {
                let line = self.number();
                if self.peek() == Some(b'~') && !second {
                    self.at += 1;
                    let step = self.number();
                    if step == 0 { Address::Line(line) } else { Address::Step(line, step) }
                } else {
                    Address::Line(line)
                }
            }
            b'+' | b'~' if second => {
                self.at += 1;
                let number = self.number();
                if byte == b'+' { Address::Plus(number) } else { Address::Multiple(number) }
            }
            b'$' => {
                self.at += 1;
                Address::Last
            }
            b'/' | b'\\' => {
                self.at += 1;
                let delimiter = if byte == b'/' {
                    b'/'
                } else {
                    match self.next() {
                        Some(delimiter) => delimiter,
                        None => return self.error("unterminated address regex"),
                    }
                };
                let Some(pattern) = self.delimited(delimiter, true) else { return self.error("unterminated address regex") };
                let (mut ignore_case, mut multiline) = (false, false);
                loop {
                    match self.peek() {
                        Some(b'I') => ignore_case = true,
                        Some(b'M') => multiline = true,
                        _ => break,
                    }
                    self.at += 1;
                }
                Address::Match(self.pattern(&pattern, ignore_case, multiline)?)
            }
            _ => return Ok(None),
        }))
    }

    fn pattern(&self, pattern: &[u8], ignore_case: bool, multiline: bool) -> Result<Pattern> {
        if pattern.is_empty() {
            return Ok(None);
        }
        let syntax = Syntax {
            extended: self.options.extended,
            ignore_case,
            multiline,
            escapes: true,
            strict_repeat: true,
            utf8: common::locale::utf8(),
            ..Syntax::default()
        };
        match Regex::new(pattern, syntax) {
            Ok(regex) => Ok(Some(Rc::new(regex))),
            Err(message) => self.error(&message),
        }
    }

    fn end_of_command(&mut self) -> Result<()> {
        self.skip_blank();
        match self.peek() {
            None | Some(b'}' | b'#') => Ok(()),
            Some(b'\n' | b';') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => {
                self.at += 1;
                self.error("extra characters after command")
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm per command")]
    fn command(&mut self, letter: u8, addressed: bool, ranged: bool, slot: usize) -> Result<Kind> {
        if self.options.sandbox && b"erRwW".contains(&letter) {
            return self.error("e/r/w commands disabled in sandbox mode");
        }
        let simple = match letter {
            b'=' => Some(Kind::LineNumber),
            b'd' => Some(Kind::Delete),
            b'D' => Some(Kind::DeleteFirst),
            b'F' => Some(Kind::FileName),
            b'g' => Some(Kind::Get),
            b'G' => Some(Kind::GetAppend),
            b'h' => Some(Kind::Hold),
            b'H' => Some(Kind::HoldAppend),
            b'n' => Some(Kind::Next),
            b'N' => Some(Kind::NextAppend),
            b'p' => Some(Kind::Print),
            b'P' => Some(Kind::PrintFirst),
            b'x' => Some(Kind::Exchange),
            b'z' => Some(Kind::Zap),
            _ => None,
        };
        if let Some(kind) = simple {
            self.end_of_command()?;
            return Ok(kind);
        }
        Ok(match letter {
            b'{' => {
                self.blocks.push(slot);
                Kind::Block(0)
            }
            b'}' => {
                if addressed {
                    return self.error("} doesn't want any addresses");
                }
                let Some(open) = self.blocks.pop() else { return self.error("unexpected `}'") };
                self.program.commands[open].kind = Kind::Block(slot);
                self.end_of_command()?;
                Kind::BlockEnd
            }
            b'a' | b'i' | b'c' => {
                let text = self.text_argument()?;
                match letter {
                    b'a' => Kind::Append(text),
                    b'i' => Kind::Insert(text),
                    _ => Kind::Change(text),
                }
            }
            b':' => {
                if addressed {
                    return self.error(": doesn't want any addresses");
                }
                self.skip_blank();
                let label = self.word(b"");
                if label.is_empty() {
                    return self.error("\":\" lacks a label");
                }
                self.labels.insert(label, slot);
                Kind::Label
            }
            b'b' | b't' | b'T' => {
                self.skip_blank();
                let label = self.word(b";}");
                self.jumps.push((slot, label));
                self.end_of_command()?;
                match letter {
                    b'b' => Kind::Branch(0),
                    b't' => Kind::BranchIf(0),
                    _ => Kind::BranchUnless(0),
                }
            }
            b'e' => {
                self.skip_blank();
                Kind::Execute(self.rest_of_line())
            }
            b'r' => Kind::ReadFile(self.file_name()?),
            b'R' => {
                let name = self.file_name()?;
                Kind::ReadLine(intern(&mut self.program.inputs, name))
            }
            b'w' | b'W' => {
                let name = self.file_name()?;
                let index = intern(&mut self.program.outputs, name);
                if letter == b'w' { Kind::WriteFile(index) } else { Kind::WriteFirst(index) }
            }
            b'l' | b'L' | b'q' | b'Q' => {
                if ranged && matches!(letter, b'q' | b'Q') {
                    return self.error("command only uses one address");
                }
                self.skip_blank();
                let given = self.peek().is_some_and(|byte| byte.is_ascii_digit());
                let number = self.number();
                self.end_of_command()?;
                match letter {
                    b'l' => Kind::List(given.then_some(usize::try_from(number).unwrap_or(usize::MAX))),
                    b'q' => Kind::Quit(number as i32),
                    b'Q' => Kind::QuitSilently(number as i32),
                    _ => return self.error("unknown command: `L'"),
                }
            }
            b's' => Kind::Substitute(Box::new(self.substitute()?)),
            b'y' => {
                let kind = self.translate()?;
                self.end_of_command()?;
                kind
            }
            b'v' => {
                self.rest_of_line();
                Kind::Label
            }
            _ => {
                let shown = show(&[letter]).into_owned();
                return self.error(&format!("unknown command: `{shown}'"));
            }
        })
    }

    fn word(&mut self, stop: &[u8]) -> Vec<u8> {
        let start = self.at;
        while self.peek().is_some_and(|byte| !byte.is_ascii_whitespace() && byte != b';' && !stop.contains(&byte)) {
            self.at += 1;
        }
        self.text[start..self.at].to_vec()
    }

    fn rest_of_line(&mut self) -> Vec<u8> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
        let line = self.text[start..self.at].to_vec();
        if self.peek().is_some() {
            self.at += 1;
        }
        line
    }

    fn file_name(&mut self) -> Result<Vec<u8>> {
        self.skip_blank();
        if matches!(self.peek(), None | Some(b'\n')) {
            return self.error("missing filename in r/R/w/W commands");
        }
        Ok(self.rest_of_line())
    }

    fn link(&mut self) -> Result<()> {
        let end = self.program.commands.len();
        for (slot, label) in std::mem::take(&mut self.jumps) {
            let target = if label.is_empty() {
                end
            } else {
                match self.labels.get(&label) {
                    Some(target) => *target,
                    None => return Err(format!("can't find label for jump to `{}'", show(&label))),
                }
            };
            let kind = &mut self.program.commands[slot].kind;
            match kind {
                Kind::Branch(to) | Kind::BranchIf(to) | Kind::BranchUnless(to) => *to = target,
                _ => {}
            }
        }
        self.skip_space();
        Ok(())
    }
}

fn intern(names: &mut Vec<Vec<u8>>, name: Vec<u8>) -> usize {
    match names.iter().position(|known| *known == name) {
        Some(at) => at,
        None => {
            names.push(name);
            names.len() - 1
        }
    }
}
