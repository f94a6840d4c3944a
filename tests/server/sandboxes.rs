//! `/v1/sandboxes`: each route as its owner, as another tenant, without a key and with a weaker one.

mod files;
mod limits;
mod runs;

use serde_json::{Value, json};

use super::http::{Answer, Server};

/// A new sandbox's id.
fn created(server: &Server, body: Value) -> String {
    server.post("/v1/sandboxes", &body).expect(201).json()["id"].as_str().unwrap().to_owned()
}

fn act(server: &Server, id: &str, action: &str, arguments: Value) -> Answer {
    server.post(&format!("/v1/sandboxes/{id}/actions/{action}"), &arguments)
}

fn bash(server: &Server, id: &str, command: &str) -> Value {
    act(server, id, "bash", json!({ "command": command })).expect(200).json()
}

#[test]
fn a_sandbox_is_created_found_changed_and_deleted() {
    let server = Server::start(&[]);
    let first = server.post(
        "/v1/sandboxes",
        &json!({ "name": "work", "preset": "strict", "files": { "/a": "text", "b": { "base64": "AP8=" } } }),
    );
    let first = first.expect(201);
    let sandbox = first.json();
    let id = sandbox["id"].as_str().unwrap();
    assert_eq!(first.header("location"), Some(format!("/v1/sandboxes/{id}").as_str()));
    assert_eq!((&sandbox["name"], &sandbox["preset"], &sandbox["expires_at"]), (&json!("work"), &json!("strict"), &Value::Null));
    assert!(sandbox["bytes"].as_u64().unwrap() > 0);
    assert_eq!(bash(&server, id, "cat /a; od -An -tx1 b")["stdout"], "text 00 ff\n");

    server.post("/v1/sandboxes", &json!({ "name": "work" })).expect(409);
    let other = created(&server, json!({ "ttl_seconds": 3600 }));
    let page = server.get("/v1/sandboxes?limit=1").expect(200).json();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    let next = page["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/v1/sandboxes?limit=1&cursor={next}")).expect(200).json();
    assert_eq!((&rest["items"][0]["id"], &rest["next_cursor"]), (&json!(other), &Value::Null));
    assert_eq!(server.get("/v1/sandboxes?name=work").json()["items"][0]["id"], id);

    let path = format!("/v1/sandboxes/{other}");
    let changed = server.with_json("PATCH", &path, &[], &json!({ "name": "play" })).expect(200).json();
    assert!(changed["name"] == "play" && changed["expires_at"].is_string(), "{changed}");
    let changed = server.with_json("PATCH", &path, &[], &json!({ "name": null, "ttl_seconds": null })).expect(200).json();
    assert!(changed["name"].is_null() && changed["expires_at"].is_null(), "{changed}");
    server.with_json("PATCH", &path, &[], &json!({ "name": "work" })).expect(409);

    server.delete(&path).expect(204);
    server.delete(&path).expect(404);
    server.get(&path).expect(404);
}

