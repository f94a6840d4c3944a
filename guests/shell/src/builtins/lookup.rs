//! The meaning of a name: `type`, `command`, `builtin`, `hash`, `enable`, `alias`.

use std::path::Path;
use std::rc::Rc;

use super::{Builtin, find, is_special, names, parse_options};
use crate::quote;
use crate::shell::{Done, Shell};
use crate::state::options::ShoptOption;

const KEYWORDS: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select",
    "then", "time", "until", "while", "{", "}",
];

/// The form in which `type` describes a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `echo is a shell builtin`.
    Sentence,
    /// `builtin`.
    Kind,
    /// The path only.
    Path,
    /// `command -v`.
    Reusable,
}

#[derive(Clone, Copy)]
struct Search {
    style: Style,
    all: bool,
    functions: bool,
    force_path: bool,
}

/// Writes what a name stands for; `false` when it is nothing.
fn describe(shell: &mut Shell, name: &str, search: Search) -> bool {
    let mut found = false;
    let Search { style, all, .. } = search;
    if !search.force_path {
        if let Some(value) = shell.aliases.get(name).cloned()
            && shell.shopt(ShoptOption::ExpandAliases)
        {
            let text = match style {
                Style::Sentence => format!("{name} is aliased to `{value}'\n"),
                Style::Kind => "alias\n".to_owned(),
                Style::Path => String::new(),
                Style::Reusable => format!("alias {name}={}\n", quote::single(&value)),
            };
            shell.write(&text);
            found = true;
        }
        if (!found || all) && KEYWORDS.contains(&name) {
            let text = match style {
                Style::Sentence => format!("{name} is a shell keyword\n"),
                Style::Kind => "keyword\n".to_owned(),
                Style::Path => String::new(),
                Style::Reusable => format!("{name}\n"),
            };
            shell.write(&text);
            found = true;
        }
        if (!found || all) && search.functions && shell.functions.contains_key(name) {
            match style {
                Style::Sentence => {
                    shell.write(&format!("{name} is a function\n"));
                    shell.print_function(name);
                }
                Style::Kind => shell.write("function\n"),
                Style::Path => {}
                Style::Reusable => shell.write(&format!("{name}\n")),
            }
            found = true;
        }
        if (!found || all) && shell.is_builtin(name) {
            let special = shell.on(crate::state::options::SetOption::Posix) && is_special(name);
            let text = match style {
                Style::Sentence if special => format!("{name} is a special shell builtin\n"),
                Style::Sentence => format!("{name} is a shell builtin\n"),
                Style::Kind => "builtin\n".to_owned(),
                Style::Path => String::new(),
                Style::Reusable => format!("{name}\n"),
            };
            shell.write(&text);
            found = true;
        }
    }
    if found && !all {
        return true;
    }
    describe_files(shell, name, search) || found
}

fn describe_files(shell: &mut Shell, name: &str, search: Search) -> bool {
    let Search { style, all, .. } = search;
    shell.output.flush();
    let hashed = if all { None } else { shell.hashed.get(name).map(|(path, _)| path.clone()) };
    if let Some(path) = hashed {
        let text = match style {
            Style::Sentence => format!("{name} is hashed ({path})\n"),
            Style::Kind => "file\n".to_owned(),
            _ => format!("{path}\n"),
        };
        shell.write(&text);
        return true;
    }
    let paths = if name.contains('/') {
        let executable = sys::accessible(Path::new(&crate::exec::os(name)), sys::Permission::Execute);
        if executable && !super::file_test("-d", name) { vec![name.to_owned()] } else { Vec::new() }
    } else {
        shell.search_path(name, !all)
    };
    let paths = match (paths.is_empty(), style) {
        (true, Style::Sentence | Style::Kind) if !name.contains('/') => shell.search_plain(name).into_iter().collect(),
        _ => paths,
    };
    for path in &paths {
        let text = match style {
            Style::Sentence => format!("{name} is {path}\n"),
            Style::Kind => "file\n".to_owned(),
            _ => format!("{path}\n"),
        };
        shell.write(&text);
    }
    !paths.is_empty()
}

pub(super) fn type_(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "afptP") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("type", &wrong)),
    };
    let mut search = Search { style: Style::Sentence, all: false, functions: true, force_path: false };
    for (letter, _) in options {
        match letter {
            'a' => search.all = true,
            'f' => search.functions = false,
            't' => search.style = Style::Kind,
            'p' => search.style = Style::Path,
            _ => {
                search.style = Style::Path;
                search.force_path = true;
            }
        }
    }
    let mut status = 0;
    for name in args.get(at..).unwrap_or_default() {
        if !describe(shell, name, search) {
            if search.style == Style::Sentence {
                shell.complain(format_args!("type: {name}: not found"));
            }
            status = 1;
        }
    }
    Ok(status)
}

pub(super) fn command(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "pvV") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("command", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let rest = args.get(at..).unwrap_or_default();
    if has('v') || has('V') {
        let style = if has('V') { Style::Sentence } else { Style::Reusable };
        let search = Search { style, all: false, functions: true, force_path: false };
        let mut status = i32::from(!rest.is_empty());
        for name in rest {
            if describe(shell, name, search) {
                status = 0;
            } else {
                if has('V') {
                    shell.complain(format_args!("command: {name}: not found"));
                }
            }
        }
        return Ok(status);
    }
    let Some(name) = rest.first() else { return Ok(0) };
    if let Some(builtin) = shell.builtin(name) {
        return shell.run_builtin(builtin, rest);
    }
    let path = has('p').then(|| shell.get("PATH"));
    if path.is_some() {
        shell.set_plain("PATH", "/bin:/usr/bin");
        shell.assigned("PATH");
    }
    let launched = shell.launch(rest, false);
    if let Some(path) = path {
        match path {
            Some(path) => shell.set_plain("PATH", path),
            None => {
                shell.unset_variable("PATH");
            }
        }
        shell.assigned("PATH");
    }
    match launched {
        Ok(pid) => Ok(shell.wait_for(pid)),
        Err(status) => Ok(status),
    }
}

