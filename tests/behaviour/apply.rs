//! Changes of commands are reviewed and then applied to a directory of the host: all of them or none, and never over an edit.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command as Program, Stdio};

use runtime::{Applied, Apply, DifferenceKind, Error, Mount, Sandbox};
use tempfile::TempDir;

fn project() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir_all(at("src/deep")).unwrap();
    fs::write(at("README"), "read me\n").unwrap();
    fs::write(at("src/main.c"), "int main;\n").unwrap();
    fs::write(at("src/deep/leaf"), "leaf\n").unwrap();
    symlink("src/main.c", at("link")).unwrap();
    directory
}

fn overlay(project: &TempDir) -> Sandbox {
    Sandbox::builder().host(super::host()).mount(Mount::overlay(project.path(), "/p")).open().unwrap()
}

/// Everything in a directory: path, permissions of a file, content.
fn content(directory: &Path) -> Vec<(String, u32, String)> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_symlink() {
                found.push((name, 0, fs::read_link(&path).unwrap().display().to_string()));
            } else if metadata.is_dir() {
                found.push((name, 0, "/".to_owned()));
                left.push(path);
            } else {
                found.push((
                    name,
                    metadata.permissions().mode() & 0o777,
                    String::from_utf8_lossy(&fs::read(&path).unwrap()).into(),
                ));
            }
        }
    }
    found.sort();
    found
}

fn apply(sandbox: &Sandbox, directory: &Path) -> Result<Applied, Error> {
    sandbox.versions().apply(directory, &Apply::default())
}

fn dry_run(sandbox: &Sandbox, directory: &Path) -> Applied {
    sandbox.versions().apply(directory, &Apply { dry_run: true, ..Apply::default() }).unwrap()
}

const WORK: &str = "cd /p; echo more >> README; rm src/deep/leaf; rmdir src/deep; mkdir new; echo x > new/x; chmod +x new/x
    ln -s x new/l; mv src/main.c src/other.c; rm link; ln -s src/other.c link; head -c 300 /dev/zero > zeros; printf tail > tail";

#[test]
fn applying_an_overlay_makes_its_changes_in_the_directory() {
    let project = project();
    let sandbox = overlay(&project);
    sandbox.bash(WORK).unwrap();
    let (before, planned) = (content(project.path()), dry_run(&sandbox, project.path()));
    assert_eq!(content(project.path()), before, "a dry run changes nothing");
    let applied = apply(&sandbox, project.path()).unwrap();
    assert_eq!((planned.files, planned.is_applied, applied.is_applied), (applied.files.clone(), false, true));
    assert_eq!((applied.conflicts, applied.left_out, applied.unchanged), (vec![], vec![], 0));
    let file = |name: &str, mode: u32, text: &str| (name.to_owned(), mode, text.to_owned());
    let readme = fs::metadata(project.path().join("README")).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        content(project.path()),
        [
            file("README", readme, "read me\nmore\n"),
            file("link", 0, "src/other.c"),
            file("new", 0, "/"),
            file("new/l", 0, "x"),
            file("new/x", 0o755, "x\n"),
            file("src", 0, "/"),
            file("src/other.c", 0o644, "int main;\n"),
            file("tail", 0o644, "tail"),
            file("zeros", 0o644, &"\0".repeat(300)),
        ]
    );
    // Once more there is nothing to do.
    assert_eq!(sandbox.versions().changes(None, &[]).unwrap().paths().count(), 0);
    assert_eq!(dry_run(&sandbox, project.path()).files, []);
}

#[test]
fn a_file_that_was_edited_meanwhile_is_named_and_nothing_is_written() {
    let project = project();
    let sandbox = overlay(&project);
    sandbox.bash("cd /p; echo sandbox > README; echo sandbox > src/main.c; rm src/deep/leaf; echo x > new").unwrap();
    fs::write(project.path().join("README"), "host\n").unwrap();
    fs::write(project.path().join("src/deep/leaf"), "host\n").unwrap();
    fs::write(project.path().join("new"), "host\n").unwrap();
    let before = content(project.path());
    let Err(Error::Conflicts { paths, .. }) = apply(&sandbox, project.path()) else { panic!("it was applied") };
    let paths: Vec<_> = paths.iter().map(|(path, reason)| (path.as_str(), reason.as_str())).collect();
    let edited = "edited in the directory";
    assert_eq!(paths, [("README", edited), ("new", "edited in the directory"), ("src/deep/leaf", edited)]);
    assert_eq!(content(project.path()), before);
    assert_eq!(dry_run(&sandbox, project.path()).conflicts.len(), 3);
}

