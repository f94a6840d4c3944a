//! Sessions: files that runs share, and the sandbox of a session.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::skill;
use crate::http::{Answer, Server};

impl Server {
    fn shell(&self, session: &str, action: &str, body: Value) -> Answer {
        self.with_json("POST", &format!("/v1/sandbox/{action}"), &[("X-Session-ID", session)], &body)
    }

    fn execute(&self, session: &str, command: &str) -> Value {
        self.shell(session, "execute", json!({ "command": command })).expect(200).json()
    }

    fn session_files(&self, session: &str) -> Vec<String> {
        let rows = self.get(&format!("/v1/sessions/{session}/files")).expect(200).json();
        rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn runs_of_a_session_find_the_files_of_earlier_ones() {
    let server = Server::start(&[]);
    let script = r#"
cat "$SANDBOX_SESSION_DIR/count" "$SANDBOX_INPUT_DIR/count" 2>/dev/null
count=$(cat /sandbox/session/count 2>/dev/null || echo 0)
echo $((count + 1)) > /sandbox/out/session/count
echo kept > /sandbox/out/files/artifact.txt
"#;
    server.push(&skill("count", "1.0.0", script)).expect(201);
    let run = |session: &str| server.run(&json!({ "skill": "count", "session_id": session }));
    assert_eq!(server.session_files("a"), Vec::<String>::new());
    assert_eq!(run("a").get("logs"), None);
    assert_eq!(run("a")["logs"], "1\n1\n");
    assert_eq!(run("b").get("logs"), None);
    assert_eq!(server.session_files("a"), ["artifact.txt", "count"]);
    let file = server.get("/v1/sessions/a/files/count").expect(200);
    assert_eq!((file.text().as_str(), file.header("content-type")), ("2\n", Some("application/octet-stream")));
    server.delete("/v1/sessions/a/files/count").expect(204);
    assert_eq!(run("a").get("logs"), None);
    assert_eq!(server.get("/v1/files?session_id=a").expect(200).json().as_array().unwrap().len(), 2);
    assert_eq!(server.get("/v1/sessions/a/files/none").error(), (404, "not_found".to_owned()));
    let unknown = server.get("/v1/sessions/none/files/x").expect(404).json();
    assert_eq!(unknown["message"], "session not found");
    server.delete("/v1/sessions/a").expect(204);
    assert_eq!((server.delete("/v1/sessions/a").status, server.session_files("a").len()), (404, 0));
    assert_eq!(server.session_files("b").len(), 2);
}

#[test]
fn the_sandbox_of_a_session_runs_commands_and_keeps_files() {
    let mut server = Server::start(&[]);
    assert_eq!(server.execute("s", "pwd; ls; echo oops >&2; exit 3"), {
        json!({ "stdout": "/sandbox/session\noutputs\nskills\n", "stderr": "oops\n", "exit_code": 3 })
    });
    let write = |path: &str, content: &str, append: bool| {
        server.shell("s", "write-file", json!({ "path": path, "content": content, "append": append }))
    };
    assert_eq!(write("/sandbox/session/deep/a.txt", "one ", false).expect(200).json(), json!({ "status": "ok" }));
    write("/sandbox/session/deep/a.txt", "two", true).expect(200);
    let read = server.shell("s", "read-file", json!({ "path": "/sandbox/session/deep/a.txt" })).expect(200).json();
    assert_eq!(read, json!({ "content": "one two", "size": 7 }));
    let bytes: Vec<u8> = (0..=255).collect();
    let place = [("path", "/sandbox/session/raw.bin")];
    let answer = server.form("POST /v1/sandbox/upload-file", &[("X-Session-ID", "s")], &place, ("raw.bin", &bytes)).expect(200);
    assert_eq!(answer.json(), json!({ "status": "ok", "path": "/sandbox/session/raw.bin", "size": 256 }));
    let download = server.shell("s", "download-file", json!({ "path": "/sandbox/session/raw.bin" })).expect(200);
    assert!(download.body == bytes && download.header("content-type") == Some("application/octet-stream"));
    let list = |body: Value| -> Vec<String> {
        let listed = server.shell("s", "list-dir", body).expect(200).json();
        listed["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()[17..].to_owned()).collect()
    };
    let mut all = list(json!({ "path": "/sandbox/session" }));
    all.sort();
    assert_eq!(all, ["deep", "deep/a.txt", "outputs", "raw.bin", "skills"]);
    assert_eq!(list(json!({ "path": "/sandbox/session", "max_depth": 1 })).len(), 4);

    // Nothing is lost when the server is, and the files of a session are those that were synced.
    server.kill_and_restart();
    assert_eq!(server.execute("s", "cat deep/a.txt; : > empty")["stdout"], "one two");
    assert!(server.session_files("s").is_empty());
    assert_eq!(server.shell("s", "sync", json!({})).expect(200).json(), json!({ "status": "ok" }));
    assert_eq!(server.session_files("s"), ["deep/a.txt", "raw.bin"]);
    server.execute("s", "echo three > deep/a.txt");
    server.delete("/v1/sandbox/s").expect(204);
    assert_eq!(server.delete("/v1/sandbox/s").error(), (404, "not_found".to_owned()));
    assert_eq!(server.get("/v1/sessions/s/files/deep%2Fa.txt").expect(200).text(), "three\n");
    // A new sandbox begins with them.
    assert_eq!(server.execute("s", "cat deep/a.txt; ls")["stdout"], "three\ndeep\noutputs\nraw.bin\nskills\n");
}

// After a restart only the row of a session has the moment of its last use.
#[test]
fn a_session_that_is_used_after_a_restart_is_noted_as_used() {
    let mut server = Server::start(&[]);
    server.execute("s", "echo x > y");
    let catalog = server.paths().into_iter().find(|path| path.ends_with("catalog.db")).unwrap();
    let used_at = || -> i64 {
        let catalog = rusqlite::Connection::open(&catalog).unwrap();
        catalog.query_row("SELECT used_at FROM session WHERE name = 's'", [], |row| row.get(0)).unwrap()
    };
    let before = used_at();
    server.kill_and_restart();
    assert_eq!(server.execute("s", "cat y")["stdout"], "x\n");
    assert!(used_at() > before);
}

// Its database is damaged while it runs, so that its changes cannot be stored.
#[test]
fn a_command_whose_changes_cannot_be_stored_uses_its_fuel() {
    let server = Server::start(&[]);
    server.execute("s", "true");
    let fuel = || server.get("/v1/usage").expect(200).json()["fuel_this_hour"].as_u64().unwrap();
    let is_of_session = |path: &PathBuf| path.parent().is_some_and(|above| above.ends_with("sessions"));
    let database = server.paths().into_iter().find(|path| is_of_session(path) && path.extension().is_some_and(|end| end == "db"));
    let (database, before) = (database.unwrap(), fuel());
    std::thread::scope(|scope| {
        let command = json!({ "command": "for i in $(seq 1 900); do :; done; sleep 3; echo x > /sandbox/session/x" });
        let server = &server;
        let running = scope.spawn(move || server.shell("s", "execute", command));
        let began = Instant::now();
        while !server.get("/metrics").text().contains("sandlite_running 1") {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
        // The loop takes much less than a second, and then the command rests.
        let looked = Instant::now();
        while looked.elapsed() < Duration::from_secs(1) {
            std::thread::park_timeout(Duration::from_millis(100));
        }
        for path in [database.clone(), database.with_extension("db-wal")] {
            std::fs::File::options().write(true).open(path).unwrap().set_len(0).unwrap();
        }
        assert_eq!(running.join().unwrap().error(), (422, "execution_error".to_owned()));
    });
    assert!(fuel() > before + 100_000, "{before} {}", fuel());
}

#[test]
fn a_session_is_not_idle_while_a_command_runs_in_it() {
    let server = Server::start(&["session-idle=1s", "sweep=1s"]);
    server.execute("s", "sleep 5; echo done > x");
    assert_eq!(server.execute("s", "cat x")["stdout"], "done\n");
}

#[test]
fn a_command_ends_with_the_sandbox_of_its_session() {
    let server = Server::start(&[]);
    for path in ["/v1/sandbox/s", "/v1/sessions/s"] {
        std::thread::scope(|scope| {
            let body = json!({ "command": "sleep 600", "timeout_ms": 600_000 });
            let running = scope.spawn(|| server.shell("s", "execute", body));
            let began = Instant::now();
            // A command is counted before the sandbox of its session exists.
            while server.delete(path).status != 204 {
                assert!(began.elapsed() < Duration::from_secs(60));
            }
            let ended = running.join().unwrap().expect(200).json();
            assert!(ended["exit_code"] != 0 && began.elapsed() < Duration::from_secs(60), "{path}: {ended}");
        });
    }
}

#[test]
fn a_session_that_cannot_be_stored_keeps_no_other_one() {
    let mut server = Server::start(&["sweep=1s"]);
    let databases = |server: &Server| -> Vec<PathBuf> {
        let is_database = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "db");
        let is_of_session = |path: &PathBuf| path.parent().is_some_and(|above| above.ends_with("sessions"));
        server.paths().into_iter().filter(is_database).filter(is_of_session).collect()
    };
    server.execute("a", "echo one > x");
    let first = databases(&server);
    server.execute("b", "echo two > y");
    server.kill();
    let log = first[0].with_extension("db-wal");
    let _ = std::fs::remove_file(log);
    std::fs::write(&first[0], b"not a database").unwrap();
    server.kill_and_restart_with("session-idle=1s");
    let began = Instant::now();
    while server.session_files("b").is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", databases(&server));
        std::thread::park_timeout(Duration::from_millis(50));
    }
    assert_eq!((server.session_files("a").len(), server.session_files("b")), (0, vec!["y".to_owned()]));
}

#[test]
fn a_skill_is_brought_into_the_sandbox_of_a_session() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", "echo from the session")).expect(201);
    let files = server.shell("s", "upload-skill", json!({ "skill": "echo" })).expect(200).json();
    assert_eq!(files, json!({ "files": ["SKILL.md", "main.sh"] }));
    assert_eq!(server.execute("s", "bash skills/echo/main.sh")["stdout"], "from the session\n");
    for body in [json!({ "skill": "none" }), json!({ "skill": "echo", "version": "9.0.0" })] {
        assert_eq!(server.shell("s", "upload-skill", body).error(), (404, "skill_not_found".to_owned()));
    }
    assert_eq!(server.shell("s", "upload-skill", json!({})).error().0, 400);
}

#[test]
fn paths_out_of_the_session_and_requests_without_one_are_refused() {
    let server = Server::start(&[]);
    for action in ["execute", "read-file", "write-file", "list-dir", "download-file", "upload-skill", "sync"] {
        let answer = server.post(&format!("/v1/sandbox/{action}"), &json!({ "path": "/sandbox/session/x", "command": "true" }));
        assert_eq!(answer.error(), (400, "bad_request".to_owned()), "{action}");
    }
    for path in ["/etc/passwd", "/sandbox/session/../x", "x"] {
        for (action, code) in [("read-file", "read_error"), ("write-file", "write_error"), ("list-dir", "list_error")] {
            assert_eq!(server.shell("s", action, json!({ "path": path })).error(), (400, code.to_owned()), "{action} {path}");
        }
        let place = [("path", path)];
        assert_eq!(server.form("POST /v1/sandbox/upload-file", &[("X-Session-ID", "s")], &place, ("x", b"")).error().0, 400);
        assert_eq!(server.shell("s", "execute", json!({ "command": "true", "workdir": path })).error().0, 400);
    }
    assert_eq!(
        server.shell("s", "read-file", json!({ "path": "/sandbox/session/none" })).error(),
        (400, "read_error".to_owned())
    );
    assert_eq!(server.shell("s", "execute", json!({})).error(), (400, "bad_request".to_owned()));
    let over = server.shell("s", "execute", json!({ "command": "sleep 1000", "timeout_ms": 50 })).expect(200).json();
    assert_eq!(over["exit_code"], 124, "{over}");
    let large = json!({ "path": "/sandbox/session/x", "content": "x".repeat(11 << 20) });
    assert_eq!(server.shell("s", "write-file", large).status, 413);
    assert_eq!(server.get("/v1/sessions/a%0Ab/files").status, 400);
}

// T-NET-08: whatever begins a session, and a session that left nothing takes no place for ever.
#[test]
fn a_tenant_has_a_limited_number_of_sessions_and_empty_ones_are_forgotten() {
    let mut server = Server::start(&["sandboxes-of-tenant=2", "sweep=1s"]);
    server.push(&skill("none", "1.0.0", "true")).expect(201);
    let execute = |server: &Server, session: &str| server.shell(session, "execute", json!({ "command": "true" }));
    execute(&server, "a").expect(200);
    server.post("/v1/executions", &json!({ "skill": "none", "session_id": "b" })).expect(200);
    let refused = execute(&server, "c").expect(429);
    assert_eq!(refused.json()["details"]["quota"], "sessions");
    assert!(refused.header("retry-after").is_some());
    server.post("/v1/executions", &json!({ "skill": "none", "session_id": "c" })).expect(429);
    execute(&server, "a").expect(200);
    execute(&server, "b").expect(200);
    server.kill_and_restart_with("session-idle=1s");
    let began = Instant::now();
    while execute(&server, "c").status == 429 {
        assert!(began.elapsed() < Duration::from_secs(60), "empty sessions are still counted");
        std::thread::park_timeout(Duration::from_millis(100));
    }
    execute(&server, "c").expect(200);
}
