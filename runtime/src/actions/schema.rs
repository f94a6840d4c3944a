//! JSON schemas of actions, generated from the types of their arguments and results.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the schema of an action's arguments.
pub(super) fn input<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Returns the schema of the arguments of an action that accepts a past version.
pub(super) fn input_at<T: JsonSchema>() -> Value {
    let mut schema = input::<T>();
    let description = "The version to use instead of the current state: a run's number, HEAD~3, a checkpoint, @{2 hours ago}.";
    schema["properties"]["at"] = serde_json::json!({ "type": ["string", "null"], "default": null, "description": description });
    schema
}

/// Returns the schema of an action's result.
pub(super) fn output<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn made<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    strip(&mut schema);
    // Clients expect the list even if it is empty.
    if let Some(schema) = schema.as_object_mut() {
        schema.entry("properties").or_insert_with(|| serde_json::json!({}));
    }
    for word in ["$schema", "title"] {
        schema.as_object_mut().and_then(|schema| schema.remove(word));
    }
    schema
}

// Rust's integer widths are not formats of JSON Schema, and strict validators warn about each.
fn strip(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| format.starts_with(['u', 'i']) && format != "uri")
            {
                object.remove("format");
            }
            object.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
