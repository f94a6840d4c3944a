//! A copy of a file or a tree, like `cp`: its destination is determined in the transaction that creates it.

use super::{Files, between, not_into_itself};
use crate::Error;

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
        self.change(between("copy_files", from, to), |fs| {
            let is_directory = |path: &str| fs.metadata(path).map(|stat| stat.is_dir());
            let name = from.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let (path, slash) = to.strip_suffix('/').map_or((to, false), |path| (path, true));
            let goes_inside = slash || is_directory(to).unwrap_or(false);
            let to = match goes_inside {
                // As with `cp`: the copy of `a/..` is not placed beside the destination.
                true if name == ".." => to.to_owned(),
                true => format!("{path}/{name}"),
                false => path.to_owned(),
            };
            if !(is_directory(from).map_err(|error| error.during("copy"))? && recursive) {
                fs.copy(from, &to)?;
                return Ok(to);
            }
            not_into_itself(from, &to)?;
            fs.copy_dir_all(from, &to)?;
            Ok(to)
        })
    }
}
