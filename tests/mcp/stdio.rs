//! Tools, resources and prompts over standard input and output.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Client, sandlite, text};

const TOOLS: [&str; 30] = [
    "bash",
    "bisect",
    "blame",
    "changes",
    "checkpoint",
    "delete_file",
    "diff",
    "drop_sandbox",
    "edit_file",
    "export_snapshot",
    "fork",
    "glob",
    "grep",
    "history",
    "import_snapshot",
    "kv_delete",
    "kv_get",
    "kv_keys",
    "kv_set",
    "list_files",
    "list_sandboxes",
    "log",
    "move_file",
    "python",
    "read_file",
    "replay",
    "restore",
    "show",
    "undo",
    "write_file",
];

#[test]
fn a_client_receives_instructions() {
    let client = Client::start(&[]);
    assert_eq!(client.hello["serverInfo"]["name"], "sandlite");
    assert_eq!(client.hello["protocolVersion"], "2025-06-18");
    for capability in ["tools", "resources", "prompts"] {
        assert!(client.hello["capabilities"][capability].is_object(), "{capability}");
    }
    let instructions = client.hello["instructions"].as_str().unwrap();
    assert!(instructions.contains("/home/user") && !instructions.contains('{'), "{instructions}");
}

#[test]
fn every_tool_has_schemas_and_hints() {
    let mut client = Client::start(&[]);
    let listed = client.request("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS.into_iter().collect());
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name} {schema}");
            let properties = tool[schema]["properties"].as_object().unwrap();
            for (property, value) in properties {
                assert!(value["description"].is_string(), "{name} {schema} {property}: {value}");
            }
        }
        assert!(tool["inputSchema"]["properties"]["sandbox"].is_object(), "{name}");
        assert!(tool["description"].as_str().unwrap().len() > 15, "{name}");
        assert_eq!(tool["annotations"]["openWorldHint"], false, "{name}");
    }
    let hint = |name: &str, hint: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["annotations"][hint].clone();
    assert_eq!((hint("read_file", "readOnlyHint"), hint("read_file", "destructiveHint")), (true.into(), false.into()));
    assert_eq!((hint("bash", "readOnlyHint"), hint("bash", "destructiveHint")), (false.into(), true.into()));
    assert_eq!((hint("write_file", "idempotentHint"), hint("edit_file", "idempotentHint")), (true.into(), false.into()));
    assert_eq!((hint("fork", "readOnlyHint"), hint("fork", "destructiveHint")), (false.into(), false.into()));
}

#[test]
fn only_selected_tools_are_offered() {
    let mut client = Client::start(&["--tools", "read_file,bash"]);
    let listed = client.request("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bash", "read_file"]);
    // There is nothing that makes a second sandbox.
    assert!(tools.iter().all(|tool| tool["inputSchema"]["properties"].get("sandbox").is_none()), "{listed}");
    assert_eq!(client.data("bash", json!({ "command": "echo hi" }))["stdout"], "hi\n");
    let error = client.refused("tools/call", json!({ "name": "write_file", "arguments": {} }));
    assert_eq!(error["message"], "unknown tool `write_file`");
    let instructions = client.hello["instructions"].as_str().unwrap();
    let unknown = TOOLS.iter().find(|tool| !names.contains(tool) && instructions.contains(&format!("`{tool}`")));
    assert_eq!(unknown, None, "{instructions}");
    let numbers: Vec<u32> = instructions.lines().filter_map(|line| line.split_once(". ")?.0.parse().ok()).collect();
    assert_eq!(numbers, (1..=9).collect::<Vec<_>>(), "{instructions}");
}

