//! `tool`: calls a function that the program around the sandbox offers.

use crate::options::{self, No, Spec};
use crate::program::{self, Args, Outcome, Output, bytes, fail, set_failure, usage};

const SPEC: Spec = Spec {
    short: "+jl",
    long: &[("json", No, 'j'), ("list", No, 'l')],
    help: "NAME [JSON]\n  or:  tool --list [--json]\n\
           Calls a function of the program that runs this sandbox and prints its result as JSON.\n\
           Without JSON the arguments are read from standard input; none are {}.",
};

/// Status when the tool cannot be called: no such tool, or arguments that it does not take.
const NOT_CALLED: i32 = 2;

/// Runs `tool`.
pub fn main(args: Args) -> Outcome {
    set_failure(NOT_CALLED);
    let given = options::parse(args, &SPEC)?;
    let (list, json) = (given.has('l'), given.has('j'));
    match given.operands.as_slice() {
        [] if list => print(&sys::tools(json).map_err(|error| fail(sys::message(&error)))?, json),
        [] => Err(usage("missing the name of a tool (`tool --list` shows them)")),
        [name, rest @ ..] if !list && rest.len() < 2 => {
            let text = match rest.first() {
                Some(text) if text != "-" => bytes(text).to_vec(),
                _ => program::read_all("-".as_ref()).map_err(|error| fail(sys::message(&error)))?,
            };
            call(bytes(name), if text.trim_ascii().is_empty() { b"{}" } else { &text })
        }
        [.., extra] => Err(program::extra_operand(extra)),
    }
}

fn call(name: &[u8], arguments: &[u8]) -> Outcome {
    match sys::tool(name, arguments) {
        Ok(Ok(result)) => print(&result, true),
        Ok(Err(failure)) => {
            let status = fail(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(&failure.message)));
            Err(if failure.kind == b"failed" { 1 } else { status })
        }
        Err(error) => Err(fail(sys::message(&error))),
    }
}

fn print(text: &[u8], end_line: bool) -> Outcome {
    let mut output = Output::new();
    output.put(text);
    if end_line {
        output.byte(b'\n');
    }
    Ok(0)
}
