//! Checks before a route: host names and origins, sizes and times, keys, and the audit log (T-NET-01, T-NET-04 to T-NET-06).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::http::Server;

/// Sends bytes as they are and reads the whole answer; empty if the connection was closed without one.
fn raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

// T-NET-01: a page that rebinds its name to this machine, and a page of another site.
#[test]
fn foreign_host_names_and_origins_are_refused_on_every_kind_of_route() {
    let server = Server::start(&["allow-host=box.example", "allow-origin=https://app.example"]);
    let own = server.address.to_string();
    for path in ["/", "/health", "/openapi.json", "/v1/whoami", "/mcp", "/artifacts/x/files.tar.gz"] {
        let with = |host: &str, more: &str| {
            let key = &server.key;
            let head =
                format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n{more}\r\n");
            raw(&server, head.as_bytes())
        };
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example"] {
            let answer = with(host, "");
            assert!(status(&answer) == "403" && answer.contains("host name is not served"), "{path} {host}: {answer}");
        }
        for origin in ["https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1"] {
            let answer = with(&own, &format!("Origin: {origin}\r\n"));
            assert!(status(&answer) == "403" && answer.contains("pages of this origin"), "{path} {origin}: {answer}");
            assert!(!answer.to_lowercase().contains("access-control-allow"), "{answer}");
        }
        let two = with(&own, "Host: evil.example\r\n");
        assert!(["400", "403"].contains(&status(&two)), "{path}: {two}");
        for (host, more) in [
            (own.as_str(), String::new()),
            ("box.example", String::new()),
            (own.as_str(), format!("Origin: http://{own}\r\n")),
            (own.as_str(), "Origin: https://app.example\r\n".to_owned()),
        ] {
            let answer = with(host, &more);
            assert!(!answer.contains("not served") && !answer.contains("pages of this origin"), "{path} {host} {more}: {answer}");
        }
    }
}

// T-NET-01: a listed origin is named in responses, and no other.
#[test]
fn a_page_of_a_listed_origin_may_ask_what_it_may_send_and_read_the_response() {
    let server = Server::start(&["allow-origin=https://app.example"]);
    let page = ("Origin", "https://app.example");
    let asking = [page, ("Access-Control-Request-Method", "PUT"), ("Access-Control-Request-Headers", "authorization")];
    for path in ["/v1/whoami", "/mcp"] {
        // A browser sends no key with it.
        let told = server.send(&format!("OPTIONS {path}"), None, &asking, b"").expect(204);
        assert_eq!(told.header("access-control-allow-origin"), Some("https://app.example"));
        let sent = told.header("access-control-allow-headers").unwrap();
        assert!(
            ["Authorization", "Idempotency-Key", "If-Match", "X-Session-ID"].iter().all(|name| sent.contains(name)),
            "{sent}"
        );
        assert!(told.header("access-control-allow-methods").unwrap().contains("PUT"));
        assert_eq!(server.send(&format!("OPTIONS {path}"), None, &asking[1..], b"").status, 405);
    }
    for (key, status) in [(Some(server.key.as_str()), 200), (None, 401)] {
        let answer = server.send("GET /v1/whoami", key, &[page], b"").expect(status);
        assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
        assert_eq!((answer.header("vary"), answer.header("access-control-allow-credentials")), (Some("Origin"), None));
        assert!(answer.header("access-control-expose-headers").unwrap().contains("ETag"));
    }
    let own = format!("http://{}", server.address);
    let answer = server.send("GET /v1/whoami", Some(&server.key), &[("Origin", own.as_str())], b"").expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

// T-NET-01.
#[test]
fn other_machines_are_served_only_under_a_name_that_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_sandlite"));
    serve.args(["serve", "--data", "data", "--listen", "0.0.0.0:0"]).current_dir(directory.path()).stdin(Stdio::null());
    let mut child = serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let ended = loop {
        match child.try_wait().unwrap() {
            Some(ended) => break ended,
            None if began.elapsed() > Duration::from_secs(60) => {
                child.kill().unwrap();
                panic!("it listens on every address");
            }
            None => std::thread::park_timeout(Duration::from_millis(20)),
        }
    };
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(!ended.success() && text.contains("0.0.0.0"), "{text}");
}

