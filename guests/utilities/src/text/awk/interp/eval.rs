//! Expressions: evaluated as values, numbers, strings or truth values.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use posix_regex::Regex;

use super::{Cell, Interp, known};
use crate::text::awk::ast::{Arith, Expr, Order, Place, Source, Special, Var};
use crate::text::awk::value::{Text, Value, to_number};

impl<'p> Interp<'p> {
    fn getline(&mut self, place: Option<&'p Place>, source: &'p Source) -> f64 {
        let (command, name) = match source {
            Source::Main => {
                if !self.read_main() {
                    return 0.0;
                }
                match place {
                    None => self.take_record(),
                    Some(place) => {
                        let value = Value::Input(Text::from_slice(&self.spare));
                        self.assign(place, value);
                    }
                }
                return 1.0;
            }
            Source::File(name) => (false, self.text(name)),
            Source::Command(name) => (true, self.text(name)),
            Source::Both(name) => {
                let name = self.text(name);
                if let Err(error) = self.streams.converse(&name) {
                    self.globals[known::ERRNO] = Cell::Value(Value::Str(Text::new(sys::message(&error).into_bytes())));
                    return -1.0;
                }
                (true, name)
            }
        };
        let separator = self.separator.clone();
        let mut line = Vec::new();
        let mut terminator = Vec::new();
        let read = self.streams.reader(command, &name).and_then(|reader| reader.read(&separator, &mut line, &mut terminator));
        match read {
            Ok(true) => {}
            Ok(false) => return 0.0,
            Err(error) => {
                self.globals[known::ERRNO] = Cell::Value(Value::Str(Text::new(sys::message(&error).into_bytes())));
                return -1.0;
            }
        }
        if command {
            self.nr += 1.0;
        }
        match place {
            None => self.set_record(&line),
            Some(place) => self.assign(place, Value::Input(Text::new(line))),
        }
        1.0
    }

    pub fn eval(&mut self, expr: &'p Expr) -> Value {
        match expr {
            Expr::Str(text) => Value::Str(text.clone()),
            Expr::Place(place) => self.place(place),
            Expr::Assign(place, value) => {
                let value = self.eval(value);
                self.assign(place, value.clone());
                value
            }
            Expr::Append(var, items) => self.append_to_var(*var, items),
            Expr::Cond(condition, yes, no) => {
                if self.truth(condition) {
                    self.eval(yes)
                } else {
                    self.eval(no)
                }
            }
            Expr::Concat(items) => {
                let mut out = Vec::new();
                for item in items {
                    self.append(item, &mut out);
                }
                Value::Str(Text::new(out))
            }
            Expr::Group(inner) => self.eval(inner),
            Expr::List(items) => {
                let mut out = Vec::new();
                self.key(items, &mut out);
                Value::Str(Text::new(out))
            }
            Expr::Call(function, args) => self.call(*function, args),
            Expr::Indirect(var, args) => {
                let name = match var {
                    Var::Global(index) => self.globals.get(*index),
                    Var::Local(index) => self.stack.get(self.base + index),
                    Var::Special(_) => None,
                };
                let name = match name {
                    Some(Cell::Value(value)) => String::from_utf8_lossy(&value.text(&self.convfmt)).into_owned(),
                    _ => String::new(),
                };
                match self.program.functions.iter().position(|function| function.name == name) {
                    Some(function) => self.call(function, args),
                    None => self.fatal(&format!("function called indirectly through `{name}' does not exist")),
                }
            }
            Expr::Builtin(function, args) => self.builtin(*function, args),
            _ => Value::Num(self.number(expr)),
        }
    }

    fn append_to_var(&mut self, var: Var, items: &'p [Expr]) -> Value {
        let mut more = Vec::new();
        for item in items {
            self.append(item, &mut more);
        }
        let convfmt = self.convfmt.clone();
        let cell = match var {
            Var::Global(index) => &mut self.globals[index],
            Var::Local(index) => &mut self.stack[self.base + index],
            Var::Special(_) => return Value::Uninit,
        };
        match cell {
            Cell::Value(value) => {
                let mut text = match std::mem::take(value) {
                    Value::Str(text) | Value::Input(text) => text,
                    other => other.text(&convfmt),
                };
                text.append(&more);
                *value = Value::Str(text);
                value.clone()
            }
            Cell::Array(_) => self.fatal("attempt to use an array in a scalar context"),
        }
    }

