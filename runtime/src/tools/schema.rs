//! The part of JSON Schema that says what a tool takes.
//!
//! Checked: `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`, `anyOf`. What else a schema says is
//! for its readers.

use serde_json::{Map, Value};

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Reads a schema; the complaint says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let schema: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
    check_schema(&schema)?;
    match schema.get("type") {
        None => Ok(schema),
        Some(kind) if kind == "object" => Ok(schema),
        Some(_) => Err("arguments are an object, so its `type` must be \"object\"".to_owned()),
    }
}

fn check_schema(schema: &Value) -> Result<(), String> {
    let schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(_) => return Ok(()),
        _ => return Err("a schema is an object".to_owned()),
    };
    if let Some(unknown) = types(schema).find(|kind| !TYPES.contains(kind)) {
        return Err(format!("there is no type `{unknown}`"));
    }
    if schema.get("required").is_some_and(|required| !required.as_array().is_some_and(|names| names.iter().all(Value::is_string)))
    {
        return Err("`required` is a list of names".to_owned());
    }
    if schema.get("enum").is_some_and(|values| !values.is_array()) {
        return Err("`enum` is a list".to_owned());
    }
    match schema.get("properties") {
        None => {}
        Some(Value::Object(properties)) => properties.values().try_for_each(check_schema)?,
        Some(_) => return Err("`properties` is an object".to_owned()),
    }
    match schema.get("anyOf") {
        None => {}
        Some(Value::Array(choices)) => choices.iter().try_for_each(check_schema)?,
        Some(_) => return Err("`anyOf` is a list".to_owned()),
    }
    ["items", "additionalProperties"].iter().filter_map(|name| schema.get(*name)).try_for_each(check_schema)
}

fn types(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let kinds = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.as_slice(),
        Some(kind) => std::slice::from_ref(kind),
        None => &[],
    };
    kinds.iter().map(|kind| kind.as_str().unwrap_or("?"))
}

/// Whether arguments fit a schema; the complaint names the place.
pub(super) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    check_at("", schema, value)
}

fn check_at(place: &str, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(false) => return Err(format!("{} is not taken", named(place))),
        _ => return Ok(()),
    };
    if schema.contains_key("type") && !types(schema).any(|kind| is_a(kind, value)) {
        let wanted = types(schema).collect::<Vec<_>>().join(" or ");
        return Err(format!("{} must be of type {wanted}, not {}", named(place), kind_of(value)));
    }
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(value)
    {
        let allowed = allowed.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
        return Err(format!("{} must be one of {allowed}", named(place)));
    }
    if let Some(Value::Array(choices)) = schema.get("anyOf")
        && let Some(complaint) = first_complaint(place, choices, value)
    {
        return Err(complaint);
    }
    match value {
        Value::Object(object) => check_object(place, schema, object),
        Value::Array(items) => match schema.get("items") {
            None => Ok(()),
            Some(each) => {
                items.iter().enumerate().try_for_each(|(index, item)| check_at(&format!("{place}[{index}]"), each, item))
            }
        },
        _ => Ok(()),
    }
}

// Nothing when one of the choices fits.
fn first_complaint(place: &str, choices: &[Value], value: &Value) -> Option<String> {
    let mut complaints = choices.iter().map(|choice| check_at(place, choice, value).err());
    let first = complaints.next()??;
    complaints.all(|complaint| complaint.is_some()).then_some(first)
}

fn check_object(place: &str, schema: &Map<String, Value>, object: &Map<String, Value>) -> Result<(), String> {
    let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            return Err(format!("{} is missing", named(&below(name))));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, value) in object {
        match (properties.and_then(|properties| properties.get(name)), schema.get("additionalProperties")) {
            (Some(property), _) => check_at(&below(name), property, value)?,
            (None, Some(others)) => check_at(&below(name), others, value)?,
            (None, None) => {}
        }
    }
    Ok(())
}

fn named(place: &str) -> String {
    if place.is_empty() { "the arguments".to_owned() } else { format!("`{place}`") }
}

fn is_a(kind: &str, value: &Value) -> bool {
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

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaint(schema: Value, value: Value) -> String {
        let schema = parse(&schema.to_string()).unwrap();
        super::check(&schema, &value).err().unwrap_or_default()
    }

    #[test]
    fn what_fits_is_let_through() {
        let schema = json!({ "type": "object", "properties": {
            "n": { "type": "integer" }, "x": { "type": ["number", "null"] }, "mode": { "enum": ["r", "w"] },
            "list": { "type": "array", "items": { "type": "string" } }, "maybe": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        }, "required": ["n"], "additionalProperties": false });
        for value in [
            json!({ "n": 1 }),
            json!({ "n": 2.0, "x": 1.5, "mode": "r", "list": ["a"], "maybe": null }),
            json!({ "n": -1, "x": null, "list": [], "maybe": "m" }),
        ] {
            assert_eq!(complaint(schema.clone(), value), "");
        }
        assert_eq!(complaint(schema.clone(), json!({})), "`n` is missing");
        assert_eq!(complaint(schema.clone(), json!({ "n": 1.5 })), "`n` must be of type integer, not number");
        assert_eq!(complaint(schema.clone(), json!({ "n": 1, "x": "1" })), "`x` must be of type number or null, not string");
        assert_eq!(complaint(schema.clone(), json!({ "n": 1, "mode": "a" })), "`mode` must be one of \"r\", \"w\"");
        assert_eq!(
            complaint(schema.clone(), json!({ "n": 1, "list": ["a", 2] })),
            "`list[1]` must be of type string, not number"
        );
        assert_eq!(complaint(schema.clone(), json!({ "n": 1, "maybe": 2 })), "`maybe` must be of type string, not number");
        assert_eq!(complaint(schema, json!({ "n": 1, "other": 2 })), "`other` is not taken");
    }

    #[test]
    fn places_inside_are_named() {
        let schema = json!({ "properties": { "at": { "type": "object", "required": ["x"], "properties": { "x": { "type": "number" } } } } });
        assert_eq!(complaint(schema.clone(), json!({ "at": {} })), "`at.x` is missing");
        assert_eq!(complaint(schema, json!({ "at": { "x": true } })), "`at.x` must be of type number, not boolean");
    }

    #[test]
    fn a_schema_that_makes_no_sense_is_refused() {
        for schema in [
            "",
            "1",
            r#"{"type": "string"}"#,
            r#"{"properties": []}"#,
            r#"{"required": "x"}"#,
            r#"{"properties": {"x": {"type": "int"}}}"#,
            r#"{"properties": {"x": {"enum": 1}}}"#,
        ] {
            assert!(parse(schema).is_err(), "{schema}");
        }
    }
}
