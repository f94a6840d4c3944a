//! Memory that runs out: a program reports it in its own words and exits with its own status of a failure.
//!
//! Stable Rust has no hook for a failed allocation, and its own reaction is an abort without a word. A read that returns an
//! error instead of its bytes is not better if the caller ignores it. The programs therefore allocate through
//! [`Allocator`], which ends the process at the first refusal. Nothing here allocates.
#![expect(unsafe_code, reason = "an allocator can only be written with `unsafe`")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

/// Longest report: a longer name is cut.
const LINE: usize = 160;

static NAME: OnceLock<&'static str> = OnceLock::new();

/// Records the name that a report starts with. The first call counts.
pub fn set_name(name: &'static str) {
    let _ = NAME.set(name);
}

/// Reports sizes that no address space can hold as exhausted memory: the standard library panics on them.
pub fn report_overflow() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic
            .payload()
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.payload().downcast_ref::<String>().map(|text| text.as_str()));
        if text.is_some_and(|text| text.ends_with("capacity overflow")) {
            exhausted(usize::MAX);
        }
        previous(panic);
    }));
}

/// The system's allocator, except that a refusal ends the process.
#[derive(Debug)]
pub struct Allocator;

// SAFETY: every call is the system allocator's own; a null pointer is never returned.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        present(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        present(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        present(unsafe { System.realloc(block, layout, size) }, size)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn present(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        exhausted(bytes);
    }
    block
}

/// Reports that `bytes` more could not be had, and ends the process.
#[cold]
#[inline(never)]
pub fn exhausted(bytes: usize) -> ! {
    let name = NAME.get().copied().unwrap_or("sandlite");
    let mut line = Line { bytes: [0; LINE], length: 0 };
    line.put(name.as_bytes());
    if matches!(name, "bash" | "sh") {
        line.put(b": xmalloc: cannot allocate ");
        line.number(bytes);
        line.put(b" bytes\n");
    } else {
        line.put(b": memory exhausted\n");
    }
    let _ = crate::write_all(2, line.bytes.get(..line.length).unwrap_or_default());
    // SAFETY: no pointers; buffers that are not yet written belong to a run that failed.
    unsafe { libc::_exit(failure(name)) }
}

/// Returns the status with which the originals end when memory runs out.
fn failure(name: &str) -> i32 {
    match name {
        "[" | "awk" | "bash" | "cmp" | "diff" | "diff3" | "dir" | "egrep" | "fgrep" | "gawk" | "grep" | "jq" | "ls" | "mawk"
        | "nawk" | "patch" | "printenv" | "rg" | "sh" | "sort" | "tar" | "test" | "vdir" => 2,
        "expr" | "tty" => 3,
        "sed" | "unzip" | "zip" => 4,
        "env" | "nice" | "nohup" | "stdbuf" | "timeout" => 125,
        _ => 1,
    }
}

/// A line that is put together without allocating.
struct Line {
    bytes: [u8; LINE],
    length: usize,
}

impl Line {
    fn put(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    fn number(&mut self, number: usize) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            if let (Some(place), Ok(digit)) = (digits.get_mut(at), u8::try_from(rest % 10)) {
                *place = b'0' + digit;
            }
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.put(digits.get(at..).unwrap_or_default());
    }
}

/// An allocator for tests that refuses on purpose: the environment variable `SANDLITE_REFUSE_MEMORY` holds the number of
/// allocations that succeed first.
#[cfg(not(target_arch = "wasm32"))]
pub mod refusing {
    use std::alloc::{GlobalAlloc, Layout};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The variable is not yet read.
    const UNREAD: u64 = u64::MAX;

    /// Nothing is refused.
    const NEVER: u64 = u64::MAX - 1;

    static LEFT: AtomicU64 = AtomicU64::new(UNREAD);

    /// [`super::Allocator`], refused on purpose.
    #[derive(Debug)]
    pub struct Allocator;

    // SAFETY: as `super::Allocator`, which does the work; a refusal does not return.
    unsafe impl GlobalAlloc for Allocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            charge(layout.size());
            // SAFETY: the caller keeps the contract of `alloc`.
            unsafe { super::Allocator.alloc(layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            charge(layout.size());
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            unsafe { super::Allocator.alloc_zeroed(layout) }
        }

        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            charge(size);
            // SAFETY: the caller keeps the contract of `realloc`.
            unsafe { super::Allocator.realloc(block, layout, size) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: the caller keeps the contract of `dealloc`.
            unsafe { super::Allocator.dealloc(block, layout) }
        }
    }

    fn charge(bytes: usize) {
        let left = match LEFT.load(Ordering::Relaxed) {
            UNREAD => configured(),
            left => left,
        };
        match left {
            NEVER => LEFT.store(NEVER, Ordering::Relaxed),
            0 => super::exhausted(bytes),
            left => LEFT.store(left - 1, Ordering::Relaxed),
        }
    }

    fn configured() -> u64 {
        // SAFETY: the name is a C string; nothing changes the environment while the program starts.
        let text = unsafe { libc::getenv(c"SANDLITE_REFUSE_MEMORY".as_ptr()) };
        if text.is_null() {
            return NEVER;
        }
        // SAFETY: what `getenv` returns is a C string.
        let text = unsafe { std::ffi::CStr::from_ptr(text) };
        text.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(NEVER)
    }
}
