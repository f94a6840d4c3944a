//! The working directory: `cd`, `pwd`, and the directory stack.

use std::path::Path;

use super::parse_options;
use crate::shell::{Done, Shell};
use crate::state::options::{SetOption, ShoptOption};
use crate::state::variables::Attributes;

/// Returns a path with the home directory as `~`.
#[must_use]
pub fn abbreviate_home(path: &str, home: &str) -> String {
    match path.strip_prefix(home) {
        Some(rest) if !home.is_empty() && home != "/" && (rest.is_empty() || rest.starts_with('/')) => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

/// Returns `path` from `base`, with `.` and `..` taken out by the letter.
fn normalize(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let slashes = if whole.starts_with("//") && !whole.starts_with("///") { "//" } else { "/" };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("{slashes}{}", parts.join("/"))
}

/// Returns whether all that `..` steps back from is there.
fn steps_exist(base: &str, path: &str) -> bool {
    let mut at = 0;
    path.split('/').all(|part| {
        let before = path.get(..at).unwrap_or_default();
        at += part.len() + 1;
        part != ".." || before.is_empty() || is_directory(&normalize(base, before))
    })
}

fn is_directory(path: &str) -> bool {
    sys::stat(Path::new(&crate::exec::os(path)), true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR)
}

/// Links that lead to links; Linux stops at the same number.
const MAX_LINKS: usize = 40;

/// Returns `path` from `base` without links; `None` when there are too many of them, or `..` follows something that is not a directory.
fn resolved(base: &str, path: &str) -> Option<String> {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let mut left: Vec<String> = whole.split('/').rev().map(str::to_owned).collect();
    let (mut parts, mut links) = (Vec::<String>::new(), 0);
    while let Some(part) = left.pop() {
        match part.as_str() {
            "" | "." => continue,
            ".." if parts.is_empty() || is_directory(&format!("/{}", parts.join("/"))) => {
                parts.pop();
                continue;
            }
            ".." => return None,
            _ => parts.push(part),
        }
        let Ok(target) = std::fs::read_link(crate::exec::os(&format!("/{}", parts.join("/")))) else { continue };
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        let target = crate::exec::from_os(target.as_os_str());
        parts.pop();
        if target.starts_with('/') {
            parts.clear();
        }
        left.extend(target.split('/').rev().map(str::to_owned));
    }
    Some(format!("/{}", parts.join("/")))
}

/// Changes the working directory. In WebAssembly the C library does this, without checking the permission to search it.
fn enter(path: &str) -> std::io::Result<()> {
    let path = crate::exec::os(path);
    sys::stat(std::path::Path::new(&path).join(".").as_path(), true)?;
    std::env::set_current_dir(path)
}

impl Shell {
    /// Changes the working directory and what the variables say of it. `Err` is what is wrong.
    pub(crate) fn change_directory(&mut self, path: &str, physical: bool) -> Result<(), String> {
        self.output.flush();
        // A `..` takes away only what is there: bash then lets the system say what is wrong.
        let physical = physical || !steps_exist(&self.directory, path);
        let logical = normalize(&self.directory, path);
        // The C library of WebAssembly keeps the name by which a directory was entered.
        let real = physical.then(|| resolved(&self.directory, path)).flatten();
        let target = if physical { real.unwrap_or_else(|| path.to_owned()) } else { logical.clone() };
        if path.is_empty() {
            return Ok(());
        }
        let attempt = enter(&target);
        if let Err(error) = attempt {
            // The logical path may be gone while the given one still works.
            if physical || enter(path).is_err() {
                return Err(sys::message(&error));
            }
        }
        let old = std::mem::take(&mut self.directory);
        self.directory = if physical {
            std::env::current_dir().map(|path| crate::exec::from_os(path.as_os_str())).unwrap_or(logical)
        } else {
            logical
        };
        let directory = self.directory.clone();
        let old = self.get("PWD").unwrap_or(old);
        for (name, value) in [("OLDPWD", old), ("PWD", directory)] {
            if self.refuse_readonly(name) {
                continue;
            }
            self.set_plain(name, value);
            let variable = self.variables.entry(name);
            variable.attributes = variable.attributes.with(Attributes::EXPORT);
        }
        Ok(())
    }
}

pub(super) fn cd(shell: &mut Shell, args: &[String]) -> Done {
    if shell.wants_help(args) {
        return Ok(2);
    }
    let (options, at) = match parse_options(args, "LPe@") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("cd", &wrong)),
    };
    let mut physical = shell.on(SetOption::Physical);
    for (letter, _) in options {
        match letter {
            'P' => physical = true,
            'L' => physical = false,
            _ => {}
        }
    }
    let operands = args.get(at..).unwrap_or_default();
    if operands.len() > 1 {
        shell.complain("cd: too many arguments");
        return Ok(1);
    }
    let mut print = false;
    let target = match operands.first().map(String::as_str) {
        None => match shell.get("HOME") {
            Some(home) => home,
            None => {
                shell.complain("cd: HOME not set");
                return Ok(1);
            }
        },
        Some("-") => match shell.get("OLDPWD") {
            Some(old) => {
                print = true;
                old
            }
            None => {
                shell.complain("cd: OLDPWD not set");
                return Ok(1);
            }
        },
        Some(path) => path.to_owned(),
    };
    let relative = !target.starts_with('/') && !matches!(target.split('/').next(), Some("." | ".."));
    if relative
        && !operands.is_empty()
        && let Some(search) = shell.get("CDPATH")
    {
        for directory in search.split(':') {
            let candidate = if directory.is_empty() { target.clone() } else { format!("{directory}/{target}") };
            if is_directory(&candidate) && shell.change_directory(&candidate, physical).is_ok() {
                if !directory.is_empty() && directory != "." {
                    let directory = shell.directory.clone();
                    shell.write(&format!("{directory}\n"));
                }
                return Ok(0);
            }
        }
    }
    let result = match shell.change_directory(&target, physical) {
        Err(_) if shell.shopt(ShoptOption::CdableVars) && shell.get(&target).is_some() => {
            let value = shell.get(&target).unwrap_or_default();
            print = true;
            shell.change_directory(&value, physical)
        }
        other => other,
    };
    match result {
        Ok(()) => {
            if print {
                let directory = if target.is_empty() { String::new() } else { shell.directory.clone() };
                shell.write(&format!("{directory}\n"));
            }
            Ok(0)
        }
        Err(message) => {
            shell.complain(format_args!("cd: {target}: {message}"));
            Ok(1)
        }
    }
}

