//! Path names that match a pattern.

use common::bytes;

use crate::{Flags, Node, Pattern, Piece, Repeat};

/// Maximum depth of directories that `**` enters.
const MAX_DEPTH: usize = 256;

/// Looking at directories; paths are as the pattern writes them, "" being the current directory.
pub trait Directories {
    /// Returns the names in a directory, without `.` and `..`; empty when it cannot be read.
    fn list(&mut self, path: &str) -> Vec<Entry>;
    /// Returns whether there is something of this name, be it a broken link.
    fn exists(&mut self, path: &str) -> bool;
    /// Returns whether it is a directory, through links.
    fn is_directory(&mut self, path: &str) -> bool;
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What a name in a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A symbolic link, to whatever.
    Link,
    /// Anything else.
    Other,
}

/// The shell's options about path names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobOptions {
    /// Names that begin with a dot match too.
    pub dotglob: bool,
    /// `**` goes through directories.
    pub globstar: bool,
    /// Upper and lower case are the same.
    pub nocaseglob: bool,
    /// `@( … )` and its kin.
    pub extglob: bool,
}

/// One part of a path pattern, with the slashes after it.
struct Component {
    text: String,
    pattern: Option<Pattern>,
    /// `**`.
    every: bool,
    slashes: String,
}

/// Returns the sorted path names that match; `None` when the pattern has no special characters and so is not a pattern.
pub fn glob<D: Directories + ?Sized>(pieces: &[Piece<'_>], directories: &mut D, options: GlobOptions) -> Option<Vec<String>> {
    if !may_be_pattern(pieces, options.extglob) {
        return None;
    }
    let mut components = components(pieces, options);
    // Of the slashes at the end, and of those after a pattern, one is kept; of all others every one.
    if let Some(last) = components.last_mut() {
        last.slashes.truncate(1);
    }
    for component in components.iter_mut().skip_while(|component| component.pattern.is_none()) {
        component.slashes.truncate(1);
    }
    // `**/**` is `**`.
    let mut after: Vec<bool> = components.iter().skip(1).map(|component| component.every).collect();
    after.push(false);
    let mut after = after.into_iter();
    components.retain(|component| !(after.next().unwrap_or_default() && component.every));
    if components.iter().all(|component| component.pattern.is_none()) {
        return None;
    }
    let mut walk = Walk { directories, options, found: Vec::new() };
    walk.expand(String::new(), &components);
    let mut found = walk.found;
    if found.iter().all(|name| name.is_ascii()) {
        found.sort_unstable();
    } else {
        found.sort_by(|a, b| bytes::encode(a).cmp(&bytes::encode(b)));
    }
    found.dedup();
    Some(found)
}

fn may_be_pattern(pieces: &[Piece<'_>], extglob: bool) -> bool {
    pieces.iter().any(|&(text, quoted)| {
        !quoted && text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[') || (extglob && byte == b'('))
    })
}

fn components(pieces: &[Piece<'_>], options: GlobOptions) -> Vec<Component> {
    let flags = Flags { extglob: options.extglob, nocase: options.nocaseglob, ..Flags::default() };
    let mut components = Vec::new();
    let mut current: Vec<Piece<'_>> = Vec::new();
    let mut slashes = String::new();
    let finish = |current: &mut Vec<Piece<'_>>, slashes: &mut String, components: &mut Vec<Component>| {
        let every = options.globstar && matches!(current.as_slice(), [("**", false)]);
        let pattern = Pattern::compile(current, flags);
        let magic = current.iter().any(|piece| !piece.1) && pattern.literal().is_none();
        let text = pattern.literal().map_or_else(|| current.iter().map(|piece| piece.0).collect(), str::to_owned);
        components.push(Component { text, pattern: magic.then_some(pattern), every, slashes: std::mem::take(slashes) });
        current.clear();
    };
    let mut depth = 0u32;
    for &(text, quoted) in pieces {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            if !quoted && options.extglob {
                // A slash inside a group does not end the component.
                match c {
                    '(' if at > 0 && text.as_bytes().get(at - 1).is_some_and(|b| b"?*+@!".contains(b)) => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            if c == '/' && depth == 0 {
                if at > start {
                    if !slashes.is_empty() {
                        finish(&mut current, &mut slashes, &mut components);
                    }
                    current.push((text.get(start..at).unwrap_or_default(), quoted));
                }
                slashes.push('/');
                start = at + 1;
            } else if !slashes.is_empty() {
                finish(&mut current, &mut slashes, &mut components);
            }
        }
        if start < text.len() {
            current.push((text.get(start..).unwrap_or_default(), quoted));
        }
    }
    if !current.is_empty() || !slashes.is_empty() {
        finish(&mut current, &mut slashes, &mut components);
    }
    components
}

struct Walk<'a, D: ?Sized> {
    directories: &'a mut D,
    options: GlobOptions,
    found: Vec<String>,
}

impl<D: Directories + ?Sized> Walk<'_, D> {
    fn expand(&mut self, prefix: String, components: &[Component]) {
        let Some((component, rest)) = components.split_first() else {
            self.found.push(prefix);
            return;
        };
        if component.every {
            self.every(prefix, component, rest, 0);
            return;
        }
        let Some(pattern) = &component.pattern else {
            let mut path = prefix;
            path.push_str(&component.text);
            let kept = if component.slashes.is_empty() {
                self.directories.exists(&path)
            } else {
                // A name with a slash after it must be a directory; the root needs no look.
                rest.iter().any(|later| later.pattern.is_some()) || self.directories.is_directory(&path)
            };
            if kept {
                path.push_str(&component.slashes);
                self.expand(path, rest);
            }
            return;
        };
        for entry in self.directories.list(&prefix) {
            if !self.admits(pattern, &entry.name) {
                continue;
            }
            let mut path = prefix.clone();
            path.push_str(&entry.name);
            if !component.slashes.is_empty() {
                let directory = match entry.kind {
                    EntryKind::Directory => true,
                    EntryKind::Link => self.directories.is_directory(&path),
                    EntryKind::Other => false,
                };
                if !directory {
                    continue;
                }
                path.push_str(&component.slashes);
            }
            self.expand(path, rest);
        }
    }

    fn admits(&self, pattern: &Pattern, name: &str) -> bool {
        (self.options.dotglob || !name.starts_with('.') || begins_with_dot(pattern)) && pattern.matches(name)
    }

    /// Matches `**`: this directory and all below it.
    fn every(&mut self, prefix: String, component: &Component, rest: &[Component], depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let last = rest.is_empty();
        if last {
            if depth == 0 && !prefix.is_empty() && self.directories.is_directory(&prefix) {
                self.found.push(prefix.clone());
            }
        } else {
            self.expand(prefix.clone(), rest);
        }
        for entry in self.directories.list(&prefix) {
            if entry.name.starts_with('.') && !self.options.dotglob {
                continue;
            }
            let directory = entry.kind == EntryKind::Directory;
            let path = format!("{prefix}{}", entry.name);
            let shown = component.slashes.is_empty()
                || directory
                || entry.kind == EntryKind::Link && self.directories.is_directory(&path);
            if last && shown {
                self.found.push(format!("{path}{}", component.slashes));
            }
            if directory {
                self.every(path + "/", component, rest, depth + 1);
            }
        }
    }
}

/// Returns whether a pattern names the leading dot, as it must to match hidden files.
pub(crate) fn begins_with_dot(pattern: &Pattern) -> bool {
    match &pattern.literal {
        Some(literal) => literal.starts_with('.'),
        None => nodes_begin_with_dot(&pattern.nodes),
    }
}

fn nodes_begin_with_dot(nodes: &[Node]) -> bool {
    match nodes.first() {
        Some(Node::Char('.')) => true,
        Some(Node::Group(repeat, alternatives)) => {
            *repeat != Repeat::Not && alternatives.iter().any(|nodes| nodes_begin_with_dot(nodes))
        }
        _ => false,
    }
}
