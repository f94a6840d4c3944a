//! Events: the changes of each version, in order, from any version on. They are derived from the versions themselves, so nothing
//! is lost when a consumer dies: it resumes from the last version that it has acknowledged.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use sqlite_fs::path::Last;
use sqlite_fs::{Filter, FsError, Reader, Version, VersionKind, Volume as _};

use crate::history::{self, FileChange, is_file};
use crate::sandbox::Sandbox;
use crate::vfs::{ROOT_NODE, View, content};
use crate::{Cancel, Error, clock};

/// Maximum number of versions on a page.
const PAGE: usize = 100;

/// Number of events on a page beyond which no version is added to it.
const EVENTS: usize = 1000;

/// Larger files have no hash in their event.
const HASHED_BYTES: u64 = 64 << 20;

/// How often to check for a new version.
const STEP: Duration = Duration::from_millis(20);

/// The kind of an event that represents versions dropped before they were read.
const LOST: &str = "lost";

/// The call that moves an overlay onto another state of its source.
const UPDATE: &str = "update";

/// The kinds of changes that a move becomes for a view that sees only one of its two paths.
const CREATED: &str = "created";
const DELETED: &str = "deleted";

/// A change of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Event {
    /// The version.
    pub version: i64,
    /// The run that created it; `None` if no run did.
    pub run: Option<i64>,
    /// The time, in nanoseconds since 1970.
    pub time: i64,
    /// The path.
    pub path: String,
    /// The kind: `created`, `modified`, `attributes`, `deleted` or `renamed`; `lost` represents versions that were dropped.
    pub kind: String,
    /// The previous path, if it was renamed.
    pub from: Option<String>,
    /// The type: `file`, `directory`, `symlink`, `fifo` or `device`.
    #[serde(rename = "type")]
    pub file_type: Option<String>,
    /// The new size, in bytes.
    pub size: u64,
    /// The new content hash, equal to the file's version; `None` if there is no content or more than 64 MB, or if the file comes from
    /// the source of an overlay that `update` moved.
    pub hash: Option<String>,
}

/// A page of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EventPage {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The last covered version: the start of the next page, and the version that a consumer acknowledges.
    pub version: i64,
    /// Whether there are later versions.
    pub more: bool,
}

/// The recorded changes of a version below overlays.
#[derive(Default)]
struct Below {
    changes: BTreeMap<String, FileChange>,
    /// Whether some are not listed.
    is_partial: bool,
    /// Whether an update moved an overlay.
    is_update: bool,
    overlays: Vec<String>,
}

impl Below {
    // Whether a change is only the row of a directory of the source in which something changed.
    fn is_copy(&self, change: &FileChange) -> bool {
        change.kind == CREATED
            && change.file_type == Some("directory")
            && !self.is_partial
            && !self.changes.contains_key(&change.path)
            && self.overlays.iter().any(|place| change.is_below(place))
    }
}