    pub fn number(&mut self, expr: &'p Expr) -> f64 {
        match expr {
            Expr::Num(number) => *number,
            Expr::Place(Place::Field(index)) => {
                let index = self.field_number(index);
                if index > 0
                    && let Some(raw) = self.record.raw(index)
                {
                    return to_number(raw);
                }
                self.field(index).number()
            }
            Expr::Place(Place::Var(Var::Global(index))) => match &self.globals[*index] {
                Cell::Value(value) => value.number(),
                Cell::Array(_) => self.fatal("attempt to use an array in a scalar context"),
            },
            Expr::Place(Place::Var(Var::Special(special))) => match special {
                Special::Nr => self.nr,
                Special::Fnr => self.fnr,
                Special::Nf => self.record.nf() as f64,
                other => self.special(*other).number(),
            },
            Expr::Regex(_) | Expr::And(..) | Expr::Or(..) | Expr::Not(_) | Expr::Compare(..) | Expr::Match(..) | Expr::In(..) => {
                f64::from(u8::from(self.truth(expr)))
            }
            Expr::Update(op, place, value) => {
                let operand = self.number(value);
                if operand == 0.0 && matches!(op, Arith::Div | Arith::Mod) {
                    self.fatal(if *op == Arith::Div {
                        "division by zero attempted in `/='"
                    } else {
                        "division by zero attempted in `%='"
                    });
                }
                self.update(place, |old| arithmetic(*op, old, operand)).1
            }
            Expr::Step(before, delta, place) => {
                let (old, new) = self.update(place, |old| old + delta);
                if *before { new } else { old }
            }
            Expr::Neg(inner) => -self.number(inner),
            Expr::Plus(inner) | Expr::Group(inner) => self.number(inner),
            Expr::Arith(op, left, right) => {
                let (dividend, divisor) = (self.number(left), self.number(right));
                if divisor == 0.0 && matches!(op, Arith::Div | Arith::Mod) {
                    let message =
                        if *op == Arith::Div { "division by zero attempted" } else { "division by zero attempted in `%'" };
                    // gawk sees it in the program's text.
                    if matches!((&**left, &**right), (Expr::Num(_), Expr::Num(_))) {
                        self.error(message);
                    }
                    self.fatal(message);
                }
                arithmetic(*op, dividend, divisor)
            }
            Expr::Getline(place, source) => self.getline(place.as_deref(), source),
            _ => self.eval(expr).number(),
        }
    }

    /// Appends the string form of an expression.
    pub fn append(&mut self, expr: &'p Expr, out: &mut Vec<u8>) {
        match expr {
            Expr::Str(text) => out.extend_from_slice(text),
            Expr::Place(Place::Field(index)) => {
                let index = self.field_number(index);
                if index == 0 {
                    out.extend_from_slice(self.record.text(&self.ofs, &self.convfmt));
                } else if let Some(raw) = self.record.raw(index) {
                    out.extend_from_slice(raw);
                } else {
                    self.record.field(index).append_to(out, &self.convfmt);
                }
            }
            Expr::Place(Place::Var(Var::Global(index))) => match &self.globals[*index] {
                Cell::Value(value) => value.append_to(out, &self.convfmt),
                Cell::Array(_) => self.fatal("attempt to use an array in a scalar context"),
            },
            _ => self.eval(expr).append_to(out, &self.convfmt),
        }
    }

    pub fn text(&mut self, expr: &'p Expr) -> Text {
        if let Expr::Str(text) = expr {
            return text.clone();
        }
        self.eval(expr).text(&self.convfmt)
    }

    pub fn truth(&mut self, expr: &'p Expr) -> bool {
        match expr {
            Expr::Regex(regex) => {
                let folded = self.ignore_case.then(|| self.pattern(regex.source()));
                folded.as_ref().unwrap_or(regex).is_match(self.record.text(&self.ofs, &self.convfmt))
            }
            Expr::And(left, right) => self.truth(left) && self.truth(right),
            Expr::Or(left, right) => self.truth(left) || self.truth(right),
            Expr::Not(inner) => !self.truth(inner),
            Expr::Group(inner) => self.truth(inner),
            Expr::Compare(order, left, right) => self.compare(*order, left, right),
            Expr::Match(negated, text, pattern) => {
                let regex = self.regex(pattern);
                let matched = match &**text {
                    Expr::Place(Place::Field(index)) => {
                        let index = self.field_number(index);
                        if index == 0 {
                            regex.is_match(self.record.text(&self.ofs, &self.convfmt))
                        } else if let Some(raw) = self.record.raw(index) {
                            regex.is_match(raw)
                        } else {
                            regex.is_match(&self.field(index).text(&self.convfmt))
                        }
                    }
                    other => regex.is_match(&self.text(other)),
                };
                matched != *negated
            }
            Expr::In(array, subscript) => {
                let mut key = Vec::new();
                self.key(subscript, &mut key);
                self.array_at(array).borrow().contains(&key)
            }
            Expr::Num(_) | Expr::Arith(..) | Expr::Neg(_) | Expr::Step(..) | Expr::Update(..) | Expr::Getline(..) => {
                self.number(expr) != 0.0
            }
            _ => self.eval(expr).truth(),
        }
    }