#[test]
fn an_edit_that_only_a_time_shows_is_a_conflict_too() {
    let project = project();
    let sandbox = overlay(&project);
    sandbox.bash("echo sandbox > /p/README").unwrap();
    // The same length, and the modification time of before: only the change time differs.
    let readme = project.path().join("README");
    let modified = fs::metadata(&readme).unwrap().modified().unwrap();
    fs::write(&readme, "READ ME\n").unwrap();
    fs::File::options().append(true).open(&readme).unwrap().set_modified(modified).unwrap();
    assert!(matches!(apply(&sandbox, project.path()), Err(Error::Conflicts { .. })));
    assert_eq!(fs::read_to_string(&readme).unwrap(), "READ ME\n");
}

#[test]
fn applied_files_can_be_changed_again() {
    let project = project();
    let sandbox = overlay(&project);
    for text in ["one", "two", "three"] {
        sandbox.bash(format!("echo {text} > /p/README; echo {text} > /p/new")).unwrap();
        assert_eq!(apply(&sandbox, project.path()).unwrap().files.len(), 2, "{text}");
        assert_eq!(fs::read_to_string(project.path().join("README")).unwrap(), format!("{text}\n"));
    }
    sandbox.bash("rm /p/new").unwrap();
    apply(&sandbox, project.path()).unwrap();
    assert!(!project.path().join("new").exists());
    // The history records the fact, but not the directory.
    let row = sandbox.history(1).unwrap().remove(0);
    assert_eq!(row.name, "apply");
    assert!(!serde_json::to_string(&row).unwrap().contains(&project.path().display().to_string()));
}

#[test]
fn changes_since_a_version_are_compared_with_its_content() {
    let project = project();
    let sandbox = super::sandbox();
    sandbox.import_tree(project.path(), "/work").unwrap();
    sandbox.versions().checkpoint("imported", None).unwrap();
    sandbox.bash("cd /work; sed -i s/main/other/ src/main.c; rm -r src/deep; echo new > src/new; echo x > /elsewhere").unwrap();
    let since = Apply { since: Some("imported".to_owned()), path: Some("/work".to_owned()), dry_run: false };
    // Times say nothing here, contents do.
    let readme = project.path().join("README");
    fs::write(&readme, "another file that the sandbox did not change\n").unwrap();
    fs::write(project.path().join("src/main.c"), "int main;\n").unwrap();
    let applied = sandbox.versions().apply(project.path(), &since).unwrap();
    let seen: Vec<_> = applied.files.iter().map(|file| (file.path.as_str(), file.kind)).collect();
    use DifferenceKind::{Added, Deleted, Modified};
    assert_eq!(seen, [("src/deep", Deleted), ("src/deep/leaf", Deleted), ("src/main.c", Modified), ("src/new", Added)]);
    assert_eq!(fs::read_to_string(project.path().join("src/main.c")).unwrap(), "int other;\n");
    assert!(!project.path().join("src/deep").exists() && !project.path().join("elsewhere").exists());
    sandbox.bash("echo again > /work/src/new").unwrap();
    fs::write(project.path().join("src/new"), "edited\n").unwrap();
    assert!(matches!(sandbox.versions().apply(project.path(), &since), Err(Error::Conflicts { .. })));
}

#[test]
fn a_directory_with_other_files_stays_and_one_that_becomes_a_file_must_hold_nothing_else() {
    let project = project();
    let sandbox = super::sandbox();
    sandbox.import_tree(project.path(), "/work").unwrap();
    sandbox.bash("cd /work; rm -r src/deep").unwrap();
    let since = |version: &str| Apply { since: Some(version.to_owned()), path: Some("/work".to_owned()), dry_run: false };
    fs::write(project.path().join("src/deep/ignored"), "own").unwrap();
    let applied = sandbox.versions().apply(project.path(), &since("HEAD~1")).unwrap();
    assert_eq!(applied.left_out.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), ["src/deep"]);
    assert!(project.path().join("src/deep/ignored").exists() && !project.path().join("src/deep/leaf").exists());
    sandbox.bash("cd /work; rm -r src; echo file > src").unwrap();
    let before = content(project.path());
    let Err(Error::Conflicts { paths, .. }) = sandbox.versions().apply(project.path(), &since("HEAD~1")) else { panic!() };
    assert_eq!(paths, [("src".to_owned(), "the directory contains other files".to_owned())]);
    assert_eq!(content(project.path()), before);
    fs::remove_dir_all(project.path().join("src/deep")).unwrap();
    sandbox.versions().apply(project.path(), &since("HEAD~1")).unwrap();
    assert_eq!(fs::read_to_string(project.path().join("src")).unwrap(), "file\n");
}

#[test]
fn kinds_change_into_each_other() {
    let project = project();
    let sandbox = overlay(&project);
    sandbox
        .bash("cd /p; rm README; mkdir README; echo in > README/in; rm -r src; ln -s README src; rm link; echo file > link")
        .unwrap();
    apply(&sandbox, project.path()).unwrap();
    let names: Vec<_> = content(project.path()).into_iter().map(|(name, _, text)| (name, text)).collect();
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(names, [pair("README", "/"), pair("README/in", "in\n"), pair("link", "file\n"), pair("src", "README")]);
}

