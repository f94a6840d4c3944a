//! `wasi:io/poll`: waiting for clocks and streams, never past the command's deadline (T-DOS-02).

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};

use super::{Call, drop_resource, enter, functions, plain, violation};
use crate::process::descriptor::{OpenFile, wait_ready};
use crate::process::{Fault, State};

/// Maximum number of pollables of one call.
const MAX_POLLED: usize = 1024;

/// `poll.pollable`.
#[derive(Clone, Debug)]
pub(super) enum Pollable {
    /// A time of the monotonic clock, in nanoseconds.
    Clock(u64),
    /// An open file, for reading or for writing.
    File(Arc<OpenFile>, bool),
}

pub(super) fn register(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut poll = linker.instance("wasi:io/poll@0.2.0")?;
    poll.resource("pollable", ResourceType::host::<Pollable>(), drop_resource::<Pollable>)?;
    functions! { poll, plain;
        "[method]pollable.ready" (pollable: Resource<Pollable>) => |call| is_ready(call, &pollable);
        "poll" (pollables: Vec<Resource<Pollable>>) => |call| wait(call, &pollables);
    }
    poll.func_wrap("[method]pollable.block", |store: StoreContextMut<'_, State>, (pollable,): (Resource<Pollable>,)| {
        plain(enter(store, |call| wait(call, &[pollable]).map(drop))?)
    })
}

// Whether it is ready at this time of the clock.
fn is_over(pollable: &Pollable, now: u64) -> bool {
    match pollable {
        Pollable::Clock(when) => *when <= now,
        Pollable::File(file, for_writing) => file.ready(*for_writing).is_some(),
    }
}

fn is_ready(call: &mut Call<'_>, pollable: &Resource<Pollable>) -> Result<bool, Fault> {
    let pollable = call.get(pollable)?.clone();
    let now = call.state().job.clock.monotonic();
    Ok(is_over(&pollable, now))
}

fn wait(call: &mut Call<'_>, pollables: &[Resource<Pollable>]) -> Result<Vec<u32>, Fault> {
    if pollables.is_empty() || pollables.len() > MAX_POLLED {
        return Err(violation());
    }
    call.may_wait();
    call.charge_bytes(pollables.len().saturating_mul(size_of::<Pollable>()));
    let wanted = pollables.iter().map(|pollable| call.get(pollable).cloned()).collect::<Result<Vec<_>, _>>()?;
    let (job, process) = (&call.state().job, &call.state().process);
    let now = job.clock.monotonic();
    let (mut sleep, mut files) = (None, Vec::new());
    for one in &wanted {
        match one {
            Pollable::Clock(when) => sleep = Some(sleep.unwrap_or(u64::MAX).min(when.saturating_sub(now))),
            Pollable::File(file, for_writing) => files.push((Arc::clone(file), *for_writing)),
        }
    }
    // A duration that overflows ends with the command anyway.
    let until = sleep.and_then(|nanos| job.clock.after(nanos));
    let is_late = !wait_ready(job, process, &files, until)?;
    let now = if is_late { now.saturating_add(sleep.unwrap_or(0)) } else { now };
    let ready = (0u32..).zip(&wanted).filter(|(_, one)| is_over(one, now)).map(|(index, _)| index);
    let ready: Vec<u32> = ready.collect();
    // Never empty: another process may have been faster, and the program asks its stream again.
    Ok(if ready.is_empty() { vec![0] } else { ready })
}
