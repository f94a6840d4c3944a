//! `GET /openapi.json` and `GET /docs`: the description of the server, from the tables that define its routes.
//!
//! A route that is not in a table here is not documented; a route of sandboxes that is not here does not exist, for the router is made from
//! [`SANDBOX_ROUTES`]. The actions and their schemas are those of `runtime/src/actions.rs` and `skills/src/actions.rs`.

mod page;
mod schemas;
mod skillbox;

use std::sync::OnceLock;

use axum::Router;
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use serde_json::{Map, Value, json};

use super::app::App;
use super::sandboxes::offered;
use schemas::{Schemas, schema_of};
use skillbox::SKILLBOX_ROUTES;

/// The body of a request or a response.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    Nothing,
    /// JSON that fits the schema of this name in `schemas.rs`.
    Json(&'static str),
    /// Bytes of a content type.
    Bytes(&'static str),
    /// A form with a field `file`, these texts that it must have, and these that it may have.
    Form(&'static [&'static str], &'static [&'static str]),
    /// Server-sent events.
    Events,
    /// JSON, or server-sent events if the client asks for them.
    JsonOrEvents(&'static str),
}

/// A parameter in the query or the headers.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `query` or `header`.
    pub(crate) place: &'static str,
    /// `string`, `integer` or `boolean`.
    pub(crate) kind: &'static str,
    pub(crate) description: &'static str,
}

const fn query(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, description }
}

const fn header(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: "header", kind: "string", description }
}

/// A route.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// As the router has it: `{name}` is a part, `{*name}` the rest.
    pub(crate) path: &'static str,
    /// The name of the operation, which no other route has.
    pub(crate) operation: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) request: Body,
    /// Statuses of success, each with its body.
    pub(crate) answers: &'static [(u16, Body)],
    /// Statuses of problems besides those of every route.
    pub(crate) problems: &'static [u16],
}

const LIMIT: Parameter = query("limit", "integer", "Rows of a page: 1 to 200, 50 by default.");
const CURSOR: Parameter = query("cursor", "string", "`next_cursor` of the page before.");
const NAME: Parameter = query("name", "string", "The name of the sandbox.");
const AT: Parameter = query("at", "string", "A version: a run's number, `HEAD~1`, a checkpoint.");
const IF_MATCH: Parameter = header("If-Match", "The entity tag that the file must still have.");
const ADMIN_TOKEN: Parameter = header("X-Admin-Token", "The `admin-token` of the server.");
const BOXES: &str = "Sandboxes";
const RUN: &str = "Operating";
const FILES: &str = "Files";

macro_rules! route {
    ($method:literal $path:literal $operation:literal $tag:expr, $summary:literal, [$($parameter:expr),*], $request:expr, [$($answer:expr),*], [$($problem:literal),*]) => {
        Route {
            method: $method, path: $path, operation: $operation, summary: $summary, tag: $tag, parameters: &[$($parameter),*],
            request: $request, answers: &[$($answer),*], problems: &[$($problem),*],
        }
    };
}

use Body::{Bytes, Json, JsonOrEvents, Nothing};

