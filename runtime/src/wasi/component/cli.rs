//! `wasi:cli`: arguments, environment, standard streams and exit.

use std::sync::Arc;

use abi::Errno;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};

use super::streams::{Input, Output};
use super::{Call, drop_resource, functions, plain};
use crate::process::descriptor::{Object, OpenFile};
use crate::process::{Ended, Fault, State};
use crate::vfs::Device;

/// `terminal-input.terminal-input`.
struct TerminalInput;

/// `terminal-output.terminal-output`. Standard output is never a terminal here.
struct TerminalOutput;

pub(super) fn register(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut environment = linker.instance("wasi:cli/environment@0.2.0")?;
    functions! { environment, plain;
        "get-environment" () => |call| Ok(variables(call));
        "get-arguments" () => |call| Ok(arguments(call));
        "initial-cwd" () => |call| Ok(Some(text(&call.state().cwd)));
    }
    let mut exit = linker.instance("wasi:cli/exit@0.2.0")?;
    exit.func_wrap("exit", |_: StoreContextMut<'_, State>, (status,): (Result<(), ()>,)| -> wasmtime::Result<()> {
        Err(Ended::Exit(u8::from(status.is_err())).into())
    })?;
    exit.func_wrap("exit-with-code", |_: StoreContextMut<'_, State>, (code,): (u8,)| -> wasmtime::Result<()> {
        Err(Ended::Exit(code).into())
    })?;
    standard_streams(linker)
}

fn standard_streams(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut stdin = linker.instance("wasi:cli/stdin@0.2.0")?;
    functions! { stdin, plain;
        "get-stdin" () => |call| call.push(Input::new(standard(call, 0)?));
    }
    let mut stdout = linker.instance("wasi:cli/stdout@0.2.0")?;
    functions! { stdout, plain;
        "get-stdout" () => |call| call.push(Output::new(standard(call, 1)?));
    }
    let mut stderr = linker.instance("wasi:cli/stderr@0.2.0")?;
    functions! { stderr, plain;
        "get-stderr" () => |call| call.push(Output::new(standard(call, 2)?));
    }
    let mut input = linker.instance("wasi:cli/terminal-input@0.2.0")?;
    input.resource("terminal-input", ResourceType::host::<TerminalInput>(), drop_resource::<TerminalInput>)?;
    let mut output = linker.instance("wasi:cli/terminal-output@0.2.0")?;
    output.resource("terminal-output", ResourceType::host::<TerminalOutput>(), drop_resource::<TerminalOutput>)?;
    let mut stdin = linker.instance("wasi:cli/terminal-stdin@0.2.0")?;
    functions! { stdin, plain;
        "get-terminal-stdin" () => |call| terminal(call);
    }
    let mut stdout = linker.instance("wasi:cli/terminal-stdout@0.2.0")?;
    functions! { stdout, plain;
        "get-terminal-stdout" () => |_call| Ok(None::<Resource<TerminalOutput>>);
    }
    let mut stderr = linker.instance("wasi:cli/terminal-stderr@0.2.0")?;
    functions! { stderr, plain;
        "get-terminal-stderr" () => |_call| Ok(None::<Resource<TerminalOutput>>);
    }
    Ok(())
}

// The interface has text only.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn arguments(call: &mut Call<'_>) -> Vec<String> {
    let arguments: Vec<_> = call.state().args.iter().map(|argument| text(argument)).collect();
    call.charge_bytes(arguments.iter().map(String::len).sum());
    arguments
}

fn variables(call: &mut Call<'_>) -> Vec<(String, String)> {
    let pair = |variable: &Vec<u8>| {
        let variable = text(variable);
        let (name, value) = variable.split_once('=').unwrap_or((&variable, ""));
        (name.to_owned(), value.to_owned())
    };
    let variables: Vec<_> = call.state().env.iter().map(pair).collect();
    call.charge_bytes(variables.iter().map(|(name, value)| name.len() + value.len()).sum());
    variables
}

// A closed standard stream is empty and discards everything: the interface has no other word for it.
fn standard(call: &Call<'_>, fd: u32) -> Result<Arc<OpenFile>, Fault> {
    match call.state().descriptors.get(fd) {
        Ok(file) => Ok(Arc::clone(file)),
        Err(Errno::BADF) => Ok(OpenFile::new(Object::Device(Device::Null), true, true, false)),
        Err(errno) => Err(errno.into()),
    }
}

fn terminal(call: &mut Call<'_>) -> Result<Option<Resource<TerminalInput>>, Fault> {
    let file = standard(call, 0)?;
    match &file.object {
        Object::Reader(reader) if reader.is_terminal() => call.push(TerminalInput).map(Some),
        _ => Ok(None),
    }
}