impl Sandbox {
    /// Returns the events after a version, in order; after `None`, all events of the existing versions. With `path` only those at
    /// it or below it, and the moves of directories that contained it or contain it now.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// let start = sandbox.events_after(None, None)?.version;
    /// sandbox.bash("echo one > /note; mkdir /d")?;
    /// let events = sandbox.events_after(Some(start), None)?.events;
    /// assert_eq!(events.iter().map(|event| &*event.path).collect::<Vec<_>>(), ["/d", "/note"]);
    /// assert_eq!(events[1].hash, Some(sandbox.fs().version("/note")?));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn events_after(&self, after: Option<i64>, path: Option<&str>) -> Result<EventPage, Error> {
        let reader = self.database.reader()?;
        let newest = reader.versions(None, 1)?.first().map_or(0, |version| version.number);
        // A past sandbox knows nothing of later versions.
        let newest = self.at.map_or(newest, |at| newest.min(at));
        let mut page = EventPage { events: Vec::new(), version: after.unwrap_or(0), more: false };
        let versions = ascending(&reader, page.version, newest)?;
        // Nothing is known about the time before the oldest version.
        let mut before = match versions.first() {
            Some(first) => reader.versions(Some(first.number), 1)?.pop().map(|version| version.number),
            None => None,
        };
        for version in &versions {
            if page.events.len() >= EVENTS {
                break;
            }
            match before {
                Some(from) => self.add_events(&reader, from, version, path, &mut page.events)?,
                None if after.is_some_and(|after| after > 0) => page.events.push(lost(version)),
                None => {}
            }
            (page.version, before) = (version.number, Some(version.number));
        }
        page.more = page.version < newest;
        Ok(page)
    }

    fn add_events(
        &self,
        reader: &Reader,
        from: i64,
        version: &Version,
        path: Option<&str>,
        events: &mut Vec<Event>,
    ) -> Result<(), Error> {
        if version.kind == VersionKind::Base {
            return Ok(());
        }
        let (changes, is_complete) = reader.changes(from, Some(version.number))?;
        let below = self.below_overlays(reader, version)?;
        let is_complete = is_complete && !below.is_partial;
        let rows = changes.iter().map(FileChange::new).filter(|change| !below.is_copy(change));
        let mut changes: BTreeMap<String, FileChange> = rows.map(|change| (change.path.clone(), change)).collect();
        // A recorded change replaces that of the rows, such as the creation of a row for a file of the source.
        changes.extend(below.changes);
        let view = self.recorder.at(&self.scope, version.number)?;
        let is_partial = self.scope.binding.is_partial();
        let former = is_partial.then(|| self.recorder.at(&self.scope, from)).transpose()?;
        for change in changes.into_values() {
            let Some(change) = seen(change, |path| self.scope.binding.hides_path(path)) else { continue };
            // A name of a file that another of its names hides, or hid.
            let seen_in = if change.kind == DELETED { former.as_ref() } else { Some(&view) };
            let is_gone =
                |view: &View<Reader>| matches!(view.find(ROOT_NODE, &change.path, Last::NoFollow), Err(FsError::NoEntry));
            if is_partial && seen_in.is_some_and(is_gone) {
                continue;
            }
            let exists = |path: &str| view.find(ROOT_NODE, path, Last::NoFollow).is_ok();
            if path.is_some_and(|top| !change.is_below(top) && !change.moved(top, &exists)) {
                continue;
            }
            let is_small_file = change.kind != DELETED && is_file(&change) && change.size <= HASHED_BYTES;
            // A view shows the current state of a source, which may be a later one.
            let has_hash = is_small_file && !below.is_update && exists(&change.path);
            let hash = has_hash.then(|| content::version_at(&view, &change.path)).transpose()?;
            let FileChange { path, kind, from, file_type, size } = change;
            let (kind, file_type) = (kind.to_owned(), file_type.map(str::to_owned));
            events.push(Event {
                version: version.number,
                run: version.call,
                time: version.time,
                path,
                kind,
                from,
                file_type,
                size,
                hash,
            });
        }
        if !is_complete {
            events.push(lost(version));
        }
        Ok(())
    }

    // Changes that are not rows: files of a source that a run removed, or that an update made visible.
    fn below_overlays(&self, reader: &Reader, version: &Version) -> Result<Below, Error> {
        let Some(call) = version.call else { return Ok(Below::default()) };
        let overlays: Vec<String> =
            self.scope.mounts.iter().filter(|point| point.overlay).map(|point| point.path.clone()).collect();
        let filter = Filter { limit: 1, before: call.checked_add(1), ..Filter::default() };
        let Some(row) = reader.calls(&filter)?.pop().filter(|row| row.id == call) else {
            return Ok(Below { is_partial: !overlays.is_empty(), ..Below::default() });
        };
        let is_update = row.name == UPDATE;
        let text = row.run.and_then(|run| run.changes).filter(|_| is_update || !overlays.is_empty());
        let (changes, is_complete) = text.map_or((Vec::new(), true), |text| history::recorded(&text));
        let is_wanted = |change: &FileChange| is_update || overlays.iter().any(|place| change.is_below(place));
        let changes = changes.into_iter().filter(is_wanted).map(|change| (change.path.clone(), change)).collect();
        Ok(Below { changes, is_partial: !is_complete, is_update, overlays })
    }

    /// Waits until there is a version after this one, and returns whether there is.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn wait_for_version(&self, after: i64, most: Duration, cancel: &Cancel) -> Result<bool, Error> {
        let until = clock::now() + most;
        loop {
            let newest = self.database.reader()?.versions(None, 1)?.first().map_or(0, |version| version.number);
            if newest > after {
                return Ok(true);
            }
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() || cancel.is_killed() {
                return Ok(false);
            }
            std::thread::park_timeout(STEP.min(left));
        }
    }

    /// Returns the last version that a consumer has acknowledged.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub fn cursor(&self, consumer: &str) -> Result<Option<i64>, Error> {
        let text = self.database.reader()?.setting(&self.cursor_name(consumer)?)?;
        Ok(text.and_then(|text| text.parse().ok()))
    }

    /// Stores that a consumer has processed everything up to a version; `None` removes the consumer. This is not a change of the
    /// sandbox.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().file("/note", "one").open()?;
    /// let page = sandbox.events_after(sandbox.cursor("index")?, None)?;
    /// // Process the events, then:
    /// sandbox.acknowledge("index", Some(page.version))?;
    /// assert_eq!(sandbox.cursor("index")?, Some(page.version));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the name is empty or too long, and an error if the database cannot be written.
    pub fn acknowledge(&self, consumer: &str, version: Option<i64>) -> Result<(), Error> {
        self.acknowledge_until(consumer, version, &Cancel::default())
    }

    /// Same as [`acknowledge`](Self::acknowledge); cancelling ends the wait for a running command.
    pub(crate) fn acknowledge_until(&self, consumer: &str, version: Option<i64>, cancel: &Cancel) -> Result<(), Error> {
        let name = self.cursor_name(consumer)?;
        let text = version.map(|version| version.to_string());
        // Not a run: a consumer of every version would fill the history with its own rows.
        let transaction = history::begin(&self.database, cancel)?;
        transaction.set_setting(&name, text.as_deref())?;
        Ok(transaction.commit()?)
    }

    // A view's consumers are its own.
    fn cursor_name(&self, consumer: &str) -> Result<String, Error> {
        if consumer.is_empty() || consumer.len() > 100 || consumer.chars().any(char::is_control) {
            return Err(Error::Invalid(format!("invalid consumer name {consumer:?}: expected 1 to 100 printable bytes")));
        }
        Ok(format!("cursor:{}", self.scope.binding.session(consumer)))
    }
}

