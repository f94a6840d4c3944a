//! The restrictions of a sandbox handle: the stored policy, additional policies, and its view. Each handle can only create a more
//! restricted one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use presets::Policy;
use serde_json::{Value, json};
use sqlite_fs::{Database, FsError, WeakDatabase};

use super::rules::{Rules, Viewer};
use crate::Error;

/// Reads the stored policy of a database.
type Read = fn(&Database) -> Result<Option<Policy>, Error>;

/// The stored policy of a sandbox, shared by all its handles.
#[derive(Debug, Default)]
struct Stored {
    policy: RwLock<Option<Arc<Policy>>>,
    /// Counts how often it was set.
    generation: AtomicU64,
    origin: Option<Origin>,
}

/// The database of a stored policy, which another process may replace.
struct Origin {
    database: WeakDatabase,
    read: Read,
    /// The commits of other processes that were noticed before it was last read.
    visits: AtomicU64,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Origin")
    }
}

impl Stored {
    // Reads the policy again if another process may have replaced it.
    fn refresh(&self) -> Result<(), Error> {
        let Some(origin) = &self.origin else { return Ok(()) };
        let Some(database) = origin.database.upgrade() else { return Ok(()) };
        let Some(visits) = database.visits().filter(|visits| *visits != origin.visits.load(Ordering::Acquire)) else {
            return Ok(());
        };
        // Locked before it is read, so that it does not replace a policy that this process stores meanwhile.
        let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        let read = (origin.read)(&database)?;
        if policy.as_deref() != read.as_ref() {
            *policy = read.map(Arc::new);
            self.generation.fetch_add(1, Ordering::Release);
        }
        origin.visits.store(visits, Ordering::Release);
        Ok(())
    }
}

/// Rules, and the generation of the stored policy with which they were compiled.
type Compiled = Option<(u64, Option<Arc<Rules>>)>;

/// The restrictions of a handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Binding {
    stored: Arc<Stored>,
    given: Vec<Arc<Policy>>,
    viewer: Option<Arc<Viewer>>,
    /// Whether no restrictions apply: for the owner's own operations.
    is_owner: bool,
    /// Whether it was derived from another handle.
    is_derived: bool,
    compiled: Arc<Mutex<Compiled>>,
}

impl Binding {
    /// Creates the binding of a sandbox that is opened with these policies.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a rule is not a glob.
    pub(crate) fn new(stored: Option<Policy>, given: Option<Policy>) -> Result<Self, Error> {
        let policy = RwLock::new(stored.map(Arc::new));
        let binding = Self {
            stored: Arc::new(Stored { policy, ..Stored::default() }),
            given: given.into_iter().map(Arc::new).collect(),
            ..Self::default()
        };
        binding.compile()?;
        Ok(binding)
    }

    /// Returns the same with the database in which its policy is stored. `visits` was determined before the policy was read.
    pub(crate) fn stored_in(&self, database: &Database, visits: Option<u64>, read: Read) -> Self {
        let visits = AtomicU64::new(visits.unwrap_or_default());
        let origin = Some(Origin { database: database.downgrade(), read, visits });
        let stored = Stored { policy: RwLock::new(self.stored()), generation: AtomicU64::new(0), origin };
        Self { stored: Arc::new(stored), compiled: Arc::default(), ..self.clone() }
    }

    /// Returns the same without restrictions, for the owner.
    pub(crate) fn of_owner(&self) -> Self {
        Self { is_owner: true, compiled: Arc::default(), ..self.clone() }
    }

    /// Returns the owner's binding, for a handle that was not derived from another one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if it was derived.
    pub(crate) fn owner(&self) -> Result<Self, Error> {
        if self.is_derived {
            return Err(Error::Invalid(
                "cannot widen a view: only the handle that opened the sandbox has the owner's rights".to_owned(),
            ));
        }
        Ok(self.of_owner())
    }

    /// Returns a binding with an additional policy.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a rule is not a glob, or if there are too many policies.
    pub(crate) fn with(&self, policy: Policy) -> Result<Self, Error> {
        let mut binding = Self { is_owner: false, is_derived: true, compiled: Arc::default(), ..self.clone() };
        binding.given.push(Arc::new(policy));
        binding.compile()?;
        Ok(binding)
    }

