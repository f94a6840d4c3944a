//! Output of builtins: buffered, and written before the delay can be observed.

use std::io;

/// Written at the latest when this much has gathered.
const BUFFER: usize = 32 * 1024;

/// The device number of `/dev/null`, which refuses nothing.
const NULL_DEVICE: u64 = 0x103;

/// The writer behind standard output.
#[derive(Debug, Default)]
pub struct Output {
    waiting: Vec<u8>,
    /// Where a command substitution that runs inside the shell gathers its output; the innermost counts.
    captures: Vec<Vec<u8>>,
    /// Standard output may fail (a full device, a closed descriptor): report errors after each command.
    pub cautious: bool,
    /// The last write error that has not been reported.
    pub failure: Option<io::Error>,
}

impl Output {
    /// Adds to standard output.
    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(capture) = self.captures.last_mut() {
            capture.extend_from_slice(bytes);
            return;
        }
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= BUFFER {
            self.flush();
        }
    }

    /// Passes on what has gathered.
    pub fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        if let Err(error) = sys::write_all(1, &self.waiting) {
            self.failure = Some(error);
        }
        self.waiting.clear();
    }

    /// Looks at what standard output now is.
    pub fn look(&mut self) {
        self.cautious = match sys::fstat(1) {
            Ok(stat) => stat.kind() == sys::stat::S_IFCHR && stat.rdev != NULL_DEVICE && !sys::is_terminal(1),
            Err(_) => true,
        };
    }

    /// Starts to keep output.
    pub fn capture(&mut self) {
        self.flush();
        self.captures.push(Vec::new());
    }

    /// Returns the output kept since the last [`Output::capture`].
    pub fn release(&mut self) -> Vec<u8> {
        self.captures.pop().unwrap_or_default()
    }

    /// Returns whether output is being kept now.
    #[must_use]
    pub fn capturing(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Stops keeping output in a forked child, which writes to its own standard output.
    pub fn forget_captures(&mut self) {
        self.captures.clear();
    }
}
