//! The file tools from an agent's point of view. No guest runs here.

use sqlite_fs::FsError;

use super::*;
use crate::Run;
use crate::host::Host;

fn sandbox() -> Sandbox {
    Sandbox::builder().host(&Host::builder().build().unwrap()).open().unwrap()
}

fn with(files: &[(&str, &str)]) -> Sandbox {
    let sandbox = sandbox();
    files.iter().for_each(|(path, content)| sandbox.fs().write(path, content).unwrap());
    sandbox
}

fn read(path: &str) -> ReadFile {
    ReadFile { path: path.to_owned(), ..ReadFile::default() }
}

fn edit(path: &str, edits: &[(&str, &str)]) -> EditFile {
    let edits = edits.iter().map(|(old, new)| Edit { old: (*old).into(), new: (*new).into(), replace_all: false });
    EditFile { path: path.to_owned(), edits: edits.collect(), expected_version: None }
}

fn content(sandbox: &Sandbox, path: &str) -> String {
    String::from_utf8(sandbox.fs().read(path).unwrap()).unwrap()
}

fn names(sandbox: &Sandbox) -> Vec<(String, &'static str)> {
    sandbox.history(10).unwrap().into_iter().map(|Run { name, status, .. }| (name, status)).collect()
}

#[test]
fn a_file_is_read_with_numbered_lines_and_its_version() {
    let sandbox = with(&[("/home/user/a.txt", "one\ntwo\n")]);
    let window = sandbox.agent().read(&read("a.txt")).unwrap();
    assert_eq!((window.start_line, window.end_line, window.total_lines, window.truncated), (1, 2, Some(2), false));
    assert_eq!(window.content, "one\ntwo\n");
    let expected = format!("     1\tone\n     2\ttwo\n[/home/user/a.txt: 8 bytes, 2 lines, version {}]", window.version);
    assert_eq!(window.render(), expected);
}

#[test]
fn nothing_matches_below_a_file() {
    let sandbox = with(&[("/home/user/a.txt", ""), ("/home/user/d/b.txt", "")]);
    let glob = |pattern: &str| {
        let request = Glob { pattern: pattern.to_owned(), ..Glob::default() };
        sandbox.agent().glob(&request).map(|found| found.paths)
    };
    for pattern in ["a.txt/*", "a.txt/b/*", "d/b.txt/**", "/home/user/a.txt/*", "no/*", "/no/*"] {
        assert_eq!(glob(pattern).unwrap(), [""; 0], "{pattern}");
    }
    assert_eq!(glob("d/*").unwrap(), ["/home/user/d/b.txt"]);
    let below = Glob { pattern: "*".to_owned(), path: Some("a.txt".to_owned()), ..Glob::default() };
    assert_eq!(sandbox.agent().glob(&below).unwrap_err().fs_error(), Some(FsError::NotDirectory));
}

#[test]
fn a_window_has_a_note_on_how_to_continue() {
    let lines: String = (1..=5000).map(|line| format!("line {line}\n")).collect();
    let sandbox = with(&[("/big", &lines)]);
    let window = sandbox.agent().read(&read("/big")).unwrap();
    assert_eq!((window.start_line, window.end_line, window.total_lines), (1, 2000, Some(5000)));
    assert_eq!(window.notes, ["3000 more lines: continue with offset=2001"]);
    let window = sandbox.agent().read(&ReadFile { offset: Some(4999), limit: Some(10), ..read("/big") }).unwrap();
    assert_eq!(window.content, "line 4999\nline 5000\n");
    let window = sandbox.agent().read(&ReadFile { offset: Some(9999), ..read("/big") }).unwrap();
    assert_eq!((window.content.as_str(), window.notes[0].as_str()), ("", "the file has only 5000 lines"));
}

