//! A copy of a file or a tree, like `cp`: its destination is determined in the transaction that creates it.

use sqlite_fs::{Fs, Transaction};

use super::{Files, between, not_into_itself};
use crate::Error;
use crate::vfs::{View, content};

impl Files<'_> {
    /// Copies a file, or a directory with everything below it if `recursive`, and returns the path of the copy. If `to` is a
    /// directory or ends with a slash, the copy is placed inside.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/a/b", "text").file("/c/d", "").open()?;
    /// assert_eq!(sandbox.fs().copy_into("/a", "/c", true)?, "/c/a");
    /// assert_eq!(sandbox.fs().read("/c/a/b")?, b"text");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if `from` is a directory and not `recursive`, `to` is inside it, or it exceeds the quota; nothing is
    /// copied then.
    pub fn copy_into(&self, from: &str, to: &str, recursive: bool) -> Result<String, Error> {
        self.copy_expecting((from, to), recursive, None)
    }

    /// Same as [`copy_into`](Self::copy_into), if what the copy replaces has this version; `none` means that nothing may be there.
    pub(crate) fn copy_expecting(
        &self,
        (from, to): (&str, &str),
        recursive: bool,
        expected: Option<&str>,
    ) -> Result<String, Error> {
        self.sandbox.change(self.recorded(between("copy_files", from, to)), |run| {
            let view = run.view()?;
            self.expect(view)?;
            let to = destination(&view.fs(), from, to);
            if let Some(expected) = expected {
                content::expect(view, &to, expected)?;
            }
            copy(&view.fs(), from, &to, recursive).map_err(|error| view.explain(error))?;
            Ok(to)
        })
    }
}

fn destination(fs: &Fs<'_, View<Transaction>>, from: &str, to: &str) -> String {
    let name = from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let (path, slash) = to.strip_suffix('/').map_or((to, false), |path| (path, true));
    match slash || fs.metadata(to).is_ok_and(|stat| stat.is_dir()) {
        // As with `cp`: the copy of `a/..` is not placed beside the destination.
        true if name == ".." => to.to_owned(),
        true => format!("{path}/{name}"),
        false => path.to_owned(),
    }
}

fn copy(fs: &Fs<'_, View<Transaction>>, from: &str, to: &str, recursive: bool) -> Result<(), Error> {
    let is_directory = fs.metadata(from).map_err(|error| error.during("copy"))?.is_dir();
    if !(is_directory && recursive) {
        fs.copy(from, to)?;
        return Ok(());
    }
    not_into_itself(from, to)?;
    Ok(fs.copy_dir_all(from, to)?)
}
