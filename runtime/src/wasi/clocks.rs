//! Clocks and random bytes.

use abi::Errno;

use super::call::Call;
use super::memory::MAX_IO_BYTES;
use crate::process::Fault;

/// `clockid` of the wall clock.
const REALTIME: u32 = 0;
/// `clockid`s of the monotonic clock and of CPU time, which are the same for guests.
const MONOTONIC: std::ops::RangeInclusive<u32> = 1..=3;

/// The resolution of the clocks: guests get one microsecond.
const RESOLUTION_NANOS: u64 = 1_000;

/// `clock_res_get`.
pub(super) fn resolution(call: &mut Call<'_>, clock: u32, out: u32) -> Result<(), Fault> {
    if clock != REALTIME && !MONOTONIC.contains(&clock) {
        return Err(Errno::INVAL.into());
    }
    Ok(call.memory.write_u64(out, RESOLUTION_NANOS)?)
}

/// Returns the time of a clock, in nanoseconds.
pub(super) fn now(call: &Call<'_>, clock: u32) -> Result<u64, Errno> {
    match clock {
        REALTIME => Ok(call.state.job.clock.realtime()),
        clock if MONOTONIC.contains(&clock) => Ok(call.state.job.clock.monotonic()),
        _ => Err(Errno::INVAL),
    }
}

/// `clock_time_get`.
pub(super) fn time(call: &mut Call<'_>, clock: u32, out: u32) -> Result<(), Fault> {
    let now = now(call, clock)?;
    Ok(call.memory.write_u64(out, now)?)
}

/// `sched_yield`.
pub(super) fn yield_now(call: &mut Call<'_>) -> Result<(), Fault> {
    call.may_wait();
    let job = &call.state.job;
    match &job.turns {
        Some(turns) => turns.let_others(&job.clock, call.state.process.pid),
        None => std::thread::yield_now(),
    }
    Ok(())
}

/// `random_get`, in pieces, so that a request for a gigabyte does not exceed the deadline.
pub(super) fn random(call: &mut Call<'_>, buffer: u32, length: u32) -> Result<(), Fault> {
    call.charge_bytes(length as usize);
    let job = std::sync::Arc::clone(&call.state.job);
    for piece in call.memory.bytes_mut(buffer, length)?.chunks_mut(MAX_IO_BYTES as usize) {
        job.meter.check_time()?;
        job.random.fill(piece).map_err(|_| Errno::IO)?;
    }
    Ok(())
}
