//! WASI 0.2 for components of the owner: the world `wasi:cli/command`, over the same files, clocks, pipes and limits as every
//! other program of the sandbox.
//!
//! All of it is ours, and not `wasmtime-wasi`: its waits do not know the command's deadline, its clocks and random bytes cannot
//! be replayed, and its files are those of the machine. Sockets are linked, because compilers import them, but none can be
//! created (T-ISO-05).

mod cli;
mod clocks;
mod descriptors;
mod paths;
mod poll;
mod sockets;
mod streams;
mod types;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use abi::{Errno, Signal};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre, Linker, Resource, ResourceTableError};
use wasmtime::{AsContextMut, Engine, Store, StoreContextMut};

use super::call::{BASE_FUEL, BYTES_PER_FUEL, leave, settle_for_turns};
use super::foreign::listed;
use crate::Error;
use crate::process::{Ended, Fault, State};

/// The interface of a command, without its version.
const RUN: &str = "wasi:cli/run@0.2.";

/// The prefixes of the provided interfaces.
const PROVIDED: [&str; 6] = ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];

/// Maximum number of streams, pollables and errors that a component can hold: they are memory of the host (T-DOS-03).
const MAX_RESOURCES: usize = 4096;

/// Maximum number of handles in the engine's tables, including those of resources that components define themselves.
const MAX_HANDLES: usize = 16_384;

/// Maximum size of the arguments of one call, in bytes.
const MAX_ARGUMENT_BYTES: usize = 16 << 20;

/// A component that is ready to be started.
pub(crate) struct Program {
    instance: InstancePre<State>,
    run: ComponentExportIndex,
}

impl Program {
    /// Links a component.
    ///
    /// # Errors
    ///
    /// Returns the reason it is rejected: it is not a command, or it imports something unknown.
    pub(crate) fn new(component: &Component) -> Result<Arc<Self>, String> {
        let engine = component.engine();
        let kind = component.component_type();
        let is_known = |name: &str| PROVIDED.iter().any(|known| name.starts_with(known)) && name.contains("@0.2.");
        let unknown: Vec<_> = kind.imports(engine).map(|(name, _)| name).filter(|name| !is_known(name)).collect();
        if !unknown.is_empty() {
            let unknown = listed(unknown.into_iter().map(|name| format!("`{name}`")).collect());
            return Err(format!("unknown imports {unknown}: only `wasi:cli/command@0.2` is provided"));
        }
        let is_run = |item: &ComponentItem| {
            matches!(item, ComponentItem::ComponentInstance(instance)
                if matches!(instance.get_export(engine, "run").map(|export| export.ty), Some(ComponentItem::ComponentFunc(_))))
        };
        let run = kind.exports(engine).find(|(name, export)| name.starts_with(RUN) && is_run(&export.ty)).map(|(name, _)| name);
        let missing = || format!("missing export `{RUN}0`: it is a library, not a command");
        let interface = run.and_then(|name| component.get_export_index(None, name)).ok_or_else(missing)?;
        let run = component.get_export_index(Some(&interface), "run").ok_or_else(missing)?;
        let linker = linker(engine).map_err(|error| format!("{error:#}"))?;
        let instance = linker.instantiate_pre(component).map_err(|error| format!("{error:#}"))?;
        Ok(Arc::new(Self { instance, run }))
    }

    /// Returns the engine that runs it.
    pub(crate) fn engine(&self) -> &Engine {
        self.instance.engine()
    }

    /// Creates an instance in a store. This may run code of the component.
    pub(crate) async fn instantiate(&self, store: &mut Store<State>) -> wasmtime::Result<Instance> {
        store.set_hostcall_fuel(MAX_ARGUMENT_BYTES);
        store.set_max_component_handles(MAX_HANDLES);
        store.data_mut().resources.set_max_capacity(MAX_RESOURCES);
        self.instance.instantiate_async(&mut *store).await
    }

