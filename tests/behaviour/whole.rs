//! All or nothing: a verb is one transaction, content is charged before it is read, and nothing is acknowledged that
//! is not kept.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime::actions::MakeDirectory;
use runtime::agent::DeleteFile;
use runtime::{Command, Content, Error, FsError, LimitName, Policy, Sandbox};

use super::{host, sandbox, strict};

/// Zeros without end, counted.
struct Endless(Arc<AtomicU64>);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        buffer.fill(0);
        Ok(buffer.len())
    }
}

#[track_caller]
fn check_too_large(result: Result<u64, Error>, limit: LimitName) {
    let error = result.unwrap_err();
    assert!(matches!(&error, Error::TooLarge { limit: found, .. } if *found == limit), "{error:?}");
    assert!(error.to_string().contains(&format!("the limit `{}` is ", limit.as_str())), "{error}");
    assert!(error.hint().unwrap().contains("preset"));
}

/// T-DOS-07
#[test]
fn endless_content_is_rejected_at_the_limit() {
    let sandbox = strict();
    let read = Arc::new(AtomicU64::new(0));
    check_too_large(sandbox.fs().write_from("/x", Content::new(Endless(Arc::clone(&read)))), LimitName::File);
    let allowed = sandbox.limits().file.0;
    assert!(read.load(Ordering::Relaxed) <= allowed + (1 << 20), "{} of {allowed}", read.load(Ordering::Relaxed));
    assert!(!sandbox.fs().exists("/x").unwrap());
    assert_eq!(sandbox.info().unwrap().disk_used, 0);
}

/// T-DOS-07
#[test]
fn announced_content_is_refused_before_it_is_read() {
    let sandbox = strict();
    let read = Arc::new(AtomicU64::new(0));
    let endless = |bytes| Content::new(Endless(Arc::clone(&read))).announced(bytes);
    check_too_large(sandbox.fs().write_from("/x", endless(3 << 30)), LimitName::File);
    for number in 0..4 {
        sandbox.fs().write(&format!("/{number}"), vec![1; 15 << 20]).unwrap();
    }
    check_too_large(sandbox.fs().write_from("/x", endless(10 << 20)), LimitName::Disk);
    assert_eq!(read.load(Ordering::Relaxed), 0);
    // Replaced content frees its space.
    assert_eq!(sandbox.fs().write_from("/0", vec![2; 16 << 20]).unwrap(), 16 << 20);
}

/// T-DOS-07
#[test]
fn a_seed_is_charged_as_it_is_read() {
    let read = Arc::new(AtomicU64::new(0));
    let content = Content::new(Endless(Arc::clone(&read)));
    let builder = Sandbox::builder().host(host()).preset(runtime::Preset::Strict);
    let error = builder.file("/first", "text").file_from("/x", content).open().err().unwrap();
    assert!(matches!(error, Error::TooLarge { limit: LimitName::File, .. }), "{error:?}");
    assert!(read.load(Ordering::Relaxed) < 32 << 20);
}

#[test]
fn content_that_fails_in_the_middle_leaves_the_old_file() {
    struct Failing(bool);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("unplugged"));
            }
            buffer.fill(b'n');
            Ok(buffer.len())
        }
    }
    let sandbox = sandbox();
    sandbox.fs().write("/x", "old").unwrap();
    let error = sandbox.fs().write_from("/x", Content::new(Failing(false))).unwrap_err();
    assert!(matches!(error, Error::Input { .. }), "{error:?}");
    assert_eq!(sandbox.fs().read("/x").unwrap(), b"old");
}

#[test]
fn a_tree_that_does_not_fit_is_not_copied_in_part() {
    let sandbox = strict();
    for number in 0..5 {
        sandbox.fs().write(&format!("/tree/{number}"), vec![1; 10 << 20]).unwrap();
    }
    sandbox.fs().copy_dir_all("/tree", "/copy").unwrap_err();
    assert!(!sandbox.fs().exists("/copy").unwrap());
    assert_eq!(sandbox.fs().list("/tree").unwrap().len(), 5);
}

