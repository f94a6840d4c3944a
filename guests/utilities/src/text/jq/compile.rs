//! Trees made into code for the machine: names become places, and only what is used is compiled.

mod forms;
mod tail;

use std::collections::HashMap;
use std::rc::Rc;

use super::ast::{Definition, Place, Term};
use super::functions::{self, Native};
use super::modules::Loaded;
use super::parse::TOO_DEEP;
use super::value::{Json, Object};

/// A variable: how many frames outwards, and which of the frame's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    pub level: u32,
    pub slot: u32,
}

/// What is called, or handed to a function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Closure {
    /// A function whose surrounding frame is `level` frames outwards.
    Function { level: u32, function: u32 },
    /// A parameter of the frame `level` frames outwards.
    Parameter { level: u32, index: u32 },
}

/// One step of the machine. Its stack holds values; the topmost is the current input.
#[derive(Debug)]
pub(super) enum Step {
    Load(Json),
    Dup,
    /// Like `Dup`, and what waits below gives up its value.
    DupTaking,
    Dup2,
    PushUnder(Json),
    Pop,
    LoadVariable(Variable),
    /// Takes the value out of the variable.
    TakeVariable(Variable),
    Store(Variable),
    /// Stores, and forgets the value when backtracking.
    StoreTentatively(Variable),
    Index(bool),
    Each(bool),
    Fork(usize),
    Try(usize),
    TryEnd,
    Jump(usize),
    JumpIfFalse(usize),
    Backtrack,
    Append(Variable),
    Insert,
    Range(Variable),
    SubBegin,
    SubEnd,
    PathBegin,
    PathEnd,
    GetPath,
    Native(&'static Native),
    Call(Closure, Box<[Closure]>),
    TailCall(Closure, Box<[Closure]>),
    Return,
    Label(Variable),
    /// Raises an error again, unless it is a break to this label.
    Catch(Variable),
    Alternative(usize),
}

#[derive(Debug, Default)]
pub(super) struct Function {
    pub code: Vec<Step>,
    pub parameters: u32,
    pub variables: u32,
}

#[derive(Debug, Default)]
pub(super) struct Program {
    pub functions: Vec<Function>,
}

#[derive(Debug)]
enum Binding {
    /// Compiled when it is first called.
    Function(Rc<Definition>, std::cell::Cell<Option<u32>>),
    Parameter(String, u32),
    Variable(String, u32),
    /// A function of a module under the name it has here.
    Alias(String, Rc<Names>),
    Constant(String, Json),
}

/// What a name means, inside out.
type Scope = Option<Rc<Names>>;

#[derive(Debug)]
struct Names {
    binding: Binding,
    depth: u32,
    outer: Scope,
}

/// A function whose code is still to be written.
struct Pending {
    function: u32,
    body: Body,
    scope: Scope,
    depth: u32,
}

enum Body {
    Lambda(Term),
    Definition(Rc<Definition>, Rc<Names>),
}

/// The function that is being written.
struct Current {
    code: Vec<Step>,
    variables: u32,
    depth: u32,
    pending: Vec<Pending>,
}

struct Compiler<'a> {
    program: Program,
    globals: &'a HashMap<String, Json>,
    builtins: HashMap<(&'static str, usize), Option<Rc<Names>>>,
    complaints: Vec<(String, Place)>,
    queue: Vec<Pending>,
    /// Terms that are open.
    depth: usize,
}

/// Most terms inside each other, as in a sum of so many: the stack of a process is small.
const MAX_DEPTH: usize = 1000;

/// Compiles a filter; `globals` are the values of variables that it does not bind.
pub(super) fn compile(
    main: &Term,
    loaded: &Loaded,
    modules: &[Loaded],
    globals: &HashMap<String, Json>,
) -> Result<Program, Vec<(String, Place)>> {
    let mut compiler = Compiler {
        program: Program { functions: vec![Function::default()] },
        globals,
        builtins: HashMap::new(),
        complaints: Vec::new(),
        queue: Vec::new(),
        depth: 0,
    };
    let mut exports: Vec<Vec<Rc<Names>>> = Vec::new();
    for module in modules {
        let mut scope = names_of(module, &exports);
        let mut own = Vec::new();
        for definition in &module.definitions {
            scope = define(definition, 0, scope);
            own.extend(scope.clone());
        }
        exports.push(own);
    }
    let scope = names_of(loaded, &exports);
    let mut current = Current { code: Vec::new(), variables: 0, depth: 0, pending: Vec::new() };
    compiler.term(&mut current, main, &scope);
    compiler.finish(0, 0, current);
    while let Some(pending) = compiler.queue.pop() {
        compiler.write(pending);
    }
    if compiler.complaints.is_empty() { Ok(compiler.program) } else { Err(compiler.complaints) }
}

/// Returns the names that a program or module imports.
fn names_of(loaded: &Loaded, exports: &[Vec<Rc<Names>>]) -> Scope {
    let mut scope = None;
    for (name, value) in &loaded.data {
        scope = bind(Binding::Constant(name.clone(), value.clone()), 0, &scope);
    }
    for (module, prefix) in &loaded.links {
        for names in exports.get(*module).into_iter().flatten() {
            let Binding::Function(definition, _) = &names.binding else { continue };
            let name = match prefix {
                Some(prefix) => format!("{prefix}::{}", definition.name),
                None => definition.name.clone(),
            };
            scope = bind(Binding::Alias(name, Rc::clone(names)), 0, &scope);
        }
    }
    scope
}

fn define(definition: &Rc<Definition>, depth: u32, outer: Scope) -> Scope {
    let binding = Binding::Function(Rc::clone(definition), std::cell::Cell::new(None));
    Some(Rc::new(Names { binding, depth, outer }))
}

fn arity(names: &Names) -> Option<usize> {
    if let Binding::Function(definition, _) = &names.binding { Some(definition.parameters.len()) } else { None }
}

fn bind(binding: Binding, depth: u32, outer: &Scope) -> Scope {
    Some(Rc::new(Names { binding, depth, outer: outer.clone() }))
}

impl Current {
    fn push(&mut self, step: Step) {
        self.code.push(step);
    }

