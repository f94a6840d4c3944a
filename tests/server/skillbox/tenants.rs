//! Who sees what: other tenants, keys that are missing or revoked, and roles (T-NET-05, T-NET-06).

use ::skills::pack;
use serde_json::{Value, json};

use super::{ECHO, skill};
use crate::http::{Server, form};

#[test]
fn another_tenants_ids_look_like_missing_ones_to_the_byte() {
    let server = Server::start(&[]);
    let other = server.key_of("other", "admin");
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    let run = server.run(&json!({ "skill": "echo", "session_id": "s" }));
    let execution = run["execution_id"].as_str().unwrap();
    let file = server.form("POST /v1/files", &[], &[], ("x", b"secret")).expect(201).json();
    let file = file["id"].as_str().unwrap();
    server
        .with_json("POST", "/v1/sandbox/execute", &[("X-Session-ID", "s")], &json!({ "command": "echo secret > x" }))
        .expect(200);
    let none = "00000000-0000-4000-a000-000000000000";
    let as_other = |line: &str, body: &[u8]| {
        let answer = server.send(line, Some(&other), &[("Content-Type", "application/json")], body);
        (answer.status, answer.text())
    };
    // Each with existing ids of the first tenant, and with missing ids.
    for (line, theirs, nobodys) in [
        ("GET /v1/executions/ID", execution, none),
        ("GET /v1/executions/ID/logs", execution, none),
        ("GET /v1/executions/ID/events", execution, none),
        ("DELETE /v1/executions/ID", execution, none),
        ("GET /v1/files/ID", file, none),
        ("GET /v1/files/ID/download", file, none),
        ("GET /v1/files/ID/versions", file, none),
        ("DELETE /v1/files/ID", file, none),
        ("GET /v1/sessions/ID/files", "s", "n"),
        ("GET /v1/sessions/ID/files/page.html", "s", "n"),
        ("DELETE /v1/sessions/ID/files/page.html", "s", "n"),
        ("DELETE /v1/sessions/ID", "s", "n"),
        ("DELETE /v1/sandbox/ID", "s", "n"),
    ] {
        let (got, expected) = (as_other(&line.replace("ID", theirs), b""), as_other(&line.replace("ID", nobodys), b""));
        assert_eq!(got, expected, "{line}");
        assert!(got.0 == 404 || got.1 == "[]", "{line}: {got:?}");
    }
    for line in [
        "GET /v1/skills/echo/1.0.0",
        "GET /v1/skills/echo/latest/files",
        "DELETE /v1/skills/echo/1.0.0",
        "DELETE /v1/skills/echo",
    ] {
        assert_eq!(as_other(line, b"").0, 404, "{line}");
    }
    assert_eq!(as_other("PUT /v1/skills/echo/files", br#"{"path":"x","content":""}"#).0, 404);
    assert_eq!(as_other("PUT /v1/skills/echo/active", br#"{"version":"1.0.0"}"#).0, 404);
    assert_eq!(as_other("GET /v1/skills/echo/diff?to=1.0.0", b"").0, 404);
    for line in ["GET /v1/skills", "GET /v1/files", "GET /v1/skills/echo/versions"] {
        assert_eq!(as_other(line, b""), (200, "[]".to_owned()), "{line}");
    }
    assert_eq!(as_other("GET /v1/executions", b""), (200, r#"{"items":[],"next_cursor":null}"#.to_owned()));
    assert_eq!(as_other("POST /v1/executions", br#"{"skill":"echo"}"#).0, 404);
    let (kind, body) = form(&[], ("x", b"mine"));
    let update = |id: &str| {
        let answer = server.send(&format!("PUT /v1/files/{id}"), Some(&other), &[("Content-Type", &kind)], &body);
        (answer.status, answer.text())
    };
    assert_eq!(update(file), update(none));
    // A file of the other cannot be an input either, and a session of the same name is another one.
    server.push_as(&other, &skill("read", "1.0.0", "ls /sandbox/session /sandbox/input")).expect(201);
    let run = format!(r#"{{"skill":"read","input_files":["{file}"]}}"#);
    assert!(as_other("POST /v1/executions", run.as_bytes()).1.contains("not found"));
    let run = as_other("POST /v1/executions", br#"{"skill":"read","session_id":"s"}"#);
    assert!(run.0 == 200 && !run.1.contains("page.html"), "{run:?}");
    let read = server.send("POST /v1/sandbox/execute", Some(&other), &[("X-Session-ID", "s")], br#"{"command":"ls"}"#);
    assert_eq!(read.json()["stdout"], "outputs\nskills\n");
    // Nothing of the first tenant has changed.
    assert_eq!(server.get(&format!("/v1/files/{file}/download")).expect(200).text(), "secret");
    assert_eq!(server.get("/v1/sessions/s/files").json().as_array().unwrap().len(), 1);
}

/// Every route, with a body where it needs one.
const ROUTES: [&str; 35] = [
    "POST /v1/executions",
    "GET /v1/executions",
    "GET /v1/executions/x",
    "GET /v1/executions/x/logs",
    "GET /v1/executions/x/events",
    "DELETE /v1/executions/x",
    "POST /v1/skills",
    "GET /v1/skills",
    "POST /v1/skills/from-fields",
    "POST /v1/skills/validate",
    "GET /v1/skills/x/1.0.0",
    "GET /v1/skills/x/1.0.0/files",
    "DELETE /v1/skills/x/1.0.0",
    "DELETE /v1/skills/x",
    "PUT /v1/skills/x/files",
    "PUT /v1/skills/x/files-batch",
    "GET /v1/skills/x/versions",
    "GET /v1/skills/x/diff",
    "PUT /v1/skills/x/active",
    "POST /v1/files",
    "GET /v1/files",
    "GET /v1/files/x",
    "PUT /v1/files/x",
    "DELETE /v1/files/x",
    "GET /v1/files/x/download",
    "GET /v1/files/x/versions",
    "GET /v1/sessions/x/files",
    "GET /v1/sessions/x/files/y",
    "DELETE /v1/sessions/x/files/y",
    "DELETE /v1/sessions/x",
    "POST /v1/sandbox/execute",
    "POST /v1/sandbox/write-file",
    "POST /v1/sandbox/sync",
    "DELETE /v1/sandbox/x",
    "GET /v1/admin/scanner/config",
];

#[test]
fn no_route_does_anything_without_a_key_or_with_a_revoked_one() {
    let server = Server::start(&[]);
    let made = server.post("/v1/keys", &json!({ "role": "admin" })).expect(201).json();
    let key = made["key"].as_str().unwrap();
    assert_eq!(server.send("GET /v1/skills", Some(key), &[], &[]).status, 200);
    server.delete(&format!("/v1/keys/{}", made["id"].as_str().unwrap())).expect(204);
    for line in ROUTES {
        let without = server.send(line, None, &[], &[]);
        assert_eq!(without.error(), (401, "unauthorized".to_owned()), "{line}");
        // The same as with a key that never was one.
        let (revoked, unknown) = (server.send(line, Some(key), &[], &[]), server.send(line, Some("sk-unknown"), &[], &[]));
        assert_eq!((revoked.status, revoked.text()), (401, unknown.text()), "{line}");
    }
    assert_eq!(server.send("GET /v1/skills", Some(&server.key), &[("X-Tenant-ID", "other")], &[]).status, 403);
}

// T-NET-05: only a key that was made for it, on the machine of the server.
#[test]
fn a_service_key_acts_for_the_tenant_that_a_request_names() {
    let server = Server::start(&[]);
    let args = ["keys", "create", "--data", "data", "--tenant", "gateway", "--role", "publisher", "--service"];
    let key = String::from_utf8(server.command(&args).stdout).unwrap().trim().to_owned();
    let send = |line: &str, key: &str, tenant: &str, body: &[u8]| {
        server.send(line, Some(key), &[("X-Tenant-ID", tenant), ("Content-Type", "application/json")], body)
    };
    assert_eq!(send("GET /v1/whoami", &key, "", b"").expect(200).json()["tenant"], "gateway");
    assert_eq!(send("GET /v1/whoami", &key, "acme", b"").expect(200).json()["tenant"], "acme");
    // What it makes is the tenant's, as if the tenant had made it; with its own role and no more.
    let id = send("POST /v1/sandboxes", &key, "acme", b"{}").expect(201).json()["id"].as_str().unwrap().to_owned();
    let acme = server.key_of("acme", "admin");
    let line = format!("GET /v1/sandboxes/{id}");
    assert_eq!(server.send(&line, Some(&acme), &[], b"").status, 200);
    for tenant in ["", "gateway", "other"] {
        assert_eq!(send(&line, &key, tenant, b"").status, 404, "{tenant}");
    }
    assert_eq!(send("GET /v1/keys", &key, "acme", b"").status, 403);
    let audit = server.send("GET /v1/audit", Some(&acme), &[], b"").expect(200).json();
    assert_eq!((&audit[0]["method"], &audit[0]["path"]), (&json!("POST"), &json!("/v1/sandboxes")));
    assert!(audit[0]["key"].is_string());
    // Every other key is that of its tenant, and nobody makes a service key over HTTP.
    assert_eq!(send("GET /v1/whoami", &acme, "gateway", b"").status, 403);
    assert_eq!(send("GET /v1/whoami", &key, "../acme", b"").status, 403);
    assert_eq!(server.post("/v1/keys", &json!({ "role": "consumer", "service": true })).status, 400);
    let rows = server.command(&["keys", "list", "--data", "data", "--json"]).stdout;
    let rows: Value = serde_json::from_slice(&rows).unwrap();
    let service: Vec<&str> =
        rows.as_array().unwrap().iter().filter(|row| row["service"] == true).map(|row| row["tenant"].as_str().unwrap()).collect();
    assert_eq!(service, ["gateway"]);
}

#[test]
fn a_consumer_runs_skills_but_cannot_change_them() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    let consumer = server.key_of("default", "consumer");
    let send = |line: &str, kind: &str, body: &[u8]| server.send(line, Some(&consumer), &[("Content-Type", kind)], body).status;
    let zip = pack(&skill("echo", "2.0.0", "true"));
    for (line, kind, body) in [
        ("POST /v1/skills", "application/zip", zip.as_slice()),
        ("POST /v1/skills/from-fields", "application/json", br#"{"name":"x","description":"y","code":"z"}"#),
        ("PUT /v1/skills/echo/files", "application/json", br#"{"path":"x","content":""}"#),
        ("PUT /v1/skills/echo/files-batch", "application/json", br#"{"files":[{"path":"SKILL.md"}]}"#),
        ("PUT /v1/skills/echo/active", "application/json", br#"{"version":"1.0.0"}"#),
        ("DELETE /v1/skills/echo/1.0.0", "", b""),
        ("DELETE /v1/skills/echo", "", b""),
        ("GET /v1/admin/scanner/stats", "", b""),
        ("PUT /v1/admin/scanner/config", "application/json", b"{}"),
        ("PUT /v1/admin/skills/echo/1.0.0/review", "application/json", br#"{"action":"approve"}"#),
    ] {
        assert_eq!(send(line, kind, body), 403, "{line}");
    }
    assert_eq!(send("POST /v1/executions", "application/json", br#"{"skill":"echo"}"#), 200);
    assert_eq!(send("POST /v1/skills/validate", "application/zip", &zip), 200);
    assert_eq!(send("GET /v1/skills/echo/latest", "", b""), 200);
    let versions: Value = server.get("/v1/skills/echo/versions").json();
    assert_eq!(versions.as_array().unwrap().len(), 1);
}
