//! What a process carries: its descriptors, arguments and place, and its share of the command's budget.
//!
//! Lives in the wasm store, so only the process's own thread touches it.

use std::sync::Arc;

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
    /// The answer to its last request through Python's door, until it is fetched.
    pub(crate) answer: Vec<u8>,
    /// Its linear memory, once there is an instance.
    pub(crate) memory: Option<Memory>,
    /// It has been told that the command met a limit, and should be gone.
    pub(crate) told_of_limit: bool,
    /// It wanted memory that the command's limit did not allow.
    pub(crate) memory_refused: bool,
    /// It was told to raise an exception, and may not have noticed.
    pub(crate) interrupted: bool,
    memory_held: u64,
    fuel_granted: u64,
    // What of the grant is burnt and paid for.
    fuel_paid: u64,
}

/// Bytes that the engine keeps for an element of a table.
const TABLE_ELEMENT: u64 = 8;

/// What a new process is told about itself.
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
    /// A process that has no instance yet.
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
            memory_held: 0,
            fuel_granted: 0,
            fuel_paid: 0,
        }
    }

    /// Becomes another program: same pid, same descriptors but those that close, nothing else.
    pub(crate) fn become_program(&mut self, start: Start, prepared: Prepared) {
        self.return_memory();
        self.memory_refused = false;
        // The fuel of the old store is paid for; the new one starts with none.
        (self.fuel_granted, self.fuel_paid) = (0, 0);
        self.descriptors.close_for_exec();
        self.process.reset_caught_dispositions();
        self.prepared = prepared;
        let Start { args, env, cwd } = start;
        (self.args, self.env, self.cwd) = (args, env, cwd);
    }

    /// Goes on in another job with what it has in memory, and nothing else; false when the memory does not fit there.
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

    /// Whether the process must end now, and why.
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

/// Settles with the command's pot: pays for the fuel burnt since the last time and takes all that is left as the new
/// grant. Called where a guest is inside a host call, or has none of its frames on the stack.
pub(crate) fn settle_fuel(mut store: StoreContextMut<'_, State>) -> Result<(), Ended> {
    // An engine that counts no fuel has no answer: nothing was burnt.
    let Ok(left) = store.get_fuel() else { return Ok(()) };
    let state = store.data_mut();
    let unpaid = state.burnt(left).saturating_sub(state.fuel_paid);
    let granted = state.job.meter.spend_fuel(unpaid);
    (state.fuel_granted, state.fuel_paid) = (granted.as_ref().copied().unwrap_or(0), 0);
    let grant = state.fuel_granted;
    let _ = store.as_context_mut().set_fuel(grant);
    granted.map(drop).map_err(|_| Ended::Limit)
}

/// Pays for what is seen to be burnt while the guest runs on. Its grant stays: a running function counts in a register, and
/// would write over a new one.
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

    // Tables are memory of the host, too (T-DOS-03).
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
