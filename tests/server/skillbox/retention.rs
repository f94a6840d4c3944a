//! What is kept and for how long, and what a fault of the server shows.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{ECHO, skill};
use crate::http::Server;

/// Files of the data directory that hold bytes of `/v1/files`, artifacts and sessions.
fn stored(server: &Server) -> usize {
    server.paths().iter().filter(|path| path.parent().is_some_and(|above| above.ends_with("files"))).count()
}

#[track_caller]
fn wait_until(what: &str, is_done: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

fn executions(server: &Server) -> usize {
    server.get("/v1/executions").expect(200).json()["items"].as_array().unwrap().len()
}

#[test]
fn executions_above_their_number_go_with_their_artifacts_and_uploads_stay() {
    let server = Server::start(&["executions-of-tenant=2", "sweep=1s"]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    server.form("POST /v1/files", &[], &[], ("x", b"mine")).expect(201);
    let first = server.run(&json!({ "skill": "echo" }));
    let address = first["files_url"].as_str().unwrap().split_once("/artifacts/").unwrap().1.to_owned();
    for _ in 0..3 {
        server.run(&json!({ "skill": "echo" }));
    }
    // Two executions with a file each, and the upload.
    wait_until("old executions stay", || executions(&server) == 2 && stored(&server) == 3);
    assert_eq!(server.get(&format!("/v1/executions/{}", first["execution_id"].as_str().unwrap())).status, 404);
    assert_eq!(server.send(&format!("GET /artifacts/{address}"), None, &[], b"").status, 404);
    assert_eq!(server.get("/v1/files").expect(200).json().as_array().unwrap().len(), 3);
}

#[test]
fn artifacts_above_their_bytes_go_and_their_executions_stay() {
    let server = Server::start(&["artifact-bytes-of-tenant=40B", "sweep=1s"]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    let (first, second) = (server.run(&json!({ "skill": "echo" })), server.run(&json!({ "skill": "echo" })));
    let shown = |run: &serde_json::Value| {
        server.get(&format!("/v1/executions/{}", run["execution_id"].as_str().unwrap())).expect(200).json()
    };
    wait_until("artifacts stay", || stored(&server) == 1 && shown(&first).get("files_url").is_none());
    assert_eq!((&shown(&first)["status"], &shown(&second)["files_list"]), (&json!("success"), &json!(["nested/page.html"])));
}

#[test]
fn old_executions_and_bytes_without_a_row_are_removed_at_a_restart() {
    let mut server = Server::start(&["execution-age=0s", "session-idle=0s", "sweep=1h"]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    server.run(&json!({ "skill": "echo" }));
    let upload = server.form("POST /v1/files", &[], &[], ("x", b"mine")).expect(201).json();
    let command = json!({ "command": "echo kept > /sandbox/session/kept.txt" });
    server.with_json("POST", "/v1/sandbox/execute", &[("X-Session-ID", "s")], &command).expect(200);
    let known = server.paths().into_iter().find(|path| path.ends_with(upload["id"].as_str().unwrap())).unwrap();
    std::fs::write(known.with_file_name("orphan"), "left by a crash").unwrap();
    assert_eq!((executions(&server), stored(&server)), (1, 3));
    let databases = |server: &Server| {
        let is_session = |path: &std::path::PathBuf| path.parent().is_some_and(|above| above.ends_with("sessions"));
        server.paths().into_iter().filter(is_session).count()
    };
    assert!(databases(&server) > 0);
    server.kill_and_restart();
    assert_eq!(executions(&server), 0);
    assert!(server.files_named("orphan").is_empty());
    // The sandbox of the session is synced into its files before it goes.
    assert_eq!(databases(&server), 0);
    assert_eq!(server.get("/v1/sessions/s/files/kept.txt").expect(200).text(), "kept\n");
    let id = upload["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/files/{id}/download")).expect(200).text(), "mine");
}

#[test]
fn an_internal_error_has_an_id_that_the_log_explains() {
    let server = Server::start(&[]);
    let upload = server.form("POST /v1/files", &[], &[], ("x", b"mine")).expect(201).json();
    let id = upload["id"].as_str().unwrap();
    let path = server.paths().into_iter().find(|path| path.ends_with(id)).unwrap();
    std::fs::remove_file(&path).unwrap();
    let answer = server.get(&format!("/v1/files/{id}/download")).expect(500);
    let (message, fault) = (answer.json()["message"].as_str().unwrap().to_owned(), answer.error().1);
    assert_eq!(fault, "internal_error");
    let fault = message.strip_prefix("internal error: the server's log has the details under `").unwrap().trim_end_matches('`');
    assert!(!answer.text().contains("No such file"), "{message}");
    wait_until("the fault is not in the log", || {
        server.log().iter().any(|line| line.starts_with(&format!("fault {fault}: ")) && line.contains("No such file"))
    });
}