/// The routes of sandboxes: the router is made from them.
pub(super) static SANDBOX_ROUTES: &[Route] = &[
    route!("POST" "/v1/sandboxes" "createSandbox" BOXES, "Create a sandbox", [], Json("CreateSandbox"), [(201, Json("Sandbox"))], [404, 413, 415]),
    route!("GET" "/v1/sandboxes" "listSandboxes" BOXES, "List sandboxes, oldest first", [LIMIT, CURSOR, NAME], Nothing, [(200, Json("Sandboxes"))], []),
    route!("POST" "/v1/sandboxes/import" "importSandbox" BOXES, "Create a sandbox from an exported file",
        [NAME, query("preset", "string", "strict, normal or permissive."), query("ttl_seconds", "integer", "Seconds after which it is deleted.")],
        Bytes("application/vnd.sqlite3"), [(201, Json("Sandbox"))], [408, 413]),
    route!("GET" "/v1/sandboxes/{id}" "getSandbox" BOXES, "Describe a sandbox", [], Nothing, [(200, Json("Sandbox"))], [404]),
    route!("PATCH" "/v1/sandboxes/{id}" "changeSandbox" BOXES, "Change name or lifetime", [], Json("ChangeSandbox"), [(200, Json("Sandbox"))], [404, 413, 415]),
    route!("DELETE" "/v1/sandboxes/{id}" "deleteSandbox" BOXES, "Delete a sandbox and end its runs", [], Nothing, [(204, Nothing)], [404]),
    route!("POST" "/v1/sandboxes/{id}/fork" "forkSandbox" BOXES, "Create an independent copy", [], Json("ForkSandbox"), [(201, Json("Sandbox"))], [404, 413, 415]),
    route!("GET" "/v1/sandboxes/{id}/export" "exportSandbox" BOXES, "Download the sandbox as one file",
        [query("history", "boolean", "Whether recorded runs are part of it; defaults to true."),
            query("versions", "boolean", "Whether to include past versions, which contain data deleted since; defaults to false.")], Nothing, [(200, Bytes("application/vnd.sqlite3"))], [404]),
    // The document has a path for each action instead.
    route!("POST" "/v1/sandboxes/{id}/actions/{action}" "act" "Actions", "Perform an action", [], Json("Any"), [(200, JsonOrEvents("Any")), (202, Json("Job"))], [404, 413, 415]),
    route!("GET" "/v1/sandboxes/{id}/jobs" "listJobs" "Jobs", "List the jobs of a sandbox, newest first", [LIMIT, CURSOR], Nothing, [(200, Json("Jobs"))], [404]),
    route!("GET" "/v1/sandboxes/{id}/jobs/{job}" "getJob" "Jobs", "Look at a job", [], Nothing, [(200, Json("Job"))], [404]),
    route!("DELETE" "/v1/sandboxes/{id}/jobs/{job}" "cancelJob" "Jobs", "Cancel a job", [], Nothing, [(204, Nothing)], [404]),
    route!("GET" "/v1/sandboxes/{id}/files/{*path}" "readFile" FILES, "Read a file",
        [AT, header("Range", "The bytes to send."), header("If-Range", "The entity tag that the file must still have for a part of it; otherwise all is sent."), IF_MATCH,
            header("If-None-Match", "An entity tag: 304 if the file still has it.")],
        Nothing, [(200, Bytes("application/octet-stream")), (206, Bytes("application/octet-stream")), (304, Nothing)], [404, 412, 416]),
    route!("PUT" "/v1/sandboxes/{id}/files/{*path}" "writeFile" FILES, "Write a file; the directories above it are created",
        [IF_MATCH, header("If-None-Match", "`*`: only if there is no such file.")], Bytes("application/octet-stream"),
        [(201, Nothing), (204, Nothing)], [404, 408, 412, 413]),
    route!("DELETE" "/v1/sandboxes/{id}/files/{*path}" "deleteFile" FILES, "Delete a file or a directory",
        [IF_MATCH, query("recursive", "boolean", "Whether a directory is deleted with everything in it.")], Nothing, [(204, Nothing)], [404, 412]),
    route!("GET" "/v1/sandboxes/{id}/tree/{*path}" "readTree" FILES, "Download a directory as a tar archive", [AT], Nothing, [(200, Bytes("application/x-tar"))], [404]),
    route!("PUT" "/v1/sandboxes/{id}/tree/{*path}" "writeTree" FILES, "Unpack a tar archive into a directory", [], Bytes("application/x-tar"), [(200, Json("Unpacked"))], [404, 408, 413]),
    route!("GET" "/v1/sandboxes/{id}/packages" "listPackages" BOXES, "List installed Python packages", [], Nothing, [(200, Json("Any"))], [404]),
    route!("PUT" "/v1/sandboxes/{id}/packages/{package}" "installPackage" BOXES, "Install a pure-Python package from a wheel with this file name", [], Bytes("application/octet-stream"),
        [(201, Json("Any"))], [404, 408, 413]),
    route!("DELETE" "/v1/sandboxes/{id}/packages/{package}" "uninstallPackage" BOXES, "Remove a Python package", [], Nothing, [(204, Nothing)], [404]),
    route!("GET" "/v1/sandboxes/{id}/sessions" "listShellSessions" BOXES, "List the sessions of shells", [], Nothing, [(200, Json("Any"))], [404]),
    route!("DELETE" "/v1/sandboxes/{id}/sessions/{session}" "endShellSession" BOXES, "End a session of a shell", [], Nothing, [(204, Nothing)], [404]),
    route!("GET" "/v1/sandboxes/{id}/events" "followEvents" BOXES, "List or follow changes of files",
        [query("after", "integer", "Only changes after this version."), query("path", "string", "Only changes at or below this path."), header("Last-Event-ID", "The last event that was seen.")],
        Nothing, [(200, JsonOrEvents("Events"))], [404]),
    route!("GET" "/v1/usage" "usage" RUN, "What the tenant uses and may use", [], Nothing, [(200, Json("Usage"))], []),
];

