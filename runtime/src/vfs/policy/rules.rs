//! The compiled rules of one or several policies: from a directory's state and a name to its class.
//!
//! A directory's [`State`] contains everything that its path implies for the paths below it: which rules can still match, their
//! progress, and which decided last. Two directories with equal states have equal rules below them, so one can be moved to the
//! place of the other. Knows nothing about nodes; `guard.rs` maps nodes to states.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use globset::{GlobBuilder, GlobMatcher};
use presets::{Access, Policy};

use crate::Error;

/// Maximum number of combined policies: the labels of each take sixteen bits of a [`Class`].
const LAYERS_MAX: usize = 4;

/// No rule.
const NONE: u16 = u16::MAX;

/// A viewer: a principal and its labels. Its own name counts as a label with a leading `@`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Viewer {
    /// Its name.
    pub(crate) principal: String,
    /// Its labels, in order.
    pub(crate) labels: Vec<String>,
}

impl Viewer {
    fn has(&self, label: &str) -> bool {
        label.strip_prefix('@') == Some(&self.principal) || self.labels.iter().any(|own| own == label)
    }
}

/// One name of a rule's path.
#[derive(Debug)]
enum Component {
    Name(Box<str>),
    Pattern(Box<GlobMatcher>),
    /// `**`
    Any,
}

impl Component {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => **own == *name,
            Self::Pattern(pattern) => pattern.is_match(name),
            Self::Any => true,
        }
    }
}

#[derive(Debug)]
struct Compiled {
    layer: usize,
    components: Vec<Component>,
    /// The number of plain names at its beginning.
    plain: usize,
    inherits: bool,
    access: Option<Access>,
    label: Option<Label>,
}

#[derive(Clone, Copy, Debug)]
struct Label {
    /// Equal for equal sets of labels.
    id: u16,
    /// Whether the viewer has one of them.
    is_seen: bool,
}

impl Compiled {
    // Whether it shows something that an earlier rule hides.
    fn reveals(&self) -> bool {
        self.access.is_none_or(|access| access > Access::Hidden) && self.label.is_none_or(|label| label.is_seen)
    }
}

/// The class of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// The access; a missing label hides the path.
    pub(crate) access: Access,
    /// Its labels, sixteen bits for each policy.
    labels: u64,
}

impl Default for Class {
    fn default() -> Self {
        Self::FREE
    }
}

impl Class {
    /// The class of paths without a matching rule.
    pub(crate) const FREE: Self = Self { access: Access::Write, labels: 0 };

    /// Returns the class of a file with two names.
    pub(super) fn meet(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        // No path has these labels, so the file cannot be moved or linked anywhere.
        Self { access: self.access.min(other.access), labels: u64::MAX }
    }
}

/// The state of a directory: the effect of its path on the paths below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// Rules that can still match, and the component to compare with the next name.
    active: Vec<(u16, u16)>,
    /// For each policy, the rules that apply here because they matched this directory or a parent: access, labels.
    inherited: [(u16, u16); LAYERS_MAX],
}

/// A state, prepared for the names of its directory: most of them match no rule, which is detected at once.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The state.
    pub(crate) state: State,
    /// Rules whose last component is a plain name, by that name.
    names: HashMap<Box<str>, Vec<u16>>,
    /// Rules whose last component is a pattern, and the component.
    patterns: Vec<(u16, u16)>,
    /// The class of names without a rule.
    class: Class,
    /// The names for which a rule has a component of its own, if no rule has a pattern here: below all others the same rules apply.
    named: Option<HashSet<Box<str>>>,
    /// The state of directories with other names.
    below_others: OnceLock<State>,
}

/// The result for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The class.
    pub(crate) class: Class,
    /// Whether it is hidden, but leads to a path that a later rule shows.
    pub(crate) is_passage: bool,
}

/// Names of the same program: denying one of them denies all (T-POL-06).
const SAME_PROGRAMS: [&[&str]; 10] = [
    &["[", "test"],
    &["awk", "gawk", "mawk", "nawk"],
    &["bash", "sh"],
    &["bunzip2", "bzcat", "bzip2"],
    &["dir", "ls", "vdir"],
    &["egrep", "fgrep", "grep"],
    &["gunzip", "gzip", "zcat"],
    &["hd", "hexdump"],
    &["lzcat", "lzma", "unlzma", "unxz", "xz", "xzcat"],
    PYTHON,
];

