//! The state of a host: its guests, and whether they are compiled for this machine.

use std::path::Path;

use super::cache::file_name;
use super::{Host, installed};

/// A guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestStatus {
    /// Its name.
    pub name: &'static str,
    /// The number of its programs.
    pub programs: usize,
    /// SHA-256 of its module, in hexadecimal.
    pub sha256: String,
    /// The size of the bundled module, or of all files of an installed guest; 0 if it is missing.
    pub packed_bytes: u64,
    /// Whether it is available: bundled or installed.
    pub installed: bool,
    /// The size of the compiled module in the cache, if it exists.
    pub compiled_bytes: Option<u64>,
}

impl Host {
    /// Returns the bundled guests and the one that can be installed.
    ///
    /// ```
    /// let host = sandlite_runtime::Host::builder().build()?;
    /// assert_eq!(host.guests().iter().map(|guest| guest.name).collect::<Vec<_>>(), ["shell", "python", "python-sci"]);
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    #[must_use]
    pub fn guests(&self) -> Vec<GuestStatus> {
        let status = |guest: &'static guests::Guest| GuestStatus {
            name: guest.name,
            programs: guests::programs().filter(|(_, holder)| holder.name == guest.name).count(),
            sha256: super::hex(&guest.sha256),
            packed_bytes: guest.packed_len() as u64,
            installed: true,
            compiled_bytes: self.0.cache.compiled_len(&self.0.engines.ordinary, guest),
        };
        let installed = self.installed();
        let scientific = GuestStatus {
            programs: guests::scientific::PROGRAMS.len(),
            packed_bytes: installed.as_ref().map_or(0, installed::Installed::bytes),
            installed: installed.is_some(),
            compiled_bytes: self
                .engine_of(&guests::PYTHON_SCI)
                .ok()
                .and_then(|engine| self.0.cache.compiled_len(engine, &guests::PYTHON_SCI)),
            ..status(&guests::PYTHON_SCI)
        };
        vec![status(&guests::SHELL), status(&guests::PYTHON), scientific]
    }

    /// Returns the size of compiled guests that this version does not use.
    #[must_use]
    pub fn stale_bytes(&self) -> u64 {
        self.0.cache.stale(&self.current()).iter().map(|(_, bytes)| bytes).sum()
    }

    /// Removes them, and returns their size. A process that still needs one compiles it again.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be removed.
    pub fn remove_stale(&self) -> std::io::Result<u64> {
        let stale = self.0.cache.stale(&self.current());
        stale.iter().try_fold(0, |removed, (path, bytes)| self.0.cache.remove(path).map(|()| removed + bytes))
    }

    // The files of this version.
    fn current(&self) -> Vec<String> {
        let guests = [&guests::SHELL, &guests::PYTHON, &guests::PYTHON_SCI];
        guests.iter().filter_map(|guest| Some(file_name(self.engine_of(guest).ok()?, guest))).collect()
    }

    /// Returns the directory of compiled guests, if any.
    #[must_use]
    pub fn cache_directory(&self) -> Option<&Path> {
        self.0.cache.directory()
    }

    /// Returns whether that directory exists and is private; otherwise it is not used.
    #[must_use]
    pub fn cache_is_private(&self) -> bool {
        self.0.cache.is_usable()
    }
}
