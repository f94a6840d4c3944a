//! Access control: the stored policy of a sandbox, restricted handles, and views.

use std::sync::Arc;

use presets::Policy;
use serde_json::json;
use sqlite_fs::Database;

use super::Sandbox;
use crate::Error;
use crate::history::{Commit, LibraryCall as Call};
use crate::vfs::{Binding, Scope};

/// The setting that stores a sandbox's policy.
const SETTING: &str = "policy";

impl Sandbox {
    /// Returns the same sandbox as seen by a principal with some labels. Paths that the rules hide from this view do not exist
    /// for it: not in listings, searches, error texts, diffs or versions. It sees only its own runs and sessions.
    ///
    /// ```
    /// use sandlite_runtime::{Policy, Sandbox};
    /// let policy = Policy::parse("[[rule]]\npath = \"/payroll\"\nlabel = \"finance\"")?;
    /// let sandbox = Sandbox::builder().policy(policy).file("/payroll/may.csv", "1,2").open()?;
    /// assert!(sandbox.view("ann", ["finance"])?.fs().exists("/payroll/may.csv")?);
    /// assert!(!sandbox.view("bob", [""; 0])?.fs().exists("/payroll")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a name contains a comma, a colon, a slash, a bracket or a control character.
    pub fn view(&self, principal: &str, labels: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, Error> {
        Ok(self.bound_by(self.scope.binding.viewed(principal, labels.into_iter().map(Into::into).collect())?))
    }

    /// Returns the same sandbox with an additional policy. The strictest decision of all policies applies, so this can only
    /// restrict.
    ///
    /// ```
    /// use sandlite_runtime::{Policy, Sandbox};
    /// let sandbox = Sandbox::builder().file("/notes", "one").open()?;
    /// let bound = sandbox.with_policy(Policy::parse("[[rule]]\npath = \"/\"\naccess = \"read\"")?)?;
    /// assert!(bound.fs().read("/notes").is_ok() && bound.fs().write("/notes", "two").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a rule is not a glob, or if there are more than four policies.
    pub fn with_policy(&self, policy: Policy) -> Result<Self, Error> {
        Ok(self.bound_by(self.scope.binding.with(policy.check()?)?))
    }

    /// Returns the same sandbox without any policy, for the program that opened it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if this handle was created by [`view`](Self::view) or [`with_policy`](Self::with_policy).
    pub fn owner(&self) -> Result<Self, Error> {
        Ok(self.bound_by(self.scope.binding.owner()?))
    }

    /// Returns the stored policy.
    ///
    /// ```
    /// use sandlite_runtime::{Policy, Sandbox};
    /// let policy = Policy::parse("[[rule]]\npath = \"/keys\"\naccess = \"hidden\"")?;
    /// let sandbox = Sandbox::builder().open()?;
    /// sandbox.set_policy(Some(policy.clone()))?;
    /// assert_eq!(sandbox.policy()?, Some(policy));
    /// assert!(sandbox.view("ann", [""; 0])?.policy().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if this handle was derived from another one and does not see the whole sandbox: the rules contain
    /// hidden paths and labels.
    pub fn policy(&self) -> Result<Option<Policy>, Error> {
        if self.scope.binding.owner().is_err() {
            self.refuse_in_part("read the policy")?;
        }
        Ok(self.stored_policy())
    }

    /// Stores the policy of another sandbox in this one without disclosing it, so that the other may be a view. If it has none,
    /// nothing is changed.
    ///
    /// ```
    /// use sandlite_runtime::{Policy, Sandbox};
    /// let other = Sandbox::builder().open()?;
    /// other.set_policy(Some(Policy::parse("[[rule]]\npath = \"/keys\"\naccess = \"hidden\"")?))?;
    /// let sandbox = Sandbox::builder().file("/keys/id", "secret").open()?;
    /// sandbox.set_policy_of(&other.view("ann", [""; 0])?)?;
    /// assert!(!sandbox.fs().exists("/keys")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if this handle was derived from another one.
    pub fn set_policy_of(&self, other: &Self) -> Result<(), Error> {
        match other.stored_policy() {
            Some(policy) => self.set_policy(Some(policy)),
            None => Ok(()),
        }
    }

    fn stored_policy(&self) -> Option<Policy> {
        self.notice();
        self.scope.binding.stored().map(|policy| (*policy).clone())
    }

    /// Stores a policy in the sandbox, replacing the previous one; `None` removes it. It takes effect at once, for every handle
    /// except the [`owner`](Self::owner)'s.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a rule is not a glob, or if this handle was derived from another one.
    pub fn set_policy(&self, policy: Option<Policy>) -> Result<(), Error> {
        let owner = self.owner()?;
        let policy = policy.map(Policy::check).transpose()?.filter(|policy| !policy.is_empty());
        Binding::new(policy.clone(), None)?;
        let text = policy.as_ref().map(Policy::to_string);
        let call = Call::new("set_policy", if text.is_some() { "set" } else { "clear" }, json!({ "policy": text }));
        owner.change(call, |run| Ok(run.transaction()?.set_setting(SETTING, text.as_deref())?))?;
        self.scope.binding.set_stored(policy);
        Ok(())
    }

    /// Calls a function before every commit that changes something at a path or below it, in this sandbox and all handles derived
    /// from it. If it returns an error, nothing is changed: a command ends with the message, a library call returns
    /// [`Error::Refused`], and the history records it. The function must not change the sandbox, which waits for it.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.on_commit("/src", |commit| match commit.changes.iter().find(|change| change.path.ends_with(".exe")) {
    ///     Some(change) => Err(format!("{} is not source", change.path)),
    ///     None => Ok(()),
    /// })?;
    /// let output = sandbox.bash("mkdir /src; echo 1 > /src/a.exe")?;
    /// assert_eq!(output.refused.as_deref(), Some("/src/a.exe is not source"));
    /// assert!(!sandbox.fs().exists("/src")?);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the path is not absolute, or if this handle was derived from another one and does not see the
    /// whole sandbox: a hook receives every change and every content.
    pub fn on_commit(
        &self,
        path: &str,
        hook: impl Fn(&Commit<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        if self.scope.binding.owner().is_err() {
            self.refuse_in_part("add a hook")?;
        }
        self.recorder.hooks().add(path, Arc::new(hook))
    }

    /// Returns the name of the view's principal.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.scope.binding.viewer().map(|viewer| viewer.principal.as_str())
    }

    /// Returns the owner's handle, for internal operations of a sandbox.
    pub(crate) fn unbound(&self) -> Self {
        self.bound_by(self.scope.binding.of_owner())
    }

    fn bound_by(&self, binding: Binding) -> Self {
        let recorder = self.recorder.bound_by(&binding);
        Self { recorder, scope: Scope { binding, ..self.scope.clone() }, ..self.clone() }
    }

    // Notices a policy that another process has stored: each new reader looks for commits of others.
    fn notice(&self) {
        drop(self.database.reader());
    }

    /// Rejects an operation that drops a part of the past if rules keep anything as it is.
    pub(crate) fn refuse_kept(&self, what: &str) -> Result<(), Error> {
        self.notice();
        match self.scope.binding.keeps("") {
            true => Err(Error::Invalid(format!("cannot {what}: the policy makes some of the sandbox read-only or append-only"))),
            false => Ok(()),
        }
    }

    /// Rejects an operation on the whole sandbox if this handle does not see all of it.
    pub(crate) fn refuse_in_part(&self, what: &str) -> Result<(), Error> {
        self.notice();
        match self.scope.binding.is_partial() {
            true => Err(Error::Invalid(format!("cannot {what}: this view does not include the whole sandbox"))),
            false => Ok(()),
        }
    }
}

/// Returns the stored policy of a database.
///
/// # Errors
///
/// Returns [`Error::Invalid`] if it cannot be parsed; only the owner can open the sandbox then.
pub(super) fn stored(database: &Database) -> Result<Option<Policy>, Error> {
    let text = database.reader()?.setting(SETTING)?;
    let parse =
        |text: String| Policy::parse(&text).map_err(|error| Error::Invalid(format!("the stored policy is damaged: {error}")));
    text.map(parse).transpose()
}
