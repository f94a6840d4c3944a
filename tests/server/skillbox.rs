//! Skillbox's `/v1`: behavior that its clients rely on, rejected requests, and isolation of tenants (T-NET-05 to T-NET-07).

mod files;
mod retention;
mod sessions;
mod skills;
mod tenants;
mod texts;

use ::skills::{File, pack};
use serde_json::{Value, json};

use super::http::{Answer, Server};

/// A skill in bash that writes its input to its output, prints, and leaves a file with a page.
const ECHO: &str = r#"
echo "printed by $(jq -r '.name // "nobody"' input.json)"
cp input.json "$SANDBOX_OUTPUT"
mkdir -p "$SANDBOX_FILES_DIR/nested"
echo '<script>alert(1)</script>' > "$SANDBOX_FILES_DIR/nested/page.html"
"#;
/// One that never ends.
const ENDLESS: &str = "echo begun; sleep 1000";

fn skill(name: &str, version: &str, script: &str) -> Vec<File> {
    let head = format!("---\nname: {name}\nversion: \"{version}\"\ndescription: A test.\ntimeout: 60s\n---\n# Text\n\n");
    vec![File::new("SKILL.md", head), File::new("main.sh", script)]
}

impl Server {
    fn push_as(&self, key: &str, files: &[File]) -> Answer {
        self.send("POST /v1/skills", Some(key), &[("Content-Type", "application/zip")], &pack(files))
    }

    fn push(&self, files: &[File]) -> Answer {
        self.push_as(&self.key, files)
    }

    fn run(&self, body: &Value) -> Value {
        self.post("/v1/executions", body).expect(200).json()
    }

    /// Starts a background run; returns its id.
    fn begin(&self, skill: &str) -> String {
        let answer = self.post("/v1/executions", &json!({ "skill": skill, "async": true })).expect(202);
        let (body, place) = (answer.json(), answer.header("location").map(str::to_owned));
        let id = body["execution_id"].as_str().unwrap().to_owned();
        assert_eq!((body["status"].as_str(), place), (Some("running"), Some(format!("/v1/executions/{id}"))));
        id
    }

    /// The events of an execution, to their end: names and data.
    fn events(&self, id: &str) -> Vec<(String, Value)> {
        let answer = self.get(&format!("/v1/executions/{id}/events")).expect(200);
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        let text = answer.text();
        let events = text.split("\n\n").filter_map(|event| {
            let (name, data) = event.split_once('\n')?;
            Some((name.strip_prefix("event: ")?.to_owned(), serde_json::from_str(data.strip_prefix("data: ")?).unwrap()))
        });
        events.collect()
    }
}

#[test]
fn a_run_returns_its_output_as_it_was_written_and_its_files_without_a_key() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    // Numbers stay as they were written: a client's own digits, not those of a float.
    let body = br#"{"skill":"echo", "input": { "name": "me", "big": 123456789012345678901234567890, "half": 2.50 }}"#;
    let text = server.send("POST /v1/executions", Some(&server.key), &[], body).expect(200).text();
    assert!(text.contains(r#""output":{"name":"me","big":123456789012345678901234567890,"half":2.50}"#), "{text}");
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&result["status"], &result["error"]), (&json!("success"), &Value::Null));
    assert_eq!((&result["logs"], &result["files_list"]), (&json!("printed by me\n"), &json!(["nested/page.html"])));
    assert!(result["duration_ms"].as_u64() > Some(0), "{text}");

    let id = result["execution_id"].as_str().unwrap();
    let shown = server.get(&format!("/v1/executions/{id}")).expect(200).json();
    for (name, expected) in [("skill_name", "echo"), ("skill_version", "1.0.0"), ("tenant_id", "default"), ("status", "success")]
    {
        assert_eq!(shown[name], expected);
    }
    assert!(shown["created_at"].as_str() <= shown["finished_at"].as_str());
    let logs = server.get(&format!("/v1/executions/{id}/logs")).expect(200);
    assert_eq!((logs.text().as_str(), logs.header("content-type")), ("printed by me\n", Some("text/plain; charset=utf-8")));

    let url = result["files_url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", server.address)).unwrap();
    let archive = server.send(&format!("GET {path}"), None, &[], &[]).expect(200);
    assert!(archive.body.starts_with(&[0x1f, 0x8b]));
    assert_eq!(archive.header("content-type"), Some("application/octet-stream"));
    assert_eq!(archive.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(untar(&archive.body), [("nested/page.html".to_owned(), "<script>alert(1)</script>\n".to_owned())]);
    // A changed address is invalid, for an execution that exists as for one that does not.
    for changed in
        [path.replace("signature=", "signature=0"), path.replace("expires=", "expires=9"), path.replace(id, &"0".repeat(36))]
    {
        assert_eq!(server.send(&format!("GET {changed}"), None, &[], &[]).error(), (403, "forbidden".to_owned()));
    }
    assert_eq!(server.send(&format!("GET /artifacts/{id}/files.tar.gz"), None, &[], &[]).status, 403);
}

