//! Expressions of an awk program, by precedence.

use super::ast::{Arith, ArrayPlace, Builtin, Expr, Order, Place, Source, Var, builtin};
use super::lex::Token;
use super::parse::{Parser, Result, into_place};

impl Parser {
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.ternary(false)
    }

    /// Returns an expression in which `>` redirects.
    pub(super) fn print_expr(&mut self) -> Result<Expr> {
        self.no_gt = true;
        let expr = self.ternary(false);
        self.no_gt = false;
        expr
    }

    fn ternary(&mut self, no_in: bool) -> Result<Expr> {
        let condition = self.or(no_in)?;
        if !self.is("?") {
            return Ok(condition);
        }
        self.at += 1;
        self.skip_newlines();
        let yes = self.ternary(no_in)?;
        self.skip_newlines();
        self.expect(":")?;
        self.skip_newlines();
        let no = self.ternary(no_in)?;
        Ok(Expr::Cond(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    fn or(&mut self, no_in: bool) -> Result<Expr> {
        let mut left = self.and(no_in)?;
        while self.accept("||") {
            self.skip_newlines();
            let right = self.and(no_in)?;
            left = Expr::Or(Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn and(&mut self, no_in: bool) -> Result<Expr> {
        let mut left = self.membership(no_in)?;
        while self.accept("&&") {
            self.skip_newlines();
            let right = self.membership(no_in)?;
            left = Expr::And(Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn membership(&mut self, no_in: bool) -> Result<Expr> {
        let mut left = self.matching(no_in)?;
        while !no_in && self.is_name("in") {
            self.at += 1;
            let Token::Name(name) = self.advance() else {
                self.at -= 1;
                return self.unexpected();
            };
            let var = self.array(&name);
            let array = ArrayPlace { var, path: self.subscripts()? };
            left = match left {
                Expr::List(items) => Expr::In(array, items),
                other => Expr::In(array, vec![other]),
            };
        }
        Ok(left)
    }

    fn matching(&mut self, no_in: bool) -> Result<Expr> {
        let mut left = self.comparison(no_in)?;
        loop {
            let negated = self.is("!~");
            if !negated && !self.is("~") {
                return Ok(left);
            }
            self.at += 1;
            let right = self.comparison(no_in)?;
            left = Expr::Match(negated, Box::new(left), Box::new(right));
        }
    }

    fn comparison(&mut self, no_in: bool) -> Result<Expr> {
        let mut left = self.concat(no_in)?;
        loop {
            if self.is("|") && matches!(self.ahead(1), Token::Name(name) if name == "getline") {
                self.at += 2;
                let place = self.optional_place()?;
                left = Expr::Getline(place, Source::Command(Box::new(left)));
                continue;
            }
            if self.is("|&") && matches!(self.ahead(1), Token::Name(name) if name == "getline") {
                self.at += 2;
                let place = self.optional_place()?;
                left = Expr::Getline(place, Source::Both(Box::new(left)));
                continue;
            }
            let order = match self.peek() {
                Token::Op("<") => Order::Less,
                Token::Op("<=") => Order::LessEqual,
                Token::Op("==") => Order::Equal,
                Token::Op("!=") => Order::NotEqual,
                Token::Op(">") if !self.no_gt => Order::Greater,
                Token::Op(">=") => Order::GreaterEqual,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.concat(no_in)?;
            left = Expr::Compare(order, Box::new(left), Box::new(right));
        }
    }

    fn starts_operand(&self, no_in: bool) -> bool {
        match self.peek() {
            Token::Num(_) | Token::Str(_) | Token::Regex(_) | Token::FuncName(_) => !self.is_name("in") || no_in,
            Token::Name(name) => !matches!(name.as_str(), "in" | "else" | "while" | "getline"),
            Token::Op(op) => matches!(*op, "$" | "(" | "-" | "+" | "++" | "--" | "!" | "@"),
            _ => false,
        }
    }

    pub(super) fn concat(&mut self, no_in: bool) -> Result<Expr> {
        let first = self.additive()?;
        let mut items = vec![first];
        while self.starts_operand(no_in) && !self.is("+") && !self.is("-") && !self.is("!") {
            items.push(self.additive()?);
        }
        if items.len() > 1 {
            return Ok(Expr::Concat(items));
        }
        match items.pop() {
            Some(only) => Ok(only),
            None => self.unexpected(),
        }
    }

    fn additive(&mut self) -> Result<Expr> {
        let mut left = self.multiplicative()?;
        loop {
            let op = match self.peek() {
                Token::Op("+") => Arith::Add,
                Token::Op("-") => Arith::Sub,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.multiplicative()?;
            left = Expr::Arith(op, Box::new(left), Box::new(right));
        }
    }

    fn multiplicative(&mut self) -> Result<Expr> {
        let mut left = self.unary()?;
        loop {
            let op = match self.peek() {
                Token::Op("*") => Arith::Mul,
                Token::Op("/") => Arith::Div,
                Token::Op("%") => Arith::Mod,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.unary()?;
            left = Expr::Arith(op, Box::new(left), Box::new(right));
        }
    }

    pub(super) fn unary(&mut self) -> Result<Expr> {
        if self.accept("!") {
            return Ok(Expr::Not(Box::new(self.unary()?)));
        }
        if self.accept("-") {
            return Ok(match self.unary()? {
                Expr::Num(number) => Expr::Num(-number),
                other => Expr::Neg(Box::new(other)),
            });
        }
        if self.accept("+") {
            return Ok(Expr::Plus(Box::new(self.unary()?)));
        }
        self.power()
    }

    fn power(&mut self) -> Result<Expr> {
        let base = self.postfix()?;
        if !self.accept("^") {
            return Ok(base);
        }
        // Right-associative, and the exponent may have a sign.
        let exponent = if self.accept("-") {
            Expr::Neg(Box::new(self.power()?))
        } else if self.accept("+") {
            self.power()?
        } else if self.accept("!") {
            Expr::Not(Box::new(self.power()?))
        } else {
            self.power()?
        };
        Ok(Expr::Arith(Arith::Pow, Box::new(base), Box::new(exponent)))
    }

    fn postfix(&mut self) -> Result<Expr> {
        let expr = self.primary()?;
        let place = match into_place(expr) {
            Ok(place) => place,
            Err(expr) => return Ok(expr),
        };
        for (op, delta) in [("++", 1.0), ("--", -1.0)] {
            if self.accept(op) {
                return Ok(Expr::Step(false, delta, place));
            }
        }
        self.assignment(place)
    }

    /// Returns an assignment, when an assigning operator follows.
    fn assignment(&mut self, place: Place) -> Result<Expr> {
        let op = match self.peek() {
            Token::Op("=") => None,
            Token::Op("+=") => Some(Arith::Add),
            Token::Op("-=") => Some(Arith::Sub),
            Token::Op("*=") => Some(Arith::Mul),
            Token::Op("/=") => Some(Arith::Div),
            Token::Op("%=") => Some(Arith::Mod),
            Token::Op("^=") => Some(Arith::Pow),
            _ => return Ok(Expr::Place(place)),
        };
        self.at += 1;
        self.skip_newlines();
        let value = self.ternary(false)?;
        Ok(match op {
            Some(op) => Expr::Update(op, place, Box::new(value)),
            None => append(place, value),
        })
    }

    fn optional_place(&mut self) -> Result<Option<Box<Place>>> {
        let starts = match self.peek() {
            Token::Name(name) => name != "in",
            Token::Op("$") => true,
            _ => false,
        };
        if !starts {
            return Ok(None);
        }
        match into_place(self.primary()?) {
            Ok(place) => Ok(Some(Box::new(place))),
            Err(_) => self.unexpected(),
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        match self.advance() {
            Token::Num(number) => Ok(Expr::Num(number)),
            Token::Str(text) => Ok(Expr::Str(text)),
            Token::Regex(pattern) => Ok(Expr::Regex(self.regex(&pattern)?)),
            Token::Op("$") => {
                let index = if self.is("++") || self.is("--") { self.primary()? } else { self.field_index()? };
                Ok(Expr::Place(Place::Field(Box::new(index))))
            }
            Token::Op(op @ ("++" | "--")) => {
                let delta = if op == "++" { 1.0 } else { -1.0 };
                match into_place(self.primary()?) {
                    Ok(place) => Ok(Expr::Step(true, delta, place)),
                    Err(_) => self.unexpected(),
                }
            }
            Token::Op("(") => {
                let mut items = self.list(")")?;
                match items.len() {
                    0 => {
                        self.at -= 1;
                        self.unexpected()
                    }
                    1 => Ok(Expr::Group(Box::new(items.remove(0)))),
                    _ => Ok(Expr::List(items)),
                }
            }
            Token::Op("-") => Ok(Expr::Neg(Box::new(self.primary()?))),
            Token::Op("+") => Ok(Expr::Plus(Box::new(self.primary()?))),
            Token::Op("!") => Ok(Expr::Not(Box::new(self.primary()?))),
            Token::Op("@") => {
                let Token::FuncName(name) = self.advance() else {
                    self.at -= 1;
                    return self.unexpected();
                };
                let var = self.variable(&name);
                self.expect("(")?;
                Ok(Expr::Indirect(var, self.list(")")?))
            }
            Token::FuncName(name) => self.call(&name),
            Token::Name(name) => self.name(&name),
            _ => {
                self.at -= 1;
                self.unexpected()
            }
        }
    }

    /// Parses the operand of `$`, which binds tighter than anything but grouping.
    fn field_index(&mut self) -> Result<Expr> {
        if self.accept("-") {
            return Ok(Expr::Neg(Box::new(self.primary()?)));
        }
        self.primary()
    }

    fn name(&mut self, name: &str) -> Result<Expr> {
        if name == "getline" {
            let place = self.optional_place()?;
            if self.accept("<") {
                let file = self.primary()?;
                return Ok(Expr::Getline(place, Source::File(Box::new(file))));
            }
            return Ok(Expr::Getline(place, Source::Main));
        }
        if let Some(function) = builtin(name) {
            if self.is("(") {
                return self.call(name);
            }
            if function == Builtin::Length {
                return Ok(Expr::Builtin(function, Vec::new()));
            }
            return self.unexpected();
        }
        if matches!(
            name,
            "function" | "func" | "BEGIN" | "END" | "if" | "else" | "while" | "for" | "do" | "print" | "printf" | "next"
        ) {
            self.at -= 1;
            return self.unexpected();
        }
        if self.is("[") {
            let array = self.array(name);
            let mut path = self.subscripts()?;
            return Ok(Expr::Place(match path.pop() {
                Some(only) if path.is_empty() => Place::Element(array, only),
                Some(last) => {
                    path.push(last);
                    Place::Deep(array, path)
                }
                None => Place::Var(array),
            }));
        }
        let var = self.variable(name);
        Ok(Expr::Place(Place::Var(var)))
    }

    fn call(&mut self, name: &str) -> Result<Expr> {
        if name == "getline" {
            return self.name(name);
        }
        self.expect("(")?;
        if let Some(function) = builtin(name) {
            let array_arguments: &[usize] = match function {
                Builtin::Split | Builtin::Patsplit => &[1, 3],
                Builtin::Match => &[2],
                Builtin::Asort | Builtin::Asorti => &[0, 1],
                Builtin::Isarray => &[],
                _ => &[],
            };
            self.note_arrays(array_arguments);
            let args = self.list(")")?;
            let (least, most) = arity(function);
            if args.len() < least || args.len() > most {
                self.at -= 1;
                return self.unexpected();
            }
            return Ok(Expr::Builtin(function, args));
        }
        let callee = self.function(name);
        let scope = self.scope;
        let args = self.list(")")?;
        for (index, arg) in args.iter().enumerate() {
            if let Expr::Place(Place::Var(var @ (Var::Global(_) | Var::Local(_)))) = arg {
                self.passed.push((scope, *var, callee, index));
            }
        }
        Ok(Expr::Call(callee, args))
    }

    /// Marks plain names at the given argument positions as arrays, before they are read.
    fn note_arrays(&mut self, positions: &[usize]) {
        let (mut depth, mut index, mut ahead) = (0usize, 0, 0);
        let mut found = Vec::new();
        loop {
            match self.ahead(ahead) {
                Token::Op("(" | "[" | "{") => depth += 1,
                Token::Op(")" | "]" | "}") if depth == 0 => break,
                Token::Op(")" | "]" | "}") => depth -= 1,
                Token::Op(",") if depth == 0 => index += 1,
                Token::Name(name) if depth == 0 && positions.contains(&index) => found.push(name.clone()),
                Token::End => break,
                _ => {}
            }
            ahead += 1;
        }
        for name in found {
            self.array(&name);
        }
    }
}

fn arity(function: Builtin) -> (usize, usize) {
    match function {
        Builtin::Length => (0, 1),
        Builtin::Rand | Builtin::Systime => (0, 0),
        Builtin::Srand | Builtin::Fflush => (0, 1),
        Builtin::Strftime => (0, 3),
        Builtin::Substr | Builtin::Sub | Builtin::Gsub => (2, 3),
        Builtin::Split | Builtin::Patsplit => (2, 4),
        Builtin::Gensub => (3, 4),
        Builtin::Match => (2, 3),
        Builtin::Sprintf => (1, usize::MAX),
        Builtin::And | Builtin::Or | Builtin::Xor => (2, usize::MAX),
        Builtin::Atan2 | Builtin::Index | Builtin::Lshift | Builtin::Rshift => (2, 2),
        Builtin::Asort | Builtin::Asorti => (1, 3),
        Builtin::Close | Builtin::Mktime => (1, 2),
        _ => (1, 1),
    }
}

/// `x = x y` grows `x` where it is.
fn append(place: Place, value: Expr) -> Expr {
    if let (Place::Var(var @ (Var::Global(_) | Var::Local(_))), Expr::Concat(items)) = (&place, &value)
        && matches!(items.first(), Some(Expr::Place(Place::Var(first))) if first == var)
        && items[1..].iter().all(|item| matches!(item, Expr::Str(_) | Expr::Num(_) | Expr::Place(_)))
    {
        let var = *var;
        let Expr::Concat(mut items) = value else { return Expr::Num(0.0) };
        items.remove(0);
        return Expr::Append(var, items);
    }
    Expr::Assign(place, Box::new(value))
}
