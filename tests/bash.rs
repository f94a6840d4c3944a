//! The corpus of `tests/bash`, replayed in the sandbox: what the real bash and GNU tools did is what ours must do.
//!
//! Cases that differ today are listed in `tests/bash/differs.txt`, one `topic: name` a line. A listed case that passes fails
//! the test too, so the list can only shrink by being edited.

#[path = "bash/format.rs"]
#[expect(dead_code, reason = "the recorder uses what the replay does not")]
mod format;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use format::{Case, Entry, Recording};
use runtime::{Command, Host, Preset, Sandbox};

/// Where every case runs, as the recorder has it.
const DIRECTORY: &str = "/tmp/x";

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bash")
}

#[test]
fn every_case_matches_the_recording_of_the_real_bash() {
    let host = Host::builder().build().unwrap();
    let listed = fs::read_to_string(corpus().join("differs.txt")).unwrap_or_default();
    let listed: BTreeSet<&str> = listed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let wanted = std::env::var("SANDLITE_CASES").unwrap_or_default();
    let (mut total, mut differing, mut report) = (0, BTreeSet::new(), String::new());
    for (name, path) in topics() {
        let topic = format::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        for case in &topic.cases {
            let full_name = format!("{name}: {}", case.name);
            if !full_name.contains(&wanted) {
                continue;
            }
            total += 1;
            let recorded = case.recorded.as_ref().expect("every case is recorded");
            let seen = perform(&host, case);
            if seen.as_ref() != Ok(recorded) {
                if !listed.contains(full_name.as_str()) {
                    report.push_str(&difference(&full_name, case, recorded, &seen));
                }
                differing.insert(full_name);
            }
        }
    }
    if let Ok(path) = std::env::var("SANDLITE_DIFFERS") {
        fs::write(path, differing.iter().map(|name| format!("{name}\n")).collect::<String>()).unwrap();
    }
    println!("{} of {total} cases as recorded", total - differing.len());
    assert!(report.is_empty(), "cases differ from the real bash:\n{report}");
    let stale: Vec<_> = listed.iter().filter(|name| name.contains(&wanted) && !differing.contains(**name)).collect();
    assert!(stale.is_empty(), "listed in differs.txt, but they pass (or are gone): {stale:#?}");
    assert!(!wanted.is_empty() || total >= 1_500, "the corpus has shrunk to {total} cases");
}

fn topics() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for folder in ["language", "utilities", "scripts"] {
        for entry in fs::read_dir(corpus().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "cases") {
                let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
                found.insert(format!("{folder}/{stem}"), path);
            }
        }
    }
    found
}

fn perform(host: &Host, case: &Case) -> Result<Recording, String> {
    let mut builder = Sandbox::builder().host(host).preset(Preset::Permissive).cwd(DIRECTORY);
    for (path, bytes) in &case.files {
        let path = String::from_utf8(format::unescape(path).ok_or("a bad escape")?).map_err(|error| error.to_string())?;
        builder = builder.file(format!("{DIRECTORY}/{path}"), bytes.clone());
    }
    let sandbox = builder.open().map_err(|error| error.to_string())?;
    let mut command = Command::bash(&case.script).env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
    if let Some(stdin) = &case.stdin {
        command = command.stdin(stdin.clone());
    }
    let wall = "10 s".parse().map_err(|_| "a bad time")?;
    command = command.limits(runtime::Overrides { wall: Some(wall), ..runtime::Overrides::default() });
    let output = sandbox.run(command).map_err(|error| error.to_string())?;
    if let Some(reached) = output.status.limit() {
        return Err(reached.to_string());
    }
    let mut after = BTreeMap::new();
    collect(&sandbox, DIRECTORY, &mut after)?;
    Ok(Recording::of(case, &output.stdout, &output.stderr, i32::from(output.status.code()), &after))
}

fn collect(sandbox: &Sandbox, directory: &str, after: &mut BTreeMap<Vec<u8>, Entry>) -> Result<(), String> {
    if !sandbox.fs().exists(directory).map_err(|error| error.to_string())? {
        return Ok(());
    }
    let entries = sandbox.fs().list(directory).map_err(|error| error.to_string())?;
    for entry in entries {
        let path = format!("{directory}/{}", entry.name);
        let name = path.strip_prefix(DIRECTORY).unwrap_or(&path).trim_start_matches('/').as_bytes().to_vec();
        match entry.kind {
            runtime::FileType::File => {
                let content = sandbox.fs().read(&path).map_err(|error| error.to_string())?;
                after.insert(name, Entry::File(content));
            }
            // As the recorder: a pipe is not a file to keep.
            runtime::FileType::Fifo | runtime::FileType::Device => {}
            runtime::FileType::Symlink => {
                let target = sandbox.fs().read_link(&path).map_err(|error| error.to_string())?;
                after.insert(name, Entry::Link(target.into_bytes()));
            }
            runtime::FileType::Directory => {
                let before = after.len();
                collect(sandbox, &path, after)?;
                if after.len() == before {
                    after.insert(name, Entry::Directory);
                }
            }
        }
    }
    Ok(())
}

fn difference(name: &str, case: &Case, recorded: &Recording, seen: &Result<Recording, String>) -> String {
    let mut text = format!("\n## {name} (line {})\n{}\n", case.line, case.script);
    match seen {
        Err(error) => text.push_str(&format!("  it did not come to an end: {error}\n")),
        Ok(seen) => {
            for (what, expected, got) in [
                ("status", recorded.status.to_string(), seen.status.to_string()),
                ("stdout", recorded.stdout.shown(), seen.stdout.shown()),
                ("stderr", recorded.stderr.shown(), seen.stderr.shown()),
                ("files", format!("{:?}", recorded.changes), format!("{:?}", seen.changes)),
            ] {
                if expected != got {
                    text.push_str(&format!("  {what} of bash: {expected}\n  {what} of ours: {got}\n"));
                }
            }
        }
    }
    text
}