pub(super) fn builtin(shell: &mut Shell, args: &[String]) -> Done {
    let mut rest = args.get(1..).unwrap_or_default();
    if rest.first().map(String::as_str) == Some("--") {
        rest = rest.get(1..).unwrap_or_default();
    }
    let Some(name) = rest.first() else { return Ok(0) };
    match shell.builtin(name) {
        Some(builtin) => shell.run_builtin(builtin, rest),
        None => {
            shell.complain(format_args!("builtin: {name}: not a shell builtin"));
            Ok(1)
        }
    }
}

pub(super) fn hash(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "lrp:dt") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("hash", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    if !shell.on(crate::state::options::SetOption::HashAll) {
        shell.complain("hash: hashing disabled");
        return Ok(1);
    }
    if has('r') {
        shell.hashed.clear();
    }
    let operands = args.get(at..).unwrap_or_default();
    if operands.is_empty() {
        if has('r') {
            return Ok(0);
        }
        if shell.hashed.is_empty() {
            if !has('l') {
                shell.write("hash: hash table empty\n");
            }
            return Ok(0);
        }
        let mut entries: Vec<(String, String, u32)> =
            shell.hashed.iter().map(|(name, (path, hits))| (name.clone(), path.clone(), *hits)).collect();
        entries.sort();
        let mut text = if has('l') { String::new() } else { "hits\tcommand\n".to_owned() };
        for (name, path, hits) in entries {
            if has('l') {
                text.push_str(&format!("builtin hash -p {path} {name}\n"));
            } else {
                text.push_str(&format!("{hits:>4}\t{path}\n"));
            }
        }
        shell.write(&text);
        return Ok(0);
    }
    let mut status = 0;
    for name in operands {
        if let Some((_, path)) = options.iter().find(|(letter, _)| *letter == 'p') {
            shell.hashed.insert(name.clone(), (path.clone(), 0));
        } else if has('d') {
            shell.hashed.remove(name);
        } else if has('t') {
            match shell.hashed.get(name).map(|(path, _)| path.clone()) {
                Some(path) if operands.len() > 1 => shell.write(&format!("{name}\t{path}\n")),
                Some(path) => shell.write(&format!("{path}\n")),
                None => {
                    shell.complain(format_args!("hash: {name}: not found"));
                    status = 1;
                }
            }
        } else if !name.contains('/') && !shell.functions.contains_key(name) && !shell.is_builtin(name) {
            shell.hashed.remove(name);
            if shell.find_program(name).is_none() {
                shell.complain(format_args!("hash: {name}: not found"));
                status = 1;
            }
        }
    }
    Ok(status)
}

pub(super) fn enable(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "adnpsf:") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("enable", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let operands = args.get(at..).unwrap_or_default();
    if operands.is_empty() {
        let mut text = String::new();
        for name in names().filter(|name| !has('s') || is_special(name)) {
            let off = shell.disabled.contains(name);
            if has('a') || off == has('n') {
                text.push_str(&format!("enable {}{name}\n", if off { "-n " } else { "" }));
            }
        }
        shell.write(&text);
        return Ok(0);
    }
    let mut status = 0;
    for name in operands {
        let known: Option<Builtin> = find(name);
        if known.is_none() {
            shell.complain(format_args!("enable: {name}: not a shell builtin"));
            status = 1;
        } else if has('n') {
            shell.disabled.insert(name.clone());
        } else {
            shell.disabled.remove(name);
        }
    }
    Ok(status)
}

fn alias_line(name: &str, value: &str) -> String {
    format!("alias {name}={}\n", quote::single(value))
}

pub(super) fn alias(shell: &mut Shell, args: &[String]) -> Done {
    let (_, at) = match parse_options(args, "p") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("alias", &wrong)),
    };
    let operands = args.get(at..).unwrap_or_default();
    if operands.is_empty() {
        let mut names: Vec<_> = shell.aliases.iter().collect();
        names.sort();
        let text: String = names.into_iter().map(|(name, value)| alias_line(name, value)).collect();
        shell.write(&text);
        return Ok(0);
    }
    let mut status = 0;
    for operand in operands {
        match operand.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                if name.contains(|c: char| "/$`=\"'\\ \t\n|&;()<>".contains(c)) {
                    shell.complain(format_args!("alias: `{name}': invalid alias name"));
                    status = 1;
                    continue;
                }
                Rc::make_mut(&mut shell.aliases).insert(name.to_owned(), value.to_owned());
            }
            _ => match shell.aliases.get(operand).cloned() {
                Some(value) => {
                    let line = alias_line(operand, &value);
                    shell.write(&line);
                }
                None => {
                    shell.complain(format_args!("alias: {operand}: not found"));
                    status = 1;
                }
            },
        }
    }
    Ok(status)
}

pub(super) fn unalias(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "a") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("unalias", &wrong)),
    };
    if !options.is_empty() {
        Rc::make_mut(&mut shell.aliases).clear();
        return Ok(0);
    }
    let operands = args.get(at..).unwrap_or_default();
    if operands.is_empty() {
        return Ok(shell.usage("unalias"));
    }
    let mut status = 0;
    for name in operands {
        if Rc::make_mut(&mut shell.aliases).remove(name).is_none() {
            shell.complain(format_args!("unalias: {name}: not found"));
            status = 1;
        }
    }
    Ok(status)
}
