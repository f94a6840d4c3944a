//! Redirections as bash writes them: the descriptor where it is not the usual one.

use crate::ast::{Part, Redirect, RedirectFd, RedirectKind, Word};
use crate::quote;

use super::words::{push_heredoc_text, push_word};

pub(super) fn is_heredoc(redirect: &Redirect) -> bool {
    matches!(redirect.kind, RedirectKind::HereDocument { .. })
}

pub(super) fn push_redirect(out: &mut String, redirect: &Redirect) {
    let (operator, word, usual) = match &redirect.kind {
        RedirectKind::Input(word) => ("< ", word, 0),
        RedirectKind::Output(word) => ("> ", word, 1),
        RedirectKind::Clobber(word) => (">| ", word, 1),
        RedirectKind::Append(word) => (">> ", word, 1),
        RedirectKind::ReadWrite(word) => {
            push_descriptor(out, &redirect.fd, None, 0);
            out.push_str("<> ");
            push_word(out, word);
            return;
        }
        RedirectKind::OutputAndError(word) => {
            out.push_str("&> ");
            push_word(out, word);
            return;
        }
        RedirectKind::AppendOutputAndError(word) => {
            out.push_str("&>> ");
            push_word(out, word);
            return;
        }
        RedirectKind::HereString(word) => ("<<< ", word, 0),
        RedirectKind::DuplicateInput(word) => return push_duplicate(out, &redirect.fd, "<&", word, 0),
        RedirectKind::DuplicateOutput(word) => return push_duplicate(out, &redirect.fd, ">&", word, 1),
        RedirectKind::HereDocument { delimiter, strip_tabs, .. } => {
            push_descriptor(out, &redirect.fd, Some(0), 0);
            out.push_str(if *strip_tabs { "<<-" } else { "<<" });
            let bare = bare_delimiter(delimiter);
            if bare == *delimiter {
                out.push_str(delimiter);
            } else {
                out.push_str(&quote::single(&bare));
            }
            return;
        }
    };
    push_descriptor(out, &redirect.fd, Some(usual), usual);
    out.push_str(operator);
    push_word(out, word);
}

/// The descriptor, unless it is the one that is not written.
fn push_descriptor(out: &mut String, fd: &RedirectFd, unwritten: Option<u32>, default: u32) {
    match fd {
        RedirectFd::Variable(name) => {
            out.push('{');
            out.push_str(name);
            out.push('}');
        }
        RedirectFd::Default if unwritten == Some(default) => {}
        RedirectFd::Default => out.push_str(&default.to_string()),
        RedirectFd::Number(number) if unwritten == Some(*number) => {}
        RedirectFd::Number(number) => out.push_str(&number.to_string()),
    }
}

/// `2>&1`, `3<&4-`, `0>&-`: bash always names the descriptor when it knows the number on the right.
fn push_duplicate(out: &mut String, fd: &RedirectFd, operator: &str, word: &Word, usual: u32) {
    let text = match word.parts.as_slice() {
        [Part::Literal(text)] => text.as_str(),
        _ => "",
    };
    if text == "-" {
        push_descriptor(out, fd, None, usual);
        out.push_str(">&-");
        return;
    }
    let digits = text.strip_suffix('-').unwrap_or(text);
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    push_descriptor(out, fd, if number { None } else { Some(usual) }, usual);
    out.push_str(operator);
    push_word(out, word);
}

pub(super) fn push_heredoc_body(out: &mut String, redirect: &Redirect) {
    if let RedirectKind::HereDocument { body, delimiter, .. } = &redirect.kind {
        push_heredoc_text(out, body);
        out.push_str(&bare_delimiter(delimiter));
    }
}

/// Returns a delimiter without its quotes.
fn bare_delimiter(written: &str) -> String {
    if !written.contains(['\'', '"', '\\']) {
        return written.to_owned();
    }
    let mut bare = String::new();
    let mut chars = written.chars();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => bare.extend(chars.next()),
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, _) => bare.push(c),
        }
    }
    bare
}
