//! The old ones: `sum` in BSD's and System V's way, and `cksum` with POSIX's CRC.

use std::ffi::OsStr;
use std::io::{self, Read};

use super::{Algorithm, run};
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, BLOCK, Outcome, Output, bytes, fail, open, or_stdin, warn_file};

fn each_block(file: &OsStr, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
    let mut input = open(file)?;
    let mut buffer = vec![0; BLOCK];
    let mut total = 0;
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(n) => {
                take(&buffer[..n]);
                total += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn bsd(file: &OsStr) -> io::Result<(u32, u64)> {
    let mut sum = 0u32;
    let total = each_block(file, |block| {
        for &byte in block {
            sum = ((sum >> 1) + ((sum & 1) << 15) + u32::from(byte)) & 0xffff;
        }
    })?;
    Ok((sum, total))
}

fn system_v(file: &OsStr) -> io::Result<(u32, u64)> {
    let mut sum = 0u32;
    let total = each_block(file, |block| sum = block.iter().fold(sum, |sum, &byte| sum.wrapping_add(byte.into())))?;
    let folded = (sum & 0xffff) + (sum >> 16);
    Ok(((folded & 0xffff) + (folded >> 16), total))
}

const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = (index as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000_0000 != 0 { value << 1 ^ 0x04c1_1db7 } else { value << 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

fn crc(file: &OsStr) -> io::Result<(u32, u64)> {
    let step = |crc: u32, byte: u8| crc << 8 ^ CRC[((crc >> 24) as u8 ^ byte) as usize];
    let mut value = 0;
    let total = each_block(file, |block| value = block.iter().fold(value, |crc, &byte| step(crc, byte)))?;
    let mut length = total;
    while length > 0 {
        value = step(value, length as u8);
        length >>= 8;
    }
    Ok((!value, total))
}

/// Runs `sum`.
pub fn sum(args: Args) -> Outcome {
    let spec = Spec { short: "rs", long: &[("sysv", No, 's')], help: "[OPTION]... [FILE]..." };
    let given = options::parse(args, &spec)?;
    let is_bsd = given.options.last().is_none_or(|(letter, _)| *letter == 'r');
    let named = !given.operands.is_empty();
    let mut out = Output::new();
    let mut status = 0;
    for file in or_stdin(given.operands) {
        let result = if is_bsd { bsd(&file) } else { system_v(&file) };
        match result {
            Ok((sum, total)) => {
                out.text(if is_bsd {
                    format!("{sum:05} {:5}", total.div_ceil(1024))
                } else {
                    format!("{sum} {}", total.div_ceil(512))
                });
                if named {
                    out.byte(b' ');
                    out.put(bytes(&file));
                }
                out.byte(b'\n');
            }
            Err(error) => {
                out.send();
                warn_file(&file, &error);
                status = 1;
            }
        }
    }
    Ok(status)
}

/// Runs `cksum`.
pub fn cksum(args: Args) -> Outcome {
    let spec = Spec {
        short: "a:cl:wz",
        long: &[
            ("algorithm", Needs, 'a'),
            ("check", No, 'c'),
            ("ignore-missing", No, 'i'),
            ("length", Needs, 'l'),
            ("quiet", No, 'q'),
            ("status", No, 's'),
            ("strict", No, 'S'),
            ("tag", No, 'T'),
            ("untagged", No, 'u'),
            ("warn", No, 'w'),
            ("zero", No, 'z'),
        ],
        help: "[OPTION]... [FILE]...",
    };
    let given = options::parse(args, &spec)?;
    let choices = [
        ("bsd", 0),
        ("sysv", 1),
        ("crc", 2),
        ("md5", 3),
        ("sha1", 4),
        ("sha224", 5),
        ("sha256", 6),
        ("sha384", 7),
        ("sha512", 8),
        ("blake2b", 9),
    ];
    let kind = match given.value('a') {
        Some(value) => options::choose("--algorithm", value, &choices)?,
        None => 2,
    };
    let digest = match kind {
        3 => Some(Algorithm::Md5),
        4 => Some(Algorithm::Sha1),
        5 => Some(Algorithm::Sha224),
        6 => Some(Algorithm::Sha256),
        7 => Some(Algorithm::Sha384),
        8 => Some(Algorithm::Sha512),
        9 => Some(Algorithm::Blake2b),
        _ => None,
    };
    if given.has('l') && digest != Some(Algorithm::Blake2b) {
        return Err(fail("--length is only supported with --algorithm=blake2b"));
    }
    if let Some(algorithm) = digest {
        let bits = super::length(&given, algorithm)?;
        return run(&given, algorithm, bits, !given.has('u'));
    }
    if given.has('c') {
        return Err(fail("--check is not supported with --algorithm={bsd,sysv,crc}"));
    }
    let named = !given.operands.is_empty();
    let mut out = Output::new();
    let mut status = 0;
    for file in or_stdin(given.operands.clone()) {
        let result = match kind {
            0 => bsd(&file).map(|(sum, total)| format!("{sum:05} {:5}", total.div_ceil(1024))),
            1 => system_v(&file).map(|(sum, total)| format!("{sum} {}", total.div_ceil(512))),
            _ => crc(&file).map(|(sum, total)| format!("{sum} {total}")),
        };
        match result {
            Ok(text) => {
                out.text(text);
                if named {
                    out.byte(b' ');
                    out.put(bytes(&file));
                }
                out.byte(if given.has('z') { 0 } else { b'\n' });
            }
            Err(error) => {
                out.send();
                warn_file(&file, &error);
                status = 1;
            }
        }
    }
    Ok(status)
}
