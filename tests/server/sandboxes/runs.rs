//! Runs: awaited, streamed, as jobs, cancelled.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::http::Server;
use super::{act, bash, created};

/// The events of a stream: names and data.
fn events(text: &str) -> Vec<(String, Value)> {
    let field = |block: &str, name: &str| block.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    text.split("\n\n")
        .filter_map(|block| Some((field(block, "event: ")?, serde_json::from_str(&field(block, "data: ")?).unwrap())))
        .collect()
}

fn open(server: &Server, id: &str, action: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "POST /v1/sandboxes/{id}/actions/{action} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        server.address,
        server.key,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[test]
fn a_failing_command_is_a_result_and_sessions_continue() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let failed = bash(&server, &id, "echo out; echo err >&2; exit 3");
    assert_eq!((&failed["exit_code"], &failed["stdout"], &failed["stderr"]), (&json!(3), &json!("out\n"), &json!("err\n")));
    let limited = act(&server, &id, "bash", json!({ "command": "sleep 100", "timeout_ms": 100 })).expect(200).json();
    assert_eq!(limited["status"], "limit");
    act(&server, &id, "bash", json!({ "command": "cd /tmp; x=7", "session": "s" })).expect(200);
    assert_eq!(act(&server, &id, "bash", json!({ "command": "pwd; echo $x", "session": "s" })).json()["stdout"], "/tmp\n7\n");
    assert_eq!(act(&server, &id, "python", json!({ "code": "print(6 * 7)" })).expect(200).json()["stdout"], "42\n");
    act(&server, &id, "kv_set", json!({ "key": "k", "value": [1] })).expect(200);
    assert_eq!(act(&server, &id, "kv_get", json!({ "key": "k" })).expect(200).json()["value"], json!([1]));
    assert_eq!(act(&server, &id, "list_skills", json!({})).expect(200).json()["skills"], json!([]));
    let usage = server.get("/v1/usage").expect(200).json();
    assert!(usage["fuel_this_hour"].as_u64().unwrap() > 1000 && usage["runs_this_hour"].as_u64().unwrap() >= 5, "{usage}");
    assert!(usage["sandboxes"] == 1 && usage["bytes"].as_u64().unwrap() > 1000, "{usage}");
}

#[test]
fn output_is_streamed_as_it_is_printed() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let path = format!("/v1/sandboxes/{id}/actions/bash");
    let answer = server.with_json(
        "POST",
        &path,
        &[("Accept", "text/event-stream")],
        &json!({ "command": "echo one; echo two >&2; printf '\\xff'; exit 4" }),
    );
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let events = events(&answer.text());
    let text = |name: &str| {
        events.iter().filter(|(known, _)| known == name).filter_map(|(_, data)| data["text"].as_str()).collect::<String>()
    };
    assert_eq!((text("stdout").as_str(), text("stderr").as_str()), ("one\n", "two\n"));
    assert!(events.iter().any(|(_, data)| data["base64"] == "/w=="), "{events:?}");
    let (name, data) = events.last().unwrap();
    assert_eq!((name.as_str(), &data["exit_code"]), ("result", &json!(4)));
    let refused = server.with_json(
        "POST",
        &format!("/v1/sandboxes/{id}/actions/read_file"),
        &[("Accept", "text/event-stream")],
        &json!({ "path": "/x" }),
    );
    let refused = self::events(&refused.text());
    assert_eq!((refused[0].0.as_str(), &refused[0].1["error"]), ("error", &json!("not_found")));
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

fn gauge(server: &Server, name: &str) -> u64 {
    let text = server.send("GET /metrics", None, &[], b"").text();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
}

#[test]
fn closing_the_connection_ends_the_run() {
    let server = Server::start(&["preset=permissive"]);
    let id = created(&server, json!({ "preset": "permissive" }));
    bash(&server, &id, "true");
    let mut stream = open(&server, &id, "bash", &json!({ "command": "echo begun; sleep 1000" }));
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    while !seen.contains("begun") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert_eq!(gauge(&server, "sandlite_running "), 1);
    drop(stream);
    until("the run ends with its connection", || gauge(&server, "sandlite_running ") == 0);
    // The sandbox is free at once.
    assert_eq!(bash(&server, &id, "echo again")["stdout"], "again\n");
}

// T-NET-08.
#[test]
fn a_reader_that_does_not_read_is_disconnected_and_the_sandbox_continues() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let slow = open(
        &server,
        &id,
        "bash",
        &json!({ "command": "yes 0123456789012345678901234567890123456789012345678901234567890123456789" }),
    );
    until("the run begins", || gauge(&server, "sandlite_running ") == 1);
    until("the run of the slow reader ends", || gauge(&server, "sandlite_running ") == 0);
    assert_eq!(bash(&server, &id, "echo free")["stdout"], "free\n");
    drop(slow);
}

