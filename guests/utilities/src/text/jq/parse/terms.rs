//! Terms: what stands between operators, with what follows it without one.

use super::super::ast::{Place, Term};
use super::super::lex::{self, Kind};
use super::super::value::Json;
use super::{Broken, Parsed, Parser, binary, boxed, constant, constants};

impl Parser<'_> {
    pub(super) fn term_or_binding(&mut self) -> Parsed<Term> {
        let term = self.term()?;
        if !self.eat("as") {
            return Ok(term);
        }
        let patterns = self.patterns()?;
        self.expect("|", if patterns.len() > 1 { &[] } else { &["'|'"] })?;
        let body = self.expression(0)?;
        Ok(Term::As(boxed(term), patterns, boxed(body)))
    }

    pub(super) fn term(&mut self) -> Parsed<Term> {
        let start = self.atom()?;
        self.suffixes(start)
    }

    pub(super) fn suffixes(&mut self, mut term: Term) -> Parsed<Term> {
        loop {
            match self.kind().clone() {
                Kind::Field(name) => {
                    self.advance();
                    let silent = self.eat("?");
                    term = Term::Index(boxed(term), boxed(constant(&name)), silent);
                }
                Kind::Mark("[") => term = self.bracket(term)?,
                Kind::Mark(".") => {
                    self.advance();
                    match self.kind() {
                        Kind::Mark("[") => term = self.bracket(term)?,
                        Kind::StringStart | Kind::Format(_) => {
                            let key = self.string()?;
                            let silent = self.eat("?");
                            term = Term::Index(boxed(term), boxed(key), silent);
                        }
                        _ => return self.unexpected(&["FORMAT", "QQSTRING_START", "'['"]),
                    }
                }
                _ => return Ok(term),
            }
        }
    }

    pub(super) fn bracket(&mut self, term: Term) -> Parsed<Term> {
        self.advance();
        if self.eat("]") {
            return Ok(Term::Each(boxed(term), self.eat("?")));
        }
        let from = if self.is(":") { None } else { Some(boxed(self.expression(0)?)) };
        if self.eat(":") {
            let to = if from.is_some() && self.is("]") { None } else { Some(boxed(self.expression(0)?)) };
            self.expect("]", &[])?;
            return Ok(Term::Slice(boxed(term), from, to, self.eat("?")));
        }
        self.expect("]", &[])?;
        let silent = self.eat("?");
        Ok(Term::Index(boxed(term), from.unwrap_or_else(|| boxed(Term::Identity)), silent))
    }

    pub(super) fn atom(&mut self) -> Parsed<Term> {
        let place = self.place();
        match self.kind().clone() {
            Kind::Literal(text) => {
                self.advance();
                Ok(Term::Constant(lex::literal(&text)))
            }
            Kind::StringStart => self.string(),
            Kind::Format(name) => {
                if matches!(self.tokens.get(self.at + 1).map(|token| &token.kind), Some(Kind::StringStart)) {
                    return self.string();
                }
                self.advance();
                Ok(Term::Format(name, boxed(Term::Identity)))
            }
            Kind::Field(name) => {
                self.advance();
                let silent = self.eat("?");
                Ok(Term::Index(boxed(Term::Identity), boxed(constant(&name)), silent))
            }
            Kind::Binding(name) => {
                self.advance();
                Ok(Term::Variable(name, place))
            }
            Kind::Ident(name) => {
                self.advance();
                self.call(name, place)
            }
            Kind::Mark(mark) => self.marked(mark, place),
            _ => self.unexpected(&[]),
        }
    }

    pub(super) fn call(&mut self, name: String, place: Place) -> Parsed<Term> {
        if !self.eat("(") {
            return Ok(match name.as_str() {
                "true" => Term::Constant(Json::Bool(true)),
                "false" => Term::Constant(Json::Bool(false)),
                "null" => Term::Constant(Json::Null),
                _ => Term::Call(name, Vec::new(), place),
            });
        }
        let mut arguments = vec![self.expression(0)?];
        while self.eat(";") {
            arguments.push(self.expression(0)?);
        }
        self.expect(")", &["';'", "')'"])?;
        Ok(Term::Call(name, arguments, place))
    }

    pub(super) fn marked(&mut self, mark: &'static str, place: Place) -> Parsed<Term> {
        match mark {
            "." => {
                self.advance();
                if matches!(self.kind(), Kind::StringStart) {
                    let key = self.string()?;
                    let silent = self.eat("?");
                    return Ok(Term::Index(boxed(Term::Identity), boxed(key), silent));
                }
                Ok(Term::Identity)
            }
            ".." => {
                self.advance();
                Ok(Term::Call("recurse".to_string(), Vec::new(), place))
            }
            "break" => {
                self.advance();
                let Kind::Binding(name) = self.kind().clone() else {
                    let result = self.unexpected(&["BINDING"]);
                    self.complaints.push(("break requires a label to break to".to_string(), place.at));
                    return result;
                };
                self.advance();
                Ok(Term::Break(name, place))
            }
            "$__loc__" => {
                self.advance();
                Ok(self.location(place))
            }
            "$" => {
                self.advance();
                if !(self.eat("$") && self.eat("$")) {
                    return self.unexpected(&["'$'"]);
                }
                let Kind::Binding(name) = self.kind().clone() else { return self.unexpected(&["BINDING"]) };
                self.advance();
                Ok(Term::Take(name))
            }
            "(" => {
                self.advance();
                let term = self.expression(0)?;
                self.expect(")", &[])?;
                Ok(term)
            }
            "[" => {
                self.advance();
                if self.eat("]") {
                    return Ok(Term::Constant(Json::array(Vec::new())));
                }
                let term = self.expression(0)?;
                self.expect("]", &[])?;
                let mut items = Vec::new();
                Ok(if constants(&term, &mut items) { Term::Constant(Json::array(items)) } else { Term::Array(boxed(term)) })
            }
            "{" => self.object(),
            _ => self.unexpected(&[]),
        }
    }

    pub(super) fn location(&self, place: Place) -> Term {
        let line = self.source[..place.at].matches('\n').count() + 1;
        let file = if self.text == 0 { "<top-level>".to_string() } else { "<module>".to_string() };
        Term::Constant(Json::object([("file".to_string(), Json::string(file)), ("line".to_string(), Json::Number(line as f64))]))
    }

    pub(super) fn object(&mut self) -> Parsed<Term> {
        self.advance();
        let mut fields = Vec::new();
        loop {
            if self.eat("}") {
                break;
            }
            let start = self.offset();
            let complaints = self.complaints.len();
            let Ok(field) = self.field() else {
                self.recover(start, complaints);
                return Err(Broken);
            };
            fields.push(field);
            if self.eat("}") {
                break;
            }
            if !self.is(",") {
                let _: Parsed<()> = self.unexpected(&["'}'"]);
                self.recover(start, complaints);
                return Err(Broken);
            }
            self.advance();
        }
        let simple =
            fields.iter().all(|(key, value)| matches!((key, value), (Term::Constant(Json::String(_)), Term::Constant(_))));
        if !simple {
            return Ok(Term::Object(fields));
        }
        let pairs = fields.into_iter().filter_map(|field| match field {
            (Term::Constant(Json::String(key)), Term::Constant(value)) => Some((key.as_str().to_string(), value)),
            _ => None,
        });
        Ok(Term::Constant(Json::object(pairs)))
    }

    /// After an error in an object a `:` further on means that the key was meant to be an expression.
    pub(super) fn recover(&mut self, start: usize, complaints: usize) {
        if self.complaints.len() > complaints + 1 {
            return;
        }
        let mut depth = 0usize;
        while self.at < self.tokens.len() {
            match self.kind() {
                Kind::End => return,
                Kind::Mark("(" | "[" | "{") => depth += 1,
                Kind::Mark(")" | "]" | "}") if depth == 0 => return,
                Kind::Mark(")" | "]" | "}") => depth -= 1,
                Kind::Mark(",") if depth == 0 => return,
                Kind::Mark(":") if depth == 0 => {
                    self.complaints.push(("May need parentheses around object key expression".to_string(), start));
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    pub(super) fn field(&mut self) -> Parsed<(Term, Term)> {
        let place = self.place();
        let own = |name: &str| Term::Index(boxed(Term::Identity), boxed(constant(name)), false);
        match self.kind().clone() {
            Kind::Ident(name) => {
                self.advance();
                let value = if self.eat(":") { self.field_value()? } else { own(&name) };
                Ok((constant(&name), value))
            }
            Kind::Mark("$__loc__") => {
                self.advance();
                Ok((constant("__loc__"), self.location(place)))
            }
            Kind::Mark(word) if lex::is_keyword(word) => {
                self.advance();
                let value = if self.eat(":") { self.field_value()? } else { own(word) };
                Ok((constant(word), value))
            }
            Kind::Binding(name) => {
                self.advance();
                let variable = Term::Variable(name.clone(), place);
                if self.eat(":") {
                    return Ok((variable, self.field_value()?));
                }
                Ok((constant(&name), variable))
            }
            Kind::StringStart | Kind::Format(_) => {
                let key = self.string()?;
                let value = if self.eat(":") { self.field_value()? } else { Term::OwnField };
                Ok((key, value))
            }
            Kind::Mark("(") => {
                self.advance();
                let key = self.expression(0)?;
                self.expect(")", &[])?;
                self.expect(":", &["':'"])?;
                let value = self.field_value()?;
                self.check_key(&key, place.at);
                Ok((key, value))
            }
            _ => self.unexpected(&[]),
        }
    }

    pub(super) fn field_value(&mut self) -> Parsed<Term> {
        let first = if self.eat("-") {
            let term = self.field_value_part()?;
            Term::Negate(boxed(term))
        } else {
            self.term()?
        };
        if self.eat("|") {
            let rest = self.field_value()?;
            return Ok(Term::Pipe(boxed(first), boxed(rest)));
        }
        Ok(first)
    }

    pub(super) fn field_value_part(&mut self) -> Parsed<Term> {
        if self.eat("-") {
            let term = self.field_value_part()?;
            return Ok(Term::Negate(boxed(term)));
        }
        self.term()
    }

    pub(super) fn string(&mut self) -> Parsed<Term> {
        let mut format = "text".to_string();
        if let Kind::Format(name) = self.kind().clone() {
            self.advance();
            format = name;
        }
        if !matches!(self.kind(), Kind::StringStart) {
            return self.unexpected(&["QQSTRING_START"]);
        }
        self.advance();
        let mut whole = constant("");
        loop {
            let at = self.offset();
            match self.kind().clone() {
                Kind::StringEnd => {
                    self.advance();
                    return Ok(whole);
                }
                Kind::StringText(text) => {
                    self.advance();
                    whole = binary("+", whole, constant(&text));
                }
                Kind::BadText(message) => {
                    self.complaints.push((message, at));
                    self.advance();
                }
                Kind::InterpolationStart => {
                    self.advance();
                    let term = self.expression(0)?;
                    if !matches!(self.kind(), Kind::InterpolationEnd) {
                        return self.unexpected(&[]);
                    }
                    self.advance();
                    whole = binary("+", whole, Term::Format(format.clone(), boxed(term)));
                }
                _ => return self.unexpected(&["QQSTRING_TEXT", "QQSTRING_INTERP_START", "QQSTRING_END"]),
            }
        }
    }
}
