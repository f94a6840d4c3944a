//! Ctrl-C: the first one ends the running command, the second one ends the program. The database stays intact.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use runtime::{Cancel, Command, NewFile};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::exit::Code;

/// Removes the unfinished file next to `target` when a signal ends the program.
pub(crate) fn clean_up(target: &Path) -> anyhow::Result<()> {
    let (target, signal) = (target.to_owned(), Arc::new(AtomicUsize::new(0)));
    let (mut woken, wake) = UnixStream::pair()?;
    for number in [SIGINT, SIGTERM, SIGHUP] {
        // Handlers are called in this order.
        flag::register_usize(number, Arc::clone(&signal), usize::try_from(number)?)?;
        low_level::pipe::register(number, wake.try_clone()?)?;
    }
    thread::spawn(move || {
        if woken.read_exact(&mut [0]).is_ok() {
            NewFile::abandon(&target);
            let number = u8::try_from(signal.load(Ordering::SeqCst)).unwrap_or_default();
            low_level::exit(u8::from(Code::Signal(number)).into());
        }
    });
    Ok(())
}

/// Handles signals that ask the program to stop. A signal handler may do little more than set flags.
#[derive(Debug)]
pub(crate) struct Interrupts {
    /// Whether the next signal ends the program: no command is running, or it was already signaled.
    leaving: Arc<AtomicBool>,
    /// The signal that arrived while a command ran.
    signal: Arc<AtomicUsize>,
}

impl Interrupts {
    /// Starts listening. Exiting is safe at any time, because an open transaction is rolled back when the database is next
    /// opened.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let interrupts = Self { leaving: Arc::new(AtomicBool::new(true)), signal: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let number = u8::try_from(signal)?;
            // Handlers are called in this order.
            let status = u8::from(Code::Signal(number)).into();
            flag::register_conditional_shutdown(signal, status, Arc::clone(&interrupts.leaving))?;
            flag::register_usize(signal, Arc::clone(&interrupts.signal), number.into())?;
            flag::register(signal, Arc::clone(&interrupts.leaving))?;
        }
        Ok(interrupts)
    }

    /// Lets a signal end this command from now on; its exit is reported and its history row written.
    pub(crate) fn watch(&self, command: Command) -> Command {
        command.interrupt_when(self.arm())
    }

    /// Lets a signal end waiting from now on, so that the database is closed.
    pub(crate) fn cancel(&self) -> Cancel {
        Command::bash("").cancel_when(self.arm()).cancel()
    }

    // Returns whether a signal has arrived since.
    fn arm(&self) -> impl Fn() -> bool + Send + use<> {
        self.signal.store(0, Ordering::SeqCst);
        self.leaving.store(false, Ordering::SeqCst);
        let signal = Arc::clone(&self.signal);
        move || signal.load(Ordering::SeqCst) != 0
    }

    /// Notes that the command or the wait ended, and returns the signal that ended it, if any.
    pub(crate) fn unwatch(&self) -> Option<u8> {
        self.leaving.store(true, Ordering::SeqCst);
        u8::try_from(self.signal.swap(0, Ordering::SeqCst)).ok().filter(|&signal| signal != 0)
    }
}
