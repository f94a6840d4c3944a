//! `truncate`: files of a given size.

use std::io;
use std::path::Path;

use sys::OpenFlags;

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, fail, usage, warn};
use crate::quote;
use crate::size;

/// Runs `truncate`.
pub fn truncate(args: Args) -> Outcome {
    let spec = Spec {
        short: "cor:s:",
        long: &[("no-create", No, 'c'), ("io-blocks", No, 'o'), ("reference", Needs, 'r'), ("size", Needs, 's')],
        help: "OPTION... FILE...",
    };
    let given = options::parse(args, &spec)?;
    let mut change = None;
    if let Some(text) = given.value('s') {
        let text = text.to_string_lossy();
        let trimmed = text.trim_start();
        let (sign, digits) = match trimmed.chars().next() {
            Some(sign @ ('+' | '-' | '<' | '>' | '/' | '%')) => (Some(sign), trimmed[1..].trim_start()),
            _ => (None, trimmed),
        };
        let value = size::parse(digits, "KkMmGgTtPEZY").map_err(|_| fail(format!("Invalid number: {}", quote::plain(digits))))?;
        if value == 0 && matches!(sign, Some('/' | '%')) {
            return Err(fail("division by zero"));
        }
        change = Some((sign, if given.has('o') { value.saturating_mul(4096) } else { value }));
    }
    let reference = match given.value('r') {
        Some(file) => Some(
            sys::stat(Path::new(file), true)
                .map_err(|error| fail(format!("cannot stat {}: {}", quote::always(file), sys::message(&error))))?
                .size,
        ),
        None => None,
    };
    match (change, reference) {
        (None, None) => {
            return Err(usage(format!("you must specify either {} or {}", quote::plain("--size"), quote::plain("--reference"))));
        }
        (Some((None, _)), Some(_)) => {
            return Err(usage(format!(
                "you must specify a relative {} with {}",
                quote::plain("--size"),
                quote::plain("--reference")
            )));
        }
        _ => {}
    }
    if given.operands.is_empty() {
        return Err(usage("missing file operand"));
    }
    let mut status = 0;
    for file in &given.operands {
        let flags = OpenFlags { write: true, create: !given.has('c'), ..OpenFlags::default() };
        let opened = match Descriptor::open(file, flags, 0o666) {
            Ok(opened) => opened,
            Err(error) => {
                if !(given.has('c') && error.kind() == io::ErrorKind::NotFound) {
                    warn(format!("cannot open {} for writing: {}", quote::always(file), sys::message(&error)));
                    status = 1;
                }
                continue;
            }
        };
        let now = reference.or_else(|| opened.stat().ok().map(|stat| stat.size)).unwrap_or(0);
        let target = match change {
            None => now,
            Some((None, value)) => value,
            Some((Some('+'), value)) => now.saturating_add(value),
            Some((Some('-'), value)) => now.saturating_sub(value),
            Some((Some('<'), value)) => now.min(value),
            Some((Some('>'), value)) => now.max(value),
            Some((Some('/'), value)) => now / value * value,
            Some((Some(_), value)) => now.div_ceil(value) * value,
        };
        if let Err(error) = sys::truncate_fd(opened.fd(), target) {
            warn(format!("failed to truncate {} at {target} bytes: {}", quote::always(file), sys::message(&error)));
            status = 1;
        }
    }
    Ok(status)
}
