//! A compiled pattern: finds the leftmost match and, as POSIX wants, the longest one there.

use std::cell::{OnceCell, RefCell};

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson::{self, pikevm::PikeVM};
use regex_automata::util::syntax::Config as SyntaxConfig;
use regex_automata::{Anchored, Input, MatchKind, meta};

use crate::{Node, Syntax, parse, translate};

/// Start and end of a match or of a group.
pub type Span = (usize, usize);

/// Bytes a compiled automaton may take: enough for long word lists, little enough for a guest.
const SIZE_LIMIT: usize = 64 << 20;

/// A compiled pattern.
pub struct Regex {
    engine: Engine,
    groups: usize,
    longest: Option<Longest>,
    warnings: Vec<String>,
    literal: Option<memchr::memmem::Finder<'static>>,
    source: Vec<u8>,
}

enum Engine {
    Automata { regex: meta::Regex, cache: RefCell<Box<meta::Cache>> },
    Backtracking(fancy_regex::Regex),
}

/// The additional state for leftmost-longest matches: the longest match from a given start.
struct Longest {
    pattern: String,
    dfa: DFA,
    cache: RefCell<dfa::Cache>,
    pike: OnceCell<Option<PikeVM>>,
    whole: OnceCell<Option<meta::Regex>>,
}

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Regex").field("groups", &self.groups).finish_non_exhaustive()
    }
}

/// The required surroundings of a match (`grep -w`, `-x`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// Nothing.
    Nothing,
    /// No word character on either side.
    Word,
    /// The whole line.
    Line,
}

impl Regex {
    /// Compiles one pattern; the error is worded as the C library words it.
    pub fn new(pattern: &[u8], syntax: Syntax) -> Result<Self, String> {
        let mut regex = Self::any_of(&[pattern.to_vec()], syntax, Around::Nothing)?;
        regex.source = pattern.to_vec();
        Ok(regex)
    }

    /// Compiles several patterns into one that matches where any of them does.
    pub fn any_of(patterns: &[Vec<u8>], syntax: Syntax, around: Around) -> Result<Self, String> {
        let mut groups = 0;
        let mut ambiguous = patterns.len() > 1;
        let mut backrefs = false;
        let mut texts = Vec::new();
        let mut warnings = Vec::new();
        let mut literal = None;
        for pattern in patterns {
            let parsed = parse(pattern, syntax)?;
            backrefs |= parsed.backrefs;
            // The engine that goes back knows only characters.
            let own = Syntax { utf8: syntax.utf8 || parsed.backrefs, ..syntax };
            texts.push(translate::pattern(&parsed.node, own, groups));
            groups += parsed.groups;
            ambiguous |= is_ambiguous(&parsed.node);
            warnings.extend(parsed.warnings);
            if patterns.len() == 1 && !syntax.ignore_case && around == Around::Nothing {
                literal = literal_bytes(&parsed.node);
            }
        }
        let text = if texts.len() == 1 {
            texts.remove(0)
        } else {
            texts.iter().map(|text| format!("(?:{text})")).collect::<Vec<_>>().join("|")
        };
        let text = surround(&text, around, syntax, backrefs);
        let mut regex = Self::compile(&text, groups, ambiguous, backrefs)?;
        regex.warnings = warnings;
        regex.literal = literal.filter(|bytes| !bytes.is_empty()).map(|bytes| memchr::memmem::Finder::new(&bytes).into_owned());
        Ok(regex)
    }

    /// Compiles literal strings into one pattern.
    pub fn literals(strings: &[Vec<u8>], syntax: Syntax, around: Around) -> Result<Self, String> {
        let quoted: Vec<String> = strings
            .iter()
            .map(|string| {
                let units = crate::units(string, syntax.utf8);
                let node = Node::Concat(units.into_iter().map(Node::Char).collect());
                translate::pattern(&node, syntax, 0)
            })
            .collect();
        let text = surround(&quoted.join("|"), around, syntax, false);
        let mut regex = Self::compile(&text, 0, strings.len() > 1, false)?;
        if let [one] = strings
            && !syntax.ignore_case
            && around == Around::Nothing
            && !one.is_empty()
        {
            regex.literal = Some(memchr::memmem::Finder::new(one).into_owned());
        }
        Ok(regex)
    }

