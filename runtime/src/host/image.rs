//! A module that has already run: the scientific Python loads its glue and its libraries once, here, and its memory becomes
//! the data of a new module. A run then starts with everything imported.
//!
//! What the interpreter changes besides its memory is nothing: its table stays as it is, and its one mutable global, the
//! stack pointer, is back where it was when the entry returns.

use wasmtime::Module;

use super::{Host, Prepared, engine};
use crate::run::Command;
use crate::sandbox::Sandbox;
use crate::{Error, Preset, Python, wasi};

/// Runs once, in the module as its package has it.
const BOOT: &str =
    "exec(compile(open('/usr/lib/sandlite/boot.py', encoding='utf-8').read(), '/usr/lib/sandlite/boot.py', 'exec'))";

/// Runs the glue of a guest in its module and gives the module as it is then.
pub(super) fn make(host: &Host, guest: &'static guests::Guest, wasm: &[u8]) -> Result<Vec<u8>, Error> {
    // Compiled in haste and without limits, for one run of our own files.
    let engine = engine::hasty()?;
    let module = Module::new(&engine, wasm).map_err(Error::engine("compiling a guest"))?;
    let instance = wasi::scientific_linker(&engine)?.instantiate_pre(&module).map_err(Error::engine("linking a guest"))?;
    let prepared = Prepared::guest(instance, guest);
    let sandbox = Sandbox::builder().host(host).preset(Preset::Permissive).python(Python::Scientific).open()?;
    let (output, memory) = sandbox.run_for_memory(Command::python(BOOT).deterministic(0), &prepared)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || memory.is_empty() {
        return Err(Error::Invalid(format!("cannot prepare the scientific Python ({}): {said}", output.status.code())));
    }
    ::image::with_memory(wasm, &memory).map_err(|why| Error::Invalid(format!("cannot prepare the scientific Python: {why}")))
}

#[cfg(test)]
mod tests {
    use wasmtime::{Engine, Instance, Store};

    use super::*;

    const PAGE: usize = 1 << 16;

    #[test]
    fn a_module_starts_with_the_memory_that_it_is_given() {
        let text = "(module (memory (export \"memory\") 1) (data (i32.const 8) \"old\"))";
        let mut memory = vec![0; 3 * PAGE];
        memory[8..11].copy_from_slice(b"new");
        memory[2 * PAGE + 5] = 7;
        let wasm = ::image::with_memory(&wat::parse_str(text).unwrap(), &memory).unwrap();
        let engine = Engine::default();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &Module::new(&engine, wasm).unwrap(), &[]).unwrap();
        assert_eq!(instance.get_memory(&mut store, "memory").unwrap().data(&store), memory);
    }
}
