//! Files are rows: they survive commands, and bash and the library see the same ones.

use runtime::agent::ReadFile;
use runtime::{Error, FsError, Sandbox};

use super::{check, host, sandbox};

#[test]
fn a_file_survives_to_the_next_command() {
    let sandbox = sandbox();
    sandbox.bash("mkdir -p a/b; echo deep > a/b/c").unwrap();
    assert_eq!(sandbox.bash("cat a/b/c; ls a").unwrap().stdout, b"deep\nb\n");
}

#[test]
fn a_file_survives_to_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let open = || Sandbox::builder().host(host()).database(&path).open().unwrap();
    open().bash("echo kept > ~/file").unwrap();
    assert_eq!(open().bash("cat ~/file").unwrap().stdout, b"kept\n");
    assert_eq!(open().history(10).unwrap().len(), 2);
}

#[test]
fn files_given_from_outside_exist() {
    let sandbox = Sandbox::builder().host(host()).file("/src/main.py", "print(1)\n").open().unwrap();
    assert_eq!(sandbox.bash("wc -c < /src/main.py").unwrap().stdout, b"9\n");
}

#[test]
fn an_unlinked_file_stays_readable_while_it_is_open() {
    check("echo text > f; exec 5< f; rm f; cat <&5; ls", "text\n");
}

#[test]
fn a_mount_elsewhere_changes_no_error() {
    let shared = tempfile::tempdir().unwrap();
    std::fs::write(shared.path().join("file"), "of the host").unwrap();
    std::fs::create_dir(shared.path().join("dir")).unwrap();
    let mount = runtime::Mount::overlay(shared.path(), "/mnt");
    let sandbox = Sandbox::builder().host(host()).mount(mount).open().unwrap();
    let script = "mkdir d e; touch d/f; unlink d; rmdir d; unlink d/f; chmod 0 e; rmdir e; rmdir d/f/x; unlink /mnt/dir; rmdir /mnt/file; ls";
    let output = sandbox.bash(script).unwrap();
    let said = "unlink: cannot unlink 'd': Is a directory
rmdir: failed to remove 'd': Directory not empty
rmdir: failed to remove 'd/f/x': No such file or directory
unlink: cannot unlink '/mnt/dir': Is a directory
rmdir: failed to remove '/mnt/file': Not a directory
";
    assert_eq!((&output.stdout[..], str::from_utf8(&output.stderr).unwrap()), (&b"d\n"[..], said));
}

#[test]
fn a_directory_without_permissions_is_closed_to_programs_and_open_to_the_host() {
    let sandbox = sandbox();
    let script = "mkdir d; echo in > d/f; chmod 555 d; rm -f d/f; echo x > d/new; mv d/f g; mkdir d/sub; ln d/f d/h; cat d/f
        echo more >> d/f; chmod 333 d; ls d; cat d/f; chmod 666 d; cat d/f; stat d/f; chmod 000 d; cat d/f";
    let refused = "rm: cannot remove 'd/f': Permission denied
bash: line 1: d/new: Permission denied
mv: cannot move 'd/f' to 'g': Permission denied
mkdir: cannot create directory ‘d/sub’: Permission denied
ln: failed to create hard link 'd/h' => 'd/f': Permission denied
ls: cannot open directory 'd': Permission denied
cat: d/f: Permission denied
stat: cannot statx 'd/f': Permission denied
cat: d/f: Permission denied
";
    let output = sandbox.bash(script).unwrap();
    assert_eq!((&output.stdout[..], str::from_utf8(&output.stderr).unwrap()), (&b"in\nin\nmore\n"[..], refused));
    sandbox.fs().write("/home/user/d/host", "is asked for nothing").unwrap();
    assert_eq!(sandbox.bash("chmod 755 d; cat d/host").unwrap().stdout, b"is asked for nothing");
}

#[test]
fn devices_and_the_fixed_world_exist() {
    check("head -c 3 /dev/zero | od -An -tx1; echo x > /dev/null; cat /dev/null; echo y > /dev/stdout", " 00 00 00\ny\n");
    check("test -x /bin/bash && test -x /usr/bin/tr && echo yes; cat /etc/hostname", "yes\nsandlite\n");
    check("echo via fd | cat /dev/fd/0", "via fd\n");
}

