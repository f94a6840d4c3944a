//! `tail`: the last lines or bytes, everything from a line or byte on, and following a growing file.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, SeekFrom};
use std::path::Path;
use std::time::Duration;

use super::head::{shown, title};
use crate::options::{self, May, Needs, No, Spec};
use crate::program::{Args, BLOCK, Descriptor, Outcome, Output, bytes, fail, open, or_stdin, os, warn};
use crate::quote;
use crate::size;

/// GNU's `tail` is notified of a change at once; ours polls at least this often.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

const SPEC: Spec = Spec {
    short: "c:n:fFqs:vz",
    long: &[
        ("bytes", Needs, 'c'),
        ("lines", Needs, 'n'),
        ("follow", May, 'f'),
        ("retry", No, 'R'),
        ("pid", Needs, 'p'),
        ("quiet", No, 'q'),
        ("silent", No, 'q'),
        ("sleep-interval", Needs, 's'),
        ("max-unchanged-stats", Needs, 'M'),
        ("verbose", No, 'v'),
        ("zero-terminated", No, 'z'),
    ],
    help: "[OPTION]... [FILE]...",
};

#[derive(Clone, Copy)]
struct Amount {
    count: u64,
    lines: bool,
    from_start: bool,
}

/// `-5`, `+5`, `-5c`, `-5f`: the old spelling, made new.
fn modern(mut args: Args) -> Args {
    let Some(first) = args.get(1).map(|arg| bytes(arg).to_vec()) else { return args };
    let digits = first.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let sign = first.first().copied().unwrap_or(0);
    if !matches!(sign, b'-' | b'+') || (digits == 0 && (sign == b'-' || first.len() == 1)) || args.len() > 3 {
        return args;
    }
    let (mut unit, mut scale, mut follow) = (b'n', &b""[..], false);
    for &letter in &first[digits + 1..] {
        match letter {
            b'c' => unit = b'c',
            b'b' => (unit, scale) = (b'c', b"b"),
            b'l' => unit = b'n',
            b'f' => follow = true,
            _ => return args,
        }
    }
    let number = if digits == 0 { &b"10"[..] } else { &first[1..=digits] };
    let plus: &[u8] = if sign == b'+' { b"+" } else { b"" };
    args[1] = os([&[b'-', unit], plus, number, scale].concat());
    if follow {
        args.insert(2, "-f".into());
    }
    args
}

struct Following {
    by_name: bool,
    retry: bool,
    interval: Duration,
    pid: Option<i32>,
}

/// Runs `tail`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(modern(args), &SPEC)?;
    let mut amount = Amount { count: 10, lines: true, from_start: false };
    let (mut quiet, mut verbose, mut delimiter, mut follow) = (false, false, b'\n', false);
    let mut following = Following { by_name: false, retry: false, interval: Duration::from_secs(1), pid: None };
    for (letter, value) in &given.options {
        match letter {
            'c' | 'n' => amount = parse_amount(*letter == 'n', value)?,
            'f' => {
                follow = true;
                following.by_name =
                    !value.is_empty() && options::choose("--follow", value, &[("descriptor", false), ("name", true)])?;
            }
            'F' => (follow, following.by_name, following.retry) = (true, true, true),
            'R' => following.retry = true,
            'q' => (quiet, verbose) = (true, false),
            'v' => (quiet, verbose) = (false, true),
            'z' => delimiter = 0,
            's' => {
                let span = value
                    .to_str()
                    .and_then(|text| text.parse().ok())
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                following.interval = span.ok_or_else(|| fail(format!("invalid number of seconds: {}", quote::plain(value))))?;
            }
            'p' => {
                let pid = value.to_str().and_then(|text| text.parse().ok());
                following.pid = Some(pid.ok_or_else(|| fail(format!("invalid PID: {}", quote::plain(value))))?);
            }
            _ => {}
        }
    }
    let files = or_stdin(given.operands);
    let titles = verbose || (files.len() > 1 && !quiet);
    let mut out = Output::new();
    let (mut status, mut first) = (0, true);
    let mut followed = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let input = match open(file) {
            Ok(input) => input,
            Err(error) => {
                warn(format!("cannot open {} for reading: {}", quote::always(file), sys::message(&error)));
                status = 1;
                if follow && following.retry {
                    followed.push((index, None));
                }
                continue;
            }
        };
        if titles {
            title(file, &mut first, &mut out);
        }
        if let Err(error) = copy(&input, amount, delimiter, &mut out) {
            out.send();
            warn(format!("error reading {}: {}", quote::always(shown(file)), sys::message(&error)));
            status = 1;
            continue;
        }
        followed.push((index, Some(input)));
    }
    if follow {
        out.send();
        status |= watch(&files, followed, &following, titles, &mut out);
    }
    Ok(status)
}

