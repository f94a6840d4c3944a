//! `poll_oneoff`: waiting for clocks and descriptors, never past the command's deadline (T-DOS-02).

use std::sync::Arc;

use abi::Errno;

use super::call::Call;
use super::clocks;
use super::files;
use crate::process::Fault;
use crate::process::descriptor::{OpenFile, wait_ready};

/// Size of a subscription, in bytes.
const SUBSCRIPTION: u32 = 48;
/// Size of an event, in bytes.
const EVENT: u32 = 32;
/// Maximum number of subscriptions of one call.
const MAX_SUBSCRIPTIONS: u32 = 1024;
/// `subclockflags`: the time is absolute.
const ABSOLUTE: u16 = 1;

enum Wanted {
    Clock { nanos_left: u64 },
    File { file: Result<Arc<OpenFile>, Errno>, for_writing: bool },
}

struct Subscription {
    userdata: u64,
    kind: u8,
    wanted: Wanted,
}

/// `poll_oneoff`.
pub(super) fn poll(call: &mut Call<'_>, subscriptions: u32, events: u32, count: u32, out: u32) -> Result<(), Fault> {
    if count == 0 || count > MAX_SUBSCRIPTIONS {
        return Err(Errno::INVAL.into());
    }
    call.may_wait();
    let wanted = (0..count).map(|index| subscription(call, subscriptions, index)).collect::<Result<Vec<_>, _>>()?;
    let sleep = wanted.iter().filter_map(|one| match one.wanted {
        Wanted::Clock { nanos_left } => Some(nanos_left),
        Wanted::File { .. } => None,
    });
    let sleep = sleep.min();
    let mut files = Vec::new();
    let mut bad_file = false;
    for one in &wanted {
        match &one.wanted {
            Wanted::File { file: Ok(file), for_writing } => files.push((Arc::clone(file), *for_writing)),
            Wanted::File { file: Err(_), .. } => bad_file = true,
            Wanted::Clock { .. } => {}
        }
    }
    let timed_out = if bad_file {
        false
    } else {
        // A duration that overflows ends with the command anyway.
        let until = sleep.and_then(|nanos| call.state.job.clock.after(nanos));
        !wait_ready(&call.state.job, &call.state.process, &files, until)?
    };
    let mut written = 0;
    for one in &wanted {
        let (errno, bytes) = match &one.wanted {
            Wanted::Clock { nanos_left } if timed_out && Some(*nanos_left) == sleep => (0, 0),
            Wanted::Clock { .. } => continue,
            Wanted::File { file: Err(errno), .. } => (errno.raw(), 0),
            Wanted::File { file: Ok(file), for_writing } => match file.ready(*for_writing) {
                Some(bytes) => (0, bytes),
                None => continue,
            },
        };
        let at = events.checked_add(written * EVENT).ok_or(Errno::FAULT)?;
        call.memory.write(at, &event(one.userdata, errno, one.kind, bytes))?;
        written += 1;
    }
    Ok(call.memory.write_u32(out, written)?)
}

fn subscription(call: &Call<'_>, base: u32, index: u32) -> Result<Subscription, Errno> {
    let at = base.checked_add(index * SUBSCRIPTION).ok_or(Errno::FAULT)?;
    let bytes = call.memory.copy(at, SUBSCRIPTION, SUBSCRIPTION)?;
    let u64_at =
        |at: usize| bytes.get(at..at + 8).and_then(|b| b.first_chunk()).map(|b| u64::from_le_bytes(*b)).ok_or(Errno::FAULT);
    let u32_at =
        |at: usize| bytes.get(at..at + 4).and_then(|b| b.first_chunk()).map(|b| u32::from_le_bytes(*b)).ok_or(Errno::FAULT);
    let u16_at =
        |at: usize| bytes.get(at..at + 2).and_then(|b| b.first_chunk()).map(|b| u16::from_le_bytes(*b)).ok_or(Errno::FAULT);
    let kind = bytes.get(8).copied().ok_or(Errno::FAULT)?;
    let wanted = match kind {
        0 => {
            let (clock, timeout, flags) = (u32_at(16)?, u64_at(24)?, u16_at(40)?);
            let now = clocks::now(call, clock)?;
            let nanos_left = if flags & ABSOLUTE != 0 { timeout.saturating_sub(now) } else { timeout };
            Wanted::Clock { nanos_left }
        }
        1 | 2 => Wanted::File { file: files::file(call, u32_at(16)?), for_writing: kind == 2 },
        _ => return Err(Errno::INVAL),
    };
    Ok(Subscription { userdata: u64_at(0)?, kind, wanted })
}

fn event(userdata: u64, errno: u16, kind: u8, bytes: u64) -> [u8; EVENT as usize] {
    let mut out = [0; EVENT as usize];
    out[0..8].copy_from_slice(&userdata.to_le_bytes());
    out[8..10].copy_from_slice(&errno.to_le_bytes());
    out[10] = kind;
    out[16..24].copy_from_slice(&bytes.to_le_bytes());
    out
}
