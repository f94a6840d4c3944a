//! The actions: all operations on one sandbox, defined once for every interface.
//!
//! The table below is the only list of verbs. The MCP server, the Python package and `--json` take names, descriptions, schemas
//! and functions from it. Knows nothing about protocols: an interface prepares an action, passes it a [`Context`] and forwards
//! its [`Answer`].

mod answer;
mod events;
mod files;
mod history;
mod inquiry;
mod places;
mod record;
mod review;
mod run;
mod schema;
mod space;
mod trees;
mod update;
mod values;
mod versions;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::agent::{DeleteFile, EditFile, Glob, Grep, ListFiles, MoveFile, ReadFile, WriteFile};
use crate::{Cancel, Command, Error, Sandbox, Stream};

pub use answer::{Answer, quoted, shortened};
pub use events::{AcknowledgeEvents, Acknowledged, Events};
pub use history::{History, HistoryRow, HistoryRows};
pub use inquiry::{Bisect, Blame, Replay, Show};
pub use places::{AppendFile, Appended, FileDescription, FileInfo, MadeDirectory, MakeDirectory, NewContent, WroteFiles};
pub use record::{Record, Recorded};
pub use review::{Apply, ListChanges};
pub use run::{Bash, Image, Limit, Python, Ran, RunOptions};
pub use space::{Compact, Compacted};
pub use trees::{CopyFiles, DiskUsage, DrawTree, FileKind, FindFiles, FoundFile, FoundFiles, Walked};
pub use update::{Update, Updated};
pub use values::{KvDelete, KvDeleted, KvGet, KvKeys, KvNames, KvSet, KvStored, KvValue};
pub use versions::{Checkpoint, Checkpoints, Diff, Log, PruneVersions, Restore, Undo};

/// The effect of an action on the sandbox, as a hint to clients that ask their user first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Changes nothing.
    Reads,
    /// Adds data; nothing is lost.
    Adds,
    /// May overwrite or remove data.
    Changes,
}

/// The permission that an action requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Run programs.
    Execute,
    /// Read files.
    ReadFiles,
    /// Change files.
    WriteFiles,
    /// Read values of the key-value store.
    ReadValues,
    /// Change values of the key-value store.
    WriteValues,
    /// Read the history.
    ReadHistory,
    /// Copy whole sandboxes.
    Snapshots,
    /// Read skills.
    ReadSkills,
    /// Run skills.
    RunSkills,
    /// Change the catalog of skills.
    WriteSkills,
    /// Change directories on this machine that the caller names.
    HostFiles,
}

/// The audience of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Models and programs.
    Models,
    /// Only programs: models have another action for it, and each offered action costs them attention.
    Programs,
}

/// The arguments of an action, and its implementation in a context `C`.
pub trait Request<C = Context>: DeserializeOwned + JsonSchema + Send + 'static {
    /// The data of its result.
    type Data: Serialize + JsonSchema;

    /// Performs the action.
    ///
    /// # Errors
    ///
    /// Returns an error if the action failed; the caller turns it into an [`Answer`] or an exception.
    fn run(self, context: &C) -> Result<Answer, Error>;
}

/// One action: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Action<C = Context> {
    /// The name used by callers.
    pub name: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// The description for a model.
    pub description: &'static str,
    /// The effect on the sandbox.
    pub effect: Effect,
    /// Whether repeating it has no further effect.
    pub is_idempotent: bool,
    /// The required permission.
    pub permission: Permission,
    /// The audience.
    pub audience: Audience,
    /// Returns the JSON schema of its arguments.
    pub input: fn() -> Value,
    /// Returns the JSON schema of its result's data.
    pub output: fn() -> Value,
    prepare: fn(Value) -> Result<Prepared<C>, Error>,
}

