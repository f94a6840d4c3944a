//! `compgen` and builtins that matter to interactive shells only; `caller`.

use super::{names, parse_options};
use crate::shell::{Done, Flow, Shell};

pub(super) fn bind(_: &mut Shell, _: &[String]) -> Done {
    Ok(0)
}

/// Completion specifications are kept and shown; nobody completes by them here.
pub(super) fn complete(shell: &mut Shell, args: &[String]) -> Done {
    let name = args.first().map_or("complete", String::as_str);
    let (options, at) = match parse_options(args, "abcdefgjksuvo:A:G:W:F:C:X:P:S:prDEI") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed(name, &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let commands = args.get(at..).unwrap_or_default();
    if has('r') {
        shell.completions.retain(|(own, _)| !commands.is_empty() && !commands.contains(own));
        return Ok(0);
    }
    if has('p') || args.len() == 1 {
        let mut status = 0;
        let all: Vec<String> = shell.completions.iter().map(|(own, _)| own.clone()).collect();
        for command in if commands.is_empty() { &all } else { commands } {
            match shell.completions.iter().find(|(own, _)| own == command).map(|(_, text)| text.clone()) {
                Some(text) => shell.write(&format!("complete {text}{command}\n")),
                None => {
                    shell.complain(format_args!("complete: {command}: no completion specification"));
                    status = 1;
                }
            }
        }
        return Ok(status);
    }
    let mut text = String::new();
    for (letter, value) in &options {
        text.push_str(&format!("-{letter} "));
        if "oAGWFCXPS".contains(*letter) {
            let quoted = if crate::quote::has_special(value) { crate::quote::single(value) } else { value.clone() };
            text.push_str(&format!("{quoted} "));
        }
    }
    for command in commands {
        shell.completions.retain(|(own, _)| own != command);
        shell.completions.push((command.clone(), text.clone()));
    }
    Ok(0)
}

/// There is no history where nobody types.
pub(super) fn history(shell: &mut Shell, args: &[String]) -> Done {
    let name = args.first().map_or("history", String::as_str);
    let (_, at) = match parse_options(args, if name == "fc" { "e:lnrs" } else { "acd:nprsw" }) {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed(name, &wrong)),
    };
    match args.get(at) {
        Some(text) if name == "history" && at == 1 && text.parse::<i64>().is_err() => {
            shell.complain(format_args!("history: {text}: numeric argument required"));
            Ok(1)
        }
        _ => Ok(0),
    }
}

pub(super) fn logout(shell: &mut Shell, _: &[String]) -> Done {
    shell.complain("logout: not login shell: use `exit'");
    Ok(1)
}

pub(super) fn caller(shell: &mut Shell, args: &[String]) -> Done {
    if shell.frames.is_empty() {
        return Ok(1);
    }
    let depth = match args.get(1) {
        None => None,
        Some(text) => match text.parse::<usize>() {
            Ok(depth) => Some(depth),
            Err(_) => {
                shell.complain(format_args!("caller: {text}: invalid number"));
                return Ok(shell.usage("caller"));
            }
        },
    };
    let frames: Vec<_> = shell.frames.iter().rev().collect();
    let at = depth.unwrap_or(0);
    let Some(frame) = frames.get(at) else { return Ok(1) };
    let line = frame.call_line;
    let outer = frames.get(at + 1);
    let text = match (depth, outer) {
        (None, Some(outer)) => format!("{line} {}\n", outer.source),
        (None, None) => format!("{line} NULL\n"),
        (Some(_), Some(outer)) => format!("{line} {} {}\n", outer.name, outer.source),
        (Some(_), None) => return Ok(1),
    };
    shell.write(&text);
    Ok(0)
}

