//! Statements and expressions of bc.

/// Before the name of an array parameter that is the caller's own array.
pub(super) const BY_REFERENCE: char = '*';

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(String),
    Text(String),
    Name(String),
    Op(&'static str),
    Newline,
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    Var(String),
    Element(String, Box<Expr>),
    Scale,
    Ibase,
    Obase,
    Last,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Number(String),
    Place(Place),
    Assign(Place, &'static str, Box<Expr>),
    Step(Place, bool, bool),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Neg(Box<Expr>),
    Not(Box<Expr>),
    Call(String, Vec<Arg>),
    Group(Box<Expr>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arg {
    Expr(Expr),
    Array(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stmt {
    Expr(Expr),
    Text(String),
    Print(Vec<Result<String, Expr>>),
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    While(Expr, Box<Stmt>),
    For(Option<Expr>, Option<Expr>, Option<Expr>, Box<Stmt>),
    Block(Vec<Stmt>),
    Break,
    Continue,
    Return(Option<Expr>),
    Quit,
    Halt,
    Define(String, bool, Vec<(String, bool)>, Vec<(String, bool)>, Vec<Stmt>),
}

const OPS: &[&str] = &[
    "<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "+", "-", "*", "/", "%", "^", "=", "<",
    ">", "!", "(", ")", "{", "}", "[", "]", ",", ";",
];

/// Why a text cannot be cut into tokens.
pub(super) enum Lexed {
    /// A string or comment is still open: more text may close it.
    Open,
    /// A character that cannot begin a token.
    Illegal(char),
}

fn lex(text: &[u8]) -> Result<Vec<Token>, Lexed> {
    let text: Vec<char> = String::from_utf8_lossy(text).chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let char = text[at];
        match char {
            '\n' => {
                tokens.push(Token::Newline);
                at += 1;
            }
            ' ' | '\t' | '\r' => at += 1,
            '\\' if text.get(at + 1) == Some(&'\n') => at += 2,
            '#' => {
                while at < text.len() && text[at] != '\n' {
                    at += 1;
                }
            }
            '/' if text.get(at + 1) == Some(&'*') => {
                at += 2;
                while at < text.len() && !(text[at] == '*' && text.get(at + 1) == Some(&'/')) {
                    at += 1;
                }
                if at >= text.len() {
                    return Err(Lexed::Open);
                }
                at += 2;
            }
            '"' => {
                let Some(length) = text[at + 1..].iter().position(|char| *char == '"') else { return Err(Lexed::Open) };
                let end = at + 1 + length;
                tokens.push(Token::Text(text[at + 1..end].iter().collect()));
                at = end + 1;
            }
            '0'..='9' | 'A'..='Z' | '.' => {
                let mut number = String::new();
                while let Some(&char) = text.get(at) {
                    match char {
                        '0'..='9' | 'A'..='Z' => number.push(char),
                        '.' if !number.contains('.') => number.push(char),
                        '\\' if text.get(at + 1) == Some(&'\n') => at += 1,
                        _ => break,
                    }
                    at += 1;
                }
                if number == "." {
                    tokens.push(Token::Name("last".to_string()));
                } else {
                    tokens.push(Token::Number(number));
                }
            }
            'a'..='z' => {
                let start = at;
                while at < text.len() && (text[at].is_ascii_lowercase() || text[at].is_ascii_digit() || text[at] == '_') {
                    at += 1;
                }
                tokens.push(Token::Name(text[start..at].iter().collect()));
            }
            _ => {
                let rest: String = text[at..(at + 2).min(text.len())].iter().collect();
                let Some(op) = OPS.iter().find(|op| rest.starts_with(**op)) else { return Err(Lexed::Illegal(char)) };
                tokens.push(Token::Op(op));
                at += op.len();
            }
        }
    }
    tokens.push(Token::End);
    Ok(tokens)
}

pub(super) struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

type Parse<T> = Result<T, ()>;

impl Parser {
    pub fn new(text: &[u8]) -> Result<Self, Lexed> {
        Ok(Self { tokens: lex(text)?, at: 0 })
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn is(&self, op: &str) -> bool {
        matches!(self.peek(), Token::Op(found) if *found == op)
    }

    fn accept(&mut self, op: &str) -> bool {
        let found = self.is(op);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, op: &str) -> Parse<()> {
        if self.accept(op) { Ok(()) } else { Err(()) }
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(name) if name == word);
        self.at += usize::from(found);
        found
    }

    fn newlines(&mut self) {
        while *self.peek() == Token::Newline {
            self.at += 1;
        }
    }

    /// Returns whether the text ended in the middle of a statement.
    pub fn wants_more(&self) -> bool {
        *self.peek() == Token::End
    }

    /// Returns the line the reader stands at, counted from 0; an error in a statement that a newline cut short is reported at the next.
    pub fn line(&self) -> usize {
        self.tokens[..(self.at + 1).min(self.tokens.len())].iter().filter(|token| **token == Token::Newline).count()
    }

    /// Continues at the next line after an error.
    pub fn recover(&mut self) {
        while !matches!(self.peek(), Token::Newline | Token::End) {
            self.at += 1;
        }
    }

    /// Returns the next statements of one line; `None` at the end.
    pub fn next(&mut self) -> Option<Parse<Vec<Stmt>>> {
        loop {
            match self.peek() {
                Token::End => return None,
                Token::Newline | Token::Op(";") => self.at += 1,
                _ => break,
            }
        }
        Some(self.line_statements())
    }

    fn line_statements(&mut self) -> Parse<Vec<Stmt>> {
        let mut statements = Vec::new();
        loop {
            statements.push(self.statement()?);
            match self.peek() {
                Token::Op(";") => {
                    self.at += 1;
                    if matches!(self.peek(), Token::Newline | Token::End) {
                        return Ok(statements);
                    }
                }
                Token::Newline | Token::End => return Ok(statements),
                // A block or a definition may be followed directly.
                _ if matches!(self.tokens[self.at - 1], Token::Op("}")) => return Ok(statements),
                _ => return Err(()),
            }
        }
    }

    /// Returns whether `quit` stands anywhere in these statements: it ends bc when it is read, not when it is reached.
    pub fn quits(statements: &[Stmt]) -> bool {
        statements.iter().any(|statement| match statement {
            Stmt::Quit => true,
            Stmt::If(_, then, otherwise) => {
                Self::quits(std::slice::from_ref(then))
                    || otherwise.as_ref().is_some_and(|it| Self::quits(std::slice::from_ref(it)))
            }
            Stmt::While(_, body) | Stmt::For(_, _, _, body) => Self::quits(std::slice::from_ref(body)),
            Stmt::Block(body) | Stmt::Define(_, _, _, _, body) => Self::quits(body),
            _ => false,
        })
    }

    fn block(&mut self) -> Parse<Vec<Stmt>> {
        let mut body = Vec::new();
        loop {
            while matches!(self.peek(), Token::Newline) || self.is(";") {
                self.at += 1;
            }
            if self.accept("}") {
                return Ok(body);
            }
            if *self.peek() == Token::End {
                return Err(());
            }
            body.push(self.statement()?);
            if !matches!(self.peek(), Token::Newline)
                && !self.is(";")
                && !self.is("}")
                && !matches!(self.tokens[self.at - 1], Token::Op("}"))
            {
                return Err(());
            }
        }
    }

    fn body(&mut self) -> Parse<Box<Stmt>> {
        self.newlines();
        Ok(Box::new(self.statement()?))
    }

    fn statement(&mut self) -> Parse<Stmt> {
        if let Token::Text(text) = self.peek().clone() {
            self.at += 1;
            return Ok(Stmt::Text(text));
        }
        if self.accept("{") {
            return Ok(Stmt::Block(self.block()?));
        }
        if self.word("define") {
            return self.define();
        }
        if self.word("if") {
            self.expect("(")?;
            let condition = self.expr()?;
            self.expect(")")?;
            let then = self.body()?;
            let before = self.at;
            while matches!(self.peek(), Token::Newline) || self.is(";") {
                self.at += 1;
            }
            if self.word("else") {
                return Ok(Stmt::If(condition, then, Some(self.body()?)));
            }
            self.at = before;
            return Ok(Stmt::If(condition, then, None));
        }
        if self.word("while") {
            self.expect("(")?;
            let condition = self.expr()?;
            self.expect(")")?;
            return Ok(Stmt::While(condition, self.body()?));
        }
        if self.word("for") {
            self.expect("(")?;
            let mut parts = Vec::new();
            for close in [";", ";", ")"] {
                parts.push(if self.is(close) { None } else { Some(self.expr()?) });
                self.expect(close)?;
            }
            let step = parts.pop().flatten();
            let condition = parts.pop().flatten();
            let start = parts.pop().flatten();
            return Ok(Stmt::For(start, condition, step, self.body()?));
        }
        for (word, statement) in
            [("break", Stmt::Break), ("continue", Stmt::Continue), ("quit", Stmt::Quit), ("halt", Stmt::Halt)]
        {
            if self.word(word) {
                return Ok(statement);
            }
        }
        if self.word("return") {
            if matches!(self.peek(), Token::Newline | Token::End) || self.is(";") || self.is("}") {
                return Ok(Stmt::Return(None));
            }
            return Ok(Stmt::Return(Some(self.expr()?)));
        }
        if self.word("print") {
            let mut items = Vec::new();
            loop {
                items.push(match self.peek().clone() {
                    Token::Text(text) => {
                        self.at += 1;
                        Ok(text)
                    }
                    _ => Err(self.expr()?),
                });
                if !self.accept(",") {
                    return Ok(Stmt::Print(items));
                }
            }
        }
        Ok(Stmt::Expr(self.expr()?))
    }

    fn names(&mut self) -> Parse<Vec<(String, bool)>> {
        let mut names = Vec::new();
        loop {
            let reference = self.accept("*");
            let Token::Name(mut name) = self.peek().clone() else {
                if reference {
                    return Err(());
                }
                break;
            };
            self.at += 1;
            let array = self.accept("[");
            if array {
                self.expect("]")?;
            }
            if reference {
                name.insert(0, BY_REFERENCE);
            }
            names.push((name, array));
            if !self.accept(",") {
                break;
            }
        }
        Ok(names)
    }

    fn define(&mut self) -> Parse<Stmt> {
        let named = matches!(self.tokens.get(self.at + 1), Some(Token::Op("(")));
        let void = !named && self.word("void");
        let Token::Name(name) = self.peek().clone() else { return Err(()) };
        self.at += 1;
        self.expect("(")?;
        let params = self.names()?;
        self.expect(")")?;
        self.newlines();
        self.expect("{")?;
        self.newlines();
        let mut locals = Vec::new();
        if self.word("auto") {
            locals = self.names()?;
        }
        let body = self.block()?;
        Ok(Stmt::Define(name, void, params, locals, body))
    }

    pub fn expr(&mut self) -> Parse<Expr> {
        self.or()
    }

    fn or(&mut self) -> Parse<Expr> {
        let mut left = self.and()?;
        while self.accept("||") {
            left = Expr::Binary("||", Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Parse<Expr> {
        let mut left = self.not()?;
        while self.accept("&&") {
            left = Expr::Binary("&&", Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Parse<Expr> {
        if self.accept("!") {
            return Ok(Expr::Not(Box::new(self.not()?)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parse<Expr> {
        let mut left = self.additive()?;
        while let Token::Op(op @ ("<" | "<=" | ">" | ">=" | "==" | "!=")) = *self.peek() {
            self.at += 1;
            left = Expr::Binary(op, Box::new(left), Box::new(self.additive()?));
        }
        Ok(left)
    }

    fn additive(&mut self) -> Parse<Expr> {
        let mut left = self.multiplicative()?;
        while let Token::Op(op @ ("+" | "-")) = *self.peek() {
            self.at += 1;
            left = Expr::Binary(op, Box::new(left), Box::new(self.multiplicative()?));
        }
        Ok(left)
    }

    fn multiplicative(&mut self) -> Parse<Expr> {
        let mut left = self.power()?;
        while let Token::Op(op @ ("*" | "/" | "%")) = *self.peek() {
            self.at += 1;
            left = Expr::Binary(op, Box::new(left), Box::new(self.power()?));
        }
        Ok(left)
    }

    fn power(&mut self) -> Parse<Expr> {
        let base = self.unary()?;
        if self.accept("^") {
            return Ok(Expr::Binary("^", Box::new(base), Box::new(self.power()?)));
        }
        Ok(base)
    }

    fn unary(&mut self) -> Parse<Expr> {
        if self.accept("-") {
            return Ok(Expr::Neg(Box::new(self.unary()?)));
        }
        if self.accept("!") {
            return Ok(Expr::Not(Box::new(self.unary()?)));
        }
        for (op, up) in [("++", true), ("--", false)] {
            if self.accept(op) {
                let Expr::Place(place) = self.primary()? else { return Err(()) };
                return Ok(Expr::Step(place, up, true));
            }
        }
        let operand = self.primary()?;
        let Expr::Place(place) = operand else { return Ok(operand) };
        for (op, up) in [("++", true), ("--", false)] {
            if self.accept(op) {
                return Ok(Expr::Step(place, up, false));
            }
        }
        if let Token::Op(op @ ("=" | "+=" | "-=" | "*=" | "/=" | "%=" | "^=")) = *self.peek() {
            self.at += 1;
            return Ok(Expr::Assign(place, op, Box::new(self.expr()?)));
        }
        Ok(Expr::Place(place))
    }

    fn primary(&mut self) -> Parse<Expr> {
        let token = self.peek().clone();
        self.at += 1;
        match token {
            Token::Number(text) => Ok(Expr::Number(text)),
            Token::Op("(") => {
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(Expr::Group(Box::new(inner)))
            }
            Token::Name(name) => {
                if self.accept("(") {
                    let mut args = Vec::new();
                    while !self.accept(")") {
                        let array = match (self.peek().clone(), self.tokens.get(self.at + 1), self.tokens.get(self.at + 2)) {
                            (Token::Name(array), Some(Token::Op("[")), Some(Token::Op("]"))) => Some(array),
                            _ => None,
                        };
                        if let Some(array) = array {
                            self.at += 3;
                            args.push(Arg::Array(array));
                        } else {
                            args.push(Arg::Expr(self.expr()?));
                        }
                        if !self.is(")") {
                            self.expect(",")?;
                        }
                    }
                    return Ok(Expr::Call(name, args));
                }
                if self.accept("[") {
                    let index = self.expr()?;
                    self.expect("]")?;
                    return Ok(Expr::Place(Place::Element(name, Box::new(index))));
                }
                Ok(Expr::Place(match name.as_str() {
                    "scale" => Place::Scale,
                    "ibase" => Place::Ibase,
                    "obase" => Place::Obase,
                    "last" => Place::Last,
                    _ => Place::Var(name),
                }))
            }
            _ => {
                self.at -= 1;
                Err(())
            }
        }
    }
}
