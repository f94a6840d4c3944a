//! Arrays, and arrays that are elements of arrays.

use std::rc::Rc;

use super::{Cell, Interp};
use crate::text::awk::ast::{ArrayPlace, Expr, Place, Var};
use crate::text::awk::value::{ArrayRef, Value};

impl<'p> Interp<'p> {
    pub fn array(&mut self, var: Var) -> ArrayRef {
        let cell = match var {
            Var::Global(index) => &mut self.globals[index],
            Var::Local(index) => &mut self.stack[self.base + index],
            Var::Special(_) => self.fatal("attempt to use a scalar as an array"),
        };
        match cell {
            Cell::Array(array) => Rc::clone(array),
            Cell::Value(Value::Uninit) => {
                let array = ArrayRef::default();
                *cell = Cell::Array(Rc::clone(&array));
                array
            }
            Cell::Value(_) => self.fatal("attempt to use a scalar as an array"),
        }
    }

    /// Returns an array, made with those above it where there is none.
    pub fn array_at(&mut self, place: &'p ArrayPlace) -> ArrayRef {
        self.array_below(place.var, &place.path)
    }

    fn array_below(&mut self, var: Var, path: &'p [Vec<Expr>]) -> ArrayRef {
        let mut array = self.array(var);
        for subscript in path {
            let mut key = Vec::with_capacity(32);
            self.key(subscript, &mut key);
            let inner = match array.borrow_mut().entry(&key) {
                Value::Array(inner) => Some(Rc::clone(inner)),
                slot @ Value::Uninit => {
                    let inner = ArrayRef::default();
                    *slot = Value::Array(Rc::clone(&inner));
                    Some(inner)
                }
                _ => None,
            };
            array = match inner {
                Some(inner) => inner,
                None => self.fatal("attempt to use a scalar as an array"),
            };
        }
        array
    }

    /// Returns the array that holds an element, and the element's key.
    pub(super) fn element(&mut self, place: &'p Place) -> Option<(ArrayRef, Vec<u8>)> {
        let mut key = Vec::new();
        match place {
            Place::Element(var, subscript) => {
                key.reserve(32);
                self.key(subscript, &mut key);
                Some((self.array(*var), key))
            }
            Place::Deep(var, path) => {
                let (subscript, path) = path.split_last()?;
                let array = self.array_below(*var, path);
                self.key(subscript, &mut key);
                Some((array, key))
            }
            Place::Var(_) | Place::Field(_) => None,
        }
    }

    /// Returns what an element holds, be it an array; with `make`, nothing becomes one.
    pub fn element_cell(&mut self, place: &'p Place, make: bool) -> Cell {
        let Some((array, key)) = self.element(place) else { return Cell::Value(Value::Uninit) };
        let mut array = array.borrow_mut();
        let slot = array.entry(&key);
        if make && matches!(slot, Value::Uninit) {
            *slot = Value::Array(ArrayRef::default());
        }
        match slot {
            Value::Array(inner) => Cell::Array(Rc::clone(inner)),
            value => Cell::Value(value.clone()),
        }
    }

    /// Returns the array that an element is; with `make`, it becomes one if it is nothing yet.
    pub fn element_array(&mut self, place: &'p Place, make: bool) -> Option<ArrayRef> {
        let (array, key) = self.element(place)?;
        let mut array = array.borrow_mut();
        if !make && !array.contains(&key) {
            return None;
        }
        match array.entry(&key) {
            Value::Array(inner) => Some(Rc::clone(inner)),
            slot @ Value::Uninit if make => {
                let inner = ArrayRef::default();
                *slot = Value::Array(Rc::clone(&inner));
                Some(inner)
            }
            _ => None,
        }
    }

    /// The subscript of an element, in `key`.
    pub fn key(&mut self, subscript: &'p [Expr], key: &mut Vec<u8>) {
        for (index, item) in subscript.iter().enumerate() {
            if index > 0 {
                let separator = self.subsep.clone();
                key.extend_from_slice(&separator);
            }
            self.append(item, key);
        }
    }
}
