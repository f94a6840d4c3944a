//! Paths of mounts that a walk could not read, and why.
//!
//! As with `find`, a directory that cannot be read does not end a search of everything above it. Knows nothing about walking.

use std::cell::RefCell;

use sqlite_fs::{FsError, Rows};

use super::View;
use crate::Error;

/// Maximum number of paths with a note of their own.
const NAMED_MAX: usize = 5;
/// Maximum length of a path, and of a reason, in a note.
const NOTE_BYTES: usize = 500;

/// Collects the paths that a walk could not read.
#[derive(Debug, Default)]
pub(crate) struct Unread(RefCell<Skipped>);

#[derive(Debug, Default)]
struct Skipped {
    named: Vec<(String, FsError)>,
    more: usize,
}

impl Unread {
    /// Adds a path with its error.
    pub(crate) fn add(&self, path: &str, error: FsError) {
        let mut skipped = self.0.borrow_mut();
        if skipped.named.len() < NAMED_MAX {
            skipped.named.push((path.to_owned(), error));
        } else {
            skipped.more += 1;
        }
    }

    /// Formats a note for each of the first paths, with the reason of its source, and one for the number of the others.
    pub(crate) fn notes<R: Rows>(&self, view: &View<R>) -> Vec<String> {
        let (skipped, complaints) = (self.0.borrow(), view.complaints());
        let reason = |path: &str| complaints.iter().find(|(at, _)| at == path).map(|(_, reason)| reason.clone());
        let named = skipped.named.iter().map(|(path, error)| {
            let reason = reason(path).unwrap_or_else(|| error.to_string());
            format!("cannot read `{}`: {}", cut(path), cut(&reason))
        });
        let more = (skipped.more > 0).then(|| format!("cannot read {} more paths", skipped.more));
        named.chain(more).collect()
    }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(NOTE_BYTES)).unwrap_or(text)
}

impl<R: Rows> View<R> {
    /// Returns the error messages of sources: paths and reasons.
    pub(crate) fn complaints(&self) -> Vec<(String, String)> {
        self.mounts.as_ref().map(|mounts| mounts.complaints()).unwrap_or_default()
    }

    /// Adds the reason of the source to an error of this view: that for its path, or else the last one. Damage elsewhere is not
    /// explained by a source that a walk skipped before.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let Some(source) = error.fs_error() else { return error };
        let mut complaints = self.complaints();
        let own = complaints.iter().rposition(|(path, _)| error.path() == Some(path.as_str()));
        let complaint = match own {
            Some(own) => Some(complaints.swap_remove(own)),
            None if source == FsError::Damaged => None,
            None => complaints.pop(),
        };
        match complaint {
            Some((path, reason)) => Error::Source { path, reason, source },
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_paths_are_named_and_the_others_counted() {
        let (unread, view) = (Unread::default(), View::of_nothing().unwrap());
        assert_eq!(unread.notes(&view), [""; 0]);
        unread.add("/m/a", FsError::Access);
        assert_eq!(unread.notes(&view), ["cannot read `/m/a`: permission denied"]);
        (0..6).for_each(|_| unread.add(&"é".repeat(1000), FsError::Io));
        let notes = unread.notes(&view);
        assert_eq!((notes.len(), notes[5].as_str()), (6, "cannot read 2 more paths"));
        assert!(notes.iter().all(|note| note.len() < 600));
    }
}
