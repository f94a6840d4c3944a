//! The result of a tool as one JSON value: structured content, a text, or a list of parts.

use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};

/// Returns the value of a result; an error becomes the message of the guest's exception.
pub(crate) fn value(result: &CallToolResult) -> Result<Value, String> {
    let blocks = serde_json::to_value(&result.content).map_err(|error| format!("the server's result is not JSON: {error}"))?;
    let blocks = if let Value::Array(blocks) = blocks { blocks } else { Vec::new() };
    if result.is_error == Some(true) {
        let said: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
        let said = said.join("\n");
        return Err(if said.trim().is_empty() { "the tool reported an error without a text".to_owned() } else { said });
    }
    let mut parts: Vec<Value> = blocks.into_iter().map(part).collect();
    if let Some(structured) = &result.structured_content {
        // Its text repeats the value, for clients without support for structured content.
        parts.retain(|part| !part.is_string());
        parts.insert(0, structured.clone());
    }
    Ok(match parts.len() {
        0 => Value::Null,
        1 => parts.remove(0),
        _ => Value::Array(parts),
    })
}

fn part(block: Value) -> Value {
    let Value::Object(mut block) = block else { return Value::Null };
    match block.get("type").and_then(Value::as_str) {
        Some("text") => block.remove("text").unwrap_or_default(),
        Some(kind @ ("image" | "audio")) => json!({ "type": kind, "mimeType": block.get("mimeType"), "data": block.get("data") }),
        Some("resource") => {
            let inner = block.remove("resource").unwrap_or_default();
            let fields = ["uri", "mimeType", "text", "blob"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), inner.get(name)?.clone())));
            let mut kept: Map<String, Value> = fields.collect();
            kept.insert("type".to_owned(), "resource".into());
            if kept.contains_key("blob") {
                kept.entry("mimeType").or_insert_with(|| "application/octet-stream".into());
            }
            Value::Object(kept)
        }
        _ => {
            block.retain(|name, _| !matches!(name.as_str(), "_meta" | "annotations" | "icons"));
            Value::Object(block)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: Value, expected: Result<Value, &str>) {
        let read: CallToolResult = serde_json::from_value(result.clone()).unwrap();
        assert_eq!(value(&read), expected.map_err(str::to_owned), "{result}");
    }

    #[test]
    fn a_result_is_a_text_a_value_or_a_list() {
        let text = json!({ "type": "text", "text": "hi", "annotations": { "priority": 1.0 } });
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "AA==" });
        check(json!({ "content": [] }), Ok(Value::Null));
        check(json!({ "content": [text] }), Ok(json!("hi")));
        check(json!({ "content": [text, image] }), Ok(json!(["hi", image])));
        check(json!({ "content": [text], "structuredContent": { "n": 1 } }), Ok(json!({ "n": 1 })));
        check(json!({ "content": [text, image], "structuredContent": { "n": 1 } }), Ok(json!([{ "n": 1 }, image])));
        check(
            json!({ "content": [{ "type": "resource", "resource": { "uri": "a:b", "blob": "AA==" } }] }),
            Ok(json!({ "type": "resource", "uri": "a:b", "mimeType": "application/octet-stream", "blob": "AA==" })),
        );
        check(json!({ "content": [text], "isError": true }), Err("hi"));
        check(json!({ "content": [], "isError": true }), Err("the tool reported an error without a text"));
    }
}
