//! A bash.

pub mod arith;
pub mod ast;
pub mod brace;
pub mod bytes;
pub mod pattern;
pub mod print;
pub mod quote;
pub mod syntax;