pub(super) fn compgen(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "abcdefgjksuvo:A:G:W:F:C:X:P:S:") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("compgen", &wrong)),
    };
    let prefix = args.get(at).cloned().unwrap_or_default();
    let mut words: Vec<String> = Vec::new();
    let (mut before, mut after) = (String::new(), String::new());
    for (letter, value) in &options {
        let action = match letter {
            'A' => value.as_str(),
            'a' => "alias",
            'b' => "builtin",
            'c' => "command",
            'd' => "directory",
            'e' => "export",
            'f' => "file",
            'k' => "keyword",
            'v' => "variable",
            'W' => {
                words.extend(split_list(shell, value)?);
                continue;
            }
            'G' => {
                words.extend(shell.glob(&[(value.as_str(), false)]).unwrap_or_default());
                continue;
            }
            'P' => {
                before.clone_from(value);
                continue;
            }
            'S' => {
                after.clone_from(value);
                continue;
            }
            _ => continue,
        };
        const ACTIONS: &[&str] = &[
            "alias",
            "arrayvar",
            "binding",
            "builtin",
            "command",
            "directory",
            "disabled",
            "enabled",
            "export",
            "file",
            "function",
            "group",
            "helptopic",
            "hostname",
            "job",
            "keyword",
            "running",
            "service",
            "setopt",
            "shopt",
            "signal",
            "stopped",
            "user",
            "variable",
        ];
        if !ACTIONS.contains(&action) {
            shell.complain(format_args!("compgen: {action}: invalid action name"));
            return Ok(2);
        }
        words.extend(action_words(shell, action, &prefix));
    }
    words.retain(|word| word.starts_with(&prefix));
    let text: String = words.iter().map(|word| format!("{before}{word}{after}\n")).collect();
    shell.write(&text);
    Ok(i32::from(words.is_empty()))
}

fn split_list(shell: &mut Shell, text: &str) -> Result<Vec<String>, Flow> {
    let expanded = match crate::syntax::parse_shell_word(text, shell.syntax_options()) {
        Ok(word) => shell.expand_string(&word)?,
        Err(_) => text.to_owned(),
    };
    let ifs = shell.ifs();
    Ok(expanded.split(|c| ifs.contains(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

fn action_words(shell: &mut Shell, action: &str, prefix: &str) -> Vec<String> {
    let mut words: Vec<String> = match action {
        "alias" => shell.aliases.keys().cloned().collect(),
        "builtin" => names().map(str::to_owned).collect(),
        "function" => shell.functions.keys().cloned().collect(),
        "keyword" => [
            "if", "then", "else", "elif", "fi", "time", "for", "in", "until", "while", "do", "done", "case", "esac", "coproc",
            "select", "function", "{", "}", "[[", "]]", "!",
        ]
        .map(str::to_owned)
        .to_vec(),
        "variable" => shell.variables.iter().filter(|(_, variable)| variable.is_set()).map(|(name, _)| name.clone()).collect(),
        "export" => shell
            .variables
            .iter()
            .filter(|(_, variable)| variable.attributes.has(crate::state::variables::Attributes::EXPORT))
            .map(|(name, _)| name.clone())
            .collect(),
        "command" => {
            let mut all: Vec<String> = names().map(str::to_owned).collect();
            all.extend(shell.functions.keys().cloned());
            let path = shell.get("PATH").unwrap_or_default();
            for directory in path.split(':').filter(|directory| !directory.is_empty()) {
                if let Ok(entries) = std::fs::read_dir(crate::exec::os(directory)) {
                    all.extend(entries.flatten().map(|entry| crate::exec::from_os(&entry.file_name())));
                }
            }
            all
        }
        "file" | "directory" => {
            let found = shell.glob(&[(prefix, true), ("*", false)]).unwrap_or_default();
            found.into_iter().filter(|path| action == "file" || super::file_test("-d", path)).collect()
        }
        "shopt" => crate::state::options::ShoptOption::ALL.iter().map(|entry| entry.1.to_owned()).collect(),
        "setopt" => crate::state::options::SetOption::ALL.iter().map(|entry| entry.1.to_owned()).collect(),
        "signal" => (1..=31).filter_map(crate::state::signals::signal_name).map(|name| format!("SIG{name}")).collect(),
        _ => Vec::new(),
    };
    if !matches!(action, "keyword" | "signal") {
        words.sort();
        words.dedup();
    }
    words
}