    fn here(&self) -> usize {
        self.code.len()
    }

    fn fresh(&mut self) -> Variable {
        self.variables += 1;
        Variable { level: 0, slot: self.variables - 1 }
    }

    /// A jump whose target is set by `land`.
    fn hole(&mut self, step: fn(usize) -> Step) -> usize {
        self.push(step(0));
        self.here() - 1
    }

    fn land(&mut self, hole: usize) {
        let here = self.here();
        if let Some(
            Step::Fork(target) | Step::Try(target) | Step::Jump(target) | Step::JumpIfFalse(target) | Step::Alternative(target),
        ) = self.code.get_mut(hole)
        {
            *target = here;
        }
    }
}

impl Compiler<'_> {
    /// Stores the code of a function; those it contains come next.
    fn finish(&mut self, function: u32, parameters: u32, mut current: Current) {
        current.push(Step::Return);
        tail::replace(&mut current.code);
        let Current { code, variables, pending, .. } = current;
        self.program.functions[function as usize] = Function { code, parameters, variables };
        self.queue.extend(pending.into_iter().rev());
    }

    fn write(&mut self, pending: Pending) {
        let Pending { function, body, scope, depth } = pending;
        let mut current = Current { code: Vec::new(), variables: 0, depth, pending: Vec::new() };
        match body {
            Body::Lambda(term) => {
                self.term(&mut current, &term, &scope);
                self.finish(function, 0, current);
            }
            Body::Definition(definition, names) => {
                let mut scope = Some(names);
                for (index, name) in definition.parameters.iter().enumerate() {
                    let name = name.strip_prefix('$').unwrap_or(name).to_string();
                    scope = bind(Binding::Parameter(name, index as u32), depth, &scope);
                }
                for (index, name) in definition.parameters.iter().enumerate() {
                    let Some(name) = name.strip_prefix('$') else { continue };
                    let variable = current.fresh();
                    current.push(Step::Dup);
                    current.push(Step::SubBegin);
                    let parameter = Closure::Parameter { level: 0, index: index as u32 };
                    current.push(Step::Call(parameter, Box::new([])));
                    current.push(Step::SubEnd);
                    current.push(Step::Pop);
                    current.push(Step::Store(variable));
                    scope = bind(Binding::Variable(name.to_string(), variable.slot), depth, &scope);
                }
                self.term(&mut current, &definition.body, &scope);
                self.finish(function, definition.parameters.len() as u32, current);
            }
        }
    }

