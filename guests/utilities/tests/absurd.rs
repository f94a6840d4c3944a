//! T-DOS-03, T-DOS-10: no utility panics or lies, whatever numbers it is given and whenever memory is refused.

#![cfg(unix)]

#[path = "absurd/runner.rs"]
mod runner;

use runner::Suite;

fn names() -> Vec<&'static str> {
    utilities::names().iter().copied().filter(|name| utilities::absent(name).is_none()).collect()
}

fn suite() -> Suite {
    Suite::new("utilities-multicall", &names(), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/absurd"))
}

#[test]
fn t_dos_10_absurd_numbers_are_refused_or_obeyed() {
    suite().numbers();
}

#[test]
fn t_dos_03_refused_memory_is_a_failure() {
    let suite = suite();
    suite.covers(&names());
    suite.memory();
}