// T-NET-01: another content type is what a page can send without asking first.
// T-NET-04: deep, large and batched bodies.
#[test]
fn bodies_are_json_of_bounded_size_and_depth() {
    let server = Server::start(&["body-bytes=64KiB", "preset=strict"]);
    let id = server.post("/v1/sandboxes", &json!({})).expect(201).json()["id"].as_str().unwrap().to_owned();
    let path = format!("POST /v1/sandboxes/{id}/actions/bash");
    let send = |line: &str, kind: &str, body: &[u8]| server.send(line, Some(&server.key), &[("Content-Type", kind)], body).status;
    let command = br#"{"command":"true"}"#;
    assert_eq!(send(&path, "application/json", command), 200);
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""] {
        assert_eq!(send(&path, kind, command), 415, "{kind}");
    }
    let nested = |depth: usize| format!(r#"{{"key":"k","value":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let set = format!("POST /v1/sandboxes/{id}/actions/kv_set");
    assert_eq!(send(&set, "application/json", nested(20).as_bytes()), 200);
    assert_eq!(send(&set, "application/json", nested(100).as_bytes()), 400);
    let large = format!(r#"{{"command":"{}"}}"#, "x".repeat(100 << 10));
    assert_eq!(send(&path, "application/json", large.as_bytes()), 413);
    assert_eq!(send("POST /v1/executions", "application/json", large.as_bytes()), 413);
    // The same without a length that could be looked at first.
    let chunked = |line: &str, kind: &str, body: &[u8]| {
        let mut pieces = Vec::new();
        for piece in body.chunks(16 << 10) {
            pieces.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            pieces.extend(piece);
            pieces.extend(b"\r\n");
        }
        pieces.extend(b"0\r\n\r\n");
        server.send(line, Some(&server.key), &[("Content-Type", kind), ("Transfer-Encoding", "chunked")], &pieces).status
    };
    assert_eq!(chunked(&path, "application/json", command), 200);
    assert_eq!(chunked(&path, "application/json", large.as_bytes()), 413);
    assert_eq!(chunked("POST /v1/executions", "application/json", large.as_bytes()), 413);
    assert_eq!(chunked(&format!("PUT /v1/sandboxes/{id}/files/x"), "application/octet-stream", &[7; 100 << 10]), 413);
}

// T-NET-04.
#[test]
fn a_key_has_the_view_that_it_is_made_with_and_an_invalid_one_is_refused() {
    let server = Server::start(&[]);
    for view in ["", ":x", "a:b:c", "a/b"] {
        assert_eq!(server.post("/v1/keys", &json!({ "role": "consumer", "view": view })).error().0, 400, "{view}");
    }
    let made = server.post("/v1/keys", &json!({ "role": "consumer", "view": "ann:finance,hr" })).expect(201).json();
    let who = |key: &str| server.send("GET /v1/whoami", Some(key), &[], &[]).expect(200).json()["view"].clone();
    assert_eq!(who(made["key"].as_str().unwrap()), "ann:finance,hr");

    let create = |view: &[&str]| {
        let directory = server.paths().into_iter().find(|path| path.ends_with("data")).unwrap();
        let args = [&["keys", "create", "--data", "data", "--role", "consumer"], view].concat();
        let output = super::http::sandlite(&args, directory.parent().unwrap()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    let (code, key) = create(&["--view", "ann:finance"]);
    assert_eq!((code, who(&key)), (Some(0), json!("ann:finance")));
    assert_eq!(who(&create(&["--key-view", "ann"]).1), "ann");
    assert_eq!(create(&["--view", "a:b:c"]).0, Some(125));
}

#[test]
fn a_client_that_sends_a_body_that_is_too_large_receives_the_response() {
    let server = Server::start(&["body-bytes=1MiB", "skill-bytes=1MiB"]);
    let body = vec![b'x'; 40 << 20];
    for (path, key, expected) in [
        ("/v1/executions", server.key.as_str(), "413"),
        ("/v1/skills", &server.key, "413"),
        ("/v1/sandboxes", &server.key, "413"),
        ("/v1/executions", "sk-unknown", "401"),
    ] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/zip\r\nContent-Length: {}\r\n\r\n",
            server.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Many clients read nothing before they have sent everything.
        stream.write_all(&body).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(status(&answer), expected, "{path}: {answer}");
    }
}

#[test]
fn headers_are_bounded_and_clients_without_a_key_are_disconnected() {
    let server = Server::start(&[]);
    let with = |bytes: usize| {
        let (host, key) = (server.address, &server.key);
        let long = "x".repeat(bytes);
        raw(&server, format!("GET /v1/whoami HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\nX-Long: {long}\r\n\r\n").as_bytes())
    };
    assert_eq!(status(&with(1000)), "200");
    assert!(["431", ""].contains(&status(&with(200 << 10))), "{}", with(200 << 10));
    // Half a request, and none at all.
    for start in ["", "GET /v1/whoami HTTP/1.1\r\nHost: "] {
        let began = Instant::now();
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(start.as_bytes()).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap_or_else(|error| panic!("`{start}` is waited for: {error}"));
        assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
    }
}

// T-NET-06.
#[test]
fn a_key_is_stored_as_a_digest_expires_and_is_guessed_slowly() {
    let mut server = Server::start(&[]);
    let who = |server: &Server, key: &str| server.send("GET /v1/whoami", Some(key), &[], b"").status;
    let made = server.post("/v1/keys", &json!({ "role": "admin", "expires": "1s", "name": "short" })).expect(201).json();
    let key = made["key"].as_str().unwrap();
    assert!(key.len() >= 64, "{key}");
    let (began, mut counted) = (Instant::now(), false);
    while who(&server, key) == 200 {
        counted = true;
        assert!(began.elapsed() < Duration::from_secs(30), "it does not expire");
    }
    assert!(counted || began.elapsed() > Duration::from_secs(1));
    let began = Instant::now();
    assert_eq!(who(&server, "sk-guessed"), 401);
    assert!(began.elapsed() >= Duration::from_millis(20), "{:?}", began.elapsed());
    // The answer with a new key is never kept, not even for a request that is sent twice.
    let again =
        |server: &Server| server.with_json("POST", "/v1/keys", &[("Idempotency-Key", "one")], &json!({ "role": "consumer" }));
    let (first, second) = (again(&server).expect(201).json(), again(&server).expect(201).json());
    assert_ne!(first["key"], second["key"]);
    let keys = [server.key.clone(), key.to_owned(), first["key"].as_str().unwrap().to_owned()];
    server.kill_and_restart();
    for path in server.paths().into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).unwrap();
        for key in &keys {
            let is_there = bytes.windows(key.len()).any(|part| part == key.as_bytes());
            assert!(!is_there, "{} holds a key", path.display());
        }
    }
    assert!(server.log().iter().all(|line| keys.iter().all(|key| !line.contains(key))));
    let data = server.paths().into_iter().find(|path| path.ends_with("data")).unwrap();
    assert_eq!(std::fs::metadata(data).unwrap().permissions().mode() & 0o777, 0o700);
}

