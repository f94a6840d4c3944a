//! The interpreter: variables, expressions, the main loop.

mod arrays;
mod eval;

use std::collections::HashMap;
use std::rc::Rc;

use posix_regex::{Regex, Syntax};

use super::ast::{Expr, Place, Program, Special, Var};
use super::lex::unescape;
use super::parse::syntax;
use super::record::{Reader, Record, Separator, Splitter};
use super::streams::Streams;
use super::value::{ArrayRef, Text, Value, to_number};
use crate::io::{self, Input, show};

/// What a variable holds.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Value(Value),
    Array(ArrayRef),
}

pub(super) struct Interp<'p> {
    pub program: &'p Program,
    pub globals: Vec<Cell>,
    pub stack: Vec<Cell>,
    pub base: usize,
    pub depth: usize,
    pub record: Record,
    pub spare: Vec<u8>,
    pub splitter: Rc<Splitter>,
    pub separator: Separator,
    pub nr: f64,
    pub fnr: f64,
    pub fs: Value,
    pub rs: Value,
    pub ofs: Text,
    pub ors: Text,
    pub subsep: Text,
    pub convfmt: Text,
    pub ofmt: Text,
    pub fpat: Value,
    pub field_widths: Value,
    pub ignore_case: bool,
    pub streams: Streams,
    pub regexes: HashMap<Vec<u8>, Rc<Regex>>,
    pub in_range: Vec<bool>,
    pub result: Value,
    pub exit_code: i32,
    pub seed: (f64, f64),
    pub random: u64,
    main: Option<Reader>,
    argument: usize,
    read_any: bool,
    main_done: bool,
    pub skip_file: bool,
    failed: bool,
    pub utf8: bool,
    /// A buffer for `print`.
    pub line: Vec<u8>,
    pub exiting: bool,
    pub in_end: bool,
}

/// Places of the globals that every program has, in the order the parser makes them.
pub(super) mod known {
    pub const FILENAME: usize = 0;
    pub const ENVIRON: usize = 1;
    pub const ARGV: usize = 2;
    pub const ARGC: usize = 3;
    pub const RSTART: usize = 4;
    pub const RLENGTH: usize = 5;
    pub const RT: usize = 6;
    pub const PROCINFO: usize = 7;
    pub const ERRNO: usize = 8;
}

pub(super) fn run(program: &Program, assignments: &[Vec<u8>], operands: Vec<Vec<u8>>) -> i32 {
    let globals = program
        .global_arrays
        .iter()
        .map(|is_array| if *is_array { Cell::Array(ArrayRef::default()) } else { Cell::Value(Value::Uninit) })
        .collect();
    let text = |text: &str| Text::new(text.as_bytes().to_vec());
    let splitter = Rc::new(Splitter::Blanks);
    let mut interp = Interp {
        program,
        globals,
        stack: Vec::new(),
        base: 0,
        depth: 0,
        record: Record::new(Rc::clone(&splitter)),
        spare: Vec::new(),
        splitter,
        separator: Separator::Byte(b'\n'),
        nr: 0.0,
        fnr: 0.0,
        fs: Value::Str(text(" ")),
        rs: Value::Str(text("\n")),
        ofs: text(" "),
        ors: text("\n"),
        subsep: text("\x1c"),
        convfmt: text("%.6g"),
        ofmt: text("%.6g"),
        fpat: Value::Uninit,
        field_widths: Value::Uninit,
        ignore_case: false,
        streams: Streams::new(),
        regexes: HashMap::new(),
        in_range: vec![false; program.ranges],
        result: Value::Uninit,
        exit_code: 0,
        seed: (1.0, 0.0),
        random: 0x2545_f491_4f6c_dd1d,
        main: None,
        argument: 1,
        read_any: false,
        main_done: false,
        skip_file: false,
        failed: false,
        utf8: common::locale::utf8(),
        line: Vec::new(),
        exiting: false,
        in_end: false,
    };
    interp.prepare(assignments, operands);
    interp.rules();
    interp.streams.finish();
    if interp.exit_code == 0 && interp.failed { 2 } else { interp.exit_code }
}

