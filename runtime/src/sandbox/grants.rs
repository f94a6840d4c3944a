//! Grants of the owner: short texts by name, stored with it where no guest can reach them.
//!
//! Knows nothing of what the texts mean.

use serde_json::json;

use super::Sandbox;
use crate::Error;
use crate::history::LibraryCall as Call;

impl Sandbox {
    /// Returns the text that was stored under a name by [`set_granted`](Self::set_granted).
    ///
    /// # Errors
    ///
    /// Returns [`Error::Database`] if the database cannot be read.
    pub fn granted(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.database.reader()?.setting(&setting(name))?)
    }

    /// Stores what the owner has granted, in place of what was under this name; `None` removes it. It is not a change of files, and guests
    /// do not see it.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.set_granted("mcp:files", Some("{}"))?;
    /// assert_eq!(sandbox.granted("mcp:files")?.as_deref(), Some("{}"));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if this handle was made by [`view`](Self::view) or [`with_policy`](Self::with_policy), [`Error::Database`] if
    /// the text is too long.
    pub fn set_granted(&self, name: &str, text: Option<&str>) -> Result<(), Error> {
        let call = Call::new("set_granted", name, json!({ "name": name, "text": text }));
        self.owner()?.change(call, |run| Ok(run.transaction()?.set_setting(&setting(name), text)?))
    }
}

fn setting(name: &str) -> String {
    format!("grant:{name}")
}
