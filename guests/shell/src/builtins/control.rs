//! Builtins that steer: loops, functions, `eval`, `source`, `exec`, `exit`.

use std::path::Path;

use super::parse_options;
use crate::bytes;
use crate::shell::{Done, Flow, Frame, Shell};
use crate::state::options::{SetOption, ShoptOption};
use crate::state::signals::Event;

pub(super) fn nothing(_: &mut Shell, _: &[String]) -> Done {
    Ok(0)
}

pub(super) fn fail(_: &mut Shell, _: &[String]) -> Done {
    Ok(1)
}

fn loop_count(shell: &mut Shell, args: &[String]) -> Done<Result<u32, i32>> {
    let name = args.first().map_or("", String::as_str);
    if shell.loops == 0 {
        shell.complain(format_args!("{name}: only meaningful in a `for', `while', or `until' loop"));
        return Ok(Err(0));
    }
    let at = if args.get(1).map(String::as_str) == Some("--") { 2 } else { 1 };
    if args.len() > at + 1 {
        shell.complain(format_args!("{name}: too many arguments"));
        return Err(shell.abandon());
    }
    let Some(text) = args.get(at) else { return Ok(Ok(1)) };
    match text.parse::<i64>() {
        Ok(number) if number >= 1 => Ok(Ok(u32::try_from(number).unwrap_or(u32::MAX).min(shell.loops))),
        Ok(_) => {
            shell.complain(format_args!("{name}: {text}: loop count out of range"));
            shell.break_status = 1;
            Ok(Ok(0))
        }
        Err(_) => {
            shell.complain(format_args!("{name}: {text}: numeric argument required"));
            Err(Flow::Exit(128))
        }
    }
}

pub(super) fn break_loop(shell: &mut Shell, args: &[String]) -> Done {
    match loop_count(shell, args)? {
        Ok(0) => Err(Flow::Break(shell.loops)),
        Ok(count) => Err(Flow::Break(count)),
        Err(status) => Ok(status),
    }
}

pub(super) fn continue_loop(shell: &mut Shell, args: &[String]) -> Done {
    match loop_count(shell, args)? {
        Ok(0) => Err(Flow::Break(shell.loops)),
        Ok(count) => Err(Flow::Continue(count)),
        Err(status) => Ok(status),
    }
}

/// Returns the status operand of `exit` and `return`.
fn status_operand(shell: &mut Shell, args: &[String], default: i32) -> Done {
    let name = args.first().map_or("", String::as_str);
    let at = if args.get(1).map(String::as_str) == Some("--") { 2 } else { 1 };
    let Some(text) = args.get(at) else { return Ok(default) };
    let Ok(number) = text.trim().parse::<i64>() else {
        shell.complain(format_args!("{name}: {text}: numeric argument required"));
        return Ok(2);
    };
    if args.len() > at + 1 {
        shell.complain(format_args!("{name}: too many arguments"));
        return Err(shell.abandon());
    }
    Ok((number & 0xff) as i32)
}

pub(super) fn exit(shell: &mut Shell, args: &[String]) -> Done {
    if shell.wants_help(args) {
        return Ok(2);
    }
    let in_exit_trap = shell.traps.running.contains(&Event::EXIT);
    let default = shell.exiting.filter(|_| in_exit_trap).unwrap_or(shell.status);
    let status = status_operand(shell, args, default)?;
    Err(shell.leave(status))
}

pub(super) fn return_(shell: &mut Shell, args: &[String]) -> Done {
    let default = shell.status;
    let inside = shell.frames.iter().any(|frame| frame.function || &*frame.name == "source");
    if !inside {
        shell.complain("return: can only `return' from a function or sourced script");
        return Ok(2);
    }
    Err(Flow::Return(status_operand(shell, args, default)?))
}

