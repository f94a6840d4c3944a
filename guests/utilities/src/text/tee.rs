//! `tee`: one input, many outputs.

use std::io::Read;

use sys::OpenFlags;

use crate::options::{self, May, No, Spec};
use crate::program::{Args, BLOCK, Descriptor, Outcome, fail, warn, warn_file};
use crate::quote;

/// Runs `tee`.
pub fn main(args: Args) -> Outcome {
    let spec = Spec {
        short: "aip",
        long: &[("append", No, 'a'), ("ignore-interrupts", No, 'i'), ("output-error", May, 'o')],
        help: "[OPTION]... [FILE]...",
    };
    let given = options::parse(args, &spec)?;
    let mut stop = false;
    let mut keep_pipes = given.has('p');
    if let Some(mode) = given.value('o') {
        keep_pipes = true;
        if !mode.is_empty() {
            stop = options::choose("--output-error", mode, &[("warn", 0), ("warn-nopipe", 1), ("exit", 2), ("exit-nopipe", 3)])?
                >= 2;
        }
    }
    if given.has('i') {
        let _ = sys::signal_action(sys::Signal::INT, sys::Disposition::Ignore);
    }
    if keep_pipes {
        let _ = sys::signal_action(sys::Signal::PIPE, sys::Disposition::Ignore);
    }
    let append = given.has('a');
    let mut status = 0;
    let mut outputs = vec![(None, Some(Descriptor::inherited(1)))];
    for file in &given.operands {
        let flags = OpenFlags { write: true, create: true, append, truncate: !append, ..OpenFlags::default() };
        match Descriptor::open(file, flags, 0o666) {
            Ok(output) => outputs.push((Some(file), Some(output))),
            Err(error) => {
                warn_file(file, &error);
                status = 1;
            }
        }
    }
    let mut input = Descriptor::inherited(0);
    let mut buffer = vec![0; BLOCK];
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                status = fail(format!("read error: {}", sys::message(&error)));
                break;
            }
        };
        for (file, slot) in &mut outputs {
            let Some(output) = slot else { continue };
            let Err(error) = sys::write_all(output.fd(), &buffer[..n]) else { continue };
            let quiet = keep_pipes && error.raw_os_error() == Some(sys::errno::EPIPE);
            if !quiet {
                warn(format!(
                    "{}: {}",
                    file.map_or_else(|| "'standard output'".into(), |file| quote::maybe(file)),
                    sys::message(&error)
                ));
                status = 1;
                if stop {
                    return Err(1);
                }
            }
            *slot = None;
        }
        if outputs.iter().all(|(_, slot)| slot.is_none()) {
            break;
        }
    }
    Ok(status)
}
