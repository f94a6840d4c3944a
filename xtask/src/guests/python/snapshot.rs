//! A module that has already run: CPython imports our glue once, here, and its memory becomes the new module's data.
//!
//! The interpreter is used as a program: its entry runs a few lines of Python that load the glue, and returns. Tables are
//! never changed by CPython, and its one mutable global (the stack pointer) is back where it was, so memory is all there is
//! to keep.

use wasmi::{Config, Engine, Linker, Module, Store};

use super::stack;
use super::wasi::{World, define};

const ENTRY: &str = "bashkit_run";

/// Runs the glue in the module and gives the module as it is then.
pub(super) fn take(wasm: &[u8], library: &[u8], glue: &[(String, Vec<u8>)]) -> crate::Fallible<Vec<u8>> {
    let (printed, mut memory) = run(wasm, library, BOOT, "/usr/lib/sandlite", glue)?;
    if !printed.is_empty() {
        return Err(format!("the glue complains:\n{}", String::from_utf8_lossy(&printed)).into());
    }
    stack::widen(&mut memory)?;
    stack::make_visible(&image::with_memory(wasm, &memory)?)
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
# The only place to import from here is the library.
sys.path[:] = [path for path in sys.path if path]
def load(name):
    path = '/usr/lib/sandlite/' + name + '.py'
    with open(path, encoding='utf-8') as file:
        code = compile(file.read(), path, 'exec', dont_inherit=True)
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = path
    exec(code, module.__dict__)
    return module
for name in ('_sandlite', '_sandlite_os', '_sandlite_process', '_sandlite_threads', '_sandlite_tools', '_sandlite_modules', '_sandlite_main'):
    module = load(name)
module.settle()
";
