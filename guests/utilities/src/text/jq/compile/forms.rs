//! Terms with a shape of their own: calls, lists, logic, assignments, loops and patterns.

use std::collections::HashMap;

use super::super::ast::{Assign, Fold, Pattern, Place, Term};
use super::super::functions;
use super::super::value::Json;
use super::{Binding, Compiler, Current, Scope, Step, Variable, bind};

impl Compiler<'_> {
    pub(super) fn call(&mut self, current: &mut Current, name: &str, arguments: &[Term], place: Place, scope: &Scope) {
        if let Some(callee) = self.callee(current, name, arguments.len(), scope) {
            let closures = arguments.iter().map(|term| self.lambda(current, term, scope)).collect();
            return current.push(Step::Call(callee, closures));
        }
        match (name, arguments) {
            ("empty", []) => current.push(Step::Backtrack),
            ("not", []) => self.condition(
                current,
                |code| code.push(Step::Load(Json::Bool(false))),
                |code| {
                    code.push(Step::Load(Json::Bool(true)));
                },
            ),
            ("path", [term]) => {
                current.push(Step::PathBegin);
                self.term(current, term, scope);
                current.push(Step::PathEnd);
            }
            ("range", [start, end]) => {
                let (from, at) = (current.fresh(), current.fresh());
                current.push(Step::Dup);
                self.term(current, start, scope);
                current.push(Step::Store(from));
                self.term(current, end, scope);
                current.push(Step::Dup);
                current.push(Step::LoadVariable(from));
                current.push(Step::Store(at));
                current.push(Step::Range(at));
            }
            _ => match functions::native(name, arguments.len()) {
                Some(native) => self.native(current, native, &arguments.iter().collect::<Vec<_>>(), scope),
                None => self.complaints.push((format!("{name}/{} is not defined", arguments.len()), place)),
            },
        }
    }

    pub(super) fn condition(
        &mut self,
        current: &mut Current,
        then: impl FnOnce(&mut Current),
        otherwise: impl FnOnce(&mut Current),
    ) {
        let no = current.hole(Step::JumpIfFalse);
        then(current);
        let end = current.hole(Step::Jump);
        current.land(no);
        otherwise(current);
        current.land(end);
    }

    /// Terms between bars; a long pipe must not nest as deeply as its tree.
    pub(super) fn pipe(&mut self, current: &mut Current, left: &Term, right: &Term, scope: &Scope) {
        let mut terms = vec![right];
        let mut first = left;
        while let Term::Pipe(left, right) = first {
            terms.push(right);
            first = left;
        }
        self.term(current, first, scope);
        for term in terms.into_iter().rev() {
            self.term(current, term, scope);
        }
    }

    /// Terms between commas; a long list must not nest as deeply as its tree.
    pub(super) fn list(&mut self, current: &mut Current, left: &Term, right: &Term, scope: &Scope) {
        let mut terms = vec![right];
        let mut first = left;
        while let Term::Comma(left, right) = first {
            terms.push(right);
            first = left;
        }
        terms.push(first);
        let mut ends = Vec::new();
        while let Some(term) = terms.pop() {
            if terms.is_empty() {
                self.term(current, term, scope);
                break;
            }
            let next = current.hole(Step::Fork);
            self.term(current, term, scope);
            ends.push(current.hole(Step::Jump));
            current.land(next);
        }
        for end in ends {
            current.land(end);
        }
    }

    pub(super) fn logic(&mut self, current: &mut Current, left: &Term, right: &Term, decided_by: bool, scope: &Scope) {
        current.push(Step::Dup);
        self.term(current, left, scope);
        let no = current.hole(Step::JumpIfFalse);
        current.push(Step::Pop);
        let truth = |current: &mut Current, truth| current.push(Step::Load(Json::Bool(truth)));
        let second = |compiler: &mut Self, current: &mut Current| {
            compiler.term(current, right, scope);
            compiler.condition(current, |code| truth(code, true), |code| truth(code, false));
        };
        if decided_by {
            truth(current, true);
        } else {
            second(self, current);
        }
        let end = current.hole(Step::Jump);
        current.land(no);
        current.push(Step::Pop);
        if decided_by {
            second(self, current);
        } else {
            truth(current, false);
        }
        current.land(end);
    }

    pub(super) fn alternative(
        &mut self,
        current: &mut Current,
        left: &Term,
        scope: &Scope,
        right: impl FnOnce(&mut Self, &mut Current),
    ) {
        let found = current.fresh();
        for step in [Step::Dup, Step::Load(Json::Bool(false)), Step::Store(found)] {
            current.push(step);
        }
        let none = current.hole(Step::Fork);
        self.term(current, left, scope);
        let no = current.hole(Step::JumpIfFalse);
        for step in [Step::Dup, Step::Load(Json::Bool(true)), Step::Store(found)] {
            current.push(step);
        }
        let end = current.hole(Step::Jump);
        current.land(no);
        current.push(Step::Backtrack);
        current.land(none);
        current.push(Step::Dup);
        current.push(Step::LoadVariable(found));
        let missing = current.hole(Step::JumpIfFalse);
        current.push(Step::Backtrack);
        current.land(missing);
        current.push(Step::Pop);
        right(self, current);
        current.land(end);
    }

    pub(super) fn assign(&mut self, current: &mut Current, how: Assign, left: &Term, right: &Term, scope: &Scope) {
        let name = if matches!(how, Assign::Set) { "_assign" } else { "_modify" };
        let Some(callee) = self.callee(current, name, 2, &None) else { return };
        let target = self.lambda(current, left, scope);
        let (value, scope) = match how {
            Assign::Set | Assign::Modify => (right.clone(), scope.clone()),
            Assign::Update(_) | Assign::Default => {
                let operand = current.fresh();
                current.push(Step::Dup);
                self.term(current, right, scope);
                current.push(Step::Store(operand));
                let name = "*operand".to_string();
                let variable = Box::new(Term::Variable(name.clone(), Place::default()));
                let inner = bind(Binding::Variable(name, operand.slot), current.depth, scope);
                let value = match how {
                    Assign::Update(native) => Term::Binary(native, Box::new(Term::Identity), variable),
                    _ => Term::Alternative(Box::new(Term::Identity), variable),
                };
                (value, inner)
            }
        };
        let value = self.lambda(current, &value, &scope);
        current.push(Step::Call(callee, Box::new([target, value])));
    }

    pub(super) fn reduce(&mut self, current: &mut Current, fold: &Fold, scope: &Scope) {
        let result = current.fresh();
        current.push(Step::Dup);
        self.term(current, &fold.start, scope);
        current.push(Step::Store(result));
        let end = current.hole(Step::Fork);
        current.push(Step::DupTaking);
        self.term(current, &fold.source, scope);
        let inner = self.patterns(current, &fold.patterns, scope);
        current.push(Step::TakeVariable(result));
        self.term(current, &fold.update, &inner);
        current.push(Step::Store(result));
        current.push(Step::Backtrack);
        current.land(end);
        current.push(Step::TakeVariable(result));
    }

    pub(super) fn foreach(&mut self, current: &mut Current, fold: &Fold, extract: &Term, scope: &Scope) {
        let state = current.fresh();
        current.push(Step::Dup);
        self.term(current, &fold.start, scope);
        current.push(Step::Store(state));
        let end = current.hole(Step::Fork);
        current.push(Step::DupTaking);
        self.term(current, &fold.source, scope);
        let inner = self.patterns(current, &fold.patterns, scope);
        current.push(Step::TakeVariable(state));
        self.term(current, &fold.update, &inner);
        current.push(Step::Dup);
        current.push(Step::Store(state));
        self.term(current, extract, &inner);
        let out = current.hole(Step::Jump);
        current.land(end);
        current.push(Step::Backtrack);
        current.land(out);
    }

    /// Takes the value apart that is on top; what is below becomes the input again.
    pub(super) fn patterns(&mut self, current: &mut Current, patterns: &[Pattern], scope: &Scope) -> Scope {
        let mut names = Vec::new();
        for pattern in patterns {
            variables(pattern, &mut names);
        }
        let mut inner = scope.clone();
        let mut slots = HashMap::new();
        for name in &names {
            let variable = current.fresh();
            if patterns.len() > 1 {
                for step in [Step::Dup, Step::Load(Json::Null), Step::Store(variable)] {
                    current.push(step);
                }
            }
            slots.insert(name.as_str(), variable);
            inner = bind(Binding::Variable(name.clone(), variable.slot), current.depth, &inner);
        }
        let mut ends = Vec::new();
        for (index, pattern) in patterns.iter().enumerate() {
            let last = index + 1 == patterns.len();
            let mut seen = Vec::new();
            if last {
                self.pattern(current, pattern, scope, &slots, &mut seen, false);
                continue;
            }
            let next = current.hole(Step::Alternative);
            self.pattern(current, pattern, scope, &slots, &mut seen, true);
            ends.push(current.hole(Step::Jump));
            current.land(next);
        }
        for end in ends {
            current.land(end);
        }
        inner
    }

    pub(super) fn pattern<'p>(
        &mut self,
        current: &mut Current,
        pattern: &'p Pattern,
        scope: &Scope,
        slots: &HashMap<&str, Variable>,
        seen: &mut Vec<&'p str>,
        tentative: bool,
    ) {
        match pattern {
            Pattern::Variable(name) => store(current, name, slots, seen, tentative),
            Pattern::Array(items) => {
                for (index, item) in items.iter().enumerate().rev() {
                    current.push(Step::Dup);
                    current.push(Step::PushUnder(Json::Number(index as f64)));
                    current.push(Step::Index(false));
                    self.pattern(current, item, scope, slots, seen, tentative);
                }
                current.push(Step::Pop);
            }
            Pattern::Object(fields) => {
                for (key, name, item) in fields {
                    current.push(Step::Dup);
                    self.beside(current, key, scope);
                    current.push(Step::Index(false));
                    if let Some(name) = name {
                        if item.is_some() {
                            current.push(Step::Dup);
                        }
                        store(current, name, slots, seen, tentative);
                    }
                    if let Some(item) = item {
                        self.pattern(current, item, scope, slots, seen, tentative);
                    }
                }
                current.push(Step::Pop);
            }
        }
    }
}

fn store<'p>(current: &mut Current, name: &'p str, slots: &HashMap<&str, Variable>, seen: &mut Vec<&'p str>, tentative: bool) {
    let known = slots.get(name).copied();
    // Of two variables with one name in a pattern the first one that is stored counts.
    let variable = if seen.contains(&name) { current.fresh() } else { known.unwrap_or_else(|| current.fresh()) };
    seen.push(name);
    current.push(if tentative { Step::StoreTentatively(variable) } else { Step::Store(variable) });
}

fn variables(pattern: &Pattern, names: &mut Vec<String>) {
    let mut add = |name: &String| {
        if !names.contains(name) {
            names.push(name.clone());
        }
    };
    match pattern {
        Pattern::Variable(name) => add(name),
        Pattern::Array(items) => items.iter().for_each(|item| variables(item, names)),
        Pattern::Object(fields) => {
            for (_, name, item) in fields {
                if let Some(name) = name
                    && !names.contains(name)
                {
                    names.push(name.clone());
                }
                if let Some(item) = item {
                    variables(item, names);
                }
            }
        }
    }
}
