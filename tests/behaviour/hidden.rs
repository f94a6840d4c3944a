//! Hidden paths appear in no result of an action.

use runtime::actions::{Context, actions};
use runtime::{Command, Policy, Sandbox};
use serde_json::{Value, json};

use super::host;

fn bound(sandbox: &Sandbox, rule: &str) -> Sandbox {
    sandbox.with_policy(Policy::parse(&format!("[[rule]]\npath = \"/zone\"\n{rule}")).unwrap()).unwrap()
}

/// Arguments for any action, by the names in its schema: hidden paths, and versions in which they changed.
fn curious(schema: &Value, run: i64, with_past: bool) -> Value {
    let known = json!({
        "path": "/zone/f", "paths": ["/zone"], "from": "HEAD~1", "to": "HEAD", "version": "HEAD~1", "reference": "HEAD~1",
        "run": run, "runs": [run], "pattern": "h[a]y", "grep": "h[a]y", "command": "cat /zone/* /zone/f; ls -laR /zone; grep -r hay.tack /",
        "code": "import os\nprint(list(os.walk('/')))\nprint(open('/zone/f').read())", "good": "HEAD~2", "content": "x",
        "key": "k", "value": 1, "files": [{ "path": "/zone/f", "content": "x" }], "depth": 9, "limit": 100, "patch": true, "output": true,
        "edits": [{ "old": "hay", "new": "x" }], "name": "c", "since": 0, "directory": "/nowhere", "consumer": "c",
    });
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut arguments: serde_json::Map<String, Value> =
        properties.keys().filter_map(|name| Some((name.clone(), known.get(name)?.clone()))).collect();
    if with_past && properties.contains_key("at") {
        arguments.insert("at".to_owned(), "HEAD~1".into());
    }
    Value::Object(arguments)
}

// T-POL-03, T-POL-07: neither the content of a hidden file nor the name of its neighbour is in any result.
#[test]
fn no_action_discloses_what_is_hidden() {
    let owner = Sandbox::builder()
        .host(host())
        .file("/zone/f", "haystack\n")
        .file("/zone/sibling", "haystack\n")
        .file("/out/o", "out\n")
        .open()
        .unwrap();
    owner.bash("echo haystack two > /zone/f; echo haystack > /zone/sibling; echo visible > /out/o").unwrap();
    owner.bash("mv /zone/sibling /zone/sibling-2; echo haystack three >> /zone/f; echo more >> /out/o").unwrap();
    owner.run(Command::bash("echo haystack four >> /zone/f; cat /zone/f; ls /zone").record()).unwrap();
    let runs: Vec<i64> = owner.history(100).unwrap().into_iter().map(|run| run.id).collect();
    let hidden = |sandbox: &Sandbox| bound(sandbox, "access = \"hidden\"");
    let unlabelled = |sandbox: &Sandbox| bound(sandbox, "label = \"pii\"").view("ann", ["other"]).unwrap();
    let cases: [&dyn Fn(&Sandbox) -> Sandbox; 2] = [&hidden, &unlabelled];
    for bind in cases {
        for action in actions() {
            for (run, with_past) in runs.iter().flat_map(|run| [(*run, false), (*run, true)]) {
                let bound = bind(&owner.fork().unwrap());
                let arguments = curious(&(action.input)(), run, with_past);
                let answer = action.run(&Context::new(bound), arguments.clone());
                let told = format!("{} {:?}", answer.text, answer.data);
                assert!(!told.contains("haystack") && !told.contains("sibling"), "{} {arguments}: {told}", action.name);
            }
        }
    }
}