fn parse_amount(lines: bool, value: &OsString) -> Result<Amount, i32> {
    let text = value.to_string_lossy();
    let (from_start, digits) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => (false, text.as_ref()),
    };
    match size::parse(digits, size::SUFFIXES) {
        Ok(count) if digits.starts_with(|c: char| c.is_ascii_digit()) => Ok(Amount { count, lines, from_start }),
        Err(size::Trouble::Overflow) => Ok(Amount { count: u64::MAX, lines, from_start }),
        _ => Err(fail(format!("invalid number of {}: {}", if lines { "lines" } else { "bytes" }, quote::plain(digits)))),
    }
}

fn rest(input: &Descriptor, out: &mut Output) -> io::Result<bool> {
    let mut input = Descriptor::inherited(input.fd());
    let mut buffer = vec![0; BLOCK];
    let mut any = false;
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(any),
            Ok(n) => {
                any = true;
                out.put(&buffer[..n]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn copy(input: &Descriptor, amount: Amount, delimiter: u8, out: &mut Output) -> io::Result<()> {
    if amount.from_start {
        return from_start(input, amount, delimiter, out);
    }
    if amount.count == 0 {
        // Still an error for what cannot be read.
        if input.stat().is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR) {
            return Err(io::Error::from_raw_os_error(sys::errno::EISDIR));
        }
        if input.stat().is_ok_and(|stat| stat.kind() == sys::stat::S_IFREG) {
            let _ = seek(input, SeekFrom::End(0));
        }
        return Ok(());
    }
    let stat = input.stat()?;
    if stat.kind() == sys::stat::S_IFREG
        && let Ok(start) = sys::seek_current(input.fd(), 0)
        && stat.size.saturating_sub(start) > BLOCK as u64
    {
        let from = if amount.lines {
            line_start(input, start, stat.size, amount.count, delimiter)?
        } else {
            stat.size.saturating_sub(amount.count).max(start)
        };
        seek(input, SeekFrom::Start(from))?;
        return rest(input, out).map(drop);
    }
    let all = held(input, amount)?;
    let from = if amount.lines {
        last_lines(&all, amount.count, delimiter)
    } else {
        all.len().saturating_sub(usize::try_from(amount.count).unwrap_or(usize::MAX))
    };
    out.put(&all[from..]);
    Ok(())
}

fn seek(input: &Descriptor, to: SeekFrom) -> io::Result<u64> {
    let now = sys::seek_current(input.fd(), 0)?;
    let size = input.stat()?.size;
    let target = match to {
        SeekFrom::Start(at) => at,
        SeekFrom::End(delta) => size.saturating_add_signed(delta),
        SeekFrom::Current(delta) => now.saturating_add_signed(delta),
    };
    sys::seek_current(input.fd(), target.cast_signed() - now.cast_signed())
}

/// Reads everything, forgetting what can no longer matter when bytes are counted.
fn held(input: &Descriptor, amount: Amount) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    if amount.lines {
        sys::read_to_end(input.fd(), &mut all)?;
        return Ok(all);
    }
    let keep = usize::try_from(amount.count).unwrap_or(usize::MAX);
    let mut buffer = vec![0; BLOCK];
    loop {
        let n = Descriptor::inherited(input.fd()).read(&mut buffer)?;
        if n == 0 {
            return Ok(all);
        }
        all.extend_from_slice(&buffer[..n]);
        if all.len() > keep.saturating_mul(2).saturating_add(BLOCK) {
            all.drain(..all.len() - keep);
        }
    }
}

/// Returns where the last `count` lines begin.
fn last_lines(all: &[u8], count: u64, delimiter: u8) -> usize {
    let body = all.strip_suffix(&[delimiter]).unwrap_or(all);
    let mut left = count;
    for at in memchr::memrchr_iter(delimiter, body) {
        left -= 1;
        if left == 0 {
            return at + 1;
        }
    }
    0
}

/// Returns where the last `count` lines of a long file begin, looking from its end.
fn line_start(input: &Descriptor, start: u64, size: u64, count: u64, delimiter: u8) -> io::Result<u64> {
    let mut buffer = vec![0; BLOCK];
    let (mut end, mut left) = (size, count);
    while end > start {
        let begin = end.saturating_sub(BLOCK as u64).max(start);
        seek(input, SeekFrom::Start(begin))?;
        let want = usize::try_from(end - begin).unwrap_or(BLOCK);
        let n = Descriptor::inherited(input.fd()).fill(&mut buffer[..want])?;
        let mut slice = &buffer[..n];
        if end == size {
            slice = slice.strip_suffix(&[delimiter]).unwrap_or(slice);
        }
        for at in memchr::memrchr_iter(delimiter, slice) {
            left -= 1;
            if left == 0 {
                return Ok(begin + at as u64 + 1);
            }
        }
        end = begin;
    }
    Ok(start)
}

fn from_start(input: &Descriptor, amount: Amount, delimiter: u8, out: &mut Output) -> io::Result<()> {
    let mut skip = amount.count.saturating_sub(1);
    let mut buffer = vec![0; BLOCK];
    while skip > 0 {
        let n = Descriptor::inherited(input.fd()).read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        let mut from = n;
        if amount.lines {
            for at in memchr::memchr_iter(delimiter, &buffer[..n]) {
                skip -= 1;
                if skip == 0 {
                    from = at + 1;
                    break;
                }
            }
        } else {
            from = usize::try_from(skip).unwrap_or(n).min(n);
            skip -= from as u64;
        }
        out.put(&buffer[from..n]);
    }
    rest(input, out).map(drop)
}

fn watch(
    files: &[OsString],
    mut followed: Vec<(usize, Option<Descriptor>)>,
    following: &Following,
    titles: bool,
    out: &mut Output,
) -> i32 {
    let mut last = followed.last().map(|(index, _)| *index);
    let mut positions: Vec<u64> = followed
        .iter()
        .map(|(_, input)| input.as_ref().and_then(|input| sys::seek_current(input.fd(), 0).ok()).unwrap_or(0))
        .collect();
    loop {
        let alive = following.pid.is_none_or(|pid| sys::kill(pid, None).is_ok());
        let mut grew = false;
        for ((index, slot), position) in followed.iter_mut().zip(&mut positions) {
            let file = &files[*index];
            refresh(file, slot, position, following);
            let Some(input) = slot else { continue };
            if let Ok(stat) = input.stat()
                && stat.kind() == sys::stat::S_IFREG
            {
                if stat.size < *position {
                    warn(format!("{}: file truncated", quote::maybe(file)));
                    let _ = seek(input, SeekFrom::Start(0));
                    *position = 0;
                }
                if stat.size == *position {
                    continue;
                }
            }
            if titles && last != Some(*index) {
                title(file, &mut false, out);
            }
            last = Some(*index);
            match rest(input, out) {
                Ok(any) => grew |= any,
                Err(_) => *slot = None,
            }
            if let Some(input) = slot {
                *position = sys::seek_current(input.fd(), 0).unwrap_or(*position);
                if input.fd() == 0 && input.stat().is_ok_and(|stat| stat.kind() != sys::stat::S_IFREG) {
                    *slot = None;
                }
            }
        }
        out.send();
        if followed.iter().all(|(_, input)| input.is_none()) && !following.retry {
            let only_stdin = followed.iter().all(|(index, _)| files[*index] == "-");
            return if only_stdin && !followed.is_empty() { 0 } else { fail("no files remaining") };
        }
        if !alive {
            return 0;
        }
        if !grew {
            std::thread::sleep(following.interval.clamp(Duration::from_millis(10), LONGEST_WAIT));
        }
    }
}

/// With `--follow=name`, another file may bear the name by now.
fn refresh(file: &OsStr, slot: &mut Option<Descriptor>, position: &mut u64, following: &Following) {
    if !following.by_name || file == "-" {
        return;
    }
    let there = sys::stat(Path::new(file), true).ok();
    let here = slot.as_ref().and_then(|input| input.stat().ok());
    match (there, here) {
        (None, Some(_)) => {
            warn(format!("{} has become inaccessible: No such file or directory", quote::always(file)));
            *slot = None;
        }
        (Some(there), here) if here.is_none_or(|here| (here.dev, here.ino) != (there.dev, there.ino)) => {
            if let Ok(input) = open(file) {
                let word = if here.is_some() { "has been replaced" } else { "has appeared" };
                warn(format!("{} {word};  following new file", quote::always(file)));
                *slot = Some(input);
                *position = 0;
            }
        }
        _ => {}
    }
}
