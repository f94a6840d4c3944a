//! Runs compiled filters: a stack machine that goes back to its last fork for the next result.
//!
//! The design is that of jq's own interpreter: what a fork may still need stays where it is, everything else is reused.

mod values;

use std::rc::Rc;

use super::compile::{Closure, Program, Step, Variable};
use super::functions::Host;
use super::value::{Json, List};

/// An error on its way to a handler.
#[derive(Debug)]
struct Raised {
    value: Json,
    /// The number of `try` expressions that it has left, which must not catch it.
    passed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Pc {
    function: u32,
    at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Code {
    function: u32,
    /// Number of the surrounding frame plus one.
    frame: usize,
}

#[derive(Debug)]
enum Slot {
    Closure(Code),
    Value(Json),
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    function: u32,
    /// The frame around the function's definition.
    outer: usize,
    /// The frame that is returned to.
    caller: usize,
    back: Option<Pc>,
    /// First of its slots: parameters, then variables.
    slots: usize,
}

#[derive(Debug)]
struct Cell {
    value: Json,
    below: usize,
}

#[derive(Debug)]
struct Fork {
    top: usize,
    cells: usize,
    frame: usize,
    frames: usize,
    slots: usize,
    path: usize,
    value_at_path: Json,
    nesting: u32,
    pc: Pc,
}

/// Memory for values and frames that ends a runaway recursion with an error.
const MAX_CELLS: usize = 20_000_000;

/// A filter at work on one input.
pub(super) struct Machine<'p> {
    program: &'p Program,
    cells: Vec<Cell>,
    /// Number of the topmost cell plus one.
    top: usize,
    frames: Vec<Frame>,
    frame: usize,
    slots: Vec<Slot>,
    forks: Vec<Fork>,
    path: Json,
    value_at_path: Json,
    nesting: u32,
    raised: Option<Raised>,
    labels: f64,
    started: bool,
}

/// The result of a step.
enum Next {
    On,
    To(usize),
    Enter(Pc),
    Back,
    Yield(Json),
}

impl<'p> Machine<'p> {
    pub fn new(program: &'p Program, input: Json) -> Self {
        let mut machine = Self {
            program,
            cells: Vec::new(),
            top: 0,
            frames: Vec::new(),
            frame: 0,
            slots: Vec::new(),
            forks: Vec::new(),
            path: Json::Null,
            value_at_path: Json::Null,
            nesting: 0,
            raised: None,
            labels: 0.0,
            started: false,
        };
        let main = Code { function: 0, frame: 0 };
        machine.enter(main, Vec::new(), None);
        machine.push(input);
        machine.save(Pc { function: 0, at: 0 }, machine.top);
        machine
    }

    fn push(&mut self, value: Json) {
        self.cells.push(Cell { value, below: self.top });
        self.top = self.cells.len();
    }

    fn pop(&mut self) -> Json {
        let floor = self.forks.last().map_or(0, |fork| fork.cells);
        if self.top == self.cells.len() && self.top > floor {
            let Some(cell) = self.cells.pop() else { return Json::Null };
            self.top = cell.below;
            return cell.value;
        }
        let Some(cell) = self.top.checked_sub(1).and_then(|at| self.cells.get(at)) else { return Json::Null };
        self.top = cell.below;
        cell.value.clone()
    }

    /// Pops, and leaves null where a fork keeps the cell.
    fn pop_taking(&mut self) -> Json {
        let at = self.top.saturating_sub(1);
        match self.cells.get_mut(at) {
            Some(cell) if self.forks.last().is_some_and(|fork| self.top <= fork.cells) => {
                self.top = cell.below;
                std::mem::replace(&mut cell.value, Json::Null)
            }
            _ => self.pop(),
        }
    }

    /// Remembers to come back to `pc`; the values above `top` are for that moment.
    fn save(&mut self, pc: Pc, top: usize) {
        self.forks.push(Fork {
            top: self.top,
            cells: self.cells.len(),
            frame: self.frame,
            frames: self.frames.len(),
            slots: self.slots.len(),
            path: if let Json::Array(path) = &self.path { path.0.len() } else { 0 },
            value_at_path: self.value_at_path.clone(),
            nesting: self.nesting,
            pc,
        });
        self.top = top;
    }

    fn restore(&mut self) -> Option<Pc> {
        let fork = self.forks.pop()?;
        self.cells.truncate(fork.cells);
        self.frames.truncate(fork.frames);
        self.slots.truncate(fork.slots);
        self.top = fork.top;
        self.frame = fork.frame;
        if let Json::Array(path) = &mut self.path
            && path.0.len() > fork.path
        {
            Rc::make_mut(path).0.truncate(fork.path);
        }
        self.value_at_path = fork.value_at_path;
        self.nesting = fork.nesting;
        Some(fork.pc)
    }

    fn outer(&self, level: u32) -> usize {
        let mut frame = self.frame;
        for _ in 0..level {
            frame = self.frames.get(frame.wrapping_sub(1)).map_or(0, |frame| frame.outer);
        }
        frame
    }

