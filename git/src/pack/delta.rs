//! Deltas between objects: copies from the base object, and new bytes.

use crate::error::Error;

/// Maximum number of bytes that one instruction copies or inserts.
const COPY_MAX: usize = 0xFF_FFFF;
const INSERT_MAX: usize = 0x7F;

fn varint(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7F).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0u64, 0u32);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F).checked_shl(shift).filter(|_| shift < 57)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

fn copy(mut offset: usize, mut size: usize, out: &mut Vec<u8>) {
    while size > 0 {
        let part = size.min(COPY_MAX);
        let at = out.len();
        out.push(0x80);
        let mut bits = 0;
        for (bit, byte) in offset.to_le_bytes().into_iter().take(4).enumerate().filter(|(_, byte)| *byte != 0) {
            bits |= 1 << bit;
            out.push(byte);
        }
        for (bit, byte) in part.to_le_bytes().into_iter().take(3).enumerate().filter(|(_, byte)| *byte != 0) {
            bits |= 0x10 << bit;
            out.push(byte);
        }
        if let Some(first) = out.get_mut(at) {
            *first |= bits;
        }
        offset += part;
        size -= part;
    }
}

/// Creates a delta from `old` to `new` if it is much shorter: the common prefix and suffix are copied, the middle is new.
pub(crate) fn make(old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    // An offset has four bytes.
    u32::try_from(old.len()).ok()?;
    let prefix = common(old.iter(), new.iter());
    let (old_rest, new_rest) = (old.get(prefix..)?, new.get(prefix..)?);
    let suffix = common(old_rest.iter().rev(), new_rest.iter().rev());
    let middle = new_rest.get(..new_rest.len() - suffix)?;
    // Git rejects a delta without instructions.
    if new.is_empty() || middle.len() > new.len() / 2 {
        return None;
    }
    let mut out = Vec::with_capacity(middle.len() + middle.len() / INSERT_MAX + 32);
    varint(old.len(), &mut out);
    varint(new.len(), &mut out);
    copy(0, prefix, &mut out);
    for part in middle.chunks(INSERT_MAX) {
        out.push(u8::try_from(part.len()).unwrap_or(0));
        out.extend_from_slice(part);
    }
    copy(old.len() - suffix, suffix, &mut out);
    Some(out)
}

fn common<'a>(a: impl Iterator<Item = &'a u8>, b: impl Iterator<Item = &'a u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns the size of the object that a delta produces.
pub(crate) fn result_size(mut delta: &[u8]) -> Result<u64, Error> {
    let sizes = (read_varint(&mut delta), read_varint(&mut delta));
    sizes.1.ok_or_else(|| Error::damaged("a delta is truncated"))
}

/// Applies a delta. The caller has checked its size.
pub(crate) fn apply(base: &[u8], mut delta: &[u8]) -> Result<Vec<u8>, Error> {
    let wrong = || Error::damaged("invalid delta");
    let old = read_varint(&mut delta).ok_or_else(wrong)?;
    let new = read_varint(&mut delta).and_then(|size| usize::try_from(size).ok()).ok_or_else(wrong)?;
    if old != base.len() as u64 {
        return Err(Error::damaged("a delta does not match its base object"));
    }
    let mut out = Vec::with_capacity(new);
    while let Some((&instruction, rest)) = delta.split_first() {
        delta = rest;
        let piece = match instruction {
            0 => return Err(wrong()),
            bits if bits & 0x80 != 0 => {
                let mut number = |bits: u8, bytes: u32| {
                    (0..bytes).filter(|byte| bits & (1 << byte) != 0).try_fold(0usize, |number, byte| {
                        let (first, rest) = delta.split_first()?;
                        delta = rest;
                        Some(number | usize::from(*first) << (8 * byte))
                    })
                };
                let offset = number(bits & 0x0F, 4).ok_or_else(wrong)?;
                let size = match number(bits >> 4 & 0x07, 3).ok_or_else(wrong)? {
                    0 => 0x1_0000,
                    size => size,
                };
                offset.checked_add(size).and_then(|end| base.get(offset..end)).ok_or_else(wrong)?
            }
            size => {
                let (piece, rest) = delta.split_at_checked(usize::from(size)).ok_or_else(wrong)?;
                delta = rest;
                piece
            }
        };
        if out.len() + piece.len() > new {
            return Err(wrong());
        }
        out.extend_from_slice(piece);
    }
    if out.len() == new { Ok(out) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_makes_the_new_object_of_the_old_one() {
        let long: Vec<u8> = (0..40_000_000u32).map(|n| (n % 251) as u8).collect();
        let mut longer = long.clone();
        longer.splice(20_000_000..20_000_010, [1; 1000]);
        for (old, new) in
            [(&b"abcdef"[..], &b"abXdef"[..]), (b"abc", b"abc"), (b"abcabc", b"abc"), (b"abc", b"abcabc"), (&long, &longer)]
        {
            let delta = make(old, new).unwrap();
            assert_eq!(result_size(&delta).unwrap(), new.len() as u64);
            assert!(apply(old, &delta).unwrap() == new);
        }
        assert_eq!(make(b"abc", b"xyz"), None);
        assert_eq!(make(b"abc", b""), None);
    }

    #[test]
    fn a_hostile_difference_is_refused() {
        let base = b"0123456789";
        let wrong: [&[u8]; 9] = [
            b"",
            &[10],
            &[10, 5],
            &[9, 1, 1, b'x'],
            &[10, 5, 0],
            &[10, 200, 1, 0x90, 10],
            &[10, 1, 2, b'x', b'y'],
            &[10, 9, 0x91, 5, 9],
            &[10, 4, 0xFF],
        ];
        for delta in wrong {
            assert!(apply(base, delta).is_err(), "{delta:?}");
        }
        assert!(result_size(&[0x80; 30]).is_err());
    }
}
