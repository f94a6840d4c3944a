//! The variables whose values the shell computes when they are asked for.

use std::collections::BTreeMap;

use super::associative::Associative;
use super::options::{SetOption, ShoptOption};
use super::variables::{Attributes, Value};
use crate::shell::Shell;

/// Their names, with whether a fresh shell shows them in `set` and `declare -p`.
pub const NAMES: &[&str] = &[
    "BASHPID",
    "BASH_ALIASES",
    "BASH_ARGV0",
    "BASH_CMDS",
    "BASH_COMMAND",
    "BASH_LINENO",
    "BASH_SOURCE",
    "BASH_SUBSHELL",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "PIPESTATUS",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
    "BASHOPTS",
    "SHELLOPTS",
    "BASH_ARGC",
    "BASH_ARGV",
];

/// Arguments and state of the multiplicative generator that POSIX's `rand` example made common.
const RANDOM_MULTIPLIER: u64 = 16_807;
const RANDOM_MODULUS: u64 = 2_147_483_647;

fn numbers<T: ToString>(values: impl IntoIterator<Item = T>) -> Value {
    Value::Indexed((0..).zip(values.into_iter().map(|value| value.to_string())).collect())
}

impl Shell {
    /// Binds the names of all computed variables.
    pub fn bind_computed(&mut self) {
        for name in NAMES {
            self.variables.entry(name).attributes = Attributes::DYNAMIC;
        }
        for name in ["BASHOPTS", "SHELLOPTS"] {
            let variable = self.variables.entry(name);
            variable.attributes = variable.attributes.with(Attributes::READONLY);
        }
        for name in ["EPOCHSECONDS", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "BASHPID", "HISTCMD"] {
            let variable = self.variables.entry(name);
            if name != "EPOCHSECONDS" {
                variable.attributes = variable.attributes.with(Attributes::INTEGER);
            }
        }
    }

    /// Returns the value of a computed variable now.
    pub fn computed(&mut self, name: &str) -> Option<Value> {
        let scalar = |text: String| Some(Value::Scalar(text));
        match name {
            "BASHPID" => scalar(sys::process_ids()[0].to_string()),
            "BASH_SUBSHELL" => scalar(self.subshell.to_string()),
            "BASH_COMMAND" => scalar(self.current_command.to_string()),
            "BASH_ARGV0" => scalar(self.name.clone()),
            "LINENO" => scalar(self.line.to_string()),
            "EPOCHSECONDS" => scalar(sys::now_ns().div_euclid(1_000_000_000).to_string()),
            "EPOCHREALTIME" => {
                let micros = sys::now_ns().div_euclid(1000);
                scalar(format!("{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000)))
            }
            "SECONDS" => scalar(((sys::now_ns() - self.seconds_from).div_euclid(1_000_000_000)).to_string()),
            "RANDOM" => scalar(self.next_random().to_string()),
            "SRANDOM" => {
                let high = u64::from(self.next_random());
                let mixed = (high << 40 ^ sys::now_ns() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                scalar((mixed >> 32).to_string())
            }
            "HISTCMD" => scalar(if self.on(SetOption::History) { self.history.number() } else { 0 }.to_string()),
            "PIPESTATUS" => Some(numbers(&self.pipe_status)),
            "FUNCNAME" => {
                // Outside of functions there is no FUNCNAME, even while a file is sourced.
                if !self.frames.iter().any(|frame| frame.function) {
                    return None;
                }
                Some(Value::Indexed((0..).zip(self.frames.iter().rev().map(|frame| frame.name.to_string())).collect()))
            }
            "BASH_SOURCE" => {
                Some(Value::Indexed((0..).zip(self.frames.iter().rev().map(|frame| frame.source.to_string())).collect()))
            }
            "BASH_LINENO" => Some(numbers(self.frames.iter().rev().map(|frame| frame.call_line))),
            "BASH_ARGC" => Some(numbers(self.frames.iter().rev().map(|frame| frame.arguments.len()))),
            "BASH_ARGV" => {
                let all = self.frames.iter().rev().flat_map(|frame| frame.arguments.iter().rev().cloned());
                Some(Value::Indexed((0..).zip(all).collect()))
            }
            "DIRSTACK" => {
                let mut list = vec![self.directory.clone()];
                list.extend(self.directory_stack.iter().cloned());
                Some(Value::Indexed((0..).zip(list).collect::<BTreeMap<_, _>>()))
            }
            "GROUPS" => Some(numbers([sys::user_ids()[1]])),
            "BASHOPTS" => {
                let on = ShoptOption::ALL.iter().filter(|(option, ..)| self.shopt(*option)).map(|entry| entry.1);
                scalar(on.collect::<Vec<_>>().join(":"))
            }
            "SHELLOPTS" => {
                let on = SetOption::ALL.iter().filter(|(option, ..)| self.on(*option)).map(|entry| entry.1);
                scalar(on.collect::<Vec<_>>().join(":"))
            }
            "BASH_ALIASES" => {
                let mut map = Associative::default();
                for (name, value) in self.aliases.iter() {
                    map.insert(name.clone(), value.clone());
                }
                Some(Value::Associative(map))
            }
            "BASH_CMDS" => {
                let mut map = Associative::default();
                for (name, (path, _)) in &self.hashed {
                    map.insert(name.clone(), path.clone());
                }
                Some(Value::Associative(map))
            }
            _ => None,
        }
    }

    /// Assigns to a computed variable; most ignore it.
    pub fn assign_computed(&mut self, name: &str, value: &str) {
        match name {
            "RANDOM" => {
                if let Ok(seed) = self.evaluate(value) {
                    self.random = seed as u32;
                }
            }
            "SECONDS" => {
                // A number, not an expression.
                let seconds = value.trim().parse::<i64>().unwrap_or(0);
                self.seconds_from = sys::now_ns() - i128::from(seconds) * 1_000_000_000;
            }
            "BASH_ARGV0" => value.clone_into(&mut self.name),
            _ => {}
        }
    }

    /// Returns the next number of RANDOM's sequence, as bash 5.2 makes it: 0 to 32767.
    fn next_random(&mut self) -> u32 {
        let seed = if self.random == 0 { 123_459_876 } else { u64::from(self.random) };
        let quotient = seed / (RANDOM_MODULUS / RANDOM_MULTIPLIER);
        let remainder = seed % (RANDOM_MODULUS / RANDOM_MULTIPLIER);
        let next = i64::try_from(RANDOM_MULTIPLIER * remainder).unwrap_or_default()
            - i64::try_from((RANDOM_MODULUS % RANDOM_MULTIPLIER) * quotient).unwrap_or_default();
        let next = if next < 0 { next + RANDOM_MODULUS.cast_signed() } else { next };
        self.random = next as u32;
        (self.random >> 16 ^ self.random & 0xffff) & 0x7fff
    }
}