#[test]
fn actions_for_programs_are_offered_by_name() {
    let mut client = Client::start(&["--tools", "bash,checkpoint,checkpoints,prune_versions,apply"]);
    let listed = client.request("tools/list", json!({}));
    let names: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bash", "checkpoint", "apply", "checkpoints", "prune_versions"]);
    client.data("bash", json!({ "command": "mkdir /out; echo one > /out/note" }));
    client.data("checkpoint", json!({ "name": "first" }));
    client.data("bash", json!({ "command": "echo two > /out/note" }));
    assert_eq!(client.data("checkpoints", json!({}))["checkpoints"][0]["name"], "first");
    let directory = tempfile::tempdir().unwrap();
    let applied = client.data("apply", json!({ "directory": directory.path(), "path": "/out" }));
    assert_eq!((&applied["is_applied"], &applied["files"][0]["path"]), (&json!(true), &json!("note")));
    assert_eq!(std::fs::read(directory.path().join("note")).unwrap(), b"two\n");
    assert_eq!(client.data("prune_versions", json!({ "keep_versions": 1 }))["checkpoints"], 1);
    let error = client.call("prune_versions", json!({}));
    assert!(text(&error).starts_with("error: missing limit"), "{}", text(&error));
    // They are not offered otherwise.
    let mut client = Client::start(&[]);
    let error = client.refused("tools/call", json!({ "name": "apply", "arguments": { "directory": directory.path() } }));
    assert_eq!(error["message"], "unknown tool `apply`");
}

#[test]
fn cut_output_refers_only_to_tools_that_are_offered() {
    let text = |tools: &str| {
        let mut client = Client::start(&["--tools", tools]);
        let text = client.call("bash", json!({ "command": "seq 30000" }))["content"][0]["text"].as_str().unwrap().to_owned();
        text.lines().last().unwrap().to_owned()
    };
    assert_eq!(text("bash,history"), "[the middle of the output is omitted: read all of it with `history` and run=1]");
    assert_eq!(text("bash"), "[the middle of the output is omitted: write long output to a file and read parts of it]");
}