impl<C: 'static> Action<C> {
    /// Creates a row for models, with the request type `R`.
    #[must_use]
    pub const fn new<R: Request<C>>(
        name: &'static str,
        title: &'static str,
        description: &'static str,
        effect: Effect,
        permission: Permission,
    ) -> Self {
        Self {
            name,
            title,
            description,
            effect,
            is_idempotent: matches!(effect, Effect::Reads),
            permission,
            audience: Audience::Models,
            input: schema::input::<R>,
            output: schema::output::<R::Data>,
            prepare: prepare::<R, C>,
        }
    }

    /// Marks the row as idempotent.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.is_idempotent = true;
        self
    }

    /// Restricts the row to programs.
    #[must_use]
    pub const fn for_programs(mut self) -> Self {
        self.audience = Audience::Programs;
        self
    }

    /// Checks the arguments.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if they do not match the schema.
    pub fn prepare(&self, arguments: Value) -> Result<Prepared<C>, Error> {
        (self.prepare)(arguments)
    }

    /// Performs the action; errors become results that a model can read.
    pub fn run(&self, context: &C, arguments: Value) -> Answer {
        self.prepare(arguments).and_then(|prepared| prepared.run(context)).unwrap_or_else(Answer::from)
    }

    /// Returns whether the action waits for a running command, as every change of the sandbox does. Reading and copying the whole
    /// sandbox never wait.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.effect == Effect::Changes || self.effect == Effect::Adds && self.permission == Permission::WriteFiles
    }
}

impl Action {
    /// Adds the argument `at`, which selects a past version.
    #[must_use]
    const fn of_versions<R: Request>(mut self) -> Self {
        self.input = schema::input_at::<R>;
        self.prepare = prepare_at::<R>;
        self
    }
}

fn prepare_at<R: Request>(mut arguments: Value) -> Result<Prepared, Error> {
    let at = match arguments.as_object_mut().and_then(|arguments| arguments.remove("at")) {
        None | Some(Value::Null) => None,
        Some(Value::String(reference)) => Some(reference),
        Some(_) => return Err(Error::Invalid("invalid arguments: `at` is not a string".to_owned())),
    };
    let prepared = prepare::<R, Context>(arguments)?;
    Ok(Prepared(Box::new(move |context| match at {
        None => prepared.run(context),
        Some(reference) => prepared.run(&Context { sandbox: context.sandbox.at(&reference)?, ..context.clone() }),
    })))
}

fn prepare<R: Request<C>, C: 'static>(arguments: Value) -> Result<Prepared<C>, Error> {
    let request: R = serde_json::from_value(arguments).map_err(|error| {
        let said = ["u64", "u32", "usize"].iter().fold(error.to_string(), |said, kind| {
            // The caller does not know the names of our types.
            said.replace(&format!("expected {kind}"), "expected a whole number, 0 or more")
        });
        Error::Invalid(format!("invalid arguments: {}", shortened(said, answer::COMPLAINT)))
    })?;
    Ok(Prepared(Box::new(|context| request.run(context))))
}

type Work<C> = dyn FnOnce(&C) -> Result<Answer, Error> + Send;

/// An action with valid arguments.
pub struct Prepared<C = Context>(Box<Work<C>>);

impl<C> Prepared<C> {
    /// Performs the action.
    ///
    /// # Errors
    ///
    /// Returns an error if the action failed.
    pub fn run(self, context: &C) -> Result<Answer, Error> {
        (self.0)(context)
    }
}

type Listener = dyn Fn(Stream, &[u8]) + Send + Sync;

/// The sandbox that an action works on, and how its caller follows and cancels it.
#[derive(Clone)]
pub struct Context {
    sandbox: Sandbox,
    cancel: Cancel,
    on_output: Option<Arc<Listener>>,
    offers_history: bool,
}

