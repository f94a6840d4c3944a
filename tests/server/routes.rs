//! Every route of the server's own document: without a key, with a revoked one, and as another tenant (T-NET-05, T-NET-06).

use serde_json::{Value, json};

use super::http::Server;

const NONE: &str = "01234567-89ab-4cde-a012-3456789abcde";

/// The methods and paths of the document.
fn routes(server: &Server) -> Vec<(String, String)> {
    let document = server.send("GET /openapi.json", None, &[], b"").expect(200).json();
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| item.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone()))).collect()
}

fn content_type(path: &str) -> &'static str {
    match path {
        "/v1/skills" | "/v1/skills/validate" => "application/zip",
        _ => "application/json",
    }
}

#[test]
fn no_route_below_v1_works_without_a_valid_key() {
    let server = Server::start(&[]);
    let revoked = server.post("/v1/keys", &json!({ "role": "admin" })).expect(201).json();
    server.delete(&format!("/v1/keys/{}", revoked["id"].as_str().unwrap())).expect(204);
    let mut count = 0;
    for (method, path) in routes(&server).iter().filter(|(_, path)| path.starts_with("/v1/") || path == "/mcp") {
        count += 1;
        let line = format!("{method} {}", path.replace(['{', '}'], ""));
        let headers = [("Content-Type", content_type(path)), ("Accept", "application/json, text/event-stream")];
        for key in [None, revoked["key"].as_str()] {
            let answer = server.send(&line, key, &headers, b"{}");
            assert_eq!(answer.error(), (401, "unauthorized".to_owned()), "{line}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{line}");
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn a_name_in_a_path_that_is_not_utf_8_is_an_error_in_json_on_every_route() {
    let server = Server::start(&[]);
    let mut count = 0;
    for (method, path) in routes(&server).iter().filter(|(_, path)| path.contains('{')) {
        let Some((above, rest)) = path.split_once('{') else { continue };
        let below = rest.split_once('}').map_or("", |(_, below)| below).replace(['{', '}', '*'], "");
        let headers = [("Content-Type", "application/json"), ("X-Session-ID", "s")];
        let answer = server.send(&format!("{method} {above}%ff{below}"), Some(&server.key), &headers, b"{}");
        assert!((400..500).contains(&answer.status) && answer.json()["error"].is_string(), "{method} {path}: {}", answer.text());
        count += 1;
    }
    assert!(count > 80, "{count}");
}

// Each route with existing ids of the first tenant and with missing ids: another tenant receives the same bytes.
#[test]
fn every_route_treats_ids_of_other_tenants_like_missing_ones() {
    let server = Server::start(&[]);
    let stranger = server.key_of("other", "admin");
    let id_of = |made: Value| made["id"].as_str().unwrap().to_owned();
    let sandbox = id_of(server.post("/v1/sandboxes", &json!({ "files": { "/secret": "x" } })).expect(201).json());
    let job = server.with_json(
        "POST",
        &format!("/v1/sandboxes/{sandbox}/actions/bash"),
        &[("Prefer", "respond-async")],
        &json!({ "command": "echo" }),
    );
    let job = job.expect(202).json()["job"].as_str().unwrap().to_owned();
    let file = id_of(server.form("POST /v1/files", &[], &[], ("x", b"secret")).expect(201).json());
    let key = id_of(server.post("/v1/keys", &json!({ "role": "consumer" })).expect(201).json());
    let fields = json!({ "name": "owned", "description": "d", "lang": "bash", "code": "echo > \"$SANDBOX_FILES_DIR/secret\"" });
    server.post("/v1/skills/from-fields", &fields).expect(201);
    let run = server.post("/v1/executions", &json!({ "skill": "owned", "session_id": "owned" })).expect(200).json();
    let execution = run["execution_id"].as_str().unwrap();
    let command = json!({ "command": "echo > secret" });
    server.with_json("POST", "/v1/sandbox/execute", &[("X-Session-ID", "owned")], &command).expect(200);
    server.with_json("POST", "/v1/sandbox/sync", &[("X-Session-ID", "owned")], &json!({})).expect(200);

    // What a parameter is, by the beginning of its path.
    let known: [(&str, &str, &str, &str); 15] = [
        ("/v1/sandboxes/", "{id}", &sandbox, NONE),
        ("/v1/sandboxes/", "{job}", &job, NONE),
        ("/v1/sandboxes/", "{path}", "secret", "secret"),
        ("/v1/sandboxes/", "{package}", "a-1-py3-none-any.whl", "a-1-py3-none-any.whl"),
        ("/v1/sandboxes/", "{session}", "shell", "shell"),
        ("/v1/files/", "{id}", &file, NONE),
        ("/v1/executions/", "{id}", execution, NONE),
        ("/artifacts/", "{id}", execution, NONE),
        ("/v1/keys/", "{id}", &key, NONE),
        ("/v1/skills/", "{name}", "owned", "nowhere"),
        ("/v1/admin/skills/", "{name}", "owned", "nowhere"),
        ("/v1/skills/", "{version}", "1.0.0", "1.0.0"),
        ("/v1/admin/skills/", "{version}", "1.0.0", "1.0.0"),
        ("/v1/sessions/", "{session}", "owned", "nowhere"),
        ("/v1/sandbox/", "{session}", "owned", "nowhere"),
    ];
    let body = |path: &str| match path.rsplit('/').next().unwrap() {
        "bash" => json!({ "command": "ls" }),
        "python" => json!({ "code": "1" }),
        "active" => json!({ "version": "1.0.0" }),
        "review" => json!({ "action": "approve" }),
        "files-batch" => json!({ "files": [{ "path": "SKILL.md", "content": "x" }] }),
        _ => json!({ "path": "/secret", "content": "y" }),
    };
    let mut seen = std::collections::BTreeMap::<u16, usize>::new();
    for (method, path) in routes(&server).into_iter().filter(|(_, path)| path.contains('{')) {
        let (mut theirs, mut nobodys) = (path.clone(), path.clone());
        for (_, name, own, none) in known.iter().filter(|(above, ..)| path.starts_with(above)) {
            (theirs, nobodys) = (theirs.replace(name, own), nobodys.replace(name, none));
        }
        let name = if path.contains("/sessions/") { "secret" } else { "1.0.0" };
        (theirs, nobodys) = (theirs.replace("{name}", name), nobodys.replace("{name}", name));
        assert!(!theirs.contains('{'), "add the parameters of `{path}` to this test");
        let ask = |path: &str| {
            let query = if path.ends_with("/diff") { "?to=1.0.0" } else { "" };
            let headers = [("Content-Type", "application/json")];
            let answer =
                server.send(&format!("{method} {path}{query}"), Some(&stranger), &headers, body(path).to_string().as_bytes());
            // A name that the client sent may be in the text.
            (answer.status, answer.text().replace("nowhere", "owned"))
        };
        let (theirs, nobodys) = (ask(&theirs), ask(&nobodys));
        assert_eq!(theirs, nobodys, "{method} {path}");
        assert!(
            theirs.0 >= 400 || matches!(theirs.1.as_str(), "[]" | "{\"items\":[],\"next_cursor\":null}"),
            "{method} {path}: {theirs:?}"
        );
        *seen.entry(theirs.0).or_default() += 1;
    }
    // Most are looked up; few are refused before.
    assert!(seen[&404] > 70, "{seen:?}");
    // Nothing was changed by the stranger.
    assert_eq!(server.get(&format!("/v1/sandboxes/{sandbox}/files/secret")).expect(200).text(), "x");
    assert_eq!(server.get(&format!("/v1/files/{file}/download")).expect(200).text(), "secret");
    server.get(&format!("/v1/executions/{execution}")).expect(200);
    server.get("/v1/skills/owned/1.0.0").expect(200);
    assert_eq!(server.get("/v1/sessions/owned/files/secret").expect(200).text(), "\n");
    assert!(server.get("/v1/keys").json().as_array().unwrap().iter().all(|row| row["revoked_at"].is_null()));
}
