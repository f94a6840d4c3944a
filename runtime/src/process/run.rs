//! Running a process: a store, an instance, the call, and its outcome.
//!
//! After a trap, a limit or a kill the store is dropped and never entered again (GHSA-2hw9).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use abi::spawn::{Action, NEW_GROUP, Request};
use abi::{Errno, Signal, WaitStatus};
use guests::Entry;
use wasmtime::{AsContextMut, Engine, Instance, Store, StoreContextMut, Trap, UpdateDeadline};

use super::descriptor::Descriptors;
use super::preopen::{directories, preopen};
use super::reaping::let_go;
use super::state::{Start, pay_fuel, settle_fuel};
use super::{Ended, Fault, Job, Pid, Process, State, program, python, report};
use crate::Error;
use crate::host::{Code, Prepared};
use crate::wasi::component::Program;

/// The exit status of a program that exists but cannot be run, as in shells.
const CANNOT_RUN: u8 = 126;

/// A process that is ready to run.
pub(super) enum Image {
    /// A program from its start.
    Program(Box<State>),
    /// A copy of its parent, at the fork entry.
    Fork {
        /// The child's store, its memory filled.
        store: Box<Store<State>>,
        /// The child's instance.
        instance: Instance,
        /// The argument of `fork`.
        closure: u32,
    },
}

/// Starts a program as a child of the process with state `parent`.
pub(crate) fn start(parent: &State, request: &Request) -> Result<Pid, Fault> {
    let mut descriptors = parent.descriptors.clone();
    apply(&mut descriptors, &request.actions)?;
    descriptors.close_for_exec();
    let (prepared, start) = program::find(&parent.job, request)?;
    let process = parent.job.add_process(parent.process.pid, request.flags & NEW_GROUP != 0)?;
    process.reset_caught_dispositions();
    let state = State::new(Arc::clone(&parent.job), process, descriptors, start, parent.umask, prepared);
    on_worker(Image::Program(Box::new(state)))
}

/// Runs a command's first process on the calling thread and returns its outcome.
pub(crate) fn start_first(
    job: &Arc<Job>,
    program: (Prepared, Start),
    descriptors: Descriptors,
    umask: u32,
) -> Result<WaitStatus, Fault> {
    let (prepared, start) = program;
    let process = job.add_process(0, true)?;
    let state = State::new(Arc::clone(job), process, descriptors, start, umask, prepared);
    Ok(run_to_end(Image::Program(Box::new(state))))
}

/// Hands a process to a worker thread.
pub(super) fn on_worker(image: Image) -> Result<Pid, Fault> {
    let (job, pid) = (Arc::clone(&image.state().job), image.state().process.pid);
    let host = job.host.clone();
    host.run_on_worker(move || {
        run_to_end(image);
    })
    .map_err(|_| {
        // No thread is available: the process ends before it starts.
        job.process_ended(pid, WaitStatus::Signaled(Signal::KILL));
        Fault::Errno(Errno::AGAIN)
    })?;
    Ok(pid)
}

impl Image {
    fn state(&self) -> &State {
        match self {
            Self::Program(state) => state,
            Self::Fork { store, .. } => store.data(),
        }
    }
}

// The end is recorded in any case, so that a waiting parent is always woken.
fn run_to_end(image: Image) -> WaitStatus {
    let (job, process) = (Arc::clone(&image.state().job), Arc::clone(&image.state().process));
    process.adopt_thread();
    let begin = || if job.begin_turn(&process) { run(image) } else { Ended::Killed };
    let ended = catch_unwind(AssertUnwindSafe(begin)).unwrap_or(Ended::HostPanic);
    finish(job, process, &ended)
}

/// Records the outcome of a process after all its resources are released.
pub(super) fn finish(job: Arc<Job>, process: Arc<Process>, ended: &Ended) -> WaitStatus {
    let status = match ended {
        Ended::Exit(code) => WaitStatus::Exited(*code),
        Ended::Signal(signal) => WaitStatus::Signaled(*signal),
        Ended::Killed => WaitStatus::Signaled(process.ending_signal().unwrap_or(Signal::KILL)),
        Ended::Limit | Ended::HostPanic | Ended::Exec(_) => WaitStatus::Signaled(Signal::KILL),
    };
    if job.meter.reached().is_some() {
        job.stop();
    }
    let pid = process.pid;
    drop(process);
    job.process_ended(pid, status);
    status
}

// Runs an image and all programs that replace it.
fn run(image: Image) -> Ended {
    let mut ended = match image {
        Image::Fork { mut store, instance, closure } => {
            let ended = call_fork_entry(&mut store, &instance, closure);
            (ended, *store)
        }
        Image::Program(state) => match run_program(*state) {
            Ok(ended) => ended,
            Err(ended) => return ended,
        },
    };
    loop {
        let (Ended::Exec(exec), store) = ended else {
            let_go(ended.1);
            return ended.0;
        };
        let mut state = store.into_data();
        if apply(&mut state.descriptors, &exec.actions).is_err() {
            return Ended::Exit(CANNOT_RUN);
        }
        state.become_program(exec.start.clone(), exec.prepared.clone());
        ended = match run_program(state) {
            Ok(ended) => ended,
            Err(ended) => return ended,
        };
    }
}