#[test]
fn jobs_run_without_a_connection_and_can_be_cancelled() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let path = format!("/v1/sandboxes/{id}/actions/bash");
    let begin = |command: &str| {
        let answer = server.with_json("POST", &path, &[("Prefer", "respond-async")], &json!({ "command": command })).expect(202);
        answer.header("location").unwrap().to_owned()
    };
    let state = |place: &str| server.get(place).expect(200).json();
    let done = begin("echo done");
    until("the job ends", || state(&done)["status"] != "running");
    let ended = state(&done);
    assert_eq!(
        (&ended["status"], &ended["result"]["stdout"], &ended["action"]),
        (&json!("done"), &json!("done\n"), &json!("bash"))
    );
    let long = begin("sleep 1000");
    let waiting = begin("echo never");
    server.delete(&waiting).expect(204);
    server.delete(&long).expect(204);
    until("both end", || state(&long)["status"] == "cancelled" && state(&waiting)["status"] == "cancelled");
    let listed = server.get(&format!("/v1/sandboxes/{id}/jobs")).expect(200).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 3);
    server.get(&format!("/v1/sandboxes/{id}/jobs/none")).expect(404);
}

#[test]
fn sleeping_runs_leave_the_cores_to_other_runs_of_their_tenant() {
    let server = Server::start(&["sharing=2", "preset=permissive"]);
    let sleep = |id: &str| {
        let (path, body) = (format!("/v1/sandboxes/{id}/actions/bash"), json!({ "command": "sleep 1000" }));
        let answer = server.with_json("POST", &path, &[("Prefer", "respond-async")], &body).expect(202);
        answer.header("location").unwrap().to_owned()
    };
    let sandboxes: Vec<_> = (0..4).map(|_| created(&server, json!({}))).collect();
    let jobs: Vec<_> = sandboxes.iter().take(3).map(|id| sleep(id)).collect();
    // The third starts although two run on two cores, and so does a command that is awaited.
    until("three sleep", || gauge(&server, "sandlite_running ") == 3);
    assert_eq!(bash(&server, &sandboxes[3], "echo awake")["stdout"], "awake\n");
    jobs.iter().for_each(|job| drop(server.delete(job).expect(204)));
    until("all end", || gauge(&server, "sandlite_running ") == 0);
}

#[test]
fn deleting_a_sandbox_ends_its_runs_and_leaves_no_file() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let path = format!("/v1/sandboxes/{id}");
    let before = server.get("/v1/usage").json()["bytes"].clone();
    assert!(before.as_u64().unwrap() > 0);
    let headers = [("Prefer", "respond-async")];
    server.with_json("POST", &format!("{path}/actions/bash"), &headers, &json!({ "command": "sleep 1000" })).expect(202);
    until("the job runs", || gauge(&server, "sandlite_running ") == 1);
    server.delete(&path).expect(204);
    until("the job ends", || gauge(&server, "sandlite_running ") == 0);
    assert_eq!(server.files_named(&id), Vec::<String>::new());
    server.get(&path).expect(404);
}

#[test]
fn changes_are_listed_and_followed() {
    let server = Server::start(&[]);
    let id = created(&server, json!({}));
    let path = format!("/v1/sandboxes/{id}/events");
    let start = server.get(&path).expect(200).json()["version"].as_i64().unwrap();
    bash(&server, &id, "echo 1 > /one");
    let page = server.get(&format!("{path}?after={start}")).expect(200).json();
    assert_eq!((&page["events"][0]["path"], &page["events"][0]["kind"]), (&json!("/one"), &json!("created")));
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "GET {path}?after={start} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
        server.address, server.key
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut seen = String::new();
    let mut read = |part: &str| {
        let mut buffer = [0; 4096];
        while !seen.contains(part) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    read("/one");
    bash(&server, &id, "echo 2 > /two");
    read("\"path\":\"/two\"");
    server.get(&format!("{path}?after=x")).expect(400);
}

#[test]
fn agents_use_a_sandbox_over_the_model_context_protocol() {
    let server = Server::start(&[]);
    let call = |headers: &[(&str, &str)], method: &str, params: Value| {
        let accept = ("Accept", "application/json, text/event-stream");
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        server.with_json("POST", "/mcp", &[&[accept], headers].concat(), &body)
    };
    let bash = |headers: &[(&str, &str)], command: &str| {
        let answer = call(headers, "tools/call", json!({ "name": "bash", "arguments": { "command": command } })).expect(200);
        answer.json()["result"]["structuredContent"]["stdout"].clone()
    };
    let tools = call(&[], "tools/list", json!({})).expect(200).json();
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    assert!(tools.iter().any(|tool| tool["name"] == "bash") && !tools.iter().any(|tool| tool["name"] == "fork"));
    assert_eq!(bash(&[], "echo kept > /f; cat /f"), "kept\n");
    let main = server.get("/v1/sandboxes?name=main").json()["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(server.get(&format!("/v1/sandboxes/{main}/files/f")).body, b"kept\n");
    let other = created(&server, json!({ "files": { "/f": "other" } }));
    assert_eq!(bash(&[("X-Sandbox-ID", &other)], "cat /f"), "other");
    assert!(server.get("/v1/usage").json()["runs_this_hour"].as_u64().unwrap() >= 2);
    let stranger = server.key_of("other", "consumer");
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("X-Sandbox-ID", other.as_str()),
    ];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    assert_eq!(server.send("POST /mcp", Some(&stranger), &headers, body.as_bytes()).status, 404);
    assert_eq!(server.send("POST /mcp", None, &headers, body.as_bytes()).status, 401);
    // T-NET-01.
    let page = [&headers[..], &[("Origin", "https://elsewhere.example")]].concat();
    assert_eq!(server.send("POST /mcp", Some(&server.key), &page, body.as_bytes()).status, 403);
}