impl<'p> Interp<'p> {
    fn prepare(&mut self, assignments: &[Vec<u8>], operands: Vec<Vec<u8>>) {
        if let Cell::Array(environment) = &self.globals[known::ENVIRON] {
            for (name, value) in std::env::vars_os() {
                let value = Value::Input(Text::new(value.into_encoded_bytes()));
                environment.borrow_mut().insert(Text::new(name.into_encoded_bytes()), value);
            }
        }
        self.globals[known::ARGC] = Cell::Value(Value::Num(operands.len() as f64));
        if let Cell::Array(argv) = &self.globals[known::ARGV] {
            for (index, operand) in operands.into_iter().enumerate() {
                argv.borrow_mut().insert(Text::new(index.to_string().into_bytes()), Value::Input(Text::new(operand)));
            }
        }
        if let Cell::Array(info) = &self.globals[known::PROCINFO] {
            info.borrow_mut().insert(Text::from_slice(b"version"), Value::Str(Text::from_slice(b"5.2.1")));
            let pid = f64::from(sys::process_ids()[0]);
            info.borrow_mut().insert(Text::from_slice(b"pid"), Value::Num(pid));
        }
        for assignment in assignments {
            self.assign_operand(assignment);
        }
    }

    /// `name=value` from the command line.
    fn assign_operand(&mut self, operand: &[u8]) {
        let Some(at) = memchr::memchr(b'=', operand) else { return };
        let name = String::from_utf8_lossy(&operand[..at]).into_owned();
        let value = Value::Input(Text::new(unescape(&operand[at + 1..], |letter| {
            warn!("awk: warning: escape sequence `\\{letter}' treated as plain `{letter}'")
        })));
        let Some(special) = Special::named(&name) else {
            if let Some(index) = self.program.globals.iter().position(|known| *known == name) {
                self.globals[index] = Cell::Value(value);
            }
            return;
        };
        self.set_special(special, value);
    }

    /// Ends the program with a message.
    pub fn fatal(&mut self, message: &str) -> ! {
        self.streams.finish();
        let place = if self.nr > 0.0 || self.fnr > 0.0 {
            let name = self.text_of_global(known::FILENAME);
            let name = if name.is_empty() { Text::from_slice(b"-") } else { name };
            format!("(FILENAME={} FNR={}) ", show(&name), self.fnr)
        } else {
            String::new()
        };
        warn!("awk: {}:1: {place}fatal: {message}", super::source_name());
        io::exit(2)
    }

    /// Ends the program with what gawk calls an error: its status is 1.
    pub fn error(&mut self, message: &str) -> ! {
        self.streams.finish();
        warn!("awk: {}:1: error: {message}", super::source_name());
        io::exit(1)
    }

    // Input.

    fn next_argument(&mut self) -> Option<Vec<u8>> {
        loop {
            let count = match &self.globals[known::ARGC] {
                Cell::Value(value) => value.number(),
                Cell::Array(_) => 0.0,
            };
            if self.argument as f64 >= count {
                return None;
            }
            let key = self.argument.to_string();
            self.argument += 1;
            let Cell::Array(argv) = &self.globals[known::ARGV] else { return None };
            let value = argv.borrow().get(key.as_bytes()).cloned();
            if let Some(value) = value {
                return Some(value.text(&self.convfmt).to_vec());
            }
        }
    }

    /// Opens the next input file; `false` when there is none.
    fn open_next(&mut self) -> bool {
        loop {
            let name = match self.next_argument() {
                Some(name) if name.is_empty() => continue,
                Some(name) if super::is_assignment(&name) => {
                    self.assign_operand(&name);
                    continue;
                }
                Some(name) => name,
                None if self.read_any => return false,
                None => b"-".to_vec(),
            };
            self.read_any = true;
            match Input::open(&name) {
                Ok(input) => {
                    self.globals[known::FILENAME] = Cell::Value(Value::Input(Text::new(name)));
                    self.fnr = 0.0;
                    self.main = Some(Reader::new(Box::new(input)));
                    return true;
                }
                Err(error) => {
                    self.streams.flush();
                    let reason = sys::message(&error);
                    if reason == "Is a directory" {
                        warn!("awk: warning: command line argument `{}' is a directory: skipped", show(&name));
                        continue;
                    }
                    self.streams.finish();
                    warn!("awk: fatal: cannot open file `{}' for reading: {reason}", show(&name));
                    io::exit(2)
                }
            }
        }
    }

    /// Reads a main record into `self.spare`; runs the rules of file boundaries.
    pub fn read_main(&mut self) -> bool {
        loop {
            if self.main_done || self.exiting {
                return false;
            }
            if self.main.is_none() {
                if !self.open_next() {
                    self.main_done = true;
                    return false;
                }
                self.begin_file();
            }
            let mut spare = std::mem::take(&mut self.spare);
            let mut terminator = Vec::new();
            let skip = std::mem::take(&mut self.skip_file);
            let read = match &mut self.main {
                Some(reader) if !skip => reader.read(&self.separator, &mut spare, &mut terminator),
                _ => Ok(false),
            };
            self.spare = spare;
            match read {
                Ok(true) => {
                    self.nr += 1.0;
                    self.fnr += 1.0;
                    if let Separator::Pattern(_) | Separator::Paragraph = self.separator {
                        self.globals[known::RT] = Cell::Value(Value::Str(Text::new(terminator)));
                    }
                    return true;
                }
                Ok(false) => {}
                Err(error) => {
                    let name = self.text_of_global(known::FILENAME);
                    self.streams.flush();
                    warn!("awk: read failure on {} ({})", show(&name), sys::message(&error));
                    self.failed = true;
                }
            }
            self.main = None;
            self.end_file();
        }
    }

