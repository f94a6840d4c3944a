//! Starting a shell: its command line, its first variables, and where its commands come from.

use std::path::Path;

use crate::bytes;
use crate::prepared::{self, MACHINE, VERSION};
use crate::shell::{Done, Flow, Frame, Origin, Shell};
use crate::state::assign::is_name;
use crate::state::options::{SetOption, ShoptOption};
use crate::state::variables::{Attributes, Value};
use crate::syntax::Parser;

/// Every long option that bash has, in its order.
const LONG_OPTIONS: &[&str] = &[
    "debug",
    "debugger",
    "dump-po-strings",
    "dump-strings",
    "help",
    "init-file",
    "login",
    "noediting",
    "noprofile",
    "norc",
    "posix",
    "pretty-print",
    "rcfile",
    "restricted",
    "verbose",
    "version",
];

fn usage(own: &str) -> String {
    let long: String = LONG_OPTIONS.iter().map(|name| format!("\t--{name}\n")).collect();
    format!(
        "Usage:\t{own} [GNU long option] [option] ...\n\t{own} [GNU long option] [option] script-file ...\n\
         GNU long options:\n{long}Shell options:\n\
         \t-ilrsD or -c command or -O shopt_option\t\t(invocation only)\n\t-abefhkmnptuvxBCEHPT or -o option\n"
    )
}

/// The options of the command line.
#[derive(Debug, Default)]
struct Invocation {
    command: bool,
    stdin: bool,
    interactive: bool,
    login: bool,
    no_rc: bool,
    no_profile: bool,
    rc_file: Option<String>,
    version: bool,
    help: bool,
    options: Vec<(SetOption, bool)>,
    shopts: Vec<(ShoptOption, bool)>,
    list_options: Option<bool>,
    rest: usize,
}

/// Runs a shell with these arguments, its own name first, and returns its exit status.
#[must_use]
pub fn run(args: &[String]) -> u8 {
    let own = args.first().map_or("bash", String::as_str);
    let base = own.rsplit('/').next().unwrap_or(own).trim_start_matches('-');
    let bottom = 0u8;
    // It lives as long as the process: dropping it at the end would be useless work.
    let shell = Box::leak(prepared::take());
    shell.stack_base = std::ptr::from_ref(&bottom) as usize;
    own.clone_into(&mut shell.name);
    own.clone_into(&mut shell.last_argument);
    shell.look_around();
    shell.import_environment();
    shell.count_level();
    shell.set_first_directory();
    shell.output.look();
    if base == "sh" || shell.variables.get("POSIXLY_CORRECT").is_some() {
        shell.switch(SetOption::Posix, true);
    }
    let invocation = match parse(args) {
        Ok(invocation) => invocation,
        Err(wrong) => {
            if let Some(name) = wrong.strip_prefix("-o ") {
                shell.write_error(&format!("{own}: line 0: {own}: {name}: invalid option name\n"));
                return 2;
            }
            let text = format!("{own}: {wrong}: invalid option\n{}", usage(own));
            shell.write_error(&text);
            return 2;
        }
    };
    if invocation.version {
        shell.write(&format!("GNU bash, version {VERSION} ({MACHINE})\n"));
        shell.write("A shell of Sandlite's own that behaves as this version does\n");
        return shell.finish(0);
    }
    if invocation.help {
        shell.write(&format!("GNU bash, version {VERSION}-({MACHINE})\n{}", usage(own)));
        shell.write("Type `help' in the shell to see its builtins.\n");
        return shell.finish(0);
    }
    for (option, on) in &invocation.options {
        shell.switch(*option, *on);
    }
    for (option, on) in &invocation.shopts {
        shell.options.set_shopt(*option, *on);
    }
    shell.interactive = invocation.interactive;
    if invocation.login {
        shell.options.set_shopt(ShoptOption::LoginShell, true);
    }
    if invocation.interactive {
        shell.become_interactive();
    }
    if let Some(as_commands) = invocation.list_options {
        let args: Vec<String> = ["set", if as_commands { "+o" } else { "-o" }].map(str::to_owned).to_vec();
        if let Some(set) = shell.builtin("set") {
            let _ = shell.run_builtin(set, &args);
        }
    }
    let result = shell.run_invocation(&invocation, args.get(invocation.rest..).unwrap_or_default());
    let status = crate::exec::final_status(shell, result);
    shell.finish(status)
}

