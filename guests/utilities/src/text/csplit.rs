//! `csplit`: a file cut where patterns match. The work is done by uutils; its numbers are checked here, in GNU's words and
//! before they become sizes.

use std::ffi::OsString;
use std::num::IntErrorKind;

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, bytes, fail, os};
use crate::{quote, uutils};

const SPEC: Spec = Spec {
    short: "b:f:kn:sqz0123456789",
    long: &[
        ("suffix-format", Needs, 'b'),
        ("prefix", Needs, 'f'),
        ("keep-files", No, 'k'),
        ("suppress-matched", No, 'm'),
        ("digits", Needs, 'n'),
        ("quiet", No, 's'),
        ("silent", No, 's'),
        ("elide-empty-files", No, 'z'),
    ],
    help: "",
};

/// Longest name of a file.
const NAME_MAX: usize = 255;

/// Runs `csplit`.
pub fn main(args: Args) -> Outcome {
    if uutils::asks(&args) {
        return uutils::run(args, "csplit", &SPEC, uu_csplit::uumain);
    }
    let given = options::parse(args.clone(), &SPEC)?;
    let prefix = given.value('f').map_or_else(|| b"xx".to_vec(), |prefix| bytes(prefix).to_vec());
    if let Some(text) = given.value('n') {
        let digits = digits(text)?;
        if given.value('b').is_none() {
            fits(&prefix, digits)?;
        }
    }
    if let Some(format) = given.value('b') {
        for size in sizes(bytes(format)) {
            match size.map(i32::try_from) {
                Some(Ok(size)) => fits(&prefix, usize::try_from(size).unwrap_or(0))?,
                _ => return Err(fail("memory exhausted")),
            }
        }
    }
    let patterns: Vec<OsString> = given.operands.iter().skip(1).map(pattern).collect::<Result<_, i32>>()?;
    let mut patterns = patterns.into_iter();
    // The operands come last in what is passed on, and so keep their order.
    let (mut passed, mut left) = (Vec::new(), given.operands.clone());
    for word in args {
        match left.first() {
            Some(operand) if !passed.is_empty() && *operand == word && is_operand(&passed, &word) => {
                let file = left.len() == given.operands.len();
                left.remove(0);
                passed.push(if file { word } else { patterns.next().unwrap_or(word) });
            }
            _ => passed.push(word),
        }
    }
    uutils::run(passed, "csplit", &SPEC, uu_csplit::uumain)
}

/// Returns whether a word that equals the next operand is that operand, and not the value of an option before it.
fn is_operand(before: &[OsString], _: &OsString) -> bool {
    let last = before.last().map_or(&b""[..], |word| bytes(word));
    !matches!(last, b"-b" | b"-f" | b"-n" | b"--suffix-format" | b"--prefix" | b"--digits")
}

fn digits(text: &std::ffi::OsStr) -> Result<usize, i32> {
    let refuse = |why: &str| Err(fail(format!("invalid number: {}{why}", quote::plain(text))));
    match text.to_str().unwrap_or_default().parse::<i64>() {
        Ok(..0) => refuse(": Numerical result out of range"),
        Ok(digits) if digits <= i64::from(i32::MAX) => Ok(usize::try_from(digits).unwrap_or(usize::MAX)),
        Ok(_) => refuse(": Value too large for defined data type"),
        Err(error) => match error.kind() {
            IntErrorKind::PosOverflow => refuse(": Value too large for defined data type"),
            IntErrorKind::NegOverflow => refuse(": Numerical result out of range"),
            _ => refuse(""),
        },
    }
}

/// Returns the width and the precision of a suffix format; `None` for one that no number holds.
fn sizes(format: &[u8]) -> Vec<Option<u64>> {
    let Some(at) = format.windows(2).position(|pair| pair[0] == b'%' && pair[1] != b'%') else { return Vec::new() };
    let conversion = &format[at + 1..];
    let end = conversion.iter().position(u8::is_ascii_alphabetic).unwrap_or(conversion.len());
    let runs = conversion[..end].split(|byte| !byte.is_ascii_digit()).filter(|run| !run.is_empty());
    runs.map(|run| std::str::from_utf8(run).ok().and_then(|run| run.parse().ok())).collect()
}

fn fits(prefix: &[u8], digits: usize) -> Result<(), i32> {
    let base = prefix.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    if (prefix.len() - base).saturating_add(digits) <= NAME_MAX {
        return Ok(());
    }
    let mut name = prefix.to_vec();
    name.resize(name.len().saturating_add(digits), b'0');
    Err(fail(format!("{}: File name too long", quote::maybe(&os(name)))))
}

/// Returns a pattern whose numbers uutils can hold: those that are larger than any file are as good as the largest.
fn pattern(operand: &OsString) -> Result<OsString, i32> {
    let text = operand.to_string_lossy();
    let shown = quote::plain(operand);
    if let Some(count) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        return match count.parse::<i64>() {
            Ok(count) => Ok(format!("{{{}}}", count.min(i64::from(i32::MAX))).into()),
            Err(_) if count == "*" || !count.bytes().all(|byte| byte.is_ascii_digit()) || count.is_empty() => Ok(operand.clone()),
            Err(_) => {
                let shown = quote::plain(format!("{{{count}"));
                Err(fail(format!("{shown}}}: integer required between '{{' and '}}'")))
            }
        };
    }
    let Some(delimiter) = text.chars().next().filter(|first| matches!(first, '/' | '%')) else {
        return Ok(match text.parse::<u64>() {
            Ok(line) if line > u64::from(u32::MAX) && i64::try_from(line).is_ok() => u32::MAX.to_string().into(),
            _ => operand.clone(),
        });
    };
    let Some(end) = text.rfind(delimiter).filter(|end| *end > 0) else { return Ok(operand.clone()) };
    let (regex, offset) = text.split_at(end + 1);
    let digits = offset.trim_start_matches(['+', '-']);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(operand.clone());
    }
    match offset.parse::<i64>() {
        Ok(lines) if i32::try_from(lines).is_ok() => Ok(operand.clone()),
        Ok(..0) => Ok(format!("{regex}{}", -i32::MAX).into()),
        Ok(_) => Ok(format!("{regex}{}", i32::MAX).into()),
        Err(_) => Err(fail(format!("{shown}: integer expected after delimiter"))),
    }
}