/// The names of Python, which programs and this library start by different ones: allowing one of them allows all.
const PYTHON: &[&str] = &["python", "python3", "python3.14", "python3.15"];

/// Length of a policy's digest in digits: 128 bits, because authors of policies may search for two with the same digest.
const DIGEST_DIGITS: usize = 32;

// A digest of the rules for paths.
fn digest(policy: &Policy) -> String {
    let rules = Policy { rules: policy.rules.clone(), ..Policy::default() };
    let mut hex = blake3::hash(rules.to_string().as_bytes()).to_hex().to_string();
    hex.truncate(DIGEST_DIGITS);
    hex
}

/// The programs that may be started.
#[derive(Debug)]
struct Commands {
    allowed: Option<Vec<String>>,
    denied: Vec<String>,
}

/// Compiled rules.
#[derive(Debug)]
pub(crate) struct Rules {
    rules: Vec<Compiled>,
    layers: usize,
    root: Arc<Prepared>,
    /// States of directories, prepared once for all views.
    prepared: Mutex<HashMap<State, Arc<Prepared>>>,
    hides: bool,
    hiding: Vec<String>,
    commands: Vec<Commands>,
}

/// Maximum number of states that are prepared for all views.
const PREPARED_MAX: usize = 1024;

impl Rules {
    /// Compiles policies for a viewer, or for no viewer, in which case labels hide nothing. Returns `None` if they restrict
    /// nothing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a path is not a glob, or if there are too many policies.
    pub(crate) fn compile<'a>(
        policies: impl IntoIterator<Item = &'a Policy>,
        viewer: Option<&Viewer>,
    ) -> Result<Option<Self>, Error> {
        let (mut rules, mut commands, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        let (mut layers, mut hiding) = (0, Vec::new());
        for policy in policies.into_iter().filter(|policy| !policy.is_empty()) {
            for rule in &policy.rules {
                rules.push(compile(rule, layers, viewer, &mut labels)?);
            }
            if policy.rules.iter().any(|rule| rule.access == Some(Access::Hidden)) {
                hiding.push(digest(policy));
            }
            commands.push(Commands { allowed: policy.allowed_commands.clone(), denied: policy.denied_commands.clone() });
            layers += 1;
        }
        if layers > LAYERS_MAX || rules.len() >= usize::from(NONE) {
            return Err(Error::Invalid(format!("too many policies: the maximum is {LAYERS_MAX}")));
        }
        if layers == 0 {
            return Ok(None);
        }
        commands.retain(|commands| commands.allowed.is_some() || !commands.denied.is_empty());
        let hides = |rule: &Compiled| rule.access == Some(Access::Hidden) || rule.label.is_some_and(|label| !label.is_seen);
        let hides = rules.iter().any(hides);
        hiding.sort_unstable();
        hiding.dedup();
        let mut compiled = Self { rules, layers, root: Arc::default(), prepared: Mutex::default(), hides, hiding, commands };
        compiled.root = Arc::new(compiled.prepare(compiled.at_root()));
        Ok(Some(compiled))
    }

    fn at_root(&self) -> State {
        let mut state = State { active: Vec::new(), inherited: [(NONE, NONE); LAYERS_MAX] };
        for (number, rule) in (0u16..).zip(&self.rules) {
            if rule.components.is_empty() {
                // `/` is the root directory, which always exists; its rules apply below it by inheritance.
                if rule.inherits {
                    note(&mut state.inherited, number, rule);
                }
            } else {
                self.activate(&mut state.active, number, 0);
            }
        }
        self.prune(&mut state);
        state
    }

    /// Returns the state of the root directory.
    pub(crate) fn root(&self) -> &Arc<Prepared> {
        &self.root
    }

    /// Returns whether any rule hides anything from this viewer.
    pub(crate) fn hides(&self) -> bool {
        self.hides
    }

    /// Returns the digests of the policies that hide paths, in order. Rules with all policies of other ones hide everything that
    /// those hide, because the strictest decision applies.
    pub(crate) fn hiding(&self) -> &[String] {
        &self.hiding
    }

    /// Returns whether there are rules for paths.
    pub(crate) fn has_paths(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Returns whether a program with this name may be started.
    pub(crate) fn may_start(&self, name: &str) -> bool {
        let is_allowed =
            |list: &[String]| list.iter().any(|own| own == name || (PYTHON.contains(&name) && PYTHON.contains(&own.as_str())));
        self.commands.iter().all(|commands| commands.allowed.as_deref().is_none_or(is_allowed)) && !self.denies(name)
    }

    /// Returns whether a policy denies this name, which then may not be called in another way either.
    pub(crate) fn denies(&self, name: &str) -> bool {
        self.commands.iter().any(|commands| commands.denied.iter().any(|own| is_same_program(own, name)))
    }

    /// Returns whether programs are restricted.
    pub(crate) fn restricts_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Returns a state that is prepared for the names of its directory.
    pub(crate) fn prepared(&self, state: &State) -> Arc<Prepared> {
        let mut known = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = known.get(state) {
            return Arc::clone(prepared);
        }
        if known.len() >= PREPARED_MAX {
            known.clear();
        }
        let prepared = Arc::new(self.prepare(state.clone()));
        known.insert(state.clone(), Arc::clone(&prepared));
        prepared
    }

    fn prepare(&self, state: State) -> Prepared {
        let class = self.class(&state.inherited);
        let mut prepared = Prepared { class, named: Some(HashSet::new()), state, ..Prepared::default() };
        for &(number, position) in &prepared.state.active {
            match self.component(number, position) {
                Some((_, Component::Name(name))) => {
                    if let Some(named) = &mut prepared.named {
                        named.insert(name.clone());
                    }
                }
                Some((_, Component::Pattern(_))) => prepared.named = None,
                _ => {}
            }
            match self.component(number, position) {
                Some((rule, _)) if usize::from(position) + 1 < rule.components.len() => {}
                Some((_, Component::Name(name))) => prepared.names.entry(name.clone()).or_default().push(number),
                Some(_) => prepared.patterns.push((number, position)),
                None => {}
            }
        }
        prepared
    }

    /// Returns the class of a name in a directory.
    pub(crate) fn at(&self, directory: &Prepared, name: &str) -> Found {
        let state = &directory.state;
        let by_name = if directory.names.is_empty() { None } else { directory.names.get(name) };
        if by_name.is_none() && directory.patterns.is_empty() && directory.class.access != Access::Hidden {
            return Found { class: directory.class, is_passage: false };
        }
        let mut decided = state.inherited;
        for &number in by_name.into_iter().flatten() {
            if let Some(rule) = self.rule(number) {
                note(&mut decided, number, rule);
            }
        }
        for &(number, position) in &directory.patterns {
            if let Some((rule, component)) = self.component(number, position)
                && component.matches(name)
            {
                note(&mut decided, number, rule);
            }
        }
        let class = if decided == state.inherited { directory.class } else { self.class(&decided) };
        let is_passage = class.access == Access::Hidden && self.leads_on(state, name, &decided);
        Found { class, is_passage }
    }

    // Whether a later rule shows something below a hidden name: one with a literal path so far.
    fn leads_on(&self, state: &State, name: &str, decided: &[(u16, u16)]) -> bool {
        let reveals = |layer: usize, after: u16| {
            state.active.iter().any(|&(number, position)| {
                let Some((rule, component)) = self.component(number, position) else { return false };
                let next = usize::from(position) + 1;
                rule.layer == layer
                    && (after == NONE || number > after)
                    && rule.reveals()
                    && next <= rule.plain
                    && next < rule.components.len()
                    && component.matches(name)
            })
        };
        (0..self.layers).all(|layer| {
            let one = decided.get(layer).copied().unwrap_or((NONE, NONE));
            match self.hiding_rule(one) {
                Some(rule) => reveals(layer, rule),
                None => true,
            }
        })
    }

    // The rule that hides, of those that decide for one policy.
    fn hiding_rule(&self, (access, label): (u16, u16)) -> Option<u16> {
        let by_access = self.rule(access).is_some_and(|rule| rule.access == Some(Access::Hidden)).then_some(access);
        let by_label = self.rule(label).is_some_and(|rule| rule.label.is_some_and(|label| !label.is_seen)).then_some(label);
        by_access.max(by_label)
    }

    /// Returns the state of a subdirectory.
    pub(crate) fn enter(&self, directory: &Prepared, name: &str) -> State {
        match &directory.named {
            Some(named) if !named.contains(name) => {
                directory.below_others.get_or_init(|| self.state_below(&directory.state, name)).clone()
            }
            _ => self.state_below(&directory.state, name),
        }
    }

    fn state_below(&self, state: &State, name: &str) -> State {
        let mut below = State { active: Vec::new(), inherited: state.inherited };
        for &(number, position) in &state.active {
            let Some((rule, component)) = self.component(number, position) else { continue };
            if !component.matches(name) {
                continue;
            }
            let is_last = usize::from(position) + 1 == rule.components.len();
            if matches!(component, Component::Any) {
                self.activate(&mut below.active, number, position);
            } else if !is_last {
                self.activate(&mut below.active, number, position + 1);
            }
            if is_last && (rule.inherits || matches!(component, Component::Any)) {
                note(&mut below.inherited, number, rule);
            }
        }
        self.prune(&mut below);
        below
    }

    /// Returns whether the same rules apply below two directories.
    pub(crate) fn is_same_below(&self, one: &State, other: &State) -> bool {
        // If no rule can match any more, it does not matter which of them decided.
        let are_over = one.active.is_empty() && other.active.is_empty();
        one == other || (are_over && self.class(&one.inherited) == self.class(&other.inherited))
    }

    /// Returns whether something at a path or below it may have to stay as it is, because it is read-only or append-only.
    pub(crate) fn keeps(&self, path: &str) -> bool {
        let mut state = Arc::clone(&self.root);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            state = self.prepared(&self.enter(&state, name));
        }
        matches!(self.of_path(path).access, Access::Read | Access::Append) || self.keeps_below(&state.state)
    }

    /// Returns whether something below a directory may have to stay where it is, because it is read-only or append-only.
    pub(crate) fn keeps_below(&self, state: &State) -> bool {
        let keeps = |access: Access| matches!(access, Access::Read | Access::Append);
        let is_next = |&(number, _): &(u16, u16)| self.rule(number).and_then(|rule| rule.access).is_some_and(keeps);
        keeps(self.class(&state.inherited).access) || state.active.iter().any(is_next)
    }

    // Adds a rule that has come to a component. `**` also matches no name at all, unless nothing follows it.
    fn activate(&self, active: &mut Vec<(u16, u16)>, number: u16, mut position: u16) {
        loop {
            if !active.contains(&(number, position)) {
                active.push((number, position));
            }
            match self.component(number, position) {
                Some((rule, Component::Any)) if usize::from(position) + 1 < rule.components.len() => position += 1,
                _ => return,
            }
        }
    }

    // Removes rules that can no longer decide anything, because a later one applies to everything below.
    fn prune(&self, state: &mut State) {
        let inherited = state.inherited;
        state.active.retain(|&(number, _)| {
            let Some(rule) = self.rule(number) else { return false };
            let (access, label) = inherited.get(rule.layer).copied().unwrap_or((NONE, NONE));
            let decides = |is_given: bool, by: u16| is_given && (by == NONE || number > by);
            decides(rule.access.is_some(), access) || decides(rule.label.is_some(), label)
        });
        state.active.sort_unstable();
    }

    fn class(&self, decided: &[(u16, u16); LAYERS_MAX]) -> Class {
        let mut class = Class::FREE;
        for &(access, label) in decided.iter().take(self.layers) {
            if let Some(access) = self.rule(access).and_then(|rule| rule.access) {
                class.access = class.access.min(access);
            }
            let label = self.rule(label).and_then(|rule| rule.label);
            class.labels = (class.labels << 16) | label.map_or(0, |label| u64::from(label.id));
            if label.is_some_and(|label| !label.is_seen) {
                class.access = Access::Hidden;
            }
        }
        class
    }

    /// Returns the class of an absolute path, if no part of it is hidden.
    pub(crate) fn of_path(&self, path: &str) -> Class {
        let mut state = Arc::clone(&self.root);
        let mut names = path.split('/').filter(|name| !name.is_empty()).peekable();
        while let Some(name) = names.next() {
            let found = self.at(&state, name);
            let is_last = names.peek().is_none();
            if is_last || (found.class.access == Access::Hidden && !found.is_passage) {
                return found.class;
            }
            state = self.prepared(&self.enter(&state, name));
        }
        Class::FREE
    }

    fn rule(&self, number: u16) -> Option<&Compiled> {
        self.rules.get(usize::from(number))
    }

    fn component(&self, number: u16, position: u16) -> Option<(&Compiled, &Component)> {
        let rule = self.rule(number)?;
        Some((rule, rule.components.get(usize::from(position))?))
    }
}