#[test]
fn an_unknown_tool_cannot_be_chosen() {
    let directory = tempfile::tempdir().unwrap();
    let output = sandlite(&["mcp", "--tools", "bash,rm"], directory.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.starts_with("error: unknown tool `rm`: choose from bash, python, read_file, "), "{error}");
    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn sandboxes_are_listed_and_dropped() {
    let mut client = Client::start(&[]);
    client.data("fork", json!({ "name": "b" }));
    client.data("fork", json!({ "name": "a" }));
    assert_eq!(client.data("list_sandboxes", json!({}))["sandboxes"], json!(["main", "a", "b"]));
    assert_eq!(client.data("drop_sandbox", json!({ "name": "a" }))["dropped"], "a");
    assert_eq!(client.data("list_sandboxes", json!({}))["sandboxes"], json!(["main", "b"]));
    let gone = client.call("bash", json!({ "command": "true", "sandbox": "a" }));
    assert_eq!((gone["isError"].clone(), text(&gone)), (true.into(), "error: unknown sandbox `a`\nhint: use one of main, b"));
    assert_eq!(client.call("drop_sandbox", json!({ "name": "main" }))["isError"], true);
    assert_eq!(client.call("drop_sandbox", json!({ "name": "a" }))["isError"], true);
}

#[test]
fn bash_and_python_share_files_and_exit_statuses() {
    let mut client = Client::start(&[]);
    let ran = client.data("bash", json!({ "command": "echo 41 > n; echo oops >&2; exit 3" }));
    assert_eq!((&ran["exit_code"], &ran["stderr"], &ran["limit"]), (&json!(3), &json!("oops\n"), &Value::Null));
    let result = client.call("python", json!({ "code": "print(int(open('n').read()) + 1)" }));
    assert_eq!((text(&result), &result["structuredContent"]["stdout"]), ("42", &json!("42\n")));
    let ran = client.data("bash", json!({ "command": "cat; echo $X; pwd", "stdin": "in ", "env": { "X": "x" }, "cwd": "/tmp" }));
    assert_eq!(ran["stdout"], "in x\n/tmp\n");
    client.data("bash", json!({ "command": "rm n; false", "rollback_on_failure": true }));
    assert_eq!(client.data("bash", json!({ "command": "cat n" }))["stdout"], "41\n");
    let refused = client.call("bash", json!({ "command": "rm n", "cwd": "/nope" }));
    assert!(text(&refused).contains("invalid working directory `/nope`"), "{}", text(&refused));
    assert_eq!(
        (&refused["isError"], &client.data("bash", json!({ "command": "cat n" }))["stdout"]),
        (&json!(true), &json!("41\n"))
    );
}

#[test]
fn a_limit_is_a_result_with_the_output_so_far() {
    let mut client = Client::start(&["--preset", "strict"]);
    let result = client.call("bash", json!({ "command": "echo before; while :; do :; done", "timeout_ms": 300 }));
    assert_eq!(result["isError"], true);
    let data = &result["structuredContent"];
    assert_eq!(data["stdout"], "before\n");
    assert!(data["limit"]["hint"].is_string() && data["exit_code"].as_u64().unwrap() >= 124, "{data}");
    assert!(text(&result).starts_with("before\n") && text(&result).contains("[stopped: "), "{}", text(&result));
    assert_eq!(client.data("bash", json!({ "command": "echo alive" }))["stdout"], "alive\n");
}

#[test]
fn calls_of_a_session_resume_where_the_last_one_ended() {
    let mut client = Client::start(&[]);
    let bash = |command: &str| json!({ "command": command, "session": "work" });
    client.data("bash", bash("cd /tmp; name=ada; greet() { echo \"hello $name\"; }"));
    assert_eq!(client.data("bash", bash("greet; pwd"))["stdout"], "hello ada\n/tmp\n");
    assert_eq!(client.data("bash", json!({ "command": "pwd" }))["stdout"], "/home/user\n");
    client.data("python", json!({ "code": "import math; x = 20", "session": "work" }));
    let ran = client.data("python", json!({ "code": "print(math.floor(x + 1.5))", "session": "work" }));
    assert_eq!(ran["stdout"], "21\n");
    let refused = client.call("bash", json!({ "command": "true", "session": "" }));
    assert!(text(&refused).contains("invalid session name"), "{}", text(&refused));
}

#[test]
fn a_session_returns_values_and_pictures() {
    let mut client = Client::start(&[]);
    let value = client.call("python", json!({ "code": "6 * 7", "session": "s" }));
    assert_eq!((text(&value), &value["structuredContent"]["value"]), ("42", &json!(42)));
    let code = "class P:\n def _repr_png_(self): return b'png'\n def __repr__(self): return 'P'\nP()";
    let picture = client.call("python", json!({ "code": code, "session": "s" }));
    assert_eq!(picture["content"][0]["text"], "P");
    assert_eq!(picture["content"][1], json!({ "type": "image", "data": "cG5n", "mimeType": "image/png" }));
    assert_eq!(picture["structuredContent"]["images"], json!([]));
    assert_eq!(client.call("python", json!({ "code": "6 * 7" }))["structuredContent"]["value"], Value::Null);
}

#[test]
fn long_output_is_cut_in_the_middle_and_whole_in_the_history() {
    let mut client = Client::start(&[]);
    let ran = client.data("bash", json!({ "command": "seq 30000" }));
    assert_eq!(ran["truncated"], true);
    let stdout = ran["stdout"].as_str().unwrap();
    assert!(stdout.len() < 70_000 && stdout.starts_with("1\n2\n") && stdout.ends_with("30000\n"));
    let mut whole = String::new();
    loop {
        let rows = client.data("history", json!({ "run": ran["run"], "output_offset": whole.len() }));
        whole.push_str(rows["runs"][0]["stdout"].as_str().unwrap());
        if rows["notes"].as_array().unwrap().is_empty() {
            break;
        }
    }
    let expected: String = (1..=30000).map(|number| format!("{number}\n")).collect();
    assert!(whole == expected);
}

#[test]
fn the_file_tools_read_write_edit_and_search() {
    let mut client = Client::start(&[]);
    let written = client.data("write_file", json!({ "path": "src/a.py", "content": "import os\nx = 1\n" }));
    assert_eq!((&written["path"], &written["created"]), (&json!("/home/user/src/a.py"), &json!(true)));
    let read = client.call("read_file", json!({ "path": "src/a.py" }));
    assert!(text(&read).starts_with("     1\timport os\n     2\tx = 1\n["));
    let version = read["structuredContent"]["version"].clone();
    let edits = json!([{ "old": "x = 1", "new": "x = 2" }]);
    client.data("edit_file", json!({ "path": "src/a.py", "edits": edits, "expected_version": version }));
    let stale = client
        .call("edit_file", json!({ "path": "src/a.py", "edits": [{ "old": "2", "new": "3" }], "expected_version": version }));
    assert_eq!(stale["isError"], true);
    assert!(text(&stale).contains("changed since it was read\nhint: read the file again"), "{}", text(&stale));
    assert_eq!(client.data("grep", json!({ "pattern": "^x" }))["matches"][0]["text"], "x = 2");
    assert_eq!(client.data("glob", json!({ "pattern": "**/*.py" }))["paths"], json!(["/home/user/src/a.py"]));
    assert_eq!(client.data("list_files", json!({ "depth": 2 }))["entries"].as_array().unwrap().len(), 2);
    client.data("move_file", json!({ "from": "src/a.py", "to": "b.py" }));
    assert_eq!(client.data("delete_file", json!({ "path": "b.py" }))["deleted"], 1);
    let gone = client.call("read_file", json!({ "path": "b.py" }));
    assert_eq!(text(&gone), "error: cannot read `/home/user/b.py`: no such file or directory");
    let names: Vec<Value> =
        client.data("history", json!({}))["runs"].as_array().unwrap().iter().map(|run| run["name"].clone()).collect();
    assert_eq!(names[..2], ["read_file", "delete_file"]);
}

#[test]
fn an_invalid_call_returns_an_error_for_the_model() {
    let mut client = Client::start(&[]);
    for (tool, arguments) in [
        ("read_file", json!({})),
        ("read_file", json!({ "path": "x", "ofset": 3 })),
        ("bash", json!({ "command": 3 })),
        ("bash", json!({ "command": "true", "timeout_ms": -1 })),
        ("bash", json!({ "command": "true", "tiemout_ms": 3 })),
        ("bash", json!({ "command": "true", "sandbox": "nowhere" })),
        ("bash", json!({ "command": "echo a\u{0}b" })),
        ("python", json!({ "code": "1\u{0}" })),
        ("bash", json!({ "command": "true", "env": { "": "x" } })),
        ("bash", json!({ "command": "true", "env": { "A=B": "x" } })),
        ("bash", json!({ "command": "true", "env": { "A": "\u{0}" } })),
        ("export_snapshot", json!({ "name": "../../etc/x" })),
        ("import_snapshot", json!({ "content": "AAAA" })),
    ] {
        let result = client.call(tool, arguments.clone());
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        assert!(text(&result).starts_with("error: "), "{}", text(&result));
    }
    let error = client.refused("tools/call", json!({ "name": "rm", "arguments": {} }));
    assert_eq!(error["message"], "unknown tool `rm`");
}

#[test]
fn numbers_are_explained_to_the_model() {
    let mut client = Client::start(&[]);
    let result = client.call("bash", json!({ "command": "true", "timeout_ms": -5 }));
    let expected = "error: invalid arguments: invalid value: integer `-5`, expected a whole number, 0 or more";
    assert_eq!(text(&result), expected);
}

#[test]
fn values_are_kept() {
    let mut client = Client::start(&[]);
    client.data("kv_set", json!({ "key": "plan/1", "value": { "steps": [1, 2] } }));
    let kept = json!({ "key": "plan/1", "found": true, "value": { "steps": [1, 2] } });
    assert_eq!(client.data("kv_get", json!({ "key": "plan/1" })), kept);
    assert_eq!(client.data("kv_get", json!({ "key": "none" }))["found"], false);
    assert_eq!(client.data("kv_keys", json!({ "prefix": "plan/" }))["keys"], json!(["plan/1"]));
    assert_eq!(client.data("kv_delete", json!({ "key": "plan/1" }))["found"], true);
    assert_eq!(client.data("kv_keys", json!({}))["keys"], json!([]));
}

#[test]
fn forks_and_snapshots_are_independent() {
    let mut client = Client::start(&["--db", "agent.db"]);
    client.data("write_file", json!({ "path": "/plan", "content": "A" }));
    let fork = client.data("fork", json!({ "name": "risky" }))["sandbox"].clone();
    assert_eq!(fork, "risky");
    client.data("write_file", json!({ "path": "/plan", "content": "B", "sandbox": fork }));
    assert_eq!(client.data("bash", json!({ "command": "cat /plan" }))["stdout"], "A");
    assert_eq!(client.data("bash", json!({ "command": "cat /plan", "sandbox": "risky" }))["stdout"], "B");
    let saved = client.data("export_snapshot", json!({ "sandbox": "risky", "name": "good", "inline": true }));
    assert_eq!((&saved["name"], &saved["kept"]), (&json!("good"), &json!(true)));
    let opened = client.data("import_snapshot", json!({ "snapshot": "good" }))["sandbox"].clone();
    assert_eq!(client.data("read_file", json!({ "path": "/plan", "sandbox": opened }))["content"], "B");
    let opened = client.data("import_snapshot", json!({ "content": saved["content"], "name": "sent" }))["sandbox"].clone();
    assert_eq!(client.data("read_file", json!({ "path": "/plan", "sandbox": opened }))["content"], "B");
    assert_eq!(client.call("fork", json!({ "name": "risky" }))["isError"], true);
    client.data("fork", json!({ "name": "risky", "replace": true }));
    assert_eq!(client.data("read_file", json!({ "path": "/plan", "sandbox": "risky" }))["content"], "A");
}

#[test]
fn changes_are_visible_to_the_next_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let path = path.to_str().unwrap();
    Client::start(&["--db", path]).data("bash", json!({ "command": "echo kept > /f" }));
    assert_eq!(Client::start(&["--db", path]).data("read_file", json!({ "path": "/f" }))["content"], "kept\n");
    let output = sandlite(&["--db", path, "bash", "-c", "cat /f"], directory.path()).output().unwrap();
    assert_eq!(output.stdout, b"kept\n");
}

