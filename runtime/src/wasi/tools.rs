//! Calls of host tools: decoded, counted, recorded, and awaited within the command's time.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use abi::Errno;
use serde_json::Value;

use super::call::Call;
use crate::RunningFiles;
use crate::history;
use crate::process::wait::{Waiters, block};
use crate::process::{Fault, MemoryCharge};
use crate::tools::{Failure, InWords, Prepared, ToolContext};

/// Maximum size of arguments.
const MAX_ARGUMENTS_BYTES: u32 = 4 << 20;

/// Maximum length of a name.
const MAX_NAME_BYTES: u32 = 256;

/// `tools`: prepares the list of tools, to be fetched with `answer`.
pub(super) fn list(call: &mut Call<'_>, as_json: u32, out: u32) -> Result<(), Fault> {
    call.memory.bytes(out, 4)?;
    let list = listed(call, as_json != 0);
    keep(call, list, out)
}

/// `tool`: calls a tool; its result is fetched with `answer`.
pub(super) fn tool(call: &mut Call<'_>, name: (u32, u32), arguments: (u32, u32), out: u32) -> Result<(), Fault> {
    call.memory.bytes(out, 4)?;
    let name = call.memory.copy(name.0, name.1, MAX_NAME_BYTES)?;
    let arguments = call.memory.copy(arguments.0, arguments.1, MAX_ARGUMENTS_BYTES)?;
    let answer = match in_words(call, &name, &arguments) {
        None => perform(call, &name, &arguments)?,
        Some(Ok(InWords::Help(text))) => [&[0], text.trim_end().as_bytes()].concat(),
        Some(Ok(InWords::Call(arguments))) => plain(perform(call, &name, arguments.as_bytes())?),
        Some(Err(failure)) => failed(&failure),
    };
    keep(call, answer, out)
}

/// `answer`: returns the result of `tools` or `tool`, and discards it.
pub(super) fn answer(call: &mut Call<'_>, buffer: u32, length: u32) -> Result<(), Fault> {
    super::door::take(call, buffer, length)
}

fn keep(call: &mut Call<'_>, answer: Vec<u8>, out: u32) -> Result<(), Fault> {
    call.memory.write_u32(out, u32::try_from(answer.len()).map_err(|_| Errno::OVERFLOW)?)?;
    call.state.answer = answer;
    Ok(())
}

/// Returns the list of tools, for a program or for a person.
pub(super) fn listed(call: &mut Call<'_>, as_json: bool) -> Vec<u8> {
    let job = &call.state.job;
    let list = job.tools.list(as_json, |name| !job.view.denies(name)).into_bytes();
    call.charge_bytes(list.len());
    list
}

/// Calls a tool. The result is a 0 and the JSON result, or a 1, the kind of failure, a line feed and the message.
pub(super) fn perform(call: &mut Call<'_>, name: &[u8], arguments: &[u8]) -> Result<Vec<u8>, Fault> {
    call.charge_bytes(arguments.len());
    call.state.job.meter.count_commands(1)?;
    let (name, arguments) = (std::str::from_utf8(name), std::str::from_utf8(arguments));
    let (name, arguments) = (name.map_err(|_| Errno::ILSEQ)?, arguments.map_err(|_| Errno::ILSEQ)?);
    let is_recorded = call.state.job.is_recorded;
    let transaction = call.state.job.view.transaction();
    let id = history::begin_tool(transaction, (call.state.job.run, is_recorded), name, arguments).map_err(|_| Errno::IO)?;
    let job = &call.state.job;
    // T-POL-06: however it is called.
    let prepared = if job.view.denies(name) { Err(job.tools.unknown(name)) } else { job.tools.prepare(name, arguments) };
    let result = match prepared {
        Ok(prepared) => run(call, prepared)?,
        Err(failure) => Err(failure),
    };
    history::finish_tool(call.state.job.view.transaction(), (id, is_recorded), &result).map_err(|_| Errno::IO)?;
    let answer = match result {
        Ok(result) => [&[0], result.as_bytes()].concat(),
        Err(failure) => failed(&failure),
    };
    call.charge_bytes(answer.len());
    Ok(answer)
}

fn failed(Failure { kind, message }: &Failure) -> Vec<u8> {
    [&[1], kind.as_bytes(), b"\n", message.as_bytes()].concat()
}

// The request in the words of a command line, if that was passed.
fn in_words(call: &Call<'_>, name: &[u8], arguments: &[u8]) -> Option<Result<InWords, Failure>> {
    let (name, arguments) = (std::str::from_utf8(name).ok()?, std::str::from_utf8(arguments).ok()?);
    let job = &call.state.job;
    if job.view.denies(name) { None } else { job.tools.in_words(name, arguments) }
}

// A result that is a single string, without its quotes: programs in a pipeline read text, not JSON.
fn plain(answer: Vec<u8>) -> Vec<u8> {
    match answer.split_first() {
        Some((0, result)) => match serde_json::from_slice(result) {
            Ok(Value::String(text)) => [&[0], text.as_bytes()].concat(),
            _ => answer,
        },
        _ => answer,
    }
}

// The function runs on its own thread, which is abandoned once the command has ended.
fn run(call: &mut Call<'_>, prepared: Prepared) -> Result<Result<String, Failure>, Fault> {
    call.may_wait();
    let (job, process) = (&call.state.job, &call.state.process);
    let largest = job.meter.limits().output.0;
    let said = Arc::new((Mutex::new(None), Waiters::default()));
    let saying = Arc::clone(&said);
    let waiting = Arc::clone(&said);
    // The wait has another deadline when the clock is paused, and when it resumes.
    let context = ToolContext::new(job.run, RunningFiles::new(job), job.meter.pauses(), move || waiting.1.wake());
    // Dropped with the wait, however it ends.
    let _over = context.ends();
    let work = move || {
        let result = prepared.run(largest, &context);
        *saying.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        saying.1.wake();
    };
    thread::Builder::new().name("sandlite tool".to_owned()).spawn(work).map_err(|_| Errno::AGAIN)?;
    let result = block(job, process, None, || {
        said.1.register();
        said.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    })?;
    let result = result.ok_or(Errno::AGAIN)?;
    // The guest is about to hold the result, and so does the host while it is copied.
    if let Ok(text) = &result {
        drop(MemoryCharge::take(job, text.len()).ok_or(Errno::NOMEM)?);
    }
    Ok(result)
}
