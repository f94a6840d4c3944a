//! A sandbox is a file: it can be exported and continued elsewhere.

use runtime::{Export, Sandbox};

use super::{host, sandbox};

#[test]
fn a_snapshot_resumes_where_it_was_taken() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("snapshot.db");
    let original = sandbox();
    original.bash("echo one > ~/file").unwrap();
    original.kv().set("step", 3).unwrap();
    original.export(&path).unwrap();
    original.bash("echo two > ~/file").unwrap();

    let twin = Sandbox::builder().host(host()).import(&path).open().unwrap();
    assert_eq!(twin.bash("cat ~/file").unwrap().stdout, b"one\n");
    assert_eq!(twin.kv().get("step").unwrap(), Some(3.into()));
    let names: Vec<_> = twin.history(10).unwrap().into_iter().map(|run| run.name).collect();
    assert_eq!(names, ["kv_get", "bash", "kv_set", "bash"]);
}

#[test]
fn an_export_never_overwrites() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("taken");
    std::fs::write(&path, "mine").unwrap();
    assert!(sandbox().export(&path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn a_fork_is_independent() {
    let original = sandbox();
    original.bash("echo one > /tmp/file").unwrap();
    original.kv().set("token", "s").unwrap();
    original.kv().set_secret("token", true).unwrap();
    let fork = original.fork().unwrap();
    fork.bash("echo two > /tmp/file").unwrap();
    assert_eq!(original.bash("cat /tmp/file").unwrap().stdout, b"one\n");
    assert_eq!(fork.fs().read("/tmp/file").unwrap(), b"two\n");
    assert_eq!(fork.kv().get("token").unwrap(), Some("s".into()), "a fork keeps secrets, an export does not");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fork.db");
    let kept = fork.fork_to(&path).unwrap();
    assert_eq!(kept.info().unwrap().path.as_deref(), Some(path.as_path()));
    assert!(fork.fork_to(&path).is_err(), "a fork never overwrites");
}

#[test]
fn an_export_omits_secrets_and_optionally_history() {
    let directory = tempfile::tempdir().unwrap();
    let (plain, bare) = (directory.path().join("plain.db"), directory.path().join("bare.db"));
    let original = sandbox();
    original.kv().set("token", "hidden").unwrap();
    original.kv().set_secret("token", true).unwrap();
    original.export(&plain).unwrap();
    original.export_with(&bare, Export { history: false, secrets: true }).unwrap();
    let open = |path| Sandbox::builder().host(host()).import(path).open().unwrap();
    assert_eq!(open(&plain).kv().get("token").unwrap(), None);
    assert_eq!(open(&bare).kv().get("token").unwrap(), Some("hidden".into()));
    assert_eq!(open(&bare).history(10).unwrap(), []);
}

#[test]
fn a_sandbox_has_a_summary_and_passes_its_check() {
    let sandbox = sandbox();
    let empty = sandbox.info().unwrap();
    sandbox.fs().write("/a/five", "12345").unwrap();
    sandbox.fs().symlink("five", "/a/link").unwrap();
    sandbox.kv().set("k", true).unwrap();
    let info = sandbox.info().unwrap();
    let grown = (info.files - empty.files, info.directories - empty.directories, info.symlinks - empty.symlinks);
    assert_eq!(grown, (1, 1, 1));
    assert_eq!((info.keys, info.runs, info.disk_used, info.schema), (1, 3, 5, "0.4"));
    assert_eq!(info.disk_allowed, sandbox.limits().disk.0);
    assert_eq!(sandbox.check().unwrap(), []);
}

#[test]
fn a_database_in_use_can_be_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("busy.db");
    let busy = Sandbox::builder().host(host()).database(&path).open().unwrap();
    busy.fs().write("/file", "text").unwrap();
    let watcher = Sandbox::builder().host(host()).database(&path).read_only().open().unwrap();
    assert_eq!(watcher.fs().read("/file").unwrap(), b"text");
    assert!(watcher.fs().write("/file", "other").is_err());
    assert_eq!(watcher.history(5).unwrap().len(), 1);
}