    fn new_function(&mut self) -> u32 {
        self.program.functions.push(Function::default());
        self.program.functions.len() as u32 - 1
    }

    fn lambda(&mut self, current: &mut Current, term: &Term, scope: &Scope) -> Closure {
        if let Term::Call(name, arguments, _) = term
            && arguments.is_empty()
            && let Some(closure) = self.parameter(current, name, scope)
        {
            return closure;
        }
        let function = self.new_function();
        current.pending.push(Pending {
            function,
            body: Body::Lambda(term.clone()),
            scope: scope.clone(),
            depth: current.depth + 1,
        });
        Closure::Function { level: 0, function }
    }

    /// Returns the parameter that a name without arguments means, if it means one.
    fn parameter(&self, current: &Current, name: &str, scope: &Scope) -> Option<Closure> {
        let mut names = scope.as_ref();
        while let Some(here) = names {
            match &here.binding {
                Binding::Parameter(found, index) if found == name => {
                    return Some(Closure::Parameter { level: current.depth - here.depth, index: *index });
                }
                Binding::Function(definition, _) if definition.name == name && definition.parameters.is_empty() => return None,
                Binding::Alias(alias, target) if alias == name && arity(target) == Some(0) => return None,
                _ => names = here.outer.as_ref(),
            }
        }
        None
    }

    /// Returns the function that a name means, found in the scope or among the built-in definitions.
    fn function(&mut self, current: &mut Current, names: &Rc<Names>) -> Option<Closure> {
        let Binding::Function(definition, compiled) = &names.binding else { return None };
        let function = match compiled.get() {
            Some(function) => function,
            None => {
                let function = self.new_function();
                compiled.set(Some(function));
                current.pending.push(Pending {
                    function,
                    body: Body::Definition(Rc::clone(definition), Rc::clone(names)),
                    scope: None,
                    depth: names.depth + 1,
                });
                function
            }
        };
        Some(Closure::Function { level: current.depth - names.depth, function })
    }

    fn callee(&mut self, current: &mut Current, name: &str, count: usize, scope: &Scope) -> Option<Closure> {
        let mut names = scope.clone();
        while let Some(here) = names {
            match &here.binding {
                Binding::Parameter(found, index) if count == 0 && found == name => {
                    return Some(Closure::Parameter { level: current.depth - here.depth, index: *index });
                }
                Binding::Function(definition, _) if definition.name == name && definition.parameters.len() == count => {
                    return self.function(current, &here);
                }
                Binding::Alias(alias, target) if alias == name && arity(target) == Some(count) => {
                    return self.function(current, &Rc::clone(target));
                }
                _ => names = here.outer.clone(),
            }
        }
        let known = functions::definition(name, count)?;
        let names = match self.builtins.get(&(known.0, count)) {
            Some(names) => names.clone(),
            None => {
                let names = define(&Rc::new(functions::read_definition(known.1)?), 0, None);
                self.builtins.insert((known.0, count), names.clone());
                names
            }
        }?;
        self.function(current, &names)
    }

