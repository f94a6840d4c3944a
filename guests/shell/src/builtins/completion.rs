//! `compgen` and builtins that matter to interactive shells only; `caller`.

use super::{names, parse_options};
use crate::shell::{Done, Flow, Shell};
use crate::state::options::SetOption;

/// Runs `complete`: specifications are stored and printed, and used only by `compgen`.
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
    if commands.is_empty() && !has('D') && !has('E') && !has('I') {
        return Ok(shell.usage("complete"));
    }
    // bash prints its fields in this order; those of `-o` by name.
    let mut ordered: Vec<(char, &String)> = options.iter().map(|(letter, value)| (short_action(*letter, value), value)).collect();
    ordered.sort_by_key(|(letter, value)| ("oabcdefgjksuvAGWPSXCF".find(*letter), (*letter == 'o').then_some(*value)));
    let mut text = String::new();
    for (letter, value) in ordered {
        text.push_str(&format!("-{letter} "));
        if "oAGWFCXPS".contains(letter) {
            let always = "GWCXPS".contains(letter);
            let quoted = if always || crate::quote::has_special(value) { crate::quote::single(value) } else { value.clone() };
            text.push_str(&format!("{quoted} "));
        }
    }
    for command in commands {
        shell.completions.retain(|(own, _)| own != command);
        shell.completions.push((command.clone(), text.clone()));
    }
    Ok(0)
}

/// Returns the letter that means the same as `-A NAME`, where there is one.
fn short_action(letter: char, name: &str) -> char {
    match (letter, name) {
        ('A', "alias") => 'a',
        ('A', "builtin") => 'b',
        ('A', "command") => 'c',
        ('A', "directory") => 'd',
        ('A', "export") => 'e',
        ('A', "file") => 'f',
        ('A', "group") => 'g',
        ('A', "job") => 'j',
        ('A', "keyword") => 'k',
        ('A', "service") => 's',
        ('A', "user") => 'u',
        ('A', "variable") => 'v',
        _ => letter,
    }
}

/// Runs `compopt`: options of a completion in progress, or of a stored one.
pub(super) fn compopt(shell: &mut Shell, args: &[String]) -> Done {
    const OPTIONS: &[&str] = &["bashdefault", "default", "dirnames", "filenames", "noquote", "nosort", "nospace", "plusdirs"];
    let mut at = 1;
    let mut everywhere = false;
    while let Some(arg) = args.get(at).filter(|arg| arg.starts_with(['-', '+']) && arg.len() > 1) {
        match arg.as_str() {
            "-o" | "+o" => {
                at += 1;
                let name = args.get(at).map_or("", String::as_str);
                if !OPTIONS.contains(&name) {
                    shell.complain(format_args!("compopt: {name}: invalid option name"));
                    return Ok(2);
                }
            }
            "-D" | "-E" | "-I" => everywhere = true,
            other => return Ok(shell.refuse_option("compopt", other)),
        }
        at += 1;
    }
    let names = args.get(at..).unwrap_or_default();
    if names.is_empty() && !everywhere {
        shell.complain("compopt: not currently executing completion function");
        return Ok(1);
    }
    let mut status = 0;
    for name in names {
        if !shell.completions.iter().any(|(own, _)| own == name) {
            shell.complain(format_args!("compopt: {name}: no completion specification"));
            status = 1;
        }
    }
    Ok(status)
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

/// What `-A` takes.
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

pub(super) fn compgen(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "abcdefgjksuvo:A:G:W:F:C:X:P:S:") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("compgen", &wrong)),
    };
    let prefix = args.get(at).cloned().unwrap_or_default();
    let option = |wanted: char| options.iter().rev().find(|(letter, _)| *letter == wanted).map(|(_, value)| value.clone());
    let mut words: Vec<String> = Vec::new();
    for (letter, value) in &options {
        let action = match letter {
            'A' => value.as_str(),
            'a' => "alias",
            'b' => "builtin",
            'c' => "command",
            'd' => "directory",
            'e' => "export",
            'f' => "file",
            'g' => "group",
            'j' => "job",
            'k' => "keyword",
            's' => "service",
            'u' => "user",
            'v' => "variable",
            _ => continue,
        };
        if !ACTIONS.contains(&action) {
            shell.complain(format_args!("compgen: {action}: invalid action name"));
            return Ok(2);
        }
        words.extend(action_words(shell, action, &prefix));
    }
    if let Some(pattern) = option('G') {
        words.extend(shell.glob(&[(pattern.as_str(), false)]).unwrap_or_default());
    }
    if let Some(list) = option('W') {
        match split_list(shell, &list) {
            Ok(list) => words.extend(list),
            Err(Flow::Discard(status)) => return Ok(status),
            Err(flow) => return Err(flow),
        }
    }
    words.retain(|word| word.starts_with(&prefix));
    if let Some(function) = option('F') {
        shell.complain("compgen: warning: -F option may not work as you expect");
        words.extend(call_completer(shell, &function, &prefix)?);
    }
    if let Some(command) = option('C') {
        shell.complain("compgen: warning: -C option may not work as you expect");
        words.extend(run_completer(shell, &command, &prefix)?);
    }
    if let Some(filter) = option('X') {
        let (wanted, pattern) = match filter.strip_prefix('!') {
            Some(pattern) => (true, pattern),
            None => (false, filter.as_str()),
        };
        let pattern = shell.compile_pattern(&pattern.replace('&', &prefix), false);
        words.retain(|word| pattern.matches(word) == wanted);
    }
    // These get neither prefix nor suffix.
    let mut directories = Vec::new();
    let fallback = options.iter().filter(|(letter, _)| *letter == 'o').map(|(_, value)| value.as_str());
    for kind in fallback {
        match kind {
            "default" | "bashdefault" if words.is_empty() => words = action_words(shell, "file", &prefix),
            "dirnames" if words.is_empty() => words = action_words(shell, "directory", &prefix),
            "plusdirs" => directories = action_words(shell, "directory", &prefix),
            _ => {}
        }
    }
    let (before, after) = (option('P').unwrap_or_default(), option('S').unwrap_or_default());
    let mut text: String = words.iter().map(|word| format!("{before}{word}{after}\n")).collect();
    text.extend(directories.iter().map(|word| format!("{word}\n")));
    shell.write(&text);
    Ok(i32::from(text.is_empty()))
}