/// The other routes of this server.
pub(super) static ROUTES: &[Route] = &[
    route!("GET" "/health" "health" RUN, "Whether the server runs", [], Nothing, [(200, Json("Any"))], []),
    route!("GET" "/ready" "ready" RUN, "Whether the server can serve", [], Nothing, [(200, Json("Any"))], [503]),
    route!("GET" "/metrics" "metrics" RUN, "Counters in Prometheus's format", [], Nothing, [(200, Bytes("text/plain"))], [401]),
    route!("GET" "/v1/whoami" "whoAmI" RUN, "Tenant and role of the key", [], Nothing, [(200, Json("WhoAmI"))], []),
    route!("GET" "/v1/keys" "listKeys" RUN, "List the tenant's keys (admins)", [], Nothing, [(200, Json("Any"))], []),
    route!("POST" "/v1/keys" "createKey" RUN, "Create a key (admins)", [], Json("CreateKey"), [(201, Json("CreatedKey"))], [413, 415]),
    route!("DELETE" "/v1/keys/{id}" "revokeKey" RUN, "Revoke a key at once (admins)", [], Nothing, [(204, Nothing)], [404]),
    route!("GET" "/v1/admin/tenants" "listTenants" RUN, "List the tenants with their limits (the operator)", [ADMIN_TOKEN], Nothing, [(200, Json("Tenants"))], []),
    route!("PATCH" "/v1/admin/tenants/{name}" "changeTenant" RUN, "Change limits of a tenant; null is that of the server again (the operator)", [ADMIN_TOKEN],
        Json("ChangeTenant"), [(200, Json("Tenant"))], [413, 415]),
    route!("GET" "/v1/audit" "audit" RUN, "What was changed, newest first (admins)",
        [query("before", "integer", "Only rows before this number."), query("limit", "integer", "Rows of a page.")], Nothing, [(200, Json("Any"))], []),
    route!("POST" "/mcp" "mcp" RUN, "Model Context Protocol (streamable HTTP, without sessions)",
        [header("X-Sandbox-ID", "The sandbox; the one named `main` by default.")], Json("Any"), [(200, JsonOrEvents("Any")), (202, Nothing)], [404, 406, 413, 415]),
    route!("GET" "/artifacts/{id}/files.tar.gz" "downloadArtifacts" RUN, "Download the files of an execution, by the address in its `files_url`",
        [query("expires", "integer", "When the address expires."), query("signature", "string", "The server's signature.")], Nothing, [(200, Bytes("application/octet-stream"))], [404, 429]),
    route!("GET" "/openapi.json" "openApi" RUN, "This document", [], Nothing, [(200, Json("Any"))], []),
    route!("GET" "/docs" "docs" RUN, "This document for people", [], Nothing, [(200, Bytes("text/html"))], []),
];

