//! Statements and rules.

use super::ast::{ArrayPlace, Case, Expr, Pattern, Redirect, Stmt, Var};
use super::format;
use super::interp::{Cell, Interp, known};
use super::value::{Text, Value};
use crate::io;

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Normal,
    Break,
    Continue,
    Next,
    NextFile,
    Exit,
    Return,
}

impl<'p> Interp<'p> {
    pub fn rules(&mut self) {
        let program = self.program;
        let mut flow = Flow::Normal;
        for body in &program.begin {
            flow = self.block(body);
            if flow == Flow::Exit {
                break;
            }
        }
        let reads = !program.rules.is_empty()
            || !program.end.is_empty()
            || !program.begin_file.is_empty()
            || !program.end_file.is_empty();
        if flow != Flow::Exit && reads {
            flow = self.main_loop();
        }
        let _ = flow;
        self.in_end = true;
        for body in &program.end {
            if self.block(body) == Flow::Exit {
                break;
            }
        }
    }

    fn main_loop(&mut self) -> Flow {
        let program = self.program;
        while self.read_main() {
            self.take_record();
            for (pattern, body) in &program.rules {
                if !self.selects(pattern) {
                    continue;
                }
                match self.block(body) {
                    Flow::Next => break,
                    Flow::NextFile => {
                        self.skip_file = true;
                        break;
                    }
                    Flow::Exit => return Flow::Exit,
                    _ => {}
                }
            }
        }
        if self.exiting { Flow::Exit } else { Flow::Normal }
    }

    pub fn begin_file(&mut self) {
        self.run_file_rules(&self.program.begin_file);
    }

    pub fn end_file(&mut self) {
        self.run_file_rules(&self.program.end_file);
    }

    fn run_file_rules(&mut self, rules: &'p [Vec<Stmt>]) {
        for body in rules {
            match self.block(body) {
                Flow::Exit => self.exiting = true,
                Flow::NextFile => self.skip_file = true,
                _ => {}
            }
        }
    }

    fn selects(&mut self, pattern: &'p Pattern) -> bool {
        match pattern {
            Pattern::Always => true,
            Pattern::When(condition) => self.truth(condition),
            Pattern::Range(first, last, index) => {
                if !self.in_range[*index] {
                    if !self.truth(first) {
                        return false;
                    }
                    self.in_range[*index] = true;
                }
                if self.truth(last) {
                    self.in_range[*index] = false;
                }
                true
            }
        }
    }

    /// Runs a function's body.
    pub fn body(&mut self, body: &'p [Stmt]) {
        match self.block(body) {
            Flow::Exit => {
                // Leaves every frame at once: nothing of the program runs after `exit` but END, which cannot be reached from here.
                self.exit_from_function();
            }
            Flow::Next | Flow::NextFile => self.fatal("`next' used in a function"),
            _ => {}
        }
    }

    fn exit_from_function(&mut self) -> ! {
        if !self.in_end {
            self.in_end = true;
            let program = self.program;
            self.stack.clear();
            self.base = 0;
            for body in &program.end {
                if self.block(body) == Flow::Exit {
                    break;
                }
            }
        }
        self.streams.finish();
        io::exit(self.exit_code)
    }

    pub fn block(&mut self, body: &'p [Stmt]) -> Flow {
        for statement in body {
            let flow = self.statement(statement);
            if flow != Flow::Normal {
                return flow;
            }
        }
        Flow::Normal
    }

    fn statement(&mut self, statement: &'p Stmt) -> Flow {
        match statement {
            Stmt::Expr(expr) => self.discard(expr),
            Stmt::Print(items, target) => self.print(items, target.as_ref()),
            Stmt::Printf(items, target) => {
                let text = self.sprintf(items);
                self.output(&text, target.as_ref());
            }
            Stmt::If(condition, then, otherwise) => {
                if self.truth(condition) {
                    return self.statement(then);
                }
                if let Some(otherwise) = otherwise {
                    return self.statement(otherwise);
                }
            }
            Stmt::While(condition, body) => {
                while self.truth(condition) {
                    match self.statement(body) {
                        Flow::Normal | Flow::Continue => {}
                        Flow::Break => break,
                        flow => return flow,
                    }
                }
            }
            Stmt::DoWhile(body, condition) => loop {
                match self.statement(body) {
                    Flow::Normal | Flow::Continue => {}
                    Flow::Break => break,
                    flow => return flow,
                }
                if !self.truth(condition) {
                    break;
                }
            },
            Stmt::For(start, condition, step, body) => {
                if let Some(start) = start {
                    self.statement(start);
                }
                while condition.as_ref().is_none_or(|condition| self.truth(condition)) {
                    match self.statement(body) {
                        Flow::Normal | Flow::Continue => {}
                        Flow::Break => break,
                        flow => return flow,
                    }
                    if let Some(step) = step {
                        self.statement(step);
                    }
                }
            }
            Stmt::ForIn(key, array, body) => return self.for_in(*key, array, body),
            Stmt::Block(body) => return self.block(body),
            Stmt::Switch(subject, cases) => return self.switch(subject, cases),
            Stmt::Next => return Flow::Next,
            Stmt::NextFile => return Flow::NextFile,
            Stmt::Break => return Flow::Break,
            Stmt::Continue => return Flow::Continue,
            Stmt::Exit(code) => {
                if let Some(code) = code {
                    self.exit_code = self.number(code) as i32 & 0xff;
                }
                return Flow::Exit;
            }
            Stmt::Return(value) => {
                self.result = match value {
                    Some(value) => self.eval(value),
                    None => Value::Uninit,
                };
                return Flow::Return;
            }
            Stmt::Delete(array, subscript) => {
                let mut key = Vec::new();
                match subscript {
                    Some(subscript) => {
                        self.key(subscript, &mut key);
                        self.array_at(array).borrow_mut().remove(&key);
                    }
                    None => self.array_at(array).borrow_mut().clear(),
                }
            }
        }
        Flow::Normal
    }

