//! Decoding of guest calls: WASI preview1, and the processes of `guests/abi`.
//!
//! Every function here turns guest numbers into checked, bounded Rust values, performs one operation through `process` or `vfs`,
//! and writes the result back. Those modules define the semantics, this one the layout.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod call;
mod clocks;
pub(crate) mod component;
mod door;
mod files;
pub(crate) mod foreign;
mod memory;
mod metadata;
mod paths;
mod poll;
mod processes;
mod register;
mod startup;
mod tools;
mod types;

#[cfg(test)]
pub(crate) use register::tests::PREVIEW1;
pub(crate) use register::{linker, scientific_linker};