fn parse(args: &[String]) -> Result<Invocation, String> {
    let mut invocation = Invocation::default();
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        match arg.as_str() {
            "--" | "-" => {
                at += 1;
                break;
            }
            "--version" => invocation.version = true,
            "--help" => invocation.help = true,
            "--posix" => invocation.options.push((SetOption::Posix, true)),
            "--verbose" => invocation.options.push((SetOption::Verbose, true)),
            "--login" => invocation.login = true,
            "--norc" => invocation.no_rc = true,
            "--noprofile" => invocation.no_profile = true,
            "--noediting" | "--debugger" | "--restricted" => {}
            "--rcfile" | "--init-file" => {
                at += 1;
                invocation.rc_file = args.get(at).cloned();
            }
            long if long.starts_with("--") => return Err(long.to_owned()),
            short if short.len() > 1 && short.starts_with(['-', '+']) => {
                let on = short.starts_with('-');
                for letter in short.chars().skip(1) {
                    match letter {
                        'c' => invocation.command = true,
                        's' if on => invocation.stdin = true,
                        'i' if on => invocation.interactive = true,
                        'l' => invocation.login = on,
                        'r' | 'D' => {}
                        'o' => match args.get(at + 1) {
                            None => invocation.list_options = Some(!on),
                            Some(name) => {
                                let option = SetOption::named(name).ok_or_else(|| format!("-o {name}"))?;
                                invocation.options.push((option, on));
                                at += 1;
                            }
                        },
                        'O' => {
                            if let Some(name) = args.get(at + 1) {
                                let option = ShoptOption::named(name).ok_or_else(|| name.clone())?;
                                invocation.shopts.push((option, on));
                                at += 1;
                            }
                        }
                        letter => {
                            let option = SetOption::lettered(letter).ok_or_else(|| format!("-{letter}"))?;
                            invocation.options.push((option, on));
                        }
                    }
                }
            }
            _ => break,
        }
        at += 1;
    }
    invocation.rest = at;
    Ok(invocation)
}

impl Shell {
    fn run_invocation(&mut self, invocation: &Invocation, rest: &[String]) -> Done {
        if invocation.login && !invocation.no_profile {
            self.source_profile()?;
        } else if invocation.interactive && !invocation.no_rc && !self.on(SetOption::Posix) {
            let file = invocation.rc_file.clone();
            self.source_rc(file)?;
        }
        if invocation.command {
            let Some((text, rest)) = rest.split_first() else {
                let name = self.name.clone();
                self.write_error(&format!("{name}: -c: option requires an argument\n"));
                return Ok(2);
            };
            if let Some((name, positional)) = rest.split_first() {
                self.name.clone_from(name);
                self.positional = positional.to_vec();
            }
            self.origin = Origin::CommandString;
            self.command_string = Some(text.clone());
            self.enter_session(!rest.is_empty());
            self.source_env();
            self.set_plain("BASH_EXECUTION_STRING", text.clone());
            // In a session something comes after the last program: the state is kept.
            return if self.session { self.run_text(text, 1, Some("-c")) } else { self.run_text_tail(text, Some("-c")) };
        }
        match rest.split_first() {
            Some((file, arguments)) if !invocation.stdin => {
                self.source_env();
                self.run_script(file, arguments)
            }
            _ => {
                self.positional = rest.to_vec();
                self.origin = Origin::Stdin;
                self.source_env();
                self.run_stdin()
            }
        }
    }

    /// Reads BASH_ENV in a shell that is not interactive.
    fn source_env(&mut self) {
        if self.interactive || self.on(SetOption::Posix) {
            return;
        }
        let Some(file) = self.get("BASH_ENV").filter(|file| !file.is_empty()) else { return };
        let Ok(file) = self.expand_prompt(&file) else { return };
        if sys::stat(Path::new(&crate::exec::os(&file)), true).is_ok()
            && let Some(source) = self.builtin("source")
        {
            let _ = self.run_builtin(source, &["source".to_owned(), file]);
        }
    }

    fn run_script(&mut self, file: &str, arguments: &[String]) -> Done {
        self.origin = Origin::Script;
        let mut path = file.to_owned();
        let missing = sys::stat(Path::new(&crate::exec::os(&path)), true).is_err();
        if missing
            && !file.contains('/')
            && let Some(found) = self.find_program(file)
        {
            path = found;
        }
        let own = self.name.clone();
        let os_path = crate::exec::os(&path);
        if sys::stat(Path::new(&os_path), true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR) {
            self.write_error(&format!("{path}: {path}: Is a directory\n"));
            return Ok(126);
        }
        let content = match std::fs::read(&os_path) {
            Ok(content) => content,
            Err(error) => {
                self.write_error(&format!("{own}: {path}: {}\n", sys::message(&error)));
                return Ok(if error.raw_os_error() == Some(sys::errno::ENOENT) { 127 } else { 126 });
            }
        };
        let head = content.get(..content.len().min(80)).unwrap_or_default();
        let first = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        if first.contains(&0) {
            self.write_error(&format!("{path}: {path}: cannot execute binary file\n"));
            return Ok(126);
        }
        self.name = path;
        self.positional = arguments.to_vec();
        let source: std::rc::Rc<str> = self.name.as_str().into();
        self.frames.push(Frame {
            name: "main".into(),
            source,
            call_line: 0,
            function: false,
            options: None,
            arguments: arguments.to_vec(),
        });
        let text = bytes::decode(&content);
        let result = self.run_text_tail(&text, None);
        // The EXIT trap still runs as part of the script.
        match result {
            Err(Flow::Return(status)) => Ok(status),
            other => other,
        }
    }

