//! Processes: forking the shell, waiting, pipes out of the way of scripts.

use std::io;
use std::time::Duration;

use crate::expand::HIGHEST;
use crate::shell::{Done, Flow, Shell};
use crate::state::signals::{Event, signal_description};
use pattern::{Directories, Entry, EntryKind};

/// The shell's own descriptors begin here; scripts rarely go this far.
pub(super) const OWN_DESCRIPTORS: u32 = 100;

/// How long a shell that has ended waits for `>(…)`, which may wait for something else.
const READERS_NS: i128 = 1_000_000_000;

/// Returns the status that a process ends with after `flow`.
pub(crate) fn final_status(shell: &Shell, result: Done) -> i32 {
    match result {
        Ok(status) | Err(Flow::Exit(status) | Flow::Return(status) | Flow::Discard(status)) => status,
        Err(Flow::Break(_) | Flow::Continue(_)) => shell.status,
    }
}

impl Shell {
    /// Runs `body` in a copy of the shell; the copy exits with its status.
    pub(crate) fn fork(&mut self, body: impl FnOnce(&mut Self) -> Done) -> io::Result<u32> {
        self.output.flush();
        let shell = self;
        sys::fork(|| {
            shell.enter_child();
            let result = body(shell);
            let status = final_status(shell, result);
            shell.finish(status)
        })
    }

    /// Same as [`Shell::fork`], but reports a failure.
    pub(crate) fn fork_reporting(&mut self, body: impl FnOnce(&mut Self) -> Done) -> Result<u32, i32> {
        match self.fork(body) {
            Ok(pid) => Ok(pid),
            Err(error) => {
                self.complain(format_args!("fork: {}", sys::message(&error)));
                Err(254)
            }
        }
    }

    fn enter_child(&mut self) {
        self.subshell += 1;
        self.output.forget_captures();
        self.reset_traps();
        self.jobs.disown_all();
        self.coprocesses.clear();
        self.readers.clear();
        self.loops = 0;
    }

    /// Ends a shell process: runs the EXIT trap, then writes all output.
    pub fn finish(&mut self, status: i32) -> u8 {
        self.status = status;
        let mut status = status;
        if !self.traps.commands.is_empty()
            && let Err(Flow::Exit(code)) = self.run_pending_traps()
        {
            status = code;
            self.status = code;
        }
        self.exiting = Some(status);
        if let Some(command) = self.traps.armed(Event::EXIT) {
            self.traps.commands.remove(&Event::EXIT);
            self.lenient = 0;
            self.loops = 0;
            if let Err(Flow::Exit(code)) = self.run_trap(Event::EXIT, &command) {
                status = code;
            }
        }
        if self.interactive && self.subshell == 0 {
            self.save_history();
        }
        self.output.flush();
        self.report_output_failure("echo");
        self.status = status & 0xff;
        self.leave_session();
        self.wait_for_readers();
        (status & 0xff) as u8
    }

    /// Lets `>(…)` read to the end. Outside, such a process continues when its shell has ended, and the reader of the output waits for
    /// it too; here the last process takes all others with it.
    fn wait_for_readers(&mut self) {
        let readers = std::mem::take(&mut self.readers);
        if readers.is_empty() {
            return;
        }
        // The end of the file comes when no writer is left.
        (0..=HIGHEST).for_each(|fd| drop(sys::close(fd)));
        let deadline = sys::now_ns().saturating_add(READERS_NS);
        for pid in readers {
            let target = i32::try_from(pid).unwrap_or(-1);
            while let Ok(None) = sys::wait(target, sys::WAIT_NO_HANG)
                && sys::now_ns() < deadline
            {
                let _ = sys::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Waits for a child and returns its status as a shell sees it.
    pub(crate) fn wait_for(&mut self, pid: u32) -> i32 {
        self.output.flush();
        let from = sys::now_ns();
        let status = self.wait_only(pid);
        self.waited += sys::now_ns() - from;
        status
    }

    fn wait_only(&mut self, pid: u32) -> i32 {
        let target = i32::try_from(pid).unwrap_or(-1);
        loop {
            match sys::wait(target, 0) {
                Ok(Some(waited)) => return i32::from(waited.status.shell_code()),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return 127,
            }
        }
    }

    /// Says how a program died, as a shell without job control does.
    pub(crate) fn report_signal(&mut self, pid: u32, status: sys::WaitStatus, text: &str) {
        let sys::WaitStatus::Signaled(signal) = status else { return };
        match u32::from(signal.number()) {
            2 | 13 => {}
            15 => self.write_error("Terminated\n"),
            number => self.complain(format_args!("{pid:>5} {:<23} {text}", signal_description(number))),
        }
    }

    /// Returns a pipe whose ends keep out of the way of scripts and of programs.
    pub(crate) fn high_pipe(&mut self) -> io::Result<[u32; 2]> {
        let ends = sys::pipe()?;
        let mut high = [0; 2];
        for (at, fd) in ends.into_iter().enumerate() {
            high[at] = sys::dup(fd, OWN_DESCRIPTORS, true)?;
            sys::close(fd)?;
        }
        Ok(high)
    }
}

/// The file system as pathname expansion sees it.
pub struct RealFiles {
    /// Whether `.` and `..` are listed: `shopt -u globskipdots`.
    pub dots: bool,
}

impl Directories for RealFiles {
    fn list(&mut self, path: &str) -> Vec<Entry> {
        let path = if path.is_empty() { "." } else { path };
        let Ok(entries) = std::fs::read_dir(super::os(path)) else { return Vec::new() };
        let kind = |entry: &std::fs::DirEntry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => EntryKind::Directory,
            Ok(kind) if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let dots = [".", ".."].map(|name| Entry { name: name.to_owned(), kind: EntryKind::Directory });
        let dots = dots.into_iter().filter(|_| self.dots);
        dots.chain(entries.flatten().map(|entry| Entry { name: super::from_os(&entry.file_name()), kind: kind(&entry) }))
            .collect()
    }

    fn exists(&mut self, path: &str) -> bool {
        sys::stat(std::path::Path::new(&super::os(path)), false).is_ok()
    }

    fn is_directory(&mut self, path: &str) -> bool {
        sys::stat(std::path::Path::new(&super::os(path)), true).is_ok_and(|stat| stat.kind() == sys::stat::S_IFDIR)
    }
}
