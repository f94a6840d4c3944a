//! Filters read into trees, with jq's precedences and its complaints.

mod terms;

use std::rc::Rc;

use super::ast::{Assign, Definition, Fold, Import, Module, Pattern, Place, Term};
use super::functions::fold_constants;
use super::lex::{self, Kind, Token};
use super::print;
use super::value::Json;

/// A complaint about a program and the offset it is about.
pub(super) type Complaint = (String, usize);

struct Parser<'t> {
    text: usize,
    source: &'t str,
    tokens: Vec<Token>,
    at: usize,
    complaints: Vec<Complaint>,
    depth: usize,
}

/// The complaint is recorded already.
struct Broken;

type Parsed<T> = Result<T, Broken>;

/// Deepest nesting of a program: the stack of a process is small.
const MAX_DEPTH: usize = 200;

/// Most expressions that are open at once, as those of `a // b // c`.
const MAX_EXPRESSIONS: usize = 1000;

pub(super) const TOO_DEEP: &str = "the program is nested too deeply";

/// Reads a program, which is the `text`th.
pub(super) fn parse(source: &str, text: usize) -> Result<Module, Vec<Complaint>> {
    let tokens = lex::tokens(source);
    if let Some(at) = too_deep(&tokens) {
        return Err(vec![(TOO_DEEP.to_string(), at)]);
    }
    let mut parser = Parser { text, source, tokens, at: 0, complaints: Vec::new(), depth: 0 };
    match parser.module() {
        Ok(module) if parser.complaints.is_empty() => Ok(module),
        _ => Err(parser.complaints),
    }
}

fn too_deep(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0usize;
    for token in tokens {
        match token.kind {
            Kind::Mark("(" | "[" | "{" | "if" | "def" | "as" | "try" | "label" | "reduce" | "foreach")
            | Kind::InterpolationStart => depth += 1,
            Kind::Mark(")" | "]" | "}" | "end" | ";") | Kind::InterpolationEnd => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some(token.at);
        }
    }
    None
}

fn boxed(term: Term) -> Box<Term> {
    Box::new(term)
}

fn constant(text: &str) -> Term {
    Term::Constant(Json::string(text))
}

/// Returns the precedence, whether it groups to the right, and whether it groups at all.
fn precedence(mark: &str) -> Option<(u8, bool, bool)> {
    Some(match mark {
        // Grouping a pipe to the left means the same and needs no recursion.
        "|" => (1, false, true),
        "," => (2, false, true),
        "//" => (3, true, true),
        "=" | "|=" | "+=" | "-=" | "*=" | "/=" | "%=" | "//=" => (4, false, false),
        "or" => (5, false, true),
        "and" => (6, false, true),
        "==" | "!=" | "<" | ">" | "<=" | ">=" => (7, false, false),
        "+" | "-" => (8, false, true),
        "*" | "/" | "%" => (9, false, true),
        _ => return None,
    })
}

fn native(mark: &str) -> &'static str {
    match mark.trim_end_matches('=') {
        "+" => "_plus",
        "-" => "_minus",
        "*" => "_multiply",
        "/" => "_divide",
        "%" => "_mod",
        _ => match mark {
            "==" => "_equal",
            "!=" => "_notequal",
            "<" => "_less",
            ">" => "_greater",
            "<=" => "_lesseq",
            _ => "_greatereq",
        },
    }
}

fn binary(mark: &str, left: Term, right: Term) -> Term {
    let name = native(mark);
    if let (Term::Constant(a), Term::Constant(b)) = (&left, &right) {
        return match fold_constants(name, a, b) {
            Ok(value) => Term::Constant(value),
            Err(_) => Term::Binary(name, boxed(left), boxed(right)),
        };
    }
    Term::Binary(name, boxed(left), boxed(right))
}

/// Returns whether a list consists of constants, which are collected.
fn constants(term: &Term, items: &mut Vec<Json>) -> bool {
    let mut rest = term;
    loop {
        let (left, last) = match rest {
            Term::Comma(left, right) => (Some(left), &**right),
            other => (None, other),
        };
        let Term::Constant(value) = last else { return false };
        items.push(value.clone());
        match left {
            Some(left) => rest = left,
            None => break,
        }
    }
    items.reverse();
    true
}

