//! Variables: values, attributes, and the scopes of functions.
//!
//! Scoping is dynamic, as bash's is: each name has a stack of bindings and the newest one counts, so that a look-up is one
//! hash whatever the call depth. Readonly checks and the work of attributes happen where values are assigned.

use std::collections::BTreeMap;

use super::associative::Associative;
use super::hash::NameMap;

/// The value of a variable.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Declared, never assigned, or unset in its scope.
    #[default]
    Unset,
    /// One string.
    Scalar(String),
    /// An array by number.
    Indexed(BTreeMap<i64, String>),
    /// An array by key.
    Associative(Associative),
}

/// The attributes of a variable, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes(u16);

impl Attributes {
    /// `-x`.
    pub const EXPORT: Self = Self(1);
    /// `-r`.
    pub const READONLY: Self = Self(1 << 1);
    /// `-i`.
    pub const INTEGER: Self = Self(1 << 2);
    /// `-l`.
    pub const LOWER: Self = Self(1 << 3);
    /// `-u`.
    pub const UPPER: Self = Self(1 << 4);
    /// `-c`.
    pub const CAPITAL: Self = Self(1 << 5);
    /// `-n`.
    pub const NAMEREF: Self = Self(1 << 6);
    /// `-t`.
    pub const TRACE: Self = Self(1 << 7);
    /// The shell computes the value when it is read.
    pub const DYNAMIC: Self = Self(1 << 8);
    /// An array that was declared but not yet assigned.
    pub const UNASSIGNED: Self = Self(1 << 9);

    /// Returns whether all bits of `other` are set.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether any bit of `other` is set.
    #[must_use]
    pub fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the attributes with the bits of `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the attributes without the bits of `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the bits, to be stored.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Creates attributes from stored bits.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Returns whether no bit is set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// One binding of a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variable {
    /// What it holds.
    pub value: Value,
    /// Its attributes.
    pub attributes: Attributes,
    /// The scope it belongs to; 0 is the global one.
    pub scope: usize,
    /// Made by an assignment before a command, and not made local since.
    pub temporary: bool,
}

impl Variable {
    /// Returns whether it has a value, as `${x+set}` asks: an array has one when its element 0 (or key `0`) does.
    #[must_use]
    pub fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Unset => None,
            Value::Scalar(text) => Some(text),
            Value::Indexed(map) => map.get(&0).map(String::as_str),
            Value::Associative(map) => map.get("0").map(String::as_str),
        }
    }

    /// Returns whether it is an array of either kind.
    #[must_use]
    pub fn is_array(&self) -> bool {
        matches!(self.value, Value::Indexed(_) | Value::Associative(_))
    }

    /// Returns whether `declare -p` and `set` show a value.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !matches!(self.value, Value::Unset) && !self.attributes.has(Attributes::UNASSIGNED)
    }
}

#[derive(Clone, Debug)]
struct Slot {
    top: Variable,
    under: Vec<Variable>,
}

/// A function call's names, or those of assignments before a command.
#[derive(Clone, Debug, Default)]
struct Scope {
    names: Vec<String>,
    function: bool,
}

/// All variables.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    slots: NameMap<Slot>,
    scopes: Vec<Scope>,
}

impl Variables {
    /// Makes room for more names.
    pub fn reserve(&mut self, more: usize) {
        self.slots.reserve(more);
    }

