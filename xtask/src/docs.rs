//! `cargo xtask docs`: rewrites the generated pages of the book, which `tests/docs` compares.

use crate::check::RUSTUP;
use crate::run::{cargo, run, step};
use crate::{Outcome, guests};

/// The tests that rewrite a file instead of comparing it.
const GENERATED: [&str; 2] = ["reference::", "rust::the_blocks"];

/// Rewrites `docs/reference` and `tests/docs/blocks.rs`.
pub(crate) fn write() -> Outcome {
    guests::build()?;
    step("writing the reference");
    let mut test = cargo();
    test.args(["test", "--workspace", "--release", "--quiet", "--test", "docs", "--"]).args(GENERATED);
    run(test.env("SANDLITE_BLESS", "1"), RUSTUP)
}
