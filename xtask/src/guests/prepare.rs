//! The shell's image: what it can set up without a host is done here, once.

use wasmi::{Config, Engine, ExternType, Func, Linker, Module, Store};

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
    instance.get_typed_func::<(), ()>(&store, abi::PREPARE)?.call(&mut store, ())?;
    let memory = instance.get_memory(&store, "memory").ok_or("the guest has no memory")?;
    let mut memory = memory.data(&store).to_vec();
    // What the call left on the stack is dead.
    let top =
        instance.get_global(&store, abi::STACK_POINTER).and_then(|global| global.get(&store).i32()).ok_or("no stack pointer")?;
    memory.get_mut(..usize::try_from(top)?).ok_or("the stack is not in memory")?.fill(0);
    Ok(image::with_memory(wasm, &memory)?)
}
