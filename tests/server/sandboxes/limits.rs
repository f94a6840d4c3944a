//! Quotas, lifetimes, and requests that are sent twice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::http::Server;
use super::{act, bash, created};

#[test]
fn an_exceeded_quota_is_named_with_the_time_to_retry() {
    let server = Server::start(&["sandboxes-of-tenant=2", "fuel-per-hour=1"]);
    let id = created(&server, json!({}));
    created(&server, json!({}));
    let refused = server.post("/v1/sandboxes", &json!({})).expect(429);
    assert_eq!(refused.json()["details"]["quota"], "sandboxes");
    assert!(refused.header("retry-after").is_some());
    bash(&server, &id, "true");
    let refused = act(&server, &id, "bash", json!({ "command": "true" })).expect(429);
    assert_eq!(refused.json()["details"]["quota"], "fuel_per_hour");
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3601).contains(&seconds), "{seconds}");
    // Reading costs no fuel, and another tenant has its own.
    act(&server, &id, "list_files", json!({ "path": "/" })).expect(200);
    let other = server.key_of("other", "consumer");
    server.send("POST /v1/sandboxes", Some(&other), &[("Content-Type", "application/json")], b"{}").expect(201);
}

// Rows of keys stay when they are revoked.
#[test]
fn a_tenant_has_a_limited_number_of_keys() {
    let server = Server::start(&["keys-of-tenant=3"]);
    let create = || server.post("/v1/keys", &json!({ "role": "consumer" }));
    let first = create().expect(201).json();
    create().expect(201);
    server.delete(&format!("/v1/keys/{}", first["id"].as_str().unwrap())).expect(204);
    let refused = create().expect(429);
    assert_eq!(refused.json()["details"]["quota"], "keys");
    assert!(refused.header("retry-after").is_some());
    // Who runs the server is not bound by it.
    assert!(server.key_of("default", "consumer").starts_with("sk-"));
}

// T-NET-08: in both directions, for every use of a limit, and at once.
#[test]
fn the_operator_sets_limits_of_one_tenant_in_place_of_the_servers() {
    let server = Server::start(&["sandboxes-of-tenant=1", "keys-of-tenant=2", "admin-token=operator"]);
    let other = server.key_of("acme", "admin");
    let set = |token: &str, tenant: &str, body: Value| {
        let headers = [("X-Admin-Token", token), ("Content-Type", "application/json")];
        let line = format!("PATCH /v1/admin/tenants/{tenant}");
        server.send(&line, Some(&server.key), &headers, body.to_string().as_bytes())
    };
    let as_acme = |line: &str, body: Value| {
        server.send(line, Some(&other), &[("Content-Type", "application/json")], body.to_string().as_bytes())
    };
    let create = || as_acme("POST /v1/sandboxes", json!({}));
    let id = create().expect(201).json()["id"].as_str().unwrap().to_owned();
    create().expect(429);
    let made = set("operator", "acme", json!({ "sandboxes": 2, "keys": 1, "fuel_per_hour": 0 })).expect(200).json();
    assert_eq!(made["limits"], json!({ "sandboxes": 2, "keys": 1, "fuel_per_hour": 0 }));
    assert_eq!((&made["effective"]["sandboxes"], &made["effective"]["concurrent"]), (&json!(2), &json!(8)));
    create().expect(201);
    assert_eq!(create().expect(429).json()["details"]["limit"], 2);
    let key = as_acme("POST /v1/keys", json!({ "role": "consumer" })).expect(429).json();
    assert_eq!((&key["details"]["quota"], &key["details"]["limit"]), (&json!("keys"), &json!(1)));
    let run = as_acme(&format!("POST /v1/sandboxes/{id}/actions/bash"), json!({ "command": "true" }));
    assert_eq!(run.expect(429).json()["details"]["quota"], "fuel_per_hour");
    let usage = as_acme("GET /v1/usage", json!({})).expect(200).json();
    assert_eq!((&usage["limits"]["sandboxes"], &usage["limits"]["fuel_per_hour"]), (&json!(2), &json!(0)));
    // The limits of the others are as they were.
    created(&server, json!({}));
    server.post("/v1/sandboxes", &json!({})).expect(429);
    // Null is the server's limit again.
    set("operator", "acme", json!({ "fuel_per_hour": null })).expect(200);
    as_acme(&format!("POST /v1/sandboxes/{id}/actions/bash"), json!({ "command": "true" })).expect(200);
    set("operator", "acme", json!({ "bytes": 1 })).expect(200);
    let full = as_acme(&format!("POST /v1/sandboxes/{id}/actions/write_file"), json!({ "path": "/x", "content": "y" }));
    assert_eq!(full.expect(429).json()["details"]["quota"], "bytes");
    set("operator", "acme", json!({ "bytes": null, "requests_per_second": 1 })).expect(200);
    assert!((0..50).any(|_| as_acme("GET /v1/whoami", json!({})).status == 429));
    for (name, value) in [("loops", json!(1)), ("queue", json!(0)), ("bytes", json!(-1)), ("bytes", json!("1GB"))] {
        assert_eq!(set("operator", "acme", json!({ name: value })).error().0, 400, "{name}");
    }
    assert_eq!(set("operator", "a%20b", json!({ "bytes": 1 })).error().0, 400);
    // Neither an admin of the tenant nor one who guesses the token.
    assert_eq!(set("wrong", "acme", json!({ "bytes": null })).error().0, 401);
    let rows = server.send("GET /v1/admin/tenants", Some(&server.key), &[("X-Admin-Token", "operator")], b"").expect(200).json();
    let rows = rows.as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["acme", "default"]);
    assert_eq!(rows[1]["limits"], json!({}));
}

