//! The tools: names, words, schemas, and which part of a sandbox answers.

mod data;
mod run;
mod snapshots;

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use runtime::{Sandbox, agent};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer::Answer;
use super::sandboxes::Named;
use super::{Service, schema};

/// What a tool does to the sandbox, as a hint to clients that ask their user first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Looks only.
    Reads,
    /// Adds; nothing is lost.
    Adds,
    /// May overwrite or remove.
    Changes,
}

/// Every tool.
pub(super) fn all() -> Vec<Tool> {
    use Effect::{Adds, Changes, Reads};
    vec![
        tool::<run::Bash, run::Ran>("bash", "Run bash", BASH, Changes),
        tool::<run::Python, run::Ran>("python", "Run Python", PYTHON, Changes),
        tool::<agent::ReadFile, agent::ReadWindow>("read_file", "Read a file", READ, Reads),
        tool::<agent::WriteFile, agent::Written>("write_file", "Write a file", WRITE, Changes),
        tool::<agent::EditFile, agent::Edited>("edit_file", "Edit a file", EDIT, Changes),
        tool::<agent::ListFiles, agent::Listed>("list_files", "List files", LIST, Reads),
        tool::<agent::Glob, agent::Found>("glob", "Find files by name", GLOB, Reads),
        tool::<agent::Grep, agent::Grepped>("grep", "Search in files", GREP, Reads),
        tool::<agent::DeleteFile, agent::Deleted>("delete_file", "Delete a file", DELETE, Changes),
        tool::<agent::MoveFile, agent::Moved>("move_file", "Move a file", MOVE, Changes),
        tool::<data::KvGet, data::KvValue>(
            "kv_get",
            "Get a value",
            "Returns the JSON value of a key, or null; a value of more than 128 KB in parts, by offset.",
            Reads,
        ),
        tool::<data::KvSet, data::KvDone>("kv_set", "Set a value", "Keeps a JSON value under a key, beside the files.", Changes),
        tool::<data::KvDelete, data::KvDeleted>(
            "kv_delete",
            "Delete a value",
            "Removes a key, and says whether it was there.",
            Changes,
        ),
        tool::<data::KvKeys, data::KvNames>(
            "kv_keys",
            "List keys",
            "Lists the keys that begin with a prefix, at most 1000 or 64 KB a call; after names the last one of the page before.",
            Reads,
        ),
        tool::<data::History, data::Rows>("history", "What was done", HISTORY, Reads),
        tool::<snapshots::Export, snapshots::Exported>("export_snapshot", "Save everything", EXPORT, Adds),
        tool::<snapshots::Import, snapshots::Opened>("import_snapshot", "Open a snapshot", IMPORT, Adds),
        tool::<snapshots::Fork, snapshots::Opened>("fork", "Fork the sandbox", FORK, Adds),
    ]
}

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
const HISTORY: &str =
    "Lists what was done in the sandbox, newest first. With `run` it shows one call whole, its output from any offset.";
const EXPORT: &str =
    "Saves everything (files, values, history) as a snapshot under a name; with `inline` it also returns the bytes.";
const IMPORT: &str = "Opens a snapshot as another sandbox and returns its name, to be given as `sandbox` to the other tools. The current one stays.";
const FORK: &str = "Makes a copy of the sandbox that goes its own way, and returns its name, to be given as `sandbox` to the other tools. \
Forks are gone when the server ends: export_snapshot keeps one.";

fn tool<I: JsonSchema, O: JsonSchema>(name: &'static str, title: &str, description: &'static str, effect: Effect) -> Tool {
    let annotations = ToolAnnotations::with_title(title)
        .read_only(effect == Effect::Reads)
        .destructive(effect == Effect::Changes)
        .idempotent(effect == Effect::Reads || matches!(name, "write_file" | "kv_set" | "kv_delete"))
        .open_world(false);
    let mut tool = Tool::new(name, description, schema::input::<I>());
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(schema::output::<O>());
    tool.annotations = Some(annotations);
    tool
}

