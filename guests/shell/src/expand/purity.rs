//! Command substitutions that need no copy of the shell, because the difference cannot be observed.
//!
//! A command whose expansions change nothing and that only writes output may run inside the shell; one that is an outside
//! program may be started directly. Everything else is forked.

use crate::ast::{
    Argument, Command, Index, List, Operation, Parameter, ParameterName, Part, RedirectFd, RedirectKind, SimpleCommand, Word,
};
use crate::shell::Shell;

/// Builtins that only write, and keep no state.
const WRITERS: &[&str] = &["echo", "printf", "pwd", "true", "false", ":", "type", "test", "["];

/// Returns the only command of a list, when there is just one and it is simple.
fn only_simple(body: &List) -> Option<&SimpleCommand> {
    let [item] = body.items.as_slice() else { return None };
    if item.background || !item.and_or.rest.is_empty() || item.and_or.first.negated || item.and_or.first.timed.is_some() {
        return None;
    }
    match item.and_or.first.commands.as_slice() {
        [Command::Simple(simple)] => Some(simple),
        _ => None,
    }
}

/// Returns the file of `$(< file)`.
pub(super) fn lone_input(body: &List) -> Option<&Word> {
    let simple = only_simple(body)?;
    match (simple.words.as_slice(), simple.assignments.as_slice(), simple.redirects.as_slice()) {
        ([], [], [redirect]) if redirect.fd == RedirectFd::Default => match &redirect.kind {
            RedirectKind::Input(word) => Some(word),
            _ => None,
        },
        _ => None,
    }
}

fn literal_name(simple: &SimpleCommand) -> Option<&str> {
    match simple.words.first()? {
        Argument::Word(Word { parts }) => match parts.as_slice() {
            [Part::Literal(name)] => Some(name),
            _ => None,
        },
        Argument::Assignment(_) => None,
    }
}

/// Returns whether a list may run inside the shell with its output captured.
pub(super) fn in_place(shell: &Shell, body: &List) -> bool {
    only_simple(body).is_some_and(|simple| runs_in_place(shell, simple))
}

/// Returns whether a simple command may run inside the shell in the place of a subshell.
#[must_use]
pub fn runs_in_place(shell: &Shell, simple: &SimpleCommand) -> bool {
    let Some(name) = literal_name(simple) else { return false };
    let writes_only = WRITERS.contains(&name)
        || name == "command" && matches!(simple.words.get(1), Some(Argument::Word(word)) if literal_is(word, "-v"));
    if !writes_only || !simple.redirects.is_empty() || !simple.assignments.is_empty() {
        return false;
    }
    // `printf -v` assigns; a function or a switched-off builtin may do anything.
    if name == "printf" && matches!(simple.words.get(1), Some(Argument::Word(word)) if !first_char_is_not_dash(word)) {
        return false;
    }
    !shell.functions.contains_key(name)
        && !shell.disabled.contains(name)
        && shell.traps.commands.is_empty()
        && simple.words.iter().all(|argument| matches!(argument, Argument::Word(word) if is_pure(word)))
}

fn literal_is(word: &Word, text: &str) -> bool {
    matches!(word.parts.as_slice(), [Part::Literal(own)] if own == text)
}

fn first_char_is_not_dash(word: &Word) -> bool {
    match word.parts.first() {
        Some(Part::Literal(text) | Part::Quoted(text, _)) => !text.starts_with('-'),
        Some(Part::DoubleQuoted { parts, .. }) => match parts.first() {
            Some(Part::Literal(text) | Part::Quoted(text, _)) => !text.starts_with('-'),
            _ => false,
        },
        _ => false,
    }
}

/// Returns the command of a list that may be started as a program without a fork.
pub(super) fn spawnable<'a>(shell: &mut Shell, body: &'a List) -> Option<&'a SimpleCommand> {
    let simple = only_simple(body)?;
    is_pure_command(shell, simple).then_some(simple)
}

