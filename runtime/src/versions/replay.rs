//! Replays recorded runs in a fresh sandbox: the same exit code, output, files, keys and sessions, or the first difference.
//!
//! Unrecorded changes, such as files that the embedding program wrote, are applied without replay. A recording is untrusted: each
//! run has the limits of the replaying sandbox, and nothing leaves the copy.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use sqlite_fs::{FsError, Version};

use super::compare::{self, ValueDifference, Where};
use super::values::{differing_values, restore_values};
use super::{Versions, places_of, reference};
use crate::cancel::Deadline;
use crate::history::{self, HistoryFilter, LibraryCall as Call, Run};
use crate::run::{Output, Recording};
use crate::sandbox::Sandbox;
use crate::tools::Tool;
use crate::{Cancel, Error};

/// Number of runs listed at once, and maximum number.
const PAGE: usize = 500;
const MOST: usize = 100_000;

/// Maximum number of tool calls of one run.
const TOOL_CALLS: usize = 10_000;

/// Maximum size of output, and of a patch, shown in a difference.
const SHOWN: usize = 16 << 10;

/// The note if keys and sessions cannot be compared.
const UNKNOWN_VALUES: &str = "another program wrote to the file: keys and sessions before that are not compared";

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Replayed {
    /// The version that it started from.
    pub from: i64,
    /// The number of replayed runs, including the differing one.
    pub runs: usize,
    /// The number of versions in between that were not recorded and were applied without replay.
    pub given: usize,
    /// The first difference; nothing was run after it.
    pub difference: Option<ReplayDifference>,
    /// Notes.
    pub notes: Vec<String>,
}

/// The first difference between a replay and its recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReplayDifference {
    /// The run.
    pub run: i64,
    /// Its command.
    pub command: String,
    /// The differing part: `exit_code`, `stdout`, `stderr`, `files`, `values` (keys and sessions) or `tools`.
    pub what: &'static str,
    /// The recorded value.
    pub recorded: String,
    /// The replayed value.
    pub replayed: String,
}

impl Versions<'_> {
    /// Replays every recorded run in a temporary copy, and compares exit code, output, files, keys and sessions after each. Starts
    /// with the state before the first recorded run, or with a version.
    ///
    /// ```
    /// use sandlite_runtime::{Command, Sandbox};
    /// # let sandbox = Sandbox::builder().open()?;
    /// sandbox.run(Command::bash("echo $RANDOM > /number; date; cat /number").record())?;
    /// let replayed = sandbox.versions().replay(None)?;
    /// assert_eq!((replayed.runs, replayed.difference), (1, None));
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if nothing was recorded, the reference is invalid, or a recording is invalid.
    pub fn replay(&self, from: Option<&str>) -> Result<Replayed, Error> {
        self.replay_until(from, &Cancel::default())
    }

    /// Same as [`replay`](Self::replay), cancellable by a [`Cancel`].
    pub(crate) fn replay_until(&self, from: Option<&str>, cancel: &Cancel) -> Result<Replayed, Error> {
        let runs = self.recorded_runs()?;
        let reader = self.reader()?;
        let first = match (from, runs.first()) {
            (_, None) => return Err(Error::Invalid("cannot replay: there are no recorded runs".to_owned())),
            (Some(reference), _) => self.resolve(reference)?,
            (None, Some(run)) => reference::before_run(&reader, *run)?,
        };
        let copy = self.sandbox.fork_at(&format!("v{}", first.number))?;
        let found = Replayed { from: first.number, runs: 0, given: 0, difference: None, notes: Vec::new() };
        let mut replay = Replay { versions: *self, copy, state: first.number, found };
        for run in runs {
            // The initial state of the replay may be in the middle.
            let is_before = match first.call {
                Some(call) => run <= call,
                None => history::get(&self.sandbox.database, &self.sandbox.scope.binding, run)?
                    .is_some_and(|row| row.started < first.time),
            };
            if is_before {
                continue;
            }
            if cancel.is_killed() {
                return Err(Error::Invalid("the replay was stopped".to_owned()));
            }
            replay.step(run, cancel)?;
            if replay.found.difference.is_some() {
                break;
            }
        }
        Ok(replay.found)
    }

    // The numbers of recorded runs, oldest first.
    fn recorded_runs(&self) -> Result<Vec<i64>, Error> {
        let (mut found, mut filter) = (Vec::new(), HistoryFilter { limit: PAGE, ..HistoryFilter::default() });
        loop {
            let page = self.sandbox.history_with(&filter)?;
            let Some(last) = page.last() else { break };
            filter.before = Some(last.id);
            let is_recorded = |run: &&Run| run.parameters.as_ref().is_some_and(|given| given.get(crate::run::RECORD).is_some());
            found.extend(page.iter().filter(is_recorded).map(|run| run.id));
            if found.len() > MOST {
                return Err(Error::Invalid(format!("cannot replay more than {MOST} runs: name a version to start from")));
            }
        }
        found.reverse();
        Ok(found)
    }
}