// T-ISO-02: the tree has no way out, and the fixed world cannot be written.
#[test]
fn paths_cannot_leave_the_tree() {
    check(
        "cd /; cd ../../..; pwd; ls -d /../../tmp; ln -s /../../etc l 2>/dev/null; cat l/hostname",
        "/\n/../../tmp\nsandlite\n",
    );
    check(
        "{ echo x > /bin/bash; } 2>/dev/null || echo refused; rm -f /etc/passwd 2>/dev/null || echo refused",
        "refused\nrefused\n",
    );
}

#[test]
fn the_library_moves_copies_links_and_removes() {
    let sandbox = sandbox();
    let fs = sandbox.fs();
    fs.write("/d/a", "one").unwrap();
    fs.append("/d/a", " two").unwrap();
    fs.set_permissions("/d/a", 0o750).unwrap();
    assert_eq!(fs.copy("/d/a", "/d/b").unwrap(), 7);
    fs.rename("/d/b", "/d/c").unwrap();
    fs.symlink("c", "/d/link").unwrap();
    fs.hard_link("/d/c", "/d/hard").unwrap();
    assert_eq!(fs.read("/d/link").unwrap(), b"one two");
    assert_eq!((fs.metadata("/d/c").unwrap().mode & 0o777, fs.metadata("/d/c").unwrap().nlink), (0o750, 2));
    assert!(fs.symlink_metadata("/d/link").unwrap().size == 1);
    let paths: Vec<_> = fs.walk("/d").unwrap().into_iter().map(|found| found.path).collect();
    assert_eq!(paths, ["/d", "/d/a", "/d/c", "/d/hard", "/d/link"]);
    assert_eq!(fs.remove_dir("/d").unwrap_err().fs_error(), Some(FsError::NotEmpty));
    fs.remove_dir_all("/d").unwrap();
    assert!(!fs.exists("/d").unwrap());
}

#[test]
fn a_file_is_written_only_if_it_is_the_one_that_was_read() {
    let sandbox = sandbox();
    let fs = sandbox.fs();
    assert_eq!(fs.version("/plan").unwrap(), "none");
    let first = fs.write_if_version("/plan", "none", "one").unwrap();
    assert!(matches!(fs.write_if_version("/plan", "none", "mine"), Err(Error::Stale { .. })));
    let (content, version) = fs.read_versioned("/plan").unwrap();
    assert_eq!((content.as_slice(), &version), (&b"one"[..], &first));
    sandbox.bash("echo more >> /plan").unwrap();
    assert!(fs.write_if_version("/plan", &version, "two").is_err());
    assert_eq!(fs.read("/plan").unwrap(), b"onemore\n");
    // The content that was read is there again: nothing of anybody's would be lost. An agent's tools have the same versions.
    sandbox.bash("printf one > /plan").unwrap();
    assert_eq!(sandbox.agent().read(&ReadFile { path: "/plan".to_owned(), ..ReadFile::default() }).unwrap().version, version);
    fs.write_if_version("/plan", &version, "two").unwrap();
    assert_eq!(fs.read("/plan").unwrap(), b"two");
}

#[test]
fn a_process_can_look_at_itself() {
    check(
        "cat /proc/self/comm; cat /proc/self/cmdline | tr '\\0' ' '; echo; grep -E '^(Name|Uid)' /proc/self/status",
        "cat\ncat /proc/self/cmdline \nName:\tgrep\nUid:\t1000\t1000\t1000\t1000\n",
    );
    check(
        "cut -d' ' -f2,3 /proc/self/stat; ls /proc/self/fd; ls -d /proc/self/root/tmp",
        "(cut) R\n0\n1\n2\n4\n/proc/self/root/tmp\n",
    );
    check("FOO=bar cat /proc/self/environ | tr '\\0' '\\n' | grep FOO; cat /proc/mounts | wc -l", "FOO=bar\n1\n");
}

#[test]
fn there_is_no_terminal_to_open() {
    check(
        "test -c /dev/tty && echo there; { : < /dev/tty; } 2>&1; ls /dev",
        "there\nbash: line 1: /dev/tty: No such device or address\nfd\nfull\nnull\nrandom\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n",
    );
}

