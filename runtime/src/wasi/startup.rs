//! Arguments, environment and exit of a program.

use abi::Errno;

use super::call::Call;
use crate::process::{Ended, Fault};

/// `args_sizes_get`, `environ_sizes_get`.
pub(super) fn sizes(
    call: &mut Call<'_>,
    strings: for<'a> fn(&'a Call<'_>) -> &'a [Vec<u8>],
    count: u32,
    bytes: u32,
) -> Result<(), Fault> {
    let list = strings(call);
    let number = u32::try_from(list.len()).map_err(|_| Errno::OVERFLOW)?;
    let total: usize = list.iter().map(|string| string.len() + 1).sum();
    let total = u32::try_from(total).map_err(|_| Errno::OVERFLOW)?;
    call.memory.write_u32(count, number)?;
    call.memory.write_u32(bytes, total)?;
    Ok(())
}

/// `args_get`, `environ_get`.
pub(super) fn strings(
    call: &mut Call<'_>,
    strings: for<'a> fn(&'a Call<'_>) -> &'a [Vec<u8>],
    pointers: u32,
    buffer: u32,
) -> Result<(), Fault> {
    let list = strings(call).to_vec();
    let (mut slot, mut at) = (pointers, buffer);
    for string in list {
        call.memory.write_u32(slot, at)?;
        call.memory.write(at, &string)?;
        let end = u32::try_from(string.len()).ok().and_then(|length| at.checked_add(length)).ok_or(Errno::FAULT)?;
        call.memory.write(end, &[0])?;
        call.charge_bytes(string.len());
        slot = slot.checked_add(4).ok_or(Errno::FAULT)?;
        at = end.checked_add(1).ok_or(Errno::FAULT)?;
    }
    Ok(())
}

/// Returns the process's arguments.
pub(super) fn args<'a>(call: &'a Call<'_>) -> &'a [Vec<u8>] {
    &call.state.args
}

/// Returns the process's environment.
pub(super) fn environ<'a>(call: &'a Call<'_>) -> &'a [Vec<u8>] {
    &call.state.env
}

/// `proc_exit`.
pub(super) fn exit(code: u32) -> Fault {
    Fault::End(Ended::Exit((code & 0xff) as u8))
}
