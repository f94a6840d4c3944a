//! `mknod` and `mkfifo`: named pipes, the only special files of a sandbox.

use std::io;
use std::path::Path;

use super::mode::{Change, umask};
use crate::options::{self, May, Needs, Spec};
use crate::program::{self, Args, Outcome, bytes, fail, missing_operand, usage, warn};
use crate::quote;

/// Returns the permissions that `-m` asks of a new node: with the mask left out only when they were asked for.
fn node_mode(given: &options::Given) -> Result<Option<u32>, i32> {
    let Some(text) = given.value('m') else { return Ok(None) };
    let text = text.to_string_lossy();
    let change = Change::parse(&text).ok_or_else(|| fail("invalid mode"))?;
    let mode = change.apply(0o666, false, umask());
    if mode & !0o777 != 0 { Err(fail("mode must specify only file permission bits")) } else { Ok(Some(mode)) }
}

fn make_fifo(path: &Path, mode: Option<u32>) -> io::Result<()> {
    sys::mkfifo(path, 0o666)?;
    mode.map_or(Ok(()), |mode| sys::chmod(path, true, mode))
}

/// Runs `mkfifo`.
pub fn mkfifo(args: Args) -> Outcome {
    let spec = Spec { short: "m:Z", long: &[("mode", Needs, 'm'), ("context", May, 'Z')], help: "[OPTION]... NAME..." };
    let given = options::parse(args, &spec)?;
    if given.operands.is_empty() {
        return Err(missing_operand(None));
    }
    let mode = node_mode(&given)?;
    let mut status = 0;
    for name in &given.operands {
        if let Err(error) = make_fifo(Path::new(name), mode) {
            warn(format!("cannot create fifo {}: {}", quote::always(name), sys::message(&error)));
            status = 1;
        }
    }
    Ok(status)
}

/// Runs `mknod`: the sandbox has no devices to name, but pipes.
pub fn mknod(args: Args) -> Outcome {
    let spec =
        Spec { short: "m:Z", long: &[("mode", Needs, 'm'), ("context", May, 'Z')], help: "[OPTION]... NAME TYPE [MAJOR MINOR]" };
    let given = options::parse(args, &spec)?;
    let mode = node_mode(&given)?;
    let [name, kind, numbers @ ..] = given.operands.as_slice() else { return Err(missing_operand(given.operands.last())) };
    let pipe = bytes(kind).starts_with(b"p");
    let wrong = |text: String, also: Option<&str>| {
        warn(text);
        if let Some(also) = also {
            let _ = sys::write_all(2, also.as_bytes());
        }
        program::hint();
        1
    };
    match numbers {
        [extra, rest @ ..] if pipe => {
            let also = (rest.len() == 1).then_some("Fifos do not have major and minor device numbers.\n");
            Err(wrong(format!("extra operand {}", quote::plain(extra)), also))
        }
        [] | [_] if !pipe => {
            let also = numbers.is_empty().then_some("Special files require major and minor device numbers.\n");
            Err(wrong(format!("missing operand after {}", quote::plain(numbers.last().unwrap_or(kind))), also))
        }
        [_, _, extra, ..] => Err(program::extra_operand(extra)),
        _ if pipe => match make_fifo(Path::new(name), mode) {
            Ok(()) => Ok(0),
            Err(error) => Err(fail(format!("{}: {}", quote::maybe(name), sys::message(&error)))),
        },
        _ if matches!(bytes(kind), b"b" | b"c" | b"u") => Err(fail(format!("{}: Operation not permitted", quote::maybe(name)))),
        _ => Err(usage(format!("invalid device type {}", quote::plain(kind)))),
    }
}
