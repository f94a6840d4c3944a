//! Each kind of error has the cause that its documentation names.

use std::fs;

use runtime::{ByteSize, Command, Error, ErrorKind, Overrides, Sandbox};

use super::{host, sandbox};

#[track_caller]
fn check<T>(result: Result<T, Error>, kind: ErrorKind) {
    let error = result.err().expect("an error");
    assert_eq!(error.kind(), kind, "{error}");
}

fn limited(overrides: Overrides) -> Sandbox {
    Sandbox::builder().host(host()).limits(overrides).open().unwrap()
}

#[test]
fn a_missing_name_is_not_found() {
    check(sandbox().fs().read("/missing"), ErrorKind::NotFound);
    check(sandbox().at("v99"), ErrorKind::NotFound);
}

#[test]
fn a_name_that_is_taken_exists() {
    let (sandbox, directory) = (sandbox(), tempfile::tempdir().unwrap());
    sandbox.fs().create_dir_all("/full/inner").unwrap();
    check(sandbox.fs().remove_dir("/full"), ErrorKind::Exists);
    let path = directory.path().join("taken.db");
    fs::write(&path, "").unwrap();
    check(sandbox.export(&path), ErrorKind::Exists);
}

#[test]
fn a_write_after_another_writers_change_is_stale() {
    let sandbox = sandbox();
    sandbox.fs().write("/file", "one").unwrap();
    let version = sandbox.fs().version("/file").unwrap();
    sandbox.fs().write("/file", "two").unwrap();
    check(sandbox.fs().write_if_version("/file", &version, "three"), ErrorKind::Stale);
    check(sandbox.kv().compare_and_set("key", 7, 1), ErrorKind::Stale);
}

#[test]
fn read_only_paths_and_rejections_by_a_hook_are_denied() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    Sandbox::builder().host(host()).database(&path).open().unwrap().close().unwrap();
    let reading = Sandbox::builder().host(host()).database(&path).read_only().open().unwrap();
    check(reading.fs().write("/file", "x"), ErrorKind::Denied);
    let sandbox = sandbox();
    sandbox.on_commit("/", |_| Err("not today".to_owned())).unwrap();
    check(sandbox.fs().write("/file", "x"), ErrorKind::Denied);
}

#[test]
fn one_thing_above_its_limit_is_too_large_and_all_together_are_full() {
    let small = limited(Overrides { file: Some(ByteSize(1000)), command_text: Some(ByteSize(1000)), ..Overrides::default() });
    check(small.fs().write("/file", vec![b'x'; 2000]), ErrorKind::TooLarge);
    check(small.run(Command::bash(format!(": {}", "x".repeat(2000)))), ErrorKind::TooLarge);
    let full = limited(Overrides { disk: Some(ByteSize(10_000)), ..Overrides::default() });
    check(full.fs().write("/file", vec![b'x'; 20_000]), ErrorKind::Full);
}

#[test]
fn an_argument_can_be_invalid_and_a_file_foreign() {
    let zero = Overrides { commands: Some(0), ..Overrides::default() };
    check(Sandbox::builder().host(host()).limits(zero).open(), ErrorKind::Invalid);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("letter.db");
    fs::write(&path, "Dear reader, this is a letter and not a database. ".repeat(100)).unwrap();
    check(Sandbox::builder().host(host()).database(&path).open(), ErrorKind::Foreign);
}
