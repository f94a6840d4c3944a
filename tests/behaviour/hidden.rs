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

// T-POL-03: a guest executes exactly the same instructions for a hidden path as for a missing one. The time that the host takes is
// not compared, because it depends on the machine.
#[test]
fn a_hidden_path_costs_as_much_fuel_as_a_missing_one() {
    let hiding = |sandbox: Sandbox| bound(&sandbox, "access = \"hidden\"");
    let builder = || Sandbox::builder().host(host()).file("/out/o", "out\n");
    let hidden = hiding(builder().file("/zone/f", "haystack\n").file("/zone/d/g", "deep\n").open().unwrap());
    let missing = hiding(builder().open().unwrap());
    let scripts = [
        "cat /zone/f; ls -la /zone; stat /zone/d; find /zone; [ -e /zone/f ]; echo /zone/* /z*; cp /zone/f /tmp/x; grep -r hay /zone; du /zone",
        "echo x > /zone/f; mkdir /zone/d; rm -rf /zone; mv /out/o /zone/f; ln -s x /zone; cd /zone; ls /; tar cf /tmp/t.tar /zone",
        "python3 -c \"import os\nfor path in ('/zone', '/zone/f', '/zone/d/g'):\n  for call in (os.stat, os.listdir, open, os.unlink, os.rmdir):\n    \
         try: call(path)\n    except OSError as error: print(error.errno)\"",
    ];
    for script in scripts {
        let run = |sandbox: &Sandbox| {
            let output = sandbox.fork().unwrap().run(Command::bash(script).deterministic(1)).unwrap();
            let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            (said, output.usage.fuel)
        };
        assert_eq!(run(&hidden), run(&missing), "{script}");
    }
}
