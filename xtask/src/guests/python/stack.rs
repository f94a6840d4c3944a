//! Makes CPython see how deep it is: its recursion checks look at the stack in WebAssembly's memory, and recursion that keeps
//! nothing there would fill the engine's own stack unseen.
//!
//! C code that can recurse asks whether the stack pointer is below the limit that the interpreter noted when it started
//! (`c_stack_soft_limit`). Compiled to WebAssembly, most of a frame is in the engine's stack, and the pointer moves by 16 bytes
//! or not at all. So each function that asks takes [`FRAME`] bytes of the visible stack while it runs, and the limit is moved to
//! where that stack really ends: deep recursion is then a `RecursionError`, and deep deallocation is put off, before the
//! engine's stack is full (`WASM_STACK` in `runtime/src/host/engine.rs`). Some eighty functions of ten thousand ask.

use std::collections::BTreeSet;

use wasmparser::{FunctionBody, Operator, Parser, Payload};

use image::{section, write_number, write_signed};

/// Where the pinned build has the address of the thread's state.
const THREAD: usize = 19_948_828;

/// Where a thread's state has its `c_stack_top`, `c_stack_soft_limit` and `c_stack_hard_limit`, and what they are: CPython takes
/// the stack for one of 4 MB.
const TOP: usize = 708;
const SOFT_LIMIT: usize = 712;
const HARD_LIMIT: usize = 716;
const WERE: [u32; 3] = [16 << 20, 12_793_600, 12_785_408];

/// What they become: the stack begins at address 0, and what is done about an overflow has a megabyte.
const SOFT: u32 = 1 << 20;
const HARD: u32 = 512 << 10;

/// What a function that checks takes of the visible stack: at least four times what the frames between two checks take of the engine's,
/// which has 4 MB where the visible one has 15.
const FRAME: i64 = 4096;

/// The same for a function this large, whose own frame is: the interpreter's loop.
const LARGE_FRAME: i64 = 6144;
const LARGE: usize = 20_000;

/// The stack pointer's global.
const STACK_POINTER: u8 = 0;

/// A function this small that checks and reports does so for its callers (`Py_EnterRecursiveCall`).
const SMALL: usize = 400;

/// How many functions ask in the pinned build, about: another number means that [`SOFT_LIMIT`] is no longer right.
const EXPECTED: std::ops::Range<usize> = 60..140;

const CODE: u8 = 10;

#[derive(Default)]
struct Function {
    checks: bool,
    indirect: bool,
    calls: BTreeSet<u32>,
    size: usize,
}

/// Moves the limit in CPython's memory to where its stack ends.
pub(super) fn widen(memory: &mut [u8]) -> crate::Outcome {
    let number = |memory: &[u8], at: usize| {
        let bytes = memory.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_le_bytes).ok_or("CPython's memory is too small")
    };
    let thread = number(memory, THREAD)? as usize;
    let limits = [TOP, SOFT_LIMIT, HARD_LIMIT].map(|field| number(memory, thread + field).unwrap_or_default());
    if limits != WERE {
        return Err(format!("CPython's stack limits are {limits:?}, not {WERE:?}: are `THREAD` and the fields right?").into());
    }
    for (field, limit) in [(SOFT_LIMIT, SOFT), (HARD_LIMIT, HARD)] {
        memory[thread + field..][..4].copy_from_slice(&limit.to_le_bytes());
    }
    Ok(())
}

/// Returns the module with visible frames in the functions that check.
pub(super) fn make_visible(wasm: &[u8]) -> crate::Fallible<Vec<u8>> {
    let (mut bodies, mut results, mut types, mut imported) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::TypeSection(section) => {
                for group in section.into_iter_err_on_gc_types() {
                    types.push(group?.results().to_vec());
                }
            }
            Payload::ImportSection(section) => {
                for import in section {
                    imported += u32::from(matches!(import?.ty, wasmparser::TypeRef::Func(_)));
                }
            }
            Payload::FunctionSection(section) => {
                for index in section {
                    results.push(types.get(index? as usize).ok_or("a function without a type")?.clone());
                }
            }
            Payload::CodeSectionEntry(body) => bodies.push(body),
            _ => {}
        }
    }
    let functions = bodies.iter().map(look_at).collect::<crate::Fallible<Vec<_>>>()?;
    let visible = to_change(&functions, imported);
    if !EXPECTED.contains(&visible.len()) {
        return Err(format!("{} functions of CPython check their stack: is `SOFT_LIMIT` right?", visible.len()).into());
    }
    let mut code = Vec::new();
    write_number(&mut code, bodies.len());
    for (index, (body, results)) in bodies.iter().zip(&results).enumerate() {
        let changed = if visible.contains(&index) { with_frame(wasm, body, results)? } else { None };
        let bytes = changed.unwrap_or_else(|| wasm[body.range()].to_vec());
        write_number(&mut code, bytes.len());
        code.extend_from_slice(&bytes);
    }
    replace_section(wasm, &code)
}

