//! JSON values as compared by a schema: numbers by value, not by notation.

use std::cmp::Ordering;

use serde_json::Value;

/// Tolerance for a quotient to be a whole number, because decimal fractions are not exact in binary.
const TOLERANCE: f64 = 1e-9;

/// Returns whether a value has a type.
pub(super) fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        _ => value.is_string(),
    }
}

/// Returns the type of a value.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

/// Compares two numbers.
pub(super) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Returns whether a number is a multiple of another, which is not 0.
pub(super) fn is_multiple(value: &Value, step: &Value) -> bool {
    if let (Some(value), Some(step)) = (integer(value), integer(step)) {
        return value.checked_rem(step) == Some(0);
    }
    let (Some(value), Some(step)) = (value.as_f64(), step.as_f64()) else { return false };
    let quotient = value / step;
    (quotient - quotient.round()).abs() <= TOLERANCE * quotient.abs().max(1.0)
}

/// Returns a text that is the same for equal values.
pub(super) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(_) if integer(value).is_none() => {
            let number = value.as_f64().unwrap_or_default();
            out.push_str(&if number.fract() == 0.0 { format!("{number:.0}") } else { value.to_string() });
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (name, value) in object {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(value, out);
                out.push(',');
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
}
