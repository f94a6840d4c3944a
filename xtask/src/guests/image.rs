//! A module that has already run: its memory becomes the new module's data.
//!
//! The modules that we make never change a table, and their one mutable global (the stack pointer) is back where it was
//! when a call returns, so memory is all there is to keep.

use wasmi::{Config, Engine, ExternType, Func, Linker, Module, Store};
use wasmparser::{DataKind, Parser, Payload};

/// `abi::PREPARE`.
const PREPARE: &str = "sandlite_prepare";
/// `abi::STACK_POINTER`.
const STACK_POINTER: &str = "__stack_pointer";

const PAGE: usize = 1 << 16;

/// Gaps of this many zeros end a segment: shorter ones cost less as data than as another segment.
const GAP: usize = 64;

// Sections of a module, by their numbers.
const MEMORY: u8 = 5;
const DATA: u8 = 11;
const DATA_COUNT: u8 = 12;

/// Lets a module do the set-up that needs no host, and gives the module as it is then.
pub(super) fn prepare(wasm: &[u8]) -> crate::Fallible<Vec<u8>> {
    let mut config = Config::default();
    config.compilation_mode(wasmi::CompilationMode::Lazy);
    let engine = Engine::new(&config);
    let module = Module::new(&engine, wasm)?;
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    for import in module.imports() {
        let ExternType::Func(shape) = import.ty() else { return Err("the guest imports more than functions".into()) };
        let name = import.name().to_owned();
        let refuse = Func::new(&mut store, shape.clone(), move |_, _, _| {
            Err(wasmi::Error::new(format!("the guest's set-up asks its host for `{name}`: no host is there yet")))
        });
        linker.define(import.module(), import.name(), refuse)?;
    }
    let instance = linker.instantiate_and_start(&mut store, &module)?;
    instance.get_typed_func::<(), ()>(&store, PREPARE)?.call(&mut store, ())?;
    let memory = instance.get_memory(&store, "memory").ok_or("the guest has no memory")?;
    let mut memory = memory.data(&store).to_vec();
    // What the call left on the stack is dead.
    let top = instance.get_global(&store, STACK_POINTER).and_then(|global| global.get(&store).i32()).ok_or("no stack pointer")?;
    memory.get_mut(..usize::try_from(top)?).ok_or("the stack is not in memory")?.fill(0);
    rewrite(wasm, &memory)
}

/// The module with `memory` as its data.
pub(super) fn rewrite(wasm: &[u8], memory: &[u8]) -> crate::Fallible<Vec<u8>> {
    let (header, mut rest) = wasm.split_at_checked(8).ok_or("not a module")?;
    let mut out = header.to_vec();
    while let Some((&id, after)) = rest.split_first() {
        let (length, after) = read_number(after).ok_or("a cut section")?;
        let (body, after) = after.split_at_checked(length).ok_or("a cut section")?;
        rest = after;
        match id {
            MEMORY => section(&mut out, id, &memory_section(body, memory.len() / PAGE).ok_or("an unknown memory")?),
            DATA => section(&mut out, id, &data_section(memory)),
            DATA_COUNT => {
                if !only_active_data(wasm)? {
                    return Err("the module loads data by itself: what it has loaded is not to be seen".into());
                }
                let mut count = Vec::new();
                write_number(&mut count, segments(memory).len());
                section(&mut out, id, &count);
            }
            _ => section(&mut out, id, body),
        }
    }
    Ok(out)
}

fn only_active_data(wasm: &[u8]) -> crate::Fallible<bool> {
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::DataSection(segments) = payload? {
            return segments.into_iter().try_fold(true, |all, data| Ok(all && matches!(data?.kind, DataKind::Active { .. })));
        }
    }
    Ok(true)
}

pub(super) fn section(out: &mut Vec<u8>, id: u8, body: &[u8]) {
    out.push(id);
    write_number(out, body.len());
    out.extend_from_slice(body);
}

// One memory without a maximum, at least as large as it is now.
fn memory_section(body: &[u8], pages: usize) -> Option<Vec<u8>> {
    if body.get(..2)? != [1, 0] {
        return None;
    }
    let mut out = vec![1, 0];
    write_number(&mut out, pages);
    Some(out)
}

fn data_section(memory: &[u8]) -> Vec<u8> {
    let segments = segments(memory);
    let mut out = Vec::new();
    write_number(&mut out, segments.len());
    for (at, bytes) in segments {
        out.push(0);
        out.push(0x41);
        write_signed(&mut out, at as i64);
        out.push(0x0b);
        write_number(&mut out, bytes.len());
        out.extend_from_slice(bytes);
    }
    out
}

// What is not zero, in as few pieces as is sensible.
fn segments(memory: &[u8]) -> Vec<(usize, &[u8])> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(skip) = memory[at..].iter().position(|&byte| byte != 0) {
        let start = at + skip;
        let (mut end, mut zeros) = (start, 0);
        for (index, &byte) in memory.iter().enumerate().skip(start) {
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            if byte != 0 {
                end = index + 1;
            } else if zeros > GAP {
                break;
            }
        }
        found.push((start, &memory[start..end]));
        at = end;
    }
    found
}

fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

pub(super) fn write_number(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn write_signed(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_wasm_has_them() {
        for (value, expected) in [(0, &[0][..]), (127, &[0x7f]), (128, &[0x80, 1]), (640, &[0x80, 5])] {
            let mut out = Vec::new();
            write_number(&mut out, value);
            assert_eq!(out, expected);
            assert_eq!(read_number(&out), Some((value, &[][..])));
        }
        let mut out = Vec::new();
        write_signed(&mut out, 64);
        assert_eq!(out, [0xc0, 0]);
    }

    #[test]
    fn segments_skip_long_runs_of_zeros_only() {
        let mut memory = vec![0; 400];
        (memory[3], memory[5], memory[300]) = (1, 2, 3);
        assert_eq!(segments(&memory), [(3, &[1, 0, 2][..]), (300, &[3][..])]);
    }
}
