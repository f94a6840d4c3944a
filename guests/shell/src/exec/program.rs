//! Outside programs: where they are, what they are given, how they start.

use std::path::Path;

use crate::ast::SimpleCommand;
use crate::bytes;
use crate::shell::{Done, Shell};
use crate::state::variables::{Attributes, Value};

/// Where commands are searched if PATH is unset.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

impl Shell {
    /// Returns the file of a command without a slash in its name, by the hash table or by PATH.
    pub(crate) fn find_program(&mut self, name: &str) -> Option<String> {
        if name.contains('/') {
            return sys::stat(Path::new(&super::os(name)), true).is_ok().then(|| name.to_owned());
        }
        if let Some((path, _)) = self.hashed.get(name) {
            return Some(path.clone());
        }
        let Some(path) = self.search_path(name, true).into_iter().next() else {
            return self.search_plain(name);
        };
        if self.on(crate::state::options::SetOption::HashAll) {
            self.hashed.insert(name.to_owned(), (path.clone(), 0));
        }
        Some(path)
    }

    /// Returns all executable files of that name along PATH; only the first one with `first`.
    pub(crate) fn search_path(&mut self, name: &str, first: bool) -> Vec<String> {
        let path = self.get("PATH").unwrap_or_else(|| DEFAULT_PATH.to_owned());
        let mut found = Vec::new();
        if name.is_empty() {
            return found;
        }
        for directory in path.split(':') {
            let candidate = match directory {
                "" => format!("./{name}"),
                directory => format!("{}/{name}", directory.trim_end_matches('/')),
            };
            let file = super::os(&candidate);
            let executable = sys::stat(Path::new(&file), true)
                .is_ok_and(|stat| stat.kind() != sys::stat::S_IFDIR && sys::permits(&stat, sys::Permission::Execute));
            if executable {
                found.push(candidate);
                if first {
                    break;
                }
            }
        }
        found
    }

    /// Returns the first file of that name along PATH, though it may not be executed.
    pub(crate) fn search_plain(&mut self, name: &str) -> Option<String> {
        let path = self.get("PATH").unwrap_or_else(|| DEFAULT_PATH.to_owned());
        path.split(':').filter(|directory| !name.is_empty() && !directory.is_empty()).find_map(|directory| {
            let candidate = format!("{}/{name}", directory.trim_end_matches('/'));
            let stat = sys::stat(Path::new(&super::os(&candidate)), true).ok()?;
            (stat.kind() == sys::stat::S_IFREG).then_some(candidate)
        })
    }

