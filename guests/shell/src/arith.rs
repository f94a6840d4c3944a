//! Arithmetic: the expressions of `$(( ))`, `(( ))`, `let`, subscripts and integer variables.
//!
//! Works on text whose expansions are done. Variables are reached through a trait, so nothing is known here of where
//! they live. A parsed [`Expression`] can be kept and evaluated again: loops do not parse twice.

use std::fmt;

mod eval;
mod parse;
mod token;

pub use token::parse_integer;

/// Maximum nesting of parentheses, and of variables that name variables. bash allows 1 024, on a larger stack.
pub const MAX_DEPTH: u32 = 256;

/// Where the variables of an expression live. An `Err` is the text that bash prints after `bash: line N: `.
pub trait Variables {
    /// Returns the text of a variable (of element 0, of an array).
    fn get(&mut self, name: &str) -> Result<Option<&str>, String>;
    /// Assigns to a variable.
    fn set(&mut self, name: &str, value: i64) -> Result<(), String>;
    /// Returns whether subscripts of this variable are keys and not numbers.
    fn is_associative(&mut self, name: &str) -> bool;
    /// Returns a subscript that holds quotes or expansions, expanded. `Err` if that failed, after reporting it.
    fn expand(&mut self, subscript: &str) -> Result<String, String>;
    /// Returns the text of an element; a negative index counts from the end.
    fn get_index(&mut self, name: &str, index: i64) -> Result<Option<&str>, String>;
    /// Assigns to an element.
    fn set_index(&mut self, name: &str, index: i64, value: i64) -> Result<(), String>;
    /// Returns the text of an element of an associative array.
    fn get_key(&mut self, name: &str, key: &str) -> Result<Option<&str>, String>;
    /// Assigns to an element of an associative array.
    fn set_key(&mut self, name: &str, key: &str, value: i64) -> Result<(), String>;
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArithError {
    /// What bash prints after `bash: line N: ` (and after `let: ` or `((: ` where those are named).
    pub message: String,
    /// It came from [`Variables`] (an unset variable under `set -u`, a readonly one), not from the expression.
    pub from_variables: bool,
}

impl fmt::Display for ArithError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ArithError {}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
}

/// A part of an expression. Positions are byte offsets of the text that an error is about.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(i64),
    Get(Place),
    Negate(Box<Node>),
    Not(Box<Node>),
    Complement(Box<Node>),
    Binary {
        operator: Binary,
        left: Box<Node>,
        right: Box<Node>,
        error_at: usize,
    },
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Conditional(Box<(Node, Node, Node)>),
    Assign {
        place: Place,
        value: Box<Node>,
    },
    AssignWith {
        place: Place,
        operator: Binary,
        value: Box<Node>,
        error_at: usize,
    },
    /// `++x` and `--x`.
    Step {
        place: Place,
        by: i64,
    },
    /// `x++` and `x--`.
    StepAfter {
        place: Place,
        by: i64,
    },
    Comma(Box<Node>, Box<Node>),
}

/// Something that can be assigned to; `error_at` is where its name begins.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    name: String,
    subscript: Option<Box<Subscript>>,
    error_at: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Subscript {
    text: String,
    /// Parsed ahead; an error shows only if the subscript is taken as a number.
    expression: Result<Expression, ArithError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    ShiftLeft,
    ShiftRight,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    BitAnd,
    BitXor,
    BitOr,
}

impl Expression {
    /// Reads an expression; an empty text is 0.
    pub fn parse(text: &str) -> Result<Self, ArithError> {
        parse::parse(text, 0)
    }

    /// Returns the value, when it needs no variables.
    pub fn constant(&self) -> Option<i64> {
        match self.root {
            Node::Number(value) => Some(value),
            _ => None,
        }
    }

    /// Evaluates it, with its assignments.
    pub fn eval<V: Variables + ?Sized>(&self, variables: &mut V) -> Result<i64, ArithError> {
        eval::evaluate(self, variables, 0)
    }
}

/// Reads and evaluates an expression.
pub fn evaluate<V: Variables + ?Sized>(text: &str, variables: &mut V) -> Result<i64, ArithError> {
    if let Some(value) = parse_integer(text) {
        return Ok(value);
    }
    Expression::parse(text)?.eval(variables)
}

/// Returns an error about a text, from a position on.
fn error(text: &str, end: usize, message: &str, at: usize) -> ArithError {
    let shown = text.get(..end).unwrap_or(text);
    let token = shown.get(at..).unwrap_or_default();
    let shown = shown.trim_start_matches([' ', '\t', '\n']);
    ArithError { message: format!("{shown}: {message} (error token is \"{token}\")"), from_variables: false }
}

#[cfg(test)]
mod tests;
