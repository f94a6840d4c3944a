//! The document as a page: no script, no request to anybody.

use std::fmt::Write as _;

use serde_json::Value;

const HEAD: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
<title>Sandlite: HTTP interface</title><style>\
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#1b1f23;background:#fff}\
h2{margin-top:2em;border-bottom:1px solid #d0d7de}summary{cursor:pointer;padding:.3em 0}code,pre{font:13px/1.45 ui-monospace,monospace}\
pre{background:#f6f8fa;padding:.8em;overflow:auto;border-radius:6px}b.m{display:inline-block;width:4.5em;font:700 12px ui-monospace,monospace;color:#0550ae}\
table{border-collapse:collapse}td{padding:.1em 1em .1em 0;vertical-align:top}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}pre{background:#161b22}b.m{color:#79c0ff}h2{border-color:#30363d}}\
</style></head><body><h1>Sandlite: HTTP interface</h1>\
<p>Every request below <code>/v1</code> and to <code>/mcp</code> needs <code>Authorization: Bearer KEY</code>. \
Problems are <code>{\"error\": CODE, \"message\": TEXT}</code>. The same as data: <a href=\"/openapi.json\">openapi.json</a>.</p>";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the page.
pub(super) fn render(document: &Value) -> String {
    let mut tags: Vec<(String, String)> = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let tag = operation["tags"][0].as_str().unwrap_or("Other").to_owned();
            let text = one(path, method, operation);
            match tags.iter_mut().find(|(known, _)| *known == tag) {
                Some((_, all)) => all.push_str(&text),
                None => tags.push((tag, text)),
            }
        }
    }
    let mut page = HEAD.to_owned();
    for (tag, text) in tags {
        let _ = write!(page, "<h2>{}</h2>{text}", escaped(&tag));
    }
    page.push_str("</body></html>");
    page
}

fn one(path: &str, method: &str, operation: &Value) -> String {
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let mut out = format!(
        "<details><summary><b class=\"m\">{}</b> <code>{}</code> {}</summary>",
        method.to_ascii_uppercase(),
        escaped(path),
        text(&operation["summary"])
    );
    if operation["description"].is_string() {
        let _ = write!(out, "<p>{}</p>", text(&operation["description"]));
    }
    let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    if !parameters.is_empty() {
        out.push_str("<table>");
        for parameter in parameters {
            let _ = write!(
                out,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                text(&parameter["name"]),
                text(&parameter["in"]),
                text(&parameter["description"])
            );
        }
        out.push_str("</table>");
    }
    for (kind, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
        let schema = serde_json::to_string_pretty(&content["schema"]).unwrap_or_default();
        let _ = write!(out, "<p>Body: <code>{}</code></p><pre>{}</pre>", escaped(kind), escaped(&schema));
    }
    out.push_str("<table>");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let kinds: Vec<String> = response["content"].as_object().into_iter().flatten().map(|(kind, _)| escaped(kind)).collect();
        let _ = write!(
            out,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
            escaped(status),
            text(&response["description"]),
            kinds.join(", ")
        );
    }
    out.push_str("</table></details>");
    out
}