/// Returns whether a simple command is an outside program whose expansions change nothing in the shell.
pub fn is_pure_command(shell: &mut Shell, simple: &SimpleCommand) -> bool {
    let Some(name) = literal_name(simple) else { return false };
    if name.contains(['*', '?', '[', '~', '{']) || shell.functions.contains_key(name) || shell.is_builtin(name) {
        return false;
    }
    if !shell.traps.commands.is_empty() || shell.on(crate::state::options::SetOption::XTrace) {
        return false;
    }
    let words = simple.words.iter().all(|argument| matches!(argument, Argument::Word(word) if is_still(word)));
    let assignments = simple.assignments.iter().all(|assignment| {
        assignment.index.is_none() && matches!(&assignment.value, crate::ast::AssignedValue::Scalar(word) if is_still(word))
    });
    let redirects = simple.redirects.iter().all(|redirect| {
        !matches!(redirect.fd, RedirectFd::Variable(_))
            && match &redirect.kind {
                RedirectKind::Input(word)
                | RedirectKind::Output(word)
                | RedirectKind::Clobber(word)
                | RedirectKind::Append(word)
                | RedirectKind::ReadWrite(word)
                | RedirectKind::DuplicateInput(word)
                | RedirectKind::DuplicateOutput(word)
                | RedirectKind::OutputAndError(word)
                | RedirectKind::AppendOutputAndError(word)
                | RedirectKind::HereString(word) => is_still(word),
                RedirectKind::HereDocument { body, .. } => is_still(body),
            }
    });
    words && assignments && redirects && shell.find_program(name).is_some()
}

/// Returns whether expanding the word has no lasting effect.
fn is_pure(word: &Word) -> bool {
    word.parts.iter().all(|part| part_is_pure(part, true))
}

/// Same as [`is_pure`], and also requires that no other command starts, which would have the wrong standard input.
fn is_still(word: &Word) -> bool {
    word.parts.iter().all(|part| part_is_pure(part, false))
}

fn part_is_pure(part: &Part, commands: bool) -> bool {
    match part {
        Part::Literal(_) | Part::Quoted(..) => true,
        Part::DoubleQuoted { parts, .. } => parts.iter().all(|part| part_is_pure(part, commands)),
        Part::Parameter(parameter) => parameter_is_pure(parameter, commands),
        Part::Command(_) => commands,
        Part::Arithmetic(word) => arithmetic_is_pure(word, commands),
        Part::Process { .. } => false,
    }
}

fn parameter_is_pure(parameter: &Parameter, commands: bool) -> bool {
    let pure = |word: &Word| word.parts.iter().all(|part| part_is_pure(part, commands));
    let named = match &parameter.name {
        ParameterName::Variable(name) => !matches!(name.as_str(), "BASHPID" | "BASH_SUBSHELL" | "RANDOM" | "SRANDOM"),
        _ => true,
    };
    let indexed = match &parameter.index {
        Some(Index::Element(word)) => arithmetic_is_pure(word, commands),
        _ => true,
    };
    let operated = match &parameter.operation {
        Operation::Get | Operation::Length | Operation::Names { .. } | Operation::Keys { .. } => true,
        Operation::Default { word, .. } | Operation::Alternative { word, .. } => pure(word),
        Operation::RemovePrefix { pattern, .. } | Operation::RemoveSuffix { pattern, .. } | Operation::Case { pattern, .. } => {
            pure(pattern)
        }
        Operation::Replace { pattern, replacement, .. } => pure(pattern) && replacement.as_ref().is_none_or(pure),
        Operation::Substring { offset, length } => {
            arithmetic_is_pure(offset, commands) && length.as_ref().is_none_or(|word| arithmetic_is_pure(word, commands))
        }
        Operation::Transform(letter) => *letter != 'P',
        Operation::Assign { .. } | Operation::Error { .. } | Operation::Bad(_) => false,
    };
    // `set -u` would end a subshell, but only that.
    named && indexed && operated && !parameter.indirect
}

/// Returns whether an arithmetic text has no assignment and no `++`, judged conservatively by its characters.
fn arithmetic_is_pure(word: &Word, commands: bool) -> bool {
    word.parts.iter().all(|part| match part {
        Part::Literal(text) | Part::Quoted(text, _) => {
            !text.contains("++") && !text.contains("--") && {
                let bytes = text.as_bytes();
                bytes.iter().enumerate().all(|(at, &byte)| {
                    byte != b'='
                        || bytes.get(at + 1) == Some(&b'=')
                        || at > 0 && matches!(bytes.get(at - 1), Some(b'=' | b'!'))
                        || at > 0
                            && matches!(bytes.get(at - 1), Some(b'<' | b'>'))
                            && bytes.get(at.wrapping_sub(2)) != bytes.get(at - 1)
                })
            }
        }
        Part::DoubleQuoted { .. } => false,
        other => part_is_pure(other, commands),
    })
}
