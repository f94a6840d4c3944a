//! The state of a process: its descriptors, arguments and directory, and its share of the command's budget.
//!
//! Stored in the wasm store, so only the process's own thread accesses it.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime::{AsContextMut, Memory, ResourceLimiter, StoreContextMut};

use super::descriptor::Descriptors;
use super::{Ended, Job, Process};
use crate::host::Prepared;

/// The state of one process.
pub(crate) struct State {
    /// The command it belongs to.
    pub(crate) job: Arc<Job>,
    /// Its entry in the pid table.
    pub(crate) process: Arc<Process>,
    /// Its open files.
    pub(crate) descriptors: Descriptors,
    /// Its arguments.
    pub(crate) args: Vec<Vec<u8>>,
    /// Its environment, as `NAME=value`.
    pub(crate) env: Vec<Vec<u8>>,
    /// The directory it was started in.
    pub(crate) cwd: Vec<u8>,
    /// Its file creation mask.
    pub(crate) umask: u32,
    /// The module it runs.
    pub(crate) prepared: Prepared,
    /// The response to its last request through Python's host interface, until it is fetched.
    pub(crate) answer: Vec<u8>,
    /// Its linear memory, once there is an instance.
    pub(crate) memory: Option<Memory>,
    /// Whether it was notified that the command reached a limit and must end.
    pub(crate) told_of_limit: bool,
    /// Whether it was refused memory by the command's limit.
    pub(crate) memory_refused: bool,
    /// Whether an exception was requested that it may not have noticed.
    pub(crate) interrupted: bool,
    /// The resources of a component, besides its descriptors.
    pub(crate) resources: ResourceTable,
    memory_held: u64,
    fuel_granted: u64,
    // The used and charged part of the grant.
    fuel_paid: u64,
}

/// Size of a table element in the engine, in bytes.
const TABLE_ELEMENT: u64 = 8;

/// Maximum number of instances and of tables in one process: all but components have one.
const MAX_INSTANCES: usize = 256;

/// Maximum number of linear memories in one process.
const MAX_MEMORIES: usize = 32;

/// The arguments and environment of a new process.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// Its arguments.
    pub(crate) args: Vec<Vec<u8>>,
    /// Its environment, as `NAME=value`.
    pub(crate) env: Vec<Vec<u8>>,
    /// The directory it starts in.
    pub(crate) cwd: Vec<u8>,
}

impl State {
    /// Creates a process without an instance.
    pub(crate) fn new(
        job: Arc<Job>,
        process: Arc<Process>,
        descriptors: Descriptors,
        start: Start,
        umask: u32,
        prepared: Prepared,
    ) -> Self {
        let Start { args, env, cwd } = start;
        Self {
            job,
            process,
            descriptors,
            args,
            env,
            cwd,
            umask,
            prepared,
            answer: Vec::new(),
            memory: None,
            told_of_limit: false,
            memory_refused: false,
            interrupted: false,
            resources: ResourceTable::new(),
            memory_held: 0,
            fuel_granted: 0,
            fuel_paid: 0,
        }
    }

    /// Replaces its program: same pid, same descriptors except those closed on exec, nothing else.
    pub(crate) fn become_program(&mut self, start: Start, prepared: Prepared) {
        self.return_memory();
        self.memory_refused = false;
        self.resources = ResourceTable::new();
        // The fuel of the old store is paid; the new one starts with none.
        (self.fuel_granted, self.fuel_paid) = (0, 0);
        self.descriptors.close_for_exec();
        self.process.reset_caught_dispositions();
        self.prepared = prepared;
        let Start { args, env, cwd } = start;
        (self.args, self.env, self.cwd) = (args, env, cwd);
    }

    /// Moves it to another job with its memory and nothing else; returns false if the memory does not fit there.
    pub(crate) fn move_to(
        &mut self,
        job: Arc<Job>,
        process: Arc<Process>,
        descriptors: Descriptors,
        start: Start,
        umask: u32,
    ) -> bool {
        let held = std::mem::take(&mut self.memory_held);
        self.job.meter.return_memory(held);
        (self.job, self.process, self.descriptors, self.umask) = (job, process, descriptors, umask);
        (self.args, self.env, self.cwd) = (start.args, start.env, start.cwd);
        (self.answer, self.told_of_limit, self.memory_refused) = (Vec::new(), false, false);
        (self.fuel_granted, self.fuel_paid) = (0, 0);
        let fits = self.job.meter.take_memory(held);
        if fits {
            self.memory_held = held;
        }
        fits
    }

    /// Returns an error if the process must end now.
    pub(crate) fn check_alive(&self) -> Result<(), Ended> {
        if self.process.must_end() || self.job.is_over() {
            return Err(Ended::Killed);
        }
        self.job.meter.check_time().map_err(|_| Ended::Limit)
    }

    fn burnt(&self, left: u64) -> u64 {
        self.fuel_granted.saturating_sub(left)
    }

    fn return_memory(&mut self) {
        self.memory = None;
        self.job.meter.return_memory(std::mem::take(&mut self.memory_held));
    }
}

/// Settles with the command's budget: pays for the fuel used since the last time and takes all that is left as the new grant.
/// Called while a guest is inside a host call, or has no frames on the stack.
pub(crate) fn settle_fuel(mut store: StoreContextMut<'_, State>) -> Result<(), Ended> {
    // An engine without fuel metering returns an error: nothing was used.
    let Ok(left) = store.get_fuel() else { return Ok(()) };
    let state = store.data_mut();
    let unpaid = state.burnt(left).saturating_sub(state.fuel_paid);
    let granted = state.job.meter.spend_fuel(unpaid);
    (state.fuel_granted, state.fuel_paid) = (granted.as_ref().copied().unwrap_or(0), 0);
    let grant = state.fuel_granted;
    let _ = store.as_context_mut().set_fuel(grant);
    granted.map(drop).map_err(|_| Ended::Limit)
}

/// Pays for visible fuel usage while the guest continues. Its grant is kept: a running function counts in a register, and would
/// overwrite a new one.
pub(crate) fn pay_fuel(mut store: StoreContextMut<'_, State>) -> Result<(), Ended> {
    let Ok(left) = store.get_fuel() else { return Ok(()) };
    let state = store.data_mut();
    let burnt = state.burnt(left);
    let unpaid = burnt.saturating_sub(std::mem::replace(&mut state.fuel_paid, burnt));
    state.job.meter.spend_fuel(unpaid).map(drop).map_err(|_| Ended::Limit)
}

impl ResourceLimiter for State {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        let granted = self.job.meter.take_memory(more);
        self.memory_refused |= !granted;
        if granted {
            self.memory_held += more;
        }
        Ok(granted)
    }

    // A component can have several modules, and each reserves address space (T-DOS-03).
    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }

    fn tables(&self) -> usize {
        MAX_INSTANCES
    }

    // Tables also use memory of the host (T-DOS-03).
    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let more = (desired.saturating_sub(current) as u64).saturating_mul(TABLE_ELEMENT);
        let granted = maximum.is_none_or(|maximum| desired <= maximum) && self.job.meter.take_memory(more);
        if granted {
            self.memory_held += more;
        }
        Ok(granted)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.return_memory();
    }
}