/// Returns every route that is documented.
pub(super) fn all() -> impl Iterator<Item = &'static Route> {
    SANDBOX_ROUTES.iter().chain(SKILLBOX_ROUTES).chain(ROUTES)
}

/// Routes that need no key.
pub(super) fn open_routes() -> Router<App> {
    Router::new().route("/openapi.json", get(document_json)).route("/docs", get(docs))
}

async fn document_json() -> Response {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| document().to_string());
    let mut response = text.as_str().into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    response
}

async fn docs() -> Response {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| page::render(&document()));
    let mut response = Html(text.as_str()).into_response();
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

/// Returns the document: OpenAPI 3.1.
pub(super) fn document() -> Value {
    let mut schemas = Schemas::default();
    let mut paths: Map<String, Value> = Map::new();
    let mut add = |path: &str, method: &str, operation: Value| {
        if let Some(item) = paths.entry(path.replace("{*", "{")).or_insert_with(|| json!({})).as_object_mut() {
            item.insert(method.to_ascii_lowercase(), operation);
        }
    };
    for route in all() {
        if route.operation != "act" {
            add(route.path, route.method, operation(route));
            continue;
        }
        for known in offered() {
            let mut described = operation(route);
            let name = known.name();
            let (input, output) = (schemas.hoist(name, known.input()), schemas.hoist(name, known.output()));
            described["operationId"] = json!(name);
            described["summary"] = json!(known.title());
            described["description"] = json!(known.description());
            described["requestBody"]["content"]["application/json"]["schema"] = input;
            described["responses"]["200"]["content"]["application/json"]["schema"] = output;
            // The text for models and people, requested with `Accept: text/plain`.
            described["responses"]["200"]["content"]["text/plain"] = json!({ "schema": { "type": "string" } });
            if let Some(parameters) = described["parameters"].as_array_mut() {
                parameters.retain(|parameter| parameter["name"] != "action");
                parameters.push(json!({ "name": "Prefer", "in": "header", "required": false, "schema": { "type": "string" },
                    "description": "`respond-async`: answer 202 with a job at once." }));
            }
            add(&route.path.replace("{action}", name), route.method, described);
        }
    }
    let mut components = schemas.into_components();
    for name in schemas::NAMES {
        components.insert(name.to_owned(), schema_of(name));
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Sandlite", "version": env!("CARGO_PKG_VERSION"), "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "Sandboxes and skills over HTTP. Every request below /v1 and to /mcp needs a key; resources of other tenants do not exist." },
        "servers": [{ "url": "/" }],
        "security": [{ "key": [] }],
        "paths": paths,
        "components": { "schemas": components, "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } } },
    })
}

fn content(body: Body) -> Option<Value> {
    let schema = |name: &str| json!({ "schema": { "$ref": format!("#/components/schemas/{name}") } });
    // Programs disagree whether the schema is that of the whole text or of one event.
    let events = json!({ "schema": { "description": "Server-sent events." } });
    Some(match body {
        Body::Nothing => return None,
        Body::Json(name) => json!({ "application/json": schema(name) }),
        Body::Bytes(kind) => json!({ kind: { "schema": { "type": "string", "format": "binary" } } }),
        Body::Form(required, optional) => {
            let texts = required.iter().chain(optional).map(|name| ((*name).to_owned(), json!({ "type": "string" })));
            let mut properties: Map<String, Value> = texts.collect();
            properties.insert("file".to_owned(), json!({ "type": "string", "format": "binary" }));
            let required: Vec<&str> = std::iter::once("file").chain(required.iter().copied()).collect();
            let schema = json!({ "type": "object", "required": required, "properties": properties });
            json!({ "multipart/form-data": { "schema": schema } })
        }
        Body::Events => json!({ "text/event-stream": events }),
        Body::JsonOrEvents(name) => json!({ "application/json": schema(name), "text/event-stream": events }),
    })
}

