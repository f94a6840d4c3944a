//! From the POSIX tree to the syntax of the `regex` automata (and of `fancy-regex`, which adds back-references).

use std::fmt::Write as _;

use crate::{Class, Node, RAW, Syntax};

/// Returns the pattern in the automata's syntax; groups are numbered from `first_group + 1`.
pub(super) fn pattern(node: &Node, syntax: Syntax, first_group: usize) -> String {
    let mut out = String::new();
    if syntax.ignore_case {
        out.push_str("(?i)");
    }
    emit(node, syntax, first_group, &mut out);
    out
}

fn emit(node: &Node, syntax: Syntax, base: usize, out: &mut String) {
    let lines = syntax.multiline || syntax.lines;
    match node {
        Node::Empty => {}
        Node::Char(unit) => char(*unit, out),
        Node::Any if syntax.lines => out.push_str(if syntax.utf8 { "[^\\n]" } else { "(?-u:[^\\n])" }),
        Node::Any => out.push_str(if syntax.utf8 { "(?s:.)" } else { "(?s-u:.)" }),
        Node::Class(set) => class(set, syntax, out),
        Node::Start if lines => out.push_str("(?m:^)"),
        Node::Start => out.push_str("\\A"),
        Node::End if lines => out.push_str("(?m:$)"),
        Node::End => out.push_str("\\z"),
        Node::TextStart => out.push_str(if syntax.lines { "(?m:^)" } else { "\\A" }),
        Node::TextEnd => out.push_str(if syntax.lines { "(?m:$)" } else { "\\z" }),
        Node::Boundary => out.push_str(if syntax.utf8 { "\\b" } else { "(?-u:\\b)" }),
        Node::NotBoundary => out.push_str(if syntax.utf8 { "\\B" } else { "(?-u:\\B)" }),
        Node::WordStart => out.push_str(if syntax.utf8 { "\\b{start}" } else { "(?-u:\\b{start})" }),
        Node::WordEnd => out.push_str(if syntax.utf8 { "\\b{end}" } else { "(?-u:\\b{end})" }),
        Node::Group(inner) => {
            out.push('(');
            emit(inner, syntax, base, out);
            out.push(')');
        }
        Node::Backref(number) => {
            let _ = write!(out, "(?:\\{})", *number as usize + base);
        }
        Node::Concat(items) => items.iter().for_each(|item| {
            if matches!(item, Node::Alternate(_)) {
                group(item, syntax, base, out);
            } else {
                emit(item, syntax, base, out);
            }
        }),
        Node::Alternate(branches) => {
            for (index, branch) in branches.iter().enumerate() {
                if index > 0 {
                    out.push('|');
                }
                emit(branch, syntax, base, out);
            }
        }
        Node::Repeat(inner, min, max) => {
            group(inner, syntax, base, out);
            match (min, max) {
                (0, None) => out.push('*'),
                (1, None) => out.push('+'),
                (0, Some(1)) => out.push('?'),
                (min, None) => {
                    let _ = write!(out, "{{{min},}}");
                }
                (min, Some(max)) => {
                    let _ = write!(out, "{{{min},{max}}}");
                }
            }
        }
    }
}

fn group(node: &Node, syntax: Syntax, base: usize, out: &mut String) {
    if matches!(node, Node::Group(_) | Node::Any) || matches!(node, Node::Char(unit) if *unit < 0x80) {
        emit(node, syntax, base, out);
    } else {
        out.push_str("(?:");
        emit(node, syntax, base, out);
        out.push(')');
    }
}

fn char(unit: u32, out: &mut String) {
    match char::from_u32(unit) {
        Some(char) if char.is_ascii_alphanumeric() || char == ' ' || char == '_' || char as u32 >= 0x80 => out.push(char),
        Some(char) if regex_syntax::is_meta_character(char) => {
            out.push('\\');
            out.push(char);
        }
        Some(char) => {
            let _ = write!(out, "\\x{:02X}", char as u32);
        }
        None => {
            let _ = write!(out, "(?-u:\\x{:02X})", unit - RAW);
        }
    }
}

fn class(set: &Class, syntax: Syntax, out: &mut String) {
    let plain: Vec<(u32, u32)> = set.ranges.iter().copied().filter(|range| range.0 < RAW && range.1 < RAW).collect();
    let raw: Vec<(u32, u32)> = set.ranges.iter().copied().filter(|range| range.1 >= RAW).collect();
    if !syntax.utf8 {
        out.push_str("(?-u:");
        members(set, &plain, &raw, syntax, out);
        out.push(')');
    } else if raw.is_empty() || set.negated {
        members(set, &plain, &[], syntax, out);
    } else {
        out.push_str("(?:(?-u:[");
        raw.iter().for_each(|range| range_text(*range, out));
        out.push_str("])");
        if !plain.is_empty() || !set.names.is_empty() {
            out.push('|');
            members(set, &plain, &[], syntax, out);
        }
        out.push(')');
    }
}

fn members(set: &Class, plain: &[(u32, u32)], raw: &[(u32, u32)], syntax: Syntax, out: &mut String) {
    out.push('[');
    if set.negated {
        out.push('^');
    }
    let newline = plain.iter().any(|range| (range.0..=range.1).contains(&10))
        || set.names.iter().any(|name| matches!(*name, "space" | "cntrl"));
    if set.negated && syntax.lines && !newline {
        out.push_str("\\n");
    }
    for range in plain.iter().chain(raw) {
        range_text(*range, out);
    }
    for name in &set.names {
        out.push_str(named(name, syntax.utf8));
    }
    if !set.negated && syntax.lines && newline {
        out.push_str("&&[^\\n]");
    }
    out.push(']');
}

fn range_text((low, high): (u32, u32), out: &mut String) {
    let code = |unit: u32| if unit >= RAW { unit - RAW } else { unit };
    let (low, high) = (code(low), code(high));
    let _ = if low == high { write!(out, "\\x{{{low:X}}}") } else { write!(out, "\\x{{{low:X}}}-\\x{{{high:X}}}") };
}

fn named(name: &str, utf8: bool) -> &'static str {
    match (name, utf8) {
        ("word", true) => "\\w",
        ("word", false) => "[:word:]",
        ("space", true) => "\\s",
        ("space", false) => "[:space:]",
        ("alpha", true) => "\\p{Alphabetic}",
        ("alpha", false) => "[:alpha:]",
        ("alnum", true) => "\\p{Alphabetic}\\p{N}",
        ("alnum", false) => "[:alnum:]",
        ("upper", true) => "\\p{Uppercase}",
        ("upper", false) => "[:upper:]",
        ("lower", true) => "\\p{Lowercase}",
        ("lower", false) => "[:lower:]",
        ("punct", true) => "[:punct:]\\p{P}\\p{S}",
        ("punct", false) => "[:punct:]",
        ("print", true) => "[^\\p{Cc}\\p{Cs}\\p{Cn}]",
        ("print", false) => "[:print:]",
        ("graph", true) => "[^\\s\\p{Cc}\\p{Cs}\\p{Cn}]",
        ("graph", false) => "[:graph:]",
        ("cntrl", true) => "\\p{Cc}",
        ("cntrl", false) => "[:cntrl:]",
        ("digit", _) => "0-9",
        ("blank", _) => " \\t",
        _ => "0-9A-Fa-f",
    }
}
