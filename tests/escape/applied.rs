//! T-ISO-03: what a hostile sandbox has planted does not leave the directory that its changes are applied to, and nothing in
//! there starts by itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use runtime::{Apply, Mount, Sandbox};

use super::host;

/// A directory to apply to, next to one that must stay unchanged.
fn places() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (inside, outside) = (directory.path().join("inside"), directory.path().join("outside"));
    fs::create_dir_all(inside.join(".git/hooks")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "host secret").unwrap();
    fs::write(inside.join("file"), "file").unwrap();
    (directory, inside, outside)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn t_iso_03_nothing_that_starts_by_itself_or_leads_out_is_applied() {
    let (_directory, inside, outside) = places();
    let sandbox = Sandbox::builder().host(host()).mount(Mount::overlay(&inside, "/m")).open().unwrap();
    let script =
        "cd /m; echo evil > .git/hooks/post-checkout; echo evil > .git/config; mkdir -p sub/.git sub/.GIT sub/GIT~1 .ssh .aws
        for d in sub/.git sub/.GIT sub/GIT~1 .ssh .aws; do echo evil > $d/config; done
        ln -s /etc/passwd absolute; ln -s ../outside/secret relative; ln -s ../outside directory; ln -s sub/../../outside winding
        mkfifo pipe; echo fine > fine; ln -s fine link; chmod 4777 fine";
    sandbox.bash(script).unwrap();
    let applied = sandbox.versions().apply(&inside, &Apply::default()).unwrap();
    let kept: Vec<_> = applied.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(kept, ["fine", "link", "sub"]);
    assert_eq!(names(&inside), [".git", "file", "fine", "link", "sub"]);
    assert_eq!((names(&inside.join(".git")), names(&inside.join(".git/hooks"))), (vec!["hooks".to_owned()], vec![]));
    assert_eq!(names(&inside.join("sub")), [] as [String; 0]);
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(inside.join("fine")).unwrap().permissions().mode() & 0o7777, 0o755);
    assert_eq!(
        (names(&outside), fs::read(outside.join("secret")).unwrap()),
        (vec!["secret".to_owned()], b"host secret".to_vec())
    );
    let left_out: Vec<_> = applied.left_out.iter().map(|one| one.path.as_str()).collect();
    for name in
        [".git/config", ".git/hooks/post-checkout", "sub/.GIT/config", "sub/GIT~1", "absolute", "relative", "winding", "pipe"]
    {
        assert!(left_out.contains(&name), "{name}: {left_out:?}");
    }
}

#[test]
fn t_iso_03_a_link_in_the_directory_is_never_followed() {
    let (_directory, inside, outside) = places();
    let sandbox = Sandbox::builder().host(host()).open().unwrap();
    sandbox.bash("mkdir -p /m/d; echo one > /m/d/secret; echo one > /m/file").unwrap();
    sandbox.bash("echo two > /m/d/secret; echo new > /m/d/new; echo two > /m/file; mkdir /m/d/e; echo x > /m/d/e/x").unwrap();
    // Where the sandbox has a directory the host has a link that leads out, and where it has a file too.
    symlink(&outside, inside.join("d")).unwrap();
    fs::remove_file(inside.join("file")).unwrap();
    symlink(outside.join("secret"), inside.join("file")).unwrap();
    let apply = Apply { path: Some("/m".to_owned()), ..Apply::default() };
    for since in [None, Some("HEAD~1".to_owned())] {
        let apply = Apply { since, ..apply.clone() };
        assert!(sandbox.versions().apply(&inside, &apply).is_err());
        assert_eq!(
            (names(&outside), fs::read(outside.join("secret")).unwrap()),
            (vec!["secret".to_owned()], b"host secret".to_vec())
        );
        assert_eq!(names(&inside), [".git", "d", "file"], "nothing is left behind");
    }
}

#[test]
fn t_iso_03_the_database_in_the_directory_is_not_overwritten() {
    let (_directory, inside, _) = places();
    let database = inside.join("agent.db");
    let sandbox = Sandbox::builder().host(host()).database(&database).mount(Mount::overlay(&inside, "/m")).open().unwrap();
    sandbox.bash("cd /m; echo evil > agent.db; echo evil > agent.db-wal; echo fine > fine").unwrap();
    let applied = sandbox.versions().apply(&inside, &Apply::default()).unwrap();
    assert_eq!(applied.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["fine"]);
    assert!(fs::read(&database).unwrap().starts_with(b"SQLite format 3"));
    assert_eq!(sandbox.check().unwrap(), []);
}
