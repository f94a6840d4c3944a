//! The tree of an awk program, with names already resolved to places.

use std::rc::Rc;

use posix_regex::Regex;

use super::value::Text;

/// A variable: where it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Var {
    Global(usize),
    Local(usize),
    Special(Special),
}

/// Variables that mean something to the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Special {
    Nf,
    Nr,
    Fnr,
    Fs,
    Ofs,
    Ors,
    Rs,
    Subsep,
    Convfmt,
    Ofmt,
    Fpat,
    FieldWidths,
    IgnoreCase,
}

impl Special {
    /// Returns the variable with this name; `None` for one that means nothing to the interpreter.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "NF" => Self::Nf,
            "NR" => Self::Nr,
            "FNR" => Self::Fnr,
            "FS" => Self::Fs,
            "OFS" => Self::Ofs,
            "ORS" => Self::Ors,
            "RS" => Self::Rs,
            "SUBSEP" => Self::Subsep,
            "CONVFMT" => Self::Convfmt,
            "OFMT" => Self::Ofmt,
            "FPAT" => Self::Fpat,
            "FIELDWIDTHS" => Self::FieldWidths,
            "IGNORECASE" => Self::IgnoreCase,
            _ => return None,
        })
    }
}

#[derive(Debug)]
pub(super) enum Place {
    Var(Var),
    Field(Box<Expr>),
    Element(Var, Vec<Expr>),
    /// `a[i][j]…`: two subscripts or more.
    Deep(Var, Vec<Vec<Expr>>),
}

/// An array: a variable, or below it an element that is one.
#[derive(Debug)]
pub(super) struct ArrayPlace {
    pub var: Var,
    pub path: Vec<Vec<Expr>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    LessEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug)]
pub(super) enum Source {
    /// The main input.
    Main,
    File(Box<Expr>),
    Command(Box<Expr>),
    /// `|&`.
    Both(Box<Expr>),
}

#[derive(Debug)]
pub(super) enum Expr {
    Num(f64),
    Str(Text),
    /// A pattern standing alone: does `$0` match?
    Regex(Rc<Regex>),
    Place(Place),
    Assign(Place, Box<Expr>),
    /// `x = x y…`: appended in place.
    Append(Var, Vec<Expr>),
    Update(Arith, Place, Box<Expr>),
    /// Increment or decrement: before or after, by how much.
    Step(bool, f64, Place),
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    Plus(Box<Expr>),
    Arith(Arith, Box<Expr>, Box<Expr>),
    Compare(Order, Box<Expr>, Box<Expr>),
    Concat(Vec<Expr>),
    Match(bool, Box<Expr>, Box<Expr>),
    In(ArrayPlace, Vec<Expr>),
    Call(usize, Vec<Expr>),
    /// `@name(…)`: the function that the variable names.
    Indirect(Var, Vec<Expr>),
    Builtin(Builtin, Vec<Expr>),
    Getline(Option<Box<Place>>, Source),
    Group(Box<Expr>),
    /// `(a, b)` before `in` or `print`.
    List(Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    And,
    Asort,
    Asorti,
    Atan2,
    Close,
    Compl,
    Cos,
    Exp,
    Fflush,
    Gensub,
    Gsub,
    Index,
    Int,
    Isarray,
    Length,
    Log,
    Lshift,
    Match,
    Mktime,
    Or,
    Patsplit,
    Rand,
    Rshift,
    Sin,
    Split,
    Sprintf,
    Sqrt,
    Srand,
    Strftime,
    Strtonum,
    Sub,
    Substr,
    System,
    Systime,
    Tolower,
    Toupper,
    Typeof,
    Xor,
}

pub(super) fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "and" => Builtin::And,
        "asort" => Builtin::Asort,
        "asorti" => Builtin::Asorti,
        "atan2" => Builtin::Atan2,
        "close" => Builtin::Close,
        "compl" => Builtin::Compl,
        "cos" => Builtin::Cos,
        "exp" => Builtin::Exp,
        "fflush" => Builtin::Fflush,
        "gensub" => Builtin::Gensub,
        "gsub" => Builtin::Gsub,
        "index" => Builtin::Index,
        "int" => Builtin::Int,
        "isarray" => Builtin::Isarray,
        "length" => Builtin::Length,
        "log" => Builtin::Log,
        "lshift" => Builtin::Lshift,
        "match" => Builtin::Match,
        "mktime" => Builtin::Mktime,
        "or" => Builtin::Or,
        "patsplit" => Builtin::Patsplit,
        "rand" => Builtin::Rand,
        "rshift" => Builtin::Rshift,
        "sin" => Builtin::Sin,
        "split" => Builtin::Split,
        "sprintf" => Builtin::Sprintf,
        "sqrt" => Builtin::Sqrt,
        "srand" => Builtin::Srand,
        "strftime" => Builtin::Strftime,
        "strtonum" => Builtin::Strtonum,
        "sub" => Builtin::Sub,
        "substr" => Builtin::Substr,
        "system" => Builtin::System,
        "systime" => Builtin::Systime,
        "tolower" => Builtin::Tolower,
        "toupper" => Builtin::Toupper,
        "typeof" => Builtin::Typeof,
        "xor" => Builtin::Xor,
        _ => return None,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    Truncate,
    Append,
    Pipe,
    /// `|&`: a command that is written to and read from.
    Both,
}

#[derive(Debug)]
pub(super) enum Stmt {
    Expr(Expr),
    Print(Vec<Expr>, Option<(Redirect, Expr)>),
    Printf(Vec<Expr>, Option<(Redirect, Expr)>),
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    While(Expr, Box<Stmt>),
    DoWhile(Box<Stmt>, Expr),
    For(Option<Box<Stmt>>, Option<Expr>, Option<Box<Stmt>>, Box<Stmt>),
    ForIn(Var, ArrayPlace, Box<Stmt>),
    Block(Vec<Stmt>),
    Switch(Expr, Vec<(Option<Case>, Vec<Stmt>)>),
    Next,
    NextFile,
    Break,
    Continue,
    Exit(Option<Expr>),
    Return(Option<Expr>),
    Delete(ArrayPlace, Option<Vec<Expr>>),
}

#[derive(Debug)]
pub(super) enum Case {
    Value(Expr),
    Pattern(Rc<Regex>),
}

#[derive(Debug)]
pub(super) enum Pattern {
    Always,
    When(Expr),
    Range(Expr, Expr, usize),
}

#[derive(Debug, Default)]
pub(super) struct Function {
    pub name: String,
    pub params: usize,
    /// Which parameters are arrays.
    pub arrays: Vec<bool>,
    pub body: Vec<Stmt>,
    pub defined: bool,
}

#[derive(Debug, Default)]
pub(super) struct Program {
    pub begin: Vec<Vec<Stmt>>,
    pub end: Vec<Vec<Stmt>>,
    pub begin_file: Vec<Vec<Stmt>>,
    pub end_file: Vec<Vec<Stmt>>,
    pub rules: Vec<(Pattern, Vec<Stmt>)>,
    pub functions: Vec<Function>,
    /// Names of the global variables, by place.
    pub globals: Vec<String>,
    /// Which globals are arrays.
    pub global_arrays: Vec<bool>,
    pub ranges: usize,
}