    fn slot(&mut self, variable: Variable) -> Option<&mut Json> {
        let frame = *self.frames.get(self.outer(variable.level).checked_sub(1)?)?;
        let parameters = self.program.functions.get(frame.function as usize)?.parameters;
        match self.slots.get_mut(frame.slots + (parameters + variable.slot) as usize) {
            Some(Slot::Value(value)) => Some(value),
            _ => None,
        }
    }

    fn load(&mut self, variable: Variable) -> Json {
        self.slot(variable).map_or(Json::Null, |value| value.clone())
    }

    fn take(&mut self, variable: Variable) -> Json {
        self.slot(variable).map_or(Json::Null, |value| std::mem::replace(value, Json::Null))
    }

    fn store(&mut self, variable: Variable, value: Json) {
        if let Some(slot) = self.slot(variable) {
            *slot = value;
        }
    }

    fn code(&self, closure: Closure) -> Code {
        match closure {
            Closure::Function { level, function } => Code { function, frame: self.outer(level) },
            Closure::Parameter { level, index } => {
                let slots = self.frames.get(self.outer(level).wrapping_sub(1)).map_or(0, |frame| frame.slots);
                match self.slots.get(slots + index as usize) {
                    Some(Slot::Closure(code)) => *code,
                    _ => Code { function: 0, frame: 0 },
                }
            }
        }
    }

    fn enter(&mut self, code: Code, parameters: Vec<Code>, back: Option<Pc>) {
        let slots = self.slots.len();
        self.slots.extend(parameters.into_iter().map(Slot::Closure));
        let variables = self.program.functions.get(code.function as usize).map_or(0, |function| function.variables);
        self.slots.extend((0..variables).map(|_| Slot::Value(Json::Null)));
        self.frames.push(Frame { function: code.function, outer: code.frame, caller: self.frame, back, slots });
        self.frame = self.frames.len();
    }

    /// Leaves the current frame, which stays if a fork may come back to it.
    fn leave(&mut self) -> Option<Frame> {
        let frame = *self.frames.get(self.frame.checked_sub(1)?)?;
        let floor = self.forks.last().map_or(0, |fork| fork.frames);
        if self.frame == self.frames.len() && self.frame > floor {
            self.frames.pop();
            self.slots.truncate(frame.slots);
        }
        self.frame = frame.caller;
        Some(frame)
    }

    fn raise(&mut self, value: Json) -> Next {
        self.raised = Some(Raised { value, passed: 0 });
        Next::Back
    }

    fn complain(&mut self, message: String) -> Next {
        self.raise(Json::string(message))
    }

    fn tracks(&self) -> bool {
        self.nesting == 0 && matches!(self.path, Json::Array(_))
    }

    /// Returns whether the path leads to this very value.
    fn intact(&self, value: &Json) -> bool {
        !self.tracks() || value.is_same(&self.value_at_path)
    }

    fn append_path(&mut self, key: Json, value: &Json) {
        if self.tracks()
            && let Json::Array(path) = &mut self.path
        {
            Rc::make_mut(path).0.push(key);
            self.value_at_path = value.clone();
        }
    }