fn combine(mark: &'static str, left: Term, right: Term) -> Term {
    let (l, r) = (boxed(left), boxed(right));
    match mark {
        "|" => Term::Pipe(l, r),
        "," => Term::Comma(l, r),
        "//" => Term::Alternative(l, r),
        "=" => Term::Assign(Assign::Set, l, r),
        "|=" => Term::Assign(Assign::Modify, l, r),
        "//=" => Term::Assign(Assign::Default, l, r),
        "+=" | "-=" | "*=" | "/=" | "%=" => Term::Assign(Assign::Update(native(mark)), l, r),
        "or" => Term::Or(l, r),
        "and" => Term::And(l, r),
        _ => binary(mark, *l, *r),
    }
}

impl Parser<'_> {
    fn kind(&self) -> &Kind {
        self.tokens.get(self.at).map_or(&Kind::End, |token| &token.kind)
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.at)
    }

    fn place(&self) -> Place {
        Place { text: self.text, at: self.offset() }
    }

    fn advance(&mut self) -> Kind {
        let kind = self.kind().clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        kind
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.kind(), Kind::Mark(found) if *found == mark)
    }

    fn eat(&mut self, mark: &str) -> bool {
        let found = self.is(mark);
        if found {
            self.advance();
        }
        found
    }

    fn unexpected<T>(&mut self, expected: &[&str]) -> Parsed<T> {
        let mut message = format!("syntax error, unexpected {}", self.kind().name());
        for (index, name) in expected.iter().enumerate() {
            message.push_str(if index == 0 { ", expecting " } else { " or " });
            message.push_str(name);
        }
        message.push_str(" (Unix shell quoting issues?)");
        let at = self.offset();
        self.complaints.push((message, at));
        Err(Broken)
    }

    fn expect(&mut self, mark: &str, expected: &[&str]) -> Parsed<()> {
        if self.eat(mark) { Ok(()) } else { self.unexpected(expected) }
    }

    fn module(&mut self) -> Parsed<Module> {
        let mut module = Module::default();
        let start = self.offset();
        if self.eat("module") {
            module.metadata = Some(self.metadata(start)?);
            self.expect(";", &[])?;
        }
        while self.is("import") || self.is("include") {
            let import = self.import()?;
            module.imports.push(import);
        }
        while self.is("def") {
            let definition = self.definition()?;
            module.definitions.push(Rc::new(definition));
        }
        let expression = match self.kind() {
            Kind::End => return Ok(module),
            Kind::Mark(mark) => {
                matches!(*mark, "." | ".." | "-" | "$" | "$__loc__" | "(" | "[" | "{")
                    || matches!(*mark, "if" | "try" | "reduce" | "foreach" | "label" | "break")
            }
            Kind::Invalid => false,
            _ => true,
        };
        if !expression {
            return self.unexpected(&["end of file"]);
        }
        let mut main = self.expression(0)?;
        if !matches!(self.kind(), Kind::End) {
            return self.unexpected(&["end of file"]);
        }
        for definition in module.definitions.drain(..).rev() {
            main = Term::Define(definition, boxed(main));
        }
        module.main = Some(main);
        Ok(module)
    }

    fn metadata(&mut self, at: usize) -> Parsed<Json> {
        match self.expression(0)? {
            Term::Constant(value @ Json::Object(_)) => Ok(value),
            Term::Constant(_) => {
                self.complaints.push(("Module metadata must be an object".to_string(), at));
                Err(Broken)
            }
            _ => {
                self.complaints.push(("Module metadata must be constant".to_string(), at));
                Err(Broken)
            }
        }
    }

    fn import(&mut self) -> Parsed<Import> {
        let start = self.offset();
        let include = self.is("include");
        self.advance();
        let at = self.offset();
        let Term::Constant(Json::String(path)) = self.string()? else {
            self.complaints.push(("Import path must be constant".to_string(), at));
            return Err(Broken);
        };
        let mut name = None;
        if !include {
            self.expect("as", &["as"])?;
            name = Some(match self.advance() {
                Kind::Binding(name) => format!("${name}"),
                Kind::Ident(name) => name,
                _ => {
                    self.at -= 1;
                    return self.unexpected(&["IDENT", "BINDING"]);
                }
            });
        }
        let metadata = if self.is(";") { None } else { Some(self.metadata(start)?) };
        self.expect(";", &[])?;
        Ok(Import { path: path.as_str().to_string(), name, metadata })
    }

    fn definition(&mut self) -> Parsed<Definition> {
        self.advance();
        let Kind::Ident(name) = self.kind().clone() else { return self.unexpected(&["IDENT"]) };
        self.advance();
        let mut parameters = Vec::new();
        if self.eat("(") {
            loop {
                match self.kind().clone() {
                    Kind::Ident(name) => parameters.push(name),
                    Kind::Binding(name) => parameters.push(format!("${name}")),
                    _ => return self.unexpected(&["IDENT", "BINDING"]),
                }
                self.advance();
                if self.eat(")") {
                    break;
                }
                self.expect(";", &["';'", "')'"])?;
            }
            self.expect(":", &["':'"])?;
        } else {
            self.expect(":", &["'('", "':'"])?;
        }
        let body = self.expression(0)?;
        self.expect(";", &[])?;
        Ok(Definition { name, parameters, body })
    }

    fn expression(&mut self, minimum: u8) -> Parsed<Term> {
        if self.depth > MAX_EXPRESSIONS {
            let at = self.offset();
            self.complaints.push((TOO_DEEP.to_string(), at));
            return Err(Broken);
        }
        self.depth += 1;
        let result = self.operators(minimum);
        self.depth -= 1;
        result
    }

    fn operators(&mut self, minimum: u8) -> Parsed<Term> {
        let mut left = self.operand()?;
        loop {
            let Kind::Mark(mark) = *self.kind() else { return Ok(left) };
            let Some((level, to_right, groups)) = precedence(mark) else { return Ok(left) };
            if level < minimum {
                return Ok(left);
            }
            self.advance();
            let right = self.expression(if to_right { level } else { level + 1 })?;
            left = combine(mark, left, right);
            if !groups
                && let Kind::Mark(mark) = *self.kind()
                && precedence(mark).is_some_and(|(again, ..)| again == level)
            {
                return self.unexpected(&[]);
            }
        }
    }

    /// Returns an operand with the `?` behind it. Outside of patterns `?//` is a `?` before a `//`, which jq 1.7 refuses.
    fn operand(&mut self) -> Parsed<Term> {
        let mut term = self.prefix()?;
        loop {
            if self.is("?//") {
                if let Some(token) = self.tokens.get_mut(self.at) {
                    token.kind = Kind::Mark("//");
                }
            } else if !self.eat("?") {
                return Ok(term);
            }
            term = Term::Try(boxed(term), None);
        }
    }

    fn prefix(&mut self) -> Parsed<Term> {
        let start = self.offset();
        let Kind::Mark(mark) = *self.kind() else { return self.term_or_binding() };
        match mark {
            "def" => {
                let definition = Rc::new(self.definition()?);
                let rest = self.expression(0)?;
                Ok(Term::Define(definition, boxed(rest)))
            }
            "-" => {
                self.advance();
                let term = self.expression(9)?;
                Ok(Term::Negate(boxed(term)))
            }
            "try" => {
                self.advance();
                let body = self.prefix()?;
                if !self.eat("catch") {
                    return Ok(Term::Try(boxed(body), None));
                }
                let handler = self.prefix();
                if handler.is_err() {
                    self.complaints.push(("Possibly unterminated 'try' statement".to_string(), start));
                }
                Ok(Term::Try(boxed(body), Some(boxed(handler?))))
            }
            "label" => {
                self.advance();
                let Kind::Binding(name) = self.kind().clone() else { return self.unexpected(&["BINDING"]) };
                self.advance();
                self.expect("|", &["'|'"])?;
                let body = self.expression(0)?;
                Ok(Term::Label(name, boxed(body)))
            }
            "reduce" => {
                self.advance();
                let (fold, _) = self.fold(false)?;
                self.suffixes(Term::Reduce(Box::new(fold)))
            }
            "foreach" => {
                self.advance();
                let (fold, extract) = self.fold(true)?;
                self.suffixes(Term::Foreach(Box::new(fold), boxed(extract)))
            }
            "if" => {
                self.advance();
                let condition = self.expression(0)?;
                if !self.eat("then") {
                    return self.unexpected(&[]);
                }
                let branches = self.branches(condition);
                if branches.is_err() {
                    self.complaints.push(("Possibly unterminated 'if' statement".to_string(), start));
                }
                self.suffixes(branches?)
            }
            _ => self.term_or_binding(),
        }
    }

    fn branches(&mut self, condition: Term) -> Parsed<Term> {
        let then = self.expression(0)?;
        let otherwise = if self.eat("elif") {
            let condition = self.expression(0)?;
            if !self.eat("then") {
                return self.unexpected(&[]);
            }
            self.branches(condition)?
        } else if self.eat("else") {
            let term = self.expression(0)?;
            self.expect("end", &[])?;
            term
        } else {
            self.expect("end", &[])?;
            Term::Identity
        };
        Ok(Term::If(boxed(condition), boxed(then), boxed(otherwise)))
    }

    fn fold(&mut self, extracts: bool) -> Parsed<(Fold, Term)> {
        let source = self.term()?;
        self.expect("as", &[])?;
        let patterns = self.patterns()?;
        self.expect("(", if patterns.len() > 1 { &[] } else { &["'('"] })?;
        let start = self.expression(0)?;
        self.expect(";", &[])?;
        let update = self.expression(0)?;
        let extract = if extracts && self.eat(";") { self.expression(0)? } else { Term::Identity };
        self.expect(")", &[])?;
        Ok((Fold { source, patterns, start, update }, extract))
    }

    fn patterns(&mut self) -> Parsed<Vec<Pattern>> {
        let mut patterns = vec![self.pattern()?];
        while self.eat("?//") {
            patterns.push(self.pattern()?);
        }
        Ok(patterns)
    }

    fn pattern(&mut self) -> Parsed<Pattern> {
        if let Kind::Binding(name) = self.kind().clone() {
            self.advance();
            return Ok(Pattern::Variable(name));
        }
        if self.eat("[") {
            let mut items = vec![self.pattern()?];
            while self.eat(",") {
                items.push(self.pattern()?);
            }
            self.expect("]", &["','", "']'"])?;
            return Ok(Pattern::Array(items));
        }
        if self.eat("{") {
            let mut fields = vec![self.field_pattern()?];
            while self.eat(",") {
                fields.push(self.field_pattern()?);
            }
            self.expect("}", &["','", "'}'"])?;
            return Ok(Pattern::Object(fields));
        }
        self.unexpected(&["BINDING", "'['", "'{'"])
    }

    fn field_pattern(&mut self) -> Parsed<(Term, Option<String>, Option<Pattern>)> {
        let at = self.offset();
        match self.kind().clone() {
            Kind::Binding(name) => {
                self.advance();
                let pattern = if self.eat(":") { Some(self.pattern()?) } else { None };
                Ok((constant(&name), Some(name), pattern))
            }
            Kind::Ident(name) => {
                self.advance();
                self.expect(":", &["':'"])?;
                Ok((constant(&name), None, Some(self.pattern()?)))
            }
            Kind::Mark(word) if lex::is_keyword(word) => {
                self.advance();
                self.expect(":", &["':'"])?;
                Ok((constant(word), None, Some(self.pattern()?)))
            }
            Kind::StringStart | Kind::Format(_) => {
                let key = self.string()?;
                self.expect(":", &["':'"])?;
                Ok((key, None, Some(self.pattern()?)))
            }
            Kind::Mark("(") => {
                self.advance();
                let key = self.expression(0)?;
                self.expect(")", &[])?;
                self.expect(":", &["':'"])?;
                self.check_key(&key, at);
                Ok((key, None, Some(self.pattern()?)))
            }
            _ => self.unexpected(&[]),
        }
    }

    fn check_key(&mut self, key: &Term, at: usize) {
        if let Term::Constant(value) = key
            && !matches!(value, Json::String(_))
        {
            self.complaints.push((format!("Cannot use {} ({}) as object key", value.kind(), print::short(value, 15)), at));
        }
    }
}
