//! A sandbox is a file: it can be exported, and goes on elsewhere.

use runtime::Sandbox;

use super::{host, sandbox};

#[test]
fn a_snapshot_goes_on_where_it_was() {
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
    assert_eq!(twin.history(10).unwrap().len(), 2);
}

#[test]
fn an_export_never_overwrites() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("taken");
    std::fs::write(&path, "mine").unwrap();
    assert!(sandbox().export(&path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}