#[test]
fn output_is_capped_and_long_lines_are_cut() {
    let sandbox = with(&[("/long", &"x".repeat(9000)), ("/wide", &format!("{}\n", "y".repeat(1500)).repeat(400))]);
    let window = sandbox.agent().read(&read("/long")).unwrap();
    assert_eq!(window.content.len(), 2000);
    assert!(window.notes[0].starts_with("1 line was truncated to 2000 bytes"), "{:?}", window.notes);
    assert_eq!(window.notes[1], "the last line does not end with a newline");
    let window = sandbox.agent().read(&read("/wide")).unwrap();
    assert!(window.content.len() < MAX_OUTPUT + 1501, "{}", window.content.len());
    assert_eq!(window.notes[0], format!("{} more lines: continue with offset={}", 400 - window.end_line, window.end_line + 1));
}

#[test]
fn bytes_that_are_not_text_are_read_as_base64() {
    let sandbox = sandbox();
    sandbox.fs().write("/bin.dat", [0, 159, 146, 150]).unwrap();
    let window = sandbox.agent().read(&read("/bin.dat")).unwrap();
    assert_eq!((window.content.as_str(), window.encoding), ("AJ+Slg==", Encoding::Base64));
    sandbox.fs().write("/text", "0123456789").unwrap();
    let request = ReadFile { byte_offset: Some(2), byte_length: Some(3), ..read("/text") };
    let window = sandbox.agent().read(&request).unwrap();
    assert_eq!((window.content.as_str(), window.notes[0].as_str()), ("234", "5 more bytes: continue with byte_offset=5"));
}

#[test]
fn the_world_around_the_rows_is_readable_too() {
    let window = sandbox().agent().read(&read("/etc/hostname")).unwrap();
    assert_eq!(window.content, "sandlite\n");
    let error = sandbox().agent().read(&read("/dev/zero")).unwrap_err();
    assert_eq!(error.to_string(), "`/dev/zero` is not a regular file: read it with `bash`");
}

