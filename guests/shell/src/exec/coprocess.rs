//! `coproc`: a command in the background with a pipe at each end.

use crate::ast::Command;
use crate::shell::{Done, Shell};

/// The shell's ends are put here and above, as bash does.
const HIGHEST: u32 = 63;

impl Shell {
    pub(super) fn run_coprocess(&mut self, name: &str, body: &Command, line: u32) -> Done {
        self.line = line;
        let pipes = self.high_pipe().and_then(|input| self.high_pipe().map(|output| (input, output)));
        let Ok(([their_input, our_output], [our_input, their_output])) = pipes else {
            self.complain("coproc: cannot make pipes: Too many open files");
            return Ok(1);
        };
        let text = format!("coproc {name} {}", crate::print::command(body));
        let pid = self.fork_reporting(|shell| {
            for fd in [our_output, our_input] {
                let _ = sys::close(fd);
            }
            let _ = sys::dup2(their_input, 0);
            let _ = sys::dup2(their_output, 1);
            for fd in [their_input, their_output] {
                let _ = sys::close(fd);
            }
            shell.output.look();
            shell.run_command(body, true)
        });
        for fd in [their_input, their_output] {
            let _ = sys::close(fd);
        }
        let pid = match pid {
            Ok(pid) => pid,
            Err(status) => return Ok(status),
        };
        let input = self.own_end(our_input);
        let output = self.own_end(our_output);
        self.set_array(name, [input.to_string(), output.to_string()]);
        self.set_plain(&format!("{name}_PID"), pid.to_string());
        self.last_background = Some(pid);
        self.jobs.add(&[pid], text);
        self.coprocesses.push((name.to_owned(), pid));
        Ok(0)
    }

    /// Forgets a coprocess that has ended.
    pub(crate) fn close_coprocess(&mut self, pid: u32) {
        let Some(at) = self.coprocesses.iter().position(|(_, own)| *own == pid) else { return };
        let (name, _) = self.coprocesses.remove(at);
        if let crate::state::variables::Value::Indexed(map) = self.value(&name) {
            for fd in map.values().filter_map(|text| text.parse::<u32>().ok()) {
                let _ = sys::close(fd);
            }
        }
        self.unset_variable(&name);
        self.unset_variable(&format!("{name}_PID"));
    }

    /// Moves a descriptor to where bash puts a coprocess's ends; programs do not inherit it.
    fn own_end(&mut self, fd: u32) -> u32 {
        match (10..=HIGHEST).rev().find(|&fd| !sys::is_open(fd)) {
            Some(target) if sys::dup2(fd, target).is_ok() => {
                let _ = sys::set_close_on_exec(target, true);
                let _ = sys::close(fd);
                target
            }
            _ => fd,
        }
    }
}
