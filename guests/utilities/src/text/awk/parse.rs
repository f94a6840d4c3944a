//! Rules, functions and statements of an awk program; `expr` reads expressions.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use posix_regex::{Regex, Syntax};

use super::ast::{ArrayPlace, Case, Expr, Function, Pattern, Place, Program, Redirect, Special, Stmt, Var};
use super::lex::{Lexer, Token};

pub(super) type Result<T> = std::result::Result<T, String>;

pub(super) struct Parser {
    tokens: Vec<(Token, usize, usize)>,
    text: Vec<u8>,
    pub(super) at: usize,
    pub(super) program: Program,
    globals: HashMap<String, usize>,
    functions: HashMap<String, usize>,
    /// Parameters of the function being read.
    pub(super) locals: Option<HashMap<String, usize>>,
    pub(super) scope: Option<usize>,
    /// Whether `>` redirects here instead of comparing.
    pub(super) no_gt: bool,
    /// Names that are used as arrays, by function.
    pub(super) arrays: HashSet<(Option<usize>, Var)>,
    /// Plain names passed to functions: where, what, to which, as which argument.
    pub(super) passed: Vec<(Option<usize>, Var, usize, usize)>,
}

/// Returns the syntax of awk's patterns.
pub(super) fn syntax() -> Syntax {
    Syntax { extended: true, awk: true, escapes: true, utf8: common::locale::utf8(), ..Syntax::default() }
}

pub(super) fn parse(text: Vec<u8>) -> Result<Program> {
    let mut lexer = Lexer::new(text.clone());
    let mut tokens = Vec::new();
    loop {
        let token = match lexer.next() {
            Ok(token) => token,
            Err(message) => return Err(diagnose(&text, lexer.line, lexer.start, &message)),
        };
        let end = token == Token::End;
        let line = if token == Token::Newline { lexer.line - 1 } else { lexer.line };
        tokens.push((token, line, lexer.start));
        if end {
            break;
        }
    }
    for (line, warning) in &lexer.warnings {
        warn!("awk: {}:{line}: warning: {warning}", super::source_name());
    }
    let mut parser = Parser {
        tokens,
        text,
        at: 0,
        program: Program::default(),
        globals: HashMap::new(),
        functions: HashMap::new(),
        locals: None,
        scope: None,
        no_gt: false,
        arrays: HashSet::new(),
        passed: Vec::new(),
    };
    for name in ["FILENAME", "ENVIRON", "ARGV", "ARGC", "RSTART", "RLENGTH", "RT", "PROCINFO", "ERRNO"] {
        let var = parser.variable(name);
        if matches!(name, "ENVIRON" | "ARGV" | "PROCINFO") {
            parser.arrays.insert((None, var));
        }
    }
    parser.items()?;
    parser.settle_arrays()?;
    Ok(parser.program)
}