pub(super) fn pwd(shell: &mut Shell, args: &[String]) -> Done {
    if shell.wants_help(args) {
        return Ok(2);
    }
    let (options, _) = match parse_options(args, "LP") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("pwd", &wrong)),
    };
    let physical = options.last().map_or(shell.on(SetOption::Physical), |(letter, _)| *letter == 'P');
    let path = if physical {
        match std::env::current_dir() {
            Ok(path) => crate::exec::from_os(std::fs::canonicalize(&path).unwrap_or(path).as_os_str()),
            Err(_) => shell.directory.clone(),
        }
    } else {
        shell.directory.clone()
    };
    shell.write(&format!("{path}\n"));
    Ok(0)
}

fn list_stack(shell: &mut Shell, long: bool, per_line: bool, numbered: bool) {
    let home = shell.get("HOME").unwrap_or_default();
    let all: Vec<String> = std::iter::once(shell.directory.clone()).chain(shell.directory_stack.iter().cloned()).collect();
    let shown: Vec<String> = all.iter().map(|path| if long { path.clone() } else { abbreviate_home(path, &home) }).collect();
    let text = if numbered {
        shown.iter().enumerate().map(|(at, path)| format!("{at:>2}  {path}\n")).collect()
    } else if per_line {
        shown.iter().map(|path| format!("{path}\n")).collect()
    } else {
        format!("{}\n", shown.join(" "))
    };
    shell.write(&text);
}

/// Returns the place that `+n` or `-n` names among `count` entries.
fn stack_place(text: &str, count: usize) -> Option<usize> {
    let number: usize = text.get(1..)?.parse().ok()?;
    match text.as_bytes().first() {
        Some(b'+') if number < count => Some(number),
        Some(b'-') if number < count => Some(count - 1 - number),
        _ => None,
    }
}

