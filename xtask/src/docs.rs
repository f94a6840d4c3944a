//! `cargo xtask docs`: rewrites the generated pages of the book and quoted figures, which `tests/docs` compares.

use crate::check::RUSTUP;
use crate::run::{cargo, run, step};
use crate::{Outcome, guests};

/// The tests that rewrite a file instead of comparing it.
const GENERATED: [&str; 3] = ["reference::", "rust::the_blocks", "figures::quoted"];

/// Rewrites `docs/reference`, `tests/docs/blocks.rs` and the figures that pages quote from the benchmarks.
pub(crate) fn write() -> Outcome {
    guests::build()?;
    step("writing the reference");
    let mut test = cargo();
    test.args(["test", "--workspace", "--release", "--quiet", "--test", "docs", "--"]).args(GENERATED);
    run(test.env("SANDLITE_BLESS", "1"), RUSTUP)
}