    /// Returns a binding for a principal's view. A view of a view has no label that the wider one lacks.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a name is invalid.
    pub(crate) fn viewed(&self, principal: &str, labels: Vec<String>) -> Result<Self, Error> {
        let mut labels = labels;
        if let Some(wrong) = std::iter::once(principal).chain(labels.iter().map(String::as_str)).find(|name| !is_name(name)) {
            return Err(Error::Invalid(format!(
                "invalid name {wrong:?}: expected 1 to 255 printable bytes without `,`, `:`, `/`, brackets and a leading `@`"
            )));
        }
        labels.sort_unstable();
        labels.dedup();
        let mut principal = principal.to_owned();
        if let Some(wider) = &self.viewer {
            labels.retain(|label| wider.labels.contains(label));
            principal = format!("{}/{principal}", wider.principal);
        }
        let viewer = Some(Arc::new(Viewer { principal, labels }));
        let binding = Self { viewer, is_owner: false, is_derived: true, compiled: Arc::default(), ..self.clone() };
        binding.compile()?;
        Ok(binding)
    }

    /// Replaces the stored policy for all handles.
    pub(crate) fn set_stored(&self, policy: Option<Policy>) {
        *self.stored.policy.write().unwrap_or_else(PoisonError::into_inner) = policy.map(Arc::new);
        self.stored.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns the stored policy.
    pub(crate) fn stored(&self) -> Option<Arc<Policy>> {
        // A policy that cannot be read is reported by the next operation.
        let _ = self.stored.refresh();
        self.stored.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn compile(&self) -> Result<Option<Arc<Rules>>, Error> {
        let stored = self.stored();
        let policies = stored.iter().chain(&self.given).map(Arc::as_ref);
        Ok(Rules::compile(policies, self.viewer.as_deref())?.map(Arc::new))
    }

    /// Returns the current rules; `None` if nothing is restricted.
    ///
    /// # Errors
    ///
    /// Returns [`FsError::Access`] if they cannot be compiled; nothing is allowed then.
    pub(crate) fn rules(&self) -> Result<Option<Arc<Rules>>, FsError> {
        if self.is_owner {
            return Ok(None);
        }
        self.stored.refresh().map_err(|_| FsError::Access)?;
        let generation = self.stored.generation.load(Ordering::Acquire);
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rules)) = &*compiled
            && *known == generation
        {
            return Ok(rules.clone());
        }
        let rules = self.compile().map_err(|_| FsError::Access)?;
        *compiled = Some((generation, rules.clone()));
        Ok(rules)
    }

    /// Returns its view.
    pub(crate) fn viewer(&self) -> Option<&Viewer> {
        self.viewer.as_deref()
    }

    /// Returns whether anything may be hidden from it: it then sees only its own runs, and cannot use operations on the whole
    /// sandbox.
    pub(crate) fn is_partial(&self) -> bool {
        !self.is_owner && (self.viewer.is_some() || self.rules().map_or(true, |rules| rules.is_some_and(|rules| rules.hides())))
    }

    /// Returns whether the rules hide a path.
    pub(crate) fn hides_path(&self, path: &str) -> bool {
        let rules = self.rules();
        rules.map_or(true, |rules| rules.is_some_and(|rules| rules.of_path(path).access == presets::Access::Hidden))
    }

    /// Returns whether the rules may keep something at a path or below it from being changed.
    pub(crate) fn keeps(&self, path: &str) -> bool {
        let rules = self.rules();
        rules.map_or(true, |rules| rules.is_some_and(|rules| rules.keeps(path)))
    }

    /// Returns the author mark for the history; `None` for an unrestricted handle.
    pub(crate) fn mark(&self) -> Option<Value> {
        match (&self.viewer, self.is_partial()) {
            (Some(viewer), _) => Some(json!({ "name": viewer.principal, "labels": viewer.labels })),
            (None, true) => Some(json!({ "name": "", "labels": [], "rules": self.hiding().unwrap_or_default() })),
            (None, false) => None,
        }
    }

    // The digests of the policies that hide something from a handle without a view; `None` if they are not known.
    fn hiding(&self) -> Option<Vec<String>> {
        Some(self.rules().ok()??.hiding().to_vec())
    }

    /// Returns whether a history row with this mark is visible: its author is the same, and had no label that this one lacks. Without
    /// a view, its author had all policies that hide something from this one, so it could not see more.
    pub(crate) fn sees_mark(&self, mark: Option<&Value>) -> bool {
        if !self.is_partial() {
            return true;
        }
        let Some(mark) = mark else { return false };
        let listed = |key: &str| mark[key].as_array().map(Vec::as_slice).unwrap_or_default();
        match self.viewer() {
            Some(viewer) => {
                let had = listed("labels");
                mark["name"] == viewer.principal && had.iter().all(|label| viewer.labels.iter().any(|own| label == own))
            }
            None => {
                let (own, had) = (self.hiding().unwrap_or_default(), listed("rules"));
                mark["name"] == "" && !own.is_empty() && own.iter().all(|digest| had.iter().any(|rules| rules == digest))
            }
        }
    }