fn operation(route: &Route) -> Value {
    let needs_key = route.path.starts_with("/v1") || route.path == "/mcp";
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({ "name": name.trim_start_matches('*'), "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } }))
        .collect();
    parameters.extend(route.parameters.iter().map(|parameter| {
        let schema = match (parameter.name, parameter.kind) {
            // As in Skillbox, any other number is the default.
            ("limit", kind) if route.operation == "listFiles" => json!({ "type": kind }),
            ("limit", kind) => json!({ "type": kind, "minimum": 1, "maximum": if route.operation == "audit" { 1000 } else { 200 } }),
            (_, kind) => json!({ "type": kind }),
        };
        json!({ "name": parameter.name, "in": parameter.place, "required": parameter.name == "X-Session-ID", "schema": schema, "description": parameter.description })
    }));
    let mut responses = Map::new();
    for (status, body) in route.answers {
        let mut answer = json!({ "description": http::StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Done") });
        if let Some(content) = content(*body) {
            answer["content"] = content;
        }
        responses.insert(status.to_string(), answer);
    }
    let changes = !matches!(route.method, "GET" | "HEAD");
    let common: &[u16] = match (needs_key, changes) {
        (false, _) => &[400, 403],
        (true, false) => &[400, 401, 403, 409, 422, 429, 503],
        (true, true) => &[400, 401, 403, 408, 409, 413, 422, 429, 503],
    };
    for status in common.iter().chain(route.problems) {
        let reason = http::StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Problem");
        let schema = json!({ "schema": { "$ref": "#/components/schemas/Problem" } });
        responses.insert(status.to_string(), json!({ "description": reason, "content": { "application/json": schema } }));
    }
    // A new key is in no stored response.
    if needs_key && changes && route.operation != "createKey" {
        parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "required": false, "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
            "description": "The same key with the same request returns the first answer again, for a day." }));
    }
    let mut operation = json!({
        "operationId": route.operation, "summary": route.summary, "tags": [route.tag], "parameters": parameters, "responses": responses,
    });
    if let Some(content) = content(route.request) {
        // Programs that know no other type for bytes know this one.
        let content = match route.request {
            Body::Bytes(kind) => {
                json!({ kind: content[kind], "application/octet-stream": content[kind] })
            }
            _ => content,
        };
        let is_required = !matches!(route.operation, "createSandbox" | "forkSandbox" | "act");
        operation["requestBody"] = json!({ "required": is_required, "content": content });
    }
    if !needs_key {
        operation["security"] = json!([]);
    }
    operation
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn operations_have_names_of_their_own_and_every_reference_leads_somewhere() {
        let document = document();
        let mut names = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{method} {path}");
            }
        }
        let text = document.to_string();
        for part in text.split("\"$ref\":\"").skip(1) {
            let name = part.split('"').next().unwrap();
            let name = name.strip_prefix("#/components/schemas/").unwrap_or_else(|| panic!("{name}"));
            assert!(!document["components"]["schemas"][name].is_null(), "{name}");
        }
    }

    #[test]
    fn every_action_of_the_tables_but_those_on_host_directories_has_a_path() {
        let document = document();
        for action in runtime::actions::actions() {
            let path = format!("/v1/sandboxes/{{id}}/actions/{}", action.name);
            let is_offered = action.permission != runtime::actions::Permission::HostFiles;
            assert_eq!(document["paths"][&path]["post"]["operationId"] == action.name, is_offered, "{path}");
        }
    }

    #[test]
    fn every_change_but_a_new_key_can_have_an_idempotency_key() {
        let document = document();
        for (path, item) in document["paths"].as_object().unwrap().iter().filter(|(path, _)| path.starts_with("/v1/")) {
            for (method, operation) in item.as_object().unwrap() {
                let parameters = operation["parameters"].as_array().unwrap();
                let has = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
                assert_eq!(has, method != "get" && operation["operationId"] != "createKey", "{method} {path}");
            }
        }
    }

    #[test]
    fn the_page_sends_no_request_elsewhere() {
        let page = page::render(&document());
        assert!(
            page.contains("/v1/sandboxes") && !page.contains("src=") && !page.contains("<script") && !page.contains("http://")
        );
    }
}
