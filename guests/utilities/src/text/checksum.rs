//! Checksums: `md5sum`, `sha1sum`, `sha2`'s family, `b2sum`, `sum` and `cksum`.

mod check;
mod classic;

use std::ffi::OsStr;
use std::io;

use digest::{Digest, DynDigest};

use crate::options::{self, Given, Needs, No, Spec};
use crate::program::{Args, BLOCK, Outcome, Output, bytes, fail, open, or_stdin, usage, warn_file};
use crate::quote;

pub use classic::{cksum, sum};

/// A way to sum up bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Blake2b,
}

impl Algorithm {
    /// Returns the name in `--tag` lines.
    fn tag(self, bits: usize) -> String {
        match self {
            Self::Md5 => "MD5".into(),
            Self::Sha1 => "SHA1".into(),
            Self::Sha224 => "SHA224".into(),
            Self::Sha256 => "SHA256".into(),
            Self::Sha384 => "SHA384".into(),
            Self::Sha512 => "SHA512".into(),
            Self::Blake2b if bits == 512 => "BLAKE2b".into(),
            Self::Blake2b => format!("BLAKE2b-{bits}"),
        }
    }

    fn bits(self) -> usize {
        match self {
            Self::Md5 => 128,
            Self::Sha1 => 160,
            Self::Sha224 => 224,
            Self::Sha256 => 256,
            Self::Sha384 => 384,
            Self::Sha512 | Self::Blake2b => 512,
        }
    }
}

enum Hasher {
    Plain(Box<dyn DynDigest>),
    Blake(Box<blake2b_simd::State>),
}

impl Hasher {
    fn new(algorithm: Algorithm, bits: usize) -> Self {
        match algorithm {
            Algorithm::Md5 => Self::Plain(Box::new(md5::Md5::new())),
            Algorithm::Sha1 => Self::Plain(Box::new(sha1::Sha1::new())),
            Algorithm::Sha224 => Self::Plain(Box::new(sha2::Sha224::new())),
            Algorithm::Sha256 => Self::Plain(Box::new(sha2::Sha256::new())),
            Algorithm::Sha384 => Self::Plain(Box::new(sha2::Sha384::new())),
            Algorithm::Sha512 => Self::Plain(Box::new(sha2::Sha512::new())),
            Algorithm::Blake2b => Self::Blake(Box::new(blake2b_simd::Params::new().hash_length(bits / 8).to_state())),
        }
    }

    fn update(&mut self, block: &[u8]) {
        match self {
            Self::Plain(hasher) => hasher.update(block),
            Self::Blake(state) => {
                state.update(block);
            }
        }
    }

