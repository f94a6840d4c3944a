//! The tree of a filter.

use super::value::Json;

/// A place in a program: which of its texts, and the offset there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub text: usize,
    pub at: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Term {
    Identity,
    Constant(Json),
    Variable(String, Place),
    /// `$$$$name`, for the definitions alone: takes the value out of the variable.
    Take(String),
    Call(String, Vec<Term>, Place),
    /// A value, the key, and whether a mismatch is silent.
    Index(Box<Term>, Box<Term>, bool),
    /// `{"a b"}` and the like: the field of the key that waits below the value.
    OwnField,
    Slice(Box<Term>, Option<Box<Term>>, Option<Box<Term>>, bool),
    Each(Box<Term>, bool),
    Format(String, Box<Term>),
    Array(Box<Term>),
    Object(Vec<(Term, Term)>),
    Negate(Box<Term>),
    Pipe(Box<Term>, Box<Term>),
    Comma(Box<Term>, Box<Term>),
    /// A native function of two arguments, named like `_plus`.
    Binary(&'static str, Box<Term>, Box<Term>),
    And(Box<Term>, Box<Term>),
    Or(Box<Term>, Box<Term>),
    Alternative(Box<Term>, Box<Term>),
    Assign(Assign, Box<Term>, Box<Term>),
    If(Box<Term>, Box<Term>, Box<Term>),
    Try(Box<Term>, Option<Box<Term>>),
    Reduce(Box<Fold>),
    Foreach(Box<Fold>, Box<Term>),
    As(Box<Term>, Vec<Pattern>, Box<Term>),
    Define(std::rc::Rc<Definition>, Box<Term>),
    Label(String, Box<Term>),
    Break(String, Place),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Assign {
    Set,
    Modify,
    /// `+=` and its like: the native function.
    Update(&'static str),
    Default,
}

#[derive(Clone, Debug)]
pub(super) struct Fold {
    pub source: Term,
    pub patterns: Vec<Pattern>,
    pub start: Term,
    pub update: Term,
}

#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Variable(String),
    Array(Vec<Pattern>),
    /// Keys, the variable that is also set, and what the value must look like.
    Object(Vec<(Term, Option<String>, Option<Pattern>)>),
}

#[derive(Debug)]
pub(super) struct Definition {
    pub name: String,
    /// Names of parameters; values begin with `$`.
    pub parameters: Vec<String>,
    pub body: Term,
}

#[derive(Debug)]
pub(super) struct Import {
    pub path: String,
    /// The prefix or `$variable` it is known by; nothing for `include`.
    pub name: Option<String>,
    pub metadata: Option<Json>,
}

/// What a text holds.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub metadata: Option<Json>,
    pub imports: Vec<Import>,
    pub definitions: Vec<std::rc::Rc<Definition>>,
    pub main: Option<Term>,
}