    /// Returns the binding in force.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.slots.get(name).map(|slot| &slot.top)
    }

    /// Returns the binding in force, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Variable> {
        self.slots.get_mut(name).map(|slot| &mut slot.top)
    }

    /// Returns the binding in force, made in the global scope when there is none.
    pub fn entry(&mut self, name: &str) -> &mut Variable {
        if !self.slots.contains_key(name) {
            self.slots.insert(name.to_owned(), Slot { top: Variable::default(), under: Vec::new() });
        }
        let Some(slot) = self.slots.get_mut(name) else { unreachable!("inserted above") };
        &mut slot.top
    }

    /// Returns the global binding, made when there is none.
    pub fn global_entry(&mut self, name: &str) -> &mut Variable {
        self.entry(name);
        let Some(slot) = self.slots.get_mut(name) else { unreachable!("made above") };
        if slot.top.scope == 0 {
            return &mut slot.top;
        }
        if slot.under.first().is_none_or(|lowest| lowest.scope != 0) {
            slot.under.insert(0, Variable::default());
        }
        &mut slot.under[0]
    }

    /// Returns the innermost function's scope; 0 outside of functions.
    #[must_use]
    pub fn function_scope(&self) -> usize {
        self.scopes.iter().rposition(|scope| scope.function).map_or(0, |at| at + 1)
    }

    /// Returns a binding of the innermost function, made (unset) when there is none. `false` when it was there.
    pub fn local_entry(&mut self, name: &str) -> (&mut Variable, bool) {
        let scope = self.function_scope();
        self.entry_in(name, scope)
    }

    fn entry_in(&mut self, name: &str, scope: usize) -> (&mut Variable, bool) {
        let known = self.slots.contains_key(name);
        if !known {
            self.slots.insert(name.to_owned(), Slot { top: Variable { scope, ..Variable::default() }, under: Vec::new() });
        }
        let Some(slot) = self.slots.get_mut(name) else { unreachable!("inserted above") };
        let mut fresh = !known;
        if known && slot.top.scope > scope {
            // An assignment before `eval` inside of the function: that very variable becomes the local one.
            return (&mut slot.top, false);
        }
        if known && slot.top.scope < scope {
            let old = std::mem::replace(&mut slot.top, Variable { scope, ..Variable::default() });
            slot.under.push(old);
            fresh = true;
        }
        if fresh && let Some(list) = scope.checked_sub(1).and_then(|at| self.scopes.get_mut(at)) {
            list.names.push(name.to_owned());
        }
        (&mut slot.top, fresh)
    }

    /// Returns a binding of the newest scope of any kind.
    pub fn newest_entry(&mut self, name: &str) -> &mut Variable {
        let scope = self.scopes.len();
        self.entry_in(name, scope).0
    }

    /// Returns the binding below the one in force: what a `local` without value would inherit.
    #[must_use]
    pub fn outer(&self, name: &str, scope: usize) -> Option<&Variable> {
        let slot = self.slots.get(name)?;
        if slot.top.scope < scope {
            return Some(&slot.top);
        }
        slot.under.iter().rev().find(|variable| variable.scope < scope)
    }

    /// Opens a scope: of a function, or of assignments before a command.
    pub fn push_scope(&mut self, function: bool) {
        self.scopes.push(Scope { names: Vec::new(), function });
    }

    /// Closes the newest scope; its names get back what they were. Returns those names.
    pub fn pop_scope(&mut self) -> Vec<String> {
        let level = self.scopes.len();
        let Some(scope) = self.scopes.pop() else { return Vec::new() };
        for name in &scope.names {
            let Some(slot) = self.slots.get_mut(name.as_str()) else { continue };
            if slot.top.scope != level {
                continue;
            }
            match slot.under.pop() {
                Some(old) => slot.top = old,
                None => {
                    self.slots.remove(name.as_str());
                }
            }
        }
        scope.names
    }

    /// Returns how many scopes are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Unsets a name. A local variable of the current function stays as an unset one; otherwise the binding goes.
    pub fn unset(&mut self, name: &str) {
        let scope = self.function_scope();
        let Some(slot) = self.slots.get_mut(name) else { return };
        if scope != 0 && slot.top.scope >= scope && !slot.top.temporary {
            slot.top.value = Value::Unset;
            slot.top.attributes = Attributes::default();
            return;
        }
        match slot.under.pop() {
            Some(old) => slot.top = old,
            None => {
                self.slots.remove(name);
            }
        }
    }

    /// Returns all names with the bindings in force, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Variable)> {
        self.slots.iter().map(|(name, slot)| (name, &slot.top))
    }

    /// Returns the names local to the innermost function.
    #[must_use]
    pub fn local_names(&self) -> Vec<String> {
        let scope = self.function_scope();
        let mut names: Vec<_> =
            self.iter().filter(|(_, variable)| scope != 0 && variable.scope == scope).map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }
}
