//! `touch`: sets times of files to now or to a given time.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use sys::OpenFlags;

use crate::date;
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, fail, usage, warn};
use crate::quote;

const SPEC: Spec = Spec {
    short: "acd:fhmr:t:",
    long: &[
        ("time", Needs, 'T'),
        ("no-create", No, 'c'),
        ("date", Needs, 'd'),
        ("reference", Needs, 'r'),
        ("no-dereference", No, 'h'),
    ],
    help: "[OPTION]... FILE...",
};

/// Sets access and modification time in nanoseconds since 1970; `None` leaves one as it is.
pub fn set_times(path: &Path, access: Option<i64>, modification: Option<i64>, follow: bool) -> io::Result<()> {
    let times = stamps(access, modification);
    utimensat(CWD, path, &times, if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW }).map_err(io::Error::from)
}

fn stamps(access: Option<i64>, modification: Option<i64>) -> Timestamps {
    // The value that leaves a time unchanged, the same on Linux; wasi-libc's is another.
    let omit = rustix::fs::UTIME_OMIT;
    let time = |nanoseconds: Option<i64>| match nanoseconds {
        Some(value) => Timespec { tv_sec: value.div_euclid(1_000_000_000), tv_nsec: value.rem_euclid(1_000_000_000) as _ },
        None => Timespec { tv_sec: 0, tv_nsec: omit },
    };
    Timestamps { last_access: time(access), last_modification: time(modification) }
}

/// Runs `touch`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let (mut access, mut modification) = (given.has('a'), given.has('m'));
    for (_, word) in given.options.iter().filter(|(letter, _)| *letter == 'T') {
        let choices = [("atime", true), ("access", true), ("use", true), ("mtime", false), ("modify", false)];
        if options::choose("--time", word, &choices)? { access = true } else { modification = true }
    }
    if !access && !modification {
        (access, modification) = (true, true);
    }
    let now = i64::try_from(sys::now_ns()).unwrap_or(i64::MAX);
    let mut times = (now, now);
    if let Some(file) = given.value('r') {
        if given.has('t') {
            return Err(usage("cannot specify times from more than one source"));
        }
        let stat = sys::stat(Path::new(file), !given.has('h'))
            .map_err(|error| fail(format!("failed to get attributes of {}: {}", quote::always(file), sys::message(&error))))?;
        times = (stat.atime, stat.mtime);
    }
    if let Some(text) = given.value('d') {
        if given.has('t') {
            return Err(usage("cannot specify times from more than one source"));
        }
        let from_reference = given.has('r');
        let shown = text.to_string_lossy();
        let read = |base: i64| {
            date::parse(&shown, i128::from(base))
                .and_then(|time| i64::try_from(time).ok())
                .ok_or_else(|| fail(format!("invalid date format {}", quote::plain(text))))
        };
        times = if from_reference {
            (read(times.0)?, read(times.1)?)
        } else {
            let time = read(now)?;
            (time, time)
        };
    }
    if let Some(stamp) = given.value('t') {
        let time = date::parse_stamp(&stamp.to_string_lossy(), sys::now_ns())
            .ok_or_else(|| fail(format!("invalid date format {}", quote::plain(stamp))))?;
        times = (time, time);
    }
    if given.operands.is_empty() {
        return Err(usage("missing file operand"));
    }
    let mut status = 0;
    for file in &given.operands {
        let path = Path::new(file);
        let follow = !given.has('h');
        if file == "-" {
            // Whatever standard output is: only a file has times that anybody will see.
            let times = stamps(access.then_some(times.0), modification.then_some(times.1));
            let _ = rustix::fs::futimens(std::io::stdout(), &times);
            continue;
        }
        if follow && !given.has('c') && sys::stat(path, true).is_err() {
            let flags = OpenFlags { write: true, create: true, ..OpenFlags::default() };
            if let Err(error) = Descriptor::open(path, flags, 0o666) {
                warn(format!("cannot touch {}: {}", quote::always(file), sys::message(&error)));
                status = 1;
                continue;
            }
        }
        if let Err(error) = set_times(path, access.then_some(times.0), modification.then_some(times.1), follow)
            && !(given.has('c') && error.kind() == io::ErrorKind::NotFound)
        {
            let what = if error.kind() == io::ErrorKind::NotFound { "cannot touch" } else { "setting times of" };
            warn(format!("{what} {}: {}", quote::always(file), sys::message(&error)));
            status = 1;
        }
    }
    Ok(status)
}
