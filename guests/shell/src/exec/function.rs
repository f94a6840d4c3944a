//! Functions: defining and calling them.

use std::rc::Rc;

use crate::ast::{Compound, Function};
use crate::builtins;
use crate::shell::{Done, Flow, Frame, FunctionEntry, Shell};
use crate::state::options::SetOption;
use crate::state::signals::Event;

/// How deep functions may call one another. bash ends with a crash when the stack is full; this is what ours holds.
pub(crate) const MAX_CALLS: u32 = if cfg!(target_arch = "wasm32") { 1000 } else { 10_000 };

impl Shell {
    pub(super) fn define_function(&mut self, function: &Rc<Function>) -> i32 {
        if self.functions.get(&function.name).is_some_and(|entry| entry.readonly) {
            self.complain(format_args!("{}: readonly function", function.name));
            return 1;
        }
        if function.name.contains(['$', '`', '\\', '"', '\'']) {
            self.complain(format_args!("`{}': not a valid identifier", function.name));
            return 1;
        }
        if self.on(SetOption::Posix) && builtins::is_special(&function.name) {
            self.complain(format_args!("`{}': is a special builtin", function.name));
            return 2;
        }
        let source = self.source_name();
        let exported = self.functions.get(&function.name).is_some_and(|entry| entry.exported);
        let entry = FunctionEntry { function: Rc::clone(function), source, exported, readonly: false, traced: false };
        self.functions.insert(function.name.clone(), entry);
        0
    }

    /// Calls the function that `args[0]` names.
    pub(crate) fn call_function(&mut self, args: &[String]) -> Done {
        self.variables.push_scope(true);
        let result = self.call_in_scope(args);
        for name in self.variables.pop_scope() {
            self.assigned(&name);
        }
        result
    }

    /// Calls a function whose scope has been opened, perhaps with assignments before the command in it.
    pub(super) fn call_in_scope(&mut self, args: &[String]) -> Done {
        let Some((name, arguments)) = args.split_first() else { return Ok(0) };
        let Some(entry) = self.functions.get(name) else { return Ok(127) };
        let (function, source) = (Rc::clone(&entry.function), Rc::clone(&entry.source));
        let traced = entry.traced || self.on(SetOption::FuncTrace);
        let allowed = self.call_limit();
        if self.call_depth >= allowed || self.stack_is_full() {
            let allowed = self.call_depth.min(allowed);
            self.complain(format_args!("{name}: maximum function nesting level exceeded ({allowed})"));
            return Err(Flow::Discard(1));
        }
        let line = self.line;
        let outer = std::mem::replace(&mut self.positional, arguments.to_vec());
        let arguments = if self.shopt(crate::state::options::ShoptOption::ExtDebug) { arguments.to_vec() } else { Vec::new() };
        self.frames.push(Frame { name: name.as_str().into(), source, call_line: line, function: true, options: None, arguments });
        let loops = std::mem::take(&mut self.loops);
        self.call_depth += 1;
        let hidden = if traced { None } else { self.hide_traps() };
        let result = self.run_function_body(&function);
        self.status = match &result {
            Ok(status) | Err(Flow::Return(status)) => *status,
            _ => self.status,
        };
        let result = match result {
            Err(Flow::Return(status)) => Ok(status),
            other => other,
        };
        let result = match (result, self.traps.armed(Event::Return)) {
            (Ok(status), Some(command)) => {
                self.status = status;
                self.run_trap(Event::Return, &command).map(|()| status)
            }
            (result, _) => result,
        };
        if let Some(hidden) = hidden {
            self.unhide_traps(hidden);
        }
        self.call_depth -= 1;
        self.loops = loops;
        if let Some(options) = self.frames.pop().and_then(|frame| frame.options) {
            self.options = options;
        }
        self.positional = outer;
        self.line = line;
        result
    }

    fn call_limit(&mut self) -> u32 {
        match self.variables.get("FUNCNEST") {
            None => MAX_CALLS,
            Some(variable) => {
                let wished = variable.scalar().and_then(|text| text.parse::<u32>().ok()).filter(|number| *number > 0);
                wished.map_or(MAX_CALLS, |wished| wished.min(MAX_CALLS))
            }
        }
    }

    fn run_function_body(&mut self, function: &Function) -> Done {
        self.line = function.line;
        if let Some(command) = self.traps.armed(Event::Debug) {
            self.run_trap(Event::Debug, &command)?;
        }
        if function.redirects.is_empty() {
            let status = self.run_compound(&function.body, function.line)?;
            let own = matches!(function.body, Compound::Subshell(_) | Compound::Arithmetic(_) | Compound::Test(_));
            if status != 0 && own && self.lenient == 0 {
                self.after_failure(status)?;
            }
            return Ok(status);
        }
        match self.apply_redirects(&function.redirects)? {
            Ok(saved) => {
                let result = self.run_compound(&function.body, function.line);
                self.restore_redirects(saved);
                result
            }
            Err(status) => Ok(status),
        }
    }
}
