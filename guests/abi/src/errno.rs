//! WASI preview1 error numbers: the one vocabulary in which the host refuses.

/// A WASI preview1 error number; 0 never appears as one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(u16);

macro_rules! errnos {
    ($($name:ident = $raw:literal, $text:literal;)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Self = Self($raw);)*

            /// Returns the symbolic name, such as `ENOENT`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self.0 { $($raw => concat!("E", stringify!($name)),)* _ => "E?" }
            }

            /// Returns the text of GNU's `strerror`.
            #[must_use]
            pub fn message(self) -> &'static str {
                match self.0 { $($raw => $text,)* _ => "Unknown error" }
            }
        }
    };
}

errnos! {
    TOOBIG = 1, "Argument list too long";
    ACCES = 2, "Permission denied";
    AGAIN = 6, "Resource temporarily unavailable";
    BADF = 8, "Bad file descriptor";
    BUSY = 10, "Device or resource busy";
    CANCELED = 11, "Operation canceled";
    CHILD = 12, "No child processes";
    DEADLK = 16, "Resource deadlock avoided";
    DOM = 18, "Numerical argument out of domain";
    EXIST = 20, "File exists";
    FAULT = 21, "Bad address";
    FBIG = 22, "File too large";
    ILSEQ = 25, "Invalid or incomplete multibyte or wide character";
    INTR = 27, "Interrupted system call";
    INVAL = 28, "Invalid argument";
    IO = 29, "Input/output error";
    ISDIR = 31, "Is a directory";
    LOOP = 32, "Too many levels of symbolic links";
    MFILE = 33, "Too many open files";
    MLINK = 34, "Too many links";
    NAMETOOLONG = 37, "File name too long";
    NFILE = 41, "Too many open files in system";
    NODEV = 43, "No such device";
    NOENT = 44, "No such file or directory";
    NOEXEC = 45, "Exec format error";
    NOMEM = 48, "Cannot allocate memory";
    NOSPC = 51, "No space left on device";
    NOSYS = 52, "Function not implemented";
    NOTDIR = 54, "Not a directory";
    NOTEMPTY = 55, "Directory not empty";
    NOTSUP = 58, "Operation not supported";
    NOTTY = 59, "Inappropriate ioctl for device";
    NXIO = 60, "No such device or address";
    OVERFLOW = 61, "Value too large for defined data type";
    PERM = 63, "Operation not permitted";
    PIPE = 64, "Broken pipe";
    RANGE = 68, "Numerical result out of range";
    ROFS = 69, "Read-only file system";
    SPIPE = 70, "Illegal seek";
    SRCH = 71, "No such process";
    TIMEDOUT = 73, "Connection timed out";
    TXTBSY = 74, "Text file busy";
    XDEV = 75, "Invalid cross-device link";
    NOTCAPABLE = 76, "Capabilities insufficient";
}

impl Errno {
    /// Returns the error number behind a raw value; 0 means success and is none.
    #[must_use]
    pub fn from_raw(raw: u16) -> Option<Self> {
        (raw != 0).then_some(Self(raw))
    }

    /// Returns the number on the wire.
    #[must_use]
    pub fn raw(self) -> u16 {
        self.0
    }
}

impl core::fmt::Debug for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for Errno {}