#[test]
fn invalid_requests_are_refused_with_a_sentence() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let check = |answer: Answer, status: u16, part: &str| {
        assert!(answer.status == status && answer.text().contains(part), "{status} {part}: {} {}", answer.status, answer.text());
    };
    let create = |body: Value| server.post("/v1/sandboxes", &body);
    check(create(json!({ "preset": "huge" })), 400, "`preset`");
    check(create(json!({ "name": "" })), 400, "`name`");
    check(create(json!({ "name": 7 })), 400, "invalid body");
    check(create(json!({ "ttl_seconds": 0 })), 400, "`ttl_seconds`");
    check(create(json!({ "files": { "/a": { "base64": "?" } } })), 400, "base64");
    check(create(json!({ "policy": "[[rule" })), 400, "`policy`");
    check(create(json!({ "unknown": 1 })), 400, "unknown");
    check(create(json!({ "base": "x", "snapshot": "y" })), 400, "choose");
    check(create(json!({ "base": "x" })), 404, "sandbox not found");
    check(
        server.send("POST /v1/sandboxes", Some(&server.key), &[("Content-Type", "text/plain")], b"{}"),
        415,
        "application/json",
    );
    check(
        server.send("POST /v1/sandboxes", Some(&server.key), &[("Content-Type", "application/json")], b"{"),
        400,
        "invalid body",
    );
    check(server.get("/v1/sandboxes?limit=0"), 400, "`limit`");
    check(server.get("/v1/sandboxes?limit=x"), 400, "invalid query");
    check(server.get("/v1/sandboxes?cursor=x"), 400, "`cursor`");
    check(act(&server, &id, "nothing", json!({})), 404, "action not found");
    check(act(&server, &id, "apply", json!({ "directory": "/tmp" })), 404, "action not found");
    check(act(&server, &id, "bash", json!({ "comand": "ls" })), 400, "`command`");
    check(act(&server, &id, "bash", json!([])), 400, "expected an object");
    check(act(&server, &id, "read_file", json!({ "path": "/missing" })), 404, "not_found");
    check(act(&server, &id, "write_file", json!({ "path": "/a", "content": "x", "expected_version": "y" })), 409, "conflict");
    check(act(&server, &id, "grep", json!({ "pattern": "(" })), 400, "action_failed");
    check(server.send(&format!("PUT /v1/sandboxes/{id}"), Some(&server.key), &[], b""), 405, "method_not_allowed");
    check(server.get("/v1/nothing"), 404, "route");
}

// T-NET-05: resources of other tenants do not exist, to the byte.
#[test]
fn another_tenants_sandbox_looks_like_a_missing_one() {
    let server = Server::start(&[]);
    let stranger = server.key_of("other", "admin");
    let id = created(&server, json!({ "files": { "/secret": "x" } }));
    let job = server.with_json(
        "POST",
        &format!("/v1/sandboxes/{id}/actions/bash"),
        &[("Prefer", "respond-async")],
        &json!({ "command": "echo" }),
    );
    let job = job.expect(202).json()["job"].as_str().unwrap().to_owned();
    let none = "01234567-89ab-4cde-a012-3456789abcde";
    let json = [("Content-Type", "application/json")];
    let routes: [(&str, &str, &[u8]); 15] = [
        ("GET", "", b""),
        ("PATCH", "", b"{}"),
        ("DELETE", "", b""),
        ("POST", "/fork", b"{}"),
        ("GET", "/export", b""),
        ("POST", "/actions/bash", b"{\"command\":\"ls\"}"),
        ("GET", "/jobs", b""),
        ("GET", "/jobs/JOB", b""),
        ("DELETE", "/jobs/JOB", b""),
        ("GET", "/files/secret", b""),
        ("PUT", "/files/secret", b"y"),
        ("DELETE", "/files/secret", b""),
        ("GET", "/tree/", b""),
        ("PUT", "/tree/", b""),
        ("GET", "/events", b""),
    ];
    for (method, path, body) in routes {
        let path = path.replace("JOB", &job);
        let ask = |id: &str, key: Option<&str>| server.send(&format!("{method} /v1/sandboxes/{id}{path}"), key, &json, body);
        let (theirs, nobodys) = (ask(&id, Some(&stranger)), ask(none, Some(&stranger)));
        assert_eq!((theirs.status, theirs.text()), (nobodys.status, nobodys.text()), "{method} {path}");
        assert_eq!(theirs.status, 404, "{method} {path}: {}", theirs.text());
        assert_eq!(ask(&id, None).status, 401, "{method} {path}");
    }
    for field in ["base", "snapshot"] {
        let create =
            |id: &str| server.send("POST /v1/sandboxes", Some(&stranger), &json, json!({ field: id }).to_string().as_bytes());
        assert_eq!((create(&id).status, create(&id).text()), (404, create(none).text()), "{field}");
    }
    assert_eq!(server.send("GET /v1/sandboxes", Some(&stranger), &[], b"").json()["items"], json!([]));
    assert_eq!(act(&server, &id, "read_file", json!({ "path": "/secret" })).expect(200).json()["content"], "x");
    // The tenant is that of the key, regardless of the header.
    let named = server.send(&format!("GET /v1/sandboxes/{id}"), Some(&stranger), &[("X-Tenant-ID", "default")], b"");
    assert_eq!(named.status, 403);
}

