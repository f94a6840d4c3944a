//! `test` and `[`, and the file tests that `[[` shares.

use std::path::Path;

use crate::shell::{Done, Flow, Shell};
use crate::state::assign::{is_name, split_subscript};
use crate::state::options::SetOption;
use crate::state::variables::{Attributes, Value};
use sys::stat::{S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG};

const S_IFBLK: u32 = 0o060_000;
const S_IFSOCK: u32 = 0o140_000;

/// A comparison of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `-eq`.
    Equal,
    /// `-ne`.
    NotEqual,
    /// `-lt`.
    Less,
    /// `-le`.
    LessOrEqual,
    /// `-gt`.
    Greater,
    /// `-ge`.
    GreaterOrEqual,
}

impl Comparison {
    /// Returns the comparison behind an operator.
    #[must_use]
    pub fn named(operator: &str) -> Option<Self> {
        Some(match operator {
            "-eq" => Self::Equal,
            "-ne" => Self::NotEqual,
            "-lt" => Self::Less,
            "-le" => Self::LessOrEqual,
            "-gt" => Self::Greater,
            "-ge" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// Returns whether it holds.
    #[must_use]
    pub fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

/// `-f file` and the like.
#[must_use]
pub fn file_test(operator: &str, name: &str) -> bool {
    if operator == "-t" {
        return name.parse::<u32>().is_ok_and(sys::is_terminal);
    }
    let os = crate::exec::os(name);
    let path = Path::new(&os);
    if name.is_empty() {
        return false;
    }
    match operator {
        "-h" | "-L" => return sys::stat(path, false).is_ok_and(|stat| stat.kind() == S_IFLNK),
        "-r" => return sys::accessible(path, sys::Permission::Read),
        "-w" => return sys::accessible(path, sys::Permission::Write),
        "-x" => return sys::accessible(path, sys::Permission::Execute),
        _ => {}
    }
    let Ok(stat) = sys::stat(path, true) else { return false };
    match operator {
        "-a" | "-e" => true,
        "-f" => stat.kind() == S_IFREG,
        "-d" => stat.kind() == S_IFDIR,
        "-s" => stat.size > 0,
        "-p" => stat.kind() == S_IFIFO,
        "-c" => stat.kind() == S_IFCHR,
        "-b" => stat.kind() == S_IFBLK,
        "-S" => stat.kind() == S_IFSOCK,
        "-u" => stat.mode & 0o4000 != 0,
        "-g" => stat.mode & 0o2000 != 0,
        "-k" => stat.mode & 0o1000 != 0,
        "-O" => stat.uid == sys::user_ids()[0],
        "-G" => stat.gid == sys::user_ids()[1],
        "-N" => stat.mtime > stat.atime,
        _ => false,
    }
}

/// `-nt`, `-ot`, `-ef`.
#[must_use]
pub fn files_compare(operator: &str, left: &str, right: &str) -> bool {
    let stat = |name: &str| sys::stat(Path::new(&crate::exec::os(name)), true).ok();
    match (stat(left), stat(right)) {
        (Some(left), Some(right)) => match operator {
            "-nt" => left.mtime > right.mtime,
            "-ot" => left.mtime < right.mtime,
            _ => left.dev == right.dev && left.ino == right.ino,
        },
        (Some(_), None) => operator == "-nt",
        (None, Some(_)) => operator == "-ot",
        (None, None) => false,
    }
}

impl Shell {
    /// Evaluates `-v name`: whether a variable, an element or a positional parameter is set.
    pub(crate) fn is_variable_set(&mut self, text: &str) -> Done<bool> {
        if let Some((name, subscript)) = split_subscript(text) {
            let (name, _) = self.resolve(name);
            if matches!(subscript, "@" | "*")
                && !matches!(self.variables.get(&name).map(|variable| &variable.value), Some(Value::Associative(_)))
            {
                return Ok(match self.value(&name) {
                    Value::Indexed(map) => !map.is_empty(),
                    Value::Associative(map) => !map.is_empty(),
                    Value::Scalar(_) => true,
                    Value::Unset => false,
                });
            }
            let subscript = self.subscript(&name, subscript)?;
            if self.is_before_start(&name, &subscript) {
                self.complain(format_args!("{name}: bad array subscript"));
                return Ok(false);
            }
            return Ok(self.get_element(&name, &subscript).is_some());
        }
        if let Ok(number) = text.parse::<usize>() {
            return Ok(number == 0 || number <= self.positional.len());
        }
        if text == "_" {
            return Ok(true);
        }
        if !is_name(text) {
            return Ok(false);
        }
        Ok(self.get(text).is_some())
    }
}

/// The error of an expression.
enum Wrong {
    Said(String),
    Flow(Flow),
}

impl From<Flow> for Wrong {
    fn from(flow: Flow) -> Self {
        Self::Flow(flow)
    }
}

fn said<T>(message: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Said(message.into()))
}

pub(super) fn test(shell: &mut Shell, args: &[String]) -> Done {
    run(shell, "test", args.get(1..).unwrap_or_default())
}

pub(super) fn bracket(shell: &mut Shell, args: &[String]) -> Done {
    match args.split_last() {
        Some((last, rest)) if last == "]" && !rest.is_empty() => run(shell, "[", rest.get(1..).unwrap_or_default()),
        _ => {
            shell.complain("[: missing `]'");
            Ok(2)
        }
    }
}

fn run(shell: &mut Shell, name: &str, args: &[String]) -> Done {
    match evaluate(shell, args) {
        Ok(true) => Ok(0),
        Ok(false) => Ok(1),
        Err(Wrong::Said(message)) => {
            shell.complain(format_args!("{name}: {message}"));
            Ok(2)
        }
        Err(Wrong::Flow(Flow::Discard(_))) => Ok(2),
        Err(Wrong::Flow(flow)) => Err(flow),
    }
}

/// Evaluates an expression by its number of arguments, as POSIX requires.
fn evaluate(shell: &mut Shell, args: &[String]) -> Result<bool, Wrong> {
    match args {
        [] => Ok(false),
        [one] => Ok(!one.is_empty()),
        [not, one] if not == "!" => Ok(one.is_empty()),
        [operator, operand] => {
            if is_unary(operator) {
                return unary(shell, operator, operand);
            }
            said(format!("{operator}: unary operator expected"))
        }
        [left, operator, right] => {
            if is_binary(operator) {
                return binary(shell, left, operator, right);
            }
            match operator.as_str() {
                "-a" => return Ok(!left.is_empty() && !right.is_empty()),
                "-o" => return Ok(!left.is_empty() || !right.is_empty()),
                _ => {}
            }
            if left == "!" {
                return evaluate(shell, args.get(1..).unwrap_or_default()).map(|value| !value);
            }
            if left == "(" && right == ")" {
                return Ok(!operator.is_empty());
            }
            said(format!("{operator}: binary operator expected"))
        }
        [not, rest @ ..] if rest.len() == 3 && not == "!" => evaluate(shell, rest).map(|value| !value),
        [open, middle @ .., close] if middle.len() == 2 && open == "(" && close == ")" => evaluate(shell, middle),
        _ => {
            let mut parser = Expression { shell, args, at: 0 };
            let value = parser.or()?;
            match parser.args.get(parser.at) {
                None => Ok(value),
                Some(_) => said("too many arguments"),
            }
        }
    }
}

struct Expression<'a> {
    shell: &'a mut Shell,
    args: &'a [String],
    at: usize,
}

impl Expression<'_> {
    fn peek(&self, ahead: usize) -> Option<&str> {
        self.args.get(self.at + ahead).map(String::as_str)
    }

    fn or(&mut self) -> Result<bool, Wrong> {
        let mut value = self.and()?;
        while self.peek(0) == Some("-o") {
            self.at += 1;
            value |= self.and()?;
        }
        Ok(value)
    }

    fn and(&mut self) -> Result<bool, Wrong> {
        let mut value = self.primary()?;
        while self.peek(0) == Some("-a") {
            self.at += 1;
            value &= self.primary()?;
        }
        Ok(value)
    }

    fn primary(&mut self) -> Result<bool, Wrong> {
        let Some(first) = self.peek(0).map(str::to_owned) else { return said("argument expected") };
        if first == "!" {
            self.at += 1;
            return self.primary().map(|value| !value);
        }
        if first == "(" {
            self.at += 1;
            let value = self.or()?;
            if self.peek(0) != Some(")") {
                return match self.peek(0) {
                    None => said("`)' expected"),
                    Some(found) => said(format!("`)' expected, found {found}")),
                };
            }
            self.at += 1;
            return Ok(value);
        }
        if let (Some(operator), Some(right)) = (self.peek(1).map(str::to_owned), self.peek(2).map(str::to_owned))
            && is_binary(&operator)
        {
            self.at += 3;
            return binary(self.shell, &first, &operator, &right);
        }
        if is_unary(&first)
            && let Some(operand) = self.peek(1).map(str::to_owned)
        {
            self.at += 2;
            return unary(self.shell, &first, &operand);
        }
        self.at += 1;
        Ok(!first.is_empty())
    }
}

fn is_unary(operator: &str) -> bool {
    let mut chars = operator.chars();
    matches!((chars.next(), chars.next(), chars.next()), (Some('-'), Some(letter), None) if "abcdefghknoprstuvwxzGLNORS".contains(letter))
}

fn is_binary(operator: &str) -> bool {
    matches!(operator, "=" | "==" | "!=" | "<" | ">" | "-nt" | "-ot" | "-ef") || Comparison::named(operator).is_some()
}

fn unary(shell: &mut Shell, operator: &str, operand: &str) -> Result<bool, Wrong> {
    Ok(match operator {
        "-z" => operand.is_empty(),
        "-n" => !operand.is_empty(),
        "-v" => shell.is_variable_set(operand)?,
        "-R" => shell.variables.get(operand).is_some_and(|variable| variable.attributes.has(Attributes::NAMEREF)),
        "-o" => SetOption::named(operand).is_some_and(|option| shell.on(option)),
        _ => {
            // Output of builtins may be in the file that is tested.
            shell.output.flush();
            file_test(operator, operand)
        }
    })
}

fn binary(shell: &mut Shell, left: &str, operator: &str, right: &str) -> Result<bool, Wrong> {
    Ok(match operator {
        "=" | "==" => left == right,
        "!=" => left != right,
        "<" => left < right,
        ">" => left > right,
        "-nt" | "-ot" | "-ef" => {
            shell.output.flush();
            files_compare(operator, left, right)
        }
        _ => {
            let number = |text: &str| match text.trim().parse::<i64>() {
                Ok(number) => Ok(number),
                Err(_) => match text.trim().strip_prefix('+').map(str::parse::<i64>) {
                    Some(Ok(number)) => Ok(number),
                    _ => said(format!("{text}: integer expression expected")),
                },
            };
            let (left, right) = (number(left)?, number(right)?);
            Comparison::named(operator).is_some_and(|comparison| comparison.holds(left, right))
        }
    })
}
