//! Who may see and do what: the policy that is stored with a sandbox, tighter handles, and views.

use std::sync::Arc;

use presets::Policy;
use serde_json::json;
use sqlite_fs::Database;

use super::Sandbox;
use crate::Error;
use crate::history::{Commit, LibraryCall as Call};
use crate::vfs::{Binding, Scope};

/// The setting that a sandbox's policy is stored as.
const SETTING: &str = "policy";

impl Sandbox {
    /// The same sandbox as a principal with some labels sees it. What the rules hide from this view does not exist for it: not in
    /// listings, searches, error texts, diffs or versions. It sees its own runs in the history, and its sessions are its own.
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
    /// Returns [`Error::Invalid`] if a name has a comma, a colon, a slash, a bracket or a control character.
    pub fn view(&self, principal: &str, labels: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, Error> {
        Ok(self.bound_by(self.scope.binding.viewed(principal, labels.into_iter().map(Into::into).collect())?))
    }

    /// The same sandbox under one more policy. Of several policies the tighter decision counts, so this can only tighten.
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

    /// The same sandbox without any policy, for the program that opened it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if this handle was made by [`view`](Self::view) or [`with_policy`](Self::with_policy).
    pub fn owner(&self) -> Result<Self, Error> {
        Ok(self.bound_by(self.scope.binding.owner()?))
    }

    /// The policy that is stored with the sandbox.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        self.scope.binding.stored().map(|policy| (*policy).clone())
    }

    /// Stores a policy with the sandbox, in place of the one before; `None` removes it. It counts at once, for every handle but
    /// the [`owner`](Self::owner)'s.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a rule is not a glob, or if this handle was made from another one.
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

    /// Asks a function before every commit that changes something at or below a path, in this sandbox and all handles made from
    /// it. If it returns an error, nothing is kept: a command ends with the message, a call of the library with
    /// [`Error::Refused`], and the history has it. The function must not change the sandbox, which waits for it.
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
    /// Returns [`Error::Invalid`] if the path is not absolute.
    pub fn on_commit(
        &self,
        path: &str,
        hook: impl Fn(&Commit<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.recorder.hooks().add(path, Arc::new(hook))
    }

    /// The name of the principal whose view this is.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.scope.binding.viewer().map(|viewer| viewer.principal.as_str())
    }

    /// The owner's handle, for what a sandbox does on its own.
    pub(crate) fn unbound(&self) -> Self {
        self.bound_by(self.scope.binding.of_owner())
    }

    fn bound_by(&self, binding: Binding) -> Self {
        let recorder = self.recorder.bound_by(&binding);
        Self { recorder, scope: Scope { binding, ..self.scope.clone() }, ..self.clone() }
    }

    /// Refuses what is about the whole sandbox to a handle that does not see all of it.
    pub(crate) fn refuse_in_part(&self, what: &str) -> Result<(), Error> {
        match self.scope.binding.is_partial() {
            true => Err(Error::Invalid(format!("cannot {what}: this view does not include the whole sandbox"))),
            false => Ok(()),
        }
    }
}

/// The policy that a database has.
///
/// # Errors
///
/// Returns [`Error::Invalid`] if it cannot be read: then nothing is opened, except by its owner.
pub(super) fn stored(database: &Database) -> Result<Option<Policy>, Error> {
    let text = database.reader()?.setting(SETTING)?;
    let parse =
        |text: String| Policy::parse(&text).map_err(|error| Error::Invalid(format!("the stored policy is damaged: {error}")));
    text.map(parse).transpose()
}
