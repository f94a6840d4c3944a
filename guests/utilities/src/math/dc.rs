//! `dc`: the stack calculator. `machine` executes, bc's numbers calculate.

mod machine;

use std::ffi::OsString;

use common::getopt::{self, Item, Long, Spec, Value};

use crate::io::{Input, Out, read_all, show};
use crate::lines::Lines;
use machine::Machine;

const LONG: &[Long] =
    &[("expression", Value::Needs, 'e'), ("file", Value::Needs, 'f'), ("help", Value::No, 'h'), ("version", Value::No, 'V')];

const HELP: &str = "Usage: dc [OPTION] [file ...]
  -e, --expression=EXPR    evaluate expression
  -f, --file=FILE          evaluate contents of file
  -h, --help               display this help and exit
  -V, --version            output version information and exit
";

/// Runs `dc`.
pub fn dc(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let items = match (Spec { short: "e:f:hV", long: LONG }).parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("dc: {message}\n{HELP}");
            return 1;
        }
    };
    let mut machine = Machine::new(Out::new("dc", 1));
    let mut read_any = false;
    // Options are programs in their order; operands follow them, as getopt sorts them.
    let (options, operands): (Vec<Item>, Vec<Item>) = items.into_iter().partition(|item| matches!(item, Item::Opt(..)));
    for item in options.into_iter().chain(operands) {
        let goes_on = match item {
            Item::Opt('e', text) => machine.run(&text.unwrap_or_default()),
            Item::Opt('f', file) => from_file(&mut machine, &file.unwrap_or_default()),
            Item::Operand(file) => from_file(&mut machine, &file),
            Item::Opt('V', _) => {
                println!("dc (GNU bc 1.07.1) 1.4.1");
                return 0;
            }
            Item::Opt(..) => {
                print!("{HELP}\nEmail bug reports to:  bug-dc@gnu.org .\n");
                return 0;
            }
        };
        read_any = true;
        if !goes_on {
            return machine.finish();
        }
    }
    if !read_any {
        from_file(&mut machine, b"-");
    }
    machine.finish()
}

/// Runs a file; whether to go on after it.
fn from_file(machine: &mut Machine, file: &[u8]) -> bool {
    if file == b"-" {
        return from_input(machine);
    }
    match read_all(file) {
        Ok(text) => machine.run(&text),
        Err(_) => {
            machine.complain(&format!("Could not open file {}", show(file)));
            true
        }
    }
}

/// Runs standard input line by line, because `?` reads its lines from there too. A string may go over many lines.
fn from_input(machine: &mut Machine) -> bool {
    machine.input = Some(Lines::new(Input::Stdin, b'\n'));
    let mut pending = Vec::new();
    while let Some(line) = machine.input_line() {
        pending.extend_from_slice(&line);
        if machine::open_brackets(&pending) {
            continue;
        }
        if !machine.run(&std::mem::take(&mut pending)) {
            return false;
        }
    }
    machine.run(&pending)
}
