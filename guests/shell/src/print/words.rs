//! Words and assignments as they were written.

use crate::ast::{
    AssignedValue, Assignment, CaseChange, CommandSubstitution, Index, Operation, Parameter, ParameterName, Part, QuoteStyle,
    ReplaceAnchor, Word,
};
use crate::quote;

/// Whether command substitutions are shown as bash formats them, or as they were written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Substitutions {
    Formatted,
    AsWritten,
}

pub(super) fn push_word(out: &mut String, word: &Word) {
    push_parts(out, &word.parts, Substitutions::Formatted);
}

/// A word that is quoted by where it stands: arithmetic.
pub(super) fn push_quoted_word(out: &mut String, word: &Word) {
    push_word(out, word);
}

/// A here-document's body: its text needs no quotes.
pub(super) fn push_heredoc_text(out: &mut String, body: &Word) {
    if let [Part::Quoted(text, QuoteStyle::Single)] = body.parts.as_slice() {
        out.push_str(text);
    } else {
        push_parts(out, &body.parts, Substitutions::AsWritten);
    }
}

pub(super) fn push_assignment(out: &mut String, assignment: &Assignment) {
    out.push_str(&assignment.name);
    if let Some(index) = &assignment.index {
        push_bracketed(out, index);
    }
    out.push_str(if assignment.append { "+=" } else { "=" });
    match &assignment.value {
        AssignedValue::Scalar(word) => push_word(out, word),
        AssignedValue::Array(elements) => {
            out.push('(');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                if let Some(index) = &element.index {
                    push_bracketed(out, index);
                    out.push_str(if element.append { "+=" } else { "=" });
                }
                push_word(out, &element.value);
            }
            out.push(')');
        }
    }
}

fn push_bracketed(out: &mut String, index: &Word) {
    out.push('[');
    push_word(out, index);
    out.push(']');
}

fn push_parts(out: &mut String, parts: &[Part], substitutions: Substitutions) {
    for part in parts {
        match part {
            Part::Literal(text) => out.push_str(text),
            Part::Quoted(text, QuoteStyle::Backslash) => {
                for c in text.chars() {
                    out.push('\\');
                    out.push(c);
                }
            }
            Part::Quoted(text, QuoteStyle::Single) => {
                out.push('\'');
                out.push_str(text);
                out.push('\'');
            }
            Part::Quoted(text, QuoteStyle::AnsiC) => out.push_str(&quote::single(text)),
            Part::DoubleQuoted { parts, .. } => {
                out.push('"');
                push_parts(out, parts, substitutions);
                out.push('"');
            }
            Part::Parameter(parameter) => push_parameter(out, parameter, substitutions),
            Part::Command(substitution) => {
                if substitution.backquoted {
                    out.push('`');
                    out.push_str(&substitution.source.replace("\\\n", ""));
                    out.push('`');
                } else if substitution.error.is_some() && !substitution.source.starts_with('(') {
                    // The body of a here-document that could not be read.
                    out.push_str(&substitution.source);
                } else {
                    push_substitution(out, "$(", substitution, substitutions);
                }
            }
            Part::Arithmetic(expression) => {
                out.push_str("$((");
                push_parts(out, &expression.parts, substitutions);
                out.push_str("))");
            }
            Part::Process { writes, body } => {
                push_substitution(out, if *writes { ">(" } else { "<(" }, body, substitutions);
            }
        }
    }
}

fn push_substitution(out: &mut String, open: &str, body: &CommandSubstitution, substitutions: Substitutions) {
    out.push_str(open);
    match substitutions {
        // What began as `$((` and was not arithmetic, bash keeps as it was.
        Substitutions::Formatted if !body.source.starts_with('(') => {
            let text = super::substitution(&body.body, &body.source);
            // `$((` would be arithmetic.
            if text.starts_with('(') {
                out.push(' ');
            }
            out.push_str(&text);
        }
        _ => out.push_str(&body.source),
    }
    out.push(')');
}

fn push_parameter(out: &mut String, parameter: &Parameter, substitutions: Substitutions) {
    out.push('$');
    if parameter.braced {
        out.push('{');
    }
    if let Operation::Bad(text) = &parameter.operation {
        out.push_str(text);
        out.push('}');
        return;
    }
    match parameter.operation {
        Operation::Length => out.push('#'),
        Operation::Names { .. } | Operation::Keys { .. } => out.push('!'),
        _ if parameter.indirect => out.push('!'),
        _ => {}
    }
    match &parameter.name {
        ParameterName::Variable(name) => out.push_str(name),
        ParameterName::Positional(number) => out.push_str(&number.to_string()),
        ParameterName::Special(c) => out.push(*c),
    }
    match &parameter.index {
        Some(Index::All) => out.push_str("[@]"),
        Some(Index::Joined) => out.push_str("[*]"),
        Some(Index::Element(index)) => push_bracketed(out, index),
        None => {}
    }
    push_operation(out, &parameter.operation, substitutions);
    if parameter.braced {
        out.push('}');
    }
}

fn push_operation(out: &mut String, operation: &Operation, substitutions: Substitutions) {
    let colon = |or_empty: &bool| if *or_empty { ":" } else { "" };
    let (operator, word) = match operation {
        Operation::Get | Operation::Length | Operation::Keys { .. } | Operation::Bad(_) => return,
        Operation::Names { separate } => return out.push(if *separate { '@' } else { '*' }),
        Operation::Default { or_empty, word } => (format!("{}-", colon(or_empty)), word),
        Operation::Assign { or_empty, word } => (format!("{}=", colon(or_empty)), word),
        Operation::Error { or_empty, word } => (format!("{}?", colon(or_empty)), word),
        Operation::Alternative { or_empty, word } => (format!("{}+", colon(or_empty)), word),
        Operation::RemovePrefix { longest, pattern } => ((if *longest { "##" } else { "#" }).to_owned(), pattern),
        Operation::RemoveSuffix { longest, pattern } => ((if *longest { "%%" } else { "%" }).to_owned(), pattern),
        Operation::Replace { anchor, pattern, .. } => {
            let operator = match anchor {
                ReplaceAnchor::First => "/",
                ReplaceAnchor::All => "//",
                ReplaceAnchor::Start => "/#",
                ReplaceAnchor::End => "/%",
            };
            (operator.to_owned(), pattern)
        }
        Operation::Substring { offset, .. } => (":".to_owned(), offset),
        Operation::Case { change, all, pattern } => {
            let operator = match change {
                CaseChange::Upper => "^",
                CaseChange::Lower => ",",
                CaseChange::Toggle => "~",
            };
            (operator.repeat(1 + usize::from(*all)), pattern)
        }
        Operation::Transform(letter) => {
            out.push('@');
            return out.push(*letter);
        }
    };
    out.push_str(&operator);
    push_parts(out, &word.parts, substitutions);
    match operation {
        Operation::Replace { replacement: Some(word), .. } => {
            out.push('/');
            push_parts(out, &word.parts, substitutions);
        }
        Operation::Substring { length: Some(word), .. } => {
            out.push(':');
            push_parts(out, &word.parts, substitutions);
        }
        _ => {}
    }
}
