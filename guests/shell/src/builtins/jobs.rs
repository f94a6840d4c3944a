//! `jobs`, `wait`, `disown`, and what needs job control.

use std::io;

use super::parse_options;
use crate::shell::{Done, Shell};
use crate::state::jobs::Job;
use crate::state::options::SetOption;
use crate::state::signals::signal_description;

/// Returns the job that an operand names, or the current one. `Err` is the status after saying why there is none.
fn operand_job(shell: &mut Shell, args: &[String]) -> Result<usize, i32> {
    let name = args.first().map_or("", String::as_str);
    if !shell.on(SetOption::Monitor) {
        shell.complain(format_args!("{name}: no job control"));
        return Err(1);
    }
    let spec = args.get(1).map_or("", String::as_str);
    let found = shell.jobs.find(spec);
    found.map_err(|_| {
        let shown = if spec.is_empty() { "current" } else { spec };
        shell.complain(format_args!("{name}: {shown}: no such job"));
        1
    })
}

pub(super) fn foreground(shell: &mut Shell, args: &[String]) -> Done {
    let number = match operand_job(shell, args) {
        Ok(number) => number,
        Err(status) => return Ok(status),
    };
    let text = shell.jobs.list.iter().find(|job| job.number == number).map(|job| job.text.clone()).unwrap_or_default();
    shell.write(&format!("{text}\n"));
    shell.output.flush();
    match wait_job(shell, number) {
        Waiting::Ended(status) => Ok(status),
        Waiting::Interrupted(status) => after_interruption(shell, status),
        Waiting::NoSuch => Ok(127),
    }
}

/// Jobs here never stop, so one that is to continue in the background already does.
pub(super) fn background(shell: &mut Shell, args: &[String]) -> Done {
    match operand_job(shell, args) {
        Ok(number) => {
            shell.complain(format_args!("bg: job {number} already in background"));
            Ok(0)
        }
        Err(status) => Ok(status),
    }
}

pub(super) fn suspend(shell: &mut Shell, _: &[String]) -> Done {
    shell.complain("suspend: cannot suspend: no job control");
    Ok(1)
}

fn state_text(job: &Job) -> String {
    match job.status() {
        None => "Running".to_owned(),
        Some(sys::WaitStatus::Exited(0)) => "Done".to_owned(),
        Some(sys::WaitStatus::Exited(code)) => format!("Exit {code}"),
        Some(sys::WaitStatus::Signaled(signal)) => signal_description(u32::from(signal.number())).to_owned(),
    }
}

fn job_line(shell: &Shell, job: &Job, with_pid: bool) -> String {
    let (current, previous) = shell.jobs.current();
    let mark = if current == Some(job.number) {
        '+'
    } else if previous == Some(job.number) {
        '-'
    } else {
        ' '
    };
    let running = job.status().is_none();
    let end = if running { " &" } else { "" };
    let state = state_text(job);
    if with_pid {
        return format!("[{}]{mark} {:>5} {state:<23} {}{end}\n", job.number, job.pid(), job.text);
    }
    format!("[{}]{mark}  {state:<23} {}{end}\n", job.number, job.text)
}

pub(super) fn jobs(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "lnprsx") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("jobs", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    shell.jobs.poll();
    let mut status = 0;
    let mut wanted = Vec::new();
    for spec in args.get(at..).unwrap_or_default() {
        match shell.jobs.find(spec) {
            Ok(number) => wanted.push(number),
            Err(_) => {
                shell.complain(format_args!("jobs: {spec}: no such job"));
                status = 1;
            }
        }
    }
    let chosen: Vec<Job> = shell
        .jobs
        .list
        .iter()
        .filter(|job| if at < args.len() { wanted.contains(&job.number) } else { true })
        .filter(|job| !has('r') || job.status().is_none())
        .filter(|_| !has('s'))
        .cloned()
        .collect();
    let mut text = String::new();
    for job in chosen.iter().filter(|job| shell.interactive || job.status().is_none()) {
        if has('p') {
            text.push_str(&format!("{}\n", job.pid()));
        } else {
            text.push_str(&job_line(shell, job, has('l')));
        }
    }
    shell.write(&text);
    for job in chosen {
        if job.status().is_some() {
            shell.jobs.remove(job.number);
        }
    }
    Ok(status)
}

