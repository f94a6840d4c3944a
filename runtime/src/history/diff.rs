//! What a run changed inside of a file, as a unified diff: for small texts only, and only so much of it.

use std::time::{Duration, Instant};

use similar::TextDiff;
use sqlite_fs::{Change, ChangeKind, Reader, Transaction};

use crate::clock;
use crate::vfs::View;

/// A larger file is only named.
const FILE_BYTES: u64 = 32 << 10;

/// Diffs of one run together; what comes after is only named.
const ALL_BYTES: usize = 16 << 10;

/// With less time than this left, a file is only named.
const SHORTEST: Duration = Duration::from_millis(1);

/// Bytes that one run may have compared: what is worth showing is found in the first files, or not at all. Together with the time for
/// each this bounds how long all diffs of a command take.
const COMPARED_BYTES: u64 = 128 << 10;

/// Lines around a change.
const CONTEXT: usize = 2;

/// Compares what a run sees with what was there before it.
pub(super) struct Diffs<'a> {
    before: Option<View<Reader>>,
    now: &'a View<Transaction>,
    room: usize,
    left: u64,
    until: Instant,
}

impl<'a> Diffs<'a> {
    /// All of it together takes no longer than `until`: the rest of two texts that have nothing in common is then shown as
    /// replaced.
    pub(super) fn new(before: Option<View<Reader>>, now: &'a View<Transaction>, until: Instant) -> Self {
        Self { before, now, room: ALL_BYTES, left: COMPARED_BYTES, until }
    }

    /// The diff of one changed file; `None` for what is new (its content is there to be read), not text, or too large.
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
