//! What a host has: which guests come with it, and whether they are compiled for this machine.

use std::path::Path;

use super::Host;

/// One guest that comes with Sandlite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestStatus {
    /// Its name.
    pub name: &'static str,
    /// How many programs it holds.
    pub programs: usize,
    /// SHA-256 of its module, in hexadecimal.
    pub sha256: String,
    /// Bytes of the module as it is carried.
    pub packed_bytes: u64,
    /// Bytes of the compiled module in the cache, if it is there.
    pub compiled_bytes: Option<u64>,
}

impl Host {
    /// The guests that come with Sandlite.
    ///
    /// ```
    /// let host = sandlite_runtime::Host::builder().build()?;
    /// assert_eq!(host.guests().iter().map(|guest| guest.name).collect::<Vec<_>>(), ["shell", "python"]);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn guests(&self) -> Vec<GuestStatus> {
        let status = |guest: &'static guests::Guest| GuestStatus {
            name: guest.name,
            programs: guests::programs().filter(|(_, holder)| holder.name == guest.name).count(),
            sha256: guest.sha256.iter().map(|byte| format!("{byte:02x}")).collect(),
            packed_bytes: guest.packed_len() as u64,
            compiled_bytes: self.0.cache.compiled_len(&self.0.engine, guest),
        };
        [&guests::SHELL, &guests::PYTHON].map(status).into()
    }

    /// Bytes of compiled guests that this version has no use for.
    #[must_use]
    pub fn stale_bytes(&self) -> u64 {
        self.0.cache.stale(&self.0.engine).iter().map(|(_, bytes)| bytes).sum()
    }

    /// Removes them, and says how many bytes that were. Whoever still uses one compiles it again.
    ///
    /// # Errors
    ///
    /// When a file cannot be removed.
    pub fn remove_stale(&self) -> std::io::Result<u64> {
        let stale = self.0.cache.stale(&self.0.engine);
        stale.iter().try_fold(0, |removed, (path, bytes)| self.0.cache.remove(path).map(|()| removed + bytes))
    }

    /// Where compiled guests are kept, if there is a place.
    #[must_use]
    pub fn cache_directory(&self) -> Option<&Path> {
        self.0.cache.directory()
    }

    /// Whether that place exists and is this user's alone: else it is not used.
    #[must_use]
    pub fn cache_is_private(&self) -> bool {
        self.0.cache.is_usable()
    }
}
