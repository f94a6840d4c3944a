//! Commands and their pieces as messages, traces and the environment show them.

use crate::ast::{AssignedValue, Assignment, Command, Compound, Function, SimpleCommand, TestExpression};
use crate::print;

/// Returns a simple command.
#[must_use]
pub fn simple(simple: &SimpleCommand) -> String {
    print::command(&Command::Simple(simple.clone()))
}

/// Returns `[[ … ]]`.
#[must_use]
pub fn test(test: &TestExpression) -> String {
    print::command(&Command::Compound { body: Compound::Test(test.clone()), redirects: Vec::new(), line: 0 })
}

/// Returns `name=value`, `name=(…)`.
#[must_use]
pub fn assignment(assignment: &Assignment) -> String {
    simple(&SimpleCommand { assignments: vec![assignment.clone()], ..SimpleCommand::default() })
}

/// Returns the right-hand side of an assignment.
#[must_use]
pub fn assigned(value: &AssignedValue) -> String {
    let text = assignment(&Assignment { name: "x".to_owned(), index: None, append: false, value: value.clone() });
    text.strip_prefix("x=").map(str::to_owned).unwrap_or(text)
}

/// Returns the body of a function as it travels in the environment.
#[must_use]
pub fn function_body(function: &Function) -> String {
    let text = print::function(function);
    match text.split_once('\n') {
        Some((_, body)) => body.to_owned(),
        None => text,
    }
}