    /// Compiles a Perl-style pattern: leftmost-first, with look-around where the pattern uses it.
    pub fn perl(pattern: &[u8], ignore_case: bool, around: Around) -> Result<Self, String> {
        let text = String::from_utf8_lossy(pattern);
        let text = perl_text(&text);
        let syntax = Syntax { ignore_case, lines: true, ..Syntax::default() };
        let text = format!("{}{text}", if ignore_case { "(?i)" } else { "" });
        // The half boundaries of the automata are unknown here; look-around is equivalent.
        let text = surround(&text, around, syntax, true);
        let text = if around == Around::Nothing { format!("(?m){text}") } else { text };
        let regex = fancy_regex::RegexBuilder::new(&text).backtrack_limit(10_000_000).build();
        let regex = regex.map_err(|error| error.to_string())?;
        let groups = regex.captures_len() - 1;
        Ok(Self {
            engine: Engine::Backtracking(regex),
            groups,
            longest: None,
            warnings: Vec::new(),
            literal: None,
            source: Vec::new(),
        })
    }

    fn compile(text: &str, groups: usize, ambiguous: bool, backrefs: bool) -> Result<Self, String> {
        if backrefs {
            let regex = fancy_regex::RegexBuilder::new(text).backtrack_limit(10_000_000).build();
            let regex = regex.map_err(|error| format!("Invalid back reference: {error}"))?;
            return Ok(Self {
                engine: Engine::Backtracking(regex),
                groups,
                longest: None,
                warnings: Vec::new(),
                literal: None,
                source: Vec::new(),
            });
        }
        let config = meta::Config::new().utf8_empty(false).nfa_size_limit(Some(SIZE_LIMIT)).hybrid_cache_capacity(8 << 20);
        let regex = meta::Builder::new()
            .configure(config)
            .syntax(SyntaxConfig::new().utf8(false).nest_limit(2000))
            .build(text)
            .map_err(|_| "Regular expression too big".to_string())?;
        let cache = RefCell::new(Box::new(regex.create_cache()));
        let longest = if ambiguous { Longest::new(text) } else { None };
        Ok(Self {
            engine: Engine::Automata { regex, cache },
            groups,
            longest,
            warnings: Vec::new(),
            literal: None,
            source: Vec::new(),
        })
    }

    /// Returns the warnings for the author of the pattern.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the pattern as it was written, when it was compiled alone.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// Returns the number of groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Returns whether matching is linear and a match never needs to be looked for line by line.
    #[must_use]
    pub fn is_automaton(&self) -> bool {
        matches!(self.engine, Engine::Automata { .. })
    }

    /// Returns whether there is a match anywhere.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        if let Some(finder) = &self.literal {
            return finder.find(text).is_some();
        }
        match &self.engine {
            Engine::Automata { regex, cache } => {
                let input = Input::new(text).earliest(true);
                regex.search_half_with(&mut cache.borrow_mut(), &input).is_some()
            }
            Engine::Backtracking(_) => self.find_at(text, 0).is_some(),
        }
    }

    /// Returns some match at or after `start`, leftmost but perhaps not longest: enough to select a line.
    #[must_use]
    pub fn find_any(&self, text: &[u8], start: usize) -> Option<Span> {
        if let Some(finder) = &self.literal {
            return finder.find(&text[start..]).map(|at| (start + at, start + at + finder.needle().len()));
        }
        match &self.engine {
            Engine::Automata { regex, cache } => {
                let input = Input::new(text).range(start..);
                regex.search_with(&mut cache.borrow_mut(), &input).map(|found| (found.start(), found.end()))
            }
            Engine::Backtracking(regex) => backtrack(regex, text, start, None),
        }
    }

    /// Returns where the first match at or after `start` is known to be one: an end, not its last. Enough to find its line, and cheaper:
    /// nothing is read twice to learn where it begins.
    #[must_use]
    pub fn find_end(&self, text: &[u8], start: usize) -> Option<usize> {
        match &self.engine {
            Engine::Automata { regex, cache } if self.literal.is_none() => {
                let input = Input::new(text).range(start..).earliest(true);
                regex.search_half_with(&mut cache.borrow_mut(), &input).map(|found| found.offset())
            }
            _ => self.find_any(text, start).map(|(_, end)| end),
        }
    }

    /// Returns the leftmost-longest match at or after `start`.
    #[must_use]
    pub fn find_at(&self, text: &[u8], start: usize) -> Option<Span> {
        let (from, to) = self.find_any(text, start)?;
        match &self.longest {
            Some(longest) => Some((from, longest.end(text, from).unwrap_or(to))),
            None => Some((from, to)),
        }
    }

    /// Returns every match that is not empty, in order; none overlap.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> Vec<Span> {
        let mut found = Vec::new();
        let mut at = 0;
        while at <= text.len() {
            let Some((from, to)) = self.find_at(text, at) else { break };
            if from < to {
                found.push((from, to));
            }
            at = if to > from { to } else { to + 1 };
        }
        found
    }

    /// Returns the leftmost-longest match at or after `start` with its groups; `spans[0]` is the whole match.
    pub fn captures_at(&self, text: &[u8], start: usize, spans: &mut Vec<Option<Span>>) -> bool {
        spans.clear();
        if self.groups == 0 {
            spans.extend(self.find_at(text, start).map(Some));
            return !spans.is_empty();
        }
        match &self.engine {
            Engine::Backtracking(regex) => backtrack(regex, text, start, Some(spans)).is_some(),
            Engine::Automata { regex, cache } => {
                let mut captures = regex.create_captures();
                let input = match &self.longest {
                    None => Input::new(text).range(start..),
                    Some(longest) => {
                        let Some((from, to)) = self.find_at(text, start) else { return false };
                        if longest.captures(text, (from, to), spans) {
                            return true;
                        }
                        Input::new(text).range(from..).anchored(Anchored::Yes)
                    }
                };
                regex.search_captures_with(&mut cache.borrow_mut(), &input, &mut captures);
                spans.extend(captures.iter().map(|span| span.map(|span| (span.start, span.end))));
                captures.is_match()
            }
        }
    }
}

