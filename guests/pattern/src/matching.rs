//! Running a pattern over a text.

use crate::{Flags, Node, Repeat};

fn same(a: char, b: char, flags: Flags) -> bool {
    a == b || (flags.nocase && (a.to_lowercase().eq(b.to_lowercase())))
}

/// Returns whether a node that stands for one character stands for this one.
fn stands_for(node: &Node, c: char, flags: Flags) -> bool {
    match node {
        Node::Char(wanted) => same(*wanted, c, flags),
        Node::Any => !(flags.pathname && c == '/'),
        Node::Set(set) => !(flags.pathname && c == '/') && set.contains(c, flags.nocase),
        Node::Star | Node::Group(..) => false,
    }
}

/// Matches a pattern without groups against the whole text: only the last star ever has to try again.
pub(super) fn matches_plain(nodes: &[Node], text: &str, flags: Flags) -> bool {
    let (mut node, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let here = text.get(at..).and_then(|rest| rest.chars().next());
        match nodes.get(node) {
            Some(Node::Star) => {
                node += 1;
                if node == nodes.len() && !flags.pathname {
                    return true;
                }
                star = Some((node, at));
                continue;
            }
            Some(wanted) => {
                if let Some(c) = here
                    && stands_for(wanted, c, flags)
                {
                    node += 1;
                    at += c.len_utf8();
                    continue;
                }
            }
            None if here.is_none() || flags.leading_dir && here == Some('/') => return true,
            None => {}
        }
        let Some((after, from)) = star else { return false };
        let Some(skipped) = text.get(from..).and_then(|rest| rest.chars().next()) else { return false };
        if flags.pathname && skipped == '/' {
            return false;
        }
        at = from + skipped.len_utf8();
        node = after;
        star = Some((after, at));
    }
}

/// Positions in a text that a pattern may have reached.
#[derive(Clone)]
struct Reached {
    /// Sorted, without repetition.
    at: Vec<usize>,
}

/// A text as characters, for patterns that look at many positions.
pub(super) struct Positions {
    chars: Vec<char>,
}

impl Positions {
    pub(super) fn new(text: &str) -> Self {
        Self { chars: text.chars().collect() }
    }

    pub(super) fn matches(&self, nodes: &[Node], flags: Flags) -> bool {
        let from = Reached { at: vec![0] };
        self.sequence(nodes, from, flags).at.last() == Some(&self.chars.len())
    }

    fn sequence(&self, nodes: &[Node], mut from: Reached, flags: Flags) -> Reached {
        for node in nodes {
            if from.at.is_empty() {
                break;
            }
            from = self.step(node, from, flags);
        }
        from
    }

    fn step(&self, node: &Node, mut from: Reached, flags: Flags) -> Reached {
        match node {
            Node::Star => {
                let first = from.at.first().copied().unwrap_or(0);
                Reached { at: (first..=self.chars.len()).collect() }
            }
            Node::Group(repeat, alternatives) => self.group(*repeat, alternatives, from, flags),
            _ => {
                from.at.retain_mut(|at| {
                    let fits = self.chars.get(*at).is_some_and(|&c| stands_for(node, c, flags));
                    *at += 1;
                    fits
                });
                from
            }
        }
    }

    fn once(&self, alternatives: &[Vec<Node>], from: &Reached, flags: Flags) -> Reached {
        let mut all = Reached { at: Vec::new() };
        for alternative in alternatives {
            all.at.extend(self.sequence(alternative, from.clone(), flags).at);
        }
        all.at.sort_unstable();
        all.at.dedup();
        all
    }

    fn group(&self, repeat: Repeat, alternatives: &[Vec<Node>], from: Reached, flags: Flags) -> Reached {
        match repeat {
            Repeat::Once => self.once(alternatives, &from, flags),
            Repeat::Optional => self.union(from.clone(), self.once(alternatives, &from, flags)),
            Repeat::Any => self.closure(alternatives, from, flags),
            Repeat::Some => {
                let first = self.once(alternatives, &from, flags);
                self.closure(alternatives, first, flags)
            }
            Repeat::Not => {
                let mut reached = vec![false; self.chars.len() + 1];
                for start in from.at {
                    let excluded = self.once(alternatives, &Reached { at: vec![start] }, flags);
                    let mut excluded = excluded.at.iter().peekable();
                    for (at, slot) in reached.iter_mut().enumerate().skip(start) {
                        if excluded.peek() == Some(&&at) {
                            excluded.next();
                        } else {
                            *slot = true;
                        }
                    }
                }
                Reached { at: reached.iter().enumerate().filter(|(_, hit)| **hit).map(|(at, _)| at).collect() }
            }
        }
    }

