//! Engine settings: the WebAssembly features of guests, and the layout of their memory.

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy};

use crate::Error;

/// The resources that the engine meters while a guest computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metering {
    /// Fuel and epochs: every limit is enforced.
    #[default]
    Full,
    /// Only epochs: the compute limit is not enforced.
    #[cfg(feature = "unmetered")]
    Time,
    /// Nothing: a guest that computes forever cannot be stopped.
    #[cfg(feature = "unmetered")]
    None,
}

/// Native stack for wasm frames. A guest that recurses deeper is ended by a trap; the host's own frames additionally have
/// [`HOST_STACK`] (T-DOS-09).
pub(crate) const WASM_STACK: usize = 4 << 20;

/// The same for the scientific Python, whose own recursion limits were designed for this size.
pub(crate) const SCIENTIFIC_STACK: usize = 8 << 20;

/// Native stack for host calls on top of the wasm frames.
const HOST_STACK: usize = 512 << 10;

/// How memory and stacks of guest processes are allocated. Code compiled for one allocation strategy runs with the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// This many slots are allocated when the engine starts, and reused.
    Kept(u32),
    /// Allocated for each process: an engine that runs one command starts faster.
    AsNeeded,
}

/// Default number of concurrent guest processes in one program, over all sandboxes. They take address space, not memory, but each
/// slot's stack has a guard page, and a thousand of them take a millisecond to set up.
const PLACES: u32 = 1_000;

impl Default for Places {
    fn default() -> Self {
        Self::Kept(PLACES)
    }
}

/// The reservation of a linear memory: all that 32-bit wasm can address, so that no access needs a bounds check.
const MEMORY: usize = 4 << 30;

/// Bytes of a freed slot that are reset in place instead of being returned to the system, so that a small guest starts without
/// page faults. If the kernel can report touched pages (`PAGEMAP_SCAN`, Linux 6.7), only those are reset.
const KEEP_RESIDENT: usize = 1 << 20;

impl Metering {
    fn counts_fuel(self) -> bool {
        self == Self::Full
    }

    fn looks_at_the_clock(self) -> bool {
        match self {
            Self::Full => true,
            #[cfg(feature = "unmetered")]
            Self::Time => true,
            #[cfg(feature = "unmetered")]
            Self::None => false,
        }
    }
}

/// Creates the engine with the settings above.
pub(super) fn new(places: Places, metering: Metering) -> Result<Engine, Error> {
    Engine::new(&config(places, metering)).map_err(Error::engine("starting with these settings"))
}

/// Creates the engine of the scientific Python, the only one that supports exceptions.
pub(super) fn scientific(metering: Metering) -> Result<Engine, Error> {
    let mut config = with_exceptions();
    config.consume_fuel(metering.counts_fuel()).epoch_interruption(metering.looks_at_the_clock());
    Engine::new(&config).map_err(Error::engine("starting with these settings"))
}

/// Creates an engine that compiles the scientific Python quickly, to run it once during preparation.
pub(super) fn hasty() -> Result<Engine, Error> {
    let mut config = with_exceptions();
    config.cranelift_opt_level(OptLevel::None);
    Engine::new(&config).map_err(Error::engine("starting with these settings"))
}

/// Returns the settings of the ordinary guests' engine.
pub(super) fn config(places: Places, metering: Metering) -> Config {
    let mut config = common(WASM_STACK);
    config
        .consume_fuel(metering.counts_fuel())
        .epoch_interruption(metering.looks_at_the_clock())
        // Enabled by default in a build that has them for the scientific Python.
        .wasm_exceptions(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .gc_support(false)
        .allocation_strategy(match places {
            Places::Kept(slots) => InstanceAllocationStrategy::Pooling(pool(slots)),
            Places::AsNeeded => InstanceAllocationStrategy::OnDemand,
        });
    config
}

/// Creates the engine of custom components, the only one that knows the component model.
pub(super) fn components(metering: Metering) -> Result<Engine, Error> {
    let mut config = common(WASM_STACK);
    config
        .consume_fuel(metering.counts_fuel())
        .epoch_interruption(metering.looks_at_the_clock())
        .wasm_component_model(true)
        .wasm_exceptions(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .gc_support(false)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand);
    Engine::new(&config).map_err(Error::engine("starting with these settings"))
}

// Instances are few and large, so they are allocated one by one.
fn with_exceptions() -> Config {
    let mut config = common(SCIENTIFIC_STACK);
    config
        .wasm_exceptions(true)
        .wasm_gc(false)
        .wasm_function_references(false)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config
}

fn common(stack: usize) -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        .max_wasm_stack(stack)
        .async_stack_size(stack + HOST_STACK)
        // Only the features that Rust's and CPython's compilers emit (T-ISO-01).
        .wasm_relaxed_simd(false)
        .wasm_multi_memory(false)
        .wasm_component_model(false)
        .wasm_memory64(false)
        .wasm_backtrace_max_frames(None)
        .native_unwind_info(false)
        .generate_address_map(false);
    config
}

fn pool(slots: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_core_instances(slots)
        .total_memories(slots)
        .total_tables(slots)
        .total_stacks(slots)
        .max_memory_size(MEMORY)
        .table_elements(65_536)
        .max_unused_warm_slots(64)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .pagemap_scan(Enabled::Auto)
        .table_keep_resident(KEEP_RESIDENT)
        .async_stack_keep_resident(0);
    pool
}

#[cfg(test)]
mod tests {
    use wasmtime::{Instance, Module, Store};

    use super::*;

    const THROWS: &str = r#"(module
        (tag $t (param i32))
        (func $throws (throw $t (i32.const 42)))
        (func (export "catches") (result i32)
            (block $caught (result i32)
                (try_table (catch $t $caught) (call $throws))
                (i32.const 0))))"#;

    #[test]
    fn only_the_scientific_engine_knows_exceptions() {
        let ordinary = new(Places::AsNeeded, Metering::default()).unwrap();
        assert!(Module::new(&ordinary, wat::parse_str(THROWS).unwrap()).is_err());

        let scientific = scientific(Metering::default()).unwrap();
        let module = Module::new(&scientific, wat::parse_str(THROWS).unwrap()).unwrap();
        let mut store = Store::new(&scientific, ());
        store.set_fuel(1_000).unwrap();
        store.set_epoch_deadline(1);
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let catches = instance.get_typed_func::<(), i32>(&mut store, "catches").unwrap();
        assert_eq!(catches.call(&mut store, ()).unwrap(), 42);
    }
}
