//! Git repositories made to harm their importer (T-GIT-01).

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runtime::{GitImport, Sandbox};

fn git(directory: &Path, arguments: &[&str], input: &[u8]) -> String {
    let mut command = Command::new("git");
    command.current_dir(directory).args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", directory).env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a");
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("these tests need `git`");
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn blob(directory: &Path, content: &[u8]) -> String {
    git(directory, &["hash-object", "-w", "--stdin"], content)
}

/// The bytes of a tree with any names.
fn tree(directory: &Path, entries: &[(&str, &[u8], &str)]) -> String {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend_from_slice(mode.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend((0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()));
    }
    git(directory, &["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &bytes)
}

fn import(directory: &Path, tree: &str) -> Result<Sandbox, String> {
    let commit = git(directory, &["commit-tree", "-m", "x", tree], b"");
    git(directory, &["update-ref", "refs/heads/main", &commit], b"");
    let sandbox = super::sandbox(runtime::Preset::Normal);
    let before = sandbox.versions().resolve("HEAD").unwrap();
    let options = GitImport { reference: None, into: "/in".to_owned(), depth: None };
    match sandbox.versions().git_import(directory, &options) {
        Ok(_) => Ok(sandbox),
        Err(error) => {
            assert_eq!(sandbox.versions().resolve("HEAD").unwrap(), before, "{error}");
            assert!(!sandbox.fs().exists("/in").unwrap(), "{error}");
            Err(error.to_string())
        }
    }
}

fn new() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "-q", "-b", "main"], b"");
    directory
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let directory = new();
    let at = directory.path();
    let file = blob(at, b"evil");
    for name in
        [&b".."[..], b".", b"", b"../x", b"/etc/x", b"a/b", b".git", b".GIT", b"git~1", b".git.", b"\xff\xfe", &[b'a'; 300]]
    {
        let error = import(at, &tree(at, &[("100644", name, &file)])).err().unwrap();
        assert!(error.contains("invalid file name") || error.contains("damaged"), "{name:?}: {error}");
    }
    let twice = tree(at, &[("120000", b"a", &file), ("100644", b"a", &file)]);
    assert!(import(at, &twice).err().unwrap().contains("duplicate entry"));
    for mode in ["100600", "0", "777", "170000"] {
        assert!(import(at, &tree(at, &[(mode, b"a", &file)])).is_err(), "{mode}");
    }
}

#[test]
fn a_link_is_a_link_and_nothing_is_written_through_it() {
    let directory = new();
    let at = directory.path();
    let (target, file) = (blob(at, b"/home/user"), blob(at, b"evil"));
    let below = tree(at, &[("100644", b"file", &file)]);
    // A file below a link: the second name is the same as the first.
    assert!(import(at, &tree(at, &[("120000", b"a", &target), ("40000", b"a", &below)])).is_err());
    let sandbox = import(at, &tree(at, &[("120000", b"a", &target)])).unwrap();
    assert_eq!(sandbox.fs().read_link("/in/a").unwrap(), "/home/user");
    for wrong in [&b""[..], b"a\0b", b"\xff", &[b'x'; 5000]] {
        assert!(import(at, &tree(at, &[("120000", b"a", &blob(at, wrong))])).is_err(), "{wrong:?}");
    }
}

#[test]
fn few_objects_that_are_many_files_and_many_directories_are_refused_at_once() {
    let directory = new();
    let at = directory.path();
    let file = blob(at, b"x");
    let names: Vec<String> = (0..10).map(|n| format!("d{n}")).collect();
    let of = |mode: &str, id: &str| {
        let entries: Vec<(&str, &[u8], &str)> = names.iter().map(|name| (mode, name.as_bytes(), id)).collect();
        tree(at, &entries)
    };
    // Ten to the tenth files.
    let mut bomb = of("100644", &file);
    for _ in 0..9 {
        bomb = of("40000", &bomb);
    }
    let started = Instant::now();
    let error = import(at, &bomb).err().unwrap();
    assert!(error.contains("it requires"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    let mut deep = tree(at, &[("100644", b"file", &file)]);
    for _ in 0..400 {
        deep = tree(at, &[("40000", b"d", &deep)]);
    }
    let error = import(at, &deep).err().unwrap();
    assert!(error.contains("nested"), "{error}");
}

#[test]
fn a_huge_file_of_few_bytes_is_refused() {
    let directory = new();
    let at = directory.path();
    // 300 MB of zeros are 300 KB in a repository.
    let file = blob(at, &vec![0; 300 << 20]);
    let error = import(at, &tree(at, &[("100644", b"zeros", &file)])).err().unwrap();
    assert!(error.contains("too large"), "{error}");
}
