//! `--transform='s/old/new/'`: member names changed as sed's `s` would.

use posix_regex::{Regex, Span, Syntax};

/// One `s` command.
#[derive(Debug)]
pub(super) struct Rename {
    regex: Regex,
    replacement: Vec<u8>,
    global: bool,
    /// The first match that is replaced, counted from 1.
    from: usize,
    scopes: Scopes,
}

/// The kind of a name: a flag of each command selects whether it changes such names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Member,
    Symlink,
    HardLink,
}

#[derive(Clone, Copy, Debug)]
struct Scopes {
    member: bool,
    symlink: bool,
    hard_link: bool,
}

impl Scopes {
    const ALL: Self = Self { member: true, symlink: true, hard_link: true };
    const NONE: Self = Self { member: false, symlink: false, hard_link: false };

    fn flag(&mut self, flag: u8) -> bool {
        let on = flag.is_ascii_lowercase();
        match flag.to_ascii_lowercase() {
            b'r' => self.member = on,
            b's' => self.symlink = on,
            b'h' => self.hard_link = on,
            _ => return false,
        }
        true
    }

    fn has(self, scope: Scope) -> bool {
        match scope {
            Scope::Member => self.member,
            Scope::Symlink => self.symlink,
            Scope::HardLink => self.hard_link,
        }
    }
}

/// Reads `s/old/new/flags`, several with semicolons between; the error is for the user.
pub(super) fn parse(text: &[u8]) -> Result<Vec<Rename>, String> {
    let mut renames = Vec::new();
    let mut rest = text;
    let mut usual = Scopes::ALL;
    loop {
        rest = rest.trim_ascii_start();
        if let Some(flags) = rest.strip_prefix(b"flags=") {
            let end = flags.iter().position(|&byte| byte == b';').unwrap_or(flags.len());
            usual = Scopes::NONE;
            if let Some(flag) = flags[..end].iter().find(|flag| !usual.flag(**flag)) {
                return Err(format!("Unknown transform flag: {}", char::from(*flag)));
            }
            match flags.get(end + 1..) {
                Some(more) => rest = more,
                None => return Ok(renames),
            }
            continue;
        }
        let [b's', delimiter, following @ ..] = rest else { return Err("Invalid transform expression".to_string()) };
        let (pattern, following) = until(following, *delimiter)?;
        let (replacement, following) = until(following, *delimiter)?;
        let end = following.iter().position(|&byte| byte == b';').unwrap_or(following.len());
        let mut syntax = Syntax { utf8: common::locale::utf8(), ..Syntax::default() };
        let (mut global, mut from, mut scopes) = (false, 0, usual);
        for flag in &following[..end] {
            match flag {
                b'g' => global = true,
                b'i' => syntax.ignore_case = true,
                b'x' => syntax.extended = true,
                b'0'..=b'9' => from = from * 10 + usize::from(flag - b'0'),
                flag if scopes.flag(*flag) => {}
                _ => return Err(format!("Unknown flag in transform expression: {}", char::from(*flag))),
            }
        }
        let regex = Regex::new(&pattern, syntax).map_err(|message| format!("Invalid transform expression: {message}"))?;
        renames.push(Rename { regex, replacement, global, from: from.max(1), scopes });
        match following.get(end + 1..) {
            Some(more) if !more.trim_ascii().is_empty() => rest = more,
            _ => return Ok(renames),
        }
    }
}

/// Returns the text up to the delimiter, and what follows it; an escaped delimiter is an ordinary character.
fn until(text: &[u8], delimiter: u8) -> Result<(Vec<u8>, &[u8]), String> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match (byte, text.get(at)) {
            (b'\\', Some(&next)) => {
                if next != delimiter {
                    out.push(b'\\');
                }
                out.push(next);
                at += 1;
            }
            (byte, _) if byte == delimiter => return Ok((out, &text[at..])),
            (byte, _) => out.push(byte),
        }
    }
    Err("Invalid transform expression".to_string())
}

/// Returns the name after all changes.
pub(super) fn apply(renames: &[Rename], name: &[u8], scope: Scope) -> Vec<u8> {
    let mut name = name.to_vec();
    for rename in renames.iter().filter(|rename| rename.scopes.has(scope)) {
        name = rename.one(&name);
    }
    name
}

impl Rename {
    fn one(&self, name: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(name.len());
        let mut spans: Vec<Option<Span>> = Vec::new();
        let (mut at, mut count) = (0, 0);
        while at <= name.len() && self.regex.captures_at(name, at, &mut spans) {
            let Some(Some((start, end))) = spans.first().copied() else { break };
            out.extend_from_slice(&name[at..start]);
            count += 1;
            if count >= self.from {
                self.replaced(name, &spans, &mut out);
            } else {
                out.extend_from_slice(&name[start..end]);
            }
            at = end;
            if start == end {
                out.extend(name.get(at));
                at += 1;
            }
            if count >= self.from && !self.global {
                break;
            }
        }
        out.extend_from_slice(name.get(at..).unwrap_or_default());
        out
    }

    fn replaced(&self, name: &[u8], spans: &[Option<Span>], out: &mut Vec<u8>) {
        let mut bytes = self.replacement.iter();
        while let Some(&byte) = bytes.next() {
            let group = match byte {
                b'&' => 0,
                b'\\' => match bytes.next() {
                    Some(digit @ b'0'..=b'9') => usize::from(digit - b'0'),
                    Some(other) => {
                        out.push(*other);
                        continue;
                    }
                    None => break,
                },
                byte => {
                    out.push(byte);
                    continue;
                }
            };
            if let Some(Some((start, end))) = spans.get(group) {
                out.extend_from_slice(&name[*start..*end]);
            }
        }
    }
}