impl Parser {
    pub(super) fn peek(&self) -> &Token {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, count: usize) -> &Token {
        &self.tokens[(self.at + count).min(self.tokens.len() - 1)].0
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    pub(super) fn is(&self, op: &str) -> bool {
        matches!(self.peek(), Token::Op(found) if *found == op)
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        match self.peek() {
            Token::Name(found) | Token::FuncName(found) => found == name,
            _ => false,
        }
    }

    pub(super) fn accept(&mut self, op: &str) -> bool {
        let found = self.is(op);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, op: &str) -> Result<()> {
        if self.accept(op) { Ok(()) } else { self.unexpected() }
    }

    pub(super) fn unexpected<T>(&self) -> Result<T> {
        let (token, line, start) = &self.tokens[self.at.min(self.tokens.len() - 1)];
        let message = if *token == Token::End { "unexpected newline or end of string" } else { "syntax error" };
        Err(diagnose(&self.text, *line, *start, message))
    }

    pub(super) fn skip_newlines(&mut self) {
        while matches!(self.peek(), Token::Newline) {
            self.at += 1;
        }
    }

    fn skip_terminators(&mut self) {
        while matches!(self.peek(), Token::Newline) || self.is(";") {
            self.at += 1;
        }
    }

    pub(super) fn regex(&self, pattern: &[u8]) -> Result<Rc<Regex>> {
        let line = self.tokens[self.at.min(self.tokens.len()) - 1].1;
        Regex::new(pattern, syntax()).map(Rc::new).map_err(|message| {
            format!("{}:{line}: error: {message}: /{}/", super::source_name(), String::from_utf8_lossy(pattern))
        })
    }

    pub(super) fn variable(&mut self, name: &str) -> Var {
        if let Some(index) = self.locals.as_ref().and_then(|locals| locals.get(name)) {
            return Var::Local(*index);
        }
        let Some(special) = Special::named(name) else {
            if let Some(index) = self.globals.get(name) {
                return Var::Global(*index);
            }
            let index = self.program.globals.len();
            self.program.globals.push(name.to_string());
            self.globals.insert(name.to_string(), index);
            return Var::Global(index);
        };
        Var::Special(special)
    }

    /// Notes that a variable is an array.
    pub(super) fn array(&mut self, name: &str) -> Var {
        let var = self.variable(name);
        let scope = if matches!(var, Var::Local(_)) { self.scope } else { None };
        self.arrays.insert((scope, var));
        var
    }

    pub(super) fn function(&mut self, name: &str) -> usize {
        if let Some(index) = self.functions.get(name) {
            return *index;
        }
        let index = self.program.functions.len();
        self.program.functions.push(Function { name: name.to_string(), ..Function::default() });
        self.functions.insert(name.to_string(), index);
        index
    }

    fn items(&mut self) -> Result<()> {
        loop {
            self.skip_terminators();
            if *self.peek() == Token::End {
                return Ok(());
            }
            if self.is_name("function") || self.is_name("func") {
                self.at += 1;
                self.function_definition()?;
                continue;
            }
            let special = ["BEGIN", "END", "BEGINFILE", "ENDFILE"].into_iter().find(|name| self.is_name(name));
            if let Some(name) = special {
                self.at += 1;
                self.skip_newlines();
                let body = self.block()?;
                match name {
                    "BEGIN" => self.program.begin.push(body),
                    "END" => self.program.end.push(body),
                    "BEGINFILE" => self.program.begin_file.push(body),
                    _ => self.program.end_file.push(body),
                }
                continue;
            }
            let pattern = if self.is("{") {
                Pattern::Always
            } else {
                let first = self.expr()?;
                if self.accept(",") {
                    self.skip_newlines();
                    let second = self.expr()?;
                    self.program.ranges += 1;
                    Pattern::Range(first, second, self.program.ranges - 1)
                } else {
                    Pattern::When(first)
                }
            };
            let body = if self.is("{") { self.block()? } else { vec![Stmt::Print(Vec::new(), None)] };
            self.program.rules.push((pattern, body));
            if !matches!(self.peek(), Token::Newline | Token::End) && !self.is(";") && !self.after_block() {
                return self.unexpected();
            }
        }
    }

    fn after_block(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1].0 == Token::Op("}")
    }

    fn function_definition(&mut self) -> Result<()> {
        let name = match self.advance() {
            Token::Name(name) | Token::FuncName(name) => name,
            _ => {
                self.at -= 1;
                return self.unexpected();
            }
        };
        self.expect("(")?;
        let mut locals = HashMap::new();
        while !self.accept(")") {
            self.skip_newlines();
            match self.advance() {
                Token::Name(param) => {
                    let index = locals.len();
                    locals.insert(param, index);
                }
                _ => {
                    self.at -= 1;
                    return self.unexpected();
                }
            }
            if !self.is(")") {
                self.expect(",")?;
            }
            self.skip_newlines();
        }
        let index = self.function(&name);
        if self.program.functions[index].defined {
            return Err(format!("{}:1: error: function name `{name}' previously defined", super::source_name()));
        }
        self.program.functions[index].params = locals.len();
        self.program.functions[index].defined = true;
        self.locals = Some(locals);
        self.scope = Some(index);
        self.skip_newlines();
        let body = self.block()?;
        self.program.functions[index].body = body;
        self.locals = None;
        self.scope = None;
        Ok(())
    }

    /// Arrays travel through calls: what is an array here is one there, and the other way round.
    fn settle_arrays(&mut self) -> Result<()> {
        if let Some(missing) = self.program.functions.iter().find(|function| !function.defined) {
            return Err(format!("{}:1: fatal: function `{}' not defined", super::source_name(), missing.name));
        }
        loop {
            let before = self.arrays.len();
            for (scope, var, callee, index) in &self.passed {
                let outer = (if matches!(var, Var::Local(_)) { *scope } else { None }, *var);
                let inner = (Some(*callee), Var::Local(*index));
                if self.arrays.contains(&inner) {
                    self.arrays.insert(outer);
                } else if self.arrays.contains(&outer) {
                    self.arrays.insert(inner);
                }
            }
            if self.arrays.len() == before {
                break;
            }
        }
        self.program.global_arrays =
            (0..self.program.globals.len()).map(|index| self.arrays.contains(&(None, Var::Global(index)))).collect();
        for (index, function) in self.program.functions.iter_mut().enumerate() {
            function.arrays = (0..function.params).map(|param| self.arrays.contains(&(Some(index), Var::Local(param)))).collect();
        }
        Ok(())
    }

