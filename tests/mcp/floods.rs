//! Clients that send or ask for too much: each gets a response, the server keeps running, and its memory is bounded (T-DOS-03, T-NET-04).

use std::io::Write as _;

use serde_json::{Value, json};

use super::{Client, text};

/// Maximum memory of the process at its peak: the engine takes a tenth of it, four of the largest messages the rest.
const PEAK_KILOBYTES: u64 = 500 << 10;

fn peak_kilobytes(client: &Client) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn is_alive(client: &mut Client) {
    assert_eq!(client.data("kv_get", json!({ "key": "alive" }))["found"], false);
    let peak = peak_kilobytes(client);
    assert!(peak < PEAK_KILOBYTES, "{peak} kB");
}

/// Sends a line as it is and returns the error with that id.
fn refused(client: &mut Client, id: &Value, write: impl FnOnce(&mut dyn std::io::Write)) -> String {
    let stdin = client.stdin.as_mut().unwrap();
    write(stdin);
    stdin.write_all(b"\n").unwrap();
    stdin.flush().unwrap();
    let answer = client.receive();
    assert_eq!(&answer["id"], id, "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

fn call_with(client: &mut Client, id: &Value, before: &str, filler: &[u8], times: usize, after: &str) -> String {
    refused(client, id, |stdin| {
        write!(stdin, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{before}"#).unwrap();
        (0..times).for_each(|_| stdin.write_all(filler).unwrap());
        write!(stdin, "{after}}}").unwrap();
    })
}

/// T-NET-04: a message of 100 MB, one of deep nesting, one of many small values, one with a long id.
#[test]
fn t_net_04_unbounded_messages_get_a_response_and_are_not_kept() {
    let mut client = Client::start(&[]);
    let megabyte = vec![b'x'; 1 << 20];
    let write = r#"{"name":"write_file","arguments":{"path":"/f","content":""#;
    assert!(call_with(&mut client, &json!(100), write, &megabyte, 100, r#""}}"#).contains("the maximum is 16 MB"));
    let set = r#"{"name":"kv_set","arguments":{"key":"k","value":"#;
    assert!(call_with(&mut client, &json!("deep"), set, b"[", 1_000_000, "").contains("nested too deeply"));
    let zeros = b"0,".repeat(100_000);
    assert!(call_with(&mut client, &json!(102), &format!("{set}["), &zeros, 80, "0]}}").contains("too many values"));
    let long = refused(&mut client, &Value::Null, |stdin| {
        write!(stdin, r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "i".repeat(1 << 20)).unwrap();
    });
    assert!(long.contains("`id` of the message is too long"), "{long}");
    let batch = refused(&mut client, &Value::Null, |stdin| stdin.write_all(b"[{}]").unwrap());
    assert!(batch.contains("batches are not supported"), "{batch}");
    for garbage in ["not json", "{\"jsonrpc\": ", "\u{1}"] {
        let parse = refused(&mut client, &Value::Null, |stdin| stdin.write_all(garbage.as_bytes()).unwrap());
        assert_eq!(parse, "Parse error: a message is one line of JSON", "{garbage}");
    }
    is_alive(&mut client);
}

/// T-NET-04: a long text in every parameter of every tool.
#[test]
fn t_net_04_long_texts_in_any_parameter_get_a_short_response() {
    let mut client = Client::start(&["--preset", "permissive"]);
    let tools = client.request("tools/list", json!({}))["tools"].clone();
    let long = "x".repeat(4 << 20);
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        for (parameter, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            let mut arguments: serde_json::Map<String, Value> =
                required.iter().map(|name| (name.as_str().unwrap().to_owned(), json!("x"))).collect();
            arguments.insert(parameter.clone(), json!(long));
            let answer = client.call(name, arguments.into());
            let size = answer.to_string().len();
            assert!(size < 100_000, "{name} {parameter} {schema}: {size}");
        }
    }
    for (method, params) in
        [("resources/read", "uri"), ("resources/list", "cursor"), ("prompts/get", "name"), ("tools/call", "name")]
    {
        let error = client.refused(method, json!({ params: long }));
        assert!(error.to_string().len() < 10_000, "{method} {}", error.to_string().len());
    }
    is_alive(&mut client);
}

/// T-NET-04: hundreds of requests at a time, of a megabyte each, while a command holds the sandbox.
#[test]
fn t_net_04_requests_in_flight_are_bounded_and_all_get_a_response() {
    let mut client = Client::start(&["--preset", "permissive"]);
    let params =
        json!({ "name": "bash", "arguments": { "command": "echo started; sleep 250" }, "_meta": { "progressToken": 1 } });
    let running = client.begin("tools/call", params);
    while client.receive()["method"] != "notifications/progress" {}
    let content = "x".repeat(1 << 20);
    let ids: Vec<u64> = (0..300)
        .map(|_| {
            let arguments = json!({ "path": "/f", "content": content });
            client.begin("tools/call", json!({ "name": "write_file", "arguments": arguments }))
        })
        .collect();
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": running } }));
    let (mut done, mut busy) = (0, 0);
    for _ in &ids {
        let answer = loop {
            let message = client.receive();
            if message["method"].is_null() {
                break message;
            }
        };
        match answer["error"]["message"].as_str() {
            Some(error) => {
                assert!(error.contains("too many concurrent requests"), "{error}");
                busy += 1;
            }
            None => done += 1,
        }
    }
    assert!(done > 0 && busy > 200, "{done} done, {busy} refused");
    is_alive(&mut client);
}

/// T-NET-04: notifications of any kind and number, and requests that are cancelled before they run.
#[test]
fn t_net_04_floods_of_notifications_and_cancelled_requests_leave_nothing() {
    let mut client = Client::start(&[]);
    let noise = json!({ "jsonrpc": "2.0", "method": "notifications/unknown", "params": { "x": "y".repeat(1000) } });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "z".repeat(1000) } });
    for _ in 0..5_000 {
        client.send(&noise);
        client.send(&cancel);
    }
    for _ in 0..200 {
        let id = client.begin("tools/call", json!({ "name": "bash", "arguments": { "command": "sleep 20" } }));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    }
    client.send(&json!("noise"));
    assert_eq!(client.data("bash", json!({ "command": "echo through" }))["stdout"], "through\n");
    is_alive(&mut client);
}

/// T-DOS-03: tools that build text stay within the maximum size of a result.
#[test]
fn t_dos_03_tools_build_no_more_than_fits_into_a_result() {
    let mut client = Client::start(&["--preset", "permissive"]);
    client.data("write_file", json!({ "path": "/a", "content": "a".repeat(1000) }));
    let edits = json!([{ "old": "a", "new": "b".repeat(4 << 20), "replace_all": true }]);
    let grown = client.call("edit_file", json!({ "path": "/a", "edits": edits }));
    assert!(text(&grown).contains("would make the file larger"), "{}", text(&grown));
    // Keys in pages, values in parts.
    for number in 0..300 {
        client.data("kv_set", json!({ "key": format!("{number:03}{}", "k".repeat(500)), "value": 1 }));
    }
    let (mut keys, mut after) = (Vec::new(), Value::Null);
    loop {
        let page = client.data("kv_keys", json!({ "after": after }));
        keys.extend(page["keys"].as_array().unwrap().clone());
        after = keys.last().unwrap().clone();
        assert!(page.to_string().len() < 100_000);
        if page["truncated"] == false {
            break;
        }
    }
    assert_eq!(keys.len(), 300);
    let value: String = (0..100_000).map(|number| format!("{number:09}")).collect();
    client.data("kv_set", json!({ "key": "large", "value": value }));
    let (mut whole, mut offset) = (String::new(), Some(0));
    while let Some(at) = offset {
        let part = client.data("kv_get", json!({ "key": "large", "offset": at }));
        whole.push_str(part["part"].as_str().unwrap());
        offset = part["next_offset"].as_u64();
    }
    assert!(whole == format!("\"{value}\""));
    let first = client.call("kv_get", json!({ "key": "large" }));
    assert!(text(&first).contains("continue with offset=131072"), "{}", &text(&first)[131_000..]);
    // A row with thousands of changed files, and rows with long commands.
    client.data("bash", json!({ "command": "mkdir /many; cd /many; seq 5000 | split -l1 -a4 -" }));
    let row = client.data("history", json!({ "name": "bash" }));
    assert!(row["runs"][0]["changes"].as_array().unwrap().len() <= 20);
    let whole = client.call("history", json!({ "run": row["runs"][0]["run"] }));
    assert!(text(&whole).contains("changed files") && whole.to_string().len() < 300_000, "{}", whole.to_string().len());
    is_alive(&mut client);
}
