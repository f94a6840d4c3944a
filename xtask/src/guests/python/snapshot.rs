//! A module that has already run: CPython imports our glue once, here, and its memory becomes the new module's data.
//!
//! The interpreter is used as a program: its entry runs a few lines of Python that load the glue, and returns. Tables are
//! never changed by CPython, and its one mutable global (the stack pointer) is back where it was, so memory is all there is
//! to keep.

use wasmi::{Config, Engine, Linker, Module, Store};

use super::stack;
use super::wasi::{World, define};

const ENTRY: &str = "bashkit_run";
const PAGE: usize = 1 << 16;

/// Gaps of this many zeros end a segment: shorter ones cost less as data than as another segment.
const GAP: usize = 64;

// Sections of a module, by their numbers.
const MEMORY: u8 = 5;
const DATA: u8 = 11;
const DATA_COUNT: u8 = 12;

/// Runs the glue in the module and gives the module as it is then.
pub(super) fn take(wasm: &[u8], library: &[u8], glue: &[(String, Vec<u8>)]) -> crate::Fallible<Vec<u8>> {
    let (printed, mut memory) = run(wasm, library, BOOT, "/usr/lib/sandlite", glue)?;
    if !printed.is_empty() {
        return Err(format!("the glue complains:\n{}", String::from_utf8_lossy(&printed)).into());
    }
    stack::widen(&mut memory)?;
    stack::make_visible(&rewrite(wasm, &memory)?)
}

/// Compiles modules to a zip of bytecode that the interpreter can import from.
pub(super) fn compile(wasm: &[u8], library: &[u8], sources: &[(String, Vec<u8>)]) -> crate::Fallible<Vec<u8>> {
    let mut files = sources.to_vec();
    let names: Vec<_> = sources.iter().map(|(name, _)| name.as_str()).collect();
    files.push(("names".to_owned(), names.join("\n").into_bytes()));
    Ok(run(wasm, library, COMPILE, "/more", &files)?.0)
}

// Runs Python code with some files in a directory: what it prints, and its memory afterwards.
fn run(wasm: &[u8], library: &[u8], code: &str, place: &str, files: &[(String, Vec<u8>)]) -> crate::Fallible<(Vec<u8>, Vec<u8>)> {
    let mut config = Config::default();
    config.set_max_recursion_depth(100_000).set_max_stack_height(64 << 20);
    let engine = Engine::new(&config);
    let module = Module::new(&engine, wasm)?;
    let mut world = World::new(vec!["python3".to_owned(), "-c".to_owned(), code.to_owned()]);
    world.add("/usr/local/lib/python314.zip", library);
    for (name, content) in files {
        world.add(&format!("{place}/{name}"), content);
    }
    let mut store = Store::new(&engine, world);
    let mut linker = Linker::new(&engine);
    define(&mut linker, &mut store, &module)?;
    let instance = linker.instantiate_and_start(&mut store, &module)?;
    let status = instance.get_typed_func::<(), i32>(&store, ENTRY)?.call(&mut store, ())?;
    let printed = std::mem::take(&mut store.data_mut().printed);
    if status != 0 {
        return Err(format!("CPython fails (status {status}):\n{}", String::from_utf8_lossy(&printed)).into());
    }
    let memory = instance.get_memory(&store, "memory").ok_or("CPython has no memory")?;
    Ok((printed, memory.data(&store).to_vec()))
}

/// Bytecode that is never checked against its source: the zip does not change.
const COMPILE: &str = "\
import importlib.util, io, sys, zipfile
from importlib._bootstrap_external import _code_to_hash_pyc
with open('/more/names') as file:
    names = file.read().split()
out = io.BytesIO()
with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as archive:
    for name in names:
        with open('/more/' + name, 'rb') as file:
            source = file.read()
        code = compile(source, '/usr/local/lib/python314-more.zip/' + name, 'exec', dont_inherit=True)
        data = _code_to_hash_pyc(code, importlib.util.source_hash(source), False)
        entry = zipfile.ZipInfo(name + 'c', (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data)
sys.stdout.buffer.write(out.getvalue())
";

/// Loads the glue's modules and lets the last of them settle in.
const BOOT: &str = "\
import sys, types
def load(name):
    path = '/usr/lib/sandlite/' + name + '.py'
    with open(path, encoding='utf-8') as file:
        code = compile(file.read(), path, 'exec', dont_inherit=True)
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = path
    exec(code, module.__dict__)
    return module
for name in ('_sandlite', '_sandlite_os', '_sandlite_process', '_sandlite_tools', '_sandlite_modules', '_sandlite_main'):
    module = load(name)
module.settle()
";

fn rewrite(wasm: &[u8], memory: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let (header, mut rest) = wasm.split_at_checked(8).ok_or("not a module")?;
    let mut out = header.to_vec();
    while let Some((&id, after)) = rest.split_first() {
        let (length, after) = read_number(after).ok_or("a cut section")?;
        let (body, after) = after.split_at_checked(length).ok_or("a cut section")?;
        rest = after;
        match id {
            MEMORY => section(&mut out, id, &memory_section(body, memory.len() / PAGE).ok_or("an unknown memory")?),
            DATA => section(&mut out, id, &data_section(memory)),
            DATA_COUNT => return Err("a module with passive data".into()),
            _ => section(&mut out, id, body),
        }
    }
    Ok(out)
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