    /// Returns the name of a session in the database: a view's sessions are its own, and without a view those of the hiding policies.
    pub(crate) fn session(&self, name: &str) -> String {
        match &self.viewer {
            Some(viewer) => format!("@{}[{}]/{name}", viewer.principal, viewer.labels.join(",")),
            None if self.is_partial() => format!("@[{}]/{name}", self.hiding().unwrap_or_default().join(",")),
            None => name.to_owned(),
        }
    }

    /// Returns the prefix of its session names.
    pub(crate) fn session_prefix(&self) -> String {
        self.session("")
    }
}

fn is_name(text: &str) -> bool {
    presets::is_label(text) && !text.contains([':', '/', '[', ']']) && !text.starts_with('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hiding() -> Binding {
        Binding::new(Some(Policy::parse("[[rule]]\npath = \"/s\"\nlabel = \"x\"").unwrap()), None).unwrap()
    }

    #[test]
    fn a_view_of_a_view_has_no_more_labels() {
        let ann = hiding().viewed("ann", vec!["x".to_owned()]).unwrap();
        assert!(!ann.hides_path("/s"));
        let nested = ann.viewed("bob", vec!["x".to_owned(), "y".to_owned()]).unwrap();
        assert_eq!(nested.viewer().unwrap().labels, ["x"]);
        assert_eq!(nested.viewer().unwrap().principal, "ann/bob");
        let none = ann.viewed("bob", Vec::new()).unwrap().viewed("eve", vec!["x".to_owned()]).unwrap();
        assert!(none.hides_path("/s"));
        assert!(ann.viewed("a,b", Vec::new()).is_err() && ann.viewed("", Vec::new()).is_err());
    }

    #[test]
    fn only_the_handle_that_opened_a_sandbox_is_its_owners() {
        let binding = hiding();
        assert!(binding.owner().unwrap().rules().unwrap().is_none());
        let view = binding.viewed("ann", Vec::new()).unwrap();
        assert!(view.owner().is_err() && binding.with(Policy::default()).unwrap().owner().is_err());
        assert!(binding.owner().unwrap().viewed("ann", Vec::new()).unwrap().hides_path("/s"));
    }

    #[test]
    fn a_new_stored_policy_counts_for_handles_that_exist() {
        let binding = Binding::new(None, None).unwrap();
        let view = binding.viewed("ann", Vec::new()).unwrap();
        assert!(!view.hides_path("/s"));
        binding.set_stored(Some(Policy::parse("[[rule]]\npath = \"/s\"\naccess = \"hidden\"").unwrap()));
        assert!(view.hides_path("/s") && binding.hides_path("/s/deep") && !view.hides_path("/t"));
        binding.set_stored(None);
        assert!(!view.hides_path("/s"));
    }

    #[test]
    fn without_a_view_a_row_is_visible_if_its_author_had_all_hiding_policies() {
        let open = |paths: &[&str]| {
            let rules = paths.iter().map(|path| format!("[[rule]]\npath = \"{path}\"\naccess = \"hidden\"\n"));
            let mut binding = Binding::new(None, None).unwrap();
            for rule in rules {
                binding = binding.with(Policy::parse(&rule).unwrap()).unwrap();
            }
            binding
        };
        let (a, b, both) = (open(&["/a"]), open(&["/b"]), open(&["/b", "/a"]));
        let sees = |one: &Binding, other: &Binding| one.sees_mark(other.mark().as_ref());
        assert!(sees(&a, &open(&["/a"])) && sees(&a, &both) && sees(&b, &both) && sees(&both, &open(&["/a", "/b"])));
        assert!(
            !sees(&a, &b) && !sees(&both, &a) && !sees(&both, &b) && !a.sees_mark(Some(&json!({ "name": "", "labels": [] })))
        );
        assert!(a.session("s") != b.session("s") && a.session("s") == open(&["/a"]).session("s"));
        // Policies that hide nothing make no difference.
        let denying = a.with(Policy::parse("denied_commands = [\"rm\"]").unwrap()).unwrap();
        assert!(sees(&denying, &a) && sees(&a, &denying) && denying.session("s") == a.session("s"));
    }

    #[test]
    fn a_row_is_visible_only_to_its_author() {
        let (ann, bob) = (hiding().viewed("ann", vec!["x".to_owned()]).unwrap(), hiding().viewed("bob", Vec::new()).unwrap());
        let less = hiding().viewed("ann", Vec::new()).unwrap();
        let mark = ann.mark();
        assert!(ann.sees_mark(mark.as_ref()) && !bob.sees_mark(mark.as_ref()) && !less.sees_mark(mark.as_ref()));
        assert!(ann.sees_mark(less.mark().as_ref()) && !ann.sees_mark(None));
        assert!(hiding().owner().unwrap().sees_mark(mark.as_ref()) && hiding().owner().unwrap().mark().is_none());
    }
}
