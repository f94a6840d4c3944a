//! The boundary every host call crosses: memory in hand, fuel debited, panics caught, the dead not let back in.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wasmtime::{AsContextMut, Caller};

use super::memory::GuestMemory;
use crate::process::{Ended, Fault, State, settle_fuel};

/// Fuel for crossing into the host at all: about what the crossing costs in guest instructions (T-DOS-12).
const BASE_FUEL: u64 = 200;

/// Bytes moved for one unit of fuel.
const BYTES_PER_FUEL: u64 = 16;

/// One call of a guest.
pub(crate) struct Call<'a> {
    /// The guest's memory.
    pub(super) memory: GuestMemory<'a>,
    /// The calling process.
    pub(super) state: &'a mut State,
    fuel: u64,
    waited: bool,
}

impl Call<'_> {
    /// Debits the fuel for moving some bytes.
    pub(super) fn charge_bytes(&mut self, bytes: usize) {
        self.fuel = self.fuel.saturating_add(bytes as u64 / BYTES_PER_FUEL);
    }

    /// Says that the call may have waited while others ran: the fuel grant is stale.
    pub(super) fn may_wait(&mut self) {
        self.waited = true;
    }
}

/// Does one host call and gives the guest its errno, or ends the guest.
pub(super) fn enter(
    mut caller: Caller<'_, State>,
    body: impl FnOnce(&mut Call<'_>) -> Result<(), Fault>,
) -> wasmtime::Result<u32> {
    enter_again(&mut caller, body)
}

/// As [`enter`], for a call that goes on afterwards.
pub(super) fn enter_again(
    caller: &mut Caller<'_, State>,
    body: impl FnOnce(&mut Call<'_>) -> Result<(), Fault>,
) -> wasmtime::Result<u32> {
    settle_for_turns(caller)?;
    let Some(memory) = caller.data().memory else { return Err(Ended::HostPanic.into()) };
    let (bytes, state) = memory.data_and_store_mut(&mut *caller);
    let mut call = Call { memory: GuestMemory::new(bytes), state, fuel: BASE_FUEL, waited: false };
    let result = catch_unwind(AssertUnwindSafe(|| body(&mut call))).unwrap_or(Err(Fault::End(Ended::HostPanic)));
    let (fuel, waited) = (call.fuel, call.waited);
    leave(caller, fuel, waited)?;
    answer(result)
}

/// As [`enter`], for the calls that need the engine itself.
pub(super) fn enter_engine<T>(
    caller: &mut Caller<'_, State>,
    body: impl FnOnce(&mut Caller<'_, State>) -> Result<T, Fault>,
) -> wasmtime::Result<Result<T, u32>> {
    settle_for_turns(caller)?;
    let result = catch_unwind(AssertUnwindSafe(|| body(caller))).unwrap_or(Err(Fault::End(Ended::HostPanic)));
    leave(caller, BASE_FUEL, true)?;
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Errno(errno)) => Ok(Err(u32::from(errno.raw()))),
        Err(Fault::End(ended)) => Err(ended.into()),
    }
}

// Where processes take turns, what each has burnt is known before another one runs, whenever the clock last ticked.
fn settle_for_turns(caller: &mut Caller<'_, State>) -> wasmtime::Result<()> {
    if caller.data().job.turns.is_some() {
        settle_fuel(caller.as_context_mut())?;
    }
    Ok(())
}

fn leave(caller: &mut Caller<'_, State>, fuel: u64, mut waited: bool) -> wasmtime::Result<()> {
    let (job, pid) = (&caller.data().job, caller.data().process.pid);
    waited |= job.turns.as_ref().is_some_and(|turns| turns.count_call(&job.clock, pid));
    if caller.data().process.must_end() || caller.data().job.is_over() {
        return Err(Ended::Killed.into());
    }
    // An engine that counts no fuel has none to debit.
    let Ok(left) = caller.get_fuel() else { return Ok(()) };
    caller.set_fuel(left.saturating_sub(fuel))?;
    // What the store has not got is the pot's to pay.
    if fuel > left {
        caller.data().job.meter.spend_fuel(fuel - left).map_err(|_| Ended::Limit)?;
    }
    if waited || left <= fuel {
        settle_fuel(caller.as_context_mut())?;
    }
    Ok(())
}

fn answer(result: Result<(), Fault>) -> wasmtime::Result<u32> {
    match result {
        Ok(()) => Ok(0),
        Err(Fault::Errno(errno)) => Ok(u32::from(errno.raw())),
        Err(Fault::End(ended)) => Err(ended.into()),
    }
}
