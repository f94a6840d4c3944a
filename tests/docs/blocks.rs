//! The `rust` blocks of the pages, written by `cargo xtask docs`.

#![allow(unused, reason = "excerpts for people")]

macro_rules! println {
    ($($text:tt)*) => { crate::rust::print(format_args!($($text)*)) };
}

type Done = Result<(), Box<dyn std::error::Error>>;

pub const BLOCKS: [(&str, fn() -> Done); 0] = [
];