pub(super) fn shift(shell: &mut Shell, args: &[String]) -> Done {
    let at = if args.get(1).map(String::as_str) == Some("--") { 2 } else { 1 };
    let count = match args.get(at) {
        None => 1,
        Some(text) => match text.trim().parse::<i64>() {
            Ok(count) => count,
            Err(_) => {
                shell.complain(format_args!("shift: {text}: numeric argument required"));
                return Ok(1);
            }
        },
    };
    if args.len() > at + 1 {
        shell.complain("shift: too many arguments");
        return Err(shell.abandon());
    }
    let Ok(count) = usize::try_from(count) else {
        shell.complain(format_args!("shift: {count}: shift count out of range"));
        return Ok(1);
    };
    if count > shell.positional.len() {
        if shell.shopt(ShoptOption::ShiftVerbose) || shell.on(SetOption::Posix) {
            shell.complain(format_args!("shift: {count}: shift count out of range"));
        }
        return Ok(1);
    }
    shell.positional.drain(..count);
    Ok(0)
}

pub(super) fn eval(shell: &mut Shell, args: &[String]) -> Done {
    let mut words = args.get(1..).unwrap_or_default();
    match words.first().map(String::as_str) {
        Some("--") => words = words.get(1..).unwrap_or_default(),
        Some(option) if option.starts_with('-') && option.len() > 1 => {
            return Ok(shell.refuse_option("eval", option.get(..2).unwrap_or(option)));
        }
        _ => {}
    }
    if words.is_empty() {
        return Ok(0);
    }
    let text = words.join(" ");
    shell.trace_level += 1;
    let result = shell.run_eval(&text);
    shell.trace_level -= 1;
    result
}

pub(super) fn let_(shell: &mut Shell, args: &[String]) -> Done {
    let mut words = args.get(1..).unwrap_or_default();
    if words.first().map(String::as_str) == Some("--") {
        words = words.get(1..).unwrap_or_default();
    }
    if words.is_empty() {
        shell.complain("let: expression expected");
        return Ok(1);
    }
    let mut value = 0;
    for word in words {
        value = match shell.try_evaluate(word) {
            Ok(value) => value,
            Err(error) => {
                return match shell.refuse_arithmetic(&error, "let: ") {
                    Flow::Discard(_) => Ok(1),
                    flow => Err(flow),
                };
            }
        };
    }
    Ok(i32::from(value == 0))
}

pub(super) fn source(shell: &mut Shell, args: &[String]) -> Done {
    let name = args.first().map_or("", String::as_str);
    if shell.wants_help(args) {
        return Ok(2);
    }
    let at = match args.get(1).map(String::as_str) {
        Some("--") => 2,
        Some(option) if option.starts_with('-') && option.len() > 1 => {
            return Ok(shell.refuse_option(name, option.get(..2).unwrap_or(option)));
        }
        _ => 1,
    };
    let Some(file) = args.get(at) else {
        shell.complain(format_args!("{name}: filename argument required"));
        return Ok(shell.usage(name));
    };
    let path = find_source(shell, file);
    let os_path = crate::exec::os(&path);
    if sys::stat(Path::new(&os_path), true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR) {
        shell.complain(format_args!("{name}: {path}: is a directory"));
        return Ok(1);
    }
    shell.output.flush();
    let content = match std::fs::read(&os_path) {
        Ok(content) => content,
        Err(error) => {
            // bash calls it a file that `source` could not find, not one that could not be opened.
            let said = sys::message(&error);
            if shell.on(SetOption::Posix) && !file.contains('/') {
                shell.complain(format_args!("{name}: {file}: file not found"));
            } else {
                shell.complain(format_args!("{path}: {said}"));
            }
            return if shell.on(SetOption::Posix) && !shell.interactive { Err(Flow::Exit(1)) } else { Ok(1) };
        }
    };
    let arguments = args.get(at + 1..).unwrap_or_default();
    run_sourced(shell, &path, &bytes::decode(&content), arguments)
}