#[test]
fn files_are_resources() {
    let mut client = Client::start(&[]);
    client.data("bash", json!({ "command": "mkdir -p '/d x'; echo hi > '/d x/ü'; printf '\\0\\377' > /bin.dat; seq 300 | split -l1 -a3 - /many." }));
    let mut found = Vec::new();
    let mut cursor = json!({});
    loop {
        let page = client.request("resources/list", cursor);
        found.extend(page["resources"].as_array().unwrap().clone());
        match &page["nextCursor"] {
            Value::Null => break,
            next => cursor = json!({ "cursor": next }),
        }
    }
    assert_eq!(found.len(), 302);
    let uris: BTreeSet<&str> = found.iter().map(|resource| resource["uri"].as_str().unwrap()).collect();
    assert_eq!(uris.len(), 302);
    assert!(uris.contains("sandlite:///d%20x/%C3%BC"));
    let read = client.request("resources/read", json!({ "uri": "sandlite:///d%20x/%C3%BC" }));
    assert_eq!((&read["contents"][0]["text"], &read["contents"][0]["mimeType"]), (&json!("hi\n"), &json!("text/plain")));
    assert_eq!(client.request("resources/read", json!({ "uri": "sandlite:///bin.dat" }))["contents"][0]["blob"], "AP8=");
    let templates = client.request("resources/templates/list", json!({}));
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "sandlite://{+path}");
    assert_eq!(client.refused("resources/read", json!({ "uri": "sandlite:///none" }))["code"], -32002);
    assert_eq!(client.refused("resources/read", json!({ "uri": "file:///etc/passwd" }))["code"], -32002);
}