#[test]
fn limits_that_another_process_sets_apply_to_a_running_server_and_after_a_restart() {
    let mut server = Server::start(&["sandboxes-of-tenant=1"]);
    created(&server, json!({}));
    server.post("/v1/sandboxes", &json!({})).expect(429);
    // Without a token of the operator nobody sets limits over HTTP.
    assert_eq!(server.get("/v1/admin/tenants").error().0, 403);
    let run = |words: &[&str]| {
        let output = server.command(&[&["tenants"][..], words, &["--data", "data"]].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let line = "default          fuel-per-hour=9000000000000 sandboxes=2\n".to_owned();
    assert_eq!(run(&["set", "default", "sandboxes=2", "fuel-per-hour=9000000000000"]), (Some(0), line.clone()));
    assert_eq!(run(&["list"]), (Some(0), line));
    assert_eq!(run(&["set", "default", "sandboxes=-1"]).0, Some(2));
    assert_eq!(run(&["set", "default", "loops=1"]).0, Some(2));
    let began = Instant::now();
    while server.post("/v1/sandboxes", &json!({})).status != 201 {
        assert!(began.elapsed() < Duration::from_secs(60));
    }
    server.kill_and_restart();
    assert_eq!(server.get("/v1/usage").expect(200).json()["limits"]["sandboxes"], 2);
    server.command(&["tenants", "set", "default", "sandboxes=default", "--data", "data"]);
    server.kill_and_restart();
    assert_eq!(server.get("/v1/usage").expect(200).json()["limits"]["sandboxes"], 1);
}

// Also what runs commands within an action, and one that fails.
#[test]
fn whatever_runs_commands_uses_fuel_of_its_tenant() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let fuel = || server.get("/v1/usage").expect(200).json()["fuel_this_hour"].as_u64().unwrap();
    let costs = |action: &str, arguments: Value, status: u16| {
        let before = fuel();
        act(&server, &id, action, arguments).expect(status);
        fuel() - before
    };
    assert!(costs("bash", json!({ "command": "echo 1 > /a", "record": true }), 200) > 0);
    assert!(costs("bash", json!({ "command": "echo 2 > /a" }), 200) > 0);
    assert!(costs("replay", json!({}), 200) > 0);
    assert!(costs("bisect", json!({ "good": "HEAD~1", "command": "grep -q 1 /a" }), 200) > 0);
    assert!(costs("bisect", json!({ "good": "HEAD~1", "command": "true" }), 400) > 0);
    assert_eq!(costs("list_files", json!({ "path": "/" }), 200), 0);
}

#[test]
fn a_tool_that_only_reads_is_not_a_run_and_needs_no_fuel() {
    let server = Server::start(&["fuel-per-hour=1"]);
    let tool = |name: &str, arguments: Value| {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } });
        server.with_json("POST", "/mcp", &[("Accept", "application/json, text/event-stream")], &body)
    };
    let runs = || server.get("/v1/usage").expect(200).json()["runs_this_hour"].as_u64();
    tool("list_files", json!({ "path": "/" })).expect(200);
    assert_eq!(runs(), Some(0));
    tool("bash", json!({ "command": "true" })).expect(200);
    assert_eq!(runs(), Some(1));
    assert_eq!(tool("bash", json!({ "command": "true" })).expect(429).json()["details"]["quota"], "fuel_per_hour");
    tool("list_files", json!({ "path": "/" })).expect(200);
    // The name of a member may be written in another way.
    let escaped =
        br#"{"jsonrpc":"2.0","id":1,"m\u0065thod":"tools/call","params":{"name":"bash","arguments":{"command":"true"}}}"#;
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    server.send("POST /mcp", Some(&server.key), &headers, escaped).expect(429);
    let metrics = server.send("GET /metrics", None, &[], b"").text();
    assert!(metrics.contains("sandlite_runs_total{kind=\"bash\",status=\"success\"} 1"), "{metrics}");
}

