//! Host tools: functions of the embedding program that programs in the sandbox may call by name, with JSON in and out.
//!
//! Knows nothing about processes or guest calls; `wasi/tools.rs` handles those.

mod schema;
mod words;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::limits::{Pause, Pauses};
use crate::{Error, RunningFiles};
use schema::Schema;
use words::Asked;

pub use schema::JsonSchema;

/// Maximum length of a tool's name.
const MAX_NAME_BYTES: usize = 64;

/// Maximum length of a tool's error that is passed to a guest.
const MAX_COMPLAINT_BYTES: usize = 4 << 10;

type Action = dyn Fn(Value, &ToolContext) -> Result<Value, String> + Send + Sync;

/// The call that a tool's function works for.
#[derive(Clone, Default)]
pub struct ToolContext {
    over: Arc<AtomicBool>,
    run: i64,
    files: RunningFiles,
    pauses: Arc<Pauses>,
    on_change: Option<Arc<OnChange>>,
}

type OnChange = dyn Fn() + Send + Sync;

/// Pauses the command's clock while it lives; see [`ToolContext::pause`].
pub struct ToolPause {
    pause: Option<Pause>,
    on_change: Option<Arc<OnChange>>,
}

impl Drop for ToolPause {
    fn drop(&mut self) {
        drop(self.pause.take());
        if let Some(on_change) = &self.on_change {
            on_change();
        }
    }
}

impl ToolContext {
    /// Returns the command's row in the history.
    #[must_use]
    pub fn run(&self) -> i64 {
        self.run
    }

    /// Returns the command's files, including its changes so far: a tool can read them, and must not wait for the sandbox's own.
    #[must_use]
    pub fn files(&self) -> &RunningFiles {
        &self.files
    }

    /// Returns whether the calling command has ended: the result is no longer needed, and nothing should be started for it. A
    /// function that waits, such as for a person's approval, should check again before it acts.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Pauses the command's clock until the result is dropped, for a function that waits for a person. After `longest` the
    /// command ends as if it had timed out. Other processes of the command continue meanwhile, within their compute limit.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use sandlite_runtime::Tool;
    /// let deploy = Tool::with_context("deploy", "Deploys it.", "{}", |_, context| {
    ///     let pause = context.pause(Duration::from_secs(600));
    ///     let is_approved = true; // ask a person here
    ///     drop(pause);
    ///     if is_approved && !context.is_over() { Ok("deployed".into()) } else { Err("not approved".to_owned()) }
    /// });
    /// ```
    #[must_use]
    pub fn pause(&self, longest: Duration) -> ToolPause {
        let pause = ToolPause { pause: Some(self.pauses.begin(longest)), on_change: self.on_change.clone() };
        if let Some(on_change) = &self.on_change {
            on_change();
        }
        pause
    }

    /// Creates a call of a command with this row in the history; `on_change` is called when its clock is paused and resumed.
    pub(crate) fn new(run: i64, files: RunningFiles, pauses: &Arc<Pauses>, on_change: impl Fn() + Send + Sync + 'static) -> Self {
        let over = Arc::default();
        let files = files.until(&over);
        Self { over, run, files, pauses: Arc::clone(pauses), on_change: Some(Arc::new(on_change)) }
    }

    /// Ends the call when the result is dropped.
    pub(crate) fn ends(&self) -> impl Drop + use<> {
        struct Ends(ToolContext);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.over.store(true, Ordering::Release);
            }
        }
        Ends(self.clone())
    }
}

/// A function that programs in a sandbox may call.
///
/// From Python it is `from sandlite import tools; tools.add(a=1, b=2)`, from bash `add --a 1 --b 2` or `tool add '{"a": 1, "b":
/// 2}'`; `add --help` prints its options. A program of the sandbox with the same name takes precedence. Arguments are checked
/// against the schema before the function is called; each call is recorded in the history.
///
/// The function runs on its own thread, and its time counts as the command's: at the deadline the command ends and the function's
/// result is discarded. An error is passed to the guest verbatim; of a panic the guest learns only that it occurred. The
/// command's transaction is open meanwhile, so a tool must not write to the sandbox that calls it.
///
/// ```no_run
/// use sandlite_runtime::{Sandbox, Tool};
///
/// let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}"#;
/// let add = Tool::new("add", "Adds two numbers.", schema, |args| {
///     Ok((args["a"].as_i64().unwrap_or(0) + args["b"].as_i64().unwrap_or(0)).into())
/// });
/// let sandbox = Sandbox::builder().tool(add).open()?;
/// assert_eq!(sandbox.python("from sandlite import tools; print(tools.add(1, 2))")?.stdout, b"3\n");
/// assert_eq!(sandbox.bash(r#"tool add '{"a": 1, "b": 2}'"#)?.stdout, b"3\n");
/// # Ok::<(), sandlite_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct Tool {
    name: String,
    description: String,
    schema: String,
    action: Arc<Action>,
}

