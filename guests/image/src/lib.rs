//! A module that has already run: the memory it left becomes the data of a new module, which starts where it stopped.
//!
//! That is right for modules that change nothing but their memory: no table, no data of their own choice, and a stack pointer
//! that is back where it was when their entry returns. Compilers emit no others, unless they are asked to.

/// Gaps of this many zeros end a segment. Engines take a hundred thousand segments at most, and lay out whole pages.
const GAP: usize = 4096;

/// How finely memory is looked at.
const GRAIN: usize = 64;

/// A page of a module's memory.
const PAGE: usize = 1 << 16;

// Sections of a module, by their numbers.
const CUSTOM: u8 = 0;
const MEMORY: u8 = 5;
const DATA: u8 = 11;
const DATA_COUNT: u8 = 12;

/// Returns the module with `memory` as its data, and without what is only for debuggers.
///
/// # Errors
///
/// Why the module cannot be made to start there.
pub fn with_memory(wasm: &[u8], memory: &[u8]) -> Result<Vec<u8>, &'static str> {
    let (header, mut rest) = wasm.split_at_checked(8).ok_or("it is not a module")?;
    let mut sections = Vec::new();
    while let Some((&id, after)) = rest.split_first() {
        let (length, after) = read_number(after).ok_or("a section is cut")?;
        let (body, after) = after.split_at_checked(length).ok_or("a section is cut")?;
        sections.push((id, body));
        rest = after;
    }
    // A module with a data count may load data by itself, and what it has loaded is not visible.
    let counts = sections.iter().any(|(id, _)| *id == DATA_COUNT);
    if counts && !sections.iter().filter(|(id, _)| *id == DATA).all(|(_, body)| is_all_active(body)) {
        return Err("it loads data by itself");
    }
    let segments = segments(memory);
    let mut out = header.to_vec();
    for (id, body) in sections {
        match id {
            CUSTOM => {}
            MEMORY => section(&mut out, id, &memory_section(body, memory.len() / PAGE).ok_or("its memory is of another kind")?),
            DATA => section(&mut out, id, &data_section(&segments)),
            DATA_COUNT => {
                let mut count = Vec::new();
                write_number(&mut count, segments.len());
                section(&mut out, id, &count);
            }
            _ => section(&mut out, id, body),
        }
    }
    Ok(out)
}

/// Adds a section.
pub fn section(out: &mut Vec<u8>, id: u8, body: &[u8]) {
    out.push(id);
    write_number(out, body.len());
    out.extend_from_slice(body);
}

// One memory without a maximum, at least as large as it is now.
fn memory_section(body: &[u8], pages: usize) -> Option<Vec<u8>> {
    if body.get(..2)? != [1, 0] {
        return None;
    }
    let mut out = vec![1, 0];
    write_number(&mut out, pages);
    Some(out)
}

fn data_section(segments: &[(usize, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    write_number(&mut out, segments.len());
    for (at, bytes) in segments {
        // Active, in memory 0, at the constant `at`.
        out.extend_from_slice(&[0, 0x41]);
        write_signed(&mut out, i64::try_from(*at).unwrap_or(i64::MAX));
        out.push(0x0b);
        write_number(&mut out, bytes.len());
        out.extend_from_slice(bytes);
    }
    out
}

// Whether a section has only data that is in place when the module starts, at constants.
fn is_all_active(body: &[u8]) -> bool {
    let all = || {
        let (count, mut rest) = read_number(body)?;
        for _ in 0..count {
            let after = rest.strip_prefix(&[0, 0x41])?;
            let end = after.iter().position(|byte| byte & 0x80 == 0)?;
            let (length, after) = read_number(after.get(end + 1..)?.strip_prefix(&[0x0b])?)?;
            rest = after.get(length..)?;
        }
        Some(())
    };
    all().is_some()
}

// What is not zero, in as few pieces as is sensible.
fn segments(memory: &[u8]) -> Vec<(usize, &[u8])> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (index, chunk) in memory.chunks(GRAIN).enumerate().filter(|(_, chunk)| chunk.iter().any(|&byte| byte != 0)) {
        let (start, end) = (index * GRAIN, index * GRAIN + chunk.len());
        match found.last_mut() {
            Some((_, last)) if start - *last <= GAP => *last = end,
            _ => found.push((start, end)),
        }
    }
    found.into_iter().filter_map(|(start, end)| Some((start, memory.get(start..end)?))).collect()
}

fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, bytes.get(index + 1..)?));
        }
    }
    None
}

/// Adds an unsigned number, as modules have them.
pub fn write_number(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Adds a signed number, as modules have them.
pub fn write_signed(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"\0asm\x01\0\0\0";

    fn module(sections: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = HEADER.to_vec();
        sections.iter().for_each(|(id, body)| section(&mut out, *id, body));
        out
    }

    #[test]
    fn memory_becomes_data_and_debug_sections_are_removed() {
        let old =
            module(&[(CUSTOM, b"\x04name"), (MEMORY, &[1, 0, 1]), (DATA_COUNT, &[1]), (DATA, b"\x01\0\x41\x08\x0b\x03old")]);
        let mut memory = vec![0; 2 * PAGE];
        memory[8..11].copy_from_slice(b"new");
        memory[PAGE] = 7;
        let new = with_memory(&old, &memory).unwrap();
        let mut data = vec![2, 0, 0x41, 0, 0x0b, 64];
        data.extend_from_slice(&memory[..64]);
        data.extend_from_slice(&[0, 0x41, 0x80, 0x80, 0x04, 0x0b, 64, 7]);
        data.extend_from_slice(&[0; 63]);
        assert_eq!(new, module(&[(MEMORY, &[1, 0, 2]), (DATA_COUNT, &[2]), (DATA, &data)]));
    }

    #[test]
    fn a_module_that_could_have_loaded_more_is_refused() {
        let passive = module(&[(MEMORY, &[1, 0, 1]), (DATA_COUNT, &[1]), (DATA, b"\x01\x01\x03old")]);
        assert_eq!(with_memory(&passive, &[]), Err("it loads data by itself"));
        assert_eq!(with_memory(&module(&[(MEMORY, &[1, 1, 1, 2])]), &[]), Err("its memory is of another kind"));
        assert_eq!(with_memory(b"\0asm", &[]), Err("it is not a module"));
        assert_eq!(with_memory(&[HEADER, &[MEMORY, 9, 1]].concat(), &[]), Err("a section is cut"));
    }

    #[test]
    fn near_pieces_are_one_segment() {
        let mut memory = vec![0; 20_000];
        (memory[3], memory[500], memory[15_000]) = (1, 2, 3);
        let found: Vec<_> = segments(&memory).iter().map(|(at, bytes)| (*at, bytes.len())).collect();
        assert_eq!(found, [(0, 512), (14_976, 64)]);
    }

    #[test]
    fn numbers_are_written_as_modules_have_them() {
        for (value, expected) in [(0, &[0][..]), (127, &[0x7f]), (128, &[0x80, 1]), (640, &[0x80, 5])] {
            let mut out = Vec::new();
            write_number(&mut out, value);
            assert_eq!(out, expected);
            assert_eq!(read_number(&out), Some((value, &[][..])));
        }
        for (value, expected) in [(64, &[0xc0, 0][..]), (-1, &[0x7f]), (63, &[63])] {
            let mut out = Vec::new();
            write_signed(&mut out, value);
            assert_eq!(out, expected);
        }
    }
}
