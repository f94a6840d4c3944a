//! From the text of an expression to its tree, in bash's order of looking at things, so that errors name the same token.

use super::token::{Token, Tokens};
use super::{ArithError, Binary, Expression, MAX_DEPTH, Node, Place, Subscript, error};

/// Maximum number of operators of an expression, which bounds the depth of its tree.
const MAX_JOINTS: u32 = 1000;

struct Parser<'a> {
    tokens: Tokens<'a>,
    depth: u32,
    /// Operators that were not worked out while reading: each may deepen the tree by one.
    joints: u32,
}

pub(super) fn parse(text: &str, depth: u32) -> Result<Expression, ArithError> {
    let mut parser = Parser { tokens: Tokens::new(text), depth, joints: 0 };
    parser.tokens.advance()?;
    if parser.tokens.current == Token::End {
        return Ok(Expression { text: String::new(), root: Node::Number(0) });
    }
    let root = parser.comma()?;
    if parser.tokens.current != Token::End {
        return parser.tokens.fail("syntax error in expression");
    }
    Ok(Expression { text: text.to_owned(), root })
}

/// Returns how tightly an operator binds; `**` is read on its own, being right-associative.
fn level(operator: Binary) -> u8 {
    match operator {
        Binary::BitOr => 1,
        Binary::BitXor => 2,
        Binary::BitAnd => 3,
        Binary::Equal | Binary::NotEqual => 4,
        Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual => 5,
        Binary::ShiftLeft | Binary::ShiftRight => 6,
        Binary::Add | Binary::Subtract => 7,
        Binary::Multiply | Binary::Divide | Binary::Remainder => 8,
        Binary::Power => 9,
    }
}

