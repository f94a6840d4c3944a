//! Closing a sandbox reports what dropping it would hide; handles can be shared between threads.

use std::fs;

use runtime::{Cancel, Child, Command, Host, Sandbox};

#[test]
fn a_closed_sandbox_is_one_complete_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let sandbox = Sandbox::builder().host(super::host()).database(&path).open().unwrap();
    sandbox.bash("echo kept > file").unwrap();
    sandbox.fs().read("/home/user/file").unwrap();
    sandbox.close().unwrap();
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with("-wal")), "{names:?}");
    let copy = directory.path().join("copy.db");
    fs::copy(&path, &copy).unwrap();
    let sandbox = Sandbox::builder().host(super::host()).database(&copy).open().unwrap();
    assert_eq!(sandbox.fs().read("/home/user/file").unwrap(), b"kept\n");
    assert!(sandbox.check().unwrap().is_empty());
}

#[test]
fn closing_reports_a_file_that_was_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let sandbox = Sandbox::builder().host(super::host()).database(&path).open().unwrap();
    sandbox.bash("echo kept > file").unwrap();
    fs::rename(&path, directory.path().join("moved.db")).unwrap();
    let error = sandbox.close().unwrap_err();
    assert!(error.to_string().contains("agent.db"), "{error}");
}

#[test]
fn other_handles_continue_after_one_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::builder().host(super::host()).database(directory.path().join("agent.db")).open().unwrap();
    let other = sandbox.clone();
    sandbox.close().unwrap();
    assert_eq!(other.bash("echo still here").unwrap().stdout, b"still here\n");
    other.close().unwrap();
    Sandbox::builder().host(super::host()).open().unwrap().close().unwrap();
}

// The documentation of the crate promises it.
#[test]
fn handles_can_be_sent_to_and_shared_with_other_threads() {
    fn is_shared<T: Send + Sync + Clone>() {}
    fn is_sent<T: Send>() {}
    is_shared::<Host>();
    is_shared::<Sandbox>();
    is_shared::<Cancel>();
    is_sent::<Command>();
    is_sent::<Child>();
}