impl Tool {
    /// Creates a tool. `schema` is the JSON schema of its arguments, an object: as text, or as a [`serde_json::Value`]. Text
    /// keeps the order of the properties, which is the order of positional arguments in Python. The asserting keywords of draft
    /// 2020-12 are checked; a schema with an unsupported keyword is rejected when the sandbox is opened.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: impl ToString,
        action: impl Fn(Value) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self::with_context(name, description, schema, move |arguments, _| action(arguments))
    }

    /// Same as [`new`](Self::new), with a function that also receives its call.
    pub fn with_context(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: impl ToString,
        action: impl Fn(Value, &ToolContext) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), description: description.into(), schema: schema.to_string(), action: Arc::new(action) }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the JSON schema of its arguments, as text.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext").field("over", &self.is_over()).finish_non_exhaustive()
    }
}

impl fmt::Debug for ToolPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolPause")
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The reason a tool call has no result, for the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One of `unknown`, `invalid`, `failed`.
    pub(crate) kind: &'static str,
    /// The message.
    pub(crate) message: String,
}

impl Failure {
    fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The tools of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    tools: Vec<(Tool, Schema)>,
}

impl Tools {
    /// Checks names and schemas.
    pub(crate) fn new(tools: Vec<Tool>) -> Result<Self, Error> {
        let mut checked: Vec<(Tool, Schema)> = Vec::with_capacity(tools.len());
        for tool in tools {
            if !is_name(&tool.name) {
                let name = &tool.name;
                return Err(Error::Invalid(format!(
                    "invalid tool name `{name}`: expected 1 to {MAX_NAME_BYTES} letters, digits, `_`, `-` or `.`"
                )));
            }
            if checked.iter().any(|(known, _)| known.name == tool.name) {
                return Err(Error::Invalid(format!("duplicate tool `{}`", tool.name)));
            }
            let schema = schema::parse(&tool.schema)
                .map_err(|reason| Error::Invalid(format!("invalid schema of tool `{}`: {reason}", tool.name)))?;
            checked.push((tool, schema));
        }
        Ok(Self { tools: checked })
    }

    /// Returns all of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().map(|(tool, _)| tool)
    }

    /// Returns their names.
    pub(crate) fn names(&self) -> Arc<[String]> {
        self.iter().map(|tool| tool.name.clone()).collect()
    }

    /// Converts the words of a command line, passed by a guest as a JSON list, to a tool request; `None` if they are not such a
    /// list.
    pub(crate) fn in_words(&self, name: &str, arguments: &str) -> Option<Result<InWords, Failure>> {
        let words: Vec<String> = serde_json::from_str(arguments).ok()?;
        let (tool, _) = self.tools.iter().find(|(tool, _)| tool.name == name)?;
        let schema = serde_json::from_str(&tool.schema).unwrap_or(Value::Null);
        let asked = words::read(name, &tool.description, &schema, &words);
        Some(match asked {
            Ok(Asked::Call(arguments)) => Ok(InWords::Call(arguments.to_string())),
            Ok(Asked::Help(text)) => Ok(InWords::Help(text)),
            Err(complaint) => Err(Failure::new("invalid", complaint)),
        })
    }

    /// Returns those that are shown: name, description and schema of each as a JSON list, or a line for each with its name, a tab
    /// and its description.
    pub(crate) fn list(&self, as_json: bool, is_shown: impl Fn(&str) -> bool) -> String {
        let shown = self.iter().filter(|tool| is_shown(&tool.name));
        match as_json {
            true => format!("[{}]", shown.map(tool_json).collect::<Vec<_>>().join(",")),
            false => shown.map(tool_line).collect(),
        }
    }

    /// Returns the failure of a call of a tool that does not exist, or does not exist for the caller.
    pub(crate) fn unknown(&self, name: &str) -> Failure {
        let reason = if self.tools.is_empty() { "the host offers none" } else { "the host offers others" };
        Failure::new("unknown", format!("unknown tool `{name}`: {reason}"))
    }

    /// Prepares a guest's call, checking its arguments.
    pub(crate) fn prepare(&self, name: &str, arguments: &str) -> Result<Prepared, Failure> {
        let Some((tool, schema)) = self.tools.iter().find(|(tool, _)| tool.name == name) else {
            return Err(self.unknown(name));
        };
        let arguments: Value = serde_json::from_str(arguments)
            .map_err(|error| Failure::new("invalid", format!("the arguments are not JSON: {error}")))?;
        if !arguments.is_object() {
            return Err(Failure::new("invalid", "the arguments are not a JSON object"));
        }
        schema::check(schema, &arguments).map_err(|complaint| Failure::new("invalid", complaint))?;
        Ok(Prepared { action: Arc::clone(&tool.action), arguments })
    }
}