    /// Returns the environment of a program: exported variables and functions.
    pub(crate) fn environment(&mut self) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let argument = self.last_argument.clone();
        for (name, variable) in self.variables.iter() {
            if !variable.attributes.has(Attributes::EXPORT) || variable.attributes.has(Attributes::DYNAMIC) {
                continue;
            }
            if let (Value::Scalar(_), Some(text)) = (&variable.value, variable.scalar())
                && name != "_"
            {
                let mut entry = name.clone().into_bytes();
                entry.push(b'=');
                entry.extend_from_slice(&bytes::encode(text));
                out.push(entry);
            }
        }
        for name in ["SHELLOPTS", "BASHOPTS"] {
            let exported = self.variables.get(name).is_some_and(|variable| variable.attributes.has(Attributes::EXPORT));
            if exported && let Some(text) = self.get(name) {
                out.push(bytes::encode(&format!("{name}={text}")).into_owned());
            }
        }
        for (name, entry) in &self.functions {
            if entry.exported {
                let text = crate::shown::function_body(&entry.function);
                out.push(bytes::encode(&format!("BASH_FUNC_{name}%%=() {text}")).into_owned());
            }
        }
        out.sort();
        out.push(bytes::encode(&format!("_={argument}")).into_owned());
        out
    }

    fn request(&mut self, path: &str, args: &[String]) -> sys::Request {
        let cwd = std::env::current_dir().map(|cwd| cwd.into_os_string().into_encoded_bytes()).unwrap_or_else(|_| b"/".to_vec());
        let shown = std::mem::replace(&mut self.last_argument, path.to_owned());
        let env = self.environment();
        self.last_argument = shown;
        let mut file = bytes::encode(path).into_owned();
        if !file.starts_with(b"/") {
            let mut joined = cwd.clone();
            if !joined.ends_with(b"/") {
                joined.push(b'/');
            }
            joined.extend_from_slice(&file);
            file = joined;
        }
        sys::Request {
            flags: 0,
            path: file,
            cwd,
            args: args.iter().map(|arg| bytes::encode(arg).into_owned()).collect(),
            env,
            actions: Vec::new(),
        }
    }

    /// Starts a program; on failure, reports the reason and returns the status. `replace` ends this process instead.
    pub(crate) fn launch(&mut self, args: &[String], replace: bool) -> Result<u32, i32> {
        let name = args.first().map_or("", String::as_str);
        let Some(path) = self.find_program(name) else {
            return Err(self.refuse_missing_program(name));
        };
        if let Some(entry) = self.hashed.get_mut(name) {
            entry.1 += 1;
        }
        self.launch_file(&path, args, replace)
    }

    /// Starts the program in a file, whatever name the arguments have for it.
    pub(crate) fn launch_file(&mut self, path: &str, args: &[String], replace: bool) -> Result<u32, i32> {
        let name = args.first().map_or("", String::as_str);
        self.output.flush();
        if replace {
            self.shift_level(-1);
        }
        let request = self.request(path, args);
        if replace {
            self.shift_level(1);
        }
        let error = match self.start(&request, replace) {
            Ok(pid) => return Ok(pid),
            Err(error) => error,
        };
        if error.raw_os_error() == Some(sys::errno::ENOEXEC) {
            return self.launch_script(path, args, replace);
        }
        Err(self.refuse_program(path, name, &error))
    }

    /// Shifts SHLVL, because a program that replaces this shell is not one level deeper.
    fn shift_level(&mut self, by: i64) {
        if let Some(level) = self.get("SHLVL").and_then(|text| text.parse::<i64>().ok()) {
            self.set_plain("SHLVL", (level + by).max(0).to_string());
        }
    }

    fn start(&mut self, request: &sys::Request, replace: bool) -> std::io::Result<u32> {
        if replace { Err(sys::exec(request)) } else { sys::spawn(request) }
    }

    /// Runs a file that the system cannot: by its `#!` line, or else as a script of this shell.
    fn launch_script(&mut self, path: &str, args: &[String], replace: bool) -> Result<u32, i32> {
        let head = std::fs::read(super::os(path)).unwrap_or_default();
        let head = head.get(..head.len().min(256)).unwrap_or_default();
        let first = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let (interpreter, argument) = match first.strip_prefix(b"#!") {
            Some(line) => {
                let line = bytes::decode(line);
                let line = line.trim();
                match line.split_once([' ', '\t']) {
                    Some((program, rest)) => (program.to_owned(), Some(rest.trim().to_owned())),
                    None => (line.to_owned(), None),
                }
            }
            None if first.contains(&0) => {
                self.complain(format_args!("{path}: cannot execute binary file: Exec format error"));
                return Err(126);
            }
            None => (self.own_program(), None),
        };
        let mut new_args = vec![interpreter.clone()];
        new_args.extend(argument);
        new_args.push(path.to_owned());
        new_args.extend(args.iter().skip(1).cloned());
        let request = self.request(&interpreter, &new_args);
        match self.start(&request, replace) {
            Ok(pid) => Ok(pid),
            Err(error) if error.raw_os_error() == Some(sys::errno::ENOENT) => {
                self.complain(format_args!("{path}: cannot execute: required file not found"));
                Err(127)
            }
            Err(error) => {
                self.complain(format_args!("{path}: {interpreter}: bad interpreter: {}", sys::message(&error)));
                Err(126)
            }
        }
    }

    /// Returns the path of this very program.
    fn own_program(&mut self) -> String {
        if cfg!(target_arch = "wasm32") {
            return "/bin/bash".to_owned();
        }
        std::env::current_exe().map(|path| super::from_os(path.as_os_str())).unwrap_or_else(|_| "/bin/bash".to_owned())
    }

    pub(crate) fn refuse_missing_program(&mut self, name: &str) -> i32 {
        if name.contains('/')
            && let Err(error) = sys::stat(Path::new(&super::os(name)), true)
            && error.raw_os_error() != Some(sys::errno::ENOENT)
        {
            self.complain(format_args!("{name}: {}", sys::message(&error)));
            return 126;
        }
        if name.contains('/') || self.get("PATH").is_none_or(|path| path.is_empty()) {
            self.complain(format_args!("{name}: No such file or directory"));
        } else if let Some(reason) = crate::why_absent(name) {
            self.complain(format_args!("{name}: {reason}"));
        } else {
            let shown = if crate::quote::has_unprintable(name) { crate::quote::ansi_c(name) } else { name.to_owned() };
            self.complain(format_args!("{shown}: command not found"));
        }
        127
    }

    fn refuse_program(&mut self, path: &str, name: &str, error: &std::io::Error) -> i32 {
        let is_directory = sys::stat(Path::new(&super::os(path)), true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR);
        self.hashed.remove(name);
        if is_directory {
            self.complain(format_args!("{path}: Is a directory"));
            return 126;
        }
        let missing = error.raw_os_error() == Some(sys::errno::ENOENT);
        if missing && sys::stat(Path::new(&super::os(path)), true).is_ok() {
            self.complain(format_args!("{path}: cannot execute: required file not found"));
            return 127;
        }
        self.complain(format_args!("{path}: {}", sys::message(error)));
        if missing { 127 } else { 126 }
    }

    /// Starts a simple command that is an outside program between two pipe ends, without a fork.
    pub(crate) fn spawn_with(
        &mut self,
        simple: &SimpleCommand,
        input: Option<u32>,
        output: Option<u32>,
        unwanted: &[u32],
    ) -> Done<Result<u32, i32>> {
        let line = std::mem::replace(&mut self.line, simple.line);
        let mut args = Vec::with_capacity(simple.words.len());
        for argument in &simple.words {
            if let crate::ast::Argument::Word(word) = argument {
                self.expand_word(word, &mut args)?;
            }
        }
        self.count_command();
        self.output.flush();
        let mut saved = Vec::new();
        if let Some(fd) = input {
            saved.push(self.replace_fd(fd, 0));
        }
        if let Some(fd) = output {
            saved.push(self.replace_fd(fd, 1));
        }
        let _ = unwanted;
        let scoped = !simple.assignments.is_empty();
        let result = self.spawn_redirected(simple, &args, scoped);
        if scoped {
            self.pop_temporary();
        }
        for saved in saved.into_iter().rev() {
            self.restore_redirects(saved);
        }
        self.line = line;
        result
    }

    fn spawn_redirected(&mut self, simple: &SimpleCommand, args: &[String], scoped: bool) -> Done<Result<u32, i32>> {
        if scoped {
            self.variables.push_scope(false);
        }
        match self.apply_redirects(&simple.redirects)? {
            Err(status) => Ok(Err(status)),
            Ok(inner) => {
                let assigned = self.assign_temporary(&simple.assignments);
                let started = match assigned {
                    Ok(()) => Ok(self.launch(args, false)),
                    Err(flow) => Err(flow),
                };
                self.restore_redirects(inner);
                started
            }
        }
    }
}
