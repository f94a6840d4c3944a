//! Command-line options as GNU's `getopt_long` reads them, with its messages.
//!
//! Options and operands may be mixed, long names may be shortened, `--` ends the options.

use std::ffi::{OsStr, OsString};

use crate::program::{self, Args};

/// Whether an option takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// None.
    No,
    /// Always one.
    Needs,
    /// Only attached: `--color=always`, `-ifoo`.
    May,
}
pub use Value::{May, Needs, No};

/// What a utility accepts.
pub struct Spec {
    /// Short options in `getopt`'s notation; a leading `+` stops at the first operand.
    pub short: &'static str,
    /// Long options and the letter each stands for; long ones without a letter use one that no short option has.
    pub long: &'static [(&'static str, Value, char)],
    /// The synopsis: what `--help` prints after `Usage: NAME `.
    pub help: &'static str,
}

/// What was given.
pub struct Given {
    /// The options in order, with their values.
    pub options: Vec<(char, OsString)>,
    /// Everything else in order.
    pub operands: Vec<OsString>,
}

impl Given {
    /// Whether an option was given.
    pub fn has(&self, letter: char) -> bool {
        self.options.iter().any(|(given, _)| *given == letter)
    }

    /// The value of the last use of an option.
    pub fn value(&self, letter: char) -> Option<&OsStr> {
        self.options.iter().rev().find(|(given, _)| *given == letter).map(|(_, value)| value.as_os_str())
    }
}

/// Reads the arguments; `Err` is the exit status after a message, after `--help` or after `--version`.
pub fn parse(args: Args, spec: &Spec) -> Result<Given, i32> {
    let given = read(args, spec)?;
    match given.options.iter().find(|(letter, _)| matches!(*letter, HELP | VERSION)) {
        Some((HELP, _)) => Err(help(spec)),
        Some(_) => Err(version()),
        None => Ok(given),
    }
}

/// Refuses what `parse` would refuse, and nothing more.
pub fn check(args: &Args, spec: &Spec) -> Result<(), i32> {
    read(args.clone(), spec).map(drop)
}

fn read(args: Args, spec: &Spec) -> Result<Given, i32> {
    let in_order = spec.short.starts_with('+');
    let mut given = Given { options: Vec::new(), operands: Vec::new() };
    let mut args = args.into_iter().skip(1);
    while let Some(arg) = args.next() {
        let bytes = arg.as_encoded_bytes();
        if bytes == b"--" {
            given.operands.extend(args);
            break;
        }
        if let Some(long) = bytes.strip_prefix(b"--") {
            let option = long_option(long, spec, &mut args)?;
            let last = matches!(option.0, HELP | VERSION);
            given.options.push(option);
            if last {
                // As getopt's callers do: what follows is not even looked at.
                break;
            }
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            short_options(&bytes[1..], spec, &mut args, &mut given.options)?;
        } else if in_order {
            given.operands.push(arg);
            given.operands.extend(args);
            break;
        } else {
            given.operands.push(arg);
        }
    }
    Ok(given)
}

const HELP: char = '\u{1}';
const VERSION: char = '\u{2}';
const ALWAYS: &[(&str, Value, char)] = &[("help", No, HELP), ("version", No, VERSION)];

/// The synopsis, and the options as the table has them.
fn help(spec: &Spec) -> i32 {
    let mut out = program::Output::new();
    out.text(format!("Usage: {} {}\n", program::name(), spec.help));
    let short = spec.short.trim_start_matches('+').bytes().filter(|letter| *letter != b':');
    let mut lines: Vec<String> = Vec::new();
    for letter in short {
        let names: Vec<_> = spec.long.iter().filter(|(_, _, stands_for)| *stands_for == char::from(letter)).collect();
        let value = match short_value(spec.short, letter) {
            Some(Needs) if names.is_empty() => " VALUE",
            _ => "",
        };
        let long: String = names.iter().map(|(name, value, _)| format!(", --{name}{}", value_text(*value))).collect();
        lines.push(format!("  -{}{value}{long}\n", char::from(letter)));
    }
    for (name, value, letter) in spec.long.iter().chain(ALWAYS) {
        if !letter.is_ascii() || short_value(spec.short, *letter as u8).is_none() {
            lines.push(format!("      --{name}{}\n", value_text(*value)));
        }
    }
    out.text(lines.concat());
    0
}

fn value_text(value: Value) -> &'static str {
    match value {
        No => "",
        Needs => "=VALUE",
        May => "[=VALUE]",
    }
}

fn version() -> i32 {
    let mut out = program::Output::new();
    let name = program::name();
    let name = name.rsplit('/').next().unwrap_or(name);
    out.text(format!("{name} (GNU coreutils work-alike of Sandlite) {}\n", env!("CARGO_PKG_VERSION")));
    0
}

