//! A pre-initialized module: the scientific Python loads its adaptations and libraries once, here, and its memory becomes the
//! data of a new module. A run then starts with everything imported.
//!
//! The interpreter changes nothing besides its memory: its table stays the same, and its one mutable global, the stack pointer,
//! has its initial value again when the entry returns.

use wasmtime::Module;

use super::{Host, Prepared, engine};
use crate::run::Command;
use crate::sandbox::Sandbox;
use crate::{Error, Preset, Python, wasi};

/// Run once, in the module from the package.
const BOOT: &str =
    "exec(compile(open('/usr/lib/sandlite/boot.py', encoding='utf-8').read(), '/usr/lib/sandlite/boot.py', 'exec'))";

/// Runs the adaptations of a guest in its module and returns the resulting module.
pub(super) fn make(host: &Host, guest: &'static guests::Guest, wasm: &[u8]) -> Result<Vec<u8>, Error> {
    // Compiled quickly and without limits, for one run of our own files.
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
