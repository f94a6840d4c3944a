//! `KeyboardInterrupt` for a running CPython: the effect of `PyThreadState_SetAsyncExc`, from outside.
//!
//! The pinned module exports nothing for it, but CPython describes itself for debuggers: its state starts with a cookie and a
//! table of offsets (`_Py_DebugOffsets`). All of it is guest data and can only cause two words of the guest's own memory to be
//! written; anything unexpected is ignored.

/// The cookie at the start of CPython's state.
const COOKIE: &[u8] = b"xdebugpy";
/// The minor version with the known layout, as the upper half of `PY_VERSION_HEX`.
const VERSION: u32 = 0x030e;

/// Positions in the table after the cookie, eight bytes each.
const AT_VERSION: usize = 1;
const AT_INTERPRETERS_HEAD: usize = 5;
const AT_THREADS_HEAD: usize = 9;
const AT_THREAD_INTERPRETER: usize = 25;
const AT_THREAD_ID: usize = 27;

/// Sizes of a pointer and of an object's header: a type's name follows the header of an object of variable size.
const POINTER: usize = 4;
const TYPE_NAME: usize = 3 * POINTER;
const OBJECT_TYPE: usize = POINTER;

/// Maximum number of candidate texts for a type's name: each costs one pass through all memory, which the guest may have filled
/// with them (T-DOS-02).
const NAMES_MAX: usize = 16;

/// The bit that makes the interpreter check for an asynchronous exception.
const ASYNC_EXCEPTION: u32 = 1 << 3;

/// Makes a running CPython raise `KeyboardInterrupt` at its next instruction; returns false if this memory does not have the
/// known layout.
pub(super) fn interrupt(memory: &mut [u8]) -> bool {
    let Some(Words { breaker, exception }) = find_thread(memory) else { return false };
    let Some(type_) = find_type(memory, b"KeyboardInterrupt") else { return false };
    let Some(bits) = word(memory, breaker) else { return false };
    write(memory, exception, type_) && write(memory, breaker, (bits | ASYNC_EXCEPTION) as usize)
}

/// Withdraws an unnoticed interrupt.
pub(super) fn forget_interrupt(memory: &mut [u8]) {
    if let Some(words) = find_thread(memory) {
        write(memory, words.exception, 0);
    }
}

/// The addresses to write for the only thread.
struct Words {
    breaker: usize,
    exception: usize,
}

fn find_thread(memory: &[u8]) -> Option<Words> {
    let state = find(memory, COOKIE)?;
    let number = |index: usize| word(memory, state.checked_add(index.checked_mul(8)?)?);
    if number(AT_VERSION)? >> 16 != VERSION {
        return None;
    }
    let offset = |index: usize| number(index).map(|number| number as usize);
    let follow = |base: usize, offset: usize| word(memory, base.checked_add(offset)?).map(|address| address as usize);
    let interpreter = follow(state, offset(AT_INTERPRETERS_HEAD)?).filter(|&address| address != 0)?;
    let thread = follow(interpreter, offset(AT_THREADS_HEAD)?).filter(|&address| address != 0)?;
    // A thread refers to its interpreter, which confirms the address.
    if follow(thread, offset(AT_THREAD_INTERPRETER)?)? != interpreter {
        return None;
    }
    // `eval_breaker` follows `interp`, and `async_exc` precedes `thread_id`.
    let breaker = thread.checked_add(offset(AT_THREAD_INTERPRETER)?)?.checked_add(POINTER)?;
    let exception = thread.checked_add(offset(AT_THREAD_ID)?)?.checked_sub(POINTER)?;
    Some(Words { breaker, exception })
}

// Finds the type with this name: an object of type `type` whose name pointer points to the name.
fn find_type(memory: &[u8], name: &[u8]) -> Option<usize> {
    let text = [b"\0", name, b"\0"].concat();
    let mut from = 0;
    for _ in 0..NAMES_MAX {
        let at = from + find(memory.get(from..)?, &text)? + 1;
        let pointer = u32::try_from(at).ok()?.to_le_bytes();
        let words = memory.chunks_exact(POINTER).enumerate().filter(|(_, chunk)| **chunk == pointer);
        for (index, _) in words {
            let Some(type_) = (index * POINTER).checked_sub(TYPE_NAME) else { continue };
            if is_named(memory, word(memory, type_ + OBJECT_TYPE).map(|address| address as usize), b"type\0") {
                return Some(type_);
            }
        }
        from = at;
    }
    None
}

fn is_named(memory: &[u8], type_: Option<usize>, name: &[u8]) -> bool {
    let address = type_.and_then(|type_| word(memory, type_.checked_add(TYPE_NAME)?));
    address.and_then(|address| memory.get(address as usize..)).is_some_and(|text| text.starts_with(name))
}

fn find(memory: &[u8], text: &[u8]) -> Option<usize> {
    let (first, length) = (*text.first()?, text.len());
    let mut from = 0;
    loop {
        let at = from + memory.get(from..)?.iter().position(|&byte| byte == first)?;
        if memory.get(at..at.checked_add(length)?)? == text {
            return Some(at);
        }
        from = at + 1;
    }
}

fn word(memory: &[u8], at: usize) -> Option<u32> {
    memory.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn write(memory: &mut [u8], at: usize, value: usize) -> bool {
    let place = memory.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<POINTER>());
    match (place, u32::try_from(value)) {
        (Some(place), Ok(value)) => {
            *place = value.to_le_bytes();
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_of_python_is_written() {
        let mut memory = vec![7; 4096];
        memory[100..108].copy_from_slice(COOKIE);
        let before = memory.clone();
        assert!(!interrupt(&mut memory));
        // A table with invalid offsets.
        memory[108..116].copy_from_slice(&u64::from(VERSION << 16).to_le_bytes());
        assert!(!interrupt(&mut memory));
        memory[108..116].copy_from_slice(&before[108..116]);
        assert_eq!(memory, before);
        assert!(!interrupt(&mut []) && !interrupt(&mut COOKIE.to_vec()));
    }

    // T-DOS-02: scanning 64 MB for each of three million names would take hours.
    #[test]
    fn a_memory_full_of_names_is_given_up_soon() {
        let memory = b"\0KeyboardInterrupt\0".repeat((64 << 20) / 19);
        assert_eq!(find_type(&memory, b"KeyboardInterrupt"), None);
    }
}
