//! `kill`.

use super::trap::list_signals;
use crate::shell::{Done, Shell};
use crate::state::signals::{signal_name, signal_number};

pub(super) fn kill(shell: &mut Shell, args: &[String]) -> Done {
    if shell.wants_help(args) {
        return Ok(2);
    }
    let mut at = 1;
    let mut signal = 15;
    let Some(first) = args.get(1) else { return Ok(shell.usage("kill")) };
    match first.as_str() {
        "-l" | "-L" => return list(shell, args.get(2..).unwrap_or_default()),
        "-s" | "-n" => {
            let Some(name) = args.get(2) else {
                shell.complain(format_args!("kill: {first}: option requires an argument"));
                return Ok(1);
            };
            match signal_number(name) {
                Some(number) => signal = number,
                None => {
                    shell.complain(format_args!("kill: {name}: invalid signal specification"));
                    return Ok(1);
                }
            }
            at = 3;
        }
        "--" => at = 2,
        option if option.starts_with('-') && option.len() > 1 => {
            let name = option.get(1..).unwrap_or_default();
            match signal_number(name) {
                Some(number) => signal = number,
                None => {
                    shell.complain(format_args!("kill: {name}: invalid signal specification"));
                    return Ok(1);
                }
            }
            at = 2;
        }
        _ => {}
    }
    if args.get(at).map(String::as_str) == Some("--") {
        at += 1;
    }
    let targets = args.get(at..).unwrap_or_default();
    if targets.is_empty() {
        return Ok(shell.usage("kill"));
    }
    shell.output.flush();
    let mut status = 0;
    for target in targets {
        if !send(shell, target, signal) {
            status = 1;
        }
    }
    // A signal to this shell itself has arrived.
    if !shell.traps.commands.is_empty() {
        shell.status = status;
        shell.run_pending_traps()?;
    }
    Ok(status)
}

fn send(shell: &mut Shell, target: &str, signal: u32) -> bool {
    let pids: Vec<i32> = if target.starts_with('%') {
        match shell.jobs.find(target) {
            Ok(number) => shell
                .jobs
                .list
                .iter()
                .filter(|job| job.number == number)
                .flat_map(|job| &job.members)
                .map(|member| i32::try_from(member.pid).unwrap_or(0))
                .collect(),
            Err(_) => {
                shell.complain(format_args!("kill: {target}: no such job"));
                return false;
            }
        }
    } else {
        match target.parse::<i32>() {
            Ok(pid) => vec![pid],
            Err(_) if target.is_empty() => {
                shell.complain("kill: `': not a pid or valid job spec");
                return false;
            }
            Err(_) => {
                shell.complain(format_args!("kill: {target}: arguments must be process or job IDs"));
                return false;
            }
        }
    };
    for pid in pids {
        if let Err(error) = sys::kill(pid, sys::Signal::from_raw(signal)) {
            shell.complain(format_args!("kill: ({pid}) - {}", sys::message(&error)));
            return false;
        }
    }
    true
}

fn list(shell: &mut Shell, operands: &[String]) -> Done {
    if operands.is_empty() {
        let text = list_signals();
        shell.write(&text);
        return Ok(0);
    }
    let mut status = 0;
    for operand in operands {
        let answer = match operand.parse::<u32>() {
            Ok(number) => signal_name(if number > 128 { number - 128 } else { number }),
            Err(_) => signal_number(operand).map(|number| number.to_string()),
        };
        match answer {
            Some(text) => shell.write(&format!("{text}\n")),
            None => {
                shell.complain(format_args!("kill: {operand}: invalid signal specification"));
                status = 1;
            }
        }
    }
    Ok(status)
}