fn is_place(text: &str) -> bool {
    text.len() > 1 && text.starts_with(['+', '-']) && text[1..].bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn dirs(shell: &mut Shell, args: &[String]) -> Done {
    let (mut long, mut per_line, mut numbered) = (false, false, false);
    for arg in args.iter().skip(1) {
        if is_place(arg) {
            let count = shell.directory_stack.len() + 1;
            let Some(place) = stack_place(arg, count) else {
                shell.complain(format_args!("dirs: {}: directory stack index out of range", arg.trim_start_matches(['+', '-'])));
                return Ok(1);
            };
            let home = shell.get("HOME").unwrap_or_default();
            let path = if place == 0 { shell.directory.clone() } else { shell.directory_stack[place - 1].clone() };
            let path = if long { path } else { abbreviate_home(&path, &home) };
            shell.write(&format!("{path}\n"));
            return Ok(0);
        }
        let Some(letters) = arg.strip_prefix('-') else {
            shell.complain(format_args!("dirs: {arg}: invalid option"));
            return Ok(shell.usage("dirs"));
        };
        for letter in letters.chars() {
            match letter {
                'c' => {
                    shell.directory_stack.clear();
                    return Ok(0);
                }
                'l' => long = true,
                'p' => per_line = true,
                'v' => numbered = true,
                _ => {
                    shell.complain(format_args!("dirs: {arg}: invalid number"));
                    return Ok(shell.usage("dirs"));
                }
            }
        }
    }
    list_stack(shell, long, per_line, numbered);
    Ok(0)
}

pub(super) fn pushd(shell: &mut Shell, args: &[String]) -> Done {
    let mut stay = false;
    let mut operand = None;
    for arg in args.iter().skip(1) {
        match arg.as_str() {
            "-n" => stay = true,
            "--" => {}
            _ if is_place(arg) => operand = Some(arg.clone()),
            _ if arg.starts_with('-') && arg.len() > 1 => {
                shell.complain(format_args!("pushd: {arg}: invalid number"));
                return Ok(shell.usage("pushd"));
            }
            _ => operand = Some(arg.clone()),
        }
    }
    if args.iter().skip(1).filter(|arg| !matches!(arg.as_str(), "-n" | "--")).count() > 1 {
        shell.complain("pushd: too many arguments");
        return Ok(1);
    }
    let count = shell.directory_stack.len() + 1;
    match operand {
        None => {
            if shell.directory_stack.is_empty() {
                shell.complain("pushd: no other directory");
                return Ok(1);
            }
            let target = shell.directory_stack.remove(0);
            let old = shell.directory.clone();
            if let Err(message) = shell.change_directory(&target, false) {
                shell.directory_stack.insert(0, target.clone());
                shell.complain(format_args!("pushd: {target}: {message}"));
                return Ok(1);
            }
            shell.directory_stack.insert(0, old);
        }
        // There is nothing to turn without a change of the directory.
        Some(text) if stay && is_place(&text) => return Ok(0),
        Some(text) if is_place(&text) => {
            if shell.directory_stack.is_empty() {
                shell.complain("pushd: directory stack empty");
                return Ok(1);
            }
            let Some(place) = stack_place(&text, count) else {
                shell.complain(format_args!("pushd: {text}: directory stack index out of range"));
                return Ok(1);
            };
            let mut all: Vec<String> = std::iter::once(shell.directory.clone()).chain(shell.directory_stack.drain(..)).collect();
            all.rotate_left(place);
            let target = all.remove(0);
            shell.directory_stack = all;
            if let Err(message) = shell.change_directory(&target, false) {
                shell.complain(format_args!("pushd: {target}: {message}"));
                return Ok(1);
            }
        }
        Some(path) if stay => shell.directory_stack.insert(0, path),
        Some(path) => {
            let old = shell.directory.clone();
            let path = if path == "-" { shell.get("OLDPWD").unwrap_or_default() } else { path };
            if let Err(message) = shell.change_directory(&path, false) {
                shell.complain(format_args!("pushd: {path}: {message}"));
                return Ok(1);
            }
            shell.directory_stack.insert(0, old);
        }
    }
    list_stack(shell, false, false, false);
    Ok(0)
}

pub(super) fn popd(shell: &mut Shell, args: &[String]) -> Done {
    let mut stay = false;
    let mut place = 0;
    let count = shell.directory_stack.len() + 1;
    if count == 1 && args.get(1).is_none_or(|arg| is_place(arg)) {
        shell.complain("popd: directory stack empty");
        return Ok(1);
    }
    for arg in args.iter().skip(1) {
        match arg.as_str() {
            "-n" => stay = true,
            "--" => {}
            _ if is_place(arg) => match stack_place(arg, count) {
                Some(found) => place = found,
                None => {
                    shell.complain(format_args!("popd: {arg}: directory stack index out of range"));
                    return Ok(1);
                }
            },
            _ if arg.starts_with('-') => {
                shell.complain(format_args!("popd: {arg}: invalid number"));
                return Ok(shell.usage("popd"));
            }
            _ => {
                shell.complain(format_args!("popd: {arg}: invalid argument"));
                return Ok(shell.usage("popd"));
            }
        }
    }
    if shell.directory_stack.is_empty() {
        shell.complain("popd: directory stack empty");
        return Ok(1);
    }
    if stay && place == 0 {
        shell.directory_stack.remove(0);
    } else if place == 0 {
        let target = shell.directory_stack.remove(0);
        if let Err(message) = shell.change_directory(&target, false) {
            shell.directory_stack.insert(0, target.clone());
            shell.complain(format_args!("popd: {target}: {message}"));
            return Ok(1);
        }
    } else {
        shell.directory_stack.remove(place - 1);
    }
    list_stack(shell, false, false, false);
    Ok(0)
}
