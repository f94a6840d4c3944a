//! Permissions: octal and symbolic modes in, `rwxr-xr-x` out.

use sys::Stat;
use sys::stat::{S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG};

/// A change of permissions.
#[derive(Clone, Debug)]
pub enum Change {
    /// These bits; directories keep their set-id bits unless the number names them.
    Octal { mode: u32, explicit: bool },
    /// Clauses in order.
    Symbolic(Vec<Clause>),
}

/// `u+rw`: who, how, what.
#[derive(Clone, Debug)]
pub struct Clause {
    who: u32,
    operator: u8,
    bits: Bits,
}

#[derive(Clone, Copy, Debug)]
enum Bits {
    Plain { bits: u32, execute_if: bool },
    CopyOf(u8),
    Octal(u32),
}

const ALL: u32 = 0o7777;

impl Change {
    /// Reads a mode; `None` when it is none.
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= ALL)?;
            return Some(Self::Octal { mode, explicit: text.len() > 4 });
        }
        let mut clauses = Vec::new();
        for part in text.split(',') {
            parse_clauses(part.as_bytes(), &mut clauses)?;
        }
        Some(Self::Symbolic(clauses))
    }

    /// Returns the permissions after the change; `umask` limits clauses without `u`, `g`, `o` or `a`.
    pub fn apply(&self, old: u32, is_directory: bool, umask: u32) -> u32 {
        match self {
            Self::Octal { mode, explicit } => {
                let kept = if is_directory && !explicit { old & 0o6000 } else { 0 };
                mode | kept
            }
            Self::Symbolic(clauses) => clauses.iter().fold(old & ALL, |mode, clause| clause.apply(mode, is_directory, umask)),
        }
    }
}

/// Returns the permissions `old` as changed by a mode, whatever the file creation mask is; `None` when it is not a mode.
pub fn parse(text: &str, old: u32) -> Option<u32> {
    Change::parse(text).map(|change| change.apply(old, false, 0))
}

fn parse_clauses(part: &[u8], clauses: &mut Vec<Clause>) -> Option<()> {
    let mut at = 0;
    let mut who = 0;
    while let Some(&byte) = part.get(at) {
        who |= match byte {
            b'u' => 0o4700,
            b'g' => 0o2070,
            b'o' => 0o1007,
            b'a' => ALL,
            _ => break,
        };
        at += 1;
    }
    if at == part.len() {
        return None;
    }
    while let Some(&operator) = part.get(at) {
        if !matches!(operator, b'+' | b'-' | b'=') {
            return None;
        }
        at += 1;
        let bits = match part.get(at) {
            Some(&from @ (b'u' | b'g' | b'o')) => {
                at += 1;
                Bits::CopyOf(from)
            }
            Some(b'0'..=b'7') => {
                let digits = part[at..].iter().take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let mode =
                    u32::from_str_radix(std::str::from_utf8(&part[at..at + digits]).ok()?, 8).ok().filter(|mode| *mode <= ALL)?;
                at += digits;
                if who != 0 || at != part.len() {
                    return None;
                }
                Bits::Octal(mode)
            }
            _ => {
                let (mut bits, mut execute_if) = (0, false);
                while let Some(&letter) = part.get(at) {
                    match letter {
                        b'r' => bits |= 0o444,
                        b'w' => bits |= 0o222,
                        b'x' => bits |= 0o111,
                        b'X' => execute_if = true,
                        b's' => bits |= 0o6000,
                        b't' => bits |= 0o1000,
                        _ => break,
                    }
                    at += 1;
                }
                Bits::Plain { bits, execute_if }
            }
        };
        clauses.push(Clause { who, operator, bits });
    }
    Some(())
}

impl Clause {
    fn apply(&self, mode: u32, is_directory: bool, umask: u32) -> u32 {
        let (mut affected, mut value) = match self.bits {
            Bits::Octal(bits) => (ALL, bits),
            Bits::CopyOf(from) => {
                let shift = match from {
                    b'u' => 6,
                    b'g' => 3,
                    _ => 0,
                };
                let three = mode >> shift & 7;
                (self.who, three * 0o111)
            }
            Bits::Plain { bits, execute_if } => {
                let execute = if execute_if && (is_directory || mode & 0o111 != 0) { 0o111 } else { 0 };
                (self.who, bits | execute)
            }
        };
        if !matches!(self.bits, Bits::Octal(_)) {
            let limit = if affected == 0 { ALL & !umask } else { affected };
            value &= limit;
            affected = if affected == 0 { ALL } else { affected };
        }
        match self.operator {
            b'+' => mode | value,
            b'-' => mode & !value,
            _ => {
                // A directory's set-id bits survive `=` unless they are named.
                let kept = if is_directory { mode & 0o6000 & !value } else { 0 };
                let named = if matches!(self.bits, Bits::Octal(_)) { 0 } else { kept };
                mode & !affected | value | named & affected
            }
        }
    }
}

/// Returns `rwxr-xr-x`.
pub fn permissions(mode: u32) -> String {
    let mut text = String::with_capacity(9);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let three = mode >> shift & 7;
        text.push(if three & 4 != 0 { 'r' } else { '-' });
        text.push(if three & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, three & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// Returns `drwxr-xr-x`.
pub fn long(mode: u32) -> String {
    let letter = match mode & S_IFMT {
        S_IFDIR => 'd',
        S_IFLNK => 'l',
        S_IFCHR => 'c',
        S_IFIFO => 'p',
        0o060_000 => 'b',
        0o140_000 => 's',
        S_IFREG => '-',
        _ => '?',
    };
    format!("{letter}{}", permissions(mode))
}

/// Returns the type of a file in words.
pub fn kind(stat: &Stat) -> &'static str {
    match stat.kind() {
        S_IFDIR => "directory",
        S_IFLNK => "symbolic link",
        S_IFCHR => "character special file",
        S_IFIFO => "fifo",
        0o060_000 => "block special file",
        0o140_000 => "socket",
        S_IFREG if stat.size == 0 => "regular empty file",
        S_IFREG => "regular file",
        _ => "weird file",
    }
}

/// Bytes that a file takes on disk; the text of a link takes none of its own.
pub fn allocated(stat: &Stat) -> u64 {
    if stat.kind() == S_IFLNK { 0 } else { stat.blocks() * 512 }
}

/// Returns the file creation mask, looked at without changing it.
pub fn umask() -> u32 {
    let mask = sys::umask(0);
    let _ = sys::umask(mask);
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbolic_modes_change_bits() {
        for (old, change, new) in [
            (0o644, "755", 0o755),
            (0o644, "+x", 0o755),
            (0o644, "u+x,g-r", 0o704),
            (0o640, "o=g", 0o644),
            (0o644, "a=", 0),
            (0o644, "u=rwx,go=rx", 0o755),
            (0o644, "+X", 0o644),
            (0o744, "+X", 0o755),
            (0o755, "u+s", 0o4755),
            (0o755, "g=u-w", 0o755),
        ] {
            assert_eq!(Change::parse(change).map(|change| change.apply(old, false, 0o022)), Some(new), "{change} on {old:o}");
        }
        assert_eq!(parse("644", 0), Some(0o644));
        assert_eq!(parse("u+x,g=r", 0o604), Some(0o744));
        assert_eq!(parse("a-w", 0o666), Some(0o444));
        assert_eq!(parse("q", 0), None);
        assert_eq!(long(0o041_755), "drwxr-xr-t");
        for bad in ["", "u", "rwx", "9", "u+z", "77777"] {
            assert!(Change::parse(bad).is_none(), "{bad}");
        }
    }
}
