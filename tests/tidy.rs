//! Laws of the repository, as tests: what every file says first, how long it may be, where `unsafe` may live, which file
//! changes rows, who makes views and writes history, and which crate may know which.

#[path = "api/listing.rs"]
mod listing;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every tracked or new Rust file, with its text.
fn rust_files() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut left = vec![root().to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !name.starts_with("target") && name != "node_modules" {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root()).unwrap().to_owned(), text));
            }
        }
    }
    assert!(found.len() > 50, "found only {} files: is this the repository?", found.len());
    found.sort();
    found
}

/// The text without items that are compiled for tests only, wherever they are. Relies on `rustfmt`: an item of several lines
/// ends at the first line that closes it with the indentation of its attribute.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let Some(first) = lines.by_ref().find(|line| !line.trim_start().starts_with(['#', '/'])) else { break };
        if !first.ends_with([';', '}', ',']) {
            let is_value = first.ends_with('=');
            lines
                .by_ref()
                .find(|line| line.get(indent..).is_some_and(|rest| rest.starts_with('}') || is_value && rest.ends_with(';')));
        }
    }
    kept
}

#[test]
fn code_around_test_items_is_kept() {
    let check = |text: &str, expected: &str| assert_eq!(without_tests(text), expected, "{text}");
    check("a();\n", "a();\n");
    check("a();\n#[cfg(test)]\nmod tests;\nb();\n", "a();\nb();\n");
    check("#[cfg(test)]\nmod tests {\n    fn a() {\n    }\n}\nb();\n", "b();\n");
    check("#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\n// Why.\nb();\n", "// Why.\nb();\n");
    check("impl A {\n    #[cfg(test)]\n    fn a(\n        b: B,\n    ) {\n    }\n    c();\n}\n", "impl A {\n    c();\n}\n");
    check("#[cfg(test)]\nconst A: &str =\n    \"a\";\nb();\n", "b();\n");
}

fn assert_none(what: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{what}:\n{}", offenders.join("\n"));
}

#[test]
fn every_file_starts_with_its_purpose() {
    let silent = rust_files().into_iter().filter(|(_, text)| !text.starts_with("//! "));
    assert_none("files without `//!` at the top", &silent.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>());
}

#[test]
fn no_file_is_longer_than_600_lines_before_its_tests() {
    let long = rust_files().into_iter().filter_map(|(path, text)| {
        let lines = without_tests(&text).lines().count();
        (lines > 600).then(|| format!("{}: {lines} lines", path.display()))
    });
    assert_none("files that are too long", &long.collect::<Vec<_>>());
}

#[test]
fn unsafe_is_only_in_the_files_listed_in_architecture_md() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = architecture.split("## Where `unsafe` lives").nth(1).expect("ARCHITECTURE.md lists the unsafe modules");
    let section = section.split("\n## ").next().unwrap();
    let named: Vec<&str> = section.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs")).collect();
    let offenders = rust_files().into_iter().filter(|(path, text)| {
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        let unsafe_code = code
            .filter(|line| !line.contains('"'))
            .any(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe"));
        unsafe_code && !named.contains(&path.to_string_lossy().as_ref())
    });
    assert_none("`unsafe` outside the named modules", &offenders.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>());
    let gone = named.iter().filter(|path| !root().join(path).exists());
    assert_none("named modules that do not exist", &gone.map(|path| (*path).to_owned()).collect::<Vec<_>>());
}

#[test]
fn every_threat_has_a_test_of_its_name() {
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let ids = security.lines().filter_map(|line| line.strip_prefix("| T-")).filter_map(|line| line.split(' ').next());
    let tests: Vec<String> = rust_files().into_iter().map(|(_, text)| text).filter(|text| text.contains("#[test]")).collect();
    let names: Vec<(String, String)> =
        ids.map(|id| (format!("T-{id}"), format!("fn t_{}_", id.to_lowercase().replace('-', "_")))).collect();
    assert!(names.len() >= 24, "SECURITY.md lists the threats: {names:?}");
    // What a guest tries is tested under its name; of the rest, some test says that it is about it.
    let untested = names.into_iter().filter(|(id, name)| {
        let by_guest = id.starts_with("T-ISO") || id.starts_with("T-DOS");
        !tests.iter().any(|text| text.contains(name) || !by_guest && text.contains(id.as_str()))
    });
    assert_none("threats without a test", &untested.map(|(id, _)| id).collect::<Vec<_>>());
}

