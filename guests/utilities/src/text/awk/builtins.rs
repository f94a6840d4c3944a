//! The built-in functions that need no patterns.

use std::cmp::Ordering;

use super::ast::{Builtin, Expr, Place, Var};
use super::interp::{Cell, Interp};
use super::streams;
use super::value::{ArrayRef, Text, Value, looks_numeric, to_number};
use crate::{date, utf8};

impl<'p> Interp<'p> {
    pub fn builtin(&mut self, function: Builtin, args: &'p [Expr]) -> Value {
        match function {
            Builtin::Length => self.length(args.first()),
            Builtin::Substr => self.substr(args),
            Builtin::Index => {
                let (text, wanted) = (self.text(&args[0]), self.text(&args[1]));
                let at = memchr::memmem::find(&text, &wanted);
                Value::Num(at.map_or(0.0, |at| 1.0 + if self.utf8 { utf8::count(&text[..at]) } else { at } as f64))
            }
            Builtin::Split => self.split(args, false),
            Builtin::Patsplit => self.split(args, true),
            Builtin::Sub => self.sub(args, false),
            Builtin::Gsub => self.sub(args, true),
            Builtin::Gensub => self.gensub(args),
            Builtin::Match => self.match_function(args),
            Builtin::Sprintf => {
                let args = match args {
                    [Expr::List(items)] => items,
                    _ => args,
                };
                Value::Str(Text::new(self.sprintf(args)))
            }
            Builtin::Tolower | Builtin::Toupper => {
                let text = self.text(&args[0]);
                Value::Str(Text::new(change_case(&text, function == Builtin::Toupper)))
            }
            Builtin::System => {
                let command = self.text(&args[0]);
                self.streams.flush();
                Value::Num(streams::system(&command))
            }
            Builtin::Close => {
                let name = self.text(&args[0]);
                let end = args.get(1).map(|end| self.text(end));
                Value::Num(match end.as_deref() {
                    Some(b"to") => self.streams.close_input(&name),
                    _ => self.streams.close(&name),
                })
            }
            Builtin::Fflush => {
                let name = args.first().map(|name| self.text(name));
                match name {
                    Some(name) if !name.is_empty() => Value::Num(if self.streams.flush_one(&name) { 0.0 } else { -1.0 }),
                    _ => {
                        self.streams.flush();
                        Value::Num(0.0)
                    }
                }
            }
            Builtin::Strtonum => {
                let value = self.eval(&args[0]);
                match value {
                    Value::Str(text) | Value::Input(text) => Value::Num(strtonum(&text)),
                    other => Value::Num(other.number()),
                }
            }
            Builtin::Strftime => self.strftime(args),
            Builtin::Systime => Value::Num(now() as f64),
            Builtin::Mktime => {
                let text = self.text(&args[0]);
                Value::Num(mktime(&text))
            }
            Builtin::Asort | Builtin::Asorti => self.asort(args, function == Builtin::Asorti),
            Builtin::Typeof => Value::Str(Text::from_slice(self.type_of(&args[0]).as_bytes())),
            Builtin::Isarray => Value::Num(f64::from(u8::from(self.array_argument(&args[0]).is_some()))),
            Builtin::Rand => {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                Value::Num((self.random >> 11) as f64 / (1u64 << 53) as f64)
            }
            Builtin::Srand => {
                let seed = match args.first() {
                    Some(seed) => self.number(seed),
                    None => now() as f64,
                };
                let old = std::mem::replace(&mut self.seed.0, seed);
                self.random = (seed.to_bits() ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1;
                for _ in 0..8 {
                    self.random ^= self.random << 13;
                    self.random ^= self.random >> 7;
                    self.random ^= self.random << 17;
                }
                Value::Num(old)
            }
            _ => self.arithmetic_function(function, args),
        }
    }

    fn arithmetic_function(&mut self, function: Builtin, args: &'p [Expr]) -> Value {
        let numbers: Vec<f64> = args.iter().map(|arg| self.number(arg)).collect();
        let first = numbers[0];
        let second = numbers.get(1).copied().unwrap_or(0.0);
        let fold = |op: fn(u64, u64) -> u64| numbers[1..].iter().fold(first as u64, |all, &next| op(all, next as u64)) as f64;
        Value::Num(match function {
            Builtin::Sin => first.sin(),
            Builtin::Cos => first.cos(),
            Builtin::Exp => first.exp(),
            Builtin::Log => first.ln(),
            Builtin::Sqrt => first.sqrt(),
            Builtin::Int => first.trunc(),
            Builtin::Atan2 => first.atan2(second),
            Builtin::And => fold(|a, b| a & b),
            Builtin::Or => fold(|a, b| a | b),
            Builtin::Xor => fold(|a, b| a ^ b),
            Builtin::Lshift => (first as u64).checked_shl(second as u32).unwrap_or(0) as f64,
            Builtin::Rshift => (first as u64).checked_shr(second as u32).unwrap_or(0) as f64,
            // Doubles hold 53 bits, so that is how wide the complement is.
            Builtin::Compl => (!(first as u64) & ((1 << 53) - 1)) as f64,
            _ => 0.0,
        })
    }

    fn array_argument(&mut self, arg: &'p Expr) -> Option<ArrayRef> {
        let var = match arg {
            Expr::Place(Place::Var(var)) => var,
            Expr::Place(place @ (Place::Element(..) | Place::Deep(..))) => return self.element_array(place, false),
            _ => return None,
        };
        let cell = match var {
            Var::Global(index) => &self.globals[*index],
            Var::Local(index) => &self.stack[self.base + index],
            Var::Special(_) => return None,
        };
        match cell {
            Cell::Array(array) => Some(ArrayRef::clone(array)),
            Cell::Value(_) => None,
        }
    }

    fn length(&mut self, arg: Option<&'p Expr>) -> Value {
        let text = match arg {
            // A subscript is evaluated once.
            Some(Expr::Place(place @ (Place::Element(..) | Place::Deep(..)))) => match self.element_cell(place, false) {
                Cell::Array(array) => return Value::Num(array.borrow().len() as f64),
                Cell::Value(value) => value.text(&self.convfmt),
            },
            Some(arg @ Expr::Place(Place::Var(_))) => match self.array_argument(arg) {
                Some(array) => return Value::Num(array.borrow().len() as f64),
                None => self.text(arg),
            },
            Some(arg) => self.text(arg),
            None => Text::from_slice(self.record.text(&self.ofs, &self.convfmt)),
        };
        Value::Num(if self.utf8 { utf8::count(&text) } else { text.len() } as f64)
    }

    fn type_of(&mut self, arg: &'p Expr) -> &'static str {
        let is_variable = matches!(arg, Expr::Place(Place::Var(_)));
        if is_variable && self.array_argument(arg).is_some() {
            return "array";
        }
        let value = match arg {
            Expr::Place(place @ (Place::Element(..) | Place::Deep(..))) => match self.element_cell(place, false) {
                Cell::Array(_) => return "array",
                Cell::Value(value) => value,
            },
            Expr::Place(Place::Field(index)) => {
                let index = self.field_number(index);
                let is_assigned = if index == 0 { self.nr > 0.0 || self.record.nf() > 0 } else { index <= self.record.nf() };
                if is_assigned { self.field(index) } else { Value::Uninit }
            }
            _ => self.eval(arg),
        };
        match value {
            Value::Uninit => match arg {
                Expr::Place(Place::Var(_) | Place::Element(..) | Place::Deep(..)) => "untyped",
                _ => "unassigned",
            },
            Value::Array(_) => "array",
            Value::Num(_) => "number",
            Value::Str(_) => "string",
            Value::Input(text) => {
                if looks_numeric(&text).is_some() {
                    "strnum"
                } else {
                    "string"
                }
            }
        }
    }

    fn substr(&mut self, args: &'p [Expr]) -> Value {
        let text = self.text(&args[0]);
        let start = truncate(self.number(&args[1])).max(1.0);
        let length = match args.get(2) {
            Some(length) => truncate(self.number(length)),
            None => f64::INFINITY,
        };
        let ascii = !self.utf8 || text.is_ascii();
        let total = if ascii { text.len() } else { utf8::count(&text) } as f64;
        let from = start;
        let to = (start + length).min(total + 1.0);
        if from >= to {
            return Value::Str(Text::new(Vec::new()));
        }
        let (from, to) = (from as usize - 1, to as usize - 1);
        let slice = if ascii {
            &text[from..to]
        } else {
            let first = utf8::offset(&text, from);
            let last = first + utf8::offset(&text[first..], to - from);
            &text[first..last]
        };
        Value::Str(Text::from_slice(slice))
    }

    fn strftime(&mut self, args: &'p [Expr]) -> Value {
        let format = match args.first() {
            Some(format) => self.text(format),
            None => Text::from_slice(b"%a %b %e %H:%M:%S %Z %Y"),
        };
        let seconds = match args.get(1) {
            Some(seconds) => self.number(seconds) as i64,
            None => now(),
        };
        Value::Str(Text::new(date::format(&format, i128::from(seconds) * date::SECOND)))
    }

    fn asort(&mut self, args: &'p [Expr], indices: bool) -> Value {
        let Some(source) = self.array_argument(&args[0]) else { self.fatal("asort: first argument is not an array") };
        let target = match args.get(1) {
            Some(Expr::Place(Place::Var(var))) => self.array(*var),
            Some(Expr::Place(place)) => self.element_array(place, true).unwrap_or_else(|| ArrayRef::clone(&source)),
            _ => ArrayRef::clone(&source),
        };
        let how = match args.get(2) {
            Some(how) => self.text(how),
            None => Text::from_slice(if indices { b"@ind_str_asc" } else { b"@val_type_asc" }),
        };
        let pairs = source.borrow().pairs();
        let sorted = self.sorted(pairs, &how);
        let mut target = target.borrow_mut();
        target.clear();
        let count = sorted.len();
        for (index, (key, value)) in sorted.into_iter().enumerate() {
            let value = if indices { Value::Str(key) } else { value };
            target.insert(Text::new((index + 1).to_string().into_bytes()), value);
        }
        Value::Num(count as f64)
    }

    /// Sorts as `PROCINFO["sorted_in"]` names it, or by a function of the program.
    pub fn sorted(&mut self, mut pairs: Vec<(Text, Value)>, how: &[u8]) -> Vec<(Text, Value)> {
        let name = String::from_utf8_lossy(how).into_owned();
        if let Some(function) = self.program.functions.iter().position(|function| function.name == name) {
            let mut sorted: Vec<(Text, Value)> = Vec::with_capacity(pairs.len());
            for pair in pairs {
                let (mut low, mut high) = (0, sorted.len());
                while low < high {
                    let middle = (low + high) / 2;
                    if self.call_compare(function, &pair, &sorted[middle]) < 0.0 { high = middle } else { low = middle + 1 }
                }
                sorted.insert(low, pair);
            }
            return sorted;
        }
        let by_index = name.starts_with("@ind");
        let numeric = name.contains("_num_");
        let string = name.contains("_str_");
        pairs.sort_by(|left, right| {
            let order = match (by_index, numeric) {
                (true, true) => compare_numbers(to_number(&left.0), to_number(&right.0)).then_with(|| left.0.cmp(&right.0)),
                (true, false) => left.0.cmp(&right.0),
                (false, true) => compare_numbers(left.1.number(), right.1.number()),
                (false, false) if string => left.1.text(b"%.6g").cmp(&right.1.text(b"%.6g")),
                (false, false) => match (left.1.as_numeric(), right.1.as_numeric()) {
                    (Some(left), Some(right)) => compare_numbers(left, right),
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (None, None) => left.1.text(b"%.6g").cmp(&right.1.text(b"%.6g")),
                },
            };
            let order = if by_index { order } else { order.then_with(|| left.0.cmp(&right.0)) };
            if name.ends_with("_desc") { order.reverse() } else { order }
        });
        pairs
    }

    fn call_compare(&mut self, function: usize, left: &(Text, Value), right: &(Text, Value)) -> f64 {
        let program = self.program;
        let function = &program.functions[function];
        let top = self.stack.len();
        let old_base = self.base;
        let values = [Value::Str(left.0.clone()), left.1.clone(), Value::Str(right.0.clone()), right.1.clone()];
        self.stack.extend(values.into_iter().map(Cell::Value).take(function.params.max(4)));
        for _ in 4..function.params {
            self.stack.push(Cell::Value(Value::Uninit));
        }
        self.base = top;
        self.result = Value::Uninit;
        self.body(&function.body);
        self.base = old_base;
        self.stack.truncate(top);
        std::mem::take(&mut self.result).number()
    }
}

fn compare_numbers(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

fn truncate(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number.trunc() }
}

fn now() -> i64 {
    (sys::now_ns() / 1_000_000_000) as i64
}

fn change_case(text: &[u8], upper: bool) -> Vec<u8> {
    if text.is_ascii() || !common::locale::utf8() {
        return if upper { text.to_ascii_uppercase() } else { text.to_ascii_lowercase() };
    }
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        let changed = if upper { chunk.valid().to_uppercase() } else { chunk.valid().to_lowercase() };
        out.extend_from_slice(changed.as_bytes());
        out.extend_from_slice(chunk.invalid());
    }
    out
}

fn strtonum(text: &[u8]) -> f64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let radix = match digits {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', rest @ ..] if !rest.is_empty() && rest.iter().all(|byte| (b'0'..=b'7').contains(byte)) => 8,
        _ => return to_number(text),
    };
    let digits = if radix == 16 { &digits[2..] } else { digits };
    let mut value = 0.0;
    for &byte in digits {
        let Some(digit) = char::from(byte).to_digit(radix) else { break };
        value = value * f64::from(radix) + f64::from(digit);
    }
    if negative { -value } else { value }
}

fn mktime(text: &[u8]) -> f64 {
    let parts: Vec<i64> = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map_while(|word| std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()))
        .collect();
    let [year, month, day, hour, minute, second, ..] = parts.as_slice() else { return -1.0 };
    (sys::calendar::to_days(*year, *month, *day) * 86_400 + hour * 3600 + minute * 60 + second) as f64
}
