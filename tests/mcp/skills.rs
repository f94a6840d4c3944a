//! Skills over the protocol: found by names and descriptions, read on demand, run on JSON.

use std::path::Path;

use serde_json::{Value, json};

use super::{Client, sandlite, text};

/// A catalog with the example skills.
fn catalog() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for name in ["word-counter", "text-summary", "multi-file-output"] {
        let skill = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/skills").join(name);
        let place = directory.path().to_str().unwrap();
        let pushed = sandlite(&["skill", "--skills", place, "push", skill.to_str().unwrap()], directory.path()).output().unwrap();
        assert!(pushed.status.success(), "{pushed:?}");
    }
    directory
}

fn call(client: &mut Client, name: &str, arguments: Value) -> Value {
    client.call(name, arguments)
}

fn tools(client: &mut Client) -> Vec<Value> {
    client.request("tools/list", json!({}))["tools"].as_array().unwrap().clone()
}

#[test]
fn skills_are_listed_loaded_and_run() {
    let directory = catalog();
    let mut client = Client::start(&["--skills", directory.path().to_str().unwrap()]);
    let listed = tools(&mut client);
    let load = listed.iter().find(|tool| tool["name"] == "load_skill").unwrap();
    let description = load["description"].as_str().unwrap();
    assert!(description.contains("<name>word-counter</name>") && !description.contains("total_words"), "{description}");
    assert!(!listed.iter().any(|tool| tool["name"] == "skill_word_counter"));
    assert!(client.hello["instructions"].as_str().unwrap().contains("`run_skill`"), "{}", client.hello);

    let found = call(&mut client, "list_skills", json!({ "search": "sentences" }));
    assert_eq!(found["structuredContent"]["skills"][0]["name"], "text-summary");
    let loaded = call(&mut client, "load_skill", json!({ "name": "word-counter" }));
    assert!(text(&loaded).contains("total_words"), "{loaded}");
    let file = call(&mut client, "load_skill", json!({ "name": "word-counter", "file": "scripts/main.py" }));
    assert!(text(&file).contains("import collections"), "{file}");
    let ran = call(&mut client, "run_skill", json!({ "name": "word-counter", "input": { "text": "a b a" } }));
    assert_eq!(ran["structuredContent"]["output"]["total_words"], 3, "{ran}");
    assert_eq!((ran["isError"].as_bool(), ran["structuredContent"]["status"].as_str()), (Some(false), Some("success")));
    assert_eq!(ran["structuredContent"]["notes"], json!([]));
    let rounded = call(&mut client, "run_skill", json!({ "name": "word-counter", "input": { "text": "a", "id": 1e20 } }));
    let note = rounded["structuredContent"]["notes"][0].as_str().unwrap();
    assert!(note.contains("numbers beyond 64 bits in the input are rounded") && text(&rounded).contains(note), "{rounded}");
    let failed = call(&mut client, "run_skill", json!({ "name": "text-summary", "input": {} }));
    assert_eq!((failed["isError"].as_bool(), text(&failed)), (Some(true), "failed: invalid input: `text` is missing"));
    let unknown = call(&mut client, "run_skill", json!({ "name": "nothing" }));
    assert!(unknown["isError"] == true && text(&unknown).contains("unknown skill `nothing`"), "{unknown}");

    // The other sandbox has the files of skills, and stores the files of their runs.
    let shown = call(&mut client, "bash", json!({ "command": "ls /skills; echo x > /skills/word-counter/SKILL.md" }));
    assert!(text(&shown).starts_with("multi-file-output\ntext-summary\nword-counter\n"), "{shown}");
    assert!(text(&shown).contains("Read-only file system"), "{shown}");
    let input = json!({ "data": [{ "k": "a" }, { "k": "b" }], "by": "k" });
    call(&mut client, "run_skill", json!({ "name": "multi-file-output", "input": input, "save_to": "/tmp/parts" }));
    let saved = call(&mut client, "bash", json!({ "command": "find /tmp/parts -type f | sort" }));
    assert_eq!(text(&saved), "/tmp/parts/index.json\n/tmp/parts/parts/a.csv\n/tmp/parts/parts/b.csv");
}

#[test]
fn each_skill_can_be_a_tool_and_new_ones_show_without_a_restart() {
    let directory = catalog();
    let place = directory.path().to_str().unwrap();
    let mut client = Client::start(&["--skills", place, "--skill-tools"]);
    let names = |client: &mut Client| -> Vec<String> {
        let names = tools(client).into_iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with("skill_")).collect()
    };
    assert_eq!(names(&mut client), ["skill_multi_file_output", "skill_text_summary", "skill_word_counter"]);
    let listed = tools(&mut client);
    let summary = listed.iter().find(|tool| tool["name"] == "skill_text_summary").unwrap();
    assert_eq!(summary["inputSchema"]["required"], json!(["text"]), "the skill's own schema");
    let direct = call(&mut client, "skill_text_summary", json!({ "text": "One. Two.", "max_sentences": 1 }));
    assert_eq!(direct["structuredContent"]["output"]["sentence_count"], 2, "{direct}");
    let wrapped = call(&mut client, "skill_word_counter", json!({ "input": { "text": "a" } }));
    assert_eq!(wrapped["structuredContent"]["output"]["total_words"], 1, "{wrapped}");
    let new = sandlite(&["skill", "new", "fresh"], directory.path()).output().unwrap();
    assert!(new.status.success());
    let pushed = sandlite(&["skill", "--skills", place, "push", "fresh"], directory.path()).output().unwrap();
    assert!(pushed.status.success(), "{pushed:?}");
    assert!(names(&mut client).contains(&"skill_fresh".to_owned()));
    let greeted = call(&mut client, "skill_fresh", json!({ "name": "Ada" }));
    assert_eq!(text(&greeted), r#"{"greeting":"Hello, Ada!"}"#);
}

#[test]
fn without_a_catalog_there_are_no_skills() {
    let mut client = Client::start(&[]);
    assert!(!tools(&mut client).iter().any(|tool| tool["name"].as_str().unwrap().contains("skill")));
    assert!(!client.hello["instructions"].as_str().unwrap().contains("skill"));
    let refused = client.refused("tools/call", json!({ "name": "run_skill", "arguments": { "name": "x" } }));
    assert!(refused.to_string().contains("unknown tool"), "{refused}");
}