// The first versions after a number, oldest first.
fn ascending(reader: &Reader, after: i64, newest: i64) -> Result<Vec<Version>, Error> {
    let step = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let mut until = after.saturating_add(step);
    loop {
        let mut found = reader.versions(until.checked_add(1), PAGE)?;
        found.retain(|version| version.number > after && version.number <= newest);
        found.reverse();
        if !found.is_empty() || until >= newest {
            return Ok(found);
        }
        until = until.saturating_add(step);
    }
}

// A change as a view sees it: a move from a hidden path creates the file, and one to a hidden path deletes it.
fn seen(change: FileChange, is_hidden: impl Fn(&str) -> bool) -> Option<FileChange> {
    let is_hidden_now = is_hidden(&change.path);
    match change.from.as_deref().map(is_hidden) {
        None | Some(true) if is_hidden_now => None,
        Some(true) => Some(FileChange { kind: CREATED, from: None, ..change }),
        Some(false) if is_hidden_now => {
            Some(FileChange { path: change.from.unwrap_or_default(), kind: DELETED, from: None, size: 0, ..change })
        }
        _ => Some(change),
    }
}

fn lost(version: &Version) -> Event {
    Event {
        version: version.number,
        run: version.call,
        time: version.time,
        path: String::new(),
        kind: LOST.to_owned(),
        from: None,
        file_type: None,
        size: 0,
        hash: None,
    }
}
