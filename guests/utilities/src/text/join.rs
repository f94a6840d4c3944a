//! `join`: lines of two files with a field in common. The work is done by uutils; its operands are counted here, in GNU's words.

use crate::options::{self, No, Spec};
use crate::program::{self, Args, Outcome};
use crate::uutils;

const SPEC: Spec = Spec {
    short: "a:e:i1:2:j:o:t:v:z",
    long: &[
        ("ignore-case", No, 'i'),
        ("check-order", No, 'c'),
        ("nocheck-order", No, 'n'),
        ("header", No, 'h'),
        ("zero-terminated", No, 'z'),
    ],
    help: "",
};

/// Runs `join`.
pub fn main(args: Args) -> Outcome {
    if !uutils::asks(&args) {
        let given = options::parse(args.clone(), &SPEC)?;
        match given.operands.as_slice() {
            [_, _] => {}
            [_, _, extra, ..] => return Err(program::usage(format!("extra operand '{}'", extra.to_string_lossy()))),
            few => return Err(program::missing_operand(few.last())),
        }
    }
    uutils::run(args, "join", &SPEC, uu_join::uumain)
}