    fn union(&self, mut a: Reached, b: Reached) -> Reached {
        a.at.extend(b.at);
        a.at.sort_unstable();
        a.at.dedup();
        a
    }

    /// Matches any number of rounds through a group.
    fn closure(&self, alternatives: &[Vec<Node>], from: Reached, flags: Flags) -> Reached {
        let mut reached = vec![false; self.chars.len() + 1];
        let mut fresh = from;
        while !fresh.at.is_empty() {
            for &at in &fresh.at {
                if let Some(slot) = reached.get_mut(at) {
                    *slot = true;
                }
            }
            fresh = self.once(alternatives, &fresh, flags);
            fresh.at.retain(|&at| reached.get(at) == Some(&false));
        }
        Reached { at: reached.iter().enumerate().filter(|(_, hit)| **hit).map(|(at, _)| at).collect() }
    }

    /// Returns how many bytes the characters between two positions have.
    fn bytes(&self, from: usize, to: usize) -> usize {
        self.chars.get(from..to).unwrap_or_default().iter().map(|c| c.len_utf8()).sum()
    }
}

pub(super) fn prefix(nodes: &[Node], text: &str, longest: bool, flags: Flags) -> Option<usize> {
    // The ends of `*` are where the text may be cut: the two commonest patterns need no search.
    match nodes {
        [Node::Star] => return Some(if longest { text.len() } else { 0 }),
        [Node::Star, Node::Char(c)] if !flags.nocase => {
            let at = if longest { text.rfind(*c) } else { text.find(*c) };
            return at.map(|at| at + c.len_utf8());
        }
        [Node::Char(c), Node::Star] if !flags.nocase => {
            return text.starts_with(*c).then(|| if longest { text.len() } else { c.len_utf8() });
        }
        _ => {}
    }
    let positions = Positions::new(text);
    let ends = positions.sequence(nodes, Reached { at: vec![0] }, flags).at;
    let end = if longest { ends.last() } else { ends.first() };
    end.map(|&end| positions.bytes(0, end))
}

/// Returns the leftmost match, and the longest there.
pub(super) fn find(nodes: &[Node], text: &str, flags: Flags) -> Option<(usize, usize)> {
    // Without stars and groups every match has the same number of characters.
    if nodes.iter().all(|node| matches!(node, Node::Char(_) | Node::Any | Node::Set(_))) {
        return text.char_indices().map(|(at, _)| at).chain([text.len()]).find_map(|start| {
            let mut end = start;
            let mut chars = text.get(start..)?.chars();
            for node in nodes {
                let c = chars.next()?;
                if !stands_for(node, c, flags) {
                    return None;
                }
                end += c.len_utf8();
            }
            Some((start, end))
        });
    }
    let positions = Positions::new(text);
    let mut start_bytes = 0;
    for start in 0..=positions.chars.len() {
        let ends = positions.sequence(nodes, Reached { at: vec![start] }, flags).at;
        if let Some(&end) = ends.last() {
            return Some((start_bytes, start_bytes + positions.bytes(start, end)));
        }
        // If a leading star found no match from here, it finds none from a later position.
        if matches!(nodes.first(), Some(Node::Star)) {
            return None;
        }
        start_bytes += positions.chars.get(start).map_or(0, |c| c.len_utf8());
    }
    None
}

/// Returns the pattern that matches the same texts read backwards.
pub(super) fn reversed(nodes: &[Node]) -> Vec<Node> {
    nodes
        .iter()
        .rev()
        .map(|node| match node {
            Node::Group(repeat, alternatives) => Node::Group(*repeat, alternatives.iter().map(|nodes| reversed(nodes)).collect()),
            other => other.clone(),
        })
        .collect()
}