// The files of a tar archive in gzip.
fn untar(bytes: &[u8]) -> Vec<(String, String)> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tar.gz");
    std::fs::write(&path, bytes).unwrap();
    let run = |args: &[&str]| {
        let output = std::process::Command::new("tar").args(args).arg(&path).current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let names = run(&["-tzf"]);
    run(&["-xzf"]);
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    names.lines().map(|name| (name.to_owned(), read(name))).collect()
}

#[test]
fn an_address_of_artifacts_expires() {
    let server = Server::start(&["artifact-time=0s"]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    let result = server.run(&json!({ "skill": "echo" }));
    let path = result["files_url"].as_str().unwrap().split_once("/artifacts/").unwrap().1.to_owned();
    assert_eq!(server.send(&format!("GET /artifacts/{path}"), None, &[], &[]).status, 403);
}

#[test]
fn a_skill_that_cannot_run_is_rejected_or_a_result_with_the_reason() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    server.push(&skill("fails", "1.0.0", "echo out; echo err >&2; exit 42")).expect(201);
    for body in
        ["", "not json", "[]", "{}", r#"{"skill": ""}"#, r#"{"skill": "../echo"}"#, r#"{"skill": "echo", "version": "one"}"#]
    {
        let answer = server.send("POST /v1/executions", Some(&server.key), &[], body.as_bytes());
        assert_eq!(answer.error(), (400, "bad_request".to_owned()), "{body}");
    }
    assert_eq!(server.post("/v1/executions", &json!({ "skill": "none" })).error(), (404, "not_found".to_owned()));
    let failed = |body: Value, expected: &str| {
        let result = server.run(&body);
        assert_eq!(result["status"], "failed", "{result}");
        assert!(result["error"].as_str().unwrap().contains(expected), "{result}");
        // It can be looked at like any other.
        let id = result["execution_id"].as_str().unwrap();
        assert_eq!(server.get(&format!("/v1/executions/{id}")).expect(200).json()["error"], result["error"]);
        result
    };
    failed(json!({ "skill": "echo", "version": "9.9.9" }), "loading skill: unknown version `9.9.9`");
    failed(json!({ "skill": "none", "version": "1.0.0" }), "loading skill");
    failed(json!({ "skill": "echo", "env": { "PATH": "/" } }), "env var \"PATH\" is not allowed");
    failed(json!({ "skill": "echo", "input_files": ["00000000-0000-4000-a000-000000000000"] }), "not found");
    let result = failed(json!({ "skill": "fails" }), "command exited with code 42");
    assert_eq!(result["logs"], "out\n\nerr\n");
    assert!(result.get("output").is_none() && result.get("files_url").is_none(), "{result}");
}

#[test]
fn a_background_run_can_be_followed_and_cancelled() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    server.push(&skill("endless", "1.0.0", ENDLESS)).expect(201);
    let id = server.begin("echo");
    let events = server.events(&id);
    let printed: String = events.iter().filter_map(|(_, data)| data["text"].as_str()).collect();
    assert_eq!(printed, "printed by nobody\n");
    let (name, result) = events.last().unwrap();
    assert_eq!((name.as_str(), &result["status"], &result["execution_id"]), ("result", &json!("success"), &json!(id)));
    // The same for one that has ended: all that it printed, and the result.
    let again = server.events(&id);
    assert_eq!((again.len(), &again[0].1["text"], &again[1].1["status"]), (2, &json!("printed by nobody\n"), &json!("success")));
    assert_eq!(server.delete(&format!("/v1/executions/{id}")).error(), (409, "invalid_status".to_owned()));

    let id = server.begin("endless");
    assert_eq!(server.get(&format!("/v1/executions/{id}")).expect(200).json()["status"], "running");
    server.delete(&format!("/v1/executions/{id}")).expect(204);
    let (_, result) = server.events(&id).pop().unwrap();
    assert_eq!((&result["status"], &result["error"]), (&json!("failed"), &json!("execution was cancelled")));
    assert_eq!(server.get("/v1/executions/none/events").status, 404);
    assert_eq!(server.delete("/v1/executions/none").status, 404);
}

