//! The actions: everything that can be done in one sandbox, once for every interface.
//!
//! The table below is the only list of verbs. The MCP server, the Python package and `--json` take names, descriptions, schemas and
//! functions from it. Knows nothing of protocols: an interface prepares an action, gives it a [`Context`] and passes on its [`Answer`].

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
pub use trees::{CopyFiles, DiskUsage, DrawTree, FileKind, FindFiles, FoundFile, FoundFiles};
pub use update::{Update, Updated};
pub use values::{KvDelete, KvDeleted, KvGet, KvKeys, KvNames, KvSet, KvStored, KvValue};
pub use versions::{Checkpoint, Checkpoints, Diff, Log, PruneVersions, Restore, Undo};

/// What an action does to the sandbox, as a hint to clients that ask their user first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Changes nothing.
    Reads,
    /// Adds; nothing is lost.
    Adds,
    /// May overwrite or remove.
    Changes,
}

/// The right that an action needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Run programs.
    Execute,
    /// Look at files.
    ReadFiles,
    /// Change files.
    WriteFiles,
    /// Look at values of the key-value store.
    ReadValues,
    /// Change values of the key-value store.
    WriteValues,
    /// Look at the history.
    ReadHistory,
    /// Copy whole sandboxes.
    Snapshots,
    /// Look at skills.
    ReadSkills,
    /// Run skills.
    RunSkills,
    /// Change the catalog of skills.
    WriteSkills,
    /// Change directories of this machine that the caller names.
    HostFiles,
}

/// Who is offered an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Models, and programs.
    Models,
    /// Programs alone: a model has another action for it, and each action it is offered costs it attention.
    Programs,
}

/// The arguments of an action, and what it does with them in a context `C`.
pub trait Request<C = Context>: DeserializeOwned + JsonSchema + Send + 'static {
    /// The data of its answer.
    type Data: Serialize + JsonSchema;

    /// Performs the action.
    ///
    /// # Errors
    ///
    /// Returns an error if the action was not done; the caller turns it into an [`Answer`] or an exception.
    fn run(self, context: &C) -> Result<Answer, Error>;
}

/// One action: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Action<C = Context> {
    /// The name that callers use.
    pub name: &'static str,
    /// The name that people read.
    pub title: &'static str,
    /// What it does, for a model.
    pub description: &'static str,
    /// What it does to the sandbox.
    pub effect: Effect,
    /// Whether doing it twice is the same as doing it once.
    pub is_idempotent: bool,
    /// The right that it needs.
    pub permission: Permission,
    /// Who is offered it.
    pub audience: Audience,
    /// Returns the JSON schema of its arguments.
    pub input: fn() -> Value,
    /// Returns the JSON schema of its answer's data.
    pub output: fn() -> Value,
    prepare: fn(Value) -> Result<Prepared<C>, Error>,
}

impl<C: 'static> Action<C> {
    /// A row for models, of the request `R`.
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

    /// The same row, idempotent.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.is_idempotent = true;
        self
    }

    /// The same row, for programs alone.
    #[must_use]
    pub const fn for_programs(mut self) -> Self {
        self.audience = Audience::Programs;
        self
    }

    /// Checks the arguments.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if they do not fit the schema.
    pub fn prepare(&self, arguments: Value) -> Result<Prepared<C>, Error> {
        (self.prepare)(arguments)
    }

    /// Performs the action; errors become answers that a model can read.
    pub fn run(&self, context: &C, arguments: Value) -> Answer {
        self.prepare(arguments).and_then(|prepared| prepared.run(context)).unwrap_or_else(Answer::from)
    }

    /// Whether it waits for the command that runs, as whatever changes the sandbox does. Reading never waits.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.effect == Effect::Changes
    }
}

impl Action {
    /// The same row, whose question can also be asked of a past version: `at` is one more argument.
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
        Some(_) => return Err(Error::Invalid("the arguments do not fit: `at` is not a string".to_owned())),
    };
    let prepared = prepare::<R, Context>(arguments)?;
    Ok(Prepared(Box::new(move |context| match at {
        None => prepared.run(context),
        Some(reference) => prepared.run(&Context { sandbox: context.sandbox.at(&reference)?, ..context.clone() }),
    })))
}

fn prepare<R: Request<C>, C: 'static>(arguments: Value) -> Result<Prepared<C>, Error> {
    let request: R = serde_json::from_value(arguments).map_err(|error| {
        Error::Invalid(format!("the arguments do not fit: {}", shortened(error.to_string(), answer::COMPLAINT)))
    })?;
    Ok(Prepared(Box::new(|context| request.run(context))))
}

