//! T-DOS-03, T-DOS-10: no utility panics or lies, whatever numbers it is given and whenever memory is refused.

#![cfg(unix)]

#[path = "../../utilities/tests/absurd/runner.rs"]
mod runner;

use runner::Suite;

fn suite() -> Suite {
    Suite::new("text-multicall", text::names(), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/absurd"))
}

#[test]
fn t_dos_10_absurd_numbers_are_refused_or_obeyed() {
    suite().numbers();
}

#[test]
fn t_dos_03_refused_memory_is_a_failure() {
    let suite = suite();
    suite.covers(text::names());
    suite.memory();
}