#[test]
fn a_copied_tree_has_the_same_files_links_and_permissions() {
    let sandbox = sandbox();
    sandbox.bash("mkdir -p /t/d; echo x > /t/d/f; chmod 700 /t/d; chmod 640 /t/d/f; ln -s d/f /t/l; mkfifo /t/p").unwrap();
    sandbox.fs().copy_dir_all("/t", "/u").unwrap();
    let seen = sandbox.bash("cat /u/l; stat -c '%a %n' /u/d /u/d/f; readlink /u/l; ls /u").unwrap();
    assert_eq!(String::from_utf8_lossy(&seen.stdout), "x\n700 /u/d\n640 /u/d/f\nd/f\nd\nl\n");
    for (from, to) in [("/t", "/t/v"), ("/t", "/t"), ("/", "/v")] {
        let error = sandbox.fs().copy_dir_all(from, to).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot copy `{from}` into itself"));
    }
    assert_eq!(sandbox.history(1).unwrap()[0].command, "copy_directory / /v");
}

#[test]
fn several_requests_delete_or_create_together_and_only_what_they_expect() {
    let sandbox = sandbox();
    let make = |paths: &[&str]| {
        let requests: Vec<_> = paths.iter().map(|&path| MakeDirectory { path: path.to_owned() }).collect();
        MakeDirectory::make_all(&requests, &sandbox).map(|made| made.into_iter().map(|made| made.path).collect::<Vec<_>>())
    };
    assert_eq!(make(&["d/e", "/f"]).unwrap(), ["/home/user/d/e", "/f"]);
    sandbox.fs().write("/home/user/a", "x").unwrap();
    assert!(make(&["/new", "a/b"]).is_err() && !sandbox.fs().exists("/new").unwrap());
    let request = |path: &str| DeleteFile { path: path.to_owned(), ..DeleteFile::default() };
    let error = DeleteFile::delete_all(&[request("a"), request("/f")], &sandbox).unwrap_err();
    assert_eq!((error.fs_error(), error.path()), (Some(FsError::IsDirectory), Some("/f")));
    let stale = DeleteFile { expected_version: Some("none".to_owned()), ..request("a") };
    let directory = DeleteFile { recursive: true, ..request("/f") };
    assert!(matches!(DeleteFile::delete_all(&[directory.clone(), stale], &sandbox), Err(Error::Stale { .. })));
    assert!(sandbox.fs().exists("/home/user/a").unwrap() && sandbox.fs().exists("/f").unwrap());
    assert_eq!(DeleteFile::delete_all(&[request("a"), directory], &sandbox).unwrap(), ["/home/user/a", "/f"]);
    assert!(!sandbox.fs().exists("/home/user/a").unwrap() && !sandbox.fs().exists("/f").unwrap());
}

#[test]
fn several_paths_are_removed_or_created_together() {
    let sandbox = sandbox();
    let paths = |list: &[&str]| list.iter().map(|&path| path.to_owned()).collect::<Vec<String>>();
    sandbox.fs().create_dirs(&paths(&["/a/b", "/c"])).unwrap();
    sandbox.fs().write("/c/f", "x").unwrap();
    sandbox.fs().create_dirs(&paths(&["/d", "/c/f"])).unwrap_err();
    assert!(!sandbox.fs().exists("/d").unwrap());
    sandbox.fs().remove_all(&paths(&["/a", "/missing"])).unwrap_err();
    assert!(sandbox.fs().exists("/a/b").unwrap());
    sandbox.fs().remove_all(&paths(&["/a", "/c"])).unwrap();
    assert_eq!(sandbox.history(1).unwrap()[0].command, "delete_files /a /c");
    assert!(!sandbox.fs().exists("/a").unwrap() && !sandbox.fs().exists("/c").unwrap());
}