#[test]
fn a_tenant_that_has_no_room_left_can_read_and_delete() {
    let server = Server::start(&["bytes-of-tenant=4MB"]);
    let id = created(&server, json!({}));
    let path = format!("/v1/sandboxes/{id}/files/large");
    let put = |bytes: usize| server.send(&format!("PUT {path}"), Some(&server.key), &[], &vec![7; bytes]);
    put(1000).expect(201);
    let refused = put(5_000_000).expect(429);
    assert_eq!(refused.json()["details"]["quota"], "bytes");
    assert_eq!(server.get(&path).expect(200).body.len(), 1000);
    server.delete(&format!("/v1/sandboxes/{id}")).expect(204);
}

#[test]
fn a_preset_is_never_wider_than_the_servers() {
    let server = Server::start(&["preset=strict"]);
    let id = created(&server, json!({ "preset": "permissive" }));
    let limited = bash(&server, &id, "for i in {1..101}; do :; done");
    assert_eq!((&limited["status"], &limited["limit"]["name"]), (&json!("limit"), &json!("loop_iterations")));
    let too_large = server.send(&format!("PUT /v1/sandboxes/{id}/files/x"), Some(&server.key), &[], &vec![7; 17 << 20]);
    assert_eq!(too_large.error(), (413, "too_large".to_owned()));
}

#[test]
fn a_request_that_is_sent_twice_is_done_once() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let key = [("Idempotency-Key", "one")];
    let path = format!("/v1/sandboxes/{id}/actions/bash");
    let run = |key: &[(&str, &str)], command: &str| server.with_json("POST", &path, key, &json!({ "command": command }));
    let first = run(&key, "echo x >> /log; wc -l < /log").expect(200);
    let again = run(&key, "echo x >> /log; wc -l < /log").expect(200);
    assert_eq!((first.header("idempotency-replayed"), again.header("idempotency-replayed")), (None, Some("true")));
    assert_eq!(first.text(), again.text());
    assert_eq!(bash(&server, &id, "wc -l < /log")["stdout"].as_str().unwrap().trim(), "1");
    assert_eq!(run(&key, "echo other").error(), (422, "idempotency_mismatch".to_owned()));
    run(&[("Idempotency-Key", "")], "true").expect(400);
    // A rejection is stored as well; another tenant and another key have their own idempotency keys.
    let missing = [("Idempotency-Key", "two")];
    let made = server.with_json("POST", "/v1/sandboxes", &missing, &json!({ "name": "once" })).expect(201);
    let same = server.with_json("POST", "/v1/sandboxes", &missing, &json!({ "name": "once" })).expect(201);
    assert_eq!((made.text(), made.header("location")), (same.text(), same.header("location")));
    let other = server.key_of("other", "consumer");
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "two")];
    let theirs = server.send("POST /v1/sandboxes", Some(&other), &headers, b"{\"name\":\"once\"}").expect(201);
    assert_ne!(theirs.json()["id"], made.json()["id"]);
    let colleague = server.key_of("default", "consumer");
    assert_eq!(server.send("POST /v1/sandboxes", Some(&colleague), &headers, b"{\"name\":\"once\"}").status, 422);
    // The session of a command is part of the request.
    let execute = |session: &str| {
        let headers = [("Idempotency-Key", "three"), ("X-Session-ID", session)];
        server.with_json("POST", "/v1/sandbox/execute", &headers, &json!({ "command": "true" }))
    };
    execute("a").expect(200);
    assert_eq!(execute("b").error(), (422, "idempotency_mismatch".to_owned()));
}

