//! `wasi:io/streams` and `wasi:io/error`: the open files of the process as streams. Nothing is buffered here: a write has arrived
//! when its call returns.

use std::sync::Arc;

use abi::Errno;
use wasmtime::component::{Linker, Resource, ResourceType, WasmList};

use super::poll::Pollable;
use super::types::StreamError;
use super::{Call, drop_resource, functions, plain, violation};
use crate::process::descriptor::{Object, OpenFile};
use crate::process::{Fault, State};
use crate::wasi::memory::MAX_IO_BYTES;

/// Maximum number of bytes of one read or write.
const PIECE: usize = MAX_IO_BYTES as usize;

/// `error.error`: the reason a stream failed.
#[derive(Debug)]
pub(super) struct Failure(pub(super) Errno);

/// `streams.input-stream`.
#[derive(Clone, Debug)]
pub(super) struct Input {
    file: Arc<OpenFile>,
    offset: Option<u64>,
}

/// `streams.output-stream`.
#[derive(Clone, Debug)]
pub(super) struct Output {
    file: Arc<OpenFile>,
    offset: Option<u64>,
}

impl Input {
    /// Reads at the position of an open file.
    pub(super) fn new(file: Arc<OpenFile>) -> Self {
        Self { file, offset: None }
    }

    /// Reads from an offset on.
    pub(super) fn at(file: Arc<OpenFile>, offset: u64) -> Self {
        Self { file, offset: Some(offset) }
    }
}

impl Output {
    /// Writes at the position of an open file.
    pub(super) fn new(file: Arc<OpenFile>) -> Self {
        Self { file, offset: None }
    }

    /// Writes from an offset on.
    pub(super) fn at(file: Arc<OpenFile>, offset: u64) -> Self {
        Self { file, offset: Some(offset) }
    }
}

/// The result of a stream's function.
type Streamed<T> = Result<Result<T, StreamError>, Fault>;

pub(super) fn register(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut error = linker.instance("wasi:io/error@0.2.0")?;
    error.resource("error", ResourceType::host::<Failure>(), drop_resource::<Failure>)?;
    functions! { error, plain;
        "[method]error.to-debug-string" (error: Resource<Failure>) => |call| Ok(call.get(&error)?.0.message().to_owned());
    }
    let mut streams = linker.instance("wasi:io/streams@0.2.0")?;
    streams.resource("input-stream", ResourceType::host::<Input>(), drop_resource::<Input>)?;
    streams.resource("output-stream", ResourceType::host::<Output>(), drop_resource::<Output>)?;
    functions! { streams, plain;
        "[method]input-stream.read" (input: Resource<Input>, length: u64) => |call| streamed(call, |call| read(call, &input, length, false));
        "[method]input-stream.blocking-read" (input: Resource<Input>, length: u64) => |call| streamed(call, |call| read(call, &input, length, true));
        "[method]input-stream.skip" (input: Resource<Input>, length: u64) => |call| streamed(call, |call| skip(call, &input, length, false));
        "[method]input-stream.blocking-skip" (input: Resource<Input>, length: u64) => |call| streamed(call, |call| skip(call, &input, length, true));
        "[method]input-stream.subscribe" (input: Resource<Input>) => |call| { let file = Arc::clone(&call.get(&input)?.file); call.push(Pollable::File(file, false)) };
        "[method]output-stream.check-write" (output: Resource<Output>) => |call| streamed(call, |call| room(call, &output));
        "[method]output-stream.write" (output: Resource<Output>, bytes: WasmList<u8>) => |call| streamed(call, |call| write_list(call, &output, &bytes));
        "[method]output-stream.blocking-write-and-flush" (output: Resource<Output>, bytes: WasmList<u8>) => |call| streamed(call, |call| write_list(call, &output, &bytes));
        "[method]output-stream.flush" (output: Resource<Output>) => |call| streamed(call, |call| call.get(&output).map(|_| ()));
        "[method]output-stream.blocking-flush" (output: Resource<Output>) => |call| streamed(call, |call| call.get(&output).map(|_| ()));
        "[method]output-stream.subscribe" (output: Resource<Output>) => |call| { let file = Arc::clone(&call.get(&output)?.file); call.push(Pollable::File(file, true)) };
        "[method]output-stream.write-zeroes" (output: Resource<Output>, length: u64) => |call| streamed(call, |call| write_zeroes(call, &output, length));
        "[method]output-stream.blocking-write-zeroes-and-flush" (output: Resource<Output>, length: u64) => |call| streamed(call, |call| write_zeroes(call, &output, length));
        "[method]output-stream.splice" (output: Resource<Output>, input: Resource<Input>, length: u64) => |call| streamed(call, |call| splice(call, &output, &input, length, false));
        "[method]output-stream.blocking-splice" (output: Resource<Output>, input: Resource<Input>, length: u64) => |call| streamed(call, |call| splice(call, &output, &input, length, true));
    }
    Ok(())
}