    /// Returns the pattern an expression stands for.
    pub fn regex(&mut self, expr: &'p Expr) -> Rc<Regex> {
        match expr {
            Expr::Regex(regex) if self.ignore_case => self.pattern(regex.source()),
            Expr::Regex(regex) => Rc::clone(regex),
            Expr::Group(inner) if matches!(**inner, Expr::Regex(_)) => self.regex(inner),
            _ => {
                let text = self.text(expr);
                self.pattern(&text)
            }
        }
    }

    fn compare(&mut self, order: Order, left: &'p Expr, right: &'p Expr) -> bool {
        let left = self.eval(left);
        let right = self.eval(right);
        let ordering = self.ordering(&left, &right);
        match order {
            Order::Less => ordering == Some(Ordering::Less),
            Order::LessEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
            Order::Equal => ordering == Some(Ordering::Equal),
            Order::NotEqual => ordering != Some(Ordering::Equal),
            Order::Greater => ordering == Some(Ordering::Greater),
            Order::GreaterEqual => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
        }
    }

    pub fn ordering(&self, left: &Value, right: &Value) -> Option<Ordering> {
        match (left, right) {
            (Value::Num(left), Value::Num(right)) => left.partial_cmp(right),
            (Value::Str(left), Value::Str(right)) => Some(left.cmp(right)),
            _ => match (left.as_numeric(), right.as_numeric()) {
                (Some(left), Some(right)) => left.partial_cmp(&right),
                _ => Some(left.text(&self.convfmt).cmp(&right.text(&self.convfmt))),
            },
        }
    }

    fn call(&mut self, index: usize, args: &'p [Expr]) -> Value {
        let program = self.program;
        let function = &program.functions[index];
        if args.len() > function.params {
            self.fatal(&format!("function `{}' called with more arguments than declared", function.name));
        }
        if self.depth > 10_000 {
            self.fatal("function call nesting too deep");
        }
        let mut cells = Vec::with_capacity(function.params);
        for (position, arg) in args.iter().enumerate() {
            let wants_array = function.arrays[position];
            let cell = match arg {
                Expr::Place(Place::Var(var @ (Var::Global(_) | Var::Local(_)))) => {
                    let cell = match var {
                        Var::Global(index) => &self.globals[*index],
                        Var::Local(index) => &self.stack[self.base + index],
                        Var::Special(_) => &Cell::Value(Value::Uninit),
                    };
                    match cell {
                        Cell::Array(array) => Cell::Array(Rc::clone(array)),
                        Cell::Value(_) if wants_array => Cell::Array(self.array(*var)),
                        Cell::Value(value) => Cell::Value(value.clone()),
                    }
                }
                Expr::Place(place @ (Place::Element(..) | Place::Deep(..))) => self.element_cell(place, wants_array),
                other => Cell::Value(self.eval(other)),
            };
            cells.push(cell);
        }
        for is_array in &function.arrays[args.len()..] {
            cells.push(if *is_array { Cell::Array(Rc::new(RefCell::default())) } else { Cell::Value(Value::Uninit) });
        }
        let old_base = self.base;
        let top = self.stack.len();
        self.stack.append(&mut cells);
        self.base = top;
        self.depth += 1;
        self.result = Value::Uninit;
        self.body(&function.body);
        self.depth -= 1;
        self.base = old_base;
        self.stack.truncate(top);
        std::mem::take(&mut self.result)
    }
}

fn arithmetic(op: Arith, left: f64, right: f64) -> f64 {
    match op {
        Arith::Add => left + right,
        Arith::Sub => left - right,
        Arith::Mul => left * right,
        Arith::Div => left / right,
        Arith::Mod => remainder(left, right),
        Arith::Pow => left.powf(right),
    }
}

/// `left % right`. Whole numbers, which most are, divide as such: as floating-point numbers they take a loop.
fn remainder(left: f64, right: f64) -> f64 {
    /// Up to here every whole number is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_whole = |number: f64| number.abs() <= EXACT && number.trunc() == number;
    if right != 0.0 && is_whole(left) && is_whole(right) {
        return ((left as i64 % right as i64) as f64).copysign(left);
    }
    left % right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remainder_is_the_same_with_and_without_the_short_cut() {
        let numbers = [0.0, -0.0, 1.0, -1.0, 3.0, -4.0, 5.5, 7.0, -7.0, 9e15, 1e300, f64::INFINITY, f64::NAN];
        for (left, right) in numbers.iter().flat_map(|left| numbers.map(|right| (*left, right))) {
            let (short, long) = (remainder(left, right), left % right);
            assert!(short.to_bits() == long.to_bits() || short.is_nan() && long.is_nan(), "{left} % {right}: {short}, {long}");
        }
    }
}
