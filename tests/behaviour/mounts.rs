//! Host directories in a sandbox: for reading, under a layer of rows, copied in and out.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use runtime::{Error, Mount, Sandbox};
use tempfile::TempDir;

use super::host;

/// A small project on the host.
fn project() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir_all(path.join("src/deep")).unwrap();
    fs::write(path.join("README"), "read me\n").unwrap();
    fs::write(path.join("src/main.c"), "int main;\n").unwrap();
    fs::write(path.join("src/deep/leaf"), "leaf\n").unwrap();
    symlink("src/main.c", path.join("link")).unwrap();
    directory
}

fn mounted(mount: Mount) -> Sandbox {
    Sandbox::builder().host(host()).mount(mount).open().unwrap()
}

fn overlay(project: &TempDir) -> Sandbox {
    mounted(Mount::overlay(project.path(), "/work/p"))
}

/// Returns the output of a script, both streams together.
#[track_caller]
fn check(sandbox: &Sandbox, script: &str, expected: &str) {
    let output = sandbox.bash(format!("exec 2>&1; {script}")).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{script}");
}

/// Every file of a host directory with its content.
fn content(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![path.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                left.push(entry.path());
            } else {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                found.push((entry.path().strip_prefix(path).unwrap().display().to_string(), bytes));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_directory_for_reading_exists() {
    let project = project();
    let sandbox = mounted(Mount::read_only(project.path(), "/work/p"));
    check(
        &sandbox,
        "ls -R /work",
        "/work:\np\n\n/work/p:\nREADME\nlink\nsrc\n\n/work/p/src:\ndeep\nmain.c\n\n/work/p/src/deep:\nleaf\n",
    );
    check(
        &sandbox,
        "cat /work/p/README /work/p/link; cd /work/p/src/deep && cat ../../README leaf",
        "read me\nint main;\nread me\nleaf\n",
    );
    check(&sandbox, "cd /work/p; pwd; cd ..; ls; stat -c '%u %g %h %F' p/README", "/work/p\np\n1000 1000 1 regular file\n");
    check(
        &sandbox,
        "find /work -type f | sort; wc -c < /work/p/README",
        "/work/p/README\n/work/p/src/deep/leaf\n/work/p/src/main.c\n8\n",
    );
}

#[test]
fn a_directory_for_reading_cannot_be_changed() {
    let project = project();
    let before = content(project.path());
    let sandbox = mounted(Mount::read_only(project.path(), "/p"));
    for script in [
        "echo x > /p/new",
        "echo x >> /p/README",
        "rm /p/README",
        "mkdir /p/d",
        "rmdir /p/src/deep",
        "mv /p/README /p/other",
        "ln /p/README /p/hard",
        "ln -s x /p/soft",
        "chmod 600 /p/README",
        "touch /p/README",
        "truncate -s 1 /p/README",
    ] {
        let output = sandbox.bash(script).unwrap();
        assert!(!output.status.success(), "{script}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains("Read-only file system"), "{script}: {error}");
    }
    check(
        &sandbox,
        "ln /p/README /tmp/hard || echo no",
        "ln: failed to create hard link '/tmp/hard' => '/p/README': Invalid cross-device link\nno\n",
    );
    check(
        &sandbox,
        "mv /p /q || rmdir /p",
        "mv: cannot move '/p' to '/q': Device or resource busy\nrmdir: failed to remove '/p': Device or resource busy\n",
    );
    check(&sandbox, "cp -r /p /tmp/copy && cat /tmp/copy/src/deep/leaf", "leaf\n");
    assert_eq!(content(project.path()), before);
}

#[test]
fn in_an_overlay_everything_can_be_changed_and_the_host_stays_as_it_is() {
    let project = project();
    let before = content(project.path());
    let sandbox = overlay(&project);
    check(
        &sandbox,
        "cd /work/p; echo more >> README; cat README; sed -i s/main/other/ src/main.c; cat src/main.c",
        "read me\nmore\nint other;\n",
    );
    check(&sandbox, "cd /work/p; rm src/deep/leaf; ls -A src/deep; rmdir src/deep; ls src; cat link", "main.c\nint other;\n");
    check(&sandbox, "cd /work/p; mkdir src/deep; ls -A src/deep; echo new > src/deep/x; ls src/deep", "x\n");
    check(&sandbox, "cd /work/p; mv README NOTES; ls; cat NOTES", "NOTES\nlink\nsrc\nread me\nmore\n");
    check(&sandbox, "cd /work/p; rm -r src; ls; mkdir src; ls -A src", "NOTES\nlink\n");
    assert_eq!(content(project.path()), before);
}

#[test]
fn changes_of_an_overlay_are_in_the_database() {
    let project = project();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let open = || {
        let builder = Sandbox::builder().host(host()).database(&path);
        builder.mount(Mount::overlay(project.path(), "/p")).open().unwrap()
    };
    check(&open(), "echo changed > /p/README; rm /p/src/deep/leaf", "");
    check(&open(), "cat /p/README; ls -A /p/src/deep; ls /p", "changed\nREADME\nlink\nsrc\n");
    let without = Sandbox::builder().host(host()).database(&path).open().unwrap();
    check(&without, "ls -R /p", "/p:\nREADME\n");
    assert_eq!(without.check().unwrap(), []);
}

#[test]
fn a_directory_of_the_host_is_moved_by_copying() {
    let project = project();
    let sandbox = overlay(&project);
    check(
        &sandbox,
        "cd /work/p; mv src moved && ls . moved && cat moved/deep/leaf",
        ".:\nREADME\nlink\nmoved\n\nmoved:\ndeep\nmain.c\nleaf\n",
    );
    check(&sandbox, "mv /work/p/moved /tmp/out && cat /tmp/out/deep/leaf; ls /work/p", "leaf\nREADME\nlink\n");
    check(&sandbox, "mkdir /tmp/d; echo in > /tmp/d/f; mv /tmp/d /work/p/src && cat /work/p/src/f; ls /work/p/src", "in\nf\n");
}

#[test]
fn an_open_host_file_can_be_changed_and_removed() {
    let project = project();
    let sandbox = overlay(&project);
    check(&sandbox, "cd /work/p; exec 5<README; echo two >> README; rm README; cat <&5; ls", "read me\ntwo\nlink\nsrc\n");
    check(
        &sandbox,
        "cd /work/p; exec 6<>link; printf INT >&6; cat src/main.c; chmod 755 src/main.c; stat -c %a src/main.c",
        "INT main;\n755\n",
    );
    check(&sandbox, "cd /work/p; ln src/main.c hard; stat -c %h hard; cat hard", "2\nINT main;\n");
}

#[test]
fn a_rollback_brings_the_host_files_back() {
    let project = project();
    let sandbox = overlay(&project);
    let command = runtime::Command::bash("cd /work/p; rm README; echo x > src/main.c; false").rollback_on_failure();
    sandbox.run(command).unwrap();
    check(&sandbox, "cd /work/p; cat README src/main.c", "read me\nint main;\n");
    assert_eq!(sandbox.history(2).unwrap()[1].changes, None);
}

#[test]
fn the_history_records_changes_of_host_files() {
    let project = project();
    let sandbox = overlay(&project);
    sandbox.bash("cd /work/p; echo x >> src/deep/leaf; rm README; echo new > src/new").unwrap();
    let changes = sandbox.history(1).unwrap().remove(0).changes.unwrap();
    let seen: Vec<_> = changes.as_array().unwrap().iter().map(|c| format!("{} {}", c["kind"], c["path"])).collect();
    assert_eq!(
        seen,
        [r#""deleted" "/work/p/README""#, r#""modified" "/work/p/src/deep/leaf""#, r#""created" "/work/p/src/new""#]
    );
}

#[test]
fn a_copy_of_a_host_file_counts_towards_the_disk() {
    let project = tempfile::tempdir().unwrap();
    fs::write(project.path().join("large"), vec![7; 3 << 20]).unwrap();
    let limits = runtime::Overrides { disk: Some(runtime::ByteSize(1 << 20)), ..runtime::Overrides::default() };
    let builder = Sandbox::builder().host(host()).limits(limits);
    let sandbox = builder.mount(Mount::overlay(project.path(), "/p")).open().unwrap();
    check(
        &sandbox,
        "wc -c < /p/large; echo x >> /p/large; wc -c < /p/large",
        "3145728\nbash: line 1: echo: write error: No space left on device\n3145728\n",
    );
    check(&sandbox, "echo small > /p/large; cat /p/large", "small\n");
}

#[test]
fn the_library_reads_and_changes_mounted_files() {
    let project = project();
    let sandbox = overlay(&project);
    let fs = sandbox.fs();
    let (content, version) = fs.read_versioned("/work/p/README").unwrap();
    assert_eq!(content, b"read me\n");
    fs.write_if_version("/work/p/README", &version, "new").unwrap();
    fs.append("/work/p/src/main.c", "more\n").unwrap();
    fs.rename("/work/p/link", "/work/p/soft").unwrap();
    fs.remove_dir_all("/work/p/src/deep").unwrap();
    assert_eq!(fs.read("/work/p/soft").unwrap(), b"int main;\nmore\n");
    assert_eq!(fs.read_link("/work/p/soft").unwrap(), "src/main.c");
    let paths: Vec<_> = fs.walk("/work").unwrap().into_iter().map(|found| found.path).collect();
    assert_eq!(paths, ["/work", "/work/p", "/work/p/README", "/work/p/soft", "/work/p/src", "/work/p/src/main.c"]);
    check(&sandbox, "cat /work/p/README; ls /work/p", "newREADME\nsoft\nsrc\n");
}

#[test]
fn mounts_are_listed() {
    let project = project();
    let builder = Sandbox::builder().host(host()).mount(Mount::read_only(project.path(), "/ro dir"));
    let sandbox = builder.mount(Mount::overlay(project.path(), "/rw")).open().unwrap();
    check(
        &sandbox,
        "cat /proc/mounts",
        "sandlite / sandlite rw,relatime 0 0\nhost /ro\\040dir host ro,relatime 0 0\noverlay /rw overlay rw,relatime 0 0\n",
    );
}

#[test]
fn an_invalid_mount_is_rejected_with_a_reason() {
    let project = project();
    let refused = |mounts: Vec<Mount>| {
        let builder = mounts.into_iter().fold(Sandbox::builder().host(host()), runtime::Builder::mount);
        builder.open().map(drop).unwrap_err()
    };
    let at = |guest: &str| refused(vec![Mount::read_only(project.path(), guest)]).to_string();
    for (guest, reason) in [
        ("/", "the root directory belongs to the sandbox"),
        ("/bin", "it is reserved for programs and devices"),
        ("/dev/x", "it is reserved for programs and devices"),
        ("relative", "not an absolute path"),
        ("/a/../b", "it contains an invalid directory name"),
    ] {
        assert!(at(guest).ends_with(reason), "{}", at(guest));
    }
    let nested = refused(vec![Mount::read_only(project.path(), "/a"), Mount::overlay(project.path(), "/a/b")]);
    assert!(nested.to_string().ends_with("`/a` is mounted there"), "{nested}");
    let missing = refused(vec![Mount::read_only("/nowhere/at/all", "/a")]);
    assert!(matches!(missing, Error::Mount { .. }), "{missing}");
    let sensitive = refused(vec![Mount::read_only("/etc", "/a")]);
    assert_eq!(sensitive.to_string(), "cannot mount `/etc` at `/a`: it is part of the system");
    assert!(sensitive.hint().unwrap().contains("allow_sensitive"));
}

#[test]
fn a_tree_is_copied_in() {
    let project = project();
    symlink("/etc/passwd", project.path().join("outside")).unwrap();
    fs::create_dir(project.path().join(".ssh")).unwrap();
    fs::write(project.path().join(".ssh/id"), "secret").unwrap();
    let sandbox = super::sandbox();
    let copy = sandbox.import_tree(project.path(), "/in/p").unwrap();
    assert_eq!((copy.files, copy.directories, copy.symlinks, copy.bytes), (3, 2, 2, 23));
    assert_eq!(copy.skipped, [".ssh"]);
    check(
        &sandbox,
        "cd /in/p; cat README src/deep/leaf link; readlink outside; head -1 outside",
        "read me\nleaf\nint main;\n/etc/passwd\nroot:x:0:0:root:/root:/bin/bash\n",
    );
    let row = sandbox.history(2).unwrap().remove(1);
    assert_eq!(row.command, "import_tree /in/p");
    assert!(!format!("{row:?}").contains(project.path().to_str().unwrap()), "no host path goes into the history");
    // Again, over existing files.
    fs::write(project.path().join("README"), "newer\n").unwrap();
    sandbox.import_tree(project.path(), "/in/p").unwrap();
    check(&sandbox, "cat /in/p/README", "newer\n");
}

#[test]
fn a_tree_that_does_not_fit_leaves_nothing() {
    let project = project();
    fs::write(project.path().join("zlarge"), vec![1; 100_000]).unwrap();
    let limits = runtime::Overrides { disk: Some(runtime::ByteSize(50_000)), ..runtime::Overrides::default() };
    let sandbox = Sandbox::builder().host(host()).limits(limits).open().unwrap();
    let error = sandbox.import_tree(project.path(), "/p").unwrap_err();
    assert_eq!(error.to_string(), "cannot import `/p/zlarge`: no space left");
    assert!(!sandbox.fs().exists("/p").unwrap());
}

#[test]
fn a_tree_is_copied_out_and_nothing_leads_out_of_it() {
    let sandbox = super::sandbox();
    let script = "mkdir -p /out/d/e; cd /out; echo x > d/e/file; chmod 755 d/e/file; ln -s d/e/file good; ln -s ../good d/up
        ln -s /etc/passwd absolute; ln -s ../../x escape; ln -s d/up/../../x sly; ln -s .. d/parent; ln -s ../.. d/grand";
    sandbox.bash(script).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("new");
    let mut copy = sandbox.export_tree("/out", &target).unwrap();
    copy.skipped.sort();
    assert_eq!((copy.files, copy.directories, copy.symlinks), (1, 2, 3));
    assert_eq!(copy.skipped, ["absolute", "d/grand", "escape", "sly"]);
    assert_eq!(fs::read(target.join("good")).unwrap(), b"x\n");
    assert_eq!(fs::read(target.join("d/up")).unwrap(), b"x\n");
    let again = sandbox.export_tree("/out", &target).unwrap_err();
    assert!(again.to_string().starts_with("cannot use"), "nothing is overwritten: {again}");
}

#[test]
fn an_export_does_not_follow_links_on_the_host() {
    let sandbox = Sandbox::builder().host(host()).file("/out/d/file", "x").open().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (target, elsewhere) = (directory.path().join("target"), directory.path().join("elsewhere"));
    fs::create_dir(&target).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, target.join("d")).unwrap();
    sandbox.export_tree("/out", &target).unwrap_err();
    assert_eq!(content(&elsewhere), []);
}

#[test]
fn an_overlay_is_copied_out_as_it_is_seen() {
    let project = project();
    let sandbox = overlay(&project);
    sandbox.bash("cd /work/p; echo changed > README; rm src/deep/leaf; echo new > new").unwrap();
    let directory = tempfile::tempdir().unwrap();
    sandbox.export_tree("/work/p", directory.path()).unwrap();
    let seen: Vec<_> = content(directory.path()).into_iter().map(|(path, _)| path).collect();
    assert_eq!(seen, ["README", "link", "new", "src/main.c"]);
    assert_eq!(fs::read(directory.path().join("README")).unwrap(), b"changed\n");
}

#[test]
fn a_snapshot_of_an_overlay_keeps_its_whiteouts() {
    let project = project();
    let sandbox = overlay(&project);
    sandbox.bash("cd /work/p; rm README; echo new > src/main.c").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("snapshot.db");
    sandbox.export(&path).unwrap();
    let builder = Sandbox::builder().host(host()).import(&path);
    let twin = builder.mount(Mount::overlay(project.path(), "/work/p")).open().unwrap();
    check(&twin, "cd /work/p; ls; cat src/main.c; ls src", "link\nsrc\nnew\ndeep\nmain.c\n");
    let fork = sandbox.fork().unwrap();
    check(&fork, "cd /work/p; ls; echo more >> src/main.c", "link\nsrc\n");
    check(&sandbox, "cat /work/p/src/main.c", "new\n");
}

#[test]
fn many_processes_change_one_host_file_at_once() {
    let project = project();
    let sandbox = overlay(&project);
    check(
        &sandbox,
        "cd /work/p; for i in 1 2 3 4 5 6; do echo $i >> src/deep/leaf & done; wait; sort src/deep/leaf | tr '\\n' ' '",
        "1 2 3 4 5 6 leaf ",
    );
    assert_eq!(sandbox.check().unwrap(), []);
}
