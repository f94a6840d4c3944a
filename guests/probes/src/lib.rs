//! Tiny programs for tests, well-behaved and hostile, one behavior each, written in WebAssembly text so that every
//! pointer and length is exactly what the test means.
//!
//! A probe exits with 0 when the host behaved. Text only: the test that runs a probe compiles it.

use wasi_preview1_component_adapter_provider::{WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER};
use wit_component::ComponentEncoder;

/// Returns a module for preview1 as a component, with the adapter of the Bytecode Alliance: every call of preview1 becomes calls of
/// WASI 0.2.
///
/// # Errors
///
/// Returns an error if the module cannot be a component.
pub fn component(module: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let encoder = ComponentEncoder::default().validate(true).module(module)?;
    let mut encoder = encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)?;
    Ok(encoder.encode()?)
}

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

macro_rules! foreign {
    ($($file:literal)*) => {
        /// Modules of an owner, by name: what preview1 promises them to the letter. Each has one directory, called `work`.
        pub const FOREIGN: &[(&str, &str)] = &[$(
            ($file, concat!("(module\n", include_str!("../wat/wasi/prelude.wat"), include_str!(concat!("../wat/foreign/", $file, ".wat")), ")"))
        ),*];
    };
}

foreign! {
    "f01-confined"
    "f02-rights"
    "f03-preopened"
    "f04-no-sockets"
    "f05-flags"
}

macro_rules! hostile {
    ($($file:literal)*) => {
        /// Every hostile preview1 module by name: the cases W01 and on of the threat model. What each does stands in its file,
        /// what it must come to in `runtime/src/run/probes/wasi.rs`.
        pub const WASI: &[(&str, &str)] = &[$(
            ($file, concat!("(module\n", include_str!("../wat/wasi/prelude.wat"), include_str!(concat!("../wat/wasi/", $file, ".wat")), ")"))
        ),*];
    };
}

hostile! {
    "w01-end-of-memory"
    "w02-buffer-counts"
    "w03-buffers-that-wrap"
    "w04-buffers-that-overlap"
    "w05-results-that-overlap"
    "w06-the-whole-memory"
    "w07-long-paths"
    "w08-bytes-in-paths"
    "w09-dot-dot"
    "w10-trailing-slashes"
    "w11-link-loops"
    "w12-links-that-lead-out"
    "w13-poll-for-ever"
    "w14-poll-until-the-end-of-time"
    "w15-poll-counts"
    "w16-poll-nonsense"
    "w17-poll-bad-descriptor"
    "w18-poll-the-past"
    "w19-poll-over-itself"
    "w20-poll-events-out-of-bounds"
    "w21-random"
    "w22-arguments-out-of-bounds"
    "w23-exit-codes"
    "w24-raise"
    "w25-memory-to-the-edge"
    "w26-tables"
    "w27-indirect-recursion"
    "w28-calls-through-nothing"
    "w29-calls-of-another-type"
    "w30-arithmetic-traps"
    "w31-bulk-copies-cost"
    "w32-bulk-copies-out-of-bounds"
    "w33-descriptors-run-out"
    "w34-renumbering"
    "w35-seeking"
    "w36-far-offsets"
    "w37-allocating"
    "w38-sizes"
    "w39-times"
    "w40-listing"
    "w41-listing-while-it-changes"
    "w42-without-a-name"
    "w43-renaming"
    "w44-linking"
    "w45-directories"
    "w46-open-flags"
    "w47-rights"
    "w48-descriptors-as-files"
    "w49-sockets"
    "w50-clocks"
    "w51-yield-flood"
    "w52-no-stray-bytes"
    "w53-preopened"
    "w54-flags-of-descriptors"
    "w55-many-files"
    "w56-a-full-disk"
    "w57-readlink"
    "w58-deep-trees"
    "w59-standard-streams"
    "w60-endless-loop"
}