    fn block(&mut self) -> Result<Vec<Stmt>> {
        self.expect("{")?;
        let mut body = Vec::new();
        loop {
            self.skip_terminators();
            if self.accept("}") {
                return Ok(body);
            }
            body.push(self.statement()?);
        }
    }

    fn end_simple(&mut self) -> Result<()> {
        if self.accept(";") || matches!(self.peek(), Token::Newline) {
            self.skip_newlines();
            return Ok(());
        }
        if self.is("}") || *self.peek() == Token::End { Ok(()) } else { self.unexpected() }
    }

    /// Returns the statement that an `if` or a loop governs.
    fn body(&mut self) -> Result<Box<Stmt>> {
        self.skip_newlines();
        if self.accept(";") {
            return Ok(Box::new(Stmt::Block(Vec::new())));
        }
        Ok(Box::new(self.statement()?))
    }

    fn statement(&mut self) -> Result<Stmt> {
        if self.is("{") {
            return Ok(Stmt::Block(self.block()?));
        }
        let keyword = match self.peek() {
            Token::Name(name) | Token::FuncName(name) => name.clone(),
            _ => String::new(),
        };
        match keyword.as_str() {
            "if" => self.if_statement(),
            "while" => {
                self.at += 1;
                self.expect("(")?;
                let condition = self.expr()?;
                self.expect(")")?;
                if self.accept(";") {
                    return Ok(Stmt::While(condition, Box::new(Stmt::Block(Vec::new()))));
                }
                Ok(Stmt::While(condition, self.body()?))
            }
            "do" => {
                self.at += 1;
                let body = self.body()?;
                self.skip_terminators();
                if !self.is_name("while") {
                    return self.unexpected();
                }
                self.at += 1;
                self.expect("(")?;
                let condition = self.expr()?;
                self.expect(")")?;
                self.end_simple()?;
                Ok(Stmt::DoWhile(body, condition))
            }
            "for" => self.for_statement(),
            "switch" => self.switch_statement(),
            _ => {
                let statement = self.simple(&keyword)?;
                self.end_simple()?;
                Ok(statement)
            }
        }
    }

    fn if_statement(&mut self) -> Result<Stmt> {
        self.at += 1;
        self.expect("(")?;
        let condition = self.expr()?;
        self.expect(")")?;
        let then = self.body()?;
        let before = self.at;
        self.skip_terminators();
        if self.is_name("else") {
            self.at += 1;
            let otherwise = self.body()?;
            return Ok(Stmt::If(condition, then, Some(otherwise)));
        }
        self.at = before;
        Ok(Stmt::If(condition, then, None))
    }

    fn for_statement(&mut self) -> Result<Stmt> {
        self.at += 1;
        self.expect("(")?;
        if let (Token::Name(name), Token::Name(word), Token::Name(array)) =
            (self.ahead(0).clone(), self.ahead(1).clone(), self.ahead(2).clone())
            && word == "in"
            && matches!(self.ahead(3), Token::Op(")" | "["))
        {
            let before = self.at;
            self.at += 3;
            let key = self.variable(&name);
            let var = self.array(&array);
            let path = self.subscripts()?;
            if self.accept(")") {
                return Ok(Stmt::ForIn(key, ArrayPlace { var, path }, self.body()?));
            }
            self.at = before;
        }
        let start = if self.is(";") { None } else { Some(Box::new(self.simple("")?)) };
        self.expect(";")?;
        self.skip_newlines();
        let condition = if self.is(";") { None } else { Some(self.expr()?) };
        self.expect(";")?;
        self.skip_newlines();
        let step = if self.is(")") { None } else { Some(Box::new(self.simple("")?)) };
        self.expect(")")?;
        if self.accept(";") {
            return Ok(Stmt::For(start, condition, step, Box::new(Stmt::Block(Vec::new()))));
        }
        Ok(Stmt::For(start, condition, step, self.body()?))
    }

    fn switch_statement(&mut self) -> Result<Stmt> {
        self.at += 1;
        self.expect("(")?;
        let subject = self.expr()?;
        self.expect(")")?;
        self.skip_newlines();
        self.expect("{")?;
        let mut cases = Vec::new();
        loop {
            self.skip_terminators();
            if self.accept("}") {
                return Ok(Stmt::Switch(subject, cases));
            }
            let case = if self.is_name("default") {
                self.at += 1;
                None
            } else if self.is_name("case") {
                self.at += 1;
                Some(match self.peek().clone() {
                    Token::Regex(pattern) => {
                        self.at += 1;
                        Case::Pattern(self.regex(&pattern)?)
                    }
                    _ => Case::Value(self.unary()?),
                })
            } else {
                return self.unexpected();
            };
            self.expect(":")?;
            let mut body = Vec::new();
            loop {
                self.skip_terminators();
                if self.is("}") || self.is_name("case") || self.is_name("default") {
                    break;
                }
                body.push(self.statement()?);
            }
            cases.push((case, body));
        }
    }