    fn discard(&mut self, expr: &'p Expr) {
        match expr {
            Expr::Update(..) | Expr::Step(..) | Expr::Getline(..) => {
                self.number(expr);
            }
            Expr::Assign(place, value) => {
                let value = self.eval(value);
                self.assign(place, value);
            }
            _ => {
                self.eval(expr);
            }
        }
    }

    fn print(&mut self, items: &'p [Expr], target: Option<&'p (Redirect, Expr)>) {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        if items.is_empty() {
            line.extend_from_slice(self.record.text(&self.ofs, &self.convfmt));
        }
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                line.extend_from_slice(&self.ofs);
            }
            match item {
                Expr::Str(text) => line.extend_from_slice(text),
                Expr::Place(super::ast::Place::Field(_)) => self.append(item, &mut line),
                _ => self.eval(item).append_to(&mut line, &self.ofmt),
            }
        }
        line.extend_from_slice(&self.ors);
        self.output(&line, target);
        self.line = line;
    }

    pub fn sprintf(&mut self, items: &'p [Expr]) -> Vec<u8> {
        let values: Vec<Value> = items.iter().map(|item| self.eval(item)).collect();
        self.format(&values)
    }

    fn output(&mut self, bytes: &[u8], target: Option<&'p (Redirect, Expr)>) {
        match target {
            None => {
                self.streams.out.put(bytes);
                self.streams.out.line_end();
            }
            Some((redirect, name)) => {
                let name = self.text(name);
                if let Err(error) = self.streams.write(*redirect, &name, bytes) {
                    if error.kind() == std::io::ErrorKind::BrokenPipe {
                        return;
                    }
                    let message = format!("cannot redirect to `{}': {}", io::show(&name), sys::message(&error));
                    self.fatal(&message);
                }
            }
        }
    }

    fn for_in(&mut self, key: Var, array: &'p ArrayPlace, body: &'p Stmt) -> Flow {
        let array = self.array_at(array);
        let keys = match self.sorted_in() {
            Some(how) => {
                let pairs = array.borrow().pairs();
                self.sorted(pairs, &how).into_iter().map(|pair| pair.0).collect()
            }
            None => array.borrow().keys(),
        };
        for text in keys {
            if !array.borrow().contains(&text) {
                continue;
            }
            self.assign_var(key, Value::Input(text));
            match self.statement(body) {
                Flow::Normal | Flow::Continue => {}
                Flow::Break => break,
                flow => return flow,
            }
        }
        Flow::Normal
    }

    fn sorted_in(&self) -> Option<Text> {
        let Cell::Array(info) = &self.globals[known::PROCINFO] else { return None };
        let value = info.borrow().get(b"sorted_in").cloned()?;
        let text = value.text(b"%.6g");
        (!text.is_empty() && &*text != b"@unsorted").then_some(text)
    }

    fn switch(&mut self, subject: &'p Expr, cases: &'p [(Option<Case>, Vec<Stmt>)]) -> Flow {
        let value = self.eval(subject);
        let text = value.text(&self.convfmt);
        let mut start = None;
        for (index, (case, _)) in cases.iter().enumerate() {
            let matched = match case {
                None => false,
                Some(Case::Pattern(regex)) => regex.is_match(&text),
                Some(Case::Value(expr)) => {
                    let wanted = self.eval(expr);
                    self.ordering(&value, &wanted) == Some(std::cmp::Ordering::Equal)
                }
            };
            if matched {
                start = Some(index);
                break;
            }
        }
        let start = start.or_else(|| cases.iter().position(|case| case.0.is_none()));
        let Some(start) = start else { return Flow::Normal };
        for (_, body) in &cases[start..] {
            match self.block(body) {
                Flow::Normal => {}
                Flow::Break => return Flow::Normal,
                flow => return flow,
            }
        }
        Flow::Normal
    }

    /// Formats a template and its values.
    pub fn format(&mut self, values: &[Value]) -> Vec<u8> {
        let Some((template, rest)) = values.split_first() else { return Vec::new() };
        let template = template.text(&self.convfmt);
        match format::format(&template, rest, &self.convfmt) {
            Ok(text) => text,
            Err(message) => self.fatal(&format!(
                "not enough arguments to satisfy format string\n\t`{}'\n\t {}^ ran out for this one",
                io::show(&template),
                message
            )),
        }
    }
}