/// Calls a tool that exists.
pub(super) async fn call(
    service: &Service,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> CallToolResult {
    let mut arguments = request.arguments.unwrap_or_default();
    let answer = match chosen(service, &mut arguments) {
        Ok(named) => dispatch(service, &request.name, named, arguments, context).await,
        Err(answer) => answer,
    };
    answer.into()
}

fn chosen(service: &Service, arguments: &mut JsonObject) -> Result<Arc<Named>, Answer> {
    match arguments.remove("sandbox") {
        None | Some(Value::Null) => service.sandboxes().get(None),
        Some(Value::String(name)) => service.sandboxes().get(Some(&name)),
        Some(_) => Err(Answer::error("error: `sandbox` is not a name")),
    }
}

async fn dispatch(
    service: &Service,
    tool: &str,
    named: Arc<Named>,
    arguments: JsonObject,
    context: RequestContext<RoleServer>,
) -> Answer {
    match tool {
        "bash" => run::bash(service, named, arguments, context).await,
        "python" => run::python(service, named, arguments, context).await,
        "read_file" => file(service, named, arguments, |tools, request| tools.read(request).map(|a| (a.render(), a))).await,
        "write_file" => file(service, named, arguments, |tools, request| tools.write(request).map(|a| (a.render(), a))).await,
        "edit_file" => file(service, named, arguments, |tools, request| tools.edit(request).map(|a| (a.render(), a))).await,
        "list_files" => file(service, named, arguments, |tools, request| tools.list(request).map(|a| (a.render(), a))).await,
        "glob" => file(service, named, arguments, |tools, request| tools.glob(request).map(|a| (a.render(), a))).await,
        "grep" => file(service, named, arguments, |tools, request| tools.grep(request).map(|a| (a.render(), a))).await,
        "delete_file" => file(service, named, arguments, |tools, request| tools.delete(request).map(|a| (a.render(), a))).await,
        "move_file" => file(service, named, arguments, |tools, request| tools.rename(request).map(|a| (a.render(), a))).await,
        "kv_get" => quick(service, named, arguments, data::kv_get).await,
        "kv_set" => in_turn(service, named, arguments, data::kv_set).await,
        "kv_delete" => in_turn(service, named, arguments, data::kv_delete).await,
        "kv_keys" => quick(service, named, arguments, data::kv_keys).await,
        "history" => quick(service, named, arguments, data::history).await,
        "export_snapshot" => snapshots::export(service, named, arguments).await,
        "import_snapshot" => snapshots::import(service, arguments).await,
        "fork" => snapshots::fork(service, named, arguments).await,
        _ => Answer::error(format!("error: there is no tool `{tool}`")),
    }
}

/// The arguments of a tool; what is wrong with them is for the model to read.
fn parse<I: DeserializeOwned>(arguments: JsonObject) -> Result<I, Answer> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Answer::error(format!("error: the arguments do not fit: {error}")))
}

async fn file<I, O>(
    service: &Service,
    named: Arc<Named>,
    arguments: JsonObject,
    work: impl FnOnce(agent::Agent<'_>, &I) -> Result<(String, O), runtime::Error> + Send + 'static,
) -> Answer
where
    I: DeserializeOwned + Send + 'static,
    O: serde::Serialize,
{
    in_turn(service, named, arguments, move |sandbox, request: I| {
        let (text, data) = work(sandbox.agent(), &request)?;
        Ok(Answer::new(text, &data))
    })
    .await
}

/// Runs work that waits for its turn on the sandbox.
async fn in_turn<I: DeserializeOwned + Send + 'static>(
    service: &Service,
    named: Arc<Named>,
    arguments: JsonObject,
    work: impl FnOnce(&Sandbox, I) -> Result<Answer, Answer> + Send + 'static,
) -> Answer {
    let waiting = Arc::clone(&named);
    let _turn = waiting.turn.lock().await;
    quick(service, named, arguments, work).await
}

/// Runs work that only reads what is committed, whatever runs meanwhile.
async fn quick<I: DeserializeOwned + Send + 'static>(
    service: &Service,
    named: Arc<Named>,
    arguments: JsonObject,
    work: impl FnOnce(&Sandbox, I) -> Result<Answer, Answer> + Send + 'static,
) -> Answer {
    let request = match parse(arguments) {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    on_a_thread(service, move || work(&named.sandbox, request)).await
}

async fn on_a_thread(service: &Service, work: impl FnOnce() -> Result<Answer, Answer> + Send + 'static) -> Answer {
    let _place = service.running().place().await;
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Answer::error("error: the call broke off; nothing was changed"))).unwrap_or_else(|answer| answer)
}