// A stream that ended or has no reader is closed; every other failure is an error that the component can inspect.
fn streamed<T>(call: &mut Call<'_>, body: impl FnOnce(&mut Call<'_>) -> Result<T, Fault>) -> Streamed<T> {
    match body(call) {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Errno(Errno::PIPE)) => Ok(Err(StreamError::Closed)),
        Err(Fault::Errno(errno)) => Ok(Err(StreamError::Failed(call.push(Failure(errno))?))),
        Err(ended) => Err(ended),
    }
}

// Reads some bytes. None are there if the stream would wait and must not.
fn read(call: &mut Call<'_>, input: &Resource<Input>, length: u64, blocking: bool) -> Result<Vec<u8>, Fault> {
    let Input { file, offset } = call.get(input)?.clone();
    let length = usize::try_from(length).unwrap_or(PIECE).min(PIECE);
    if length == 0 || !blocking && file.ready(false).is_none() {
        return Ok(Vec::new());
    }
    if matches!(file.object, Object::Reader(_) | Object::Both(..)) {
        call.may_wait();
    }
    let state = call.state();
    let mut bytes = vec![0; length];
    let read = match offset {
        Some(offset) => file.read_at(&state.job, offset, &mut bytes)?,
        None => file.read(&state.job, &state.process, &mut bytes)?,
    };
    if read == 0 {
        return Err(Errno::PIPE.into());
    }
    bytes.truncate(read);
    call.charge_bytes(read);
    if let Some(offset) = &mut call.get_mut(input)?.offset {
        *offset = offset.saturating_add(read as u64);
    }
    Ok(bytes)
}

fn skip(call: &mut Call<'_>, input: &Resource<Input>, length: u64, blocking: bool) -> Result<u64, Fault> {
    Ok(read(call, input, length, blocking)?.len() as u64)
}

fn room(call: &mut Call<'_>, output: &Resource<Output>) -> Result<u64, Fault> {
    Ok(call.get(output)?.file.ready(true).unwrap_or(0))
}

fn write_list(call: &mut Call<'_>, output: &Resource<Output>, bytes: &WasmList<u8>) -> Result<(), Fault> {
    let written = put(call.state(), call.get(output)?, bytes.as_le_slice(&call.store))?;
    wrote(call, output, written)
}

fn write_zeroes(call: &mut Call<'_>, output: &Resource<Output>, length: u64) -> Result<(), Fault> {
    let length = usize::try_from(length).ok().filter(|length| *length <= PIECE).ok_or_else(violation)?;
    let written = put(call.state(), call.get(output)?, &vec![0; length])?;
    wrote(call, output, written)
}

fn splice(
    call: &mut Call<'_>,
    output: &Resource<Output>,
    input: &Resource<Input>,
    length: u64,
    blocking: bool,
) -> Result<u64, Fault> {
    let room = call.get(output)?.file.ready(true);
    let length = if blocking { length } else { length.min(room.unwrap_or(0)) };
    let bytes = read(call, input, length, blocking)?;
    let written = put(call.state(), call.get(output)?, &bytes)?;
    wrote(call, output, written)?;
    Ok(written as u64)
}

// Writes everything, waiting for the reader of a pipe if necessary.
fn put(state: &State, output: &Output, bytes: &[u8]) -> Result<usize, Fault> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        state.check_alive()?;
        let piece = rest.get(..PIECE).unwrap_or(rest);
        let written = match output.offset {
            Some(offset) => output.file.write_at(&state.job, offset.saturating_add(done as u64), piece)?,
            None => output.file.write(&state.job, &state.process, piece)?,
        };
        if written == 0 {
            return Err(Errno::INTR.into());
        }
        done += written;
    }
    Ok(done)
}

fn wrote(call: &mut Call<'_>, output: &Resource<Output>, written: usize) -> Result<(), Fault> {
    call.charge_bytes(written);
    if matches!(call.get(output)?.file.object, Object::Writer(_) | Object::Both(..) | Object::Capture(_)) {
        call.may_wait();
    }
    if let Some(offset) = &mut call.get_mut(output)?.offset {
        *offset = offset.saturating_add(written as u64);
    }
    Ok(())
}
