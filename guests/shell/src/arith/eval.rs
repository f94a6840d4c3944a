//! The value of an expression.

use super::token::parse_integer;
use super::{ArithError, Binary, Expression, MAX_DEPTH, Node, Place, Variables, error};

/// Applies an operator; `Err` is what is wrong with the right operand.
pub(super) fn apply(operator: Binary, left: i64, right: i64) -> Result<i64, &'static str> {
    Ok(match operator {
        Binary::Add => left.wrapping_add(right),
        Binary::Subtract => left.wrapping_sub(right),
        Binary::Multiply => left.wrapping_mul(right),
        Binary::Divide | Binary::Remainder if right == 0 => return Err("division by 0"),
        Binary::Divide => left.wrapping_div(right),
        Binary::Remainder => left.wrapping_rem(right),
        Binary::Power if right < 0 => return Err("exponent less than 0"),
        Binary::Power => power(left, right),
        Binary::ShiftLeft => left.wrapping_shl(right as u32),
        Binary::ShiftRight => left.wrapping_shr(right as u32),
        Binary::Less => i64::from(left < right),
        Binary::LessOrEqual => i64::from(left <= right),
        Binary::Greater => i64::from(left > right),
        Binary::GreaterOrEqual => i64::from(left >= right),
        Binary::Equal => i64::from(left == right),
        Binary::NotEqual => i64::from(left != right),
        Binary::BitAnd => left & right,
        Binary::BitXor => left ^ right,
        Binary::BitOr => left | right,
    })
}

fn power(mut base: i64, mut exponent: i64) -> i64 {
    let mut value = 1i64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            value = value.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    value
}

pub(super) fn evaluate<V: Variables + ?Sized>(expression: &Expression, variables: &mut V, depth: u32) -> Result<i64, ArithError> {
    Evaluation { text: &expression.text, variables, depth }.node(&expression.root)
}

struct Evaluation<'a, V: ?Sized> {
    text: &'a str,
    variables: &'a mut V,
    depth: u32,
}

/// A place whose subscript has been evaluated.
enum Target<'a> {
    Variable(&'a str),
    Index(&'a str, i64),
    Key(&'a str, std::borrow::Cow<'a, str>),
}

fn from_variables(message: String) -> ArithError {
    ArithError { message, from_variables: true }
}

impl<V: Variables + ?Sized> Evaluation<'_, V> {
    fn fail(&self, message: &str, at: usize) -> ArithError {
        error(self.text, self.text.len(), message, at)
    }

    fn node(&mut self, node: &Node) -> Result<i64, ArithError> {
        match node {
            Node::Number(value) => Ok(*value),
            Node::Get(place) => {
                let target = self.target(place)?;
                self.get(&target, place.error_at)
            }
            Node::Negate(operand) => Ok(self.node(operand)?.wrapping_neg()),
            Node::Not(operand) => Ok(i64::from(self.node(operand)? == 0)),
            Node::Complement(operand) => Ok(!self.node(operand)?),
            Node::Binary { operator, left, right, error_at } => {
                let left = self.node(left)?;
                let right = self.node(right)?;
                apply(*operator, left, right).map_err(|message| self.fail(message, *error_at))
            }
            Node::And(left, right) => Ok(i64::from(self.node(left)? != 0 && self.node(right)? != 0)),
            Node::Or(left, right) => Ok(i64::from(self.node(left)? != 0 || self.node(right)? != 0)),
            Node::Conditional(parts) => {
                let (condition, yes, no) = parts.as_ref();
                if self.node(condition)? != 0 { self.node(yes) } else { self.node(no) }
            }
            Node::Assign { place, value } => {
                let value = self.node(value)?;
                let target = self.target(place)?;
                self.set(&target, value)
            }
            Node::AssignWith { place, operator, value, error_at } => {
                let target = self.target(place)?;
                let old = self.get(&target, place.error_at)?;
                let value = self.node(value)?;
                let new = apply(*operator, old, value).map_err(|message| self.fail(message, *error_at))?;
                self.set(&target, new)
            }
            Node::Step { place, by } => {
                let target = self.target(place)?;
                let new = self.get(&target, place.error_at)?.wrapping_add(*by);
                self.set(&target, new)
            }
            Node::StepAfter { place, by } => {
                let target = self.target(place)?;
                let old = self.get(&target, place.error_at)?;
                self.set(&target, old.wrapping_add(*by))?;
                Ok(old)
            }
            Node::Comma(left, right) => {
                self.node(left)?;
                self.node(right)
            }
        }
    }

    fn target<'p>(&mut self, place: &'p Place) -> Result<Target<'p>, ArithError> {
        let name = place.name.as_str();
        let Some(subscript) = &place.subscript else { return Ok(Target::Variable(name)) };
        let text = subscript.text.as_str();
        let expands = text.contains(['$', '`', '"', '\\']);
        if self.variables.is_associative(name) {
            let key = if expands || text.contains('\'') {
                self.variables.expand(text).map_err(from_variables)?.into()
            } else {
                text.into()
            };
            return Ok(Target::Key(name, key));
        }
        if expands {
            let text = self.variables.expand(text).map_err(from_variables)?;
            let expression = super::parse::parse(&text, self.depth)?;
            return evaluate(&expression, self.variables, self.depth + 1).map(|index| Target::Index(name, index));
        }
        let expression = subscript.expression.as_ref().map_err(Clone::clone)?;
        evaluate(expression, self.variables, self.depth).map(|index| Target::Index(name, index))
    }

    fn get(&mut self, target: &Target<'_>, error_at: usize) -> Result<i64, ArithError> {
        let text = match target {
            Target::Variable(name) => self.variables.get(name),
            Target::Index(name, index) => self.variables.get_index(name, *index),
            Target::Key(name, key) => self.variables.get_key(name, key),
        };
        let Some(text) = text.map_err(from_variables)? else { return Ok(0) };
        if let Some(value) = parse_integer(text) {
            return Ok(value);
        }
        let text = text.to_owned();
        if self.depth + 1 >= MAX_DEPTH {
            return Err(self.fail("expression recursion level exceeded", error_at));
        }
        let expression = super::parse::parse(&text, 0)?;
        evaluate(&expression, self.variables, self.depth + 1)
    }

    fn set(&mut self, target: &Target<'_>, value: i64) -> Result<i64, ArithError> {
        match target {
            Target::Variable(name) => self.variables.set(name, value),
            Target::Index(name, index) => self.variables.set_index(name, *index, value),
            Target::Key(name, key) => self.variables.set_key(name, key, value),
        }
        .map_err(from_variables)?;
        Ok(value)
    }
}