struct Replay<'a> {
    versions: Versions<'a>,
    copy: Sandbox,
    /// The version that the copy equals.
    state: i64,
    found: Replayed,
}

impl Replay<'_> {
    fn step(&mut self, id: i64, cancel: &Cancel) -> Result<(), Error> {
        let original = self.versions.sandbox;
        let Some(run) = history::get(&original.database, &original.scope.binding, id)? else { return Ok(()) };
        let Some(recording) = Recording::read(id, run.parameters.as_ref())? else { return Ok(()) };
        if run.exit_code.is_none() {
            let reason = if run.status == "interrupted" { "was interrupted" } else { "did not start" };
            self.found.notes.push(format!("run {id} {reason} and is not replayed"));
            return Ok(());
        }
        let made = self.versions.reader()?.version_of(id)?;
        let after = match &made {
            Some(version) => version.clone(),
            None => reference::before_run(&self.versions.reader()?, id)?,
        };
        let before = if made.is_some() { after.number - 1 } else { after.number };
        self.take_over(before)?;
        self.found.runs += 1;
        let started = newest(&self.copy)?;
        let (output, tools) = self.run_again(&run, &recording, cancel)?;
        self.found.difference = self.compare(&run, &output, &tools, (before, &after), started)?;
        self.state = after.number;
        Ok(())
    }

    // Makes the copy equal to a version that no recorded run created.
    fn take_over(&mut self, version: i64) -> Result<(), Error> {
        if version <= self.state {
            return Ok(());
        }
        let original = self.versions.sandbox;
        let then = original.recorder.at(&original.scope, version)?;
        let place = joined(places_of(then.reader(), self.state, Some(version))?, Where::At(Vec::new()));
        let deadline = Deadline::after(original.limits.wall.0, Cancel::default());
        let call = Call::new("replay", &format!("v{version}"), json!({ "version": version }));
        self.copy.change(call, |run| {
            compare::make_equal(run.view()?, &then, &[], &place, &deadline)?;
            restore_values(run.transaction()?, &self.copy.database.reader()?, &original.database.reader_at(version)?)
        })?;
        self.found.given += usize::try_from(version - self.state).unwrap_or(0);
        self.state = version;
        Ok(())
    }

    fn run_again(&mut self, run: &Run, recording: &Recording, cancel: &Cancel) -> Result<(Output, Arc<Answers>), Error> {
        let answers = Arc::new(Answers::of(self.versions.sandbox, run)?);
        let tools = recording.tools.iter().map(|tool| {
            let (name, answers) = (tool.name.clone(), Arc::clone(&answers));
            Tool::new(&tool.name, &tool.description, &tool.schema, move |arguments| answers.next(&name, &arguments))
        });
        let mut sandbox = self.copy.with_tools(tools.collect())?;
        sandbox.env = Arc::new(recording.env.clone());
        sandbox.cwd = recording.cwd.clone();
        match recording.limits_within(&self.copy.limits) {
            Some(limits) => sandbox.limits = limits,
            None => {
                let note = "recorded with less restrictive limits than those of this replay: use the preset of the recording";
                if !self.found.notes.iter().any(|known| known == note) {
                    self.found.notes.push(note.to_owned());
                }
            }
        }
        let command = recording.command()?.cancelled_by(cancel.clone());
        let output = match &recording.session {
            Some(name) => sandbox.session(name)?.run(command)?,
            None => sandbox.run(command)?,
        };
        Ok((output, answers))
    }

    fn compare(
        &mut self,
        run: &Run,
        output: &Output,
        answers: &Answers,
        (before, after): (i64, &Version),
        started: i64,
    ) -> Result<Option<ReplayDifference>, Error> {
        let difference = |what: &'static str, recorded: String, replayed: String| ReplayDifference {
            run: run.id,
            command: run.command.clone(),
            what,
            recorded: crate::actions::shortened(recorded, SHOWN),
            replayed: crate::actions::shortened(replayed, SHOWN),
        };
        if let Some(complaint) = answers.complaint() {
            return Ok(Some(difference("tools", String::new(), complaint)));
        }
        let code = i32::from(output.status.code());
        if run.exit_code != Some(code) {
            let recorded = run.exit_code.map_or_else(String::new, |code| code.to_string());
            return Ok(Some(difference("exit_code", recorded, code.to_string())));
        }
        if run.output_pruned {
            self.found.notes.push(format!("the output of run {} was pruned and is not compared", run.id));
        } else {
            for (what, recorded, replayed) in [("stdout", &run.stdout, &output.stdout), ("stderr", &run.stderr, &output.stderr)] {
                let is_same = if run.output_truncated { replayed.starts_with(recorded) } else { replayed == recorded };
                if !is_same {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    return Ok(Some(difference(what, text(recorded), text(replayed))));
                }
            }
        }
        let original = self.versions.sandbox;
        let (from, to) = (self.versions.view(after)?, self.copy.now()?);
        let place = joined(
            places_of(from.reader(), before, Some(after.number))?,
            places_of(to.reader(), started, Some(newest(&self.copy)?))?,
        );
        let deadline = Deadline::after(original.limits.wall.0, Cancel::default());
        let compared = compare::compare(from, to, &[], &place, &deadline)?;
        if compared.differences.is_empty() {
            let values = self.differing_values((before, after.number), started)?;
            let names: Vec<String> = values.iter().map(ValueDifference::to_string).collect();
            return Ok((!names.is_empty()).then(|| difference("values", names.join("\n"), "other values".to_owned())));
        }
        let names = compared.differences.iter().take(20).map(|one| format!("{} {}", one.kind.mark(), one.path));
        Ok(Some(difference("files", names.collect::<Vec<_>>().join("\n"), compared.patch())))
    }
}

