//! A process that outlives its command: its instance is kept and entered again by the next one.
//!
//! Only the guest's memory is kept. Between two commands the process belongs to a separate job on an empty database, without
//! descriptors, so it can access nothing. An instance that trapped, reached a limit or was killed is never entered again; the
//! next command then starts afresh.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use abi::WaitStatus;
use wasmtime::{AsContextMut, Instance, Store};

use super::descriptor::{Descriptors, Object, OpenFile};
use super::reaping::let_go;
use super::run::{call_entry, call_with_text, finish, instantiate};
use super::state::{Start, settle_fuel};
use super::{Ended, Fault, Job, Process, State, python};
use crate::host::Prepared;
use crate::vfs::Device;

/// An instance between two commands.
pub(crate) struct Kept {
    store: Store<State>,
    instance: Instance,
}

impl Kept {
    /// Returns the size of its memory.
    pub(crate) fn memory(&self) -> u64 {
        self.store.data().memory.map_or(0, |memory| memory.data_size(&self.store) as u64)
    }
}

/// The job of an instance between two commands.
pub(crate) struct Idle {
    pub(super) job: Arc<Job>,
    pub(super) process: Arc<Process>,
}

impl Idle {
    /// Creates an idle job.
    pub(crate) fn new(job: Arc<Job>) -> Result<Self, Fault> {
        let process = job.add_process(0, true)?;
        Ok(Self { job, process })
    }
}

/// Runs a command's first process in a kept instance, or in a new one, and keeps it if it can be entered again.
pub(crate) fn start_kept(
    job: &Arc<Job>,
    (prepared, start): (Prepared, Start),
    descriptors: Descriptors,
    umask: u32,
    kept: &mut Option<Kept>,
    idle: &Idle,
) -> Result<WaitStatus, Fault> {
    let process = job.add_process(0, true)?;
    process.adopt_thread();
    job.begin_turn(&process);
    let run = || enter(job, &process, (prepared, start), descriptors, umask, kept.take());
    let ended = match catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(Ended::HostPanic)) {
        Ok((code, instance)) => {
            if job.meter.reached().is_none() && !process.must_end() {
                *kept = instance.and_then(|instance| put_aside(instance, idle));
            }
            Ended::Exit(code)
        }
        Err(ended) => ended,
    };
    Ok(finish(Arc::clone(job), process, &ended))
}

/// Runs a text in a guest that accepts one, as a command's first process, and returns its memory afterwards.
pub(crate) fn start_for_memory(
    job: &Arc<Job>,
    (prepared, start): (Prepared, Start),
    descriptors: Descriptors,
    umask: u32,
    text: &str,
    memory: &mut Vec<u8>,
) -> Result<WaitStatus, Fault> {
    let process = job.add_process(0, true)?;
    process.adopt_thread();
    job.begin_turn(&process);
    let state = State::new(Arc::clone(job), Arc::clone(&process), descriptors, start, umask, prepared);
    let run = || {
        let (mut store, instance) = instantiate(state)?;
        let code = call_with_text(&mut store, &instance, text)?;
        *memory = store.data().memory.map(|memory| memory.data(&store).to_vec()).unwrap_or_default();
        Ok(Ended::Exit(code))
    };
    let ended = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(Ended::HostPanic)).unwrap_or_else(|ended| ended);
    Ok(finish(Arc::clone(job), process, &ended))
}

// The status that the guest returned, and the instance if it can be entered again.
fn enter(
    job: &Arc<Job>,
    process: &Arc<Process>,
    (prepared, start): (Prepared, Start),
    descriptors: Descriptors,
    umask: u32,
    kept: Option<Kept>,
) -> Result<(u8, Option<Kept>), Ended> {
    let entry = prepared.entry;
    let (mut store, instance) = match kept {
        None => instantiate(State::new(Arc::clone(job), Arc::clone(process), descriptors, start, umask, prepared))?,
        Some(Kept { mut store, instance }) => {
            if !store.data_mut().move_to(Arc::clone(job), Arc::clone(process), descriptors, start, umask) {
                drop(store);
                let _ = job.meter.process_died();
                return Err(Ended::Limit);
            }
            if std::mem::take(&mut store.data_mut().interrupted)
                && let Some(memory) = store.data().memory
            {
                python::forget_interrupt(memory.data_mut(&mut store));
            }
            store.set_epoch_deadline(1);
            settle_fuel(store.as_context_mut())?;
            (store, instance)
        }
    };
    let result = call_entry(&mut store, &instance, entry);
    match result {
        // It returned, so the guest's own stack is empty.
        Ok(code) => Ok((code, Some(Kept { store, instance }))),
        Err(ended) => {
            let_go(store);
            Err(ended)
        }
    }
}

/// Returns a descriptor that can access nothing.
pub(super) fn nothing() -> Arc<OpenFile> {
    OpenFile::new(Object::Device(Device::Null), true, true, false)
}

fn put_aside(mut kept: Kept, idle: &Idle) -> Option<Kept> {
    let descriptors = Descriptors::new([nothing(), nothing(), nothing()], 3);
    let start = Start { args: Vec::new(), env: Vec::new(), cwd: Vec::new() };
    let (job, process) = (Arc::clone(&idle.job), Arc::clone(&idle.process));
    kept.store.data_mut().move_to(job, process, descriptors, start, 0).then_some(kept)
}
