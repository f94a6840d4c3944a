//! JSON schemas of actions, made from the types that are read and written.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// What an action takes.
pub(super) fn input<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// What an action takes that can be asked of a past version.
pub(super) fn input_at<T: JsonSchema>() -> Value {
    let mut schema = input::<T>();
    let description = "The version to look at instead of the present: a run's number, HEAD~3, a checkpoint, @{2 hours ago}.";
    schema["properties"]["at"] = serde_json::json!({ "type": ["string", "null"], "default": null, "description": description });
    schema
}

/// What an action returns.
pub(super) fn output<T: JsonSchema>() -> Value {
    made::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn made<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    strip(&mut schema);
    // Clients expect the list even where it is empty.
    if let Some(schema) = schema.as_object_mut() {
        schema.entry("properties").or_insert_with(|| serde_json::json!({}));
    }
    for word in ["$schema", "title"] {
        schema.as_object_mut().and_then(|schema| schema.remove(word));
    }
    schema
}

// Rust's integer widths are not formats of JSON Schema, and strict validators warn of each.
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