    fn variable(&self, current: &Current, name: &str, scope: &Scope) -> Option<Variable> {
        let mut names = scope.as_ref();
        while let Some(here) = names {
            match &here.binding {
                Binding::Variable(found, slot) if found == name => {
                    return Some(Variable { level: current.depth - here.depth, slot: *slot });
                }
                _ => names = here.outer.as_ref(),
            }
        }
        None
    }

    /// Evaluates beside the input: the value ends below it.
    fn beside(&mut self, current: &mut Current, term: &Term, scope: &Scope) {
        match term {
            Term::Identity => current.push(Step::Dup),
            Term::Constant(value) => current.push(Step::PushUnder(value.clone())),
            _ => {
                current.push(Step::SubBegin);
                self.term(current, term, scope);
                current.push(Step::SubEnd);
            }
        }
    }

    fn native(&mut self, current: &mut Current, native: &'static Native, arguments: &[&Term], scope: &Scope) {
        for argument in arguments.iter().rev() {
            self.beside(current, argument, scope);
        }
        current.push(if native.name == "getpath" { Step::GetPath } else { Step::Native(native) });
    }

    fn named_native(&mut self, current: &mut Current, name: &str, arguments: &[&Term], scope: &Scope) {
        if let Some(native) = functions::native(name, arguments.len()) {
            self.native(current, native, arguments, scope);
        }
    }

    fn term(&mut self, current: &mut Current, term: &Term, scope: &Scope) {
        if self.depth > MAX_DEPTH {
            if !self.complaints.iter().any(|(message, _)| message == TOO_DEEP) {
                self.complaints.push((TOO_DEEP.to_string(), Place::default()));
            }
            return;
        }
        self.depth += 1;
        self.open_term(current, term, scope);
        self.depth -= 1;
    }