// A change may be made even if its client does not wait for it.
#[test]
fn a_change_whose_client_disconnects_is_in_the_audit_log() {
    let server = Server::start(&[]);
    let id = server.post("/v1/sandboxes", &json!({})).expect(201).json()["id"].as_str().unwrap().to_owned();
    let body = r#"{"command":"sleep 600"}"#;
    let (host, key, length) = (server.address, &server.key, body.len());
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!(
        "POST /v1/sandboxes/{id}/actions/bash HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let began = Instant::now();
    let wait = |is_over: &dyn Fn() -> bool| {
        while !is_over() {
            assert!(began.elapsed() < Duration::from_secs(60), "{}", server.get("/v1/audit").text());
            std::thread::park_timeout(Duration::from_millis(50));
        }
    };
    wait(&|| server.send("GET /metrics", None, &[], b"").text().lines().any(|line| line == "sandlite_running 1"));
    drop(stream);
    wait(&|| {
        let rows = server.get("/v1/audit").expect(200).json();
        let is_it = |row: &serde_json::Value| row["path"].as_str().unwrap().ends_with("/actions/bash") && row["status"] == 499;
        rows.as_array().unwrap().iter().any(is_it)
    });
}

// T-NET-06: the setting is still there when the key has been replaced.
// T-NET-05: the counts are those of all tenants.
#[test]
fn metrics_need_a_token_if_one_is_set() {
    let server = Server::start(&["metrics-token=a-secret"]);
    for key in [None, Some(server.key.as_str()), Some("a-secre"), Some("a-secret2")] {
        assert_eq!(server.send("GET /metrics", key, &[], b"").error(), (401, "unauthorized".to_owned()), "{key:?}");
    }
    assert!(server.send("GET /metrics", Some("a-secret"), &[], b"").expect(200).text().contains("sandlite_requests_total"));
}

#[test]
fn a_first_key_that_was_revoked_stays_revoked() {
    let mut server = Server::start(&[]);
    let second = server.key_of("default", "admin");
    let id = server.get("/v1/whoami").expect(200).json()["key"].as_str().unwrap().to_owned();
    server.delete(&format!("/v1/keys/{id}")).expect(204);
    let setting = format!("first-key={}", server.key);
    server.kill_and_restart_with(&setting);
    server.get("/v1/whoami").expect(401);
    server.send("GET /v1/whoami", Some(&second), &[], b"").expect(200);
}

// T-NET-05: what an admin sees is the tenant's own; nothing of a name is part of a path.
#[test]
fn keys_and_the_audit_log_are_those_of_the_tenant_and_names_are_not_paths() {
    let server = Server::start(&[]);
    let other = server.key_of("evil-corp", "admin");
    let get = |path: &str| server.send(&format!("GET {path}"), Some(&other), &[], b"").expect(200).json();
    server.post("/v1/sandboxes", &json!({ "name": "audited" })).expect(201);
    let audited = server.get("/v1/audit").expect(200).json();
    let row = &audited[0];
    assert_eq!((&row["method"], &row["status"]), (&json!("POST"), &json!(201)), "{audited}");
    assert!(row["path"] == "/v1/sandboxes" && row["request"].is_string(), "{row}");
    assert_eq!(get("/v1/audit"), json!([]));
    assert_eq!(get("/v1/keys").as_array().unwrap().len(), 1);
    assert_eq!(server.get("/v1/keys").json().as_array().unwrap().len(), 1);
    let headers = [("X-Session-ID", "../../evil")];
    server.send("POST /v1/sandbox/execute", Some(&other), &headers, br#"{"command":"true"}"#).expect(200);
    assert!(server.files_named("evil").is_empty(), "{:?}", server.files_named("evil"));
}