fn surround(text: &str, around: Around, syntax: Syntax, backrefs: bool) -> String {
    match around {
        Around::Nothing => text.to_string(),
        // The backtracking engine does not know half boundaries.
        Around::Word if backrefs => format!("(?<!\\w)(?:{text})(?!\\w)"),
        Around::Word if syntax.utf8 => format!("\\b{{start-half}}(?:{text})\\b{{end-half}}"),
        Around::Word => format!("(?-u:\\b{{start-half}})(?:{text})(?-u:\\b{{end-half}})"),
        Around::Line => format!("(?m:^)(?:{text})(?m:$)"),
    }
}

/// Translates what PCRE spells differently from `fancy-regex`.
fn perl_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut class = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('h') => out.push_str(if class { " \\t" } else { "[ \\t]" }),
                Some('R') => out.push_str("(?:\\r\\n|\\n|\\r)"),
                Some('N') => out.push_str("[^\\n]"),
                Some('e') => out.push_str("\\x1b"),
                Some('<') => out.push('<'),
                Some('>') => out.push('>'),
                Some('Q') => {
                    let rest = chars.as_str();
                    let (quoted, after) = rest.split_once("\\E").unwrap_or((rest, ""));
                    out.push_str(&regex_syntax::escape(quoted));
                    chars = after.chars();
                }
                Some('E') => {}
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            },
            '[' if !class => {
                class = true;
                out.push('[');
                let rest = chars.as_str();
                if let Some(rest) = rest.strip_prefix("^]") {
                    out.push_str("^\\]");
                    chars = rest.chars();
                } else if let Some(rest) = rest.strip_prefix(']') {
                    out.push_str("\\]");
                    chars = rest.chars();
                }
            }
            '[' if chars.as_str().starts_with(':') => {
                let rest = chars.as_str();
                match rest.find(":]") {
                    Some(end) => {
                        out.push('[');
                        out.push_str(&rest[..end + 2]);
                        chars = rest[end + 2..].chars();
                    }
                    None => out.push_str("\\["),
                }
            }
            '[' => out.push_str("\\["),
            '&' | '~' if class => {
                out.push('\\');
                out.push(char);
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            _ => out.push(char),
        }
    }
    out
}

fn is_ambiguous(node: &Node) -> bool {
    match node {
        Node::Alternate(_) => true,
        Node::Concat(items) => items.iter().any(is_ambiguous),
        Node::Group(inner) => is_ambiguous(inner),
        Node::Repeat(inner, min, max) => is_ambiguous(inner) || *max != Some(*min) && !is_single(inner),
        _ => false,
    }
}

fn is_single(node: &Node) -> bool {
    match node {
        Node::Group(inner) => is_single(inner),
        Node::Char(_) | Node::Any | Node::Class(_) => true,
        _ => false,
    }
}