pub(super) fn disown(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "ahr") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("disown", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let specs = args.get(at..).unwrap_or_default();
    let mut numbers = Vec::new();
    let mut status = 0;
    if specs.is_empty() {
        if has('a') || has('r') {
            numbers.extend(shell.jobs.list.iter().map(|job| job.number));
        } else {
            match shell.jobs.current().0 {
                Some(number) => numbers.push(number),
                None => {
                    shell.complain("disown: current: no such job");
                    return Ok(1);
                }
            }
        }
    }
    for spec in specs {
        let found = match spec.parse::<u32>() {
            Ok(pid) => shell.jobs.of_pid(pid).map(|job| job.number).ok_or(false),
            Err(_) => shell.jobs.find(spec),
        };
        match found {
            Ok(number) => numbers.push(number),
            Err(_) => {
                shell.complain(format_args!("disown: {spec}: no such job"));
                status = 1;
            }
        }
    }
    for number in numbers {
        if has('h') {
            for job in shell.jobs.list.iter_mut().filter(|job| job.number == number) {
                job.keep_on_hangup = true;
            }
        } else {
            shell.jobs.remove(number);
        }
    }
    Ok(status)
}

/// The reason for the end of a wait.
enum Waiting {
    Ended(i32),
    Interrupted(i32),
    NoSuch,
}

/// Waits for one process of ours; a trapped signal ends the wait.
fn wait_pid(shell: &mut Shell, pid: u32) -> Waiting {
    loop {
        match sys::wait(i32::try_from(pid).unwrap_or(-1), 0) {
            Ok(Some(waited)) => {
                shell.jobs.ended(pid, waited.status);
                return Waiting::Ended(i32::from(waited.status.shell_code()));
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                let arrived = sys::signals_take();
                if arrived != 0 {
                    let number = arrived.trailing_zeros() + 1;
                    shell.signals_seen |= arrived;
                    return Waiting::Interrupted(128 + i32::try_from(number).unwrap_or(0));
                }
            }
            Err(_) => return Waiting::NoSuch,
        }
    }
}

fn wait_job(shell: &mut Shell, number: usize) -> Waiting {
    let pids: Vec<u32> = shell
        .jobs
        .list
        .iter()
        .filter(|job| job.number == number)
        .flat_map(|job| &job.members)
        .filter(|member| member.status.is_none())
        .map(|member| member.pid)
        .collect();
    let text = shell.jobs.list.iter().find(|job| job.number == number).map(|job| job.text.clone()).unwrap_or_default();
    for pid in pids {
        if let Waiting::Interrupted(status) = wait_pid(shell, pid) {
            return Waiting::Interrupted(status);
        }
    }
    let status = shell.jobs.list.iter().find(|job| job.number == number).and_then(Job::status);
    if let Some(status @ sys::WaitStatus::Signaled(signal)) = status
        && signal != sys::Signal::TERM
    {
        let pid = shell.jobs.list.iter().find(|job| job.number == number).map_or(0, Job::pid);
        shell.report_signal(pid, status, &text);
    }
    let pid = shell.jobs.list.iter().find(|job| job.number == number).map_or(0, Job::pid);
    shell.jobs.remove(number);
    shell.close_coprocess(pid);
    Waiting::Ended(status.map_or(127, |status| i32::from(status.shell_code())))
}

pub(super) fn wait(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "fnp:") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("wait", &wrong)),
    };
    shell.output.flush();
    let next = options.iter().any(|(letter, _)| *letter == 'n');
    let variable = options.iter().find(|(letter, _)| *letter == 'p').map(|(_, name)| name.clone());
    if let Some(name) = &variable {
        shell.unset_variable(name);
    }
    let specs = args.get(at..).unwrap_or_default().to_vec();
    if next {
        return wait_next(shell, &specs, variable.as_deref());
    }
    if specs.is_empty() {
        let numbers: Vec<usize> = shell.jobs.list.iter().filter(|job| !job.foreign).map(|job| job.number).collect();
        for number in numbers {
            if let Waiting::Interrupted(status) = wait_job(shell, number) {
                return after_interruption(shell, status);
            }
        }
        shell.jobs.past.clear();
        return Ok(0);
    }
    let mut status = 0;
    for spec in &specs {
        let (waiting, pid) = wait_spec(shell, spec);
        match waiting {
            Waiting::Ended(code) => status = code,
            Waiting::Interrupted(code) => return after_interruption(shell, code),
            Waiting::NoSuch => status = 127,
        }
        if let (Some(name), Some(pid)) = (&variable, pid) {
            shell.assign(name, pid.to_string(), false)?;
        }
    }
    Ok(status)
}