fn run_program(state: State) -> Result<(Ended, Store<State>), Ended> {
    let entry = state.prepared.entry;
    let (mut store, instance) = match &state.prepared.code {
        Code::Function(function) => return Err(function.run(&state)),
        Code::Foreign(_) => {
            let mut state = state;
            preopen(&mut state).map_err(|_| Ended::Exit(CANNOT_RUN))?;
            instantiate(state)?
        }
        Code::Component(program) => {
            let program = Arc::clone(program);
            return run_component(state, &program);
        }
        Code::Guest(_) => instantiate(state)?,
    };
    let ended = call_entry(&mut store, &instance, entry).map_or_else(|ended| ended, Ended::Exit);
    Ok((ended, store))
}

fn run_component(state: State, program: &Program) -> Result<(Ended, Store<State>), Ended> {
    directories(&state).map_err(|_| Ended::Exit(CANNOT_RUN))?;
    let job = Arc::clone(&state.job);
    let mut store = store(program.engine(), state)?;
    let instance = match on_own_stack(program.instantiate(&mut store)) {
        Ok(instance) => instance,
        Err(error) => return Err(refused(&mut store, &job, &error)),
    };
    let result = on_own_stack(program.run(&mut store, &instance));
    let ended = meaning(&mut store, None, result);
    Ok((ended, store))
}

/// Calls a guest's entry and returns its status, or the reason it ended.
pub(super) fn call_entry(store: &mut Store<State>, instance: &Instance, entry: Entry) -> Result<u8, Ended> {
    if let (Some(told), Some(memory)) = (store.data().prepared.told, store.data().memory) {
        memory.write(&mut *store, told as usize, &[0]).map_err(|_| Ended::HostPanic)?;
    }
    let result = match entry {
        Entry::Start(name) => instance
            .get_typed_func::<(), ()>(&mut *store, name)
            .and_then(|function| on_own_stack(function.call_async(&mut *store, ())))
            .map(|()| 0),
        Entry::Status(name) => instance
            .get_typed_func::<(), u32>(&mut *store, name)
            .and_then(|function| on_own_stack(function.call_async(&mut *store, ()))),
        Entry::Turn(name) => call_turn(store, instance, name, (0, 0)),
    };
    outcome(store, instance, result)
}

fn call_turn(store: &mut Store<State>, instance: &Instance, name: &str, text: (u32, u32)) -> wasmtime::Result<u32> {
    let function = instance.get_typed_func::<(u32, u32), u32>(&mut *store, name)?;
    on_own_stack(function.call_async(&mut *store, text))
}

/// Calls the entry of a guest that accepts a text.
pub(super) fn call_with_text(store: &mut Store<State>, instance: &Instance, text: &str) -> Result<u8, Ended> {
    let result = give(store, instance, text).and_then(|text| match store.data().prepared.entry {
        Entry::Turn(name) => call_turn(store, instance, name, text),
        Entry::Start(_) | Entry::Status(_) => Err(Ended::HostPanic.into()),
    });
    outcome(store, instance, result)
}

// Writes a text to memory allocated by the guest, and returns its address and length.
fn give(store: &mut Store<State>, instance: &Instance, text: &str) -> wasmtime::Result<(u32, u32)> {
    let length = u32::try_from(text.len())?;
    let allocate = instance.get_typed_func::<u32, u32>(&mut *store, guests::scientific::ALLOCATE)?;
    let place = on_own_stack(allocate.call_async(&mut *store, length))?;
    let memory = store.data().memory.ok_or(Ended::HostPanic)?;
    memory.write(&mut *store, place as usize, text.as_bytes())?;
    Ok((place, length))
}

// The status that an entry returned, or the reason it ended.
fn outcome(store: &mut Store<State>, instance: &Instance, result: wasmtime::Result<u32>) -> Result<u8, Ended> {
    let returned = result.is_ok();
    match meaning(store, Some(instance), result) {
        Ended::Exit(code) if returned => Ok(code),
        ended => Err(ended),
    }
}

fn call_fork_entry(store: &mut Store<State>, instance: &Instance, closure: u32) -> Ended {
    match instance.get_typed_func::<u32, u32>(&mut *store, abi::FORK_ENTRY) {
        Ok(function) => {
            let result = on_own_stack(function.call_async(&mut *store, closure));
            meaning(store, Some(instance), result)
        }
        Err(_) => Ended::Signal(Signal::ABRT),
    }
}