fn is_same_program(one: &str, other: &str) -> bool {
    one == other || SAME_PROGRAMS.iter().any(|names| names.contains(&one) && names.contains(&other))
}

// The last matching rule decides.
fn note(decided: &mut [(u16, u16); LAYERS_MAX], number: u16, rule: &Compiled) {
    let Some((access, label)) = decided.get_mut(rule.layer) else { return };
    let later = |by: &mut u16| {
        if *by == NONE || number > *by {
            *by = number;
        }
    };
    if rule.access.is_some() {
        later(access);
    }
    if rule.label.is_some() {
        later(label);
    }
}

fn compile(
    rule: &presets::Rule,
    layer: usize,
    viewer: Option<&Viewer>,
    labels: &mut Vec<Vec<String>>,
) -> Result<Compiled, Error> {
    let refused = |reason: String| Error::Invalid(format!("invalid rule for `{}`: {reason}", rule.path));
    let mut components = Vec::new();
    for name in rule.path.split('/').filter(|name| !name.is_empty()) {
        components.push(match name {
            // Two in a row are equivalent to one.
            "**" if matches!(components.last(), Some(Component::Any)) => continue,
            "**" => Component::Any,
            name if !name.contains(['*', '?', '[', ']', '{', '}', '\\']) => Component::Name(name.into()),
            name => {
                let glob = GlobBuilder::new(name).literal_separator(true).backslash_escape(true).build();
                Component::Pattern(Box::new(glob.map_err(|error| refused(error.kind().to_string()))?.compile_matcher()))
            }
        });
    }
    let label = rule.label.as_ref().map(|given| {
        let mut given = given.0.clone();
        given.sort_unstable();
        if given.is_empty() {
            return Label { id: 0, is_seen: true };
        }
        let is_seen = viewer.is_none_or(|viewer| given.iter().any(|label| viewer.has(label)));
        let at = labels.iter().position(|known| *known == given).unwrap_or(labels.len());
        if at == labels.len() {
            labels.push(given);
        }
        Label { id: u16::try_from(at + 1).unwrap_or(NONE), is_seen }
    });
    let plain = components.iter().take_while(|component| matches!(component, Component::Name(_))).count();
    Ok(Compiled { layer, components, plain, inherits: rule.inherit, access: rule.access, label })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(rules: &[(&str, &str)]) -> Policy {
        let text: String = rules.iter().map(|(path, rest)| format!("[[rule]]\npath = \"{path}\"\n{rest}\n")).collect();
        Policy::parse(&text).unwrap()
    }

    fn compiled(rules: &[(&str, &str)]) -> Rules {
        Rules::compile([&policy(rules)], None).unwrap().unwrap()
    }

    #[track_caller]
    fn check(rules: &[(&str, &str)], expected: &[(&str, Access)]) {
        let compiled = compiled(rules);
        for (path, access) in expected {
            assert_eq!(compiled.of_path(path).access, *access, "{path}");
        }
    }

    use Access::{Append, Hidden, Read, Write};

    const HIDE: &str = "access = \"hidden\"";
    const READ: &str = "access = \"read\"";
    const APPEND: &str = "access = \"append\"";
    const WRITE: &str = "access = \"write\"";

    #[test]
    fn a_rule_applies_to_a_directory_and_everything_below() {
        check(&[("/a", READ)], &[("/a", Read), ("/a/b/c", Read), ("/ab", Write), ("/b/a", Write)]);
        check(&[("/a/**", READ)], &[("/a", Write), ("/a/b", Read), ("/a/b/c", Read)]);
        check(&[("/a", "access = \"read\"\ninherit = false")], &[("/a", Read), ("/a/b", Write)]);
        check(&[("/", READ)], &[("/a", Read), ("/a/b", Read)]);
        check(&[("/**", READ)], &[("/a", Read), ("/a/b", Read)]);
        check(&[("/a/*", "access = \"read\"\ninherit = false")], &[("/a/b", Read), ("/a/b/c", Write), ("/a", Write)]);
    }

    #[test]
    fn the_last_rule_that_matches_decides() {
        check(
            &[("/**", READ), ("/work", WRITE), ("/work/log", APPEND)],
            &[("/etc", Read), ("/work/x", Write), ("/work/log", Append), ("/work/log/y", Append)],
        );
        check(&[("/work/log", APPEND), ("/**", READ)], &[("/work/log", Read)]);
    }

    #[test]
    fn patterns_match_names_and_any_depth() {
        check(
            &[("/**/.env", HIDE), ("/src/*.rs", READ), ("/x/**/y/z?", APPEND)],
            &[
                ("/.env", Hidden),
                ("/a/b/.env", Hidden),
                ("/a/b/env", Write),
                ("/src/main.rs", Read),
                ("/src/deep/main.rs", Write),
                ("/x/y/z1", Append),
                ("/x/a/b/y/z2", Append),
                ("/x/a/b/z2", Write),
            ],
        );
        check(&[("/{a,b}/[0-9]", READ)], &[("/a/1", Read), ("/b/2", Read), ("/c/3", Write), ("/a/x", Write)]);
    }

    #[test]
    fn below_a_hidden_directory_only_literal_paths_of_later_rules_are_visible() {
        check(&[("/**", HIDE), ("/work/src/**", WRITE)], &[("/work/src/a", Write), ("/work/other", Hidden), ("/etc", Hidden)]);
        let rules = compiled(&[("/**", HIDE), ("/work/src/**", WRITE)]);
        let root = |rules: &Rules| Arc::clone(rules.root());
        assert!(rules.at(&root(&rules), "work").is_passage && !rules.at(&root(&rules), "home").is_passage);
        let work = rules.prepared(&rules.enter(rules.root(), "work"));
        assert!(rules.at(&work, "src").is_passage && !rules.at(&work, "other").is_passage);
        // Not through a pattern, and not by an earlier rule.
        let rules = compiled(&[("/**", HIDE), ("/**/public", READ)]);
        assert!(!rules.at(&root(&rules), "work").is_passage);
        let rules = compiled(&[("/work/src", READ), ("/**", HIDE)]);
        assert!(!rules.at(&root(&rules), "work").is_passage);
    }

    #[test]
    fn labels_hide_from_a_view_that_lacks_them() {
        let policy =
            policy(&[("/team", "label = \"pii\""), ("/team/open", "label = \"\""), ("/ann", "label = [\"x\", \"@ann\"]")]);
        let seen_by = |viewer: Option<Viewer>, path: &str| {
            Rules::compile([&policy], viewer.as_ref()).unwrap().unwrap().of_path(path).access != Hidden
        };
        let viewer = |name: &str, labels: &[&str]| {
            Some(Viewer { principal: name.to_owned(), labels: labels.iter().map(|label| (*label).to_owned()).collect() })
        };
        assert!(seen_by(None, "/team/a") && seen_by(viewer("bob", &["pii"]), "/team/a"));
        assert!(!seen_by(viewer("bob", &[]), "/team/a") && seen_by(viewer("bob", &[]), "/team/open/a"));
        assert!(seen_by(viewer("ann", &[]), "/ann") && !seen_by(viewer("bob", &["pii"]), "/ann"));
    }

    #[test]
    fn several_policies_give_the_least_of_each() {
        let one = policy(&[("/**", READ), ("/a", WRITE)]);
        let other = policy(&[("/a", APPEND), ("/b", WRITE)]);
        let rules = Rules::compile([&one, &other], None).unwrap().unwrap();
        assert_eq!(["/a", "/b", "/c"].map(|path| rules.of_path(path).access), [Append, Read, Read]);
        assert!(Rules::compile([&one; 5], None).is_err() && Rules::compile([&Policy::default()], None).unwrap().is_none());
    }

    #[test]
    fn what_may_have_to_stay_is_known_for_each_directory() {
        let keeps = |rules: &[(&str, &str)], path: &str| compiled(rules).keeps(path);
        assert!(keeps(&[("/log", APPEND)], "/") && keeps(&[("/log", APPEND)], "/log") && !keeps(&[("/log", APPEND)], "/work"));
        assert!(keeps(&[("/", READ)], "/work") && !keeps(&[("/", READ), ("/work", WRITE)], "/work"));
        assert!(keeps(&[("/**/x", READ)], "/work/deep") && !keeps(&[("/**/x", HIDE)], "/work"));
        assert!(keeps(&[("/", READ), ("/work", "access = \"write\"\ninherit = false")], "/work"));
    }

    #[test]
    fn equal_states_have_equal_rules_below() {
        let rules = compiled(&[("/secret/**", HIDE), ("/**/.env", HIDE), ("/work/log", APPEND)]);
        let state = |path: &str| {
            let names = path.split('/').filter(|name| !name.is_empty());
            let found = names.fold(Arc::clone(rules.root()), |state, name| rules.prepared(&rules.enter(&state, name)));
            found.state.clone()
        };
        assert_eq!(state("/a/b"), state("/c"));
        assert_ne!(state("/a"), state("/secret"));
        assert_ne!(state("/a"), state("/work"));
        assert_eq!(state("/work/log"), state("/work/log/deep"));
        assert_ne!(state("/work/log"), state("/a"));
    }

    #[test]
    fn commands_are_allowed_by_every_policy() {
        let one = Policy { allowed_commands: Some(vec!["cat".to_owned(), "rm".to_owned()]), ..Policy::default() };
        let other = Policy { denied_commands: vec!["rm".to_owned()], ..Policy::default() };
        let rules = Rules::compile([&one, &other], None).unwrap().unwrap();
        assert_eq!(["cat", "rm", "ls"].map(|name| rules.may_start(name)), [true, false, false]);
    }

    // T-POL-06.
    #[test]
    fn a_denied_program_cannot_be_started_by_another_of_its_names() {
        let policy = Policy { denied_commands: ["python3", "bash"].map(str::to_owned).into(), ..Policy::default() };
        let rules = Rules::compile([&policy], None).unwrap().unwrap();
        let names = ["python", "python3.14", "sh", "bash", "pip", "ls"];
        assert_eq!(names.map(|name| rules.may_start(name)), [false, false, false, false, true, true]);
        // `gzip -d` is `gunzip`, and so on.
        let policy =
            Policy { denied_commands: ["gunzip", "bzcat", "xzcat", "hd"].map(str::to_owned).into(), ..Policy::default() };
        let rules = Rules::compile([&policy], None).unwrap().unwrap();
        for name in ["gzip", "zcat", "bzip2", "bunzip2", "xz", "unxz", "lzma", "unlzma", "lzcat", "hexdump"] {
            assert!(!rules.may_start(name), "{name}");
        }
        assert!(["tar", "unzip", "od", "cat"].iter().all(|name| rules.may_start(name)));
    }

    #[test]
    fn python_is_allowed_by_any_of_its_names() {
        let policy = Policy { allowed_commands: Some(["python", "ls"].map(str::to_owned).into()), ..Policy::default() };
        let rules = Rules::compile([&policy], None).unwrap().unwrap();
        let names = ["python", "python3", "python3.14", "ls", "dir", "bash"];
        assert_eq!(names.map(|name| rules.may_start(name)), [true, true, true, true, false, false]);
    }

    #[test]
    fn a_broken_glob_is_refused() {
        assert!(
            Rules::compile([&policy(&[("/a[", READ)])], None)
                .is_err_and(|error| error.to_string().starts_with("invalid rule for `/a[`"))
        );
    }
}