fn long_option(long: &[u8], spec: &Spec, args: &mut impl Iterator<Item = OsString>) -> Result<(char, OsString), i32> {
    let (name, attached) = match long.iter().position(|&byte| byte == b'=') {
        Some(at) => (&long[..at], Some(&long[at + 1..])),
        None => (long, None),
    };
    let candidates: Vec<_> = spec.long.iter().chain(ALWAYS).filter(|(option, ..)| option.as_bytes().starts_with(name)).collect();
    let exact = candidates.iter().find(|(option, ..)| option.as_bytes() == name);
    let same = candidates.iter().all(|(_, value, letter)| (*value, *letter) == (candidates[0].1, candidates[0].2));
    let &&(full, value, letter) = match (exact, candidates.as_slice()) {
        (Some(option), _) => option,
        (None, [option, ..]) if same => option,
        (None, []) => return Err(program::usage(format!("unrecognized option '--{}'", String::from_utf8_lossy(long)))),
        (None, several) => {
            let names: String = several.iter().map(|(option, ..)| format!(" '--{option}'")).collect();
            return Err(program::usage(format!(
                "option '--{}' is ambiguous; possibilities:{names}",
                String::from_utf8_lossy(long)
            )));
        }
    };
    match (value, attached) {
        (No, Some(_)) => Err(program::usage(format!("option '--{full}' doesn't allow an argument"))),
        (No | May, None) => Ok((letter, OsString::new())),
        (_, Some(value)) => Ok((letter, program::os(value.to_vec()))),
        (Needs, None) => match args.next() {
            Some(value) => Ok((letter, value)),
            None => Err(program::usage(format!("option '--{full}' requires an argument"))),
        },
    }
}

fn short_options(
    cluster: &[u8],
    spec: &Spec,
    args: &mut impl Iterator<Item = OsString>,
    options: &mut Vec<(char, OsString)>,
) -> Result<(), i32> {
    let mut rest = cluster;
    while let Some((&letter, after)) = rest.split_first() {
        rest = after;
        match short_value(spec.short, letter) {
            None => return Err(program::usage(format!("invalid option -- '{}'", String::from_utf8_lossy(&[letter])))),
            Some(No) => options.push((char::from(letter), OsString::new())),
            Some(May) => {
                options.push((char::from(letter), program::os(rest.to_vec())));
                return Ok(());
            }
            Some(Needs) => {
                let value = if rest.is_empty() { args.next() } else { Some(program::os(rest.to_vec())) };
                let Some(value) = value else {
                    return Err(program::usage(format!("option requires an argument -- '{}'", char::from(letter))));
                };
                options.push((char::from(letter), value));
                return Ok(());
            }
        }
    }
    Ok(())
}

fn short_value(short: &str, letter: u8) -> Option<Value> {
    let short = short.as_bytes();
    if matches!(letter, b':' | b'+') {
        return None;
    }
    let at = short.iter().position(|&byte| byte == letter)?;
    match short.get(at + 1..).unwrap_or_default() {
        [b':', b':', ..] => Some(May),
        [b':', ..] => Some(Needs),
        _ => Some(No),
    }
}

/// The choice that `value` names or begins, as GNU's `XARGMATCH` finds it; complains with the list of choices.
pub fn choose<T: Copy + PartialEq>(option: &str, value: &OsStr, choices: &[(&str, T)]) -> Result<T, i32> {
    let bytes = value.as_encoded_bytes();
    let exact = choices.iter().find(|(name, _)| name.as_bytes() == bytes);
    let begun: Vec<_> = choices.iter().filter(|(name, _)| !bytes.is_empty() && name.as_bytes().starts_with(bytes)).collect();
    if let Some((_, choice)) = exact {
        return Ok(*choice);
    }
    if let Some((_, first)) = begun.first()
        && begun.iter().all(|(_, choice)| choice == first)
    {
        return Ok(*first);
    }
    let trouble = if begun.is_empty() { "invalid" } else { "ambiguous" };
    program::warn(format!("{trouble} argument {} for {}", crate::quote::plain(value), crate::quote::plain(option)));
    let mut list = String::from("Valid arguments are:\n");
    let mut previous: Option<T> = None;
    for (name, choice) in choices {
        if previous == Some(*choice) {
            list.pop();
            list.push_str(&format!(", {}\n", crate::quote::plain(name)));
        } else {
            list.push_str(&format!("  - {}\n", crate::quote::plain(name)));
        }
        previous = Some(*choice);
    }
    let _ = sys::write_all(2, list.as_bytes());
    program::hint();
    // Not the utility's own status for trouble: GNU's argument matcher knows only this one.
    Err(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: Spec = Spec { short: "an:c::", long: &[("all", No, 'a'), ("lines", Needs, 'n')], help: "" };

    fn parsed(args: &[&str]) -> (String, Vec<String>) {
        let args = std::iter::once("x").chain(args.iter().copied()).map(OsString::from).collect();
        let given = parse(args, &SPEC).unwrap_or(Given { options: vec![('!', "".into())], operands: vec![] });
        let options =
            given.options.iter().map(|(letter, value)| format!("{letter}{}", value.to_string_lossy())).collect::<Vec<_>>();
        (options.join(" "), given.operands.iter().map(|operand| operand.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn options_and_operands_mix() {
        assert_eq!(
            parsed(&["x", "-an5", "--li", "7", "y", "--", "-a"]),
            ("a n5 n7".into(), vec!["x".into(), "y".into(), "-a".into()])
        );
    }

    #[test]
    fn an_optional_value_is_attached() {
        assert_eq!(parsed(&["-c", "1", "-c1"]), ("c c1".into(), vec!["1".into()]));
    }

    #[test]
    fn unknown_options_are_refused() {
        assert_eq!(parsed(&["-q"]).0, "!");
        assert_eq!(parsed(&["--quiet"]).0, "!");
    }
}
