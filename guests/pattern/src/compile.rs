//! From a pattern's text to its nodes.

use crate::set::Set;
use crate::{Flags, Node, Pattern, Piece, Repeat};

/// Maximum depth of nested groups; deeper ones are literal.
const MAX_DEPTH: u32 = 100;

pub(super) fn compile(pieces: &[Piece<'_>], flags: Flags) -> Pattern {
    if let Some(literal) = plain_text(pieces, flags) {
        let nodes = if flags.nocase || flags.leading_dir { literal.chars().map(Node::Char).collect() } else { Vec::new() };
        return Pattern { nodes, flags, literal: Some(literal), has_groups: false };
    }
    let text: Vec<(char, bool)> = pieces.iter().flat_map(|&(text, quoted)| text.chars().map(move |c| (c, quoted))).collect();
    let closings = if flags.extglob { closings(&text) } else { Vec::new() };
    let mut compiler = Compiler { text: &text, closings: &closings, has_groups: false, no_set_from: usize::MAX };
    let nodes = compiler.sequence(0, text.len(), 0);
    let has_groups = compiler.has_groups;
    let literal: Option<String> = nodes.iter().map(|node| if let Node::Char(c) = node { Some(*c) } else { None }).collect();
    Pattern { nodes, flags, literal, has_groups }
}

/// Returns the text of a pattern without special characters.
fn plain_text(pieces: &[Piece<'_>], flags: Flags) -> Option<String> {
    let special = |byte: u8| matches!(byte, b'*' | b'?' | b'[' | b'\\') || (flags.extglob && byte == b'(');
    if pieces.iter().any(|&(text, quoted)| !quoted && text.bytes().any(special)) {
        return None;
    }
    Some(pieces.iter().map(|&(text, _)| text).collect())
}

/// Returns the positions of the `(` and the `)` of each group, in order of the `(`.
fn closings(text: &[(char, bool)]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut at = 0;
    let mut sets_end = true;
    while let Some(&(c, quoted)) = text.get(at) {
        at += 1;
        if quoted {
            continue;
        }
        match c {
            '\\' => at += 1,
            '[' if sets_end => match Set::read(text, at - 1) {
                Some((_, after)) => at = after,
                None => sets_end = false,
            },
            '(' => {
                let group = at >= 2 && matches!(text.get(at - 2), Some(('?' | '*' | '+' | '@' | '!', false)));
                open.push(group.then_some(at - 1));
            }
            ')' => {
                if let Some(Some(start)) = open.pop() {
                    found.push((start, at - 1));
                }
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found
}

struct Compiler<'a> {
    text: &'a [(char, bool)],
    closings: &'a [(usize, usize)],
    has_groups: bool,
    /// No set that begins here or later has an end.
    no_set_from: usize,
}

impl Compiler<'_> {
    fn sequence(&mut self, start: usize, end: usize, depth: u32) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut at = start;
        while at < end
            && let Some(&(c, quoted)) = self.text.get(at)
        {
            at += 1;
            if quoted {
                nodes.push(Node::Char(c));
                continue;
            }
            if matches!(c, '?' | '*' | '+' | '@' | '!')
                && depth < MAX_DEPTH
                && let Some(close) = self.closing(at)
                && close < end
            {
                nodes.push(self.group(c, at + 1, close, depth));
                at = close + 1;
                continue;
            }
            match c {
                '*' if nodes.last() == Some(&Node::Star) => {}
                '*' => nodes.push(Node::Star),
                '?' => nodes.push(Node::Any),
                '[' if at <= self.no_set_from => match Set::read(self.text, at - 1) {
                    Some((set, after)) if after <= end => {
                        nodes.push(Node::Set(Box::new(set)));
                        at = after;
                    }
                    Some(_) => nodes.push(Node::Char('[')),
                    None => {
                        self.no_set_from = at - 1;
                        nodes.push(Node::Char('['));
                    }
                },
                '\\' if at < end => {
                    nodes.push(Node::Char(self.text.get(at).map_or('\\', |&(c, _)| c)));
                    at += 1;
                }
                other => nodes.push(Node::Char(other)),
            }
        }
        nodes
    }

    /// Returns where the group whose `(` stands at a position ends.
    fn closing(&self, open: usize) -> Option<usize> {
        let found = self.closings.binary_search_by_key(&open, |&(start, _)| start).ok()?;
        self.closings.get(found).map(|&(_, close)| close)
    }

    fn group(&mut self, kind: char, start: usize, end: usize, depth: u32) -> Node {
        self.has_groups = true;
        let mut alternatives = Vec::new();
        let mut from = start;
        let mut at = start;
        while at < end {
            match self.text.get(at) {
                Some(('|', false)) => {
                    alternatives.push(self.sequence(from, at, depth + 1));
                    from = at + 1;
                }
                Some(('\\', false)) => at += 1,
                Some(('[', false)) => {
                    if let Some((_, after)) = Set::read(self.text, at)
                        && after <= end
                    {
                        at = after - 1;
                    }
                }
                Some(('(', false)) => {
                    if let Some(close) = self.closing(at) {
                        at = close;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        alternatives.push(self.sequence(from, end, depth + 1));
        let repeat = match kind {
            '?' => Repeat::Optional,
            '*' => Repeat::Any,
            '+' => Repeat::Some,
            '@' => Repeat::Once,
            _ => Repeat::Not,
        };
        Node::Group(repeat, alternatives)
    }
}