impl Context {
    /// Creates a context without a listener.
    #[must_use]
    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, cancel: Cancel::default(), on_output: None, offers_history: true }
    }

    /// Omits references to the action `history` from results, for a caller to whom it is not offered.
    #[must_use]
    pub fn without_history(mut self) -> Self {
        self.offers_history = false;
        self
    }

    /// Passes each piece of a command's output to a callback.
    #[must_use]
    pub fn on_output(mut self, listener: impl Fn(Stream, &[u8]) + Send + Sync + 'static) -> Self {
        self.on_output = Some(Arc::new(listener));
        self
    }

    /// Uses this [`Cancel`] for the action's command instead of a new one.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Returns the sandbox.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Returns the handle that cancels the action's command, before or while it runs.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Connects a command to this context's [`Cancel`] and output listener.
    fn watch(&self, command: Command) -> Command {
        let mut command = command.cancelled_by(self.cancel.clone());
        if let Some(listener) = &self.on_output {
            for stream in [Stream::Stdout, Stream::Stderr] {
                let listener = Arc::clone(listener);
                command = command.on_output(stream, move |bytes| listener(stream, bytes));
            }
        }
        command
    }
}

/// Returns every action.
#[must_use]
pub fn actions() -> &'static [Action] {
    ACTIONS
}

/// Returns the action with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|action| action.name == name)
}

use Effect::{Adds, Changes, Reads};
use Permission::{Execute, HostFiles, ReadFiles, ReadHistory, ReadValues, WriteFiles, WriteValues};

static ACTIONS: &[Action] = &[
    Action::new::<Bash>("bash", "Run bash", BASH, Changes, Execute).of_versions::<Bash>(),
    Action::new::<Python>("python", "Run Python", PYTHON, Changes, Execute).of_versions::<Python>(),
    Action::new::<ReadFile>("read_file", "Read a file", READ, Reads, ReadFiles).of_versions::<ReadFile>(),
    Action::new::<WriteFile>("write_file", "Write a file", WRITE, Changes, WriteFiles).idempotent(),
    Action::new::<EditFile>("edit_file", "Edit a file", EDIT, Changes, WriteFiles),
    Action::new::<ListFiles>("list_files", "List files", LIST, Reads, ReadFiles).of_versions::<ListFiles>(),
    Action::new::<Glob>("glob", "Find files by name", GLOB, Reads, ReadFiles).of_versions::<Glob>(),
    Action::new::<Grep>("grep", "Search in files", GREP, Reads, ReadFiles).of_versions::<Grep>(),
    Action::new::<DeleteFile>("delete_file", "Delete a file", DELETE, Changes, WriteFiles),
    Action::new::<MoveFile>("move_file", "Move a file", MOVE, Changes, WriteFiles),
    Action::new::<MakeDirectory>("make_directory", "Create a directory", MKDIR, Adds, WriteFiles).idempotent().for_programs(),
    Action::new::<FileInfo>("file_info", "Describe a file", INFO, Reads, ReadFiles).of_versions::<FileInfo>().for_programs(),
    Action::new::<AppendFile>("append_file", "Append to a file", APPEND, Changes, WriteFiles).for_programs(),
    Action::new::<places::WriteFiles>("write_files", "Write many files", WRITE_MANY, Changes, WriteFiles)
        .idempotent()
        .for_programs(),
    Action::new::<CopyFiles>("copy_files", "Copy files", COPY, Changes, WriteFiles).idempotent().for_programs(),
    Action::new::<FindFiles>("find_files", "Find files by name or kind", FIND, Reads, ReadFiles)
        .of_versions::<FindFiles>()
        .for_programs(),
    Action::new::<DiskUsage>("disk_usage", "Count files and bytes", USAGE, Reads, ReadFiles)
        .of_versions::<DiskUsage>()
        .for_programs(),
    Action::new::<DrawTree>("tree", "Draw a tree", TREE, Reads, ReadFiles).of_versions::<DrawTree>().for_programs(),
    Action::new::<KvGet>("kv_get", "Get a value", KV_GET, Reads, ReadValues).of_versions::<KvGet>(),
    Action::new::<KvSet>("kv_set", "Set a value", KV_SET, Changes, WriteValues).idempotent(),
    Action::new::<KvDelete>("kv_delete", "Delete a value", KV_DELETE, Changes, WriteValues).idempotent(),
    Action::new::<KvKeys>("kv_keys", "List keys", KV_KEYS, Reads, ReadValues).of_versions::<KvKeys>(),
    Action::new::<History>("history", "List past runs", HISTORY, Reads, ReadHistory).of_versions::<History>(),
    Action::new::<Record>("record", "Record a step", RECORD, Changes, WriteValues).for_programs(),
    Action::new::<Log>("log", "List versions", LOG, Reads, ReadHistory).of_versions::<Log>(),
    Action::new::<Diff>("diff", "Compare versions", DIFF, Reads, ReadHistory),
    Action::new::<Show>("show", "Show a run", SHOW, Reads, ReadHistory),
    Action::new::<Blame>("blame", "Find the run that wrote each line", BLAME, Reads, ReadHistory),
    Action::new::<Bisect>("bisect", "Find the run that broke something", BISECT, Reads, Execute),
    Action::new::<Replay>("replay", "Replay recorded runs", REPLAY, Reads, Execute),
    Action::new::<ListChanges>("changes", "Review changes", CHANGES, Reads, ReadHistory),
    Action::new::<Apply>("apply", "Apply changes to a directory", APPLY, Changes, HostFiles).idempotent().for_programs(),
    Action::new::<Undo>("undo", "Undo runs", UNDO, Changes, WriteFiles),
    Action::new::<Restore>("restore", "Restore a version", RESTORE, Changes, WriteFiles).idempotent(),
    Action::new::<Checkpoint>("checkpoint", "Name this version", CHECKPOINT, Changes, WriteFiles),
    Action::new::<Checkpoints>("checkpoints", "List checkpoints", CHECKPOINTS, Reads, ReadHistory).for_programs(),
    Action::new::<PruneVersions>("prune_versions", "Drop old versions", PRUNE, Changes, WriteFiles).for_programs(),
    Action::new::<Update>("update", "Update an overlay", UPDATE, Changes, WriteFiles).idempotent().for_programs(),
    Action::new::<Events>("events", "List events", EVENTS, Reads, ReadHistory).for_programs(),
    Action::new::<AcknowledgeEvents>("acknowledge_events", "Acknowledge events", ACKNOWLEDGE, Changes, ReadHistory)
        .idempotent()
        .for_programs(),
    Action::new::<Compact>("compact", "Free unused space", COMPACT, Changes, WriteFiles).idempotent().for_programs(),
];