    /// Applies the variables of a session's call over those that the session stored.
    pub(crate) fn import_environment_again(&mut self) {
        for (name, value) in std::env::vars_os() {
            let (name, value) = (crate::exec::from_os(&name), crate::exec::from_os(&value));
            let readonly = self.variables.get(&name).is_some_and(|known| known.attributes.has(Attributes::READONLY));
            if is_name(&name) && !readonly && name != "PWD" {
                let variable = self.variables.entry(&name);
                variable.attributes = Attributes::EXPORT;
                variable.value = Value::Scalar(value);
            }
        }
    }

    fn import_environment(&mut self) {
        for (name, value) in std::env::vars_os() {
            let name = crate::exec::from_os(&name);
            let value = crate::exec::from_os(&value);
            if let Some(function) = name.strip_prefix("BASH_FUNC_").and_then(|name| name.strip_suffix("%%")) {
                self.import_function(function, &value);
                continue;
            }
            if name == "_" {
                self.last_argument = value;
                continue;
            }
            if name == "SHELLOPTS" {
                self.import_options(&value);
                continue;
            }
            if !is_name(&name) || matches!(name.as_str(), "BASHOPTS" | "_" | "PIPESTATUS" | "LINENO" | "BASHPID") {
                continue;
            }
            if prepared::KEPT.contains(&name.as_str()) {
                continue;
            }
            let variable = self.variables.entry(&name);
            variable.attributes = Attributes::EXPORT;
            if !prepared::EXPORTED_AT_MOST.contains(&name.as_str()) {
                variable.value = Value::Scalar(value);
            }
        }
    }

    /// Applies SHELLOPTS from the environment: the options of the parent shell.
    fn import_options(&mut self, value: &str) {
        for option in value.split(':').filter_map(SetOption::named) {
            self.switch(option, true);
        }
        let variable = self.variables.entry("SHELLOPTS");
        variable.attributes = variable.attributes.with(Attributes::EXPORT);
    }

    fn import_function(&mut self, name: &str, text: &str) {
        let source = format!("{name} {text}");
        let mut parser = Parser::new(&source, self.syntax_options());
        let Ok(list) = parser.all() else { return };
        let [item] = list.items.as_slice() else { return };
        if let [crate::ast::Command::Function(function)] = item.and_or.first.commands.as_slice() {
            let entry = crate::shell::FunctionEntry {
                function: std::rc::Rc::clone(function),
                source: "environment".into(),
                exported: true,
                readonly: false,
                traced: false,
            };
            self.functions.insert(name.to_owned(), entry);
        }
    }

    /// Sets the variables that come from the system: user, time, arguments.
    fn look_around(&mut self) {
        let [pid, parent, _] = sys::process_ids();
        let now = sys::now_ns();
        self.pid = pid;
        self.seconds_from = now;
        self.started = now;
        self.random = (now as u32) ^ pid.wrapping_mul(2_654_435_761);
        self.set_plain("PPID", parent.to_string());
        // Signals that we were started with ignored stay ignored, and cannot be trapped.
        let never = [sys::Signal::KILL, sys::Signal::PIPE, sys::Signal::CHLD, sys::Signal::STOP];
        self.traps.ignored_at_start = never.iter().fold(sys::signals_ignored(), |mask, signal| mask & !signal.bit());
    }

    fn count_level(&mut self) {
        let level = self.get("SHLVL").and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(0) + 1;
        self.set_plain("SHLVL", level.max(0).to_string());
        let variable = self.variables.entry("SHLVL");
        variable.attributes = variable.attributes.with(Attributes::EXPORT);
    }

    /// Uses PWD from the environment if it names the current directory.
    fn set_first_directory(&mut self) {
        let physical = std::env::current_dir().map_or_else(|_| "/".to_owned(), |path| crate::exec::from_os(path.as_os_str()));
        let stat = |path: &str| sys::stat(Path::new(&crate::exec::os(path)), true).ok().map(|stat| (stat.dev, stat.ino));
        let is_here =
            |path: &String| *path == physical || path.starts_with('/') && stat(path).is_some_and(|it| stat(".") == Some(it));
        let named = self.get("PWD").filter(is_here);
        // The C library of WebAssembly keeps the name by which a directory was entered, which may lead through links.
        let unlinked = || {
            let path = std::fs::canonicalize(crate::exec::os(&physical));
            path.map_or_else(|_| physical.clone(), |path| crate::exec::from_os(path.as_os_str()))
        };
        self.directory = named.unwrap_or_else(unlinked);
        let directory = self.directory.clone();
        self.set_plain("PWD", directory);
        let is_directory =
            |path: &str| sys::stat(Path::new(&crate::exec::os(path)), true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR);
        if self.get("OLDPWD").is_some_and(|old| !is_directory(&old)) {
            self.variables.unset("OLDPWD");
        }
        for name in ["PWD", "OLDPWD"] {
            let variable = self.variables.entry(name);
            variable.attributes = variable.attributes.with(Attributes::EXPORT);
        }
    }
}
