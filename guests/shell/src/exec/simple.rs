//! Simple commands: expansion, then a function, a builtin or a program.

use crate::ast::{Argument, Assignment, Part, RedirectFd, SimpleCommand, Word};
use crate::builtins::{self, Builtin};
use crate::shell::{Done, Flow, Shell};
use crate::state::options::SetOption;

/// An argument of a declaring builtin.
#[derive(Debug)]
pub enum Item<'a> {
    /// An expanded word.
    Text(String),
    /// An assignment, not yet expanded.
    Assignment(&'a Assignment),
    /// An assignment of one string, which is expanded.
    Value(&'a Assignment, String),
}

/// The status of a builtin that was used wrongly: in POSIX mode, of a special one, the end of the shell.
const USAGE: i32 = 2;

/// The meaning of a command's name.
enum Found {
    Function,
    Builtin(Builtin),
    Program,
}

impl Shell {
    /// Runs a simple command. With `last`, a program may take the place of this process.
    pub(super) fn run_simple(&mut self, simple: &SimpleCommand, last: bool) -> Done {
        self.line = simple.line;
        self.fresh_child = false;
        if !self.traps.commands.is_empty() {
            self.before_command(simple)?;
        }
        self.count_command();
        let kept = self.process_substitutions.len();
        let result = self.run_expanded(simple, last);
        if self.process_substitutions.len() > kept {
            self.close_substitutions(kept);
        }
        result
    }

    pub(super) fn before_command(&mut self, simple: &SimpleCommand) -> Done<()> {
        self.run_pending_traps()?;
        if self.traps.running.is_empty() {
            self.current_command = crate::shown::simple(simple).into();
        }
        self.debug_trap()
    }

    fn run_expanded(&mut self, simple: &SimpleCommand, last: bool) -> Done {
        self.substitution_status = None;
        if self.on(SetOption::Keyword)
            && let Some(rearranged) = take_keywords(simple)
        {
            self.options.set(SetOption::Keyword, false);
            let result = self.run_expanded(&rearranged, false);
            self.options.set(
                SetOption::Keyword,
                !matches!(rearranged.words.first(), Some(Argument::Word(word)) if crate::print::word(word) == "set"),
            );
            return result;
        }
        let declares = simple.words.iter().any(|argument| matches!(argument, Argument::Assignment(_)));
        if declares {
            return self.run_declaration(simple);
        }
        let mut args = Vec::with_capacity(simple.words.len());
        for argument in &simple.words {
            if let Argument::Word(word) = argument {
                self.expand_word(word, &mut args)?;
            }
        }
        if args.is_empty() {
            return self.run_without_name(simple);
        }
        if self.on(SetOption::XTrace) {
            self.trace_command(&simple.assignments, &args)?;
        }
        let result = self.run_named(simple, &args, last);
        if let Some(argument) = args.pop() {
            self.last_argument = argument;
        }
        result
    }

    /// Runs a command of assignments and redirections only.
    fn run_without_name(&mut self, simple: &SimpleCommand) -> Done {
        for assignment in &simple.assignments {
            match self.perform_assignment(assignment) {
                Err(Flow::Discard(_)) if self.on(SetOption::Posix) && !self.interactive => {
                    let top = self.subshell == 0 && self.origin == crate::shell::Origin::CommandString;
                    return Err(Flow::Exit(if top { 127 } else { 1 }));
                }
                other => other?,
            }
        }
        // The descriptor and its variable are those of a child.
        if simple.redirects.iter().any(|redirect| matches!(redirect.fd, RedirectFd::Variable(_))) {
            return self.run_subshell_with(|shell| shell.redirect_nothing(simple));
        }
        self.redirect_nothing(simple)
    }

    fn redirect_nothing(&mut self, simple: &SimpleCommand) -> Done {
        let mut status = 0;
        if !simple.redirects.is_empty() {
            let substituted = self.substitution_status;
            match self.apply_redirects(&simple.redirects)? {
                Ok(saved) => self.restore_redirects(saved),
                Err(refused) => status = refused,
            }
            self.substitution_status = self.substitution_status.or(substituted);
        }
        self.last_argument.clear();
        if status == 0 {
            status = self.substitution_status.take().unwrap_or(0);
        }
        Ok(status)
    }

    fn find_command(&self, name: &str) -> Found {
        let posix = self.on(SetOption::Posix);
        if posix
            && builtins::is_special(name)
            && let Some(builtin) = self.builtin(name)
        {
            return Found::Builtin(builtin);
        }
        if self.functions.contains_key(name) {
            return Found::Function;
        }
        match self.builtin(name) {
            Some(builtin) => Found::Builtin(builtin),
            None => Found::Program,
        }
    }

    fn run_named(&mut self, simple: &SimpleCommand, args: &[String], last: bool) -> Done {
        let Some(name) = args.first() else { return Ok(0) };
        match self.find_command(name) {
            Found::Function => self.run_function(simple, args),
            Found::Builtin(builtin) => {
                if name == "exec" {
                    return self.run_exec(simple, args);
                }
                let special = self.on(SetOption::Posix) && builtins::is_special(name);
                if simple.redirects.is_empty() && simple.assignments.is_empty() {
                    let status = self.run_builtin(builtin, args)?;
                    if special
                        && status == USAGE
                        && !self.interactive
                        && matches!(name.as_str(), "set" | "unset" | "export" | "readonly" | "trap" | "shift" | "times")
                    {
                        return Err(Flow::Exit(status));
                    }
                    return Ok(status);
                }
                let status = self.with_surroundings_kept(simple, special, |shell| shell.run_builtin(builtin, args))?;
                Ok(status)
            }
            Found::Program => self.run_program(simple, args, last),
        }
    }

    /// Calls a function; assignments before its name live in its own scope.
    fn run_function(&mut self, simple: &SimpleCommand, args: &[String]) -> Done {
        let saved = match self.apply_redirects(&simple.redirects)? {
            Ok(saved) => saved,
            Err(status) => return Ok(status),
        };
        if !simple.redirects.is_empty() {
            self.output.look();
        }
        self.variables.push_scope(true);
        let result = self.assign_temporary(&simple.assignments).and_then(|()| self.call_in_scope(args));
        self.pop_temporary();
        self.restore_redirects(saved);
        if self.output.failure.is_some() {
            self.report_output_failure("echo");
        }
        result
    }

    /// Runs a builtin and reports output that could not be written.
    pub(crate) fn run_builtin(&mut self, builtin: Builtin, args: &[String]) -> Done {
        let status = match builtin {
            Builtin::Plain(run) => run(self, args)?,
            Builtin::Declaring(run) => {
                let items: Vec<Item<'_>> = args.iter().skip(1).cloned().map(Item::Text).collect();
                run(self, args.first().map_or("", String::as_str), items)?
            }
        };
        if (self.output.cautious || self.output.failure.is_some()) && !self.output.capturing() {
            self.output.flush();
            if self.output.failure.is_some() {
                self.report_output_failure(args.first().map_or("", String::as_str));
                return Ok(1);
            }
        }
        Ok(status)
    }

    /// Says once that output could not be written.
    pub(crate) fn report_output_failure(&mut self, name: &str) {
        if let Some(error) = self.output.failure.take() {
            let message = format!("{name}: write error: {}", sys::message(&error));
            self.complain(message);
        }
    }

    fn with_surroundings(&mut self, simple: &SimpleCommand, run: impl FnOnce(&mut Self) -> Done) -> Done {
        self.with_surroundings_kept(simple, false, run)
    }

    /// Runs with redirections and assignments in force; `keep` leaves the assignments in force afterwards.
    fn with_surroundings_kept(&mut self, simple: &SimpleCommand, keep: bool, run: impl FnOnce(&mut Self) -> Done) -> Done {
        let saved = match self.apply_redirects(&simple.redirects)? {
            Ok(saved) => saved,
            Err(status) => {
                if keep && !self.interactive {
                    return Err(Flow::Exit(status));
                }
                return Ok(status);
            }
        };
        let scoped = !simple.assignments.is_empty() && !keep;
        let mut result = Ok(());
        if scoped {
            self.variables.push_scope(false);
            result = self.assign_temporary(&simple.assignments);
        } else if keep {
            for assignment in &simple.assignments {
                result = result.and_then(|()| self.perform_assignment(assignment));
            }
        }
        let result = match result {
            Ok(()) => run(self),
            Err(flow) => Err(flow),
        };
        if scoped {
            self.pop_temporary();
        }
        self.restore_redirects(saved);
        if self.output.failure.is_some() {
            self.report_output_failure("echo");
        }
        result
    }

    /// Ends the scope of assignments before a command.
    pub(super) fn pop_temporary(&mut self) {
        for name in self.variables.pop_scope() {
            self.assigned(&name);
        }
    }

    fn run_program(&mut self, simple: &SimpleCommand, args: &[String], last: bool) -> Done {
        if simple.redirects.is_empty() && simple.assignments.is_empty() {
            return self.run_program_here(args, last, simple);
        }
        let replace = last && self.may_be_replaced();
        self.with_surroundings(simple, |shell| shell.run_program_here(args, replace, simple))
    }

    fn run_program_here(&mut self, args: &[String], last: bool, simple: &SimpleCommand) -> Done {
        let name = args.first().map_or("", String::as_str);
        if self.functions.contains_key("command_not_found_handle") && !name.contains('/') && self.find_program(name).is_none() {
            let mut call = vec!["command_not_found_handle".to_owned()];
            call.extend_from_slice(args);
            return self.run_subshell_with(|shell| shell.call_function(&call));
        }
        let replace = last && self.may_be_replaced();
        match self.launch(args, replace) {
            Ok(pid) => Ok(self.wait_for_described(pid, || crate::shown::simple(simple))),
            Err(status) => Ok(status),
        }
    }

    pub(super) fn wait_for_described(&mut self, pid: u32, text: impl FnOnce() -> String) -> i32 {
        self.output.flush();
        let target = i32::try_from(pid).unwrap_or(-1);
        let from = sys::now_ns();
        loop {
            match sys::wait(target, 0) {
                Ok(Some(waited)) => {
                    self.waited += sys::now_ns() - from;
                    if let sys::WaitStatus::Signaled(_) = waited.status {
                        self.report_signal(pid, waited.status, &text());
                    }
                    return i32::from(waited.status.shell_code());
                }
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return 127,
                _ => {}
            }
        }
    }

    /// Returns whether nothing is left for this process to do after its last command.
    fn may_be_replaced(&self) -> bool {
        self.output.failure.is_none() && self.traps.commands.is_empty() && self.readers.is_empty()
    }

    /// Runs `exec`, whose redirections stay.
    fn run_exec(&mut self, simple: &SimpleCommand, args: &[String]) -> Done {
        let saved = match self.apply_redirects(&simple.redirects)? {
            Ok(saved) => saved,
            Err(status) => {
                return if self.on(SetOption::Posix) { Err(Flow::Exit(status)) } else { Ok(status) };
            }
        };
        let scoped = !simple.assignments.is_empty();
        if scoped {
            self.variables.push_scope(false);
        }
        let assigned = if scoped { self.assign_temporary(&simple.assignments) } else { Ok(()) };
        let result = match assigned {
            Ok(()) => builtins::exec(self, args),
            Err(flow) => Err(flow),
        };
        if scoped {
            self.pop_temporary();
        }
        match result {
            Ok(0) => {
                self.keep_redirects(saved);
                Ok(0)
            }
            other => {
                self.restore_redirects(saved);
                other
            }
        }
    }

    /// `declare`, `local`, `export` and the like with assignments among their arguments.
    fn run_declaration(&mut self, simple: &SimpleCommand) -> Done {
        let mut items: Vec<Item<'_>> = Vec::with_capacity(simple.words.len());
        for argument in &simple.words {
            match argument {
                Argument::Word(word) => {
                    let mut texts = Vec::new();
                    self.expand_word(word, &mut texts)?;
                    items.extend(texts.into_iter().map(Item::Text));
                }
                Argument::Assignment(assignment) => match &assignment.value {
                    crate::ast::AssignedValue::Scalar(word) => {
                        let value = self.expand_assigned(word)?;
                        items.push(Item::Value(assignment, value));
                    }
                    crate::ast::AssignedValue::Array(_) => items.push(Item::Assignment(assignment)),
                },
            }
        }
        let name = match items.first() {
            Some(Item::Text(name)) => name.clone(),
            _ => String::new(),
        };
        let mut builtin = self.builtin(&name).filter(|_| !self.functions.contains_key(&name));
        let mut skip = 1;
        if (name == "command" || name == "builtin")
            && let Some(Item::Text(inner)) = items.get(1)
        {
            builtin = self.builtin(inner);
            skip = 2;
        }
        if let Some(Builtin::Declaring(run)) = builtin {
            let name = match items.get(skip - 1) {
                Some(Item::Text(name)) => name.clone(),
                _ => name,
            };
            if self.on(SetOption::XTrace) {
                self.trace_items(&name, &items)?;
            }
            let items: Vec<Item<'_>> = items.into_iter().skip(skip).collect();
            let last = items.last().map(last_argument);
            let result = self.with_surroundings(simple, |shell| run(shell, &name, items));
            self.last_argument = last.unwrap_or(name);
            return result;
        }
        let mut args = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Text(text) => args.push(text),
                Item::Assignment(assignment) => args.push(self.assignment_text(assignment)?),
                Item::Value(assignment, value) => {
                    let index = match &assignment.index {
                        Some(word) => format!("[{}]", self.expand_string(word)?),
                        None => String::new(),
                    };
                    let operator = if assignment.append { "+=" } else { "=" };
                    args.push(format!("{}{index}{operator}{value}", assignment.name));
                }
            }
        }
        if self.on(SetOption::XTrace) {
            self.trace_command(&simple.assignments, &args)?;
        }
        self.run_named(simple, &args, false)
    }

    /// Returns an assignment as the plain word it would have been.
    fn assignment_text(&mut self, assignment: &Assignment) -> Done<String> {
        let index = match &assignment.index {
            Some(word) => format!("[{}]", self.expand_string(word)?),
            None => String::new(),
        };
        let value = match &assignment.value {
            crate::ast::AssignedValue::Scalar(word) => self.expand_assigned(word)?,
            crate::ast::AssignedValue::Array(_) => crate::shown::assigned(&assignment.value),
        };
        Ok(format!("{}{index}{}{value}", assignment.name, if assignment.append { "+=" } else { "=" }))
    }

    /// Expands words for `for` and `select`.
    pub(super) fn expand_list(&mut self, words: Option<&Vec<Word>>) -> Done<Vec<String>> {
        match words {
            Some(words) => self.expand_words(words),
            None => Ok(self.positional.clone()),
        }
    }
}