    fn text_of_global(&self, index: usize) -> Text {
        match &self.globals[index] {
            Cell::Value(value) => value.text(&self.convfmt),
            Cell::Array(_) => Text::new(Vec::new()),
        }
    }

    /// Makes `self.spare` the current record.
    pub fn take_record(&mut self) {
        let splitter = Rc::clone(&self.splitter);
        let mut spare = std::mem::take(&mut self.spare);
        self.record.swap(&mut spare, &splitter);
        self.spare = spare;
    }

    pub fn set_record(&mut self, text: &[u8]) {
        self.spare.clear();
        self.spare.extend_from_slice(text);
        self.take_record();
    }

    // Variables.

    pub fn special(&mut self, special: Special) -> Value {
        match special {
            Special::Nf => Value::Num(self.record.nf() as f64),
            Special::Nr => Value::Num(self.nr),
            Special::Fnr => Value::Num(self.fnr),
            Special::Fs => self.fs.clone(),
            Special::Rs => self.rs.clone(),
            Special::Ofs => Value::Str(self.ofs.clone()),
            Special::Ors => Value::Str(self.ors.clone()),
            Special::Subsep => Value::Str(self.subsep.clone()),
            Special::Convfmt => Value::Str(self.convfmt.clone()),
            Special::Ofmt => Value::Str(self.ofmt.clone()),
            Special::Fpat => self.fpat.clone(),
            Special::FieldWidths => self.field_widths.clone(),
            Special::IgnoreCase => Value::Num(f64::from(u8::from(self.ignore_case))),
        }
    }

    pub fn set_special(&mut self, special: Special, value: Value) {
        let text = value.text(&self.convfmt);
        match special {
            Special::Nf => {
                let count = value.number();
                if count < 0.0 {
                    self.fatal("NF set to negative value");
                }
                self.record.set_nf(count as usize);
            }
            Special::Nr => self.nr = value.number(),
            Special::Fnr => self.fnr = value.number(),
            Special::Fs => {
                self.splitter = Rc::new(self.splitter_for(&text));
                self.fs = value;
            }
            Special::Rs => {
                self.separator = match &*text {
                    b"" => Separator::Paragraph,
                    [byte] => Separator::Byte(*byte),
                    _ => Separator::Pattern(self.pattern(&text)),
                };
                let fs = self.fs.text(&self.convfmt);
                self.rs = value;
                self.splitter = Rc::new(self.splitter_for(&fs));
            }
            Special::Ofs => {
                // The record is put together with the separator of the moment of assignment.
                self.record.text(&self.ofs, &self.convfmt);
                self.ofs = text;
            }
            Special::Ors => self.ors = text,
            Special::Subsep => self.subsep = text,
            Special::Convfmt => self.convfmt = text,
            Special::Ofmt => self.ofmt = text,
            Special::Fpat => {
                self.splitter = Rc::new(Splitter::Content(self.pattern(&text)));
                self.fpat = value;
            }
            Special::FieldWidths => {
                let widths = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                // `*` is the rest.
                let width = |word: &[u8]| if word == b"*" { usize::MAX } else { to_number(word) as usize };
                self.splitter = Rc::new(Splitter::Widths(widths.map(width).collect()));
                self.field_widths = value;
            }
            Special::IgnoreCase => {
                self.ignore_case = value.truth();
                self.regexes.clear();
            }
        }
    }

    pub fn splitter_for(&mut self, fs: &[u8]) -> Splitter {
        let paragraph = matches!(self.separator, Separator::Paragraph);
        match fs {
            b" " => Splitter::Blanks,
            b"" => Splitter::Characters,
            [byte] if !paragraph && *byte != b'\\' && !self.ignore_case => Splitter::Byte(*byte),
            b"\\" if !paragraph => Splitter::Byte(b'\\'),
            _ => {
                let mut pattern = match fs {
                    [byte] if b"\\|+*?.^$()[]{}".contains(byte) => vec![b'\\', *byte],
                    _ => fs.to_vec(),
                };
                // Lines are fields of a paragraph beside a separator of one character, not beside an expression.
                if paragraph && fs.len() == 1 {
                    pattern = [b"(", pattern.as_slice(), b")|\n"].concat();
                }
                Splitter::Pattern(self.pattern(&pattern))
            }
        }
    }