/// Creates a store with its limits, and an instance in it, without running any guest code (R2).
pub(super) fn instantiate(state: State) -> Result<(Store<State>, Instance), Ended> {
    let job = Arc::clone(&state.job);
    let Some(module) = state.prepared.module().cloned() else { return Err(Ended::HostPanic) };
    let mut store = store(module.module().engine(), state)?;
    let instance = match on_own_stack(module.instantiate_async(&mut store)) {
        Ok(instance) => instance,
        Err(error) => return Err(refused(&mut store, &job, &error)),
    };
    let memory = instance.get_memory(&mut store, "memory");
    store.data_mut().memory = memory;
    Ok((store, instance))
}

// A store with its limits.
fn store(engine: &Engine, state: State) -> Result<Store<State>, Ended> {
    let mut store = Store::new(engine, state);
    store.limiter(|state| state);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut store: StoreContextMut<'_, State>| {
        store.data().check_alive()?;
        if store.data().job.is_interrupted(&store.data().process) {
            interrupt(store.as_context_mut());
        }
        pay_fuel(store.as_context_mut())?;
        Ok(UpdateDeadline::Continue(1))
    });
    settle_fuel(store.as_context_mut())?;
    Ok(store)
}

// A guest that cannot be interrupted is ended.
fn interrupt(mut store: StoreContextMut<'_, State>) {
    store.data().job.was_interrupted();
    store.data_mut().interrupted = true;
    let memory = store.data().memory;
    if !memory.is_some_and(|memory| python::interrupt(memory.data_mut(&mut store))) {
        store.data().job.stop();
    }
}

// An instance fails if its memory exceeds the budget, or if no slot is free. Its start function may also end it.
fn refused(store: &mut Store<State>, job: &Job, error: &wasmtime::Error) -> Ended {
    let settled = settle_fuel(store.as_context_mut());
    if let Some(ended) = error.downcast_ref::<Ended>() {
        return ended.clone();
    }
    if settled.is_err() || job.meter.process_died().is_some() {
        return Ended::Limit;
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => trapped(store, None, trap),
        None => Ended::Signal(Signal::KILL),
    }
}

// Guests run on stacks that the engine allocates, with guard pages, so that the caller's own stack size does not matter
// (T-DOS-09). Nothing inside awaits: the first poll is the whole run.
fn on_own_stack<T>(call: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Ended::HostPanic.into()),
    }
}

fn meaning(store: &mut Store<State>, instance: Option<&Instance>, result: wasmtime::Result<u32>) -> Ended {
    let ended = reason(store, instance, result);
    if let Ended::Exit(1..) = ended
        && store.data().memory_refused
    {
        report::memory(store.data());
    }
    ended
}

fn reason(store: &mut Store<State>, instance: Option<&Instance>, result: wasmtime::Result<u32>) -> Ended {
    let settled = settle_fuel(store.as_context_mut());
    let error = match result {
        Ok(code) => return Ended::Exit(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        Err(error) => error,
    };
    if let Some(ended) = error.downcast_ref::<Ended>() {
        return ended.clone();
    }
    if settled.is_err() {
        return Ended::Limit;
    }
    if store.data().job.meter.process_died().is_some() {
        return Ended::Limit;
    }
    match error.downcast_ref::<Trap>() {
        Some(trap) => trapped(store, instance, trap),
        None => Ended::Signal(Signal::SEGV),
    }
}

fn trapped(store: &mut Store<State>, instance: Option<&Instance>, trap: &Trap) -> Ended {
    let no_stack = match trap {
        Trap::OutOfFuel => {
            store.data().job.meter.out_of_fuel();
            return Ended::Limit;
        }
        Trap::UnreachableCodeReached => return Ended::Signal(Signal::ABRT),
        Trap::StackOverflow => true,
        Trap::MemoryOutOfBounds => instance.is_some_and(|instance| has_no_stack_left(store, instance)),
        _ => false,
    };
    if no_stack {
        report::stack(store.data());
    }
    Ended::Signal(Signal::SEGV)
}

// A guest's own stack is at the start of its memory: below it there is nothing, and its pointer wraps around.
fn has_no_stack_left(store: &mut Store<State>, instance: &Instance) -> bool {
    let pointer = instance.get_global(&mut *store, abi::STACK_POINTER).and_then(|pointer| pointer.get(&mut *store).i32());
    pointer.is_some_and(|pointer| pointer < 0)
}

fn apply(descriptors: &mut Descriptors, actions: &[Action]) -> Result<(), Errno> {
    for action in actions {
        match *action {
            Action::Dup { from, fd } => {
                descriptors.duplicate_to(from, fd)?;
                descriptors.set_close_on_exec(fd, false)?;
            }
            Action::Close { fd } => {
                let _ = descriptors.close(fd);
            }
        }
    }
    Ok(())
}

impl From<Error> for Fault {
    fn from(_: Error) -> Self {
        Self::Errno(Errno::AGAIN)
    }
}