type Work<C> = dyn FnOnce(&C) -> Result<Answer, Error> + Send;

/// An action whose arguments fit.
pub struct Prepared<C = Context>(Box<Work<C>>);

impl<C> Prepared<C> {
    /// Performs the action.
    ///
    /// # Errors
    ///
    /// Returns an error if the action was not done.
    pub fn run(self, context: &C) -> Result<Answer, Error> {
        (self.0)(context)
    }
}

type Listener = dyn Fn(Stream, &[u8]) + Send + Sync;

/// Where an action takes place, and how its caller follows and ends it.
#[derive(Clone)]
pub struct Context {
    sandbox: Sandbox,
    cancel: Cancel,
    on_output: Option<Arc<Listener>>,
}

impl Context {
    /// A context that nobody watches.
    #[must_use]
    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, cancel: Cancel::default(), on_output: None }
    }

    /// Passes each piece of a command's output on as it comes.
    #[must_use]
    pub fn on_output(mut self, listener: impl Fn(Stream, &[u8]) + Send + Sync + 'static) -> Self {
        self.on_output = Some(Arc::new(listener));
        self
    }

    /// Lets this [`Cancel`] end the action's command, in place of one of its own.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// The sandbox.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Ends the action's command, before or while it runs.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// A command that this context's [`Cancel`] ends and whose output goes to its listener.
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

/// Every action.
#[must_use]
pub fn actions() -> &'static [Action] {
    ACTIONS
}

/// The action of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|action| action.name == name)
}

use Effect::{Adds, Changes, Reads};
use Permission::{Execute, HostFiles, ReadFiles, ReadHistory, ReadValues, WriteFiles, WriteValues};

static ACTIONS: &[Action] = &[
    Action::new::<Bash>("bash", "Run bash", BASH, Changes, Execute),
    Action::new::<Python>("python", "Run Python", PYTHON, Changes, Execute),
    Action::new::<ReadFile>("read_file", "Read a file", READ, Reads, ReadFiles).of_versions::<ReadFile>(),
    Action::new::<WriteFile>("write_file", "Write a file", WRITE, Changes, WriteFiles).idempotent(),
    Action::new::<EditFile>("edit_file", "Edit a file", EDIT, Changes, WriteFiles),
    Action::new::<ListFiles>("list_files", "List files", LIST, Reads, ReadFiles).of_versions::<ListFiles>(),
    Action::new::<Glob>("glob", "Find files by name", GLOB, Reads, ReadFiles).of_versions::<Glob>(),
    Action::new::<Grep>("grep", "Search in files", GREP, Reads, ReadFiles).of_versions::<Grep>(),
    Action::new::<DeleteFile>("delete_file", "Delete a file", DELETE, Changes, WriteFiles),
    Action::new::<MoveFile>("move_file", "Move a file", MOVE, Changes, WriteFiles),
    Action::new::<MakeDirectory>("make_directory", "Create a directory", MKDIR, Adds, WriteFiles).idempotent().for_programs(),
    Action::new::<FileInfo>("file_info", "Describe a file", INFO, Reads, ReadFiles).for_programs(),
    Action::new::<AppendFile>("append_file", "Add to a file", APPEND, Changes, WriteFiles).for_programs(),
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
    Action::new::<History>("history", "What was done", HISTORY, Reads, ReadHistory),
    Action::new::<Record>("record", "Record a step", RECORD, Changes, WriteValues).for_programs(),
    Action::new::<Log>("log", "List versions", LOG, Reads, ReadHistory),
    Action::new::<Diff>("diff", "Compare versions", DIFF, Reads, ReadHistory),
    Action::new::<Show>("show", "Show a run", SHOW, Reads, ReadHistory),
    Action::new::<Blame>("blame", "Find who wrote each line", BLAME, Reads, ReadHistory),
    Action::new::<Bisect>("bisect", "Find the run that broke it", BISECT, Reads, Execute),
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
    Action::new::<Compact>("compact", "Give free space back", COMPACT, Changes, WriteFiles).idempotent().for_programs(),
];