fn look_at(body: &FunctionBody<'_>) -> crate::Fallible<Function> {
    let mut function = Function { size: body.range().len(), ..Function::default() };
    for operator in body.get_operators_reader()? {
        match operator? {
            Operator::I32Const { value } if value == SOFT_LIMIT as i32 => function.checks = true,
            Operator::I32Load { memarg } if memarg.offset == SOFT_LIMIT as u64 => function.checks = true,
            Operator::Call { function_index } => drop(function.calls.insert(function_index)),
            Operator::CallIndirect { .. } => function.indirect = true,
            _ => {}
        }
    }
    Ok(function)
}

// The functions that check and can go on to call, and those for which a small one checks.
fn to_change(functions: &[Function], imported: u32) -> BTreeSet<usize> {
    let calls_something = |function: &Function| function.indirect || !function.calls.is_empty();
    let checks_for_others =
        |function: &Function| function.checks && !function.indirect && !function.calls.is_empty() && function.size < SMALL;
    let small: BTreeSet<u32> =
        (imported..).zip(functions).filter(|(_, function)| checks_for_others(function)).map(|(index, _)| index).collect();
    let changed = |function: &Function| {
        function.checks && calls_something(function) || function.calls.iter().any(|called| small.contains(called))
    };
    functions.iter().enumerate().filter(|(_, function)| changed(function)).map(|(index, _)| index).collect()
}

// The body in a block of its own, so that whatever branches to its end comes by where the stack pointer is put back.
fn with_frame(wasm: &[u8], body: &FunctionBody<'_>, results: &[wasmparser::ValType]) -> crate::Fallible<Option<Vec<u8>>> {
    let block = match results {
        [] => 0x40,
        [wasmparser::ValType::I32] => 0x7f,
        [wasmparser::ValType::I64] => 0x7e,
        [wasmparser::ValType::F64] => 0x7c,
        _ => return Ok(None),
    };
    let mut reader = body.get_operators_reader()?;
    let (start, end) = (reader.original_position(), body.range().end);
    let mut out = wasm[body.range().start..start].to_vec();
    let frame = if body.range().len() < LARGE { FRAME } else { LARGE_FRAME };
    move_pointer(&mut out, 0x6b, frame);
    out.extend_from_slice(&[0x02, block]);
    let mut copied = start;
    while !reader.eof() {
        let (operator, at) = reader.read_with_offset()?;
        if matches!(operator, Operator::Return | Operator::ReturnCall { .. } | Operator::ReturnCallIndirect { .. }) {
            out.extend_from_slice(&wasm[copied..at]);
            move_pointer(&mut out, 0x6a, frame);
            copied = at;
        }
    }
    out.extend_from_slice(&wasm[copied..end]);
    move_pointer(&mut out, 0x6a, frame);
    out.push(0x0b);
    Ok(Some(out))
}

// `stack pointer = stack pointer OP frame`.
fn move_pointer(out: &mut Vec<u8>, operation: u8, frame: i64) {
    out.extend_from_slice(&[0x23, STACK_POINTER, 0x41]);
    write_signed(out, frame);
    out.extend_from_slice(&[operation, 0x24, STACK_POINTER]);
}

fn replace_section(wasm: &[u8], code: &[u8]) -> crate::Fallible<Vec<u8>> {
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::CodeSectionStart { range, .. } = payload? {
            // Before the section's content are its number and its length.
            let mut length = Vec::new();
            write_number(&mut length, range.len());
            let head = range.start.checked_sub(1 + length.len()).filter(|&at| wasm.get(at) == Some(&CODE));
            let head = head.or_else(|| range.start.checked_sub(6).filter(|&at| wasm.get(at) == Some(&CODE)));
            let mut out = wasm[..head.ok_or("the code has no beginning")?].to_vec();
            section(&mut out, CODE, code);
            out.extend_from_slice(&wasm[range.end..]);
            return Ok(out);
        }
    }
    Err("a module without code".into())
}
