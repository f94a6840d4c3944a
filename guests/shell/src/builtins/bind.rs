//! `bind`: key bindings are kept and shown. The line editor that would use them is the host's.

use super::parse_options;
use crate::shell::{Done, Shell};

/// The editor's functions, each with the keys it is bound to at first.
const FUNCTIONS: &str = include_str!("bindings.txt");
/// The editor's settings with their values.
const SETTINGS: &str = include_str!("settings.txt");

/// Further bindings.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// Keys and the function they now call; no function when the keys were unbound.
    keys: Vec<(String, Option<String>)>,
    /// Keys that run a shell command, by keymap.
    commands: Vec<(String, String, String)>,
    /// Keys that stand for other text.
    macros: Vec<(String, String)>,
    /// Settings that were changed.
    settings: Vec<(String, String)>,
}

fn functions() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    FUNCTIONS.lines().filter_map(|line| {
        let mut words = line.split(' ');
        words.next().map(|name| (name, words.collect()))
    })
}

impl Bindings {
    /// Returns the keys that a function is bound to now.
    fn keys_of(&self, function: &str) -> Vec<String> {
        let first = functions().find(|(name, _)| *name == function).map(|(_, keys)| keys).unwrap_or_default();
        let changed = |key: &str| self.keys.iter().rev().find(|(own, _)| own == key);
        let mut keys: Vec<String> = first.into_iter().filter(|key| changed(key).is_none()).map(str::to_owned).collect();
        for (key, bound) in &self.keys {
            if bound.as_deref() == Some(function) && changed(key).is_some_and(|entry| entry.1 == *bound) && !keys.contains(key) {
                keys.push(key.clone());
                keys.sort();
            }
        }
        keys
    }

    fn set_key(&mut self, key: &str, function: Option<&str>) {
        self.keys.retain(|(own, _)| own != key);
        self.keys.push((key.to_owned(), function.map(str::to_owned)));
    }

    fn setting(&self, name: &str, value: &str) -> String {
        self.settings.iter().rev().find(|(own, _)| own == name).map_or(value, |(_, value)| value).to_owned()
    }
}

fn quoted(keys: &[String]) -> String {
    keys.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", ")
}

pub(super) fn bind(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "lpsvPSVXm:f:q:u:r:x:") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("bind", &wrong)),
    };
    if !shell.interactive {
        shell.complain("bind: warning: line editing not enabled");
    }
    let keymap = options.iter().find(|(letter, _)| *letter == 'm').map_or("emacs", |(_, name)| name.as_str()).to_owned();
    let mut status = 0;
    for (letter, value) in &options {
        let known = functions().any(|(name, _)| name == value);
        if matches!(letter, 'q' | 'u') && !known {
            shell.complain(format_args!("bind: `{value}': unknown function name"));
            return Ok(1);
        }
        match letter {
            'q' => {
                let keys = shell.bindings.keys_of(value);
                status = i32::from(keys.is_empty());
                let text = if keys.is_empty() {
                    format!("{value} is not bound to any keys.\n")
                } else {
                    format!("{value} can be invoked via {}.\n", quoted(&keys))
                };
                shell.write(&text);
            }
            'u' => {
                for key in shell.bindings.keys_of(value) {
                    shell.bindings.set_key(&key, None);
                }
            }
            'r' => {
                shell.bindings.commands.retain(|(_, key, _)| key != value);
                shell.bindings.set_key(value, None);
            }
            'x' => match value.split_once(':').and_then(|(key, command)| Some((unquote(key)?, command.trim()))) {
                Some((key, command)) => {
                    shell.bindings.commands.retain(|(map, own, _)| *map != keymap || *own != key);
                    shell.bindings.commands.push((keymap.clone(), key, command.to_owned()));
                }
                None => {
                    shell.complain(format_args!("bind: `{value}': first non-whitespace character is not `\"'"));
                    return Ok(1);
                }
            },
            'm' | 'f' => {}
            letter => {
                let text = listing(&shell.bindings, *letter, &keymap);
                shell.write(&text);
            }
        }
    }
    for operand in args.get(at..).unwrap_or_default() {
        bind_one(shell, operand);
    }
    Ok(status)
}

fn unquote(key: &str) -> Option<String> {
    key.trim().strip_prefix('"')?.strip_suffix('"').map(str::to_owned)
}

/// `"keys": function`, `"keys": "text"`, `set name value`.
fn bind_one(shell: &mut Shell, text: &str) {
    if let Some((name, value)) = text.strip_prefix("set ").and_then(|rest| rest.trim().split_once(' ')) {
        shell.bindings.settings.push((name.to_owned(), value.trim().to_owned()));
        return;
    }
    let Some((key, target)) = text.rsplit_once(':') else { return };
    let (Some(key), target) = (unquote(key), target.trim()) else { return };
    match unquote(target) {
        Some(inserted) => shell.bindings.macros.push((key, inserted)),
        None if functions().any(|(name, _)| name == target) => shell.bindings.set_key(&key, Some(target)),
        None => {}
    }
}

fn listing(bindings: &Bindings, letter: char, keymap: &str) -> String {
    let mut text = String::new();
    match letter {
        'l' => functions().for_each(|(name, _)| text.push_str(&format!("{name}\n"))),
        'p' => {
            for (name, _) in functions() {
                let keys = bindings.keys_of(name);
                if keys.is_empty() {
                    text.push_str(&format!("# {name} (not bound)\n"));
                }
                keys.iter().for_each(|key| text.push_str(&format!("\"{key}\": {name}\n")));
            }
        }
        'P' => {
            for (name, _) in functions() {
                let keys = bindings.keys_of(name);
                if keys.is_empty() {
                    text.push_str(&format!("{name} is not bound to any keys\n"));
                } else {
                    text.push_str(&format!("{name} can be found on {}.\n", quoted(&keys)));
                }
            }
        }
        'v' | 'V' => {
            for (name, value) in SETTINGS.lines().filter_map(|line| line.split_once(' ')) {
                let value = bindings.setting(name, value);
                if letter == 'v' {
                    text.push_str(&format!("set {name} {value}\n"));
                } else {
                    text.push_str(&format!("{name} is set to `{value}'\n"));
                }
            }
        }
        's' => bindings.macros.iter().for_each(|(key, inserted)| text.push_str(&format!("\"{key}\": \"{inserted}\"\n"))),
        'S' => bindings.macros.iter().for_each(|(key, inserted)| text.push_str(&format!("{key} outputs {inserted}\n"))),
        'X' => {
            for (_, key, command) in bindings.commands.iter().filter(|(map, ..)| map == keymap) {
                text.push_str(&format!("\"{key}\": \"{command}\"\n"));
            }
        }
        _ => {}
    }
    text
}