#[test]
fn a_request_that_is_under_way_is_not_begun_again() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let path = format!("/v1/sandboxes/{id}/actions/bash");
    let run = || server.with_json("POST", &path, &[("Idempotency-Key", "k")], &json!({ "command": "echo x >> /log; sleep 1" }));
    let statuses: Vec<(u16, bool)> = std::thread::scope(|scope| {
        let both = [(); 4].map(|()| {
            scope.spawn(|| {
                let answer = run();
                (answer.status, answer.header("idempotency-replayed").is_some())
            })
        });
        both.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|(status, replayed)| *status == 200 && !replayed).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|(status, _)| [200, 409].contains(status)), "{statuses:?}");
    assert_eq!(bash(&server, &id, "wc -l < /log")["stdout"].as_str().unwrap().trim(), "1");
}

#[test]
fn a_request_whose_client_disconnected_is_not_begun_again() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let path = format!("/v1/sandboxes/{id}/actions/bash");
    let body = json!({ "command": "echo x >> /log; sleep 2" });
    let (host, key, text) = (server.address, &server.key, body.to_string());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let began = std::time::Instant::now();
    while !server.send("GET /metrics", None, &[], b"").text().lines().any(|line| line == "sandlite_running 1") {
        assert!(began.elapsed().as_secs() < 60);
    }
    drop(stream);
    let again = loop {
        let again = server.with_json("POST", &path, &[("Idempotency-Key", "k")], &body);
        if again.status != 409 {
            break again.expect(200);
        }
        assert!(began.elapsed().as_secs() < 60);
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    };
    assert_eq!((again.header("idempotency-replayed"), &again.json()["exit_code"]), (Some("true"), &json!(0)));
    assert_eq!(bash(&server, &id, "wc -l < /log")["stdout"].as_str().unwrap().trim(), "1");
}

#[test]
fn an_expired_sandbox_is_removed_with_its_file() {
    // The loop below asks as fast as it can.
    let server = Server::start(&["requests-per-second=1000000"]);
    let id = created(&server, json!({ "ttl_seconds": 1, "name": "short" }));
    let began = std::time::Instant::now();
    while server.get(&format!("/v1/sandboxes/{id}")).status != 404 || !server.files_named(&id).is_empty() {
        assert!(began.elapsed().as_secs() < 60);
    }
    assert!(began.elapsed().as_millis() > 900);
    created(&server, json!({ "name": "short" }));
}

#[test]
fn few_sandboxes_are_open_and_all_of_them_work() {
    let server = Server::start(&["open-sandboxes=3"]);
    let ids: Vec<String> = (0..10).map(|number| created(&server, json!({ "files": { "/n": number.to_string() } }))).collect();
    for _ in 0..2 {
        for (number, id) in ids.iter().enumerate() {
            assert_eq!(bash(&server, id, "cat /n")["stdout"], number.to_string());
        }
    }
    let open = server.send("GET /metrics", None, &[], b"").text();
    let open = open.lines().find_map(|line| line.strip_prefix("sandlite_open_sandboxes ")).unwrap().to_owned();
    assert!(open.parse::<u64>().unwrap() <= 3, "{open}");
}
