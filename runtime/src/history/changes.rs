//! The file changes of a run, as stored in the history.

use std::collections::HashSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use sqlite_fs::path::Last;
use sqlite_fs::{Change, ChangeKind, FileType, Reader, Transaction, Volume as _};

use super::diff::Diffs;
use super::hooks::{FileChange, Moved};
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
    moved: Option<&Moved>,
) -> Result<Option<String>, Error> {
    let until = clock::now() + time;
    let (mut changes, is_complete) = view.transaction().changes_by(until).map_err(sqlite_fs::Error::from)?;
    let overlay = view.overlay_changes();
    seen_from_above(&mut changes, &overlay);
    add_moved(&mut changes, moved);
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
            // The view still shows the previous state of an overlay that is moved.
            diff: if moved.is_none() { diffs.of(change) } else { None },
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
    let is_complete = is_complete && !overlay.is_incomplete && moved.is_none_or(|moved| moved.is_complete);
    let omitted = (!is_complete).then_some(Entry::Omitted { kind: OMITTED, note: "too many changes to list", path: "" });
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
pub(super) fn all(view: &View<Transaction>, moved: Option<&Moved>) -> Result<Option<Vec<Change>>, Error> {
    let (mut changes, is_complete) = view.transaction().changes().map_err(sqlite_fs::Error::from)?;
    let overlay = view.overlay_changes();
    seen_from_above(&mut changes, &overlay);
    add_moved(&mut changes, moved);
    let is_complete = is_complete && !overlay.is_incomplete && moved.is_none_or(|moved| moved.is_complete);
    Ok(is_complete.then_some(changes))
}

// Adds the changes of a moved overlay, which replace those of the rows that no longer hide them.
fn add_moved(changes: &mut Vec<Change>, moved: Option<&Moved>) {
    let Some(moved) = moved.filter(|moved| !moved.changes.is_empty()) else { return };
    let known: HashSet<&str> = moved.changes.iter().map(|change| change.path.as_str()).collect();
    changes.retain(|change| !known.contains(change.path.as_str()));
    changes.extend(moved.changes.iter().cloned());
    changes.sort_by(|a, b| a.path.cmp(&b.path));
}

/// Returns the changes in the row of a run, and whether there are no others.
pub(crate) fn recorded(text: &str) -> (Vec<FileChange>, bool) {
    if text.len() > super::PARSED_BYTES {
        return (Vec::new(), false);
    }
    let Ok(list) = serde_json::from_str::<Vec<Value>>(text) else { return (Vec::new(), false) };
    let changes: Vec<FileChange> = list.iter().filter_map(change_of).collect();
    let is_complete = changes.len() == list.len();
    (changes, is_complete)
}

// A recorded change; `None` if it is not one, such as the last entry of an incomplete list.
fn change_of(recorded: &Value) -> Option<FileChange> {
    let text = |key: &str| recorded.get(key).and_then(Value::as_str);
    let known = |names: &[&'static str], name: &str| names.iter().copied().find(|known| *known == name);
    Some(FileChange {
        path: text("path").filter(|path| path.starts_with('/'))?.to_owned(),
        kind: known(&KINDS, text("kind")?)?,
        from: text("from").filter(|path| path.starts_with('/')).map(str::to_owned),
        file_type: text("type").and_then(|name| known(&TYPES, name)),
        size: recorded.get("size").and_then(Value::as_u64).unwrap_or_default(),
    })
}

/// The names of the kinds of changes.
const KINDS: [&str; 5] = ["created", "modified", "attributes", "deleted", "renamed"];
/// The names of the types of files.
const TYPES: [&str; 5] = ["file", "directory", "symlink", "fifo", "device"];

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
