//! The example skills run as they stand, and none of them has a finding.

use std::path::{Path, PathBuf};

use ::skills::{Catalog, Needs, Package, Request, RunResult, Skills, Status, lint};
use runtime::Preset;
use serde_json::{Value, json};

use super::host;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/skills")
}

fn run(name: &str, input: Value, files: &[(&str, &str)]) -> RunResult {
    let skills = Skills::new(Catalog::in_memory().unwrap(), host(), Preset::Normal.limits());
    skills.push(&Package::from_directory(&examples().join(name)).unwrap(), Needs::default()).unwrap();
    let request = Request::new(name).input(input.to_string());
    skills.run(files.iter().fold(request, |request, (name, text)| request.file(*name, *text))).unwrap()
}

fn output(result: &RunResult) -> Value {
    assert_eq!(result.status, Status::Success, "{result:?}");
    serde_json::from_str(result.output.as_deref().unwrap()).unwrap()
}

fn paths(result: &RunResult) -> Vec<&str> {
    result.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn every_example_is_without_findings() {
    let mut names: Vec<String> =
        std::fs::read_dir(examples()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected =
        ["always-fails", "data-analysis", "log-report", "multi-file-output", "slow-skill", "text-summary", "word-counter"];
    assert_eq!(names, expected, "each has a test here");
    for name in names {
        assert_eq!(lint(&examples().join(&name), true).unwrap(), [], "{name}");
    }
}

#[test]
fn data_analysis_describes_a_table_and_draws_a_chart() {
    let result = run("data-analysis", json!({ "csv": "city,degrees\nOslo,4\nRome,18\nOslo,\n" }), &[]);
    let expected = json!({ "row_count": 3, "columns": {
        "city": { "type": "text", "count": 3, "missing": 0, "unique": 2, "top": "Oslo" },
        "degrees": { "type": "number", "count": 2, "missing": 1, "min": 4.0, "max": 18.0, "mean": 11.0, "stdev": 9.8995 },
    } });
    assert_eq!(output(&result), expected);
    assert!(result.output.as_deref().unwrap().contains(r#""row_count":3"#), "compact");
    assert_eq!(paths(&result), ["summary_chart.png"]);
    assert!(result.read("summary_chart.png").unwrap().starts_with(b"\x89PNG\r\n"));
    let from_file = run("data-analysis", json!({}), &[("data.csv", "n\n1\n2\n")]);
    assert_eq!(output(&from_file)["columns"]["n"]["mean"], 1.5);
    let records = run("data-analysis", json!({ "data": [{ "name": "a" }] }), &[]);
    assert_eq!((output(&records)["row_count"].as_u64(), paths(&records).len()), (Some(1), 0));
}

#[test]
fn text_summary_picks_sentences() {
    let text = "The sea is wide. A ship sails the sea. Nobody knows why. The ship returns from the sea.";
    let result = run("text-summary", json!({ "text": text, "max_sentences": 1 }), &[]);
    assert_eq!(output(&result), json!({ "summary": "The sea is wide.", "sentence_count": 4, "word_count": 18 }));
    let refused = run("text-summary", json!({ "max_sentences": 1 }), &[]);
    assert_eq!(refused.error.as_deref(), Some("invalid input: `text` is missing"));
}

#[test]
fn word_counter_counts_words() {
    let result = run("word-counter", json!({ "text": "To be or not to be", "top_n": 1 }), &[]);
    assert_eq!(output(&result), json!({ "total_words": 6, "unique_words": 4, "top_words": [{ "word": "to", "count": 2 }] }));
}

#[test]
fn log_report_counts_levels_and_collects_errors() {
    let files = [("a.log", "3 ERROR late\n1 INFO up\n"), ("b.log", "2 ERROR early\n")];
    let result = run("log-report", json!({}), &files);
    assert_eq!(output(&result), json!({ "files": 2, "levels": { "ERROR": 2, "INFO": 1 } }));
    assert_eq!(result.read("errors.log").unwrap(), b"2 ERROR early\n3 ERROR late\n");
    assert_eq!(result.logs, "read 2 files\n");
}

#[test]
fn multi_file_output_leaves_several_files() {
    let data = json!([{ "kind": "a", "n": 1 }, { "kind": "b", "n": 2 }, { "kind": "a", "n": 3 }]);
    let result = run("multi-file-output", json!({ "data": data, "by": "kind" }), &[]);
    assert_eq!(output(&result), json!({ "parts": { "parts/a.csv": 2, "parts/b.csv": 1 } }));
    assert_eq!(paths(&result), ["index.json", "parts/a.csv", "parts/b.csv"]);
    assert_eq!(result.read("parts/a.csv").unwrap(), b"kind,n\r\na,1\r\na,3\r\n");
}

#[test]
fn always_fails_is_failed_with_its_logs() {
    let result = run("always-fails", json!({ "code": 7 }), &[]);
    assert_eq!((result.status, result.error.as_deref()), (Status::Failed, Some("command exited with code 7")));
    assert_eq!(result.logs, "about to fail\n\nfailing with 7\n");
    assert_eq!(result.output.as_deref(), Some(r#"{"reached":"the end"}"#));
}

#[test]
fn slow_skill_has_one_second() {
    assert_eq!(output(&run("slow-skill", json!({ "seconds": 0 }), &[])), json!({ "waited": 0 }));
    let result = run("slow-skill", json!({ "seconds": 60 }), &[]);
    assert_eq!((result.status, result.error.as_deref()), (Status::Timeout, Some("execution timed out after 1s")));
    assert_eq!(result.logs, "waiting for 60 s\n");
}