/// The request in the words of a command line.
pub(crate) enum InWords {
    /// A call with these arguments, in JSON.
    Call(String),
    /// A request for help.
    Help(String),
}

/// A call that has passed the checks.
pub(crate) struct Prepared {
    action: Arc<Action>,
    arguments: Value,
}

impl Prepared {
    /// Calls the function; returns the result as JSON text of at most `largest` bytes.
    pub(crate) fn run(self, largest: u64, context: &ToolContext) -> Result<String, Failure> {
        let Self { action, arguments } = self;
        if context.is_over() {
            return Err(Failure::new("failed", "the command has ended"));
        }
        let result = match catch_unwind(AssertUnwindSafe(|| action(arguments, context))) {
            Ok(Ok(value)) => value.to_string(),
            Ok(Err(complaint)) => return Err(Failure::new("failed", prefix(&complaint, MAX_COMPLAINT_BYTES))),
            Err(_) => return Err(Failure::new("failed", "the tool panicked")),
        };
        match result.len() as u64 {
            length if length > largest => {
                Err(Failure::new("failed", format!("its result has {length} bytes; the preset allows {largest}")))
            }
            _ => Ok(result),
        }
    }
}

/// Returns at most this many bytes of a text, in whole characters.
pub(crate) fn prefix(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && !name.starts_with('-')
}

// The schema is passed verbatim, because the order of its properties matters.
fn tool_json(tool: &Tool) -> String {
    let (name, description) = (Value::from(tool.name.as_str()), Value::from(tool.description.as_str()));
    format!("{{\"name\":{name},\"description\":{description},\"schema\":{}}}", tool.schema)
}

fn tool_line(tool: &Tool) -> String {
    format!("{}\t{}\n", tool.name, tool.description.lines().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}, "required": ["b"]}"#;

    fn tools(action: impl Fn(Value) -> Result<Value, String> + Send + Sync + 'static) -> Tools {
        Tools::new(vec![Tool::new("t", "Does it.\nWell.", SCHEMA, action)]).unwrap()
    }

    #[test]
    fn names_are_checked_and_single() {
        let named = |name: &str| Tool::new(name, "", "{}", Ok);
        for name in ["", "a b", "-x", "a/b", "é", &"x".repeat(65)] {
            assert!(Tools::new(vec![named(name)]).is_err(), "{name:?}");
        }
        let twice = Tools::new(vec![named("a"), named("a")]).unwrap_err();
        assert_eq!(twice.to_string(), "duplicate tool `a`");
    }

    #[test]
    fn the_list_keeps_the_schema_as_written() {
        let tools = tools(Ok);
        let expected = format!(r#"[{{"name":"t","description":"Does it.\nWell.","schema":{SCHEMA}}}]"#);
        let listed = |is_shown: bool| [true, false].map(|as_json| tools.list(as_json, |_| is_shown));
        assert_eq!(listed(true), [expected.as_str(), "t\tDoes it.\n"]);
        assert_eq!(listed(false), ["[]", ""]);
    }

    #[test]
    fn unknown_tools_and_invalid_arguments_are_not_called() {
        let kind = |name: &str, arguments: &str| tools(Ok).prepare(name, arguments).err().map(|failure| failure.kind);
        assert_eq!(kind("t", r#"{"b": 1}"#), None);
        assert_eq!(kind("u", "{}"), Some("unknown"));
        for arguments in ["", "1", "[1]", "{}", r#"{"b": "1"}"#, "{\"b\": 1"] {
            assert_eq!(kind("t", arguments), Some("invalid"), "{arguments}");
        }
    }

    #[test]
    fn a_panic_is_a_failure_without_details() {
        let broken = tools(|_| panic!("/home/secret"));
        let failure = broken.prepare("t", r#"{"b": 1}"#).ok().unwrap().run(100, &ToolContext::default()).unwrap_err();
        assert_eq!(failure.message, "the tool panicked");
    }

    #[test]
    fn a_result_is_bounded() {
        let large = tools(|_| Ok("x".repeat(98).into()));
        assert!(large.prepare("t", r#"{"b": 1}"#).ok().unwrap().run(100, &ToolContext::default()).is_ok());
        assert!(large.prepare("t", r#"{"b": 1}"#).ok().unwrap().run(99, &ToolContext::default()).is_err());
    }

    #[test]
    fn a_call_does_not_start_after_its_command_has_ended() {
        let context = ToolContext::default();
        let prepared = tools(|_| panic!("it was begun")).prepare("t", r#"{"b": 1}"#).unwrap();
        assert!(!context.is_over());
        drop(context.ends());
        assert!(context.is_over());
        assert_eq!(prepared.run(100, &context).unwrap_err().message, "the command has ended");
    }
}
