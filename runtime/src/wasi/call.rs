//! The boundary of every host call: charges fuel, catches panics, and does not return to ended guests.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wasmtime::{AsContextMut, Caller, StoreContextMut};

use super::memory::GuestMemory;
use crate::process::{Ended, Fault, State, settle_fuel};

/// Fuel for a host call itself: about its cost in guest instructions (T-DOS-12).
pub(super) const BASE_FUEL: u64 = 200;

/// Number of bytes moved per unit of fuel.
pub(super) const BYTES_PER_FUEL: u64 = 16;

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
    /// Charges the fuel for moving some bytes.
    pub(super) fn charge_bytes(&mut self, bytes: usize) {
        self.fuel = self.fuel.saturating_add(bytes as u64 / BYTES_PER_FUEL);
    }

    /// Records that the call may have waited while others ran: the fuel grant is stale.
    pub(super) fn may_wait(&mut self) {
        self.waited = true;
    }
}

/// Performs one host call and returns its errno to the guest, or ends the guest.
pub(super) fn enter(
    mut caller: Caller<'_, State>,
    body: impl FnOnce(&mut Call<'_>) -> Result<(), Fault>,
) -> wasmtime::Result<u32> {
    enter_again(&mut caller, body)
}

/// Same as [`enter`], for a call that continues afterwards.
pub(super) fn enter_again(
    caller: &mut Caller<'_, State>,
    body: impl FnOnce(&mut Call<'_>) -> Result<(), Fault>,
) -> wasmtime::Result<u32> {
    settle_for_turns(caller.as_context_mut())?;
    let Some(memory) = caller.data().memory else { return Err(Ended::HostPanic.into()) };
    let (bytes, state) = memory.data_and_store_mut(&mut *caller);
    let mut call = Call { memory: GuestMemory::new(bytes), state, fuel: BASE_FUEL, waited: false };
    let result = catch_unwind(AssertUnwindSafe(|| body(&mut call))).unwrap_or(Err(Fault::End(Ended::HostPanic)));
    let (fuel, waited) = (call.fuel, call.waited);
    leave(caller.as_context_mut(), fuel, waited)?;
    answer(result)
}

/// Same as [`enter`], for calls that need the engine itself.
pub(super) fn enter_engine<T>(
    caller: &mut Caller<'_, State>,
    body: impl FnOnce(&mut Caller<'_, State>) -> Result<T, Fault>,
) -> wasmtime::Result<Result<T, u32>> {
    settle_for_turns(caller.as_context_mut())?;
    let result = catch_unwind(AssertUnwindSafe(|| body(caller))).unwrap_or(Err(Fault::End(Ended::HostPanic)));
    leave(caller.as_context_mut(), BASE_FUEL, true)?;
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Errno(errno)) => Ok(Err(u32::from(errno.raw()))),
        Err(Fault::End(ended)) => Err(ended.into()),
    }
}

/// Settles the used fuel if processes take turns, so that it is known before another one runs, regardless of the last tick.
pub(super) fn settle_for_turns(store: StoreContextMut<'_, State>) -> wasmtime::Result<()> {
    if store.data().job.turns.is_some() {
        settle_fuel(store)?;
    }
    Ok(())
}

/// Charges a call, and returns an error if the guest must not continue.
pub(super) fn leave(mut caller: StoreContextMut<'_, State>, fuel: u64, mut waited: bool) -> wasmtime::Result<()> {
    let (job, pid) = (&caller.data().job, caller.data().process.pid);
    waited |= job.turns.as_ref().is_some_and(|turns| turns.count_call(&job.clock, pid));
    if caller.data().process.must_end() || caller.data().job.is_over() {
        return Err(Ended::Killed.into());
    }
    // An engine without fuel metering has none to charge.
    let Ok(left) = caller.get_fuel() else { return Ok(()) };
    caller.set_fuel(left.saturating_sub(fuel))?;
    // Fuel missing in the store is charged to the shared budget.
    if fuel > left {
        caller.data().job.meter.spend_fuel(fuel - left).map_err(|_| Ended::Limit)?;
    }
    if waited || left <= fuel {
        settle_fuel(caller)?;
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
