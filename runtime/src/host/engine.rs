//! Engine settings: what guests may use of WebAssembly, and how their memory is laid out.

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy};

use crate::Error;

/// What the engine counts while a guest computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metering {
    /// Fuel and epochs: every limit holds.
    #[default]
    Full,
    /// Epochs alone: the compute limit does not hold.
    #[cfg(feature = "unmetered")]
    Time,
    /// Nothing: a guest that computes for ever cannot be stopped.
    #[cfg(feature = "unmetered")]
    None,
}

/// Native stack for wasm frames. A guest that recurses deeper is ended by a trap; the host's own frames have
/// [`HOST_STACK`] besides (T-DOS-09).
pub(crate) const WASM_STACK: usize = 4 << 20;

/// The same for the scientific Python, whose own limits on recursion were made for this much.
pub(crate) const SCIENTIFIC_STACK: usize = 8 << 20;

/// Native stack for host calls on top of the wasm frames.
const HOST_STACK: usize = 512 << 10;

/// Where guest processes get their memory and stacks. What is compiled for the one runs with the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// So many are laid out when the engine starts, and used again and again.
    Kept(u32),
    /// Each is made for its process: an engine that runs one command starts sooner.
    AsNeeded,
}

/// Guest processes alive at once in one program, over all sandboxes, unless its author says otherwise. Address space, not
/// memory; but each place's stack has a guard page, and a thousand of them take a millisecond to set up.
const PLACES: u32 = 1_000;

impl Default for Places {
    fn default() -> Self {
        Self::Kept(PLACES)
    }
}

/// A linear memory's reservation: all that 32-bit wasm can address, so that no access needs a bounds check.
const MEMORY: usize = 4 << 30;

/// Bytes of a freed slot that are put back in place instead of being given back to the system: a small guest starts without
/// page faults. Where the kernel can tell which pages were touched (`PAGEMAP_SCAN`, Linux 6.7) only those are.
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

/// The engine with the settings above.
pub(super) fn new(places: Places, metering: Metering) -> Result<Engine, Error> {
    Engine::new(&config(places, metering)).map_err(Error::engine("starting with these settings"))
}

/// The engine of the scientific Python, which alone uses exceptions: a proposal that the ordinary guests' engine does not know.
pub(super) fn scientific(metering: Metering) -> Result<Engine, Error> {
    let mut config = with_exceptions();
    config.consume_fuel(metering.counts_fuel()).epoch_interruption(metering.looks_at_the_clock());
    Engine::new(&config).map_err(Error::engine("starting with these settings"))
}

/// An engine that compiles the scientific Python fast, to run it once while it is made ready.
pub(super) fn hasty() -> Result<Engine, Error> {
    let mut config = with_exceptions();
    config.cranelift_opt_level(OptLevel::None);
    Engine::new(&config).map_err(Error::engine("starting with these settings"))
}

/// The settings of the ordinary guests' engine.
pub(super) fn config(places: Places, metering: Metering) -> Config {
    let mut config = common(WASM_STACK);
    config
        .consume_fuel(metering.counts_fuel())
        .epoch_interruption(metering.looks_at_the_clock())
        // On by default in a build that has them for the scientific Python.
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

// Instances are few and large, so they are allotted one by one.
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
        // Guests use what Rust's and CPython's compilers emit and nothing more (T-ISO-01).
        .wasm_relaxed_simd(false)
        .wasm_multi_memory(false)
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