impl Parser<'_> {
    fn deeper<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, ArithError>) -> Result<T, ArithError> {
        if self.depth >= MAX_DEPTH {
            return self.tokens.fail("expression recursion level exceeded");
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Counts a node that was built from two others.
    fn joined(&mut self, node: &Node) -> Result<(), ArithError> {
        self.joints += u32::from(!matches!(node, Node::Number(_)));
        if self.joints > MAX_JOINTS { self.tokens.fail("expression recursion level exceeded") } else { Ok(()) }
    }

    fn comma(&mut self) -> Result<Node, ArithError> {
        let mut node = self.assignment()?;
        while self.tokens.current == Token::Comma {
            self.tokens.advance()?;
            node = Node::Comma(Box::new(node), Box::new(self.assignment()?));
            self.joined(&node)?;
        }
        Ok(node)
    }

    fn assignment(&mut self) -> Result<Node, ArithError> {
        let left = self.conditional()?;
        let operator = match self.tokens.current {
            Token::Assign => None,
            Token::AssignWith(operator) => Some(operator),
            _ => return Ok(left),
        };
        // A name that an operator has used up is a value.
        let (Node::Get(_), Token::Name { .. }) = (&left, self.tokens.last) else {
            return self.tokens.fail("attempted assignment to non-variable");
        };
        let place = self.place(self.tokens.last)?;
        self.tokens.advance()?;
        let value = Box::new(self.deeper(Self::assignment)?);
        let error_at = self.tokens.last_at;
        let node = match operator {
            None => Node::Assign { place, value },
            Some(operator) => Node::AssignWith { place, operator, value, error_at },
        };
        Ok(node)
    }

    fn conditional(&mut self) -> Result<Node, ArithError> {
        let condition = self.or()?;
        if self.tokens.current != Token::Question {
            return Ok(condition);
        }
        self.tokens.advance()?;
        if matches!(self.tokens.current, Token::End | Token::Colon) {
            return self.tokens.fail("expression expected");
        }
        let yes = self.deeper(Self::comma)?;
        if self.tokens.current != Token::Colon {
            return self.tokens.fail("`:' expected for conditional expression");
        }
        self.tokens.advance()?;
        if self.tokens.current == Token::End {
            return self.tokens.fail("expression expected");
        }
        let no = self.deeper(Self::conditional)?;
        self.tokens.last = Token::Value;
        Ok(Node::Conditional(Box::new((condition, yes, no))))
    }

    fn or(&mut self) -> Result<Node, ArithError> {
        let mut node = self.and()?;
        while self.tokens.current == Token::Or {
            self.tokens.advance()?;
            node = Node::Or(Box::new(node), Box::new(self.and()?));
            self.joined(&node)?;
        }
        Ok(node)
    }

    fn and(&mut self) -> Result<Node, ArithError> {
        let mut node = self.binary(1)?;
        while self.tokens.current == Token::And {
            self.tokens.advance()?;
            node = Node::And(Box::new(node), Box::new(self.binary(1)?));
            self.joined(&node)?;
        }
        Ok(node)
    }

    /// Operators that bind at least this tightly.
    fn binary(&mut self, least: u8) -> Result<Node, ArithError> {
        let mut left = self.unary()?;
        while let Token::Binary(operator) = self.tokens.current {
            let level = level(operator);
            if level < least {
                break;
            }
            let operand_at = self.tokens.next_at();
            self.tokens.advance()?;
            let power = operator == Binary::Power;
            let right = if power { self.deeper(|p| p.binary(level))? } else { self.binary(level + 1)? };
            let error_at = if power { self.tokens.last_at } else { operand_at };
            left = fold(operator, left, right, error_at);
            self.joined(&left)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, ArithError> {
        let token = self.tokens.current;
        match token {
            Token::Not | Token::Complement | Token::Binary(Binary::Subtract | Binary::Add) => {
                self.tokens.advance()?;
                let operand = self.deeper(Self::unary)?;
                Ok(match (token, operand) {
                    (Token::Binary(Binary::Subtract), Node::Number(value)) => Node::Number(value.wrapping_neg()),
                    (Token::Binary(Binary::Subtract), operand) => Node::Negate(Box::new(operand)),
                    (Token::Binary(_), operand) => operand,
                    (Token::Not, operand) => Node::Not(Box::new(operand)),
                    (_, operand) => Node::Complement(Box::new(operand)),
                })
            }
            Token::Increment | Token::Decrement => {
                self.tokens.advance()?;
                let name @ Token::Name { .. } = self.tokens.current else {
                    return self.tokens.fail("identifier expected after pre-increment or pre-decrement");
                };
                let place = self.place(name)?;
                self.tokens.advance()?;
                self.tokens.last = Token::Value;
                Ok(Node::Step { place, by: if token == Token::Increment { 1 } else { -1 } })
            }
            Token::Open => {
                self.tokens.advance()?;
                let inner = self.deeper(Self::comma)?;
                if self.tokens.current != Token::Close {
                    return self.tokens.fail("missing `)'");
                }
                self.tokens.current = Token::Value;
                self.tokens.advance()?;
                self.tokens.last = Token::Close;
                Ok(inner)
            }
            Token::Number(value) => {
                self.tokens.advance()?;
                Ok(Node::Number(value))
            }
            Token::Name { .. } => {
                let place = self.place(token)?;
                self.tokens.advance()?;
                let by = match self.tokens.current {
                    Token::IncrementAfter => 1,
                    Token::DecrementAfter => -1,
                    _ => return Ok(Node::Get(place)),
                };
                self.tokens.current = Token::Value;
                self.tokens.advance()?;
                self.tokens.last = Token::Value;
                Ok(Node::StepAfter { place, by })
            }
            _ => self.tokens.fail("syntax error: operand expected"),
        }
    }

    fn place(&mut self, token: Token) -> Result<Place, ArithError> {
        let Token::Name { start, end, subscript } = token else {
            return self.tokens.fail("syntax error: operand expected");
        };
        let text = self.tokens.text;
        let name = text.get(start..end).unwrap_or_default().to_owned();
        let subscript = subscript.map(|(from, to)| {
            let inner = text.get(from..to).unwrap_or_default();
            let expression = if inner.trim().is_empty() {
                let shown = text.get(start..to + 1).unwrap_or_default();
                Err(ArithError { message: format!("{shown}: bad array subscript"), from_variables: true })
            } else if self.depth >= MAX_DEPTH {
                Err(error(inner, inner.len(), "expression recursion level exceeded", 0))
            } else {
                parse(inner, self.depth + 1)
            };
            Box::new(Subscript { text: inner.to_owned(), expression })
        });
        Ok(Place { name, subscript, error_at: start })
    }
}

/// Joins two operands, at once when both are known and nothing can go wrong.
fn fold(operator: Binary, left: Node, right: Node, error_at: usize) -> Node {
    if let (Node::Number(a), Node::Number(b)) = (&left, &right)
        && let Ok(value) = super::eval::apply(operator, *a, *b)
    {
        return Node::Number(value);
    }
    Node::Binary { operator, left: Box::new(left), right: Box::new(right), error_at }
}
