//! The machine of dc: a stack, registers that are stacks with arrays, and the strings that are being executed.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use num_bigint::BigInt;

use crate::command;
use crate::io::{Input, Out};
use crate::lines::Lines;
use crate::math::bc::number::Number;

/// A value on the stack.
#[derive(Clone, Debug)]
enum Item {
    Number(Number),
    Text(Rc<[u8]>),
}

/// One level of a register.
#[derive(Clone, Debug, Default)]
struct Level {
    value: Option<Item>,
    array: BTreeMap<i64, Item>,
}

/// A string that is being executed. `levels` counts the calls in tail position that it stands for.
struct Frame {
    text: Rc<[u8]>,
    at: usize,
    levels: usize,
}

/// A message for a command that does nothing, or the end of the run.
enum Stop {
    Error(String),
    Quit,
}

type Step<T> = Result<T, Stop>;

fn error<T>(text: &str) -> Step<T> {
    Err(Stop::Error(text.to_string()))
}

pub(super) struct Machine {
    out: Out,
    pub(super) input: Option<Lines<Input>>,
    stack: Vec<Item>,
    registers: HashMap<u8, Vec<Level>>,
    frames: Vec<Frame>,
    scale: usize,
    ibase: u32,
    obase: u32,
    column: usize,
    line_length: usize,
}

/// Returns whether a string is still open at the end of `text`.
pub(super) fn open_brackets(text: &[u8]) -> bool {
    let mut depth = 0usize;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b'#' if depth == 0 => {
                bytes.by_ref().find(|byte| **byte == b'\n');
            }
            _ => {}
        }
    }
    depth > 0
}

impl Machine {
    pub fn new(out: Out) -> Self {
        let line_length = crate::io::env("DC_LINE_LENGTH").and_then(|text| common::number::parse(&text)).unwrap_or(70);
        Self {
            out,
            input: None,
            stack: Vec::new(),
            registers: HashMap::new(),
            frames: Vec::new(),
            scale: 0,
            ibase: 10,
            obase: 10,
            column: 0,
            line_length,
        }
    }

    /// Writes what is waiting; the status of a run that came to its end.
    pub fn finish(&mut self) -> i32 {
        self.out.flush();
        0
    }

    pub fn complain(&mut self, message: &str) {
        self.out.flush();
        warn!("dc: {message}");
    }

    /// Returns the next line of standard input, with its end.
    pub fn input_line(&mut self) -> Option<Vec<u8>> {
        self.out.flush();
        match self.input.get_or_insert_with(|| Lines::new(Input::Stdin, b'\n')).next_line().map(|line| line.map(<[u8]>::to_vec)) {
            Ok(line) => line,
            Err(error) => {
                warn!("dc: stdin: {}", sys::message(&error));
                crate::io::exit(1)
            }
        }
    }

    /// Executes a program; whether the next one may follow.
    pub fn run(&mut self, text: &[u8]) -> bool {
        self.frames.clear();
        self.frames.push(Frame { text: text.into(), at: 0, levels: 0 });
        while let Some(frame) = self.frames.last_mut() {
            let Some(&command) = frame.text.get(frame.at) else {
                self.frames.pop();
                continue;
            };
            frame.at += 1;
            match self.command(command) {
                Ok(()) => {}
                Err(Stop::Error(message)) => self.complain(&message),
                Err(Stop::Quit) => return false,
            }
        }
        true
    }

    fn next(&mut self) -> Option<u8> {
        let frame = self.frames.last_mut()?;
        let byte = frame.text.get(frame.at).copied()?;
        frame.at += 1;
        Some(byte)
    }

    fn register(&mut self) -> Step<u8> {
        match self.next() {
            Some(name) => Ok(name),
            None => error("unexpected EOS"),
        }
    }

    fn push(&mut self, number: Number) {
        self.stack.push(Item::Number(number));
    }

    fn pop(&mut self) -> Step<Item> {
        self.stack.pop().map_or_else(|| error("stack empty"), Ok)
    }

    fn top(&self) -> Step<&Item> {
        self.stack.last().map_or_else(|| error("stack empty"), Ok)
    }

    /// Returns the two topmost numbers, still on the stack: a command that fails leaves them.
    fn two(&self) -> Step<(Number, Number)> {
        match self.stack.as_slice() {
            [.., Item::Number(left), Item::Number(right)] => Ok((left.clone(), right.clone())),
            [.., _, _] => error("non-numeric value"),
            _ => error("stack empty"),
        }
    }

    /// Replaces the topmost `count` items by numbers.
    fn replace(&mut self, count: usize, numbers: impl IntoIterator<Item = Number>) {
        self.stack.truncate(self.stack.len() - count);
        self.stack.extend(numbers.into_iter().map(Item::Number));
    }

