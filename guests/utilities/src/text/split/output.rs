//! Where the pieces go: files whose names count up, or commands that get each piece.

use std::io::Write as _;

use sys::Action;

use crate::command;
use crate::program::{BLOCK, Descriptor, Output, fail, os, warn};
use crate::quote;

/// The alphabet of the suffixes of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// `aa`, `ab`, …
    Letters,
    /// `00`, `01`, …
    Digits,
    /// `00`, … `0f`, …
    Hexadecimal,
}

impl Alphabet {
    fn symbols(self) -> &'static [u8] {
        match self {
            Self::Letters => b"abcdefghijklmnopqrstuvwxyz",
            Self::Digits => b"0123456789",
            Self::Hexadecimal => b"0123456789abcdef",
        }
    }
}

/// The outputs, one after the other.
pub struct Outputs {
    prefix: Vec<u8>,
    ending: Vec<u8>,
    alphabet: Alphabet,
    length: usize,
    grows: bool,
    next: u64,
    /// A command that gets each piece.
    pub filter: Option<Vec<u8>>,
    /// Say what is made.
    pub verbose: bool,
}

/// One open output.
pub struct Target {
    file: Descriptor,
    child: Option<u32>,
    name: Vec<u8>,
    buffer: Vec<u8>,
    broken: bool,
}

impl Outputs {
    /// Outputs called `prefix`, letters, `ending`; length 0 is GNU's choice.
    pub fn new(prefix: &[u8], ending: &[u8], alphabet: Alphabet, start: Option<u64>, length: usize) -> Self {
        Self {
            prefix: prefix.to_vec(),
            ending: ending.to_vec(),
            alphabet,
            length: if length == 0 { 2 } else { length },
            grows: length == 0 && start.is_none(),
            next: start.unwrap_or(0),
            filter: None,
            verbose: false,
        }
    }

    /// Makes names long enough for this many files, or reports that they are too short.
    pub fn make_room(&mut self, count: u64) -> Result<(), i32> {
        let base = self.alphabet.symbols().len() as u64;
        let mut needed = 1;
        let mut room = base;
        while room < count {
            room = room.saturating_mul(base);
            needed += 1;
        }
        if self.grows {
            self.length = self.length.max(needed);
            self.grows = false;
        } else if needed > self.length {
            return Err(fail(format!("the suffix length needs to be at least {needed}")));
        }
        Ok(())
    }

    /// Returns the next name; `None` when they are used up.
    fn name(&mut self) -> Option<Vec<u8>> {
        let symbols = self.alphabet.symbols();
        let base = symbols.len() as u64;
        let (mut number, mut length, mut lead) = (self.next, self.length, 0);
        if self.grows {
            // The last letter never begins a name: after `xyz` comes `xzaaa`, and the order stays that of the alphabet.
            loop {
                let room = base.checked_pow(u32::try_from(length).ok()? - 1)?.checked_mul(base - 1)?;
                if number < room {
                    break;
                }
                number -= room;
                length += 1;
                lead += 1;
            }
        }
        let mut name = self.prefix.clone();
        name.resize(name.len() + lead, symbols[symbols.len() - 1]);
        let at = name.len();
        name.resize(at.saturating_add(length), symbols[0]);
        for slot in name[at..].iter_mut().rev() {
            *slot = symbols[(number % base) as usize];
            number /= base;
        }
        if number > 0 {
            return None;
        }
        self.next += 1;
        name.extend_from_slice(&self.ending);
        Some(name)
    }

    /// Opens the next output; ends the process when that is not possible.
    pub fn open(&mut self) -> Target {
        let Some(name) = self.name() else {
            std::process::exit(fail("output file suffixes exhausted"));
        };
        let path = os(name.clone());
        if self.verbose {
            let text = match self.filter {
                Some(_) => format!("executing with FILE={}\n", quote::maybe(&path)),
                None => format!("creating file {}\n", quote::always(&path)),
            };
            Output::new().text(text);
        }
        let opened = match &self.filter {
            Some(command) => start(command, &name).map(|(fd, pid)| (fd, Some(pid))),
            None => Descriptor::create(&path).map(|file| (file, None)),
        };
        match opened {
            Ok((file, child)) => Target { file, child, name, buffer: Vec::new(), broken: false },
            Err(error) => std::process::exit(fail(format!("{}: {}", quote::maybe(&path), sys::message(&error)))),
        }
    }

    /// Ends an output.
    pub fn close(&self, target: Option<Target>) {
        let Some(mut target) = target else { return };
        target.send();
        let Target { file, child, name, .. } = target;
        drop(file);
        let Some(pid) = child else { return };
        let status = loop {
            match sys::wait(pid.cast_signed(), 0) {
                Ok(Some(waited)) => break waited.status,
                Ok(None) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        };
        let shown = quote::maybe(&os(name));
        let command = self.filter.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        match status {
            sys::WaitStatus::Exited(0) => {}
            sys::WaitStatus::Exited(code) => {
                warn(format!("with FILE={shown}, exit {code} from command: {command}"));
                std::process::exit(i32::from(code));
            }
            sys::WaitStatus::Signaled(sys::Signal::PIPE) => {}
            sys::WaitStatus::Signaled(signal) => {
                warn(format!(
                    "with FILE={shown}, signal {} from command: {command}",
                    crate::process::kill::signal_name(u32::from(signal.number())).unwrap_or_default()
                ));
                std::process::exit(128 + i32::from(signal.number()));
            }
        }
    }
}

/// Starts a shell with the command; gives the descriptor it reads from, and its pid.
fn start(command: &[u8], name: &[u8]) -> std::io::Result<(Descriptor, u32)> {
    // A command that stops reading is not an error of `split`.
    sys::signal_action(sys::Signal::PIPE, sys::Disposition::Ignore)?;
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    let [read, write] = sys::pipe()?;
    sys::set_close_on_exec(write, true)?;
    let mut env = command::environment();
    env.retain(|entry| !entry.starts_with(b"FILE="));
    env.push([b"FILE=", name].concat());
    let words = [shell, "-c".into(), os(command.to_vec())];
    let request = command::request(&words, env, None);
    let spawned = request.and_then(|mut request| {
        request.actions = vec![Action::Dup { from: read, fd: 0 }, Action::Close { fd: read }];
        sys::spawn(&request)
    });
    let _ = sys::close(read);
    let file = Descriptor::owned(write);
    Ok((file, spawned?))
}

impl Target {
    /// Adds bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BLOCK {
            self.send();
        }
        if bytes.len() >= BLOCK { self.write(bytes) } else { self.buffer.extend_from_slice(bytes) }
    }

    fn send(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer);
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.broken || bytes.is_empty() {
            return;
        }
        match self.file.write_all(bytes) {
            Ok(()) => {}
            Err(error) if self.child.is_some() && error.raw_os_error() == Some(sys::errno::EPIPE) => self.broken = true,
            Err(error) => {
                let name = os(self.name.clone());
                std::process::exit(fail(format!("{}: {}", quote::maybe(&name), sys::message(&error))));
            }
        }
    }
}
