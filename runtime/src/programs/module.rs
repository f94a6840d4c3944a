//! Checks of a custom module or component before it is compiled: it must be small enough to compile in bounded time.
//!
//! A compiler's time and memory grow faster than the length of a function, so they are bounded by the longest one (T-DOS-03).

/// Maximum size of a module.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// Maximum size of a function, as in browsers' engines.
const MAX_FUNCTION_BYTES: u32 = 7_654_321;

/// Maximum number of functions, as in browsers' engines.
const MAX_FUNCTIONS: u32 = 1_000_000;

/// The magic number of a module.
const MAGIC: &[u8] = b"\0asm";
/// The version of core modules, and that of components.
const CORE: [u8; 4] = [1, 0, 0, 0];
const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];

/// The section that has the functions' code.
const CODE_SECTION: u8 = 10;

/// The sections of a component that have modules and components.
const MODULE_SECTION: u8 = 1;
const COMPONENT_SECTION: u8 = 4;

/// Maximum number of modules and components in a component.
const MAX_PARTS: usize = 256;

/// Maximum nesting of components.
const MAX_DEPTH: usize = 16;

/// The kind of a program's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A core module, for `wasm32-wasip1`.
    Module,
    /// A component, for `wasm32-wasip2`.
    Component,
}

/// Checks a module or component before it is compiled.
///
/// # Errors
///
/// Returns the reason it is rejected.
pub(crate) fn check(bytes: &[u8]) -> Result<Kind, String> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("it has {} bytes; the maximum is {MAX_BYTES}", bytes.len()));
    }
    Totals::default().part(bytes, 0)
}

/// The parts of a file so far.
#[derive(Default)]
struct Totals {
    parts: usize,
    functions: u64,
}

impl Totals {
    fn part(&mut self, bytes: &[u8], depth: usize) -> Result<Kind, String> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("it is not a WebAssembly module")?;
        let (version, rest) = rest.split_first_chunk::<4>().ok_or("it is not a WebAssembly module")?;
        let kind = match *version {
            CORE => Kind::Module,
            COMPONENT => Kind::Component,
            _ => return Err("unknown version of WebAssembly".to_owned()),
        };
        self.parts += 1;
        if self.parts > MAX_PARTS || depth > MAX_DEPTH {
            return Err(format!("it has more than {MAX_PARTS} modules, or they are nested more than {MAX_DEPTH} levels deep"));
        }
        self.sections(kind, rest, depth)?;
        Ok(kind)
    }

    // The compiler reports other damage.
    fn sections(&mut self, kind: Kind, mut rest: &[u8], depth: usize) -> Result<(), String> {
        while let Some((section, after)) = rest.split_first() {
            let Some((length, after)) = number(after) else { return Ok(()) };
            let Some((body, after)) = after.split_at_checked(length as usize) else { return Ok(()) };
            match (kind, *section) {
                (Kind::Module, CODE_SECTION) => self.code(body)?,
                (Kind::Component, MODULE_SECTION | COMPONENT_SECTION) => {
                    self.part(body, depth + 1)?;
                }
                _ => {}
            }
            rest = after;
        }
        Ok(())
    }

    fn code(&mut self, body: &[u8]) -> Result<(), String> {
        let Some((count, mut rest)) = number(body) else { return Ok(()) };
        self.functions += u64::from(count);
        if self.functions > u64::from(MAX_FUNCTIONS) {
            return Err(format!("it has {} functions; the maximum is {MAX_FUNCTIONS}", self.functions));
        }
        while let Some((length, after)) = number(rest) {
            if length > MAX_FUNCTION_BYTES {
                return Err(format!("one of its functions has {length} bytes; the maximum is {MAX_FUNCTION_BYTES}"));
            }
            let Some(after) = after.get(length as usize..) else { break };
            rest = after;
        }
        Ok(())
    }
}

// An unsigned LEB128 number, and the rest.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value: u64 = 0;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(value).ok()?, bytes.get(index + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(bytes: &[u8], expected: &str) {
        assert_eq!(check(bytes).unwrap_err(), expected);
    }

    #[test]
    fn only_modules_of_bounded_functions_are_compiled() {
        assert_eq!(check(&wat::parse_str("(module (func (export \"_start\")))").unwrap()), Ok(Kind::Module));
        assert_eq!(check(&wat::parse_str("(component (core module (func)))").unwrap()), Ok(Kind::Component));
        check_error(b"#!/bin/sh\n", "it is not a WebAssembly module");
        check_error(b"\0as", "it is not a WebAssembly module");
        check_error(b"\0asm\x02\0\0\0", "unknown version of WebAssembly");
        let mut long = b"\0asm\x01\0\0\0".to_vec();
        // A code section of one function with 8 388 607 bytes.
        long.extend([10, 5, 1, 0xff, 0xff, 0xff, 0x03]);
        check_error(&long, "one of its functions has 8388607 bytes; the maximum is 7654321");
        let mut inside = b"\0asm\x0d\0\x01\0\x01\x0f".to_vec();
        inside.extend(&long);
        check_error(&inside, "one of its functions has 8388607 bytes; the maximum is 7654321");
    }

    // T-DOS-03.
    #[test]
    fn a_component_has_a_bounded_number_of_modules() {
        let nested = |depth: usize| format!("{}{}", "(component ".repeat(depth), ")".repeat(depth));
        assert_eq!(check(&wat::parse_str(nested(17)).unwrap()), Ok(Kind::Component));
        let text = "it has more than 256 modules, or they are nested more than 16 levels deep";
        check_error(&wat::parse_str(nested(18)).unwrap(), text);
        let many = |count: usize| wat::parse_str(format!("(component {})", "(core module)".repeat(count))).unwrap();
        assert_eq!(check(&many(255)), Ok(Kind::Component));
        check_error(&many(256), text);
    }

    #[test]
    fn a_broken_module_is_left_to_the_compiler() {
        for end in 8..60 {
            let bytes = wat::parse_str("(module (func (export \"_start\") nop nop) (memory 1) (data \"x\"))").unwrap();
            assert_eq!(check(bytes.get(..end).unwrap_or(&bytes)), Ok(Kind::Module), "{end}");
        }
    }
}
