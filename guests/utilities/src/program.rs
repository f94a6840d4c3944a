//! The common base of the utilities: name in messages, output, inputs and exit status.
//!
//! A utility is a whole process, so its name may be global and a failed write may end it on the spot.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

pub use common::locale::utf8;
use sys::OpenFlags;

use crate::lines::Lines;
use crate::quote;

/// Exit status, or the status of a failure that has already been reported on standard error.
pub type Outcome = Result<i32, i32>;

/// Arguments, the program's own name first.
pub type Args = Vec<OsString>;

/// One block of input or output: big enough that the host call's price disappears.
pub const BLOCK: usize = 64 * 1024;

static NAME: OnceLock<String> = OnceLock::new();
static FAILURE: AtomicI32 = AtomicI32::new(1);

/// The end of a program: a status, or a failure with a status.
pub trait Status {
    /// Returns the exit status.
    fn status(self) -> i32;
}

impl Status for i32 {
    fn status(self) -> i32 {
        self
    }
}

impl Status for Outcome {
    fn status(self) -> i32 {
        match self {
            Ok(status) | Err(status) => status,
        }
    }
}

/// Runs a program under its own name.
pub fn run<S: Status>(args: Args, program: fn(Args) -> S) -> i32 {
    let name = args.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let _ = NAME.set(name);
    program(args).status()
}

/// Returns the name in messages: the program's first argument, as it was given.
pub fn name() -> &'static str {
    NAME.get().map_or("", String::as_str)
}

/// Sets the status with which trouble ends this utility; the default is 1.
pub fn set_failure(status: i32) {
    FAILURE.store(status, Ordering::Relaxed);
}

/// Returns the status with which trouble ends this utility.
pub fn failure() -> i32 {
    FAILURE.load(Ordering::Relaxed)
}

/// Says `name: text` on standard error, in one write.
pub fn warn(text: impl AsRef<str>) {
    let line = format!("{}: {}\n", name(), text.as_ref());
    let _ = sys::write_all(2, line.as_bytes());
}

/// Says what went wrong with a file: `name: file: reason`.
pub fn warn_file(file: &OsStr, error: &io::Error) {
    warn(format!("{}: {}", quote::maybe(file), sys::message(error)));
}

/// Says `text` and gives the status of a failure.
pub fn fail(text: impl AsRef<str>) -> i32 {
    warn(text);
    failure()
}

/// Says `text`, points to `--help`, and gives the status of a failure.
pub fn usage(text: impl AsRef<str>) -> i32 {
    warn(text);
    hint();
    failure()
}

/// Points to `--help`.
pub fn hint() {
    let line = format!("Try '{} --help' for more information.\n", name());
    let _ = sys::write_all(2, line.as_bytes());
}

/// Reports missing operands, after the last one given, if any.
pub fn missing_operand(after: Option<&OsString>) -> i32 {
    match after {
        None => usage("missing operand"),
        Some(last) => usage(format!("missing operand after {}", quote::plain(last))),
    }
}

/// Reports an extra operand.
pub fn extra_operand(operand: &OsStr) -> i32 {
    usage(format!("extra operand {}", quote::plain(operand)))
}

/// Standard output: written in blocks, on a terminal in lines. A failed write ends the process.
pub struct Output {
    buffer: Vec<u8>,
    by_line: bool,
}

impl Output {
    /// Returns the standard output of this process.
    pub fn new() -> Self {
        Self { buffer: Vec::with_capacity(BLOCK), by_line: sys::is_terminal(1) }
    }

    /// Adds bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BLOCK {
            self.spill(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
            if self.by_line && bytes.contains(&b'\n') {
                self.send();
            }
        }
    }

    /// Adds one byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.put(&[byte]);
    }

    /// Adds bytes and then one more.
    #[inline]
    pub fn line(&mut self, bytes: &[u8], end: u8) {
        self.put(bytes);
        self.put(&[end]);
    }

    /// Adds one byte `count` times, however often that is.
    pub fn fill(&mut self, byte: u8, mut count: usize) {
        let piece = [byte; 256];
        while count > 0 {
            let length = count.min(piece.len());
            self.put(&piece[..length]);
            count -= length;
        }
    }

    /// Adds text.
    pub fn text(&mut self, text: impl AsRef<str>) {
        self.put(text.as_ref().as_bytes());
    }

    fn spill(&mut self, bytes: &[u8]) {
        self.send();
        if bytes.len() >= BLOCK {
            send(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
            if self.by_line && bytes.contains(&b'\n') {
                self.send();
            }
        }
    }

    /// Writes what is waiting.
    pub fn send(&mut self) {
        if !self.buffer.is_empty() {
            let buffer = std::mem::take(&mut self.buffer);
            send(&buffer);
            self.buffer = buffer;
            self.buffer.clear();
        }
    }
}

