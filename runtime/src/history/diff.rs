//! Changes within a file as a unified diff: only for small texts, and limited in size.

use std::time::{Duration, Instant};

use similar::TextDiff;
use sqlite_fs::{Change, ChangeKind, Reader, Transaction};

use crate::clock;
use crate::vfs::View;

/// Larger files are only listed.
const FILE_BYTES: u64 = 32 << 10;

/// Maximum size of all diffs of one run; further files are only listed.
const ALL_BYTES: usize = 16 << 10;

/// With less time left than this, a file is only listed.
const SHORTEST: Duration = Duration::from_millis(1);

/// Maximum number of bytes compared for one run. Together with the time per file this bounds the time of all diffs of a command.
const COMPARED_BYTES: u64 = 128 << 10;

/// Number of context lines.
const CONTEXT: usize = 2;

/// Compares the files of a run with their previous state.
pub(super) struct Diffs<'a> {
    before: Option<View<Reader>>,
    now: &'a View<Transaction>,
    room: usize,
    left: u64,
    until: Instant,
}

impl<'a> Diffs<'a> {
    /// Creates a comparison that ends by `until`: the rest of two unrelated texts is then shown as replaced.
    pub(super) fn new(before: Option<View<Reader>>, now: &'a View<Transaction>, until: Instant) -> Self {
        Self { before, now, room: ALL_BYTES, left: COMPARED_BYTES, until }
    }

    /// Returns the diff of one changed file; `None` if it is new, not text, or too large.
    pub(super) fn of(&mut self, change: &Change) -> Option<String> {
        if !matches!(change.kind, ChangeKind::Modified | ChangeKind::Deleted)
            || change.size > FILE_BYTES
            || self.room == 0
            || self.left == 0
        {
            return None;
        }
        let patience = self.until.saturating_duration_since(clock::now());
        if patience < SHORTEST {
            return None;
        }
        let before = self.before.as_ref()?.fs();
        let stat = before.symlink_metadata(&change.path).ok().filter(|stat| stat.is_file() && stat.size <= FILE_BYTES)?;
        let cost = stat.size.saturating_add(change.size);
        self.left = self.left.saturating_sub(cost);
        if self.left == 0 {
            return None;
        }
        let old = if stat.size == 0 { Vec::new() } else { before.read(&change.path).ok()? };
        let new = match change.kind {
            ChangeKind::Deleted => Vec::new(),
            _ => self.now.fs().read(&change.path).ok()?,
        };
        let (old, new) = (text(old)?, text(new)?);
        let diff = TextDiff::configure().timeout(patience).diff_lines(old.as_str(), new.as_str());
        let diff = diff.unified_diff().context_radius(CONTEXT).to_string();
        if diff.is_empty() || diff.len() > self.room {
            return None;
        }
        self.room -= diff.len();
        Some(diff)
    }
}

fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
