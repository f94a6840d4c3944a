//! A utility's options: what `getopt` reads, with its messages on standard error, and `--help` and `--version` everywhere.

use std::ffi::{OsStr, OsString};

use common::getopt::{self, Item, Long};
pub use common::getopt::{May, Needs, No, Value};

use crate::program::{self, Args};

/// The options of a utility.
pub struct Spec {
    /// Short options in `getopt`'s notation; a leading `+` stops at the first operand.
    pub short: &'static str,
    /// Long options and the letter each stands for; long ones without a letter use one that no short option has.
    pub long: &'static [Long],
    /// The synopsis: what `--help` prints after `Usage: NAME `.
    pub help: &'static str,
}

impl Spec {
    fn letters(&self) -> getopt::Spec {
        getopt::Spec { short: self.short, long: self.long }
    }
}

/// The parsed arguments.
pub struct Given {
    /// The options in order, with their values.
    pub options: Vec<(char, OsString)>,
    /// Everything else in order.
    pub operands: Vec<OsString>,
}

impl Given {
    /// Returns whether an option was given.
    pub fn has(&self, letter: char) -> bool {
        self.options.iter().any(|(given, _)| *given == letter)
    }

    /// Returns the value of the last use of an option.
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

/// Reads the arguments of a utility that takes nothing but `--help` and `--version`.
pub fn none(args: Args, help: &'static str) -> Result<(), i32> {
    let given = parse(args, &Spec { short: "", long: &[], help })?;
    given.operands.first().map_or(Ok(()), |operand| Err(program::extra_operand(operand)))
}

/// Refuses what `parse` would refuse, and nothing more.
pub fn check(args: &Args, spec: &Spec) -> Result<(), i32> {
    read(args.clone(), spec).map(drop)
}

fn read(args: Args, spec: &Spec) -> Result<Given, i32> {
    let words = args.into_iter().skip(1).map(OsString::into_encoded_bytes);
    let mut given = Given { options: Vec::new(), operands: Vec::new() };
    for item in spec.letters().items(words, ALWAYS) {
        match item.map_err(program::usage)? {
            Item::Operand(word) => given.operands.push(program::os(word)),
            Item::Opt(letter, value) => {
                given.options.push((letter, program::os(value.unwrap_or_default())));
                // As getopt's callers do: what follows is not even looked at.
                if matches!(letter, HELP | VERSION) {
                    break;
                }
            }
        }
    }
    Ok(given)
}

const HELP: char = '\u{1}';
const VERSION: char = '\u{2}';
const ALWAYS: &[Long] = &[("help", No, HELP), ("version", No, VERSION)];

/// The synopsis, and the options as the table has them.
fn help(spec: &Spec) -> i32 {
    let mut out = program::Output::new();
    out.text(format!("Usage: {} {}\n", program::name(), spec.help));
    let short = spec.short.trim_start_matches('+').bytes().filter(|letter| *letter != b':');
    let mut lines: Vec<String> = Vec::new();
    for letter in short {
        let names: Vec<_> = spec.long.iter().filter(|(_, _, stands_for)| *stands_for == char::from(letter)).collect();
        let value = match spec.letters().short_value(letter) {
            Some(Needs) if names.is_empty() => " VALUE",
            _ => "",
        };
        let long: String = names.iter().map(|(name, value, _)| format!(", --{name}{}", value_text(*value))).collect();
        lines.push(format!("  -{}{value}{long}\n", char::from(letter)));
    }
    for (name, value, letter) in spec.long.iter().chain(ALWAYS) {
        if !letter.is_ascii() || spec.letters().short_value(*letter as u8).is_none() {
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

/// Returns the choice that `value` names or begins, as GNU's `XARGMATCH` finds it; complains with the list of choices.
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