#[test]
fn a_prompt_teaches_the_sandbox_in_twenty_lines() {
    let mut client = Client::start(&[]);
    let prompts = client.request("prompts/list", json!({}));
    assert_eq!(prompts["prompts"][0]["name"], "sandbox");
    let prompt = client.request("prompts/get", json!({ "name": "sandbox" }));
    let words = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(words.lines().count() <= 20, "{}", words.lines().count());
    for tool in TOOLS.iter().filter(|tool| !matches!(**tool, "kv_delete" | "kv_keys")) {
        assert!(words.contains(&format!("`{tool}`")), "{tool} is not taught");
    }
}

#[test]
fn a_running_command_reports_progress() {
    let mut client = Client::start(&[]);
    let params = json!({ "name": "bash", "arguments": { "command": "echo step one; cat" }, "_meta": { "progressToken": "p1" } });
    client.request("tools/call", params);
    let progress: Vec<&Value> =
        client.notifications.iter().filter(|message| message["method"] == "notifications/progress").collect();
    let messages: Vec<&str> = progress.iter().filter_map(|message| message["params"]["message"].as_str()).collect();
    assert!(progress.iter().all(|message| message["params"]["progressToken"] == "p1"));
    assert!(messages.iter().any(|message| message.contains("step one")), "{messages:?}");
}

