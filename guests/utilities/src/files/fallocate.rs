//! `fallocate`: files of at least a given length. Nothing is reserved: a file takes the space of what is written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, fail};
use crate::size;

const SPEC: Spec = Spec {
    short: "cdil:no:pvxz",
    long: &[
        ("collapse-range", No, 'c'),
        ("dig-holes", No, 'd'),
        ("insert-range", No, 'i'),
        ("length", Needs, 'l'),
        ("keep-size", No, 'n'),
        ("offset", Needs, 'o'),
        ("punch-hole", No, 'p'),
        ("verbose", No, 'v'),
        ("posix", No, 'x'),
        ("zero-range", No, 'z'),
    ],
    help: "[options] <filename>",
};

/// Runs `fallocate`.
pub fn fallocate(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let number = |letter: char, name: &str| {
        let parsed = given.value(letter).map(|text| size::parse(&text.to_string_lossy(), "KkMmGgTtPEZY"));
        parsed.transpose().map_err(|_| fail(format!("invalid {name} value specified")))
    };
    let offset = number('o', "offset")?.unwrap_or(0);
    let length = number('l', "length")?;
    if given.has('c') || given.has('i') {
        return Err(fail("fallocate failed: Operation not supported"));
    }
    let length = match length {
        Some(0) => return Err(fail("invalid length value specified")),
        Some(length) => length,
        None if given.has('d') => 0,
        None => return Err(fail("no length argument specified")),
    };
    let [file] = given.operands.as_slice() else {
        return Err(fail(if given.operands.is_empty() { "no filename specified" } else { "unexpected number of arguments" }));
    };
    let fails = |error: &io::Error| fail(format!("cannot open {}: {}", Path::new(file).display(), sys::message(error)));
    let creates = !['d', 'n', 'p'].into_iter().any(|letter| given.has(letter));
    let mut opened =
        File::options().read(true).write(true).create(creates).truncate(false).open(file).map_err(|error| fails(&error))?;
    let now = opened.metadata().map_err(|error| fails(&error))?.len();
    let end = offset.saturating_add(length);
    let failed = |error: io::Error| fail(format!("fallocate failed: {}", sys::message(&error)));
    if (given.has('p') || given.has('z')) && offset < now {
        opened.seek(SeekFrom::Start(offset)).map_err(failed)?;
        io::copy(&mut io::repeat(0).take(end.min(now) - offset), &mut opened).map_err(failed)?;
    }
    if end > now && !given.has('n') && !given.has('p') && !given.has('d') {
        opened.set_len(end).map_err(failed)?;
    }
    Ok(0)
}