// T-NET-06.
#[test]
fn a_revoked_key_counts_no_longer_and_roles_are_kept_apart() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let made = server.post("/v1/keys", &json!({ "role": "consumer" })).expect(201).json();
    let (key, number) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    let act = |action: &str| {
        let headers = [("Content-Type", "application/json")];
        server
            .send(
                &format!("POST /v1/sandboxes/{id}/actions/{action}"),
                Some(key),
                &headers,
                b"{\"name\":\"x\",\"version\":\"1\"}",
            )
            .status
    };
    assert_eq!(server.send(&format!("GET /v1/sandboxes/{id}"), Some(key), &[], b"").status, 200);
    assert_eq!(act("activate_skill"), 403);
    assert_eq!(act("delete_skill"), 403);
    assert_eq!(server.send("GET /v1/keys", Some(key), &[], b"").status, 403);
    server.delete(&format!("/v1/keys/{number}")).expect(204);
    assert_eq!(server.send(&format!("GET /v1/sandboxes/{id}"), Some(key), &[], b"").status, 401);
}

// T-NET-05, T-NET-06: ids are random, and a tenant's text is never part of a path.
#[test]
fn ids_are_random_and_names_are_not_paths() {
    let server = Server::start(&[]);
    let ids: Vec<String> = (0..20).map(|number| created(&server, json!({ "name": format!("../../{number}") }))).collect();
    for (place, id) in ids.iter().enumerate() {
        assert!(id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'), "{id}");
        let common = ids.iter().skip(place + 1).map(|other| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count());
        assert!(common.max().unwrap_or(0) < 8, "{id}");
    }
    for id in ["..", "../catalog", "%2e%2e%2fcatalog", "a%00b", "%ff"] {
        let answer = server.get(&format!("/v1/sandboxes/{id}"));
        assert!(answer.status == 404 || answer.status == 400, "{id}: {}", answer.text());
    }
}

#[test]
fn forks_copies_and_overlays_go_their_own_way() {
    let server = Server::start(&[]);
    let id = created(&server, json!({ "files": { "/plan": "one" } }));
    bash(&server, &id, "echo two > /plan");
    let fork = |body: Value| server.post(&format!("/v1/sandboxes/{id}/fork"), &body);
    let forked = fork(json!({ "name": "fork" })).expect(201).json()["id"].as_str().unwrap().to_owned();
    let past = fork(json!({ "at": "HEAD~1" })).expect(201).json()["id"].as_str().unwrap().to_owned();
    fork(json!({ "name": "fork" })).expect(409);
    fork(json!({ "at": "nonsense" })).expect(400);
    let copy = created(&server, json!({ "snapshot": id }));
    let over = created(&server, json!({ "base": id }));
    for other in [&forked, &copy, &over] {
        assert_eq!(bash(&server, other, "cat /plan; echo own > /plan; cat /plan")["stdout"], "two\nown\n");
    }
    assert_eq!(bash(&server, &past, "cat /plan")["stdout"], "one");
    assert_eq!(bash(&server, &id, "cat /plan")["stdout"], "two\n");
    // An overlay's base stays while the overlay does.
    server.delete(&format!("/v1/sandboxes/{id}")).expect(409);
    server.delete(&format!("/v1/sandboxes/{over}")).expect(204);
    server.delete(&format!("/v1/sandboxes/{id}")).expect(204);
}

#[test]
fn a_sandbox_is_exported_and_imported_whole() {
    let server = Server::start(&[]);
    let id = created(&server, json!({ "files": { "/a": "kept" } }));
    let exported = server.get(&format!("/v1/sandboxes/{id}/export")).expect(200);
    assert_eq!(exported.header("content-type"), Some("application/vnd.sqlite3"));
    assert!(exported.body.starts_with(b"SQLite format 3"));
    let stranger = server.key_of("other", "consumer");
    let import = |body: &[u8], query: &str| server.send(&format!("POST /v1/sandboxes/import{query}"), Some(&stranger), &[], body);
    let imported = import(&exported.body, "?name=copy").expect(201).json();
    assert_eq!(imported["name"], "copy");
    let path = format!("/v1/sandboxes/{}/files/a", imported["id"].as_str().unwrap());
    assert_eq!(server.send(&format!("GET {path}"), Some(&stranger), &[], b"").body, b"kept");
    assert_eq!(import(&exported.body, "?name=copy").error(), (409, "conflict".to_owned()));
    assert_eq!(import(b"no database", "").error(), (422, "invalid_snapshot".to_owned()));
    assert_eq!(import(b"", "").status, 400);
    let mut damaged = exported.body.clone();
    damaged[2000..].fill(7);
    assert_eq!(import(&damaged, "").error(), (422, "invalid_snapshot".to_owned()));
    let without = server.get(&format!("/v1/sandboxes/{id}/export?history=false")).expect(200);
    assert!(without.body.len() <= exported.body.len());
}

#[test]
fn a_key_with_a_view_sees_what_its_labels_allow() {
    let server = Server::start(&[]);
    let policy = "[[rule]]\npath = \"/payroll\"\nlabel = \"finance\"\n";
    let id = created(&server, json!({ "policy": policy }));
    let key = |view: &str| {
        server.post("/v1/keys", &json!({ "role": "consumer", "view": view })).expect(201).json()["key"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (ann, bob) = (key("ann:finance"), key("bob"));
    let path = format!("/v1/sandboxes/{id}/files/payroll/may.csv");
    assert_eq!(server.send(&format!("PUT {path}"), Some(&ann), &[], b"1,2").status, 201);
    assert_eq!(server.send(&format!("GET {path}"), Some(&ann), &[], b"").body, b"1,2");
    assert_eq!(server.send(&format!("GET {path}"), Some(&bob), &[], b"").error(), (404, "not_found".to_owned()));
    let listed = server.send(
        &format!("POST /v1/sandboxes/{id}/actions/glob"),
        Some(&bob),
        &[("Content-Type", "application/json")],
        b"{\"pattern\":\"/**\"}",
    );
    assert!(!listed.text().contains("payroll"), "{}", listed.text());
    // The whole of it is not for who sees a part: not as a file, not as a copy, not from below.
    assert_eq!(server.send(&format!("GET /v1/sandboxes/{id}/export"), Some(&bob), &[], b"").status, 403);
    let headers = [("Content-Type", "application/json")];
    assert_eq!(server.send(&format!("POST /v1/sandboxes/{id}/fork"), Some(&bob), &headers, b"{}").status, 403);
    let over =
        server.send("POST /v1/sandboxes", Some(&bob), &headers, json!({ "base": id }).to_string().as_bytes()).expect(201).json();
    let over = over["id"].as_str().unwrap();
    // Nor can it be renamed or removed, whatever the labels.
    for key in [&ann, &bob] {
        for (method, body) in [("PATCH", &b"{\"name\":\"mine\",\"ttl_seconds\":1}"[..]), ("DELETE", b"")] {
            let refused = server.send(&format!("{method} /v1/sandboxes/{over}"), Some(key), &headers, body);
            assert_eq!(refused.error(), (403, "forbidden".to_owned()), "{method}");
        }
    }
    let row = server.get(&format!("/v1/sandboxes/{over}")).expect(200).json();
    assert!(row["name"].is_null() && row["expires_at"].is_null(), "{row}");
    assert_eq!(server.send(&format!("GET /v1/sandboxes/{over}/files/payroll/may.csv"), Some(&bob), &[], b"").status, 404);
}

#[test]
fn the_document_describes_the_server() {
    let server = Server::start(&[]);
    let document = server.send("GET /openapi.json", None, &[], b"").expect(200).json();
    assert_eq!(document["openapi"], "3.1.0");
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let asked = path.replace(['{', '}'], "x");
            let answer = server.send(&format!("{} {asked}", method.to_uppercase()), None, &[], b"");
            // With a key it would be done; without one it is known to exist.
            let exists = answer.status != 405 && !answer.text().contains("route not found");
            assert!(exists, "{method} {path}: {}", answer.text());
        }
    }
    let page = server.send("GET /docs", None, &[], b"").expect(200);
    assert!(
        page.text().contains("/v1/sandboxes")
            && page.header("content-security-policy").unwrap().starts_with("default-src 'none'")
    );
}