fn send(bytes: &[u8]) {
    if let Err(error) = sys::write_all(1, bytes) {
        warn(format!("write error: {}", sys::message(&error)));
        std::process::exit(failure());
    }
}

impl common::printf::Sink for Output {
    fn put(&mut self, bytes: &[u8]) {
        Output::put(self, bytes);
    }

    fn fill(&mut self, byte: u8, count: usize) {
        Output::fill(self, byte, count);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.send();
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send();
        Ok(())
    }
}

/// Returns a buffer for reading from `input`: no larger than a small file, because untouched memory costs nothing to start with.
pub fn buffer(input: &Descriptor) -> Vec<u8> {
    const LARGEST: u64 = 2 * BLOCK as u64;
    let size = match input.stat() {
        Ok(stat) if stat.kind() == sys::stat::S_IFREG && stat.size > 0 => (stat.size + 1).clamp(4096, LARGEST),
        _ => BLOCK as u64,
    };
    vec![0; size as usize]
}

/// An open file or an inherited descriptor; the former is closed at the end.
pub struct Descriptor {
    fd: u32,
    owned: bool,
}

impl Descriptor {
    /// Creates a descriptor that someone else opened.
    pub fn inherited(fd: u32) -> Self {
        Self { fd, owned: false }
    }

    /// Creates a descriptor that is now ours to close.
    pub fn owned(fd: u32) -> Self {
        Self { fd, owned: true }
    }

    /// Opens a file as `flags` say; `mode` is for a new one.
    pub fn open(path: impl AsRef<Path>, flags: OpenFlags, mode: u32) -> io::Result<Self> {
        Ok(Self { fd: sys::open(path.as_ref(), flags, mode)?, owned: true })
    }

    /// Opens a file for reading.
    pub fn read_only(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open(path, OpenFlags { read: true, ..OpenFlags::default() }, 0)
    }

    /// Makes or empties a file for writing.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open(path, OpenFlags { write: true, create: true, truncate: true, ..OpenFlags::default() }, 0o666)
    }

    /// Returns the number.
    pub fn fd(&self) -> u32 {
        self.fd
    }

    /// Returns the metadata of what is open.
    pub fn stat(&self) -> io::Result<sys::Stat> {
        sys::fstat(self.fd)
    }

    /// Reads until the buffer is full or the input ends.
    pub fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

impl Read for Descriptor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::read(self.fd, buffer)
    }
}

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        sys::write(self.fd, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.owned {
            let _ = sys::close(self.fd);
        }
    }
}

/// Opens an operand for reading: `-` is standard input.
pub fn open(operand: &OsStr) -> io::Result<Descriptor> {
    if operand == "-" { Ok(Descriptor::inherited(0)) } else { Descriptor::read_only(operand) }
}

/// Reads all of an operand.
pub fn read_all(operand: &OsStr) -> io::Result<Vec<u8>> {
    let input = open(operand)?;
    let mut all = Vec::new();
    let size = input.stat().map_or(0, |stat| if stat.kind() == sys::stat::S_IFREG { stat.size } else { 0 });
    all.reserve(usize::try_from(size).unwrap_or(0).min(1 << 30));
    sys::read_to_end(input.fd(), &mut all)?;
    Ok(all)
}

/// Returns the operands, or `-` when there are none.
pub fn or_stdin(mut operands: Vec<OsString>) -> Vec<OsString> {
    if operands.is_empty() {
        operands.push("-".into());
    }
    operands
}

/// Passes every line of the files on, with its delimiter when it has one; returns the status, 1 after a file that failed.
pub fn each_line(files: &[OsString], delimiter: u8, out: &mut Output, mut each: impl FnMut(&[u8], &mut Output)) -> i32 {
    let mut status = 0;
    for file in or_stdin(files.to_vec()) {
        let mut lines = open(&file).map(|input| Lines::of_file(input, delimiter));
        let failed = loop {
            match lines.as_mut().map(Lines::next_line) {
                Ok(Ok(Some(line))) => each(line, out),
                Ok(Ok(None)) => break None,
                Ok(Err(error)) => break Some(error),
                Err(_) => break lines.err(),
            }
        };
        if let Some(error) = failed {
            out.send();
            warn_file(&file, &error);
            status = 1;
        }
    }
    status
}

/// Returns the bytes of an argument or a file name.
pub fn bytes(text: &OsStr) -> &[u8] {
    text.as_encoded_bytes()
}

/// Bytes as an argument or a file name.
pub fn os(bytes: Vec<u8>) -> OsString {
    #[cfg(unix)]
    use std::os::unix::ffi::OsStringExt;
    #[cfg(target_os = "wasi")]
    use std::os::wasi::ffi::OsStringExt;
    OsString::from_vec(bytes)
}