    /// Returns the next result; `None` at the end.
    pub fn next(&mut self, host: &mut Host<'_>) -> Option<Result<Json, Json>> {
        let mut pc = self.restore()?;
        let mut backtracking = std::mem::replace(&mut self.started, true);
        loop {
            if host.halted.is_some() {
                return None;
            }
            let program = self.program;
            let step = program.functions.get(pc.function as usize).and_then(|function| function.code.get(pc.at));
            let Some(step) = step else { return Some(Err(Json::string("the program ended unexpectedly"))) };
            let next = if std::mem::take(&mut backtracking) { self.again(step, pc) } else { self.step(step, pc, host) };
            match next {
                Next::On => pc.at += 1,
                Next::To(at) => pc.at = at,
                Next::Enter(to) => pc = to,
                Next::Yield(value) => return Some(Ok(value)),
                Next::Back => match self.restore() {
                    Some(to) => {
                        pc = to;
                        backtracking = true;
                    }
                    None => return self.raised.take().map(|raised| Err(raised.value)),
                },
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm per step")]
    fn step(&mut self, step: &'p Step, pc: Pc, host: &mut Host<'_>) -> Next {
        match step {
            Step::Load(value) => {
                self.pop();
                self.push(value.clone());
            }
            Step::Dup => {
                let value = self.pop();
                self.push(value.clone());
                self.push(value);
            }
            Step::DupTaking => {
                let value = self.pop_taking();
                self.push(value.clone());
                self.push(value);
            }
            Step::Dup2 => {
                let (keep, value) = (self.pop(), self.pop());
                self.push(value.clone());
                self.push(keep);
                self.push(value);
            }
            Step::PushUnder(value) => {
                let input = self.pop();
                self.push(value.clone());
                self.push(input);
            }
            Step::Pop => {
                self.pop();
            }
            Step::LoadVariable(variable) => {
                self.pop();
                let value = self.load(*variable);
                self.push(value);
            }
            Step::TakeVariable(variable) => {
                self.pop_taking();
                let value = self.take(*variable);
                self.push(value);
            }
            Step::Store(variable) => {
                let value = self.pop();
                self.store(*variable, value);
            }
            Step::StoreTentatively(variable) => {
                self.save(pc, self.top);
                let value = self.pop();
                self.store(*variable, value);
            }
            Step::Index(silent) => return self.index(*silent),
            Step::Each(silent) => return self.each(*silent, pc),
            Step::Fork(_) | Step::Try(_) | Step::TryEnd | Step::Alternative(_) => self.save(pc, self.top),
            Step::Jump(target) => return Next::To(*target),
            Step::JumpIfFalse(target) => {
                let truth = self.top.checked_sub(1).and_then(|at| self.cells.get(at)).is_some_and(|cell| cell.value.is_true());
                if !truth {
                    return Next::To(*target);
                }
            }
            Step::Backtrack => return Next::Back,
            Step::Append(variable) => {
                let value = self.pop();
                if let Some(Json::Array(list)) = self.slot(*variable) {
                    Rc::make_mut(list).0.push(value);
                }
            }
            Step::Insert => return self.insert(),
            Step::Range(variable) => return self.range(*variable, pc),
            Step::SubBegin => {
                let value = self.pop();
                self.push(value.clone());
                self.push(value);
                self.nesting += 1;
            }
            Step::SubEnd => {
                self.nesting = self.nesting.saturating_sub(1);
                let (result, input) = (self.pop(), self.pop());
                self.push(result);
                self.push(input);
            }
            Step::PathBegin => {
                let value = self.pop();
                let path = std::mem::replace(&mut self.path, Json::Array(Rc::new(List::default())));
                self.push(path);
                self.save(pc, self.top);
                self.push(Json::Number(f64::from(self.nesting)));
                let before = std::mem::replace(&mut self.value_at_path, value.clone());
                self.push(before);
                self.push(value);
                self.nesting = 0;
            }
            Step::PathEnd => return self.path_end(pc),
            Step::GetPath => return self.get_path(),
            Step::Native(native) => {
                let input = self.pop();
                let arguments = (0..native.arguments).map(|_| self.pop()).collect();
                match (native.run)(host, input, arguments) {
                    Ok(value) => self.push(value),
                    Err(error) => return self.raise(error),
                }
            }
            Step::Call(callee, arguments) => {
                if self.cells.len() + self.slots.len() + self.frames.len() > MAX_CELLS {
                    return self.complain("the recursion is too deep".to_string());
                }
                let code = self.code(*callee);
                let parameters = arguments.iter().map(|closure| self.code(*closure)).collect();
                self.enter(code, parameters, Some(Pc { function: pc.function, at: pc.at + 1 }));
                return Next::Enter(Pc { function: code.function, at: 0 });
            }
            Step::TailCall(callee, arguments) => {
                let code = self.code(*callee);
                let parameters = arguments.iter().map(|closure| self.code(*closure)).collect();
                let back = self.leave().and_then(|frame| frame.back);
                self.enter(code, parameters, back);
                return Next::Enter(Pc { function: code.function, at: 0 });
            }
            Step::Return => {
                let frame = self.frames.get(self.frame.wrapping_sub(1)).copied();
                if let Some(back) = frame.and_then(|frame| frame.back) {
                    self.leave();
                    return Next::Enter(back);
                }
                let value = self.pop();
                let top = self.top;
                self.push(Json::Null);
                self.save(pc, top);
                return Next::Yield(value);
            }
            Step::Label(variable) => {
                let label = Json::object([("__jq".to_string(), Json::Number(self.labels))]);
                self.labels += 1.0;
                self.store(*variable, label);
            }
            Step::Catch(variable) => {
                let error = self.pop();
                if !error.equals(&self.load(*variable)) {
                    return self.raise(error);
                }
                return Next::Back;
            }
        }
        Next::On
    }

    /// A step that the machine came back to.
    fn again(&mut self, step: &'p Step, pc: Pc) -> Next {
        match step {
            Step::Range(variable) if self.raised.is_none() => self.range(*variable, pc),
            Step::Each(_) if self.raised.is_none() => {
                let at = self.pop().as_number().unwrap_or(0.0) as usize;
                let container = self.pop();
                self.element(container, at + 1, pc)
            }
            Step::StoreTentatively(variable) => {
                self.store(*variable, Json::Null);
                Next::Back
            }
            Step::PathBegin | Step::PathEnd => {
                self.path = self.pop();
                Next::Back
            }
            Step::Try(target) => {
                let Some(raised) = self.raised.take() else { return Next::Back };
                if raised.passed > 0 {
                    self.raised = Some(Raised { passed: raised.passed - 1, ..raised });
                    return Next::Back;
                }
                self.pop();
                self.push(raised.value);
                Next::To(*target)
            }
            Step::TryEnd => {
                if let Some(raised) = &mut self.raised {
                    raised.passed += 1;
                }
                Next::Back
            }
            Step::Alternative(target) => {
                if self.raised.take().is_none() {
                    return Next::Back;
                }
                Next::To(*target)
            }
            Step::Fork(target) if self.raised.is_none() => Next::To(*target),
            _ => Next::Back,
        }
    }
}
