//! Tiny programs for tests, well-behaved and hostile, one behaviour each, written in WebAssembly text so that every
//! pointer and length is exactly what the test means.
//!
//! A probe exits with 0 when the host behaved. Text only: whoever runs them compiles them.

macro_rules! probes {
    ($($(#[doc = $doc:literal])+ $name:ident = $file:literal;)*) => {
        $($(#[doc = $doc])+ pub const $name: &str = include_str!(concat!("../wat/", $file, ".wat"));)*

        /// Every probe by name.
        pub const ALL: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

probes! {
    /// Prints `hello` and exits with 7.
    HELLO = "hello";
    /// Computes for ever (T-DOS-01).
    SPIN = "spin";
    /// Waits for ever in `poll_oneoff` (T-DOS-02).
    SLEEP = "sleep";
    /// Reads for ever from a pipe that it holds both ends of (T-DOS-02).
    BLOCKED_PIPE = "blocked-pipe";
    /// Calls the host for ever, cheaply (T-DOS-12).
    CALL_FLOOD = "call-flood";
    /// Writes for ever (T-DOS-06).
    OUTPUT_FLOOD = "output-flood";
    /// Grows its memory until refused, then exits with 0 (T-DOS-03).
    GROW = "grow";
    /// Calls itself for ever (T-DOS-09).
    RECURSE = "recurse";
    /// Hands wild pointers to every kind of call and exits with how many were not refused (T-DOS-10).
    BAD_POINTERS = "bad-pointers";
    /// Asks for absurd lengths and counts and exits with how many were not refused (T-DOS-03).
    BAD_LENGTHS = "bad-lengths";
    /// Plays with descriptors: 3, wild numbers, renumbering, double closing (T-DOS-11).
    DESCRIPTORS = "descriptors";
    /// Forks without the exports that fork needs (T-DOS-04).
    BAD_FORK = "bad-fork";
    /// Looks for traces of an earlier run in its fresh memory, then leaves some (T-ISO-06).
    CANARY = "canary";
}
