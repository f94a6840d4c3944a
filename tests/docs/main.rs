//! The pages of the book and the README are true: their commands and programs run and print what is shown, their reference is
//! generated from the code, their links resolve, and their figures are those of the benchmarks.
//!
//! `cargo xtask docs` rewrites the generated files. Python blocks run in `sdk/python/tests/test_book.py`, with the packed wheel.

#[path = "../cli/agree.rs"]
mod agree;
#[rustfmt::skip]
mod blocks;
mod commands;
mod figures;
mod languages;
mod links;
mod page;
mod paths;
mod reference;
mod rust;
#[path = "../support/skipped.rs"]
mod skipped;
