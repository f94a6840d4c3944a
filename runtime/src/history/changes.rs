//! The file changes of a run, as stored in the history.

use std::collections::HashSet;
use std::time::Duration;

use serde::Serialize;
use sqlite_fs::path::Last;
use sqlite_fs::{Change, ChangeKind, FileType, Reader, Transaction, Volume as _};

use super::diff::Diffs;
use super::recorder::Recorder;
use crate::vfs::{Node, OverlayChanges, ROOT_NODE, Scope, View};
use crate::{Error, clock};

/// Maximum time to list and compare the changes of one run, because its caller waits (T-DOS-02).
pub(crate) const CHANGES_TIME: Duration = Duration::from_millis(50);

/// The same for a run that has exceeded its time.
pub(crate) const CHANGES_TIME_OVERDUE: Duration = Duration::from_millis(5);

/// The kind of the last entry in an incomplete list of changes.
const OMITTED: &str = "omitted";

/// Returns the changes of a run so far, for the history; `None` if there are none. Small changed texts are compared with the
/// committed state. Changes that do not fit in `time` are omitted.
pub(crate) fn json(
    recorder: &Recorder,
    scope: &Scope,
    view: &View<Transaction>,
    time: Duration,
) -> Result<Option<String>, Error> {
    let until = clock::now() + time;
    let (mut changes, is_complete) = view.transaction().changes_by(until).map_err(sqlite_fs::Error::from)?;
    let overlay = view.overlay_changes();
    seen_from_above(&mut changes, &overlay);
    if changes.is_empty() {
        return Ok(None);
    }
    let before = recorder.now(scope).ok();
    // A row shows data of the host only through a mount.
    let with_mounts = before.as_ref().filter(|_| !scope.mounts.is_empty());
    let bases: Vec<Option<i64>> = changes
        .iter()
        .enumerate()
        .map(|(index, change)| with_mounts.filter(|_| index < BASES_MAX).and_then(|before| base(before, &change.path)))
        .collect();
    let mut diffs = Diffs::new(before, view, until);
    let entries = changes.iter().zip(bases).map(|(change, base_ctime)| {
        Entry::Change(Recorded {
            base_ctime,
            diff: diffs.of(change),
            from: match &change.kind {
                ChangeKind::Renamed { from } => Some(from.as_str()),
                _ => None,
            },
            kind: kind_name(&change.kind),
            path: &change.path,
            size: change.size,
            file_type: type_name(change.file_type),
        })
    });
    let omitted = (!is_complete || overlay.is_incomplete).then_some(Entry::Omitted {
        kind: OMITTED,
        note: "too many changes to list",
        path: "",
    });
    let list: Vec<_> = entries.chain(omitted).collect();
    serde_json::to_string(&list).map(Some).map_err(|error| Error::Invalid(format!("cannot record the changes: {error}")))
}

/// One change as it is stored.
#[derive(Serialize)]
struct Recorded<'a> {
    /// See [`BASE`].
    #[serde(skip_serializing_if = "Option::is_none")]
    base_ctime: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    kind: &'static str,
    path: &'a str,
    size: u64,
    #[serde(rename = "type")]
    file_type: Option<&'static str>,
}

/// An entry of the stored list.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Change(Recorded<'a>),
    /// There are more.
    Omitted {
        kind: &'static str,
        note: &'static str,
        path: &'static str,
    },
}

/// The modification time of the host file that a run changed in an overlay, in nanoseconds since 1970.
pub(crate) const BASE: &str = "base_ctime";

/// Maximum number of changes whose host files are looked up: some microseconds each.
const BASES_MAX: usize = 10_000;

// The host file that a run was the first to change, replace or hide.
fn base(before: &View<Reader>, path: &str) -> Option<i64> {
    let (node, kind) = before.find(ROOT_NODE, path, Last::NoFollow).ok()?;
    let is_host = matches!(node, Node::Host(_)) && kind != FileType::Directory;
    is_host.then(|| before.stat(node).ok().map(|stat| stat.ctime))?
}

/// Returns all changes of a run so far; `None` if there are too many to list.
pub(super) fn all(view: &View<Transaction>) -> Result<Option<Vec<Change>>, Error> {
    let (mut changes, is_complete) = view.transaction().changes().map_err(sqlite_fs::Error::from)?;
    let overlay = view.overlay_changes();
    seen_from_above(&mut changes, &overlay);
    Ok((is_complete && !overlay.is_incomplete).then_some(changes))
}

/// Returns the name of a kind of change.
pub(super) fn kind_name(kind: &ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Modified => "modified",
        ChangeKind::Attributes => "attributes",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Renamed { .. } => "renamed",
        _ => "changed",
    }
}

// A host file that was copied to a row in order to change it existed before; a hidden one was deleted.
fn seen_from_above(changes: &mut Vec<Change>, overlay: &OverlayChanges) {
    changes.retain(|change| change.file_type != Some(FileType::Directory) || !overlay.copied.contains(&change.path));
    for change in changes.iter_mut().filter(|change| overlay.copied.contains(&change.path)) {
        if change.kind == ChangeKind::Created {
            change.kind = ChangeKind::Modified;
        }
    }
    let known: HashSet<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let gone = overlay.hidden.iter().filter(|path| !known.contains(path.as_str()));
    let gone: Vec<Change> =
        gone.map(|path| Change { path: path.clone(), kind: ChangeKind::Deleted, file_type: None, size: 0 }).collect();
    if !gone.is_empty() {
        changes.extend(gone);
        changes.sort_by(|a, b| a.path.cmp(&b.path));
    }
}

/// Returns the name of a file type.
pub(super) fn type_name(file_type: Option<FileType>) -> Option<&'static str> {
    Some(match file_type? {
        FileType::File => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Device => "device",
    })
}