fn literal_bytes(node: &Node) -> Option<Vec<u8>> {
    let items = match node {
        Node::Concat(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut bytes = Vec::new();
    for item in items {
        let Node::Char(unit) = item else { return None };
        match char::from_u32(*unit) {
            Some(char) => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            None => bytes.push((unit - crate::RAW) as u8),
        }
    }
    Some(bytes)
}

impl Longest {
    fn new(text: &str) -> Option<Self> {
        let config = dfa::Config::new()
            .match_kind(MatchKind::All)
            .unicode_word_boundary(true)
            .skip_cache_capacity_check(true)
            .cache_capacity(4 << 20);
        let dfa = DFA::builder()
            .configure(config)
            .syntax(SyntaxConfig::new().utf8(false).nest_limit(2000))
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(SIZE_LIMIT)))
            .build(text)
            .ok()?;
        let cache = RefCell::new(dfa.create_cache());
        Some(Self { pattern: text.to_string(), dfa, cache, pike: OnceCell::new(), whole: OnceCell::new() })
    }

    fn end(&self, text: &[u8], from: usize) -> Option<usize> {
        let input = Input::new(text).range(from..).anchored(Anchored::Yes);
        if let Ok(found) = self.dfa.try_search_fwd(&mut self.cache.borrow_mut(), &input) {
            return found.map(|half| half.offset());
        }
        let pike = self.pike.get_or_init(|| {
            PikeVM::builder()
                .configure(PikeVM::config().match_kind(MatchKind::All))
                .syntax(SyntaxConfig::new().utf8(false).nest_limit(2000))
                .thompson(thompson::Config::new().utf8(false))
                .build(&self.pattern)
                .ok()
        });
        let pike = pike.as_ref()?;
        let mut slots = [None; 2];
        pike.search_slots(&mut pike.create_cache(), &input, &mut slots)?;
        slots[1].map(|slot| slot.get())
    }

    fn captures(&self, text: &[u8], (from, to): Span, spans: &mut Vec<Option<Span>>) -> bool {
        let whole = self.whole.get_or_init(|| {
            meta::Builder::new()
                .configure(meta::Config::new().utf8_empty(false))
                .syntax(SyntaxConfig::new().utf8(false).nest_limit(2000))
                .build(&format!("(?:{})\\z", self.pattern))
                .ok()
        });
        let Some(whole) = whole else { return false };
        let mut captures = whole.create_captures();
        whole.search_captures(&Input::new(&text[..to]).range(from..).anchored(Anchored::Yes), &mut captures);
        if !captures.is_match() {
            return false;
        }
        spans.extend(captures.iter().map(|span| span.map(|span| (span.start, span.end))));
        true
    }
}

/// Matches by backtracking; bytes that are not UTF-8 stand as one replacement character each.
fn backtrack(regex: &fancy_regex::Regex, text: &[u8], start: usize, spans: Option<&mut Vec<Option<Span>>>) -> Option<Span> {
    if let Ok(text) = std::str::from_utf8(text) {
        if !text.is_char_boundary(start) {
            return None;
        }
        return backtrack_text(regex, text, start, spans, |at| at);
    }
    let mut mapped = String::with_capacity(text.len() + 16);
    let mut offsets = Vec::with_capacity(text.len() + 16);
    let mut at = 0;
    let mut mapped_start = 0;
    for chunk in text.utf8_chunks() {
        for piece in chunk.valid().bytes().map(Some).chain(chunk.invalid().iter().map(|_| None)) {
            if at == start {
                mapped_start = offsets.len();
            }
            let width = if piece.is_some() { 1 } else { 3 };
            offsets.extend(std::iter::repeat_n(at, width));
            at += 1;
        }
        mapped.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|_| mapped.push('\u{fffd}'));
    }
    offsets.push(at);
    if start >= at {
        mapped_start = mapped.len();
    }
    if !mapped.is_char_boundary(mapped_start) {
        return None;
    }
    backtrack_text(regex, &mapped, mapped_start, spans, |at| offsets[at])
}

fn backtrack_text(
    regex: &fancy_regex::Regex,
    text: &str,
    start: usize,
    spans: Option<&mut Vec<Option<Span>>>,
    map: impl Fn(usize) -> usize,
) -> Option<Span> {
    match spans {
        None => {
            let found = regex.find_from_pos(text, start).ok()??;
            Some((map(found.start()), map(found.end())))
        }
        Some(spans) => {
            let captures = regex.captures_from_pos(text, start).ok()??;
            spans.extend(captures.iter().map(|group| group.map(|group| (map(group.start()), map(group.end())))));
            spans[0]
        }
    }
}
