//! One run or version with all its data.

use sqlite_fs::Version;

use super::compare::Comparison;
use super::{Versions, reference};
use crate::history::Run;
use crate::{Cancel, Error};

/// A run, the version that it created, and its changes.
pub struct ShownRun {
    /// The run with its output; `None` if no run created the version, or its row was pruned.
    pub run: Option<Run>,
    /// The version that it created; `None` if it changed nothing, or its version was pruned.
    pub version: Option<Version>,
    /// Its changes; `None` if there are none, or the version before it was pruned.
    pub changes: Option<Comparison>,
}

impl Versions<'_> {
    /// Returns one run with its command, status, output and changes. The reference is the number of any run, or a version.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.bash("echo one > /note; echo done")?;
    /// let shown = sandbox.versions().show("HEAD")?;
    /// assert_eq!(shown.run.unwrap().stdout, b"done\n");
    /// assert_eq!(shown.changes.unwrap().paths().collect::<Vec<_>>(), ["/note"]);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the reference is invalid.
    pub fn show(&self, reference: &str) -> Result<ShownRun, Error> {
        self.show_until(reference, Cancel::default())
    }

    /// Same as [`show`](Self::show), cancellable by a [`Cancel`].
    pub(crate) fn show_until(&self, reference: &str, cancel: Cancel) -> Result<ShownRun, Error> {
        let reader = self.reader()?;
        // A run that changed nothing has no version, but is still shown.
        let (run, version) = match reference.trim().parse::<i64>() {
            Ok(number) => match self.sandbox.history_run(number)? {
                Some(run) => (Some(run), reader.version_of(number)?),
                None => return Err(reference::invalid(reference, "unknown run")),
            },
            Err(_) => {
                let version = self.found(reference)?;
                let run = version.call.map(|call| self.sandbox.history_run(call)).transpose()?.flatten();
                (run, Some(version))
            }
        };
        let changes = version.as_ref().map(|version| self.made_by(version, cancel)).transpose()?.flatten();
        Ok(ShownRun { run, version: version.map(|version| self.shown(version)).transpose()?, changes })
    }

    /// Returns the changes of a version; `None` if the previous one was pruned.
    pub(super) fn made_by(&self, version: &Version, cancel: Cancel) -> Result<Option<Comparison>, Error> {
        let reader = self.reader()?;
        let Ok(before) = reader.version(version.number - 1) else { return Ok(None) };
        self.between(&before, version, &[], cancel).map(Some)
    }
}