    pub fn pattern(&mut self, text: &[u8]) -> Rc<Regex> {
        if let Some(regex) = self.regexes.get(text) {
            return Rc::clone(regex);
        }
        let syntax = Syntax { ignore_case: self.ignore_case, ..syntax() };
        match Regex::new(text, syntax) {
            Ok(regex) => {
                let regex = Rc::new(regex);
                self.regexes.insert(text.to_vec(), Rc::clone(&regex));
                regex
            }
            Err(message) => self.fatal(&format!("regular expression compile failed ({message})\n{}", show(text))),
        }
    }

    pub fn place(&mut self, place: &'p Place) -> Value {
        match place {
            Place::Var(Var::Global(index)) => match &self.globals[*index] {
                Cell::Value(value) => value.clone(),
                Cell::Array(_) => self.fatal("attempt to use an array in a scalar context"),
            },
            Place::Var(Var::Local(index)) => match &self.stack[self.base + index] {
                Cell::Value(value) => value.clone(),
                Cell::Array(_) => self.fatal("attempt to use an array in a scalar context"),
            },
            Place::Var(Var::Special(special)) => self.special(*special),
            Place::Field(index) => {
                let index = self.field_number(index);
                self.field(index)
            }
            Place::Element(..) | Place::Deep(..) => {
                let Some((array, key)) = self.element(place) else { return Value::Uninit };
                let value = array.borrow_mut().entry(&key).clone();
                if matches!(value, Value::Array(_)) {
                    self.fatal("attempt to use an array in a scalar context");
                }
                value
            }
        }
    }

    pub(super) fn field_number(&mut self, index: &'p Expr) -> usize {
        let number = self.number(index);
        if number < 0.0 {
            self.fatal(&format!("attempt to access field {number}"));
        }
        number as usize
    }

    pub fn field(&mut self, index: usize) -> Value {
        if index == 0 {
            return Value::Input(Text::from_slice(self.record.text(&self.ofs, &self.convfmt)));
        }
        self.record.field(index)
    }

    pub fn assign(&mut self, place: &'p Place, value: Value) {
        match place {
            Place::Var(var) => self.assign_var(*var, value),
            Place::Field(index) => {
                let index = self.field_number(index);
                self.assign_field(index, value);
            }
            Place::Element(..) | Place::Deep(..) => {
                let Some((array, key)) = self.element(place) else { return };
                let old = std::mem::replace(array.borrow_mut().entry(&key), value);
                if matches!(old, Value::Array(_)) {
                    self.fatal("attempt to use an array in a scalar context");
                }
            }
        }
    }

    fn assign_field(&mut self, index: usize, value: Value) {
        if index == 0 {
            let text = value.text(&self.convfmt);
            self.set_record(&text);
        } else {
            if index > 10_000_000 {
                self.fatal("field index too large");
            }
            self.record.set_field(index, value);
        }
    }

    pub fn assign_var(&mut self, var: Var, value: Value) {
        let cell = match var {
            Var::Global(index) => &mut self.globals[index],
            Var::Local(index) => &mut self.stack[self.base + index],
            Var::Special(special) => return self.set_special(special, value),
        };
        match cell {
            Cell::Value(old) => *old = value,
            Cell::Array(_) => self.fatal("attempt to use an array in a scalar context"),
        }
    }

    /// Changes a number in place: the old value and the new one.
    fn update(&mut self, place: &'p Place, change: impl FnOnce(f64) -> f64) -> (f64, f64) {
        if let Some((array, key)) = self.element(place) {
            let mut array = array.borrow_mut();
            let slot = array.entry(&key);
            if matches!(slot, Value::Array(_)) {
                drop(array);
                self.fatal("attempt to use an array in a scalar context");
            }
            let old = slot.number();
            let new = change(old);
            *slot = Value::Num(new);
            return (old, new);
        }
        if let Place::Field(index) = place {
            let index = self.field_number(index);
            let old = self.field(index).number();
            let new = change(old);
            self.assign_field(index, Value::Num(new));
            return (old, new);
        }
        let old = match place {
            Place::Var(Var::Global(index)) => match &self.globals[*index] {
                Cell::Value(Value::Num(number)) => *number,
                _ => self.place(place).number(),
            },
            _ => self.place(place).number(),
        };
        let new = change(old);
        self.assign(place, Value::Num(new));
        (old, new)
    }
}
