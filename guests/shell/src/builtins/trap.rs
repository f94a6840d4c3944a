//! `trap`.

use std::rc::Rc;

use crate::quote;
use crate::shell::{Done, Shell};
use crate::state::signals::{Event, signal_name};

pub(super) fn trap(shell: &mut Shell, args: &[String]) -> Done {
    if shell.wants_help(args) {
        return Ok(2);
    }
    let mut at = 1;
    let mut print = false;
    while let Some(arg) = args.get(at) {
        match arg.as_str() {
            "-l" => {
                let text = list_signals();
                shell.write(&text);
                return Ok(0);
            }
            "-p" => print = true,
            "-lp" | "-pl" => print = true,
            "--" => {
                at += 1;
                break;
            }
            option if option.starts_with('-') && option.len() > 1 => {
                return Ok(shell.refuse_option("trap", option.get(..2).unwrap_or(option)));
            }
            _ => break,
        }
        at += 1;
    }
    let operands = args.get(at..).unwrap_or_default();
    if print || operands.is_empty() {
        return show(shell, operands);
    }
    let Some((action, events)) = operands.split_first() else { return Ok(0) };
    // `trap 2` and `trap - 2` both take the trap off.
    if events.is_empty() {
        if Event::named(action).is_some() {
            return change(shell, std::slice::from_ref(action), None);
        }
        return Ok(shell.usage("trap"));
    }
    if action == "-" {
        return change(shell, events, None);
    }
    if action.parse::<u32>().is_ok() && Event::named(action).is_some() {
        return change(shell, operands, None);
    }
    change(shell, events, Some(action))
}

fn change(shell: &mut Shell, names: &[String], command: Option<&String>) -> Done {
    let mut status = 0;
    shell.traps.shown.clear();
    for name in names {
        let Some(event) = Event::named(name) else {
            shell.complain(format_args!("trap: {name}: invalid signal specification"));
            status = 1;
            continue;
        };
        if let Event::Signal(number @ 1..) = event
            && let Some(signal) = sys::Signal::from_raw(number)
        {
            if shell.traps.ignored_at_start & signal.bit() != 0 {
                continue;
            }
            let disposition = match command {
                None => sys::Disposition::Default,
                Some(command) if command.is_empty() => sys::Disposition::Ignore,
                Some(_) => sys::Disposition::Catch,
            };
            let _ = sys::signal_action(signal, disposition);
        }
        match command {
            None => {
                shell.traps.commands.remove(&event);
            }
            Some(command) => {
                shell.traps.commands.insert(event, Rc::from(command.as_str()));
            }
        }
    }
    Ok(status)
}

fn show(shell: &mut Shell, names: &[String]) -> Done {
    let mut status = 0;
    let traps = if shell.traps.shown.is_empty() { shell.traps.commands.clone() } else { shell.traps.shown.clone() };
    let mut text = String::new();
    let mut add = |event: Event, command: &str| {
        text.push_str(&format!("trap -- {} {}\n", quote::single(command), event.name()));
    };
    if names.is_empty() {
        for (event, command) in &traps {
            add(*event, command);
        }
    }
    for name in names {
        match Event::named(name) {
            Some(event) => {
                if let Some(command) = traps.get(&event) {
                    add(event, command);
                }
            }
            None => {
                shell.complain(format_args!("trap: {name}: invalid signal specification"));
                status = 1;
            }
        }
    }
    shell.write(&text);
    Ok(status)
}

/// Returns the table of `trap -l` and `kill -l`.
pub(super) fn list_signals() -> String {
    let mut text = String::new();
    let mut column = 0;
    for number in 1..=64 {
        let Some(name) = signal_name(number) else { continue };
        text.push_str(&format!("{number:>2}) SIG{name}"));
        column += 1;
        if column == 5 {
            text.push('\n');
            column = 0;
        } else {
            text.push('\t');
        }
    }
    if column > 0 {
        text.push('\n');
    }
    text
}
