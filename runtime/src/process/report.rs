//! The host's message on a process's standard error when a limit made it fail: the limit and its value.
//!
//! A process that is refused memory may exit with its own status and message, and a stack overflow looks like any other
//! segmentation fault. Neither names the limit, so the host does (guarantee 5).

use guests::Entry;
use presets::ByteSize;

use super::State;
use crate::host::{SCIENTIFIC_STACK, WASM_STACK};

/// Reports the memory limit: the process was refused memory, and failed.
pub(super) fn memory(state: &State) {
    write(state, &state.job.meter.memory_refusal().to_string());
}

/// Reports the stack limit: the process recursed too deeply.
pub(super) fn stack(state: &State) {
    let allowed = match state.prepared.entry {
        Entry::Turn(_) => SCIENTIFIC_STACK,
        Entry::Start(_) | Entry::Status(_) => WASM_STACK,
    };
    let allowed = ByteSize(allowed as u64);
    write(state, &format!("stack overflow: {allowed} allowed"));
}

// Descriptor 2 may be closed, or have no reader: then the message is dropped.
fn write(state: &State, text: &str) {
    if let Ok(file) = state.descriptors.get(2) {
        let _ = file.write(&state.job, &state.process, format!("sandlite: {text}\n").as_bytes());
    }
}