fn find_source(shell: &mut Shell, file: &str) -> String {
    if file.contains('/') || !shell.shopt(ShoptOption::SourcePath) {
        return file.to_owned();
    }
    let path = shell.get("PATH").unwrap_or_default();
    for directory in path.split(':') {
        let candidate = if directory.is_empty() { file.to_owned() } else { format!("{directory}/{file}") };
        if sys::stat(Path::new(&crate::exec::os(&candidate)), true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFREG) {
            return candidate;
        }
    }
    file.to_owned()
}

fn run_sourced(shell: &mut Shell, path: &str, text: &str, arguments: &[String]) -> Done {
    let line = shell.line;
    let outer = (!arguments.is_empty()).then(|| std::mem::replace(&mut shell.positional, arguments.to_vec()));
    shell.frames.push(Frame {
        name: "source".into(),
        source: path.into(),
        call_line: line,
        function: false,
        options: None,
        arguments: vec![path.to_owned()],
    });
    let loops = shell.loops;
    shell.positional_set = false;
    shell.trace_level += 1;
    let result = shell.run_text(text, 1, None);
    shell.trace_level -= 1;
    let result = match result {
        Err(Flow::Return(status)) => Ok(status),
        Err(Flow::Discard(status)) if shell.subshell == 0 => Ok(status),
        other => other,
    };
    if let (Ok(status), Some(command)) = (&result, shell.traps.armed(Event::Return)) {
        shell.status = *status;
        shell.run_trap(Event::Return, &command)?;
    }
    shell.loops = loops;
    shell.frames.pop();
    if let Some(outer) = outer
        && !shell.positional_set
    {
        shell.positional = outer;
    }
    shell.line = line;
    result
}

/// Runs `exec`, which replaces the shell; without a command, only its redirections matter.
pub fn exec(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "cla:") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("exec", &wrong)),
    };
    let mut command: Vec<String> = args.get(at..).unwrap_or_default().to_vec();
    let Some(name) = command.first().cloned() else { return Ok(0) };
    let mut shown = None;
    let mut clear = false;
    for (letter, value) in options {
        match letter {
            'a' => shown = Some(value),
            'l' => shown = Some(format!("-{}", shown.clone().unwrap_or_else(|| name.clone()))),
            _ => clear = true,
        }
    }
    if clear {
        shell.clear_exports();
    }
    let path = shell.find_program(&name);
    if let (Some(first), Some(shown)) = (command.first_mut(), shown) {
        *first = shown;
    }
    if path.is_none() && !name.contains('/') {
        shell.complain(format_args!("exec: {name}: not found"));
        return if shell.shopt(ShoptOption::ExecFail) || shell.interactive { Ok(127) } else { Err(Flow::Exit(127)) };
    }
    shell.leave_session();
    shell.prepare_for_exec();
    let launched = match path {
        Some(path) => shell.launch_file(&path, &command, true),
        None => Err(shell.refuse_missing_program(&name)),
    };
    let status = launched.map_or_else(|status| status, |_| 0);
    if shell.shopt(ShoptOption::ExecFail) || shell.interactive {
        return Ok(status);
    }
    Err(Flow::Exit(status))
}

impl Shell {
    fn clear_exports(&mut self) {
        let names: Vec<String> = self.variables.iter().map(|(name, _)| name.clone()).collect();
        for name in names {
            if let Some(variable) = self.variables.get_mut(&name) {
                variable.attributes = variable.attributes.without(crate::state::variables::Attributes::EXPORT);
            }
        }
    }

    /// Signals that the shell caught do by default again what they do.
    fn prepare_for_exec(&mut self) {
        for (event, command) in &self.traps.commands {
            if let Event::Signal(number) = event
                && !command.is_empty()
                && let Some(signal) = sys::Signal::from_raw(*number)
            {
                let _ = sys::signal_action(signal, sys::Disposition::Default);
            }
        }
    }
}