    /// Runs an instance to its end and returns its status.
    pub(crate) async fn run(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<u32> {
        let run = instance.get_typed_func::<(), (Result<(), ()>,)>(&mut *store, self.run)?;
        let (result,) = run.call_async(&mut *store, ()).await?;
        Ok(u32::from(result.is_err()))
    }
}

/// Links every interface of the world.
fn linker(engine: &Engine) -> Result<Linker<State>, Error> {
    let mut linker = Linker::new(engine);
    register(&mut linker).map_err(Error::engine("registering host functions"))?;
    Ok(linker)
}

fn register(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    poll::register(linker)?;
    streams::register(linker)?;
    clocks::register(linker)?;
    cli::register(linker)?;
    descriptors::register(linker)?;
    sockets::register(linker)
}

/// One call of a component.
struct Call<'a> {
    /// The calling process, and the memory of its arguments.
    store: StoreContextMut<'a, State>,
    fuel: u64,
    waited: bool,
}

impl Call<'_> {
    /// Returns the calling process.
    fn state(&self) -> &State {
        self.store.data()
    }

    /// Charges the fuel for moving some bytes.
    fn charge_bytes(&mut self, bytes: usize) {
        self.fuel = self.fuel.saturating_add(bytes as u64 / BYTES_PER_FUEL);
    }

    /// Records that the call may have waited while others ran: the fuel grant is stale.
    fn may_wait(&mut self) {
        self.waited = true;
    }

    /// Gives the component a resource.
    fn push<T: Send + 'static>(&mut self, resource: T) -> Result<Resource<T>, Fault> {
        self.store.data_mut().resources.push(resource).map_err(broken)
    }

    /// Returns a resource of the component.
    fn get<T: Send + 'static>(&self, resource: &Resource<T>) -> Result<&T, Fault> {
        self.state().resources.get(resource).map_err(broken)
    }

    /// Returns a resource of the component, mutably.
    fn get_mut<T: Send + 'static>(&mut self, resource: &Resource<T>) -> Result<&mut T, Fault> {
        self.store.data_mut().resources.get_mut(resource).map_err(broken)
    }
}

// The table is full, or the component broke a rule of the interface: it ends as by a trap.
fn broken(error: ResourceTableError) -> Fault {
    match error {
        ResourceTableError::Full => Ended::Signal(Signal::KILL).into(),
        _ => violation(),
    }
}

/// Returns the fault of a component that breaks a rule of an interface.
fn violation() -> Fault {
    Ended::Signal(Signal::SEGV).into()
}

/// Performs one host call, or ends the component.
fn enter<T>(
    mut store: StoreContextMut<'_, State>,
    body: impl FnOnce(&mut Call<'_>) -> Result<T, Fault>,
) -> wasmtime::Result<Result<T, Errno>> {
    settle_for_turns(store.as_context_mut())?;
    let mut call = Call { store: store.as_context_mut(), fuel: BASE_FUEL, waited: false };
    let result = catch_unwind(AssertUnwindSafe(|| body(&mut call))).unwrap_or(Err(Fault::End(Ended::HostPanic)));
    let (fuel, waited) = (call.fuel, call.waited);
    leave(store, fuel, waited)?;
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Errno(errno)) => Ok(Err(errno)),
        Err(Fault::End(ended)) => Err(ended.into()),
    }
}

/// Returns the result of a function that cannot fail: an errno ends the component.
fn plain<T>(result: Result<T, Errno>) -> wasmtime::Result<T> {
    result.map_err(|_| Ended::Signal(Signal::SEGV).into())
}

/// Removes a resource that the component has dropped.
fn drop_resource<T: Send + 'static>(store: StoreContextMut<'_, State>, number: u32) -> wasmtime::Result<()> {
    let resource = Resource::<T>::new_own(number);
    plain(enter(store, |call| call.store.data_mut().resources.delete(resource).map(drop).map_err(broken))?)
}

// One line per function: its name, its parameters, its result, and the call.
macro_rules! functions {
    ($instance:ident, $convert:path; $($name:literal ($($argument:ident: $kind:ty),*) => |$call:ident| $body:expr;)*) => {
        $($instance.func_wrap($name, |store: wasmtime::StoreContextMut<'_, $crate::process::State>, ($($argument,)*): ($($kind,)*)| {
            let result = $crate::wasi::component::enter(store, |$call| $body)?;
            Ok(($convert(result)?,))
        })?;)*
    };
}
use functions;
