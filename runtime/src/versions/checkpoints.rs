//! Checkpoints, as a handle sees them: a view knows only those that it created, because their names and messages are texts of
//! their authors.

use std::collections::HashMap;

use serde_json::json;
use sqlite_fs::Label;

use super::{Versions, reference};
use crate::Error;
use crate::history::{self, CHECKPOINT, LibraryCall as Call};

/// The name and version of checkpoints, and whether a handle created them.
type Authors = HashMap<(String, i64), bool>;

impl Versions<'_> {
    /// Names the newest version, or another one.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] or a database error if the name exists or is invalid.
    pub fn checkpoint(&self, name: &str, message: Option<&str>) -> Result<Label, Error> {
        if reference::is_reserved(name) {
            return Err(Error::Invalid(format!("invalid checkpoint name `{name}`: the name is reserved")));
        }
        // Spaces around a reference are ignored.
        if name.trim() != name {
            return Err(Error::Invalid(format!("invalid checkpoint name `{name}`: it starts or ends with a space")));
        }
        let call = Call::new(CHECKPOINT, name, json!({ "name": name, "message": message }));
        let version = self.sandbox.change_answering(call, |run| {
            let transaction = run.transaction()?;
            let version = transaction.version().map_err(sqlite_fs::Error::from)?;
            transaction.label(name, version, message)?;
            Ok((version, json!({ "version": version })))
        })?;
        let label = self.reader()?.label(name)?;
        label.ok_or_else(|| Error::Invalid(format!("the checkpoint of version {version} no longer exists")))
    }

    /// Returns the checkpoints, those of the newest versions first. A view sees those that it created.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn checkpoints(&self) -> Result<Vec<Label>, Error> {
        let mut labels = self.reader()?.labels()?;
        labels.retain(|label| self.sandbox.at.is_none_or(|last| label.version <= last));
        if let Some(own) = self.own_checkpoints()? {
            labels.retain(|label| is_own(&own, &label.name, label.version));
        }
        Ok(labels)
    }

    /// Removes a checkpoint and returns whether it existed. The version remains.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a rule makes something read-only or append-only, and an error if the database cannot be written.
    pub fn remove_checkpoint(&self, name: &str) -> Result<bool, Error> {
        self.sandbox.refuse_kept("remove a checkpoint")?;
        if self.is_foreign(name)? {
            return Ok(false);
        }
        let call = Call::new("remove_checkpoint", name, json!({ "name": name }));
        self.sandbox.change(call, |run| Ok(run.transaction()?.remove_label(name)?))
    }

    // The labels of a version that this handle created.
    pub(super) fn own_labels(&self, version: i64, mut labels: Vec<String>) -> Result<Vec<String>, Error> {
        if !labels.is_empty()
            && let Some(own) = self.own_checkpoints()?
        {
            labels.retain(|name| is_own(&own, name, version));
        }
        Ok(labels)
    }

    // Rejects a reference by a checkpoint of another author like one by a name that does not exist.
    pub(super) fn refuse_foreign(&self, reference: &str) -> Result<(), Error> {
        let name = reference.trim().split('~').next().unwrap_or_default();
        if self.is_foreign(name)? { Err(reference::unknown(reference.trim())) } else { Ok(()) }
    }

    fn is_foreign(&self, name: &str) -> Result<bool, Error> {
        if !self.sandbox.scope.binding.is_partial() {
            return Ok(false);
        }
        let Some(label) = self.reader()?.label(name)? else { return Ok(false) };
        Ok(self.own_checkpoints()?.is_some_and(|own| !is_own(&own, &label.name, label.version)))
    }

    // The checkpoints of all authors, and whether this handle created them; `None` if it sees all.
    fn own_checkpoints(&self) -> Result<Option<Authors>, Error> {
        let binding = &self.sandbox.scope.binding;
        if !binding.is_partial() {
            return Ok(None);
        }
        history::checkpoints(&self.sandbox.database, binding).map(Some)
    }
}

fn is_own(checkpoints: &Authors, name: &str, version: i64) -> bool {
    checkpoints.get(&(name.to_owned(), version)).is_some_and(|is_own| *is_own)
}