/// Runs the function of `-F`, which leaves its result in COMPREPLY.
fn call_completer(shell: &mut Shell, function: &str, prefix: &str) -> Done<Vec<String>> {
    if !shell.functions.contains_key(function) {
        return Ok(Vec::new());
    }
    shell.set_array("COMP_WORDS", []);
    for (name, value) in [("COMP_CWORD", "-1"), ("COMP_LINE", ""), ("COMP_POINT", "0"), ("COMP_TYPE", "9"), ("COMP_KEY", "9")] {
        shell.set_plain(name, value);
    }
    let status = shell.status;
    shell.call_function(&[function.to_owned(), "compgen".to_owned(), prefix.to_owned(), String::new()])?;
    shell.status = status;
    let reply = match shell.value("COMPREPLY") {
        crate::state::variables::Value::Indexed(map) => map.into_values().collect(),
        crate::state::variables::Value::Scalar(text) => vec![text],
        _ => Vec::new(),
    };
    for name in ["COMPREPLY", "COMP_WORDS", "COMP_CWORD", "COMP_LINE", "COMP_POINT", "COMP_TYPE", "COMP_KEY"] {
        shell.unset_variable(name);
    }
    Ok(reply)
}

/// Runs the command of `-C`, which prints its result.
fn run_completer(shell: &mut Shell, command: &str, prefix: &str) -> Done<Vec<String>> {
    let call = format!("$({command} compgen {} '')", crate::quote::single(prefix));
    let output = match crate::syntax::parse_shell_word(&call, shell.syntax_options()) {
        Ok(word) => shell.expand_string(&word)?,
        Err(_) => String::new(),
    };
    Ok(output.lines().map(str::to_owned).collect())
}

