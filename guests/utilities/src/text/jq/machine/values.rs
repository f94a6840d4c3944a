//! The steps that look into values, and keep track of the path on which they were found.

use std::rc::Rc;

use super::super::compile::Variable;
use super::super::paths;
use super::super::print;
use super::super::value::{Json, Object};
use super::{Machine, Next, Pc};

impl Machine<'_> {
    pub(super) fn index(&mut self, silent: bool) -> Next {
        let (value, key) = (self.pop(), self.pop());
        if !self.intact(&value) {
            let (key, value) = (print::short(&key, 15), print::short(&value, 30));
            return self.complain(format!("Invalid path expression near attempt to access element {key} of {value}"));
        }
        match paths::get(&value, &key) {
            Ok(found) => {
                self.append_path(key, &found);
                self.push(found);
                Next::On
            }
            Err(_) if silent => Next::Back,
            Err(message) => self.complain(message),
        }
    }

    pub(super) fn each(&mut self, silent: bool, pc: Pc) -> Next {
        let container = self.pop();
        if !self.intact(&container) {
            let value = print::short(&container, 30);
            return self.complain(format!("Invalid path expression near attempt to iterate through {value}"));
        }
        match container {
            Json::Array(_) | Json::Object(_) => self.element(container, 0, pc),
            _ if silent => Next::Back,
            _ => self.complain(format!("Cannot iterate over {} ({})", container.kind(), print::short(&container, 15))),
        }
    }

    pub(super) fn element(&mut self, container: Json, at: usize, pc: Pc) -> Next {
        let (length, found) = match &container {
            Json::Array(list) => (list.0.len(), list.0.get(at).map(|value| (None, value.clone()))),
            Json::Object(object) => {
                let found = object.0.get_index(at);
                (object.0.len(), found.map(|(key, value)| (Some(Rc::clone(key)), value.clone())))
            }
            _ => (0, None),
        };
        let Some((key, value)) = found else { return Next::Back };
        if at + 1 < length {
            let top = self.top;
            self.push(container);
            self.push(Json::Number(at as f64));
            self.save(pc, top);
        }
        if self.tracks() {
            self.append_path(key.map_or(Json::Number(at as f64), Json::String), &value);
        }
        self.push(value);
        Next::On
    }

    pub(super) fn insert(&mut self) -> Next {
        let (input, value, key, object) = (self.pop(), self.pop(), self.pop(), self.pop());
        let (Json::String(key), Json::Object(mut object)) = (&key, object) else {
            return self.complain(format!("Cannot use {} ({}) as object key", key.kind(), print::short(&key, 15)));
        };
        let Object(fields) = Rc::make_mut(&mut object);
        fields.insert(Rc::clone(key), value);
        self.push(Json::Object(object));
        self.push(input);
        Next::On
    }

    pub(super) fn range(&mut self, variable: Variable, pc: Pc) -> Next {
        let end = self.pop();
        let at = self.load(variable);
        let (Some(from), Some(to)) = (at.as_number(), end.as_number()) else {
            return self.complain("Range bounds must be numeric".to_string());
        };
        // Not `from >= to`: a bound that is not a number continues, as in jq.
        if from >= to {
            return Next::Back;
        }
        self.store(variable, Json::Number(from + 1.0));
        let top = self.top;
        self.push(end);
        self.save(pc, top);
        self.push(at);
        Next::On
    }

    pub(super) fn path_end(&mut self, pc: Pc) -> Next {
        let value = self.pop();
        if !self.intact(&value) {
            return self.complain(format!("Invalid path expression with result {}", print::short(&value, 30)));
        }
        let before = self.pop();
        let nesting = self.pop().as_number().unwrap_or(0.0) as u32;
        let outer = self.pop();
        let path = std::mem::replace(&mut self.path, outer);
        let top = self.top;
        self.push(path.clone());
        self.save(pc, top);
        self.push(path);
        self.nesting = nesting;
        self.value_at_path = before;
        Next::On
    }

    pub(super) fn get_path(&mut self) -> Next {
        let (value, path) = (self.pop(), self.pop());
        let found = match paths::get_path(&value, &path) {
            Ok(found) => found,
            Err(message) => return self.complain(message),
        };
        if self.tracks()
            && value.is_same(&self.value_at_path)
            && let (Json::Array(here), Json::Array(more)) = (&mut self.path, &path)
        {
            Rc::make_mut(here).0.extend(more.0.iter().cloned());
            self.value_at_path = found.clone();
        }
        self.push(found);
        Next::On
    }
}