#[test]
fn redirections_touch_and_tee_can_create_the_directories_above() {
    let sandbox = Sandbox::builder().host(host()).creates_parents().open().unwrap();
    let output = sandbox
        .bash("echo a > /n/a; echo b >> n/b; touch /t/u/v; echo c | tee x/y >/dev/null; cat /n/a n/b x/y; ls /t/u")
        .unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"a\nb\nc\nv\n"[..], 0));
    let output =
        sandbox.bash("cp /n/a /m/a; mv /n/a /m/b; mkdir /m/c; cat < /m/d; python3 -c 'open(\"/m/e\", \"w\")'; ls /m").unwrap();
    assert_eq!(output.stdout, b"");
    // Of two names of a path that leads through a file, neither is a directory.
    assert_eq!(sandbox.bash("echo 1 > /f; echo 2 > /f/g/h").unwrap().status.code(), 1);
}

#[test]
fn other_sandboxes_do_not_create_directories_for_redirections() {
    assert_eq!(sandbox().bash("echo a > /n/a").unwrap().status.code(), 1);
}

#[test]
fn a_running_command_can_be_looked_at() {
    let sandbox = sandbox();
    let command = runtime::Command::bash("echo 1 > /tmp/began; read line; echo $line > /tmp/ended");
    let cancel = command.cancel();
    assert!(cancel.files().is_none());
    let mut child = sandbox.spawn(command).unwrap();
    let seen = loop {
        match cancel.files().and_then(|files| files.read("/tmp/began").ok()) {
            Some(text) if !text.is_empty() => break text,
            _ => std::thread::yield_now(),
        }
    };
    assert_eq!(seen, b"1\n");
    // Nothing of it is stored yet.
    assert!(!sandbox.fs().exists("/tmp/began").unwrap());
    let files = cancel.files().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"go\n").unwrap();
    assert!(child.wait().unwrap().status.success());
    assert!(files.is_over() && files.read("/tmp/began").is_err() && cancel.files().is_none());
    assert_eq!(sandbox.fs().read("/tmp/ended").unwrap(), b"go\n");
}

#[test]
fn a_row_can_be_recorded_with_other_parameters() {
    let sandbox = sandbox();
    sandbox.fs().recorded_as(serde_json::json!({ "path": "plan" })).write("/home/user/plan", "x").unwrap();
    sandbox.fs().seed(&[("/s/a".to_owned(), "1"), ("/s/b".to_owned(), "2")]).unwrap();
    let rows = sandbox.history(2).unwrap();
    assert_eq!(rows[1].parameters, Some(serde_json::json!({ "path": "plan" })));
    assert_eq!(
        (rows[0].name.as_str(), &rows[0].parameters),
        ("seed", &Some(serde_json::json!({ "paths": ["/s/a", "/s/b"], "count": 2 })))
    );
}

#[test]
fn the_other_name_of_the_root_lists_a_directory_for_temporary_files_once_it_is_used() {
    let sandbox = Sandbox::builder().host(host()).root_alias("data").cwd("/data").file("/s/b", "2").open().unwrap();
    let bash = |command: &str| String::from_utf8(sandbox.bash(command).unwrap().stdout).unwrap();
    let names = |path: &str| sandbox.fs().list(path).unwrap().into_iter().map(|entry| entry.name).collect::<Vec<_>>();
    assert_eq!(bash("ls /data; ls -a; echo *; find /data -maxdepth 1"), "s\n.\n..\ns\ns\n/data\n/data/s\n");
    assert_eq!((names("/data"), names("/").contains(&"tmp".to_owned())), (vec!["s".to_owned()], true));
    assert_eq!(bash("touch /tmp/x; ls; rm /tmp/x; ls"), "s\ntmp\ns\n");
    assert_eq!(bash("mktemp > /dev/null; ls"), "s\ntmp\n");
    assert_eq!(names("/data"), ["s", "tmp"]);
}

#[test]
fn the_other_name_of_the_root_is_neither_replaced_nor_removed() {
    let sandbox = Sandbox::builder().host(host()).root_alias("data").file("/x", "1").open().unwrap();
    let fs = sandbox.fs();
    fs.create_dir_all("/data/data").unwrap();
    let busy = |done: Result<(), Error>| assert_eq!(done.unwrap_err().fs_error(), Some(FsError::Busy));
    busy(fs.rename("/x", "/data"));
    busy(fs.rename("/data", "/y"));
    busy(fs.remove_dir("/data"));
    assert!(fs.exists("/data/data").unwrap());
    assert_eq!(fs.read("/data/x").unwrap(), b"1");
}