    fn at_end(&self) -> bool {
        matches!(self.peek(), Token::Newline | Token::End) || self.is(";") || self.is("}")
    }

    fn simple(&mut self, keyword: &str) -> Result<Stmt> {
        Ok(match keyword {
            "print" | "printf" => {
                self.at += 1;
                return self.output(keyword == "print");
            }
            "next" => {
                self.at += 1;
                Stmt::Next
            }
            "nextfile" => {
                self.at += 1;
                Stmt::NextFile
            }
            "break" => {
                self.at += 1;
                Stmt::Break
            }
            "continue" => {
                self.at += 1;
                Stmt::Continue
            }
            "exit" | "return" => {
                self.at += 1;
                let value = if self.at_end() { None } else { Some(self.expr()?) };
                if keyword == "exit" { Stmt::Exit(value) } else { Stmt::Return(value) }
            }
            "delete" => {
                self.at += 1;
                let grouped = self.accept("(");
                let Token::Name(name) = self.advance() else {
                    self.at -= 1;
                    return self.unexpected();
                };
                let var = self.array(&name);
                let mut path = self.subscripts()?;
                let subscript = path.pop();
                if grouped {
                    self.expect(")")?;
                }
                Stmt::Delete(ArrayPlace { var, path }, subscript)
            }
            _ => Stmt::Expr(self.expr()?),
        })
    }

    /// Parses `[…][…]…`, of which there may be none.
    pub(super) fn subscripts(&mut self) -> Result<Vec<Vec<Expr>>> {
        let mut path = Vec::new();
        while self.accept("[") {
            let mut subscript = self.list("]")?;
            if let [Expr::List(_)] = subscript.as_slice()
                && let Some(Expr::List(inner)) = subscript.pop()
            {
                subscript = inner;
            }
            path.push(subscript);
        }
        Ok(path)
    }

    /// Expressions up to (and with) the closing operator.
    pub(super) fn list(&mut self, close: &str) -> Result<Vec<Expr>> {
        let mut items = Vec::new();
        let no_gt = std::mem::take(&mut self.no_gt);
        self.skip_newlines();
        while !self.accept(close) {
            items.push(self.expr()?);
            self.skip_newlines();
            if !self.is(close) {
                self.expect(",")?;
                self.skip_newlines();
            }
        }
        self.no_gt = no_gt;
        Ok(items)
    }

    fn output(&mut self, print: bool) -> Result<Stmt> {
        let mut items = Vec::new();
        if !self.at_end() && !self.is(">") && !self.is(">>") && !self.is("|") && !self.is("|&") {
            loop {
                items.push(self.print_expr()?);
                if !self.accept(",") {
                    break;
                }
                self.skip_newlines();
            }
            if let [Expr::List(_)] = items.as_slice()
                && let Some(Expr::List(inner)) = items.pop()
            {
                items = inner;
            }
        }
        let redirect = if self.accept(">") {
            Some(Redirect::Truncate)
        } else if self.accept(">>") {
            Some(Redirect::Append)
        } else if self.accept("|") {
            Some(Redirect::Pipe)
        } else if self.accept("|&") {
            Some(Redirect::Both)
        } else {
            None
        };
        let target = match redirect {
            Some(redirect) => Some((redirect, self.concat(true)?)),
            None => None,
        };
        if !print && items.is_empty() {
            return self.unexpected();
        }
        Ok(if print { Stmt::Print(items, target) } else { Stmt::Printf(items, target) })
    }
}

/// Returns a message that shows the line and points at the place.
fn diagnose(text: &[u8], line: usize, at: usize, message: &str) -> String {
    let at = at.min(text.len());
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
    let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
    let shown = String::from_utf8_lossy(&text[start..end]);
    let blanks: String = text[start..at].iter().map(|&byte| if byte == b'\t' { '\t' } else { ' ' }).collect();
    let source = super::source_name();
    format!("{source}:{line}: {shown}\nawk: {source}:{line}: {blanks}^ {message}")
}

/// Returns whether an expression can be assigned to.
pub(super) fn into_place(expr: Expr) -> std::result::Result<Place, Expr> {
    match expr {
        Expr::Place(place) => Ok(place),
        other => Err(other),
    }
}
