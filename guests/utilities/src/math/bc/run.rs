//! Running bc.

use std::collections::HashMap;

use super::math;
use super::number::Number;
use super::parse::{Arg, BY_REFERENCE, Expr, Lexed, Parser, Place, Stmt};
use crate::io::{Input, Out};
use crate::lines::Lines;

#[derive(Clone, Debug)]
struct Function {
    void: bool,
    params: Vec<(String, bool)>,
    locals: Vec<(String, bool)>,
    body: Vec<Stmt>,
}

pub(super) struct Machine {
    pub out: Out,
    input: Option<Lines<Input>>,
    library: bool,
    scale: usize,
    ibase: u32,
    obase: u32,
    last: Number,
    vars: HashMap<String, Number>,
    arrays: HashMap<String, HashMap<i64, Number>>,
    functions: HashMap<String, Function>,
    column: usize,
    line_length: usize,
    depth: usize,
}

enum Flow {
    Normal,
    Break,
    Continue,
    Return(Number),
    Quit,
}

/// A message for a run that cannot go on.
type Run<T> = Result<T, String>;

impl Machine {
    pub fn new(out: Out, library: bool) -> Self {
        let line_length = crate::io::env("BC_LINE_LENGTH").and_then(|text| common::number::parse(&text)).unwrap_or(70);
        Self {
            out,
            input: None,
            library,
            scale: if library { 20 } else { 0 },
            ibase: 10,
            obase: 10,
            last: Number::default(),
            vars: HashMap::new(),
            arrays: HashMap::new(),
            functions: HashMap::new(),
            column: 0,
            line_length,
            depth: 0,
        }
    }

    /// Returns the next line of standard input, with its end.
    fn input_line(&mut self) -> Option<Vec<u8>> {
        self.out.flush();
        match self.input.get_or_insert_with(|| Lines::new(Input::Stdin, b'\n')).next_line().map(|line| line.map(<[u8]>::to_vec)) {
            Ok(line) => line,
            Err(error) => {
                warn!("(standard_in) 1: read error: {}", sys::message(&error));
                crate::io::exit(1)
            }
        }
    }

    /// Runs standard input line by line, as far as each line completes what came before; a status when it ends bc.
    pub fn interact(&mut self) -> Option<i32> {
        let mut pending = Vec::new();
        let mut first = 1;
        while let Some(line) = self.input_line() {
            pending.extend_from_slice(&line);
            if pending.ends_with(b"\\\n") {
                continue;
            }
            match self.text(&pending, "(standard_in)", first, false) {
                Ok(Some(status)) => return Some(status),
                Ok(None) => {
                    first += pending.iter().filter(|byte| **byte == b'\n').count();
                    pending.clear();
                }
                Err(()) => {}
            }
        }
        self.text(&pending, "(standard_in)", first, true).unwrap_or(None)
    }

    /// Runs a whole text; a status when it ends bc.
    pub fn program(&mut self, text: &[u8], name: &str) -> Option<i32> {
        self.text(text, name, 1, true).unwrap_or(None)
    }

    /// Runs a text whose first line has the number `first`; an error when it is not complete and not `last`.
    fn text(&mut self, text: &[u8], name: &str, first: usize, last: bool) -> Result<Option<i32>, ()> {
        let mut parser = match Parser::new(text) {
            Ok(parser) => parser,
            Err(Lexed::Open) if !last => return Err(()),
            Err(cause) => {
                self.out.flush();
                let char = if let Lexed::Illegal(char) = cause { char } else { '"' };
                warn!("{name} {first}: illegal character: {char}");
                return Ok(None);
            }
        };
        while let Some(parsed) = parser.next() {
            match parsed {
                Ok(statements) if Parser::quits(&statements) => return Ok(Some(0)),
                Ok(statements) => {
                    for statement in &statements {
                        match self.statement(statement) {
                            Ok(Flow::Quit) => return Ok(Some(0)),
                            Ok(_) => {}
                            Err(message) => {
                                self.out.flush();
                                warn!("Runtime error (func=(main), adr={}): {message}", 3);
                                break;
                            }
                        }
                    }
                }
                // Nothing of a line runs before all of it was read, so it can be read again with the next.
                Err(()) if parser.wants_more() && !last => return Err(()),
                Err(()) => {
                    self.out.flush();
                    warn!("{name} {}: syntax error", first + parser.line());
                    parser.recover();
                }
            }
        }
        Ok(None)
    }