    fn finish(self) -> String {
        let bytes = match self {
            Self::Plain(hasher) => hasher.finalize().to_vec(),
            Self::Blake(state) => state.finalize().as_bytes().to_vec(),
        };
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the checksum of a file, in hexadecimal.
fn digest(file: &OsStr, algorithm: Algorithm, bits: usize) -> io::Result<String> {
    let mut input = open(file)?;
    let mut hasher = Hasher::new(algorithm, bits);
    let mut buffer = vec![0; BLOCK];
    loop {
        let n = input.fill(&mut buffer)?;
        hasher.update(&buffer[..n]);
        if n < buffer.len() {
            return Ok(hasher.finish());
        }
    }
}

const SPEC: Spec = Spec {
    short: "bctwz",
    long: &[
        ("binary", No, 'b'),
        ("check", No, 'c'),
        ("ignore-missing", No, 'i'),
        ("quiet", No, 'q'),
        ("status", No, 's'),
        ("strict", No, 'S'),
        ("tag", No, 'T'),
        ("text", No, 't'),
        ("warn", No, 'w'),
        ("zero", No, 'z'),
    ],
    help: "[OPTION]... [FILE]...",
};

const B2_SPEC: Spec = Spec {
    short: "bcl:twz",
    long: &[
        ("binary", No, 'b'),
        ("check", No, 'c'),
        ("ignore-missing", No, 'i'),
        ("length", Needs, 'l'),
        ("quiet", No, 'q'),
        ("status", No, 's'),
        ("strict", No, 'S'),
        ("tag", No, 'T'),
        ("text", No, 't'),
        ("warn", No, 'w'),
        ("zero", No, 'z'),
    ],
    help: SPEC.help,
};

macro_rules! programs {
    ($($(#[$doc:meta])* $name:ident => $algorithm:ident;)*) => {
        $($(#[$doc])* pub fn $name(args: Args) -> Outcome { main(args, Algorithm::$algorithm) })*
    };
}

programs! {
    /// `md5sum`.
    md5sum => Md5;
    /// `sha1sum`.
    sha1sum => Sha1;
    /// `sha224sum`.
    sha224sum => Sha224;
    /// `sha256sum`.
    sha256sum => Sha256;
    /// `sha384sum`.
    sha384sum => Sha384;
    /// `sha512sum`.
    sha512sum => Sha512;
    /// `b2sum`.
    b2sum => Blake2b;
}

fn main(args: Args, algorithm: Algorithm) -> Outcome {
    let given = options::parse(args, if algorithm == Algorithm::Blake2b { &B2_SPEC } else { &SPEC })?;
    let bits = length(&given, algorithm)?;
    run(&given, algorithm, bits, false)
}

fn length(given: &Given, algorithm: Algorithm) -> Result<usize, i32> {
    let Some(value) = given.value('l') else { return Ok(algorithm.bits()) };
    let invalid = || {
        crate::program::warn(format!("invalid length: {}", quote::plain(value)));
        1
    };
    match value.to_str().and_then(|text| text.parse::<usize>().ok()) {
        Some(0) => Ok(512),
        Some(bits) if bits > 512 => {
            invalid();
            Err(fail(format!("maximum digest length for {} is 512 bits", quote::plain("BLAKE2b"))))
        }
        Some(bits) if bits % 8 == 0 => Ok(bits),
        _ => {
            invalid();
            Err(fail("length is not a multiple of 8"))
        }
    }
}

fn run(given: &Given, algorithm: Algorithm, bits: usize, tagged: bool) -> Outcome {
    let tag = tagged || given.has('T');
    if given.has('c') {
        if given.has('T') {
            return Err(usage("the --tag option is meaningless when verifying checksums"));
        }
        if given.has('z') {
            return Err(usage("the --zero option is not supported when verifying checksums"));
        }
        if given.has('b') || given.has('t') {
            return Err(usage("the --binary and --text options are meaningless when verifying checksums"));
        }
        return check::run(given, algorithm);
    }
    for (letter, name) in [('i', "ignore-missing"), ('s', "status"), ('w', "warn"), ('q', "quiet"), ('S', "strict")] {
        if given.has(letter) {
            return Err(usage(format!("the --{name} option is meaningful only when verifying checksums")));
        }
    }
    if given.has('T') && given.has('t') && !given.has('b') {
        return Err(usage("--tag does not support --text mode"));
    }
    let binary =
        given.options.iter().rev().find(|(letter, _)| matches!(letter, 'b' | 't')).is_some_and(|(letter, _)| *letter == 'b');
    let end = if given.has('z') { 0 } else { b'\n' };
    let mut out = Output::new();
    let mut status = 0;
    for file in or_stdin(given.operands.clone()) {
        let sum = match digest(&file, algorithm, bits) {
            Ok(sum) => sum,
            Err(error) => {
                out.send();
                warn_file(&file, &error);
                status = 1;
                continue;
            }
        };
        let raw = bytes(&file);
        let escaped = end != 0 && raw.iter().any(|byte| matches!(byte, b'\n' | b'\\' | b'\r'));
        let name = if escaped { escape(raw) } else { raw.to_vec() };
        if escaped {
            out.byte(b'\\');
        }
        if tag {
            out.text(format!("{} (", algorithm.tag(bits)));
            out.put(&name);
            out.text(format!(") = {sum}"));
        } else {
            out.text(format!("{sum} {}", if binary { '*' } else { ' ' }));
            out.put(&name);
        }
        out.byte(end);
    }
    Ok(status)
}

fn escape(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len() + 4);
    for &byte in name {
        match byte {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            byte => out.push(byte),
        }
    }
    out
}