#[test]
fn an_error_half_way_puts_everything_back() {
    let project = project();
    let sandbox = overlay(&project);
    sandbox.bash("cd /p; echo a > README; rm -r src/deep; mkdir made; echo x > made/x; echo y > src/zz; rm link").unwrap();
    // Nothing can be created or removed in this directory, which only the last steps find out.
    let locked = project.path().join("src");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    let can_write_anyway = fs::write(locked.join("probe"), "").is_ok();
    let before = content(project.path());
    let outcome = apply(&sandbox, project.path());
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
    // Root may do everything.
    if !can_write_anyway {
        assert!(matches!(outcome, Err(Error::HostFile { .. })), "{outcome:?}");
        assert_eq!(content(project.path()), before);
    }
}

#[test]
fn invalid_directories_and_references_change_nothing() {
    let project = project();
    let sandbox = overlay(&project);
    sandbox.bash("echo x > /p/README").unwrap();
    let before = content(project.path());
    let check = |directory: &Path, apply: &Apply, expected: &str| {
        let error = sandbox.versions().apply(directory, apply).unwrap_err();
        assert!(error.causes().join(": ").contains(expected), "{error}");
    };
    check(&project.path().join("README"), &Apply::default(), "Not a directory");
    check(&project.path().join("nowhere"), &Apply::default(), "No such file");
    check(Path::new("/etc"), &Apply::default(), "part of the system");
    check(project.path(), &Apply { since: Some("nobody".to_owned()), ..Apply::default() }, "invalid version `nobody`");
    assert_eq!(content(project.path()), before);
}

fn git(directory: &Path, arguments: &[&str], stdin: &[u8]) -> String {
    let mut child = Program::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", directory)
        .env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_real_git_applies_the_patch_and_takes_it_back() {
    let (project, sandbox) = (project(), super::sandbox());
    let at = |path: &str| project.path().join(path);
    fs::write(at("binary"), (0..=255).collect::<Vec<u8>>().repeat(40)).unwrap();
    fs::write(at("gone"), [0, 1, 2]).unwrap();
    fs::write(at("carriage"), "a\rb\r\nc\n").unwrap();
    fs::write(at("open"), "no newline").unwrap();
    fs::write(at("empty"), "").unwrap();
    fs::write(at("latin"), b"caf\xe9\n").unwrap();
    fs::write(at("private"), "x\n").unwrap();
    fs::write(at("becomes link"), "file\n").unwrap();
    fs::write(at("-dash \"quoted\" \\ \t tab\nline"), "odd name\n").unwrap();
    let before = content(project.path());
    sandbox.import_tree(project.path(), "/work").unwrap();
    let script = "cd /work; for i in 1 2 3; do head -c 5000 /dev/urandom; done > binary; rm gone empty; printf 'a\\rB\\r\\nc' > carriage
        echo ' now with one' >> open; printf 'th\\351\\n' >> latin; rm 'becomes link'; ln -s README 'becomes link'; chmod +x README
        echo more >> *quoted*; seq 1 5000 > long; touch new-empty 'with space'; echo é > 'é'; mkdir -p d/e; echo f > d/e/f
        printf 'x' > 'with trailing space '; rm link; rm -r src/deep; echo file > src/deep; head -c 2000000 /dev/zero | tr '\\0' a > huge
        chmod 600 private; mkdir -p .git/hooks; echo evil > .git/hooks/post-commit";
    assert_eq!(sandbox.bash(script).unwrap().stderr, b"");
    let changes = sandbox.versions().changes(Some("HEAD~1"), &["/work".to_owned()]).unwrap();
    let mut patch = Vec::new();
    assert_eq!(changes.write_patch("/work", &mut patch).unwrap(), ["/work/.git/hooks/post-commit"]);
    git(project.path(), &["apply", "--check", "-"], &patch);
    git(project.path(), &["apply", "--whitespace=nowarn", "-"], &patch);
    let target = tempfile::tempdir().unwrap();
    sandbox.export_tree("/work", target.path().join("copy")).unwrap();
    fs::remove_dir_all(target.path().join("copy/.git")).unwrap();
    let plain = |directory: &Path| -> Vec<_> {
        content(directory).into_iter().map(|(name, mode, text)| (name, mode & 0o100, text)).collect()
    };
    assert_eq!(plain(project.path()), plain(&target.path().join("copy")));
    git(project.path(), &["apply", "--whitespace=nowarn", "-R", "-"], &patch);
    let modes = |content: Vec<(String, u32, String)>| -> Vec<_> {
        content.into_iter().map(|(name, mode, text)| (name, mode & 0o100, text)).collect()
    };
    assert_eq!(modes(content(project.path())), modes(before));
}
