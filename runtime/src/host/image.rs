//! A module that has already run: the scientific Python loads its glue and its libraries once, here, and its memory becomes
//! the data of a new module. A run then starts with everything imported.
//!
//! What the interpreter changes besides its memory is nothing: its table stays as it is, and its one mutable global, the
//! stack pointer, is back where it was when the entry returns.

use std::sync::Arc;

use wasmtime::Module;

use super::{Host, Prepared, engine};
use crate::sandbox::{Command, Sandbox};
use crate::{Error, Preset, Python, wasi};

/// Runs once, in the module as its package has it.
const BOOT: &str =
    "exec(compile(open('/usr/lib/sandlite/boot.py', encoding='utf-8').read(), '/usr/lib/sandlite/boot.py', 'exec'))";

const PAGE: usize = 1 << 16;

/// Gaps of this many zeros end a segment. The engine takes a hundred thousand segments at most, and lays out whole pages.
const GAP: usize = 4096;

// Sections of a module, by their numbers.
const CUSTOM: u8 = 0;
const MEMORY: u8 = 5;
const DATA: u8 = 11;
const DATA_COUNT: u8 = 12;

/// Runs the glue of a guest in its module and gives the module as it is then.
pub(super) fn make(host: &Host, guest: &'static guests::Guest, wasm: &[u8]) -> Result<Vec<u8>, Error> {
    // Compiled in haste and without limits, for one run of our own files.
    let engine = engine::hasty()?;
    let module = Module::new(&engine, wasm).map_err(Error::engine("compiling a guest"))?;
    let instance = wasi::scientific_linker(&engine)?.instantiate_pre(&module).map_err(Error::engine("linking a guest"))?;
    let prepared = Prepared { instance: Arc::new(instance), guest };
    let sandbox = Sandbox::builder().host(host).preset(Preset::Permissive).python(Python::Scientific).open()?;
    let (output, memory) = sandbox.run_for_memory(Command::python(BOOT).deterministic(0), &prepared)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || memory.is_empty() {
        return Err(Error::Invalid(format!("the scientific Python cannot be made ready ({}): {said}", output.status.code())));
    }
    rewritten(wasm, &memory).ok_or_else(|| Error::Invalid("the scientific Python has a module of an unknown kind".to_owned()))
}

fn rewritten(wasm: &[u8], memory: &[u8]) -> Option<Vec<u8>> {
    let (header, mut rest) = wasm.split_at_checked(8)?;
    let mut out = header.to_vec();
    while let Some((&id, after)) = rest.split_first() {
        let (length, after) = read_number(after)?;
        let (body, after) = after.split_at_checked(length)?;
        rest = after;
        match id {
            MEMORY => section(&mut out, id, &memory_section(body, memory.len() / PAGE)?),
            DATA => section(&mut out, id, &data_section(memory)),
            DATA_COUNT => return None,
            // Names of functions, for debuggers.
            CUSTOM => {}
            _ => section(&mut out, id, body),
        }
    }
    Some(out)
}

fn section(out: &mut Vec<u8>, id: u8, body: &[u8]) {
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
        // Active, in memory 0, at the constant `at`.
        out.extend_from_slice(&[0, 0x41]);
        write_signed(&mut out, at as i64);
        out.push(0x0b);
        write_number(&mut out, bytes.len());
        out.extend_from_slice(bytes);
    }
    out
}

// What is not zero, in as few pieces as is sensible.
fn segments(memory: &[u8]) -> Vec<(usize, &[u8])> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (index, chunk) in memory.chunks(64).enumerate().filter(|(_, chunk)| chunk.iter().any(|&byte| byte != 0)) {
        let (start, end) = (index * 64, index * 64 + chunk.len());
        match found.last_mut() {
            Some((_, last)) if start - *last <= GAP => *last = end,
            _ => found.push((start, end)),
        }
    }
    found.into_iter().filter_map(|(start, end)| Some((start, memory.get(start..end)?))).collect()
}

fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, bytes.get(index + 1..)?));
        }
    }
    None
}

fn write_number(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

fn write_signed(out: &mut Vec<u8>, mut value: i64) {
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
    use wasmtime::{Engine, Instance, Store};

    use super::*;

    #[test]
    fn a_module_starts_with_the_memory_that_it_is_given() {
        let text = "(module (memory (export \"memory\") 1) (data (i32.const 8) \"old\"))";
        let mut memory = vec![0; 3 * PAGE];
        memory[8..11].copy_from_slice(b"new");
        memory[2 * PAGE + 5] = 7;
        let wasm = rewritten(&wat::parse_str(text).unwrap(), &memory).unwrap();
        let engine = Engine::default();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &Module::new(&engine, wasm).unwrap(), &[]).unwrap();
        assert_eq!(instance.get_memory(&mut store, "memory").unwrap().data(&store), memory);
    }

    #[test]
    fn near_pieces_are_one_segment() {
        let mut memory = vec![0; 20_000];
        (memory[3], memory[500], memory[15_000]) = (1, 2, 3);
        let found: Vec<_> = segments(&memory).iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        assert_eq!(found, [(0, 512), (14_976, 64)]);
    }
}
