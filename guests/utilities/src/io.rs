//! Byte input and output the way a utility wants them: big blocks in, one big buffer out, errors as GNU words them.
//!
//! Knows nothing of any single utility; a utility's name comes in as text.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Bytes collected before a write: one host call per block instead of one per line.
pub const BLOCK: usize = 64 * 1024;

/// Returns the bytes as an operating-system string, unchanged.
#[must_use]
pub fn os(bytes: &[u8]) -> OsString {
    #[cfg(unix)]
    use std::os::unix::ffi::OsStrExt as _;
    #[cfg(target_os = "wasi")]
    use std::os::wasi::ffi::OsStrExt as _;
    OsStr::from_bytes(bytes).to_os_string()
}

/// Returns the bytes as a path, unchanged.
#[must_use]
pub fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(os(bytes))
}

/// Returns the bytes of a path, unchanged.
#[must_use]
pub fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// Returns the environment variable's bytes, if it is set.
#[must_use]
pub fn env(name: &str) -> Option<Vec<u8>> {
    std::env::var_os(name).map(OsString::into_encoded_bytes)
}

/// Ends this process: the buffers are the caller's to flush first.
pub fn exit(status: i32) -> ! {
    std::process::exit(status)
}

/// Writes a message to standard error, ignoring that it may be closed.
pub fn complain(message: &[u8]) {
    let mut line = message.to_vec();
    line.push(b'\n');
    let _ = sys::write_all(2, &line);
}

/// Prints a formatted message on standard error.
macro_rules! warn {
    ($($arg:tt)*) => { $crate::io::complain(format!($($arg)*).as_bytes()) };
}

/// Bytes as text for a message; what is not UTF-8 is replaced.
#[must_use]
pub fn show(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Standard output behind one big buffer; a reader that went away ends the process silently.
#[derive(Debug)]
pub struct Out {
    buffer: Vec<u8>,
    name: &'static str,
    status: i32,
    /// Flush after every line.
    pub line_buffered: bool,
}

impl Out {
    /// Returns the output of utility `name`, which exits with `status` when it cannot write.
    #[must_use]
    pub fn new(name: &'static str, status: i32) -> Self {
        Self { buffer: Vec::with_capacity(BLOCK + 4096), name, status, line_buffered: false }
    }

    /// Appends bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BLOCK {
            self.spill(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Appends one byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.put(&[byte]);
    }

    /// Appends a decimal number.
    pub fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.put(&digits[at..]);
    }

    /// Ends a line: the moment a line-buffered output is flushed.
    #[inline]
    pub fn line_end(&mut self) {
        if self.line_buffered {
            self.flush();
        }
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if bytes.len() < BLOCK {
            self.buffer.extend_from_slice(bytes);
            let cut = self.buffer.len().min(BLOCK);
            self.write(cut);
        } else {
            let length = self.buffer.len();
            self.write(length);
            let result = sys::write_all(1, bytes);
            self.check(result);
        }
    }

    fn write(&mut self, length: usize) {
        let result = sys::write_all(1, &self.buffer[..length]);
        self.check(result);
        self.buffer.drain(..length);
    }

    fn check(&self, result: io::Result<()>) {
        match result {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit(141),
            Err(error) => {
                warn!("{}: write error: {}", self.name, sys::message(&error));
                exit(self.status)
            }
        }
    }

    /// Writes out everything.
    pub fn flush(&mut self) {
        let length = self.buffer.len();
        if length > 0 {
            self.write(length);
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Out::flush(self);
        Ok(())
    }
}

/// A place to read from: a file, or standard input.
#[derive(Debug)]
pub enum Input {
    /// An open file.
    File(File),
    /// Descriptor 0.
    Stdin,
}

impl Input {
    /// Opens `name`; `-` is standard input.
    pub fn open(name: &[u8]) -> io::Result<Self> {
        if name == b"-" { Ok(Self::Stdin) } else { Self::open_file(name) }
    }

    /// Opens the file `name`, whatever its name; a directory is an error.
    pub fn open_file(name: &[u8]) -> io::Result<Self> {
        if name == b"/dev/stdin" {
            return Ok(Self::Stdin);
        }
        let file = File::open(path(name))?;
        if file.metadata().is_ok_and(|data| data.is_dir()) {
            return Err(io::Error::from_raw_os_error(sys::errno::EISDIR));
        }
        Ok(Self::File(file))
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Stdin => sys::read(0, buffer),
        }
    }
}

/// Reads everything in `name` (`-`: standard input).
pub fn read_all(name: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Input::open(name)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads once, again if interrupted.
pub fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
