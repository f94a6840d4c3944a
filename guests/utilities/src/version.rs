//! The order of version numbers, as `sort -V` and `ls -v` see it.

use std::cmp::Ordering;

/// Returns the end of a name without its suffix: `(\.[A-Za-z~][A-Za-z0-9~]*)*` goes last.
fn stem(name: &[u8]) -> &[u8] {
    let mut end = name.len();
    loop {
        let tail = name[..end].iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'~').count();
        let dot = end - tail;
        if tail == 0 || dot == 0 || name[dot - 1] != b'.' || !(name[dot].is_ascii_alphabetic() || name[dot] == b'~') || dot == 1 {
            return &name[..end];
        }
        end = dot - 1;
    }
}

fn rank(byte: Option<&u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(&byte) if byte.is_ascii_alphabetic() => i32::from(byte),
        Some(&byte) => i32::from(byte) + 256,
    }
}

fn compare_parts(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        while a.first().is_some_and(|byte| !byte.is_ascii_digit()) || b.first().is_some_and(|byte| !byte.is_ascii_digit()) {
            let order = rank(a.first()).cmp(&rank(b.first()));
            if order != Ordering::Equal {
                return order;
            }
            a = a.get(1..).unwrap_or_default();
            b = b.get(1..).unwrap_or_default();
        }
        let number = |text: &mut &[u8]| {
            let zeros = text.iter().take_while(|&&byte| byte == b'0').count();
            *text = &text[zeros..];
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (head, rest) = text.split_at(digits);
            let head = head.to_vec();
            *text = rest;
            head
        };
        let (x, y) = (number(&mut a), number(&mut b));
        let order = x.len().cmp(&y.len()).then_with(|| x.cmp(&y));
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Compares two names by the numbers in them.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    // Nothing, `.`, `..` and hidden names come first, in that order.
    let class = |name: &[u8]| match name {
        b"" => 0,
        b"." => 1,
        b".." => 2,
        [b'.', ..] => 3,
        _ => 4,
    };
    let order = class(a).cmp(&class(b));
    if order != Ordering::Equal {
        return order;
    }
    if class(a) == 3 {
        return compare(&a[1..], &b[1..]);
    }
    let (x, y) = (stem(a), stem(b));
    let order = compare_parts(x, y);
    if order != Ordering::Equal { order } else { compare_parts(a, b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_numbers() {
        for (a, b) in [("a2", "a10"), ("1.0~rc1", "1.0"), ("1.9", "1.10"), (".a", "a"), ("x1.txt", "x1a.txt"), ("a", "b")] {
            assert_eq!(compare(a.as_bytes(), b.as_bytes()), Ordering::Less, "{a} < {b}");
        }
    }
}