const RECORD: &str = "Records a step of the program that uses the sandbox in the history, such as the turn of an agent, with its content as output.";
const UPDATE: &str = "Moves an overlay over a database onto a newer version of it and keeps the sandbox's own changes. If both sides changed a path, it is reported and nothing is changed, unless `keep` selects a side.";
const LOG: &str = "Lists the versions of the sandbox, newest first: each run that changed something created one. A run's number refers to the state after it.";
const DIFF: &str =
    "Compares the files of two versions, or of a version and the current state: paths, and the differing lines as a patch.";
const SHOW: &str = "Shows one run in full: command, exit code, output, and its changes as a patch.";
const BLAME: &str = "Returns the lines of a text file, each with the run that wrote it.";
const BISECT: &str =
    "Finds the run that broke something: runs a command at versions between a good one and a bad one, each in a temporary copy.";
const REPLAY: &str = "Replays every recorded run in a temporary copy and compares exit code, output, files, keys and sessions after each. Returns the first difference.";
const CHANGES: &str =
    "Shows the changes in the sandbox since a version; defaults to its mounted directories, or to the first run.";
const APPLY: &str = "Applies the sandbox's changes to a directory on this machine, all or none. Reports a conflict for files that were edited there meanwhile.";
const UNDO: &str =
    "Restores files, keys and sessions to their state before the last runs that changed something. Undoing an undo is a redo.";
const RESTORE: &str = "Restores everything, or some paths, to the state at a version. This is a run itself, so it can be undone.";
const CHECKPOINT: &str = "Names the current version, to compare with it or restore it later.";
const CHECKPOINTS: &str = "Lists the checkpoints, newest first.";
const PRUNE: &str = "Deletes old versions; the others can still be read.";