fn after_interruption(shell: &mut Shell, status: i32) -> Done {
    let seen = std::mem::take(&mut shell.signals_seen);
    shell.status = status;
    for number in 1..=64 {
        if seen >> (number - 1) & 1 == 1
            && let Some(command) = shell.traps.armed(crate::state::signals::Event::Signal(number))
        {
            shell.run_trap(crate::state::signals::Event::Signal(number), &command)?;
        }
    }
    Ok(status)
}

fn wait_spec(shell: &mut Shell, spec: &str) -> (Waiting, Option<u32>) {
    if spec.starts_with('%') {
        return match shell.jobs.find(spec) {
            Ok(number) => {
                let pid = shell.jobs.list.iter().find(|job| job.number == number).map(Job::pid);
                (wait_job(shell, number), pid)
            }
            Err(_) => {
                shell.complain(format_args!("wait: {spec}: no such job"));
                (Waiting::NoSuch, None)
            }
        };
    }
    let Ok(pid) = spec.parse::<u32>() else {
        shell.complain(format_args!("wait: `{spec}': not a pid or valid job spec"));
        return (Waiting::Ended(1), None);
    };
    if let Some(job) = shell.jobs.of_pid(pid).filter(|job| !job.foreign) {
        let number = job.number;
        if job.pid() == pid {
            return (wait_job(shell, number), Some(pid));
        }
    }
    if let Some(at) = shell.jobs.past.iter().position(|(past, _)| *past == pid) {
        let (_, status) = shell.jobs.past[at];
        return (Waiting::Ended(i32::from(status.shell_code())), Some(pid));
    }
    // A process substitution is a child process that is not a job.
    if shell.last_background == Some(pid)
        && let Waiting::Ended(status) = wait_pid(shell, pid)
    {
        return (Waiting::Ended(status), Some(pid));
    }
    shell.complain(format_args!("wait: pid {pid} is not a child of this shell"));
    (Waiting::NoSuch, None)
}

/// Runs `wait -n`: waits for the next job that ends.
fn wait_next(shell: &mut Shell, specs: &[String], variable: Option<&str>) -> Done {
    let mut numbers = Vec::new();
    for spec in specs {
        let found = match spec.parse::<u32>() {
            Ok(pid) => shell.jobs.of_pid(pid).map(|job| job.number).ok_or(false),
            Err(_) => shell.jobs.find(spec),
        };
        match found {
            Ok(number) => numbers.push(number),
            Err(_) => shell.complain(format_args!("wait: {spec}: no such job")),
        }
    }
    if specs.is_empty() {
        numbers = shell.jobs.list.iter().filter(|job| !job.foreign).map(|job| job.number).collect();
    }
    loop {
        let ended = shell.jobs.list.iter().find(|job| numbers.contains(&job.number) && job.status().is_some());
        if let Some(job) = ended {
            let (number, pid) = (job.number, job.pid());
            let status = job.status().map_or(127, |status| i32::from(status.shell_code()));
            shell.jobs.remove(number);
            if let Some(name) = variable {
                shell.assign(name, pid.to_string(), false)?;
            }
            return Ok(status);
        }
        if !shell.jobs.list.iter().any(|job| numbers.contains(&job.number)) {
            return Ok(127);
        }
        match sys::wait(-1, 0) {
            Ok(Some(waited)) => shell.jobs.ended(waited.pid, waited.status),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                let arrived = sys::signals_take();
                if arrived != 0 {
                    shell.signals_seen |= arrived;
                    let number = arrived.trailing_zeros() + 1;
                    return after_interruption(shell, 128 + i32::try_from(number).unwrap_or(0));
                }
            }
            Err(_) => return Ok(127),
        }
    }
}
