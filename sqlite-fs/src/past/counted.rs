//! The size of a version: counted by walking it, because sums are stored only for the present.

use std::collections::HashSet;

use super::at::At;
use crate::budget::{entry_bytes, key_bytes, session_bytes};
use crate::error::Error;
use crate::node::FileType;
use crate::quota::{Counts, Usage};
use crate::reader::Reader;
use crate::rows;

/// The parts of a session.
const PARTS: [&str; 2] = ["shell", "python"];

impl Reader {
    /// Returns the usage of a version. The history and the past are those of the file.
    pub(crate) fn used_at(&self, of_file: Usage) -> Result<Usage, Error> {
        let (mut seen, mut used) = (HashSet::new(), Usage { bytes: 0, inodes: 0, names: 0, keys: 0, sessions: 0, ..of_file });
        for (path, stat) in self.fs().walk("/")? {
            if path != "/" {
                used.names = used.names.saturating_add(entry_bytes(path.rsplit('/').next().unwrap_or_default()));
            }
            if seen.insert(stat.ino) {
                used.inodes += 1;
                used.bytes = used.bytes.saturating_add(if stat.is_dir() { 0 } else { stat.size });
            }
        }
        for key in self.keys("")? {
            let bytes = self.get(&key)?.map_or(0, |value| value.json.len() as u64);
            used.keys = used.keys.saturating_add(key_bytes(&key, bytes));
        }
        for name in self.sessions()? {
            for part in PARTS {
                let bytes = self.session(&name, part)?.map_or(0, |state| session_bytes(&name, part, state.len() as u64));
                used.sessions = used.sessions.saturating_add(bytes);
            }
        }
        Ok(used)
    }

    /// Returns the number of objects in a version. The size and the format are those of the file.
    pub(crate) fn counts_at(&self, at: At, of_file: Counts) -> Result<Counts, Error> {
        let (mut seen, mut counts) = (HashSet::new(), Counts { files: 0, directories: 0, symlinks: 0, ..of_file });
        for (_, stat) in self.fs().walk("/")? {
            if !seen.insert(stat.ino) {
                continue;
            }
            match stat.file_type() {
                FileType::File => counts.files += 1,
                FileType::Directory => counts.directories += 1,
                FileType::Symlink => counts.symlinks += 1,
                _ => {}
            }
        }
        counts.keys = self.keys("")?.len() as u64;
        counts.calls = self.rows(|connection| {
            let query = "SELECT coalesce(sum(1), 0) FROM tool_calls
                         WHERE id<=(SELECT max(call) FROM sandlite_version WHERE id<=?1)";
            Ok(connection.prepare_cached(query)?.query_row([at.version], |row| rows::bytes(row, 0))?)
        })?;
        Ok(counts)
    }
}
