//! A server that is killed in the middle of its work: what it has acknowledged is there, and nothing stays locked.
//!
//! `SANDLITE_CYCLES` is how often it is killed: 5 by default, 100 in the long form.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::http::{Server, sandlite};

const CLIENTS: usize = 4;

#[test]
fn every_acknowledged_write_survives_a_server_that_is_killed() {
    let cycles: usize = std::env::var("SANDLITE_CYCLES").ok().and_then(|cycles| cycles.parse().ok()).unwrap_or(5);
    // Runs that do not end take places: there are enough for the others.
    // At its end it reads more than a thousand files in a second.
    let mut server = Server::start(&["concurrent=32", "concurrent-of-tenant=32", "sharing=32", "requests-per-second=1000000"]);
    let ids: Vec<String> = (0..CLIENTS)
        .map(|number| {
            let made = server.post("/v1/sandboxes", &json!({ "name": format!("crash-{number}") })).expect(201);
            made.json()["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let fields = json!({ "name": "endless", "description": "d", "lang": "bash", "code": "sleep 1000" });
    server.post("/v1/skills/from-fields", &fields).expect(201);
    let begun: Mutex<Vec<String>> = Mutex::default();
    let acknowledged: Mutex<BTreeMap<(usize, String), String>> = Mutex::default();
    let made: Mutex<Vec<String>> = Mutex::default();
    for cycle in 0..cycles {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (client, id) in ids.iter().enumerate() {
                let (server, stop, acknowledged, made, begun) = (&server, &stop, &acknowledged, &made, &begun);
                scope.spawn(move || {
                    let mut number = 0;
                    while !stop.load(Ordering::Relaxed) {
                        number += 1;
                        let (name, content) = (format!("c{cycle}-{number}"), format!("{client} {cycle} {number}"));
                        let is_run = number % 3 == 0;
                        let answer = if is_run {
                            let command = json!({ "command": format!("printf '%s' '{content}' > /{name}") });
                            server.try_json("POST", &format!("/v1/sandboxes/{id}/actions/bash"), &command)
                        } else {
                            server.try_send("PUT", &format!("/v1/sandboxes/{id}/files/{name}"), content.as_bytes())
                        };
                        if answer.is_some_and(|status| status < 300) {
                            acknowledged.lock().unwrap().insert((client, name), content);
                        }
                        if number == 1
                            && let Some(answer) =
                                server.try_answer("POST", "/v1/executions", br#"{"skill":"endless","async":true}"#)
                            && answer.status == 202
                        {
                            begun.lock().unwrap().push(answer.json()["execution_id"].as_str().unwrap().to_owned());
                        }
                        if number % 10 == 0
                            && let Some(answer) = server.try_answer("POST", "/v1/sandboxes", b"{}")
                            && answer.status == 201
                        {
                            made.lock().unwrap().push(answer.json()["id"].as_str().unwrap().to_owned());
                        }
                    }
                });
            }
            // Some work in each cycle, however slow the machine is.
            let before = acknowledged.lock().unwrap().len();
            while acknowledged.lock().unwrap().len() < before + 10 {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            server.kill();
            stop.store(true, Ordering::Relaxed);
        });
        server.restart();
        // Those of this cycle, and of every cycle after the last one.
        let is_new = |name: &str| cycle + 1 == cycles || name.starts_with(&format!("c{cycle}-"));
        for ((client, name), content) in acknowledged.lock().unwrap().iter().filter(|((_, name), _)| is_new(name)) {
            let found = server.get(&format!("/v1/sandboxes/{}/files/{name}", ids[*client]));
            assert_eq!((found.status, found.text()), (200, content.clone()), "cycle {cycle}: {name}");
        }
        for id in made.lock().unwrap().drain(..) {
            server.get(&format!("/v1/sandboxes/{id}")).expect(200);
            server.delete(&format!("/v1/sandboxes/{id}")).expect(204);
        }
        // A run that was under way is recorded as interrupted: of a skill and of a sandbox.
        for id in begun.lock().unwrap().drain(..) {
            let run = server.get(&format!("/v1/executions/{id}")).expect(200).json();
            assert_eq!((&run["status"], &run["error"]), (&json!("failed"), &json!("interrupted: the server was stopped")));
        }
        assert_eq!(server.get("/v1/executions?status=running").expect(200).json()["items"], json!([]));
        for id in &ids {
            let rows = server.post(&format!("/v1/sandboxes/{id}/actions/history"), &json!({ "limit": 5 })).expect(200).json();
            assert!(rows["runs"].as_array().unwrap().iter().all(|run| run["status"] != "running"), "{rows}");
        }
        // Nothing stays locked: each sandbox can be written at once.
        for id in &ids {
            let command = json!({ "command": "echo free" });
            let ran = server.post(&format!("/v1/sandboxes/{id}/actions/bash"), &command).expect(200);
            assert_eq!(ran.json()["stdout"], "free\n");
        }
    }
    assert!(acknowledged.lock().unwrap().len() >= cycles * 10);
}

#[test]
fn a_second_server_on_the_same_data_is_refused() {
    let server = Server::start(&[]);
    let fields = json!({ "name": "endless", "description": "d", "lang": "bash", "code": "sleep 1000" });
    server.post("/v1/skills/from-fields", &fields).expect(201);
    let begun = server.post("/v1/executions", &json!({ "skill": "endless", "async": true })).expect(202).json();
    let data = server.paths().into_iter().find(|path| path.ends_with("data")).unwrap();
    let args = ["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let second = sandlite(&args, data.parent().unwrap()).stdin(std::process::Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && text.contains("another server uses it"), "{text}");
    let execution = server.get(&format!("/v1/executions/{}", begun["execution_id"].as_str().unwrap())).expect(200).json();
    assert_eq!(execution["status"], "running");
}

#[test]
fn a_run_that_ends_while_the_server_stops_has_its_response() {
    for _ in 0..6 {
        let server = Server::start(&[]);
        let id = server.post("/v1/sandboxes", &json!({})).expect(201).json()["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/sandboxes/{id}/actions/bash");
        let status = std::thread::scope(|scope| {
            let running = scope.spawn(|| server.try_json("POST", &path, &json!({ "command": "sleep 0.3" })));
            let is_running =
                || server.send("GET /metrics", None, &[], b"").text().lines().any(|line| line == "sandlite_running 1");
            while !is_running() && !running.is_finished() {}
            server.terminate();
            running.join().unwrap()
        });
        assert_eq!(status, Some(200));
    }
}