#[test]
fn errors_name_the_path_and_the_reason() {
    let sandbox = sandbox();
    let error = sandbox.agent().read(&read("missing")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read `/home/user/missing`: no such file or directory");
    let error = sandbox.agent().read(&read("/home")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read `/home`: is a directory");
    assert_eq!(names(&sandbox), [("read_file".to_owned(), "error"), ("read_file".to_owned(), "error")]);
}

#[test]
fn a_write_with_an_old_version_is_refused() {
    let sandbox = sandbox();
    let tools = sandbox.agent();
    let first = tools.write(&WriteFile::text("new/dir/f", "1")).unwrap();
    assert!(first.created);
    let guarded = |content: &str, version: &str| WriteFile {
        expected_version: Some(version.to_owned()),
        ..WriteFile::text("new/dir/f", content)
    };
    let second = tools.write(&guarded("2", &first.version)).unwrap();
    assert!(!second.created);
    let error = tools.write(&guarded("3", &first.version)).unwrap_err();
    assert!(matches!(error, Error::Stale { .. }), "{error}");
    assert!(tools.write(&guarded("4", "none")).is_err());
    assert_eq!(content(&sandbox, "/home/user/new/dir/f"), "2");
    let fresh = WriteFile { expected_version: Some("none".into()), ..WriteFile::text("fresh", "x") };
    assert!(tools.write(&fresh).unwrap().created);
}

#[test]
fn base64_is_written_as_bytes() {
    let sandbox = sandbox();
    let request = WriteFile { encoding: Encoding::Base64, ..WriteFile::text("/b", "AP8=") };
    assert_eq!(sandbox.agent().write(&request).unwrap().size, 2);
    assert_eq!(sandbox.fs().read("/b").unwrap(), [0, 255]);
    let request = WriteFile { encoding: Encoding::Base64, ..WriteFile::text("/b", "no!") };
    assert!(sandbox.agent().write(&request).unwrap_err().to_string().starts_with("invalid base64 content"));
}

#[test]
fn edits_are_all_or_nothing() {
    let sandbox = with(&[("/f", "a\nb\nc\n")]);
    let edited = sandbox.agent().edit(&edit("/f", &[("a", "A"), ("A\nb", "AB")])).unwrap();
    assert_eq!((content(&sandbox, "/f").as_str(), edited.replacements, edited.lines), ("AB\nc\n", 2, vec![1, 1]));
    let error = sandbox.agent().edit(&edit("/f", &[("c", "C"), ("zzz", "y")])).unwrap_err();
    assert_eq!(error.to_string(), "edit 2 of `/f`: the old text was not found; no changes were made");
    assert_eq!(content(&sandbox, "/f"), "AB\nc\n");
}

#[test]
fn an_old_text_must_be_there_exactly_once() {
    let sandbox = with(&[("/f", "x = 1\nx = 1\n"), ("/aaa", "aaa")]);
    let error = sandbox.agent().edit(&edit("/f", &[("x = 1", "y")])).unwrap_err();
    assert!(error.to_string().contains("occurs 2 times"), "{error}");
    assert!(sandbox.agent().edit(&edit("/aaa", &[("aa", "b")])).is_err(), "overlapping places are two");
    let mut all = edit("/f", &[("x = 1", "y")]);
    all.edits[0].replace_all = true;
    assert_eq!(sandbox.agent().edit(&all).unwrap().replacements, 2);
    let error = sandbox.agent().edit(&edit("/f", &[("  y\n", "z")])).unwrap_err();
    assert!(error.to_string().contains("line 1 is similar to its first line"), "{error}");
}

#[test]
fn crlf_files_are_edited_with_plain_line_ends() {
    let sandbox = with(&[("/dos", "one\r\ntwo\r\nthree\r\n")]);
    let window = sandbox.agent().read(&read("/dos")).unwrap();
    assert_eq!(window.content, "one\ntwo\nthree\n");
    assert_eq!(window.notes, ["lines end with CRLF, which edit_file preserves"]);
    sandbox.agent().edit(&edit("/dos", &[("one\ntwo", "1\n2")])).unwrap();
    assert_eq!(content(&sandbox, "/dos"), "1\r\n2\r\nthree\r\n");
}

#[test]
fn directories_are_listed_to_a_depth_without_hidden_names() {
    let sandbox = with(&[("/p/a/b/c.txt", "123"), ("/p/.git/config", ""), ("/p/z", "")]);
    let list = |depth, hidden| {
        let request = ListFiles { path: Some("/p".into()), depth: Some(depth), hidden };
        sandbox.agent().list(&request).unwrap()
    };
    let flat = list(1, false);
    assert_eq!(flat.render(), "/p/a/\n/p/z (0 bytes)\n[1 hidden name omitted: set hidden=true to list them]");
    let paths: Vec<_> = list(9, true).entries.into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["/p/.git", "/p/.git/config", "/p/a", "/p/a/b", "/p/a/b/c.txt", "/p/z"]);
    let root = sandbox.agent().list(&ListFiles { path: Some("/".into()), depth: Some(2), hidden: false }).unwrap();
    assert!(root.entries.iter().any(|entry| entry.path == "/etc") && root.entries.iter().all(|e| !e.path.starts_with("/etc/")));
}

#[test]
fn long_listings_have_a_note_that_there_is_more() {
    let files: Vec<_> = (0..1100).map(|number| format!("/many/{number:04}")).collect();
    let sandbox = sandbox();
    files.iter().for_each(|path| sandbox.fs().write(path, "").unwrap());
    let listed = sandbox.agent().list(&ListFiles { path: Some("/many".into()), ..ListFiles::default() }).unwrap();
    assert_eq!((listed.entries.len(), listed.truncated), (1000, true));
    let found = sandbox.agent().glob(&Glob { pattern: "/many/*".into(), ..Glob::default() }).unwrap();
    assert_eq!((found.paths.len(), found.truncated), (1000, true));
}

#[test]
fn globs_know_stars_and_braces() {
    let sandbox = with(&[("/s/a.rs", ""), ("/s/d/b.rs", ""), ("/s/d/e/c.toml", ""), ("/s/.h/x.rs", "")]);
    let glob = |pattern: &str, path: Option<&str>| {
        let request = Glob { pattern: pattern.into(), path: path.map(Into::into), hidden: false };
        sandbox.agent().glob(&request).unwrap().paths
    };
    assert_eq!(glob("**/*.{rs,toml}", Some("/s")), ["/s/a.rs", "/s/d/b.rs", "/s/d/e/c.toml"]);
    assert_eq!(glob("*.rs", Some("/s")), ["/s/a.rs"]);
    assert_eq!(glob("/s/d/**", None), ["/s/d/b.rs", "/s/d/e/c.toml"]);
    assert_eq!(glob("/s/**/.h/*", None), ["/s/.h/x.rs"]);
    assert_eq!(glob("/nowhere/*.rs", None), [""; 0]);
    assert!(sandbox.agent().glob(&Glob { pattern: "[".into(), ..Glob::default() }).is_err());
}

#[test]
fn grep_finds_lines_files_and_counts() {
    let sandbox = with(&[("/s/a.py", "import os\nx = 1\nimport re\n"), ("/s/b.txt", "IMPORT\n"), ("/s/c.bin", "import\0")]);
    let request = Grep { pattern: "^import".into(), path: Some("/s".into()), ..Grep::default() };
    let found = sandbox.agent().grep(&request).unwrap();
    assert_eq!(found.render(), "/s/a.py:1:import os\n/s/a.py:3:import re");
    let found = sandbox.agent().grep(&Grep { context: 1, max_matches: Some(1), ..request.clone() }).unwrap();
    assert!(found.truncated);
    assert!(found.render().starts_with("/s/a.py:1:import os\n/s/a.py-2-x = 1\n[more matches"), "{}", found.render());
    let count = Grep { mode: GrepMode::Count, ignore_case: true, ..request.clone() };
    assert_eq!(sandbox.agent().grep(&count).unwrap().render(), "/s/a.py:2\n/s/b.txt:1");
    let files = Grep { mode: GrepMode::Files, glob: Some("*.py".into()), ..request.clone() };
    assert_eq!(sandbox.agent().grep(&files).unwrap().render(), "/s/a.py:1");
    let literal = Grep { pattern: "x = 1".into(), literal: true, ..request };
    assert_eq!(sandbox.agent().grep(&literal).unwrap().matches[0].line, 2);
    assert!(sandbox.agent().grep(&Grep { pattern: "(".into(), ..Grep::default() }).is_err());
}

#[test]
fn deleting_a_directory_requires_recursive() {
    let sandbox = with(&[("/d/e/f", ""), ("/d/g", "")]);
    let delete =
        |path: &str, recursive| sandbox.agent().delete(&DeleteFile { path: path.into(), recursive, ..DeleteFile::default() });
    assert_eq!(delete("/d", false).unwrap_err().to_string(), "cannot delete `/d`: directory not empty");
    assert_eq!(delete("/d", true).unwrap().deleted, 4);
    assert!(!sandbox.fs().exists("/d").unwrap());
    assert!(delete("/d", true).is_err());
    assert!(delete("/", true).is_err());
    assert!(delete("/bin", false).is_err(), "the fixed world stays");
}

#[test]
fn moving_replaces_a_file_only_with_overwrite() {
    let sandbox = with(&[("/a", "A"), ("/b", "B")]);
    let rename = |to: &str, overwrite| {
        sandbox.agent().rename(&MoveFile { from: "/a".into(), to: to.into(), overwrite, ..MoveFile::default() })
    };
    assert_eq!(rename("/b", false).unwrap_err().to_string(), "`/b` already exists: set overwrite to replace it");
    assert!(rename("/b", true).unwrap().replaced);
    assert_eq!(content(&sandbox, "/b"), "A");
    assert!(rename("/c", false).is_err());
    sandbox.agent().rename(&MoveFile { from: "/b".into(), to: "/new/dir/b".into(), ..MoveFile::default() }).unwrap();
    assert_eq!(content(&sandbox, "/new/dir/b"), "A");
    let into_itself = MoveFile { from: "/new".into(), to: "/new/dir/new".into(), ..MoveFile::default() };
    assert_eq!(sandbox.agent().rename(&into_itself).unwrap_err().to_string(), "cannot move `/new` into itself");
}

#[test]
fn every_tool_is_a_row_of_the_history() {
    let sandbox = with(&[]);
    sandbox.agent().write(&WriteFile::text("/f", "x")).unwrap();
    sandbox.agent().list(&ListFiles::default()).unwrap();
    sandbox.agent().delete(&DeleteFile { path: "/f".into(), ..DeleteFile::default() }).unwrap();
    let expected = [("delete_file", "success"), ("list_files", "success"), ("write_file", "success")];
    assert_eq!(names(&sandbox)[..3], expected.map(|(name, status)| (name.to_owned(), status)));
    let write = sandbox.history(10).unwrap().remove(2);
    assert_eq!(write.changes.unwrap()[0]["path"], "/f");
}

// T-DOS-03: a kilobyte that becomes gigabytes.
#[test]
fn t_dos_03_an_edit_is_refused_before_its_result_is_built() {
    let sandbox = with(&[("/a", &"a".repeat(1000))]);
    let all = |old: &str, new: &str| Edit { old: old.to_owned(), new: new.to_owned(), replace_all: true };
    let once = EditFile { path: "/a".to_owned(), edits: vec![all("a", &"b".repeat(1 << 20))], expected_version: None };
    let error = sandbox.agent().edit(&once).unwrap_err().to_string();
    assert!(error.contains("1000 replacements would make the file larger than 67108864 bytes"), "{error}");
    // Each step doubles; together they would be a terabyte.
    let steps = EditFile { edits: (0..15).flat_map(|_| [all("a", "bb"), all("b", "aa")]).collect(), ..once };
    assert!(sandbox.agent().edit(&steps).unwrap_err().to_string().contains("no changes were made"));
    assert_eq!(content(&sandbox, "/a"), "a".repeat(1000));
}

// T-DOS-03: the preset's own limit is met before the file is built, too.
#[test]
fn t_dos_03_an_edit_knows_the_limit_of_a_file() {
    let host = Host::builder().build().unwrap();
    let sandbox = Sandbox::builder().host(&host).preset(crate::Preset::Strict).file("/a", "a".repeat(1 << 20)).open().unwrap();
    let edits = vec![Edit { old: "a".to_owned(), new: "b".repeat(20), replace_all: true }];
    let error = sandbox.agent().edit(&EditFile { path: "/a".to_owned(), edits, expected_version: None }).unwrap_err().to_string();
    assert!(error.contains("larger than 16777216 bytes"), "{error}");
}

// T-DOS-08: places that overlap are counted only so far, for each of them is a search through the file.
#[test]
fn t_dos_08_overlapping_matches_are_counted_in_bounded_time() {
    let sandbox = with(&[("/a", &"a".repeat(8 << 20))]);
    let error = sandbox.agent().edit(&edit("/a", &[(&"a".repeat(1 << 20), "b")])).unwrap_err().to_string();
    assert!(error.contains("at least 100 times"), "{error}");
}

// T-DOS-03: what a tool returns is bounded in bytes, not only in entries.
#[test]
fn t_dos_03_lists_of_long_paths_are_truncated_with_a_note() {
    let sandbox = sandbox();
    let directory = format!("/{}", vec!["d".repeat(200); 15].join("/"));
    for number in 0..60 {
        sandbox.agent().write(&WriteFile::text(format!("{directory}/{number}"), "match\n")).unwrap();
    }
    let most = 2 * MAX_OUTPUT;
    let glob = sandbox.agent().glob(&Glob { pattern: "/**/*".to_owned(), ..Glob::default() }).unwrap();
    assert!(glob.truncated && !glob.paths.is_empty() && glob.render().len() < most, "{}", glob.render().len());
    let list = ListFiles { path: Some("/".to_owned()), depth: Some(20), ..ListFiles::default() };
    let list = sandbox.agent().list(&list).unwrap();
    assert!(list.truncated && list.render().len() < most && list.notes[0].starts_with("only the first "), "{:?}", list.notes);
    let grep = |mode, context| Grep { pattern: "match".to_owned(), path: Some("/".to_owned()), mode, context, ..Grep::default() };
    for mode in [GrepMode::Content, GrepMode::Files, GrepMode::Count] {
        let found = sandbox.agent().grep(&grep(mode, 20)).unwrap();
        assert!(found.truncated && found.render().len() < most, "{mode:?} {}", found.render().len());
    }
}

// T-DOS-03: a match is printed with its path on every line of context.
#[test]
fn t_dos_03_context_counts_toward_the_size_of_a_result() {
    let sandbox = with(&[("/f", &format!("{}\n", "x".repeat(490)).repeat(5000))]);
    let request = Grep { pattern: "x".to_owned(), path: Some("/f".to_owned()), context: 20, ..Grep::default() };
    let found = sandbox.agent().grep(&request).unwrap();
    assert!(found.truncated && found.render().len() <= MAX_OUTPUT + 1000, "{}", found.render().len());
    assert!(found.notes[0].contains("less context"), "{:?}", found.notes);
}

#[test]
fn grep_shows_context_at_both_ends_and_lines_that_are_not_utf_8() {
    let sandbox = sandbox();
    sandbox.fs().write("/f", b"one\r\ntwo\n\xfftwo\xfe\nfour".as_slice()).unwrap();
    let request = Grep { pattern: "two$|o.$".to_owned(), path: Some("/f".to_owned()), context: 1, ..Grep::default() };
    let found = sandbox.agent().grep(&request).unwrap();
    assert_eq!(found.render(), "/f-1-one\n/f:2:two\n/f-3-\u{fffd}two\u{fffd}");
    let count = Grep { mode: GrepMode::Count, pattern: "o".to_owned(), ..request };
    assert_eq!(sandbox.agent().grep(&count).unwrap().files[0].count, 4);
}

// T-DOS-03: every line is printed with its number, an empty one too.
#[test]
fn t_dos_03_empty_lines_fill_a_window() {
    let sandbox = with(&[("/f", &"\n".repeat(1 << 20))]);
    let window = sandbox.agent().read(&ReadFile { limit: Some(u64::MAX), ..read("/f") }).unwrap();
    assert!(window.render().len() < 2 * MAX_OUTPUT, "{}", window.render().len());
    assert!(window.truncated && window.notes[0].contains("continue with offset="), "{:?}", window.notes);
}

// T-DOS-03: what takes many times its length to parse, or would be kept in the history, is refused or cut.
#[test]
fn t_dos_03_long_texts_are_refused_and_not_recorded() {
    let sandbox = sandbox();
    let long = "x".repeat(1 << 20);
    let tools = sandbox.agent();
    assert!(tools.read(&read(&long)).unwrap_err().to_string().len() < 300);
    assert!(tools.glob(&Glob { pattern: long.clone(), ..Glob::default() }).unwrap_err().to_string().len() < 300);
    assert!(tools.grep(&Grep { pattern: long.clone(), ..Grep::default() }).unwrap_err().to_string().len() < 300);
    assert!(tools.grep(&Grep { glob: Some(long.clone()), ..Grep::default() }).unwrap_err().to_string().len() < 300);
    assert_eq!(sandbox.kv().get(&long).unwrap(), None);
    assert_eq!(sandbox.kv().keys_after(&long, Some(&long)).unwrap(), crate::KeyPage::default());
    for run in sandbox.history(10).unwrap() {
        let recorded = run.command.len() + run.parameters.map_or(0, |parameters| parameters.to_string().len());
        assert!(recorded < 20_000, "{} {recorded}", run.name);
    }
}

#[test]
fn a_directory_is_deleted_with_everything_in_it() {
    let sandbox = with(&[]);
    for path in ["/d/a/b/1", "/d/a/2", "/d/3", "/e"] {
        sandbox.agent().write(&WriteFile::text(path, "x")).unwrap();
    }
    let deleted =
        sandbox.agent().delete(&DeleteFile { path: "/d".to_owned(), recursive: true, ..DeleteFile::default() }).unwrap();
    assert_eq!((deleted.deleted, sandbox.fs().exists("/d").unwrap(), sandbox.fs().exists("/e").unwrap()), (6, false, true));
}
