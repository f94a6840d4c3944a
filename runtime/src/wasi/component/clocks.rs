//! `wasi:clocks` and `wasi:random`: the command's own clock and random bytes, so that a run can be replayed.

use abi::Errno;
use wasmtime::component::{Linker, Resource};

use super::poll::Pollable;
use super::types::Datetime;
use super::{Call, functions, plain, violation};
use crate::process::{Fault, MemoryCharge, State};

/// The resolution of the clocks: guests get one microsecond.
const RESOLUTION_NANOS: u64 = 1_000;

/// Maximum number of random bytes of one call.
const MAX_RANDOM_BYTES: u64 = 16 << 20;

/// Number of random bytes between two checks of the clock.
const PIECE: usize = 1 << 20;

pub(super) fn register(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut clock = linker.instance("wasi:clocks/monotonic-clock@0.2.0")?;
    functions! { clock, plain;
        "now" () => |call| Ok(call.state().job.clock.monotonic());
        "resolution" () => |_call| Ok(RESOLUTION_NANOS);
        "subscribe-instant" (when: u64) => |call| call.push(Pollable::Clock(when));
        "subscribe-duration" (duration: u64) => |call| after(call, duration);
    }
    let mut clock = linker.instance("wasi:clocks/wall-clock@0.2.0")?;
    functions! { clock, plain;
        "now" () => |call| Ok(Datetime::new(call.state().job.clock.realtime()));
        "resolution" () => |_call| Ok(Datetime::new(RESOLUTION_NANOS));
    }
    let mut random = linker.instance("wasi:random/random@0.2.0")?;
    functions! { random, plain;
        "get-random-bytes" (length: u64) => |call| bytes(call, length);
        "get-random-u64" () => |call| number(call);
    }
    let mut random = linker.instance("wasi:random/insecure@0.2.0")?;
    functions! { random, plain;
        "get-insecure-random-bytes" (length: u64) => |call| bytes(call, length);
        "get-insecure-random-u64" () => |call| number(call);
    }
    let mut random = linker.instance("wasi:random/insecure-seed@0.2.0")?;
    functions! { random, plain;
        "insecure-seed" () => |call| Ok((number(call)?, number(call)?));
    }
    Ok(())
}

fn after(call: &mut Call<'_>, duration: u64) -> Result<Resource<Pollable>, Fault> {
    let when = call.state().job.clock.monotonic().saturating_add(duration);
    call.push(Pollable::Clock(when))
}

fn bytes(call: &mut Call<'_>, length: u64) -> Result<Vec<u8>, Fault> {
    let length = usize::try_from(length).ok().filter(|_| length <= MAX_RANDOM_BYTES).ok_or_else(violation)?;
    call.charge_bytes(length);
    let job = &call.state().job;
    let _charge = MemoryCharge::take(job, length).ok_or_else(violation)?;
    let mut bytes = vec![0; length];
    for piece in bytes.chunks_mut(PIECE) {
        job.meter.check_time()?;
        job.random.fill(piece).map_err(|_| Errno::IO)?;
    }
    Ok(bytes)
}

fn number(call: &Call<'_>) -> Result<u64, Fault> {
    let mut bytes = [0; 8];
    call.state().job.random.fill(&mut bytes).map_err(|_| Errno::IO)?;
    Ok(u64::from_le_bytes(bytes))
}
