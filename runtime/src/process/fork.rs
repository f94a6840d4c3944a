//! Fork: a second process that starts as a copy of the first.
//!
//! The child is a new instance of the same module with a copy of the parent's linear memory, stack pointer and descriptors; the
//! host calls its fork entry with the pointer from the parent. Frames above the call are not copied because the child never
//! returns into them (DESIGN D6).

use std::sync::Arc;

use abi::Errno;
use wasmtime::{AsContext, AsContextMut, Caller, Instance, Memory, Store, Val};

use super::run::{Image, instantiate, on_worker};
use super::state::Start;
use super::{Fault, Pid, State};

/// Granularity of the comparison: a page of the machine, so that untouched pages stay shared.
const PAGE: usize = 4096;

/// Forks the calling process.
pub(crate) fn fork(caller: &mut Caller<'_, State>, closure: u32) -> Result<Pid, Fault> {
    let memory = caller.data().memory.ok_or(Errno::NOSYS)?;
    let stack_pointer = stack_pointer(caller)?;
    let parent = caller.data();
    let process = parent.job.add_process(parent.process.pid, false)?;
    let start = Start { args: parent.args.clone(), env: parent.env.clone(), cwd: parent.cwd.clone() };
    let state =
        State::new(Arc::clone(&parent.job), process, parent.descriptors.clone(), start, parent.umask, parent.prepared.clone());
    let (job, pid) = (Arc::clone(&parent.job), state.process.pid);
    let copied = instantiate(state).map_err(Fault::from).and_then(|(mut store, instance)| {
        copy_memory(memory.data(caller.as_context()), stack_pointer, &mut store)?;
        set_stack_pointer(&mut store, &instance, stack_pointer)?;
        Ok((store, instance))
    });
    match copied {
        Ok((store, instance)) => on_worker(Image::Fork { store: Box::new(store), instance, closure }),
        Err(_) => {
            Arc::clone(&job).process_ended(pid, abi::WaitStatus::Signaled(abi::Signal::KILL));
            job.table().forget(pid);
            Err(Errno::NOMEM.into())
        }
    }
}

fn stack_pointer(caller: &mut Caller<'_, State>) -> Result<u32, Errno> {
    let global = caller.get_export(abi::STACK_POINTER).and_then(wasmtime::Extern::into_global).ok_or(Errno::NOSYS)?;
    global.get(caller.as_context_mut()).i32().map(i32::cast_unsigned).ok_or(Errno::NOSYS)
}

fn set_stack_pointer(store: &mut Store<State>, instance: &Instance, value: u32) -> Result<(), Errno> {
    let global = instance.get_global(&mut *store, abi::STACK_POINTER).ok_or(Errno::NOSYS)?;
    global.set(store, Val::I32(value.cast_signed())).map_err(|_| Errno::NOSYS)
}

// A fresh instance already has the module's own image, shared with all others: only changed pages are copied. Data below the
// stack pointer is dead: the stack comes first in a guest's memory and grows down.
fn copy_memory(from: &[u8], stack_pointer: u32, store: &mut Store<State>) -> Result<(), Errno> {
    let memory: Memory = store.data().memory.ok_or(Errno::NOSYS)?;
    let missing = from.len().saturating_sub(memory.data_size(&*store)) as u64;
    if missing > 0 {
        memory.grow(&mut *store, missing.div_ceil(1 << 16)).map_err(|_| Errno::NOMEM)?;
    }
    let to = memory.data_mut(store);
    let dead_pages = stack_pointer as usize / PAGE;
    for (from, to) in from.chunks(PAGE).zip(to.chunks_mut(PAGE)).skip(dead_pages) {
        if from != to {
            to.copy_from_slice(from);
        }
    }
    Ok(())
}