    /// Writes a number, broken with backslashes where it is longer than a line.
    fn put(&mut self, text: &str) {
        for char in text.chars() {
            if char == '\n' {
                self.column = 0;
            } else {
                self.column += 1;
                if self.line_length > 0 && self.column + 1 == self.line_length {
                    self.out.put(b"\\\n");
                    self.column = 1;
                }
            }
            self.out.put(char.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn block(&mut self, body: &[Stmt]) -> Run<Flow> {
        for statement in body {
            match self.statement(statement)? {
                Flow::Normal => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Normal)
    }

    fn truth(&mut self, expr: &Expr) -> Run<bool> {
        Ok(!self.eval(expr)?.is_zero())
    }

    fn statement(&mut self, statement: &Stmt) -> Run<Flow> {
        match statement {
            Stmt::Expr(expr) => {
                let value = self.eval(expr)?;
                let void = matches!(expr, Expr::Call(name, _) if self.functions.get(name).is_some_and(|function| function.void));
                if !void && !matches!(expr, Expr::Assign(..)) {
                    let text = value.text(self.obase);
                    self.put(&text);
                    self.put("\n");
                    self.last = value;
                }
            }
            Stmt::Text(text) => {
                self.out.put(text.as_bytes());
                self.column = 0;
            }
            Stmt::Print(items) => {
                for item in items {
                    match item {
                        Ok(text) => {
                            let shown = escapes(text);
                            self.out.put(shown.as_bytes());
                        }
                        Err(expr) => {
                            let value = self.eval(expr)?;
                            let text = value.text(self.obase);
                            self.put(&text);
                            self.last = value;
                        }
                    }
                }
                self.column = 0;
            }
            Stmt::If(condition, then, otherwise) => {
                if self.truth(condition)? {
                    return self.statement(then);
                }
                if let Some(otherwise) = otherwise {
                    return self.statement(otherwise);
                }
            }
            Stmt::While(condition, body) => {
                while self.truth(condition)? {
                    match self.statement(body)? {
                        Flow::Normal | Flow::Continue => {}
                        Flow::Break => break,
                        flow => return Ok(flow),
                    }
                }
            }
            Stmt::For(start, condition, step, body) => {
                if let Some(start) = start {
                    self.eval(start)?;
                }
                loop {
                    if let Some(condition) = condition
                        && !self.truth(condition)?
                    {
                        break;
                    }
                    match self.statement(body)? {
                        Flow::Normal | Flow::Continue => {}
                        Flow::Break => break,
                        flow => return Ok(flow),
                    }
                    if let Some(step) = step {
                        self.eval(step)?;
                    }
                }
            }
            Stmt::Block(body) => return self.block(body),
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
            Stmt::Return(value) => {
                let value = match value {
                    Some(value) => self.eval(value)?,
                    None => Number::default(),
                };
                return Ok(Flow::Return(value));
            }
            Stmt::Quit | Stmt::Halt => return Ok(Flow::Quit),
            Stmt::Define(name, void, params, locals, body) => {
                let function = Function { void: *void, params: params.clone(), locals: locals.clone(), body: body.clone() };
                self.functions.insert(name.clone(), function);
            }
        }
        Ok(Flow::Normal)
    }

    fn get(&mut self, place: &Place) -> Run<Number> {
        Ok(match place {
            Place::Var(name) => self.vars.get(name).cloned().unwrap_or_default(),
            Place::Element(name, index) => {
                let index = self.eval(index)?.to_i64().unwrap_or(0);
                self.arrays.get(name).and_then(|array| array.get(&index)).cloned().unwrap_or_default()
            }
            Place::Scale => Number::integer(self.scale as i64),
            Place::Ibase => Number::integer(i64::from(self.ibase)),
            Place::Obase => Number::integer(i64::from(self.obase)),
            Place::Last => self.last.clone(),
        })
    }

    fn set(&mut self, place: &Place, value: Number) -> Run<()> {
        let small = value.to_i64().unwrap_or(i64::MAX);
        match place {
            Place::Var(name) => {
                self.vars.insert(name.clone(), value);
            }
            Place::Element(name, index) => {
                let index = self.eval(index)?.to_i64().unwrap_or(0);
                self.arrays.entry(name.clone()).or_default().insert(index, value);
            }
            Place::Scale => self.scale = usize::try_from(small.clamp(0, i64::from(i32::MAX))).unwrap_or(0),
            Place::Ibase => self.ibase = small.clamp(2, 36) as u32,
            Place::Obase => self.obase = u32::try_from(small.clamp(2, i64::from(i32::MAX))).unwrap_or(10),
            Place::Last => self.last = value,
        }
        Ok(())
    }

    fn binary(&self, op: &str, left: &Number, right: &Number) -> Run<Number> {
        let flag = |truth: bool| Number::integer(i64::from(truth));
        let order = left.cmp(right);
        Ok(match op {
            "+" => left.add(right),
            "-" => left.sub(right),
            "*" => left.mul(right, self.scale),
            "/" => left.div(right, self.scale).ok_or("Divide by zero")?,
            "%" => left.rem(right, self.scale).ok_or("Modulo by zero")?,
            "^" => {
                let exponent = right.to_i64().ok_or("exponent too large in raise")?;
                left.pow(exponent, self.scale).ok_or("Divide by zero")?
            }
            "<" => flag(order.is_lt()),
            "<=" => flag(order.is_le()),
            ">" => flag(order.is_gt()),
            ">=" => flag(order.is_ge()),
            "==" => flag(order.is_eq()),
            _ => flag(order.is_ne()),
        })
    }

    fn eval(&mut self, expr: &Expr) -> Run<Number> {
        Ok(match expr {
            Expr::Number(text) => Number::parse(text, self.ibase),
            Expr::Place(place) => self.get(place)?,
            Expr::Group(inner) => self.eval(inner)?,
            Expr::Neg(inner) => self.eval(inner)?.neg(),
            Expr::Not(inner) => Number::integer(i64::from(!self.truth(inner)?)),
            Expr::Assign(place, op, value) => {
                let mut value = self.eval(value)?;
                if *op != "=" {
                    let old = self.get(place)?;
                    value = self.binary(&op[..1], &old, &value)?;
                }
                self.set(place, value.clone())?;
                value
            }
            Expr::Step(place, up, before) => {
                let old = self.get(place)?;
                let one = Number::integer(1);
                let new = if *up { old.add(&one) } else { old.sub(&one) };
                self.set(place, new.clone())?;
                if *before { new } else { old }
            }
            Expr::Binary("&&", left, right) => Number::integer(i64::from(self.truth(left)? && self.truth(right)?)),
            Expr::Binary("||", left, right) => Number::integer(i64::from(self.truth(left)? || self.truth(right)?)),
            Expr::Binary(op, left, right) => {
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                self.binary(op, &left, &right)?
            }
            Expr::Call(name, args) => self.call(name, args)?,
        })
    }

    fn call(&mut self, name: &str, args: &[Arg]) -> Run<Number> {
        if let Some(function) = self.functions.get(name).cloned() {
            return self.user_call(name, &function, args);
        }
        if name == "length"
            && let [Arg::Array(array)] = args
        {
            return Ok(Number::integer(self.arrays.get(array).map_or(0, |array| array.len() as i64)));
        }
        let mut values = Vec::new();
        for arg in args {
            match arg {
                Arg::Expr(expr) => values.push(self.eval(expr)?),
                Arg::Array(_) => return Err(format!("Function {name} not defined.")),
            }
        }
        match (name, values.as_slice()) {
            ("sqrt", [x]) => x.sqrt(self.scale).ok_or_else(|| "Square root of a negative number".to_string()),
            ("length", [x]) => Ok(Number::integer(x.length() as i64)),
            ("scale", [x]) => Ok(Number::integer(x.scale as i64)),
            ("read", []) => self.read(),
            ("e", [x]) if self.library => Ok(math::exp(x, self.scale)),
            ("l", [x]) if self.library => Ok(math::ln(x, self.scale)),
            ("s", [x]) if self.library => Ok(math::sin(x, self.scale)),
            ("c", [x]) if self.library => Ok(math::cos(x, self.scale)),
            ("a", [x]) if self.library => Ok(math::atan(x, self.scale)),
            ("j", [n, x]) if self.library => Ok(math::bessel(n.to_i64().unwrap_or(0), x, self.scale)),
            _ => Err(format!("Function {name} not defined.")),
        }
    }

    /// Runs `read()`: an expression from the next line of standard input.
    fn read(&mut self) -> Run<Number> {
        let line = self.input_line().unwrap_or_default();
        match Parser::new(&line).ok().and_then(|mut parser| parser.expr().ok()) {
            Some(expr) => self.eval(&expr),
            None => Ok(Number::default()),
        }
    }

    fn user_call(&mut self, name: &str, function: &Function, args: &[Arg]) -> Run<Number> {
        if args.len() != function.params.len() {
            return Err("Parameter number mismatch".to_string());
        }
        if self.depth > 2000 {
            return Err(format!("recursion too deep in {name}"));
        }
        let mut values = Vec::new();
        let mut references = Vec::new();
        let params: Vec<(String, bool)> =
            function.params.iter().map(|(name, array)| (name.trim_start_matches(BY_REFERENCE).to_string(), *array)).collect();
        for (arg, ((declared, _), (param, _))) in args.iter().zip(function.params.iter().zip(&params)) {
            if let Arg::Array(array) = arg
                && declared.starts_with(BY_REFERENCE)
            {
                references.push((param.clone(), array.clone()));
            }
            values.push(match arg {
                Arg::Expr(expr) => Ok(self.eval(expr)?),
                Arg::Array(array) => Err(self.arrays.get(array).cloned().unwrap_or_default()),
            });
        }
        let names: Vec<&(String, bool)> = params.iter().chain(&function.locals).collect();
        let saved: Vec<_> = names.iter().map(|(name, _)| (self.vars.remove(name), self.arrays.remove(name))).collect();
        let mut saved_back = Vec::new();
        for ((name, array), old) in names.iter().zip(saved) {
            // A name is both a variable and an array: only the declared one is local.
            let (var, elements) = old;
            if *array {
                if let Some(var) = &var {
                    self.vars.insert(name.clone(), var.clone());
                }
            } else if let Some(elements) = &elements {
                self.arrays.insert(name.clone(), elements.clone());
            }
            saved_back.push((name.clone(), *array, var, elements));
        }
        for ((name, _), value) in params.iter().zip(values) {
            match value {
                Ok(number) => {
                    self.vars.insert(name.clone(), number);
                }
                Err(array) => {
                    self.arrays.insert(name.clone(), array);
                }
            }
        }
        self.depth += 1;
        let flow = self.block(&function.body);
        self.depth -= 1;
        let changed: Vec<_> = references.into_iter().map(|(param, array)| (array, self.arrays.remove(&param))).collect();
        for (name, array, var, elements) in saved_back {
            if array {
                match elements {
                    Some(elements) => self.arrays.insert(name, elements),
                    None => self.arrays.remove(&name),
                };
            } else {
                match var {
                    Some(var) => self.vars.insert(name, var),
                    None => self.vars.remove(&name),
                };
            }
        }
        for (array, elements) in changed {
            if let Some(elements) = elements {
                self.arrays.insert(array, elements);
            }
        }
        match flow? {
            Flow::Return(value) => Ok(value),
            _ => Ok(Number::default()),
        }
    }
}

/// Returns the text of `print` with its escapes replaced.
fn escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('a') => out.push('\u{7}'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('q') => out.push('"'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('e' | '\\') => out.push('\\'),
            _ => {}
        }
    }
    out
}