#[test]
fn every_threat_mentioned_in_code_is_in_the_list() {
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let mut unknown = Vec::new();
    for (path, text) in rust_files() {
        for mention in text.split("T-").skip(1) {
            let id: String = mention.chars().take_while(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '-').collect();
            let is_id = id.split_once('-').is_some_and(|(group, number)| group.len() >= 3 && number.len() == 2);
            if is_id && !security.contains(&format!("T-{id}")) {
                unknown.push(format!("{}: T-{id}", path.display()));
            }
        }
    }
    assert_none("threats that SECURITY.md does not know", &unknown);
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    let marks = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!("), concat!("#[ig", "nore")];
    let offenders = rust_files().into_iter().filter(|(_, text)| marks.iter().any(|mark| text.contains(mark)));
    assert_none("unfinished or switched-off code", &offenders.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>());
}

/// The roots of our own crates that run on the host, and the lints that each of them switches on. Cargo has one table of lints for a
/// workspace, without a word for "but not in tests, and not in guests": so each root has the list, and this test keeps them alike.
const HOST_ROOTS: [&str; 10] = [
    "cli/lib.rs",
    "git/src/lib.rs",
    "mcp-client/src/lib.rs",
    "presets/bench/src/lib.rs",
    "presets/src/lib.rs",
    "runtime/src/lib.rs",
    "sdk/python/src/lib.rs",
    "server/src/lib.rs",
    "skills/src/lib.rs",
    "sqlite-fs/src/lib.rs",
];
const HOST_LINTS: [&str; 6] =
    ["unwrap_used", "expect_used", "panic", "print_stdout", "cast_possible_truncation", "missing_errors_doc"];

#[test]
fn every_host_crate_switches_the_same_lints_on() {
    let mut offenders = Vec::new();
    for root_file in HOST_ROOTS {
        let text = fs::read_to_string(root().join(root_file)).unwrap();
        let list = text.split("warn(").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or_default();
        let missing = HOST_LINTS.iter().filter(|lint| !list.contains(&format!("clippy::{lint}")));
        offenders.extend(missing.map(|lint| format!("{root_file}: clippy::{lint}")));
    }
    assert_none("lints that are not switched on", &offenders);
}

/// Tables of files, keys and sessions.
const GUARDED_TABLES: [&str; 9] =
    ["fs_config", "fs_inode", "fs_dentry", "fs_data", "fs_symlink", "fs_whiteout", "kv_store", "sandlite_kv", "sandlite_session"];

/// The files that may change rows of those tables: one for a database in use, and three that make or copy a whole one, for
/// the reasons in their first lines.
const WRITERS: [&str; 4] =
    ["sqlite-fs/src/store/write.rs", "sqlite-fs/src/format.rs", "sqlite-fs/src/copy.rs", "sqlite-fs/src/compat.rs"];

/// The statements in a source text that change rows of the guarded tables, or of a table that only the running program knows.
fn row_changes(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect();
    let words: Vec<String> = code
        .split(|c: char| !c.is_alphanumeric() && !"_{".contains(c))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let mut found = Vec::new();
    for (at, verb) in words.iter().enumerate() {
        let mut rest = words[at + 1..].iter().map(String::as_str).peekable();
        if rest.next_if_eq(&"or").is_some() {
            rest.next();
        }
        let is_statement = match verb.as_str() {
            // That of `INSERT OR REPLACE` is not a statement of its own.
            "replace" if at > 0 && words[at - 1] == "or" => false,
            "insert" | "replace" => rest.next_if_eq(&"into").is_some(),
            "delete" => rest.next_if_eq(&"from").is_some(),
            "update" => true,
            _ => false,
        };
        rest.next_if(|word| ["main", "temp"].contains(word));
        let Some(table) = rest.next().filter(|_| is_statement) else { continue };
        let is_computed = table.starts_with('{') && (verb != "update" || rest.next() == Some("set"));
        if GUARDED_TABLES.contains(&table) || is_computed {
            found.push(format!("{verb} {table}"));
        }
    }
    found
}

fn is_test_or_bench(path: &Path) -> bool {
    path.iter().any(|part| ["tests", "tests.rs", "benches", "fuzz", "examples"].iter().any(|name| part == *name))
}

#[test]
fn rows_of_files_keys_and_sessions_are_changed_in_one_file() {
    let mut offenders = Vec::new();
    let mut writers = Vec::new();
    for (path, text) in rust_files().into_iter().filter(|(path, _)| !is_test_or_bench(path)) {
        let changes = row_changes(&without_tests(&text));
        if WRITERS.iter().any(|writer| path == Path::new(writer)) {
            writers.extend((!changes.is_empty()).then_some(path));
        } else {
            offenders.extend(changes.iter().map(|change| format!("{}: {change}", path.display())));
        }
    }
    assert_none("statements that belong in sqlite-fs/src/store/write.rs", &offenders);
    assert_eq!(writers.len(), WRITERS.len(), "only these change rows: {writers:?}");
}

#[test]
fn a_statement_that_changes_a_guarded_table_is_found() {
    let check = |text: &str, expected: &[&str]| assert_eq!(row_changes(text), expected, "{text}");
    check(r#"execute("DELETE FROM fs_inode WHERE ino=?1")"#, &["delete fs_inode"]);
    check(r#"execute("insert or replace into main.kv_store (key) VALUES (1)")"#, &["insert kv_store"]);
    check("\"REPLACE INTO\n    sandlite_session VALUES (1)\"", &["replace sandlite_session"]);
    check(r#"("UPDATE OR IGNORE fs_dentry SET a=1; DELETE FROM fs_data")"#, &["update fs_dentry", "delete fs_data"]);
    check(r#"format!("DELETE FROM {table}")"#, &["delete {table"]);
    check(r#"format!("UPDATE {table} SET a=1")"#, &["update {table"]);
    check(r#"execute("INSERT INTO tool_calls SELECT * FROM fs_inode")"#, &[]);
    check(r#"("INSERT INTO sandlite_usage VALUES (1) ON CONFLICT DO UPDATE SET names=1")"#, &[]);
    check("// UPDATE fs_inode\nself.update(fs); map.insert(\"fs_inode\"); if replace { delete() }", &[]);
}

/// Which of our own crates each crate may know.
const DIRECTIONS: [(&str, &[&str]); 21] = [
    (
        "sandlite",
        &["sandlite-bench", "sandlite-mcp-client", "sandlite-probes", "sandlite-runtime", "sandlite-server", "sandlite-skills"],
    ),
    ("sandlite-bench", &["sandlite-runtime"]),
    ("sandlite-server", &["sandlite-runtime", "sandlite-skills"]),
    ("sandlite-mcp-client", &["sandlite-runtime"]),
    ("sandlite-python", &["sandlite", "sandlite-mcp-client", "sandlite-runtime", "sandlite-skills"]),
    ("sandlite-skills", &["sandlite-runtime", "sandlite-zip"]),
    (
        "sandlite-runtime",
        &[
            "sandlite-abi",
            "sandlite-git",
            "sandlite-guests",
            "sandlite-image",
            "sandlite-presets",
            "sandlite-probes",
            "sandlite-zip",
            "sqlite-fs",
        ],
    ),
    ("sqlite-fs", &[]),
    ("sandlite-git", &[]),
    ("sandlite-presets", &[]),
    ("sandlite-guests", &[]),
    ("sandlite-abi", &[]),
    ("sandlite-image", &[]),
    ("sandlite-sys", &["sandlite-abi"]),
    ("sandlite-common", &["sandlite-sys"]),
    ("sandlite-pattern", &["sandlite-common"]),
    ("sandlite-posix-regex", &[]),
    (
        "sandlite-shell",
        &["sandlite-abi", "sandlite-common", "sandlite-pattern", "sandlite-posix-regex", "sandlite-sys", "sandlite-utilities"],
    ),
    (
        "sandlite-utilities",
        &["sandlite-abi", "sandlite-common", "sandlite-pattern", "sandlite-posix-regex", "sandlite-sys", "sandlite-zip"],
    ),
    ("sandlite-zip", &[]),
    ("sandlite-probes", &[]),
];

/// Lines of the runtime, outside its tests, that have one of these words in a file that is not named.
fn elsewhere(words: &[&str], allowed: &[&str]) -> Vec<String> {
    let files = rust_files().into_iter().filter(|(path, _)| path.starts_with("runtime/src") && !path.ends_with("vfs/model.rs"));
    let mut found = Vec::new();
    for (path, text) in files.filter(|(path, _)| !allowed.iter().any(|allowed| path.starts_with(allowed))) {
        let text = without_tests(&text);
        let lines = text.lines().filter(|line| words.iter().any(|word| line.contains(word)));
        found.extend(lines.map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    found
}

#[test]
fn a_view_is_made_in_one_place_for_readers_and_in_one_for_each_kind_of_run() {
    let made = ["View::new(", "View::of_run(", "View { rows"];
    let allowed = ["runtime/src/vfs/view.rs", "runtime/src/history/recorder.rs", "runtime/src/run/lifecycle.rs"];
    assert_none("a view is made in", &elsewhere(&made, &allowed));
    // The probes look at rows on purpose; an update compares layers that a view shows as one.
    let rows = [".transaction().fs()", "reader()?.fs()", "reader.fs()", "Fs::new("];
    let allowed =
        ["runtime/src/vfs", "runtime/src/run/probes", "runtime/src/sandbox/builder.rs", "runtime/src/sandbox/update.rs"];
    assert_none("files are reached past the view in", &elsewhere(&rows, &allowed));
    // A hook is the owner's: it sees changes of files that the caller must not see.
    let allowed = ["runtime/src/vfs/view.rs", "runtime/src/history/hooks.rs"];
    assert_none("rules are passed by in", &elsewhere(&[".unguarded()"], &allowed));
}

#[test]
fn a_transaction_begins_in_a_run() {
    // The position of a consumer of events is not a part of the sandbox: it has no run.
    let allowed = ["runtime/src/history", "runtime/src/run/lifecycle.rs", "runtime/src/versions/events.rs"];
    assert_none("a transaction begins in", &elsewhere(&["database.begin(", "database().begin("], &allowed));
}

#[test]
fn modules_that_need_unix_are_in_the_list_of_architecture_md() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = architecture.split("## Portability").nth(1).expect("ARCHITECTURE.md lists the modules");
    let section = section.split("\n## ").next().unwrap();
    let named = section.split('`').skip(1).step_by(2).filter(|word| word.starts_with("runtime/") && word.ends_with(".rs"));
    let named: Vec<&str> = named.collect();
    let words = ["std::os::", "rustix", "DirBuilderExt", "OpenOptionsExt", "MetadataExt"];
    assert_none("Unix outside the named modules", &elsewhere(&words, &named));
    let portable = named.iter().filter(|path| {
        let text = fs::read_to_string(root().join(path)).unwrap();
        !words.iter().any(|word| text.contains(word))
    });
    assert_none("named modules that do not need Unix", &portable.map(|path| (*path).to_owned()).collect::<Vec<_>>());
}

#[test]
fn the_history_has_one_author() {
    assert_none(
        "a row of the history is written in",
        &elsewhere(&[".calls()"], &["runtime/src/history", "runtime/src/run/probes"]),
    );
}

#[test]
fn crates_know_only_those_below_them() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let directions: BTreeMap<&str, &[&str]> = DIRECTIONS.into_iter().collect();
    let mut offenders = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if name == "xtask" {
            continue;
        }
        let Some(allowed) = directions.get(name) else {
            offenders.push(format!("`{name}` is not in the table of directions"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let known = dependency["name"].as_str().unwrap();
            let own = !dependency["path"].is_null();
            if own && !allowed.contains(&known) {
                offenders.push(format!("`{name}` knows `{known}`"));
            }
        }
    }
    assert_none("dependencies against the direction", &offenders);
}

/// Phrases that are grammatical but not idiomatic, and what to write instead. See the style rules in CONTRIBUTING.md.
const BANNED: [(&str, &str); 44] = [
    ("is no ", "`is not a` or `invalid`"),
    ("are no ", "`are not`"),
    ("unless told", "`defaults to`"),
    ("whoever", "a noun: the caller, the reader, the owner"),
    ("at most so many", "`maximum number of`"),
    ("for so long", "`for this long`"),
    ("so many bytes", "`this many bytes`"),
    ("goes on", "`continues` or `resumes`"),
    ("go on where", "`resume`"),
    ("go on with", "`continue with`"),
    ("has nothing to say", "name the result"),
    ("broke off", "`was aborted`"),
    ("broke down", "`failed` or `panicked`"),
    ("tells what", "`reports`, `prints` or `returns`"),
    ("tells how", "`reports`, `prints` or `returns`"),
    ("tells the", "`reports`, `prints` or `returns`"),
    ("tells whether", "`returns whether`"),
    ("is told", "`is notified` or `receives`"),
    ("are told", "`are notified` or `receive`"),
    ("was told", "`was notified` or `received`"),
    ("told to", "`instructed to`, or name the setting"),
    ("made up unless", "`generated if omitted`"),
    ("and answers the", "`and returns the`"),
    ("answers whether", "`returns whether`"),
    ("makes no sense", "`is invalid`"),
    ("in circles", "`a cycle`"),
    ("licence", "`license`"),
    ("canceling", "`cancelling`, as `cancelled` in the API"),
    ("is canceled", "`is cancelled`, as in the API"),
    ("was canceled", "`was cancelled`, as in the API"),
    ("be canceled", "`be cancelled`, as in the API"),
    ("says of", "`describes`, or name the text: description, header, label"),
    ("said of", "`described`, or name the text"),
    ("talked into", "name the attack: prompt injection, a forged request"),
    ("stands for itself", "`is literal`"),
    ("it has been said", "`after reporting it`"),
    ("nobody has been told", "`has not been reported`"),
    ("is told why", "`receives the reason`"),
    ("who waits", "name the noun: the process, the reader"),
    ("who asks", "`the caller`"),
    ("who asked", "`the caller`"),
    ("what became of", "`the result of`"),
    ("optimise", "the American spelling: `optimize`"),
    ("optimised", "the American spelling: `optimized`"),
];

/// The words of a test's name, if a line declares a test in Rust or Python: names are read, too.
fn words_of_test(line: &str) -> Option<String> {
    let line = line.trim();
    let line = line.strip_prefix("async ").unwrap_or(line);
    let name = match line.strip_prefix("fn ") {
        Some(rest) => rest.strip_suffix("() {")?,
        None => line.strip_prefix("def test_")?.split('(').next()?,
    };
    Some(format!("{} ", name.replace('_', " ")))
}

/// Files that are not scanned, each with the reason.
const UNSCANNED: [(&str, &str); 2] = [("tests/bash", "recorded from the real bash"), ("tests/tidy.rs", "lists the phrases")];

/// Whether a phrase is in a line, as words. `there is no X` and `is no longer` are idiomatic.
fn is_banned(line: &str, phrase: &str) -> bool {
    let line = line.to_lowercase();
    line.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + phrase.len()..]);
        let starts_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let ends_word = phrase.ends_with(' ') || !after.starts_with(|c: char| c.is_alphanumeric() && c != 's' || c == '_');
        let is_idiom = phrase.ends_with("no ")
            && (before.ends_with("there ") || ["longer", "more "].iter().any(|word| after.starts_with(word)));
        starts_word && ends_word && !is_idiom
    })
}

#[test]
fn banned_phrases_are_found_as_words() {
    let check = |line: &str, phrase: &str, expected: bool| assert_eq!(is_banned(line, phrase), expected, "{line}");
    check("`x` is no pattern", "is no ", true);
    check("There is no network, and it is no longer used", "is no ", false);
    check("this no", "is no ", false);
    check("Whoever reads", "whoever", true);
    check("licences", "licence", true);
    check("tells then", "tells the", false);
    let words = |line: &str| words_of_test(line).unwrap_or_default();
    check(&words("    fn a_file_is_no_directory() {"), "is no ", true);
    check(&words("async def test_a_session_goes_on(box):"), "goes on", true);
    check(&words("fn is_no_room(error: &Error) -> bool {"), "is no ", false);
}

#[test]
fn texts_are_idiomatic() {
    let mut offenders = Vec::new();
    let mut left = vec![root().to_owned()];
    let mut scanned = 0;
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let relative = path.strip_prefix(root()).unwrap().to_owned();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if UNSCANNED.iter().any(|(unscanned, _)| relative.starts_with(unscanned)) {
                continue;
            } else if path.is_dir() {
                let is_source = !name.starts_with('.') && !name.starts_with("target") && name != "node_modules";
                left.extend(is_source.then_some(path));
                continue;
            } else if !path.extension().is_some_and(|extension| extension == "rs" || extension == "py" || extension == "md") {
                continue;
            }
            scanned += 1;
            for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
                let name = words_of_test(line).unwrap_or_default();
                let is_found = |phrase: &str| is_banned(line, phrase) || is_banned(&name, phrase);
                for (phrase, instead) in BANNED.iter().filter(|(phrase, _)| is_found(phrase)) {
                    offenders.push(format!("{}:{}: `{}`: write {instead}", relative.display(), number + 1, phrase.trim()));
                }
            }
        }
    }
    assert!(scanned > 300, "scanned only {scanned} files: is this the repository?");
    assert_none("phrases that are not idiomatic", &offenders);
}