#[test]
fn a_full_queue_rejects_with_the_time_to_retry_and_starts_nothing() {
    let server = Server::start(&["concurrent=1", "concurrent-of-tenant=1", "queue-of-tenant=1"]);
    server.push(&skill("endless", "1.0.0", ENDLESS)).expect(201);
    let (running, waiting) = (server.begin("endless"), server.begin("endless"));
    for body in [json!({ "skill": "endless", "async": true }), json!({ "skill": "endless" })] {
        let refused = server.post("/v1/executions", &body);
        assert_eq!((refused.error(), refused.header("retry-after")), ((429, "limit_exceeded".to_owned()), Some("1")), "{body}");
    }
    let listed = server.get("/v1/executions").expect(200).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
    // Another tenant has a queue of its own.
    let other = server.key_of("other", "publisher");
    server.push_as(&other, &skill("echo", "1.0.0", ECHO)).expect(201);
    let theirs = server.send("POST /v1/executions", Some(&other), &[], br#"{"skill":"echo","async":true}"#).expect(202).json();
    // The one that waits ends at once, not when its turn comes.
    for id in [&waiting, &running] {
        server.delete(&format!("/v1/executions/{id}")).expect(204);
        assert_eq!(server.events(id).pop().unwrap().1["error"], "execution was cancelled");
    }
    let path = format!("GET /v1/executions/{}/events", theirs["execution_id"].as_str().unwrap());
    assert!(server.send(&path, Some(&other), &[], b"").expect(200).text().contains("\"status\":\"success\""));
}

#[test]
fn a_run_that_was_cut_off_is_failed_after_the_restart() {
    let mut server = Server::start(&[]);
    server.push(&skill("endless", "1.0.0", ENDLESS)).expect(201);
    let id = server.begin("endless");
    server.kill_and_restart();
    let shown = server.get(&format!("/v1/executions/{id}")).expect(200).json();
    assert_eq!((&shown["status"], &shown["error"]), (&json!("failed"), &json!("interrupted: the server was stopped")));
    assert!(shown["finished_at"].is_string());
}

#[test]
fn a_run_that_a_stopping_server_ends_is_recorded_as_interrupted() {
    let mut server = Server::start(&["grace=1s"]);
    server.push(&skill("endless", "1.0.0", ENDLESS)).expect(201);
    let id = server.begin("endless");
    server.terminate();
    server.restart();
    let shown = server.get(&format!("/v1/executions/{id}")).expect(200).json();
    assert_eq!((&shown["status"], &shown["error"]), (&json!("failed"), &json!("interrupted: the server was stopped")));
}

#[test]
fn executions_are_listed_in_pages() {
    let server = Server::start(&[]);
    for name in ["a", "b"] {
        server.push(&skill(name, "1.0.0", "true")).expect(201);
    }
    for name in ["a", "b", "a", "a"] {
        server.run(&json!({ "skill": name }));
    }
    server.run(&json!({ "skill": "a", "version": "2.0.0" }));
    let ids = |query: &str| -> (Vec<String>, Option<String>) {
        let page = server.get(&format!("/v1/executions?{query}")).expect(200).json();
        let items = page["items"].as_array().unwrap().iter();
        let ids = items.map(|item| item["execution_id"].as_str().unwrap().to_owned()).collect();
        (ids, page["next_cursor"].as_str().map(str::to_owned))
    };
    let (all, next) = ids("");
    assert_eq!((all.len(), next), (5, None));
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (page, next) = ids(&format!("limit=2{cursor}"));
        seen.extend(page);
        let Some(next) = next else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, all);
    assert_eq!((ids("skill=b").0.len(), ids("status=failed").0.len(), ids("skill=a&status=success").0.len()), (1, 1, 3));
    assert_eq!(server.get("/v1/executions?cursor=x").error(), (400, "bad_request".to_owned()));
    for limit in ["x", "0", "-1", "201"] {
        assert_eq!(server.get(&format!("/v1/executions?limit={limit}")).error(), (400, "bad_request".to_owned()), "{limit}");
    }
}

#[test]
fn a_tenant_that_has_used_its_fuel_runs_nothing_more_in_this_hour() {
    let server = Server::start(&["fuel-per-hour=1"]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    server.run(&json!({ "skill": "echo" }));
    for body in [json!({ "skill": "echo" }), json!({ "skill": "echo", "async": true })] {
        let answer = server.post("/v1/executions", &body);
        assert_eq!(answer.error(), (429, "limit_exceeded".to_owned()));
        assert!(answer.header("retry-after").is_some());
    }
    let command = json!({ "command": "true" });
    assert_eq!(server.with_json("POST", "/v1/sandbox/execute", &[("X-Session-ID", "s")], &command).status, 429);
}

#[test]
fn runs_are_counted_by_how_they_ended() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    server.run(&json!({ "skill": "echo" }));
    let metrics = server.send("GET /metrics", None, &[], &[]).expect(200).text();
    assert!(metrics.contains("sandlite_runs_total{kind=\"skill\",status=\"success\"} 1"), "{metrics}");
    assert!(metrics.contains("route=\"/v1/executions\""), "{metrics}");
}