/// Returns the value of `$_` after a declaring builtin.
fn last_argument(item: &Item<'_>) -> String {
    match item {
        Item::Text(text) => text.clone(),
        Item::Assignment(assignment) => assignment.name.clone(),
        Item::Value(assignment, value) => {
            let index = assignment.index.as_ref().map(|index| format!("[{}]", crate::print::word(index))).unwrap_or_default();
            format!("{}{index}{}{value}", assignment.name, if assignment.append { "+=" } else { "=" })
        }
    }
}

/// `set -k`: assignments count wherever they stand. `None` when there are none after the command's name.
fn take_keywords(simple: &SimpleCommand) -> Option<SimpleCommand> {
    let mut out = SimpleCommand { words: Vec::new(), ..simple.clone() };
    for argument in &simple.words {
        let assignment = match argument {
            Argument::Word(Word { parts }) => keyword(parts),
            Argument::Assignment(_) => None,
        };
        match assignment {
            Some(assignment) if !out.words.is_empty() => out.assignments.push(assignment),
            _ => out.words.push(argument.clone()),
        }
    }
    (out.assignments.len() > simple.assignments.len()).then_some(out)
}

fn keyword(parts: &[Part]) -> Option<Assignment> {
    let (Part::Literal(first), rest) = parts.split_first()? else { return None };
    let (name, value) = first.split_once('=')?;
    if !crate::state::assign::is_name(name) {
        return None;
    }
    let mut parts = vec![Part::Literal(value.to_owned())];
    parts.extend_from_slice(rest);
    let value = crate::ast::AssignedValue::Scalar(Word { parts });
    Some(Assignment { name: name.to_owned(), index: None, append: false, value })
}