/// Returns `-W`: the list is split where IFS is not quoted, then each word is expanded.
fn split_list(shell: &mut Shell, text: &str) -> Result<Vec<String>, Flow> {
    let ifs = shell.ifs();
    let mut pieces = vec![String::new()];
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let Some(piece) = pieces.last_mut() else { break };
        match (c, quote) {
            ('\\', quote) if quote != Some('\'') => {
                piece.push(c);
                piece.extend(chars.next());
            }
            ('\'' | '"', None) => {
                quote = Some(c);
                piece.push(c);
            }
            (c, Some(open)) => {
                piece.push(c);
                if c == open {
                    quote = None;
                }
            }
            (c, None) if ifs.contains(c) => pieces.push(String::new()),
            (c, None) => piece.push(c),
        }
    }
    let mut words = Vec::new();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        match crate::syntax::parse_shell_word(piece, shell.syntax_options()) {
            Ok(word) => {
                let noglob = shell.on(SetOption::NoGlob);
                shell.options.set(SetOption::NoGlob, true);
                let expanded = shell.expand_word(&word, &mut words);
                shell.options.set(SetOption::NoGlob, noglob);
                expanded?;
            }
            Err(_) => {
                shell.complain(format_args!("{piece}: bad substitution"));
                return Err(Flow::Discard(1));
            }
        }
    }
    Ok(words)
}

/// Returns the first fields of a file of records separated by colons.
fn first_fields(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.split(':').next()).map(str::to_owned).collect()
}

const KEYWORDS: [&str; 22] = [
    "if", "then", "else", "elif", "fi", "time", "for", "in", "until", "while", "do", "done", "case", "esac", "coproc", "select",
    "function", "{", "}", "[[", "]]", "!",
];

/// Returns the files whose names begin like this: hidden ones too, `.` and `..` only after a dot.
fn paths(shell: &Shell, prefix: &str) -> Vec<String> {
    let (directory, start) = prefix.rfind('/').map_or(("", prefix), |slash| prefix.split_at(slash + 1));
    let place = if directory.is_empty() { shell.directory.as_str() } else { directory };
    let Ok(entries) = std::fs::read_dir(crate::exec::os(place)) else { return Vec::new() };
    let mut names: Vec<String> = entries.flatten().map(|entry| crate::exec::from_os(&entry.file_name())).collect();
    if start.starts_with('.') {
        names.extend([".".to_owned(), "..".to_owned()]);
    }
    names.into_iter().filter(|name| name.starts_with(start)).map(|name| format!("{directory}{name}")).collect()
}

fn action_words(shell: &mut Shell, action: &str, prefix: &str) -> Vec<String> {
    let mut words: Vec<String> = match action {
        "alias" => shell.aliases.keys().cloned().collect(),
        "builtin" => names().map(str::to_owned).collect(),
        "function" => shell.functions.keys().cloned().collect(),
        "keyword" => KEYWORDS.map(str::to_owned).to_vec(),
        "helptopic" => super::help::topics().map(str::to_owned).collect(),
        "user" => first_fields("/etc/passwd"),
        "group" => first_fields("/etc/group"),
        "arrayvar" => shell.variables.iter().filter(|(_, variable)| variable.is_array()).map(|(name, _)| name.clone()).collect(),
        "enabled" => names().filter(|name| !shell.disabled.contains(*name)).map(str::to_owned).collect(),
        "disabled" => shell.disabled.iter().cloned().collect(),
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
            all.extend(shell.aliases.keys().cloned());
            all.extend(KEYWORDS.map(str::to_owned));
            let path = shell.get("PATH").unwrap_or_default();
            for directory in path.split(':').filter(|directory| !directory.is_empty()) {
                if let Ok(entries) = std::fs::read_dir(crate::exec::os(directory)) {
                    all.extend(entries.flatten().map(|entry| crate::exec::from_os(&entry.file_name())));
                }
            }
            all
        }
        "file" | "directory" => {
            let found = paths(shell, prefix);
            found.into_iter().filter(|path| action == "file" || super::file_test("-d", path)).collect()
        }
        "shopt" => crate::state::options::ShoptOption::ALL.iter().map(|entry| entry.1.to_owned()).collect(),
        "setopt" => crate::state::options::SetOption::ALL.iter().map(|entry| entry.1.to_owned()).collect(),
        "signal" => (1..=31).filter_map(crate::state::signals::signal_name).map(|name| format!("SIG{name}")).collect(),
        _ => Vec::new(),
    };
    if !matches!(action, "keyword" | "signal" | "user" | "group") {
        words.sort();
        words.dedup();
    }
    words
}