impl Replay<'_> {
    // The keys and sessions that the recorded or the replayed run changed, and that differ afterwards. A view of a part cannot read
    // those of others.
    fn differing_values(&mut self, (before, after): (i64, i64), started: i64) -> Result<Vec<ValueDifference>, Error> {
        let original = self.versions.sandbox;
        if original.scope.binding.is_partial() {
            return Ok(Vec::new());
        }
        let (recorded, replayed) = (original.database.reader_at(before)?, self.copy.database.reader_at(started)?);
        let values = match (recorded.changed_values(Some(after))?, replayed.changed_values(None)?) {
            (Some(mut changed), Some(more)) => {
                changed.keys.extend(more.keys);
                changed.sessions.extend(more.sessions);
                differing_values(changed, &original.database.reader_at(after)?, &self.copy.database.reader()?)
            }
            _ => Err(sqlite_fs::Error::from(FsError::Unknown).into()),
        };
        match values {
            Err(error) if error.fs_error() == Some(FsError::Unknown) => {
                if !self.found.notes.iter().any(|note| note == UNKNOWN_VALUES) {
                    self.found.notes.push(UNKNOWN_VALUES.to_owned());
                }
                Ok(Vec::new())
            }
            values => values,
        }
    }
}

fn newest(sandbox: &Sandbox) -> Result<i64, Error> {
    Ok(sandbox.database.reader()?.versions(None, 1)?.pop().map_or(0, |version| version.number))
}

fn joined(one: Where, other: Where) -> Where {
    match (one, other) {
        (Where::At(one), Where::At(other)) => {
            let mut places: BTreeMap<String, bool> = one.into_iter().collect();
            for (path, with_what_is_below) in other {
                *places.entry(path).or_insert(false) |= with_what_is_below;
            }
            Where::At(places.into_iter().collect())
        }
        _ => Where::Apart,
    }
}

/// The recorded results of a run's host tools, in order.
struct Answers {
    left: Mutex<VecDeque<Answered>>,
    complaint: Mutex<Option<String>>,
}

struct Answered {
    tool: String,
    arguments: Value,
    result: Result<Value, String>,
}

impl Answers {
    fn of(sandbox: &Sandbox, run: &Run) -> Result<Self, Error> {
        let name = Some("tool".to_owned());
        // Their numbers directly follow that of the run. Their times are those of the run's own clock.
        let before = run.id.checked_add(TOOL_CALLS as i64);
        let filter = HistoryFilter { limit: TOOL_CALLS, before, name, ..HistoryFilter::default() };
        let mut calls = history::list(&sandbox.database, &sandbox.scope.binding, &filter)?;
        calls.retain(|call| call.parent == Some(run.id));
        calls.reverse();
        let left = calls.into_iter().filter_map(|call| {
            let parameters = call.parameters?;
            let result = match call.error {
                // The kind of failure comes first; failures of invalid arguments recur by themselves.
                Some(error) => Err(error.strip_prefix("failed: ")?.to_owned()),
                None => Ok(call.result.unwrap_or_default()),
            };
            let tool = parameters.get("tool")?.as_str()?.to_owned();
            Some(Answered { tool, arguments: parameters.get("arguments")?.clone(), result })
        });
        Ok(Self { left: Mutex::new(left.collect()), complaint: Mutex::default() })
    }

    fn next(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let at = left.iter().position(|answer| answer.tool == tool && answer.arguments == *arguments);
        if let Some(answer) = at.and_then(|at| left.remove(at)) {
            return answer.result;
        }
        let complaint = format!("the recording has no call of `{tool}` with {arguments}");
        *self.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some(complaint.clone());
        Err(complaint)
    }

    fn complaint(&self) -> Option<String> {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