#[test]
fn several_keys_are_deleted_together() {
    let sandbox = sandbox();
    sandbox.kv().set("one", 1).unwrap();
    sandbox.kv().set("two", 2).unwrap();
    let keys = ["one", "none", "two"].map(str::to_owned);
    assert_eq!(sandbox.kv().delete_all(&keys).unwrap(), [true, false, true]);
    assert_eq!(sandbox.history(1).unwrap()[0].command, "kv_delete one none two");
}

fn open(path: &Path) -> Sandbox {
    Sandbox::builder().host(host()).database(path).open().unwrap()
}

#[track_caller]
fn check_moved<T>(result: Result<T, Error>) {
    let Err(error) = result else { panic!("it was acknowledged") };
    assert!(error.to_string().ends_with("was replaced or removed while it was open"), "{error}");
    assert!(error.hint().unwrap().contains("put it back"), "{error}");
}

/// T-REL-01
#[test]
fn a_removed_database_is_detected_by_every_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let sandbox = open(&path);
    let shell = sandbox.session("s").unwrap();
    shell.bash("x=1").unwrap();
    let mut python = sandbox.python_session().unwrap();
    python.python("x = 1").unwrap();
    std::fs::rename(&path, directory.path().join("elsewhere.db")).unwrap();
    check_moved(sandbox.bash("echo lost > /x"));
    check_moved(sandbox.run(Command::python("open('/x', 'w')")));
    check_moved(shell.bash("x=2"));
    check_moved(python.python("x = 2"));
    check_moved(sandbox.fs().write("/x", "lost"));
    check_moved(sandbox.kv().set("x", 1));
    check_moved(sandbox.fs().read("/x"));
    check_moved(sandbox.info());
    check_moved(sandbox.fork_to(directory.path().join("fork.db")));
    check_moved(sandbox.export(directory.path().join("export.db")));
    std::fs::rename(directory.path().join("elsewhere.db"), &path).unwrap();
    assert!(!sandbox.fs().exists("/x").unwrap());
    assert_eq!(sandbox.bash("echo back").unwrap().stdout, b"back\n");
    assert_eq!(shell.bash("echo $x").unwrap().stdout, b"1\n");
}

#[test]
fn a_directory_of_the_host_appears_when_everything_is_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = sandbox();
    sandbox.bash("mkdir -p /t/d; echo x > /t/d/f").unwrap();
    sandbox.export_tree("/t", directory.path().join("out")).unwrap();
    assert_eq!(std::fs::read(directory.path().join("out/d/f")).unwrap(), b"x\n");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    sandbox.export_tree("/t/d/f", directory.path().join("none")).unwrap_err();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn devices_that_an_import_leaves_out_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let snapshot = directory.path().join("snapshot.db");
    let sandbox = sandbox();
    sandbox.bash("mkfifo /tmp/queue; echo x > /tmp/file").unwrap();
    sandbox.export(&snapshot).unwrap();
    // The mode of a named pipe becomes that of a character device.
    let mut bytes = std::fs::read(&snapshot).unwrap();
    let found: Vec<usize> = (0..bytes.len() - 1).filter(|&at| bytes[at..at + 2] == [0x11, 0xA4]).collect();
    let [at] = found[..] else { panic!("{found:?}") };
    bytes[at] = 0x21;
    std::fs::write(&snapshot, bytes).unwrap();
    let imported = Sandbox::builder().host(host()).import(&snapshot).open().unwrap();
    assert_eq!(imported.import_notes(), ["`queue` is a device or socket: omitted"]);
    assert_eq!(imported.fs().list("/tmp").unwrap().len(), 1);
    assert!(imported.fork().unwrap().import_notes().is_empty());
    // They name paths that a view may not see.
    let policy = Policy::parse("[[rule]]\npath = \"/tmp\"\naccess = \"hidden\"").unwrap();
    assert!(imported.with_policy(policy).unwrap().import_notes().is_empty());
}
