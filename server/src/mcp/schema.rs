//! JSON Schemas of tools, made from the types that are read and written.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// What a tool takes; every tool can be told which sandbox it means.
pub(super) fn input<T: JsonSchema>() -> Arc<JsonObject> {
    let generator = SchemaSettings::draft2020_12().for_deserialize().with(|settings| settings.inline_subschemas = true);
    let mut schema = tidy(generator.into_generator().into_root_schema_for::<T>());
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    properties["sandbox"] = json!({
        "type": "string",
        "description": "Which sandbox: `main` (unless told), or the name that `fork` or `import_snapshot` gave.",
    });
    Arc::new(schema)
}

/// What a tool answers.
pub(super) fn output<T: JsonSchema>() -> Arc<JsonObject> {
    let generator = SchemaSettings::draft2020_12().for_serialize().with(|settings| settings.inline_subschemas = true);
    Arc::new(tidy(generator.into_generator().into_root_schema_for::<T>()))
}

fn tidy(schema: schemars::Schema) -> JsonObject {
    let mut value = schema.to_value();
    strip(&mut value);
    let Value::Object(mut object) = value else { return JsonObject::new() };
    for word in ["$schema", "title"] {
        object.remove(word);
    }
    object
}

// Rust's integer widths are no formats of JSON Schema, and strict validators warn of each.
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