#[test]
fn a_cancelled_command_ends_and_the_sandbox_stays_usable() {
    let mut client = Client::start(&["--preset", "permissive"]);
    let params =
        json!({ "name": "bash", "arguments": { "command": "echo started; sleep 250" }, "_meta": { "progressToken": 1 } });
    let id = client.begin("tools/call", params);
    while client.receive()["method"] != "notifications/progress" {}
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    assert_eq!(client.data("bash", json!({ "command": "echo next" }))["stdout"], "next\n");
    let rows = client.data("history", json!({ "name": "bash" }));
    assert_eq!(rows["runs"][1]["command"], "echo started; sleep 250");
    assert_ne!(rows["runs"][1]["exit_code"], 0);
}

#[test]
fn reading_does_not_wait_for_a_running_command() {
    let mut client = Client::start(&["--preset", "permissive"]);
    client.data("kv_set", json!({ "key": "k", "value": 1 }));
    let params =
        json!({ "name": "bash", "arguments": { "command": "echo started; sleep 250" }, "_meta": { "progressToken": 1 } });
    let id = client.begin("tools/call", params);
    while client.receive()["method"] != "notifications/progress" {}
    assert_eq!(client.data("kv_get", json!({ "key": "k" }))["value"], 1);
    assert!(client.request("resources/list", json!({}))["resources"].is_array());
    let fork = client.data("fork", json!({}))["sandbox"].clone();
    assert_eq!(client.data("bash", json!({ "command": "echo other", "sandbox": fork }))["stdout"], "other\n");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
}

#[test]
fn a_client_that_leaves_ends_its_commands() {
    let mut client = Client::start(&["--preset", "permissive"]);
    let params =
        json!({ "name": "bash", "arguments": { "command": "echo started; sleep 250" }, "_meta": { "progressToken": 1 } });
    client.begin("tools/call", params);
    while client.receive()["method"] != "notifications/progress" {}
    drop(client.stdin.take());
    assert!(client.child.wait().unwrap().success());
}

/// T-REL-01
#[test]
fn a_removed_database_is_an_error_of_the_next_call() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let mut client = Client::start(&["--db", path.to_str().unwrap()]);
    client.data("write_file", json!({ "path": "/x", "content": "kept" }));
    std::fs::remove_file(&path).unwrap();
    let calls = [
        ("write_file", json!({ "path": "/y", "content": "lost" })),
        ("bash", json!({ "command": "echo lost > /y" })),
        ("python", json!({ "code": "open('/y', 'w')" })),
        ("kv_set", json!({ "key": "y", "value": 1 })),
        ("read_file", json!({ "path": "/x" })),
        ("fork", json!({})),
    ];
    for (tool, arguments) in calls {
        let result = client.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(text(&result).contains("was replaced or removed while it was open"), "{tool}: {}", text(&result));
    }
}

#[test]
fn notes_of_an_import_are_in_its_result() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::start(&["--snapshots", directory.path().to_str().unwrap()]);
    client.data("bash", json!({ "command": "mkfifo /tmp/queue" }));
    client.data("export_snapshot", json!({ "name": "s" }));
    // The mode of a named pipe becomes that of a character device.
    let path = directory.path().join("s.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let found: Vec<usize> = (0..bytes.len() - 1).filter(|&at| bytes[at..at + 2] == [0x11, 0xA4]).collect();
    let [at] = found[..] else { panic!("{found:?}") };
    bytes[at] = 0x21;
    std::fs::write(&path, bytes).unwrap();
    let opened = client.data("import_snapshot", json!({ "snapshot": "s" }));
    assert_eq!(opened["notes"], json!(["`queue` is a device or socket: omitted"]));
}