    #[expect(clippy::too_many_lines, reason = "one arm per kind of term")]
    fn open_term(&mut self, current: &mut Current, term: &Term, scope: &Scope) {
        match term {
            Term::Identity => {}
            Term::Constant(value) => current.push(Step::Load(value.clone())),
            Term::Variable(name, place) => match self.variable(current, name, scope) {
                Some(variable) => current.push(Step::LoadVariable(variable)),
                None => match imported(name, scope).or_else(|| self.globals.get(name).cloned()) {
                    Some(value) => current.push(Step::Load(value)),
                    None => self.complaints.push((format!("${name} is not defined"), *place)),
                },
            },
            Term::Take(name) => match self.variable(current, name, scope) {
                Some(variable) => current.push(Step::TakeVariable(variable)),
                None => self.complaints.push((format!("${name} is not defined"), Place::default())),
            },
            Term::Call(name, arguments, place) => self.call(current, name, arguments, *place, scope),
            Term::Index(value, key, silent) => {
                self.beside(current, key, scope);
                self.term(current, value, scope);
                current.push(Step::Index(*silent));
            }
            Term::OwnField => {
                for step in [Step::Pop, Step::Dup2, Step::Dup2, Step::Index(false)] {
                    current.push(step);
                }
            }
            Term::Slice(value, from, to, silent) => {
                current.push(Step::PushUnder(Json::Object(Rc::new(Object::default()))));
                for (name, term) in [("start", from), ("end", to)] {
                    current.push(Step::PushUnder(Json::string(name)));
                    self.beside(current, term.as_deref().unwrap_or(&Term::Constant(Json::Null)), scope);
                    current.push(Step::Insert);
                }
                self.term(current, value, scope);
                current.push(Step::Index(*silent));
            }
            Term::Each(value, silent) => {
                self.term(current, value, scope);
                current.push(Step::Each(*silent));
            }
            Term::Format(name, value) => {
                self.term(current, value, scope);
                self.named_native(current, "format", &[&Term::Constant(Json::string(name.clone()))], scope);
            }
            Term::Array(inner) => {
                let list = current.fresh();
                for step in [Step::Dup, Step::Load(Json::array(Vec::new())), Step::Store(list)] {
                    current.push(step);
                }
                let end = current.hole(Step::Fork);
                self.term(current, inner, scope);
                current.push(Step::Append(list));
                current.push(Step::Backtrack);
                current.land(end);
                current.push(Step::TakeVariable(list));
            }
            Term::Object(fields) => {
                current.push(Step::PushUnder(Json::Object(Rc::new(Object::default()))));
                for (key, value) in fields {
                    self.beside(current, key, scope);
                    self.beside(current, value, scope);
                    current.push(Step::Insert);
                }
                current.push(Step::Pop);
            }
            Term::Negate(inner) => {
                self.term(current, inner, scope);
                self.named_native(current, "_negate", &[], scope);
            }
            Term::Pipe(left, right) => self.pipe(current, left, right, scope),
            Term::Comma(left, right) => self.list(current, left, right, scope),
            Term::Binary(name, left, right) => self.named_native(current, name, &[left, right], scope),
            Term::And(left, right) => self.logic(current, left, right, false, scope),
            Term::Or(left, right) => self.logic(current, left, right, true, scope),
            Term::Alternative(left, right) => self.alternative(current, left, scope, |compiler, current| {
                compiler.term(current, right, scope);
            }),
            Term::Assign(how, left, right) => self.assign(current, *how, left, right, scope),
            Term::If(condition, then, otherwise) => {
                current.push(Step::Dup);
                self.beside(current, condition, scope);
                current.push(Step::Pop);
                let no = current.hole(Step::JumpIfFalse);
                current.push(Step::Pop);
                self.term(current, then, scope);
                let end = current.hole(Step::Jump);
                current.land(no);
                current.push(Step::Pop);
                self.term(current, otherwise, scope);
                current.land(end);
            }
            Term::Try(body, handler) => {
                let catch = current.hole(Step::Try);
                self.term(current, body, scope);
                current.push(Step::TryEnd);
                let end = current.hole(Step::Jump);
                current.land(catch);
                match handler {
                    Some(handler) => self.term(current, handler, scope),
                    None => current.push(Step::Backtrack),
                }
                current.land(end);
            }
            Term::Reduce(fold) => self.reduce(current, fold, scope),
            Term::Foreach(fold, extract) => self.foreach(current, fold, extract, scope),
            Term::As(source, patterns, body) => {
                current.push(Step::Dup);
                self.beside(current, source, scope);
                current.push(Step::Pop);
                let inner = self.patterns(current, patterns, scope);
                self.term(current, body, &inner);
            }
            Term::Define(definition, rest) => {
                let scope = define(definition, current.depth, scope.clone());
                self.term(current, rest, &scope);
            }
            Term::Label(name, body) => {
                let label = current.fresh();
                current.push(Step::Label(label));
                let inner = bind(Binding::Variable(format!("*label-{name}"), label.slot), current.depth, scope);
                let catch = current.hole(Step::Try);
                self.term(current, body, &inner);
                current.push(Step::TryEnd);
                let end = current.hole(Step::Jump);
                current.land(catch);
                current.push(Step::Catch(label));
                current.land(end);
            }
            Term::Break(name, place) => match self.variable(current, &format!("*label-{name}"), scope) {
                Some(label) => {
                    current.push(Step::LoadVariable(label));
                    self.named_native(current, "error", &[], scope);
                }
                None => self.complaints.push((format!("$*label-{name} is not defined"), *place)),
            },
        }
    }
}

/// Returns the value of a variable that comes from a file of data.
fn imported(name: &str, scope: &Scope) -> Option<Json> {
    let mut names = scope.as_ref();
    while let Some(here) = names {
        match &here.binding {
            Binding::Constant(found, value) if found == name => return Some(value.clone()),
            _ => names = here.outer.as_ref(),
        }
    }
    None
}