const BASH: &str = "Runs a bash command line in the sandbox, with some 160 programs (grep, sed, awk, jq, find, tar, …). Each call is a fresh \
shell: files persist, variables and `cd` do not, unless you name a `session`. Returns exit code, standard output and standard error; a non-zero exit code is a result, \
not an error. A command that reaches a limit is stopped and returns its output so far. With `at` it runs in a temporary copy of a past version. There is no network.";
const PYTHON: &str = "Runs Python code (CPython 3.14, standard library) on the sandbox's files. Each call is a fresh interpreter, unless you name a `session`, which keeps its globals. Print the values you want to see. \
There is no network; `subprocess` runs the sandbox's own programs.";
const READ: &str = "Reads a text file as numbered lines, at most 2000 lines or 64 KB per call; offset and limit select a window. Binary content is returned \
as base64. Returns the version to pass to write_file and edit_file.";
const WRITE: &str = "Writes a whole file, creating missing parent directories. With expected_version it writes only if the file has not changed since.";
const EDIT: &str =
    "Replaces exact pieces of text in a file, all or none. Each old text must occur exactly once, unless replace_all is set.";
const LIST: &str = "Lists a directory to a given depth, at most 1000 entries.";
const GLOB: &str = "Finds files by a pattern such as `src/**/*.{py,toml}`, at most 1000.";
const GREP: &str = "Searches files for a regular expression: matching lines with context, files, or counts. At most 200 matches or 64 KB per call.";
const DELETE: &str = "Deletes a file or a link; also a directory with its content if recursive is set.";
const MOVE: &str = "Moves or renames a file or a directory; replaces a file only if overwrite is set.";
const MKDIR: &str = "Creates a directory and its missing parents.";
const INFO: &str = "Returns the type, size, permissions and modification time of a path.";
const APPEND: &str = "Appends to a file, creating it and its missing parent directories.";
const WRITE_MANY: &str = "Writes many files, all or none, creating missing parent directories.";
const COPY: &str = "Copies a file, or a directory with everything below it if recursive is set. If the destination is an existing directory, the copy is placed inside it. \
Either everything is copied or nothing.";
const FIND: &str = "Lists everything below a directory, filtered by name and kind, with size, mode and time. At most 1000 entries or 64 KB per call.";
const USAGE: &str = "Counts the bytes, files and directories below a directory.";
const TREE: &str = "Draws the tree below a directory, at most 1000 entries or 64 KB per call.";
const KV_GET: &str = "Returns the JSON value of a key, or null; values larger than 128 KB are returned in parts, by offset.";
const KV_SET: &str = "Stores a JSON value under a key, separately from files.";
const KV_DELETE: &str = "Deletes a key, and returns whether it existed.";
const KV_KEYS: &str =
    "Lists the keys with a prefix, at most 1000 or 64 KB per call; `after` is the last key of the previous page.";
const HISTORY: &str =
    "Lists past runs in the sandbox, newest first. With `run` it shows one run in full, with its output from any offset.";

const EVENTS: &str = "Lists the changes of each version, oldest first, from a version or from a consumer's stored position: path, kind, hash and run.";
const ACKNOWLEDGE: &str = "Stores the last version that a consumer of events has processed, so that it resumes after it.";
const COMPACT: &str = "Returns the space of deleted data to the disk, however long that takes.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once() {
        let mut names: Vec<&str> = actions().iter().map(|action| action.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), actions().len());
        assert!(find("bash").is_some() && find("rm").is_none());
    }

    #[test]
    fn every_action_that_changes_the_sandbox_takes_turns() {
        for action in actions() {
            assert_eq!(action.takes_turns(), action.effect != Reads, "{}", action.name);
        }
    }

    #[test]
    fn every_property_of_every_schema_is_described() {
        for action in actions() {
            for schema in [(action.input)(), (action.output)()] {
                assert_eq!(schema["type"], "object", "{}", action.name);
                for (name, property) in schema["properties"].as_object().unwrap() {
                    assert!(property["description"].is_string(), "{}: {name}: {property}", action.name);
                }
            }
            assert_eq!((action.input)()["additionalProperties"], false, "{}", action.name);
        }
    }
}
