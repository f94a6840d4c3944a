//! Calls that are the last step of a function, which a recursion may make without an end.

use super::{Closure, Step};

/// Makes the calls that may replace their frame do so.
pub(super) fn replace(code: &mut [Step]) {
    for at in 0..code.len() {
        if matches!(code[at], Step::Call(..)) && returns(code, at + 1) {
            tail_call(&mut code[at]);
        }
    }
}

fn returns(code: &[Step], mut at: usize) -> bool {
    loop {
        match code.get(at) {
            Some(Step::Return) => return true,
            Some(Step::Jump(target)) => at = *target,
            _ => return false,
        }
    }
}

/// A call may replace the current frame if nothing of what it gets lives there.
fn tail_call(step: &mut Step) {
    let inside = |closure: &Closure| matches!(closure, Closure::Function { level: 0, .. });
    if let Step::Call(callee, arguments) = step
        && !inside(callee)
        && !arguments.iter().any(inside)
    {
        *step = Step::TailCall(*callee, std::mem::take(arguments));
    }
}