    fn pop_number(&mut self) -> Step<Number> {
        match self.pop()? {
            Item::Number(number) => Ok(number),
            Item::Text(_) => error("non-numeric value"),
        }
    }

    fn pop_count(&mut self, message: &str) -> Step<i64> {
        match self.pop()? {
            Item::Number(number) => number.to_i64().map_or_else(|| error(message), Ok),
            Item::Text(_) => error(message),
        }
    }

    fn command(&mut self, command: u8) -> Step<()> {
        match command {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {}
            b'0'..=b'9' | b'A'..=b'F' | b'.' | b'_' => self.number(command),
            b'+' | b'-' | b'*' | b'/' | b'%' | b'~' | b'^' => self.arithmetic(command)?,
            b'|' => self.power_modulo()?,
            b'v' => {
                let number = self.pop_number()?;
                match number.sqrt(self.scale) {
                    Some(root) => self.push(root),
                    None => return error("square root of negative number"),
                }
            }
            b'p' | b'n' | b'P' | b'f' => self.print(command)?,
            b'c' => self.stack.clear(),
            b'd' => {
                let top = self.top()?.clone();
                self.stack.push(top);
            }
            b'r' => {
                let count = self.stack.len();
                if count >= 2 {
                    self.stack.swap(count - 1, count - 2);
                }
            }
            b'R' => self.rotate()?,
            b's' | b'l' | b'S' | b'L' | b':' | b';' => self.store_or_load(command)?,
            b'i' | b'o' | b'k' => self.parameter(command)?,
            b'I' => self.push(Number::integer(i64::from(self.ibase))),
            b'O' => self.push(Number::integer(i64::from(self.obase))),
            b'K' => self.push(Number::integer(self.scale as i64)),
            b'[' => self.string(),
            b'a' => {
                let text: Rc<[u8]> = match self.pop()? {
                    Item::Number(number) => {
                        [number.rescaled(0).digits.magnitude().to_bytes_le().first().copied().unwrap_or(0)].into()
                    }
                    Item::Text(text) => text.iter().take(1).copied().collect(),
                };
                self.stack.push(Item::Text(text));
            }
            b'x' => {
                let item = self.pop()?;
                self.execute(item);
            }
            b'<' | b'>' | b'=' => self.compare(command, true)?,
            b'!' => self.not_or_system()?,
            b'?' => {
                let line = self.input_line().unwrap_or_default();
                self.execute(Item::Text(line.into()));
            }
            b'q' => return if self.unwind(2) { Ok(()) } else { Err(Stop::Quit) },
            b'Q' => {
                let count = self.pop_count("Q command requires a number >= 1")?;
                let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
                    return error("Q command requires a number >= 1");
                };
                if !self.unwind(count) {
                    return error("Q command argument exceeded string execution depth");
                }
            }
            b'Z' => {
                let length = match self.pop()? {
                    Item::Number(number) => number.digits.magnitude().to_string().len(),
                    Item::Text(text) => text.len(),
                };
                self.push(Number::integer(length as i64));
            }
            b'X' => {
                let scale = match self.pop()? {
                    Item::Number(number) => number.scale,
                    Item::Text(_) => 0,
                };
                self.push(Number::integer(scale as i64));
            }
            b'z' => self.push(Number::integer(self.stack.len() as i64)),
            b'#' => while self.next().is_some_and(|byte| byte != b'\n') {},
            other if other.is_ascii_graphic() => {
                return Err(Stop::Error(format!("'{}' (0{other:o}) unimplemented", char::from(other))));
            }
            other => return Err(Stop::Error(format!("0{other:o} unimplemented"))),
        }
        Ok(())
    }

    /// Reads a number that begins with `first`. Digits beyond the base count for what they are.
    fn number(&mut self, first: u8) {
        let negative = first == b'_';
        let (mut digits, mut places, mut in_fraction) = (BigInt::default(), 0u32, false);
        let mut fraction = BigInt::default();
        let mut byte = if negative { self.next() } else { Some(first) };
        while let Some(digit) = byte {
            match digit {
                b'0'..=b'9' | b'A'..=b'F' => {
                    let value = char::from(digit).to_digit(16).unwrap_or(0);
                    if in_fraction {
                        fraction = fraction * self.ibase + value;
                        places += 1;
                    } else {
                        digits = digits * self.ibase + value;
                    }
                }
                b'.' if !in_fraction => in_fraction = true,
                _ => {
                    if let Some(frame) = self.frames.last_mut() {
                        frame.at -= 1;
                    }
                    break;
                }
            }
            byte = self.next();
        }
        let divisor = Number { digits: BigInt::from(self.ibase).pow(places), scale: 0 };
        let part = Number { digits: fraction, scale: 0 }.div(&divisor, places as usize).unwrap_or_default();
        let number = Number { digits, scale: 0 }.add(&part);
        self.push(if negative { number.neg() } else { number });
    }

    fn arithmetic(&mut self, command: u8) -> Step<()> {
        let (left, right) = self.two()?;
        let scale = self.scale;
        let zero = |text: &str| Stop::Error(text.to_string());
        let result = match command {
            b'+' => left.add(&right),
            b'-' => left.sub(&right),
            b'*' => left.mul(&right, scale),
            b'/' => left.div(&right, scale).ok_or_else(|| zero("divide by zero"))?,
            b'%' => left.rem(&right, scale).ok_or_else(|| zero("remainder by zero"))?,
            b'~' => {
                let quotient = left.div(&right, scale).ok_or_else(|| zero("divide by zero"))?;
                let rest = left.rem(&right, scale).unwrap_or_default();
                self.replace(2, [quotient, rest]);
                return Ok(());
            }
            _ => {
                if right.scale > 0 && !right.sub(&right.rescaled(0)).is_zero() {
                    self.out.flush();
                    warn!("Runtime warning: non-zero scale in exponent");
                }
                let Some(exponent) = right.to_i64() else { return error("exponent too large in raise") };
                left.pow(exponent, scale).ok_or_else(|| zero("divide by zero"))?
            }
        };
        self.replace(2, [result]);
        Ok(())
    }

    fn power_modulo(&mut self) -> Step<()> {
        let [.., base, exponent, modulus] = self.stack.as_slice() else { return error("stack empty") };
        let (Item::Number(base), Item::Number(exponent), Item::Number(modulus)) = (base, exponent, modulus) else {
            return error("non-numeric value");
        };
        if modulus.is_zero() {
            return error("remainder by zero");
        }
        if exponent.is_negative() {
            return Ok(());
        }
        let (base, modulus) = (base.rescaled(0).digits, modulus.rescaled(0).digits);
        // GNU starts from 1 and does not reduce it when there is nothing to multiply.
        let result = match exponent.rescaled(0).is_zero() {
            true => 1u32.into(),
            false => base.magnitude().modpow(exponent.rescaled(0).digits.magnitude(), modulus.magnitude()),
        };
        let odd = exponent.rescaled(0).digits.bit(0);
        let sign = if base.sign() == num_bigint::Sign::Minus && odd { -1 } else { 1 };
        self.replace(3, [Number { digits: BigInt::from(result) * sign, scale: 0 }]);
        Ok(())
    }

    fn print(&mut self, command: u8) -> Step<()> {
        match command {
            b'p' => {
                let top = self.top()?.clone();
                self.show(&top);
                self.out.byte(b'\n');
                self.column = 0;
            }
            b'n' => {
                let top = self.pop()?;
                self.show(&top);
            }
            b'P' => match self.pop()? {
                Item::Number(number) => {
                    let bytes = number.rescaled(0).digits.magnitude().to_bytes_be();
                    self.out.put(&bytes);
                }
                Item::Text(text) => self.out.put(&text),
            },
            _ => {
                for item in self.stack.clone().iter().rev() {
                    self.show(item);
                    self.out.byte(b'\n');
                    self.column = 0;
                }
            }
        }
        Ok(())
    }

    /// Writes an item; numbers too long for a line are broken with a backslash.
    fn show(&mut self, item: &Item) {
        let number = match item {
            Item::Text(text) => return self.out.put(text),
            Item::Number(number) => number.text(self.obase),
        };
        self.column = 0;
        for byte in number.bytes() {
            if self.line_length > 0 && self.column + 1 >= self.line_length {
                self.out.put(b"\\\n");
                self.column = 0;
            }
            self.column += 1;
            self.out.byte(byte);
        }
    }

    fn rotate(&mut self) -> Step<()> {
        let count = self.pop_number()?.to_i64().unwrap_or(0);
        let length = self.stack.len();
        let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(length);
        let part = &mut self.stack[length - size..];
        if size > 1 {
            if count > 0 {
                part.rotate_left(1);
            } else {
                part.rotate_right(1);
            }
        }
        Ok(())
    }

    fn store_or_load(&mut self, command: u8) -> Step<()> {
        let name = self.register()?;
        match command {
            b's' => {
                let item = self.pop()?;
                let levels = self.registers.entry(name).or_default();
                match levels.last_mut() {
                    Some(level) => level.value = Some(item),
                    None => levels.push(Level { value: Some(item), ..Level::default() }),
                }
            }
            b'S' => {
                let item = self.pop()?;
                let levels = self.registers.entry(name).or_default();
                levels.push(Level { value: Some(item), ..Level::default() });
            }
            b'l' => {
                let value = self.registers.get(&name).and_then(|levels| levels.last()).and_then(|level| level.value.clone());
                self.stack.push(value.unwrap_or_else(|| Item::Number(Number::default())));
            }
            b'L' => match self.registers.get_mut(&name).and_then(Vec::pop).and_then(|level| level.value) {
                Some(value) => self.stack.push(value),
                None => {
                    let shown = char::from(name);
                    return Err(Stop::Error(format!("stack register '{shown}' (0{name:o}) is empty")));
                }
            },
            b':' => {
                if self.stack.len() < 2 {
                    return error("stack empty");
                }
                let index = self.index()?;
                let item = self.pop()?;
                let levels = self.registers.entry(name).or_default();
                if levels.is_empty() {
                    levels.push(Level::default());
                }
                if let Some(level) = levels.last_mut() {
                    level.array.insert(index, item);
                }
            }
            _ => {
                let index = self.index()?;
                let found = self.registers.get(&name).and_then(|levels| levels.last()).and_then(|level| level.array.get(&index));
                self.stack.push(found.cloned().unwrap_or_else(|| Item::Number(Number::default())));
            }
        }
        Ok(())
    }

    fn index(&mut self) -> Step<i64> {
        let message = "array index must be a nonnegative integer";
        let index = self.pop_count(message)?;
        if index < 0 { error(message) } else { Ok(index) }
    }

    fn parameter(&mut self, command: u8) -> Step<()> {
        let message = match command {
            b'i' => "input base must be a number between 2 and 16 (inclusive)",
            b'o' => "output base must be a number greater than 1",
            _ => "scale must be a nonnegative number",
        };
        let value = self.pop_count(message)?;
        match (command, u32::try_from(value)) {
            (b'i', Ok(base @ 2..=16)) => self.ibase = base,
            (b'o', Ok(base @ 2..)) => self.obase = base,
            (b'k', Ok(scale)) => self.scale = scale as usize,
            _ => return error(message),
        }
        Ok(())
    }

    fn string(&mut self) {
        let mut depth = 1;
        let mut text = Vec::new();
        while let Some(byte) = self.next() {
            match byte {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            text.push(byte);
        }
        self.stack.push(Item::Text(text.into()));
    }

    fn execute(&mut self, item: Item) {
        let text = match item {
            Item::Number(number) => return self.push(number),
            Item::Text(text) => text,
        };
        let mut levels = 1;
        // A call at the end of a string replaces it, so that loops written as recursion take no memory.
        if let Some(frame) = self.frames.last()
            && frame.levels > 0
            && frame.text[frame.at..].iter().all(u8::is_ascii_whitespace)
        {
            levels += frame.levels;
            self.frames.pop();
        }
        self.frames.push(Frame { text, at: 0, levels });
    }

    /// Leaves `count` strings; `false` when there are not as many.
    fn unwind(&mut self, count: usize) -> bool {
        let mut left = count;
        while left > 0 {
            match self.frames.last() {
                Some(frame) if frame.levels > 0 => left = left.saturating_sub(frame.levels),
                _ => return false,
            }
            self.frames.pop();
        }
        true
    }

    fn compare(&mut self, command: u8, wanted: bool) -> Step<()> {
        let name = self.register()?;
        let (below, top) = self.two()?;
        self.replace(2, []);
        let order = top.cmp(&below);
        let holds = match command {
            b'<' => order.is_lt(),
            b'>' => order.is_gt(),
            _ => order.is_eq(),
        };
        if holds == wanted {
            let value = self.registers.get(&name).and_then(|levels| levels.last()).and_then(|level| level.value.clone());
            if let Some(value) = value {
                self.execute(value);
            }
        }
        Ok(())
    }

    /// `!<r` and its kin; any other `!` runs the rest of the line as a command.
    fn not_or_system(&mut self) -> Step<()> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        if let Some(operator @ (b'<' | b'>' | b'=')) = frame.text.get(frame.at).copied() {
            frame.at += 1;
            return self.compare(operator, false);
        }
        let rest = &frame.text[frame.at..];
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec();
        frame.at += line.len();
        self.out.flush();
        match command::spawn(&command::shell(&line), Vec::new(), None).and_then(command::wait) {
            Ok(_) => Ok(()),
            Err(cause) => Err(Stop::Error(format!("cannot run a command: {}", sys::message(&cause)))),
        }
    }
}