const RECORD: &str = "Records a step of the program that uses the sandbox, such as the turn of an agent, in the history, with its content as output.";
const UPDATE: &str = "Moves an overlay over a database onto a newer version of it and keeps the sandbox's own changes. Paths that both sides changed are reported and nothing is changed, unless `keep` decides.";
const LOG: &str = "Lists the versions of the sandbox, newest first: each run that changed something left one. A run's number names the state after it.";
const DIFF: &str = "Compares the files of two versions, or of one version and now: paths, and the lines that differ as a patch.";
const SHOW: &str = "Shows one run whole: command, exit code, output, and what it changed as a patch.";
const BLAME: &str = "Returns the lines of a text file, each with the run that wrote it.";
const BISECT: &str = "Finds the run that broke something: tries a command at versions between a good one and a bad one, each in a copy that is thrown away.";
const REPLAY: &str = "Runs every recorded run again in a copy that is thrown away, and compares exit code, output and files after each. Returns the first difference.";
const CHANGES: &str =
    "Shows what was changed in the sandbox since a version; by default in its mounted directories, or since the first run.";
const APPLY: &str = "Applies what was changed to a directory of this machine, all of it or nothing. Refuses files that were edited there meanwhile.";
const UNDO: &str =
    "Brings files, keys and sessions back to what they were before the last changing runs. Undoing an undo is a redo.";
const RESTORE: &str =
    "Brings everything, or some paths, back to what it was at a version. It is a run of its own, so it can be undone.";
const CHECKPOINT: &str = "Names the present version, to compare with it or to come back to it later.";
const CHECKPOINTS: &str = "Lists the checkpoints, newest first.";
const PRUNE: &str = "Drops old versions; those that are kept can be read as before.";

const BASH: &str = "Runs a bash command line in the sandbox, with some 160 programs (grep, sed, awk, jq, find, tar, …). Each call is a fresh \
shell: files stay, variables and `cd` do not, unless you name a `session`. Returns exit code, standard output and standard error; a non-zero exit code is an answer, \
not an error. A command that meets a limit is stopped and returns what it printed so far. There is no network.";
const PYTHON: &str = "Runs Python code (CPython 3.14, standard library) on the sandbox's files. Each call is a fresh interpreter, unless you name a `session`, which keeps its globals. Print what you want to see. \
There is no network; `subprocess` starts the sandbox's own programs.";
const READ: &str = "Reads a text file as numbered lines, at most 2000 lines or 64 KB a call; offset and limit choose a window. Bytes that are no text come \
as base64. Returns the version to give to write_file and edit_file.";
const WRITE: &str = "Writes a whole file, creating the directories above it. With expected_version it writes only if nobody changed the file meanwhile.";
const EDIT: &str = "Replaces exact pieces of text in a file, all or none. Each old text must be in the file exactly once, unless replace_all is set.";
const LIST: &str = "Lists a directory, down to a depth, at most 1000 entries.";
const GLOB: &str = "Finds files by a pattern such as `src/**/*.{py,toml}`, at most 1000.";
const GREP: &str = "Searches files for a regular expression: matching lines with context, files, or counts. At most 200 matches or 64 KB a call.";
const DELETE: &str = "Deletes a file or a link; a directory with all that is in it if recursive is set.";
const MOVE: &str = "Moves or renames a file or a directory; replaces a file only if overwrite is set.";
const MKDIR: &str = "Creates a directory and those above it.";
const INFO: &str = "Returns kind, size, permissions and time of a path.";
const APPEND: &str = "Adds to the end of a file, creating it and the directories above it.";
const WRITE_MANY: &str = "Writes many files, creating the directories above them. All of them are written or none.";
const COPY: &str = "Copies a file, or a directory with everything below it if recursive is set. An existing directory takes the copy inside. \
All of it is copied or nothing.";
const FIND: &str = "Lists everything below a directory, filtered by name and kind, with size, mode and time. At most 1000 entries or 64 KB a call.";
const USAGE: &str = "Counts the bytes, files and directories below a directory.";
const TREE: &str = "Draws the tree below a directory, at most 1000 entries or 64 KB a call.";
const KV_GET: &str = "Returns the JSON value of a key, or null; a value of more than 128 KB in parts, by offset.";
const KV_SET: &str = "Keeps a JSON value under a key, beside the files.";
const KV_DELETE: &str = "Removes a key, and says whether it was there.";
const KV_KEYS: &str =
    "Lists the keys that begin with a prefix, at most 1000 or 64 KB a call; after names the last one of the page before.";
const HISTORY: &str =
    "Lists what was done in the sandbox, newest first. With `run` it shows one call whole, its output from any offset.";

const EVENTS: &str =
    "Lists what each version changed, oldest first, from a version or from where a consumer stopped: path, kind, hash and run.";
const ACKNOWLEDGE: &str = "Stores the last version that a consumer of events has handled, so that it resumes after it.";
const COMPACT: &str = "Gives the space of what was deleted back to the disk, however long that takes.";

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
