//! Versions leave as commits that the real git reads, and commits that the real git made arrive as versions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtime::{FileType, GitExport, GitExported, GitForm, GitImport, Keep, Limits, Sandbox};

use super::sandbox;

/// Runs the machine's git, without anybody's settings, and returns what it prints.
pub(super) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = command(directory, arguments).output().expect("these tests need `git`");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "git {arguments:?}: {out}{error}");
    out.into_owned()
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory).args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", directory).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.org");
        command.env(format!("GIT_{who}_DATE"), "1000000000 +0100");
    }
    command
}

fn export(sandbox: &Sandbox, to: &Path, path: &str) -> GitExported {
    sandbox.versions().git_export(to, &GitExport { path: path.to_owned(), form: GitForm::of(to), checkpoints: false }).unwrap()
}

fn import(sandbox: &Sandbox, from: &Path, into: &str) -> Result<runtime::GitImported, runtime::Error> {
    sandbox.versions().git_import(from, &GitImport { reference: None, into: into.to_owned(), depth: None })
}

/// The files below a directory of the host: whether each can be executed, and its content or target.
pub(super) fn on_host(top: &Path) -> BTreeMap<String, (bool, Vec<u8>)> {
    let (mut found, mut left) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(relative) = left.pop() {
        for entry in std::fs::read_dir(top.join(&relative)).unwrap() {
            let entry = entry.unwrap();
            let path = relative.join(entry.file_name());
            let (name, metadata) = (path.to_string_lossy().into_owned(), entry.path().symlink_metadata().unwrap());
            if name == ".git" {
                continue;
            }
            if metadata.is_dir() {
                left.push(path);
            } else if metadata.is_symlink() {
                let target = std::fs::read_link(entry.path()).unwrap();
                found.insert(name, (false, format!("-> {}", target.display()).into_bytes()));
            } else {
                let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
                found.insert(name, (mode & 0o100 != 0, std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    found
}

/// The same of a sandbox.
pub(super) fn in_sandbox(sandbox: &Sandbox, top: &str) -> BTreeMap<String, (bool, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in sandbox.fs().walk(top).unwrap() {
        let name = entry.path.strip_prefix(top).unwrap().trim_start_matches('/').to_owned();
        match entry.stat.file_type() {
            FileType::File => {
                let content = sandbox.fs().read(&entry.path).unwrap();
                found.insert(name, (entry.stat.mode & 0o100 != 0, content));
            }
            FileType::Symlink => {
                let target = sandbox.fs().read_link(&entry.path).unwrap();
                found.insert(name, (false, format!("-> {target}").into_bytes()));
            }
            _ => {}
        }
    }
    found
}

/// A sandbox in which many kinds of changes happened.
fn changed() -> Sandbox {
    let sandbox = sandbox();
    for script in [
        "mkdir -p /src/lib /src/empty; echo one > /src/a; seq 5000 > /src/lib/long; ln -s a /src/link; echo x > /src/emptied",
        "chmod +x /src/a; echo two >> /src/a; mkfifo /src/pipe; : > /src/emptied",
        "mv /src/lib /src/library; seq 4000 > /src/library/long",
        "rm /src/link; mkdir /src/link; echo in > /src/link/file; false",
        "rm -r /src/link; ln -s library/long /src/link; mkdir /src/a-b /src/a.d; touch /src/a-b/x /src/a.d/x",
        "head -c 3000000 /dev/zero > /src/large; echo x >> /elsewhere",
        "echo more >> /src/large; echo ümläut > '/src/nämé with space'",
        "echo only outside > /elsewhere",
        "rm /src/large; mkdir -p /src/.git/hooks; echo evil > /src/.git/hooks/post-checkout; chmod +x /src/.git/hooks/*",
    ] {
        sandbox.bash(script).unwrap();
    }
    sandbox
}

#[test]
fn every_commit_of_an_export_has_the_files_of_its_version() {
    let (sandbox, directory) = (changed(), tempfile::tempdir().unwrap());
    sandbox.versions().checkpoint("the end", Some("of the beginning")).unwrap();
    let bare = directory.path().join("src.git");
    let exported = export(&sandbox, &bare, "/src");
    assert_eq!((exported.commits, exported.tags), (8, 1), "{exported:?}");
    assert_eq!(
        exported.skipped.iter().filter(|path| !path.starts_with("/src/.git/")).collect::<Vec<_>>(),
        ["/src/.git", "/src/pipe"]
    );
    assert_eq!(git(&bare, &["fsck", "--strict", "--full"]), "");
    let log = git(&bare, &["log", "--format=%H %(trailers:key=Sandlite-Run,valueonly)", "main"]);
    let commits: Vec<Vec<&str>> =
        log.lines().map(|line| line.split_whitespace().collect()).filter(|words: &Vec<_>| !words.is_empty()).collect();
    assert_eq!((commits.len(), commits[0][0]), (8, exported.head.as_str()));
    for words in commits {
        let work = directory.path().join(words[0]);
        git(&bare, &["worktree", "add", "--detach", work.to_str().unwrap(), words[0]]);
        let mut expected = in_sandbox(&sandbox.at(words[1]).unwrap(), "/src");
        expected.retain(|path, _| !path.starts_with(".git"));
        assert_eq!(on_host(&work), expected, "{words:?}");
    }
    let tag = git(&bare, &["for-each-ref", "--format=%(refname) %(objecttype) %(contents)", "refs/tags"]);
    assert_eq!(tag.trim(), "refs/tags/the-end tag of the beginning");
}

#[test]
fn a_directory_that_became_a_link_is_a_link_in_its_commit() {
    let (sandbox, directory) = (sandbox(), tempfile::tempdir().unwrap());
    sandbox.bash("mkdir -p /src/d; echo one > /src/d/x").unwrap();
    sandbox.bash("mv /src/d /src/e; ln -s e /src/d").unwrap();
    let bare = directory.path().join("src.git");
    export(&sandbox, &bare, "/src");
    assert_eq!(git(&bare, &["ls-tree", "-r", "--name-only", "main"]), "d\ne/x\n");
    assert_eq!(git(&bare, &["show", "main:d"]), "e");
}

#[test]
fn checkpoints_whose_names_collide_are_separate_tags() {
    let (sandbox, directory) = (sandbox(), tempfile::tempdir().unwrap());
    sandbox.bash("echo one > /note").unwrap();
    for name in ["a", "a/b", "a?b", "x/y/z", "x/y"] {
        sandbox.versions().checkpoint(name, None).unwrap();
    }
    let bare = directory.path().join("x.git");
    assert_eq!(export(&sandbox, &bare, "/").tags, 5);
    let tags = git(&bare, &["for-each-ref", "--format=%(refname:lstrip=2)", "refs/tags"]);
    assert_eq!(tags.lines().collect::<Vec<_>>(), ["a", "a-b", "a-b-2", "x-y-z", "x/y"]);
    assert_eq!(git(&bare, &["fsck", "--strict"]), "");
}

#[test]
fn a_commit_has_its_command_exit_status_and_time() {
    let (sandbox, directory) = (sandbox(), tempfile::tempdir().unwrap());
    let run = sandbox.bash("echo hi > /note\nexit 3").unwrap().run;
    sandbox.fs().write("/other", "x").unwrap();
    let path = directory.path().join("x.git");
    export(&sandbox, &path, "/");
    let version = sandbox.versions().resolve(&run.to_string()).unwrap();
    let expected = format!(
        "echo hi > /note\nexit 3\n\nExit-Status: 3\nSandlite-Run: {run}\n|Sandlite|sandlite@localhost|{}",
        version.time / 1_000_000_000
    );
    assert_eq!(git(&path, &["log", "-1", "--format=%B|%an|%ae|%at", "main~1"]).trim(), expected);
    assert!(git(&path, &["log", "-1", "--format=%s", "main"]).starts_with("write_file /other"));
}

#[test]
fn a_bundle_is_cloned_and_a_repository_has_a_clean_working_tree() {
    let (sandbox, directory) = (changed(), tempfile::tempdir().unwrap());
    let (bundle, repository) = (directory.path().join("x.bundle"), directory.path().join("work"));
    let one = export(&sandbox, &bundle, "/src");
    let two = export(&sandbox, &repository, "/src");
    assert_eq!(one.head, two.head, "the same sandbox gives the same hashes");
    git(directory.path(), &["clone", "-q", "x.bundle", "clone"]);
    git(&directory.path().join("clone"), &["bundle", "verify", "-q", "../x.bundle"]);
    let mut expected = in_sandbox(&sandbox, "/src");
    expected.retain(|path, _| !path.starts_with(".git"));
    assert_eq!(on_host(&directory.path().join("clone")), expected);
    assert_eq!(on_host(&repository), expected);
    assert_eq!(git(&repository, &["status", "--porcelain"]), "");
    // A guest's `.git` is never used as a repository.
    assert!(!repository.join(".git/hooks").exists());
    let again = directory.path().join("again.bundle");
    export(&sandbox, &again, "/src");
    assert_eq!(std::fs::read(&bundle).unwrap(), std::fs::read(&again).unwrap());
}

#[test]
fn an_export_overwrites_nothing_and_needs_files() {
    let (sandbox, directory) = (sandbox(), tempfile::tempdir().unwrap());
    sandbox.bash("echo hi > /note").unwrap();
    let options = GitExport { path: "/".to_owned(), form: GitForm::Repository, checkpoints: false };
    let refused = sandbox.versions().git_export(directory.path(), &options).unwrap_err();
    assert!(refused.to_string().contains("it already exists"), "{refused}");
    let options = GitExport { path: "/nothing".to_owned(), form: GitForm::Repository, checkpoints: false };
    let refused = sandbox.versions().git_export(&directory.path().join("x"), &options).unwrap_err();
    assert!(refused.to_string().contains("no version has files below it"), "{refused}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_link_that_leads_out_is_a_commit_but_not_a_file_of_the_host() {
    let (sandbox, directory) = (sandbox(), tempfile::tempdir().unwrap());
    sandbox.bash("mkdir /src; ln -s /etc/passwd /src/out; ln -s ../../.. /src/up; echo x > /src/in").unwrap();
    let work = directory.path().join("work");
    let exported = export(&sandbox, &work, "/src");
    assert_eq!(exported.skipped, ["/src/out", "/src/up"]);
    assert_eq!(on_host(&work).into_keys().collect::<Vec<_>>(), ["in"]);
    assert_eq!(git(&work, &["ls-files"]), "in\nout\nup\n");
}

#[test]
fn a_link_that_git_rejects_is_skipped() {
    let (sandbox, directory) = (sandbox(), tempfile::tempdir().unwrap());
    sandbox
        .bash("mkdir /src; echo x > /src/in; ln -s in /src/.gitmodules; ln -s in /src/.GitModules; ln -s in /src/.gitignore")
        .unwrap();
    let bare = directory.path().join("x.git");
    assert_eq!(export(&sandbox, &bare, "/src").skipped, ["/src/.GitModules", "/src/.gitmodules"]);
    assert_eq!(git(&bare, &["ls-tree", "--name-only", "main"]), ".gitignore\nin\n");
    git(&bare, &["fsck", "--strict"]);
    let mut patch = Vec::new();
    let refused = sandbox.versions().changes(None, &[]).unwrap().write_patch("/src", &mut patch).unwrap();
    assert_eq!(refused, ["/src/.GitModules", "/src/.gitmodules"]);
}

/// A repository with 200 commits, merges, tags, renames, executable files and links.
pub(super) fn repository(directory: &Path) -> PathBuf {
    let path = directory.join("project");
    std::fs::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    for number in 0..200 {
        let file = path.join(format!("dir{}/file{}", number % 7, number % 31));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let lines: String =
            (0..500).map(|line| format!("{} line {line}\n", if line == number { "changed" } else { "same" })).collect();
        std::fs::write(&file, lines).unwrap();
        match number {
            20 => std::os::unix::fs::symlink("dir0/file0", path.join("link")).unwrap(),
            30 => {
                std::fs::write(path.join("run.sh"), "#!/bin/sh\n").unwrap();
                let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                std::fs::set_permissions(path.join("run.sh"), executable).unwrap();
            }
            40 => std::fs::rename(path.join("dir1"), path.join("moved")).unwrap(),
            50 => {
                std::fs::remove_file(path.join("link")).unwrap();
                std::fs::create_dir(path.join("link")).unwrap();
                std::fs::write(path.join("link/file"), "now a directory").unwrap();
            }
            60 => std::fs::remove_dir_all(path.join("dir2")).unwrap(),
            _ => {}
        }
        git(&path, &["add", "-A"]);
        git(&path, &["commit", "-q", "-m", &format!("Commit {number}\n\nWith a body."), "--allow-empty"]);
        if number == 100 {
            git(&path, &["tag", "-a", "release", "-m", "The first release"]);
            git(&path, &["tag", "light"]);
            git(&path, &["gc", "-q"]);
        }
        if number % 50 == 49 {
            git(&path, &["checkout", "-q", "-b", &format!("side{number}"), "HEAD~2"]);
            std::fs::write(path.join(format!("side{number}")), "side").unwrap();
            git(&path, &["add", "-A"]);
            git(&path, &["commit", "-q", "-m", "Side"]);
            git(&path, &["checkout", "-q", "main"]);
            git(&path, &["merge", "-q", "--no-ff", "-m", "Merge", &format!("side{number}")]);
        }
    }
    path
}

#[test]
fn the_commits_of_a_repository_and_of_its_bundle_become_versions() {
    let directory = tempfile::tempdir().unwrap();
    let path = repository(directory.path());
    git(&path, &["bundle", "create", "-q", "../all.bundle", "--all"]);
    let commits: Vec<String> =
        git(&path, &["log", "--first-parent", "--reverse", "--format=%H", "main"]).lines().map(str::to_owned).collect();
    assert_eq!(commits.len(), 204);
    for from in [path.clone(), directory.path().join("all.bundle")] {
        let sandbox = sandbox();
        let imported = import(&sandbox, &from, "/project").unwrap();
        assert_eq!((imported.commits, imported.versions, imported.head.as_str()), (204, 204, commits[203].as_str()));
        assert_eq!((imported.checkpoints, imported.skipped.len()), (vec!["light".to_owned(), "release".to_owned()], 0));
        assert_eq!(in_sandbox(&sandbox, "/project"), on_host(&path));
        // Also in the middle of the history.
        let runs = sandbox.history(1000).unwrap();
        for number in [0, 20, 40, 50, 60, 101, 150] {
            git(&path, &["checkout", "-q", &commits[number]]);
            let run = runs.iter().find(|run| run.parameters.as_ref().is_some_and(|p| p["commit"] == commits[number])).unwrap();
            assert_eq!(in_sandbox(&sandbox.at(&run.id.to_string()).unwrap(), "/project"), on_host(&path), "{number}");
        }
        git(&path, &["checkout", "-q", "main"]);
        let run = runs.iter().find(|run| run.command == "git_import Commit 7").unwrap();
        let parameters = run.parameters.as_ref().unwrap();
        assert_eq!(
            (&parameters["author"], &parameters["email"], &parameters["date"]),
            (&"Ada".into(), &"ada@example.org".into(), &1_000_000_000.into())
        );
        assert_eq!(parameters["message"], "Commit 7\n\nWith a body.\n");
        assert!(sandbox.at("release").unwrap().fs().exists("/project/moved").unwrap());
        assert!(sandbox.check().unwrap().is_empty());
        // And back: the same trees, authors and messages.
        let back = directory.path().join(format!("back-{}.git", from.extension().is_some()));
        export(&sandbox, &back, "/project");
        assert_eq!(git(&back, &["fsck", "--strict"]), "");
        let trees = |path: &Path| git(path, &["log", "--first-parent", "--format=%T %an %at %s", "main"]);
        assert_eq!(trees(&back), trees(&path));
    }
}

#[test]
fn an_import_chooses_a_reference_and_a_depth() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r");
    std::fs::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    for number in 0..5 {
        std::fs::write(path.join("n"), number.to_string()).unwrap();
        git(&path, &["add", "-A"]);
        git(&path, &["commit", "-q", "-m", &number.to_string()]);
    }
    git(&path, &["branch", "old", "HEAD~2"]);
    let hash = git(&path, &["rev-parse", "--short", "HEAD~1"]);
    for (reference, depth, commits, content) in [
        ("old", None, 3, "2"),
        ("main", Some(2), 2, "4"),
        (hash.trim(), None, 4, "3"),
        ("HEAD~4", None, 1, "0"),
        ("main^", Some(9), 4, "3"),
    ] {
        let sandbox = sandbox();
        let options = GitImport { reference: Some(reference.to_owned()), into: "/r".to_owned(), depth };
        let imported = sandbox.versions().git_import(&path, &options).unwrap();
        assert_eq!((imported.commits, sandbox.fs().read("/r/n").unwrap()), (commits, content.as_bytes().to_vec()), "{reference}");
    }
    // A shallow clone has its newest commits.
    git(directory.path(), &["clone", "-q", "--depth", "2", &format!("file://{}", path.display()), "shallow"]);
    let sandbox = sandbox();
    assert_eq!(import(&sandbox, &directory.path().join("shallow"), "/r").unwrap().commits, 2);
}

#[test]
fn an_empty_first_commit_creates_the_directory_and_counts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r");
    std::fs::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    git(&path, &["commit", "-q", "-m", "Empty", "--allow-empty"]);
    git(&path, &["tag", "empty"]);
    std::fs::write(path.join("n"), "1").unwrap();
    git(&path, &["add", "-A"]);
    git(&path, &["commit", "-q", "-m", "One"]);
    git(&path, &["commit", "-q", "-m", "Nothing", "--allow-empty"]);
    git(&path, &["tag", "last"]);
    for has_files in [false, true] {
        let sandbox = sandbox();
        if has_files {
            sandbox.fs().write("/other", "x").unwrap();
        }
        let imported = import(&sandbox, &path, "/r").unwrap();
        assert_eq!((imported.commits, imported.versions, imported.checkpoints.len()), (3, 2, 2), "{has_files}");
        let at = |name: &str| sandbox.at(name).unwrap();
        assert!(at("empty").fs().exists("/r").unwrap() && !at("empty").fs().exists("/r/n").unwrap(), "{has_files}");
        assert_eq!(at("last").fs().read("/r/n").unwrap(), b"1");
        let names: Vec<_> = sandbox.versions().checkpoints().unwrap().into_iter().map(|label| label.name).collect();
        assert_eq!(names, ["last", "empty"], "{has_files}");
    }
}

#[test]
fn an_import_that_fails_in_the_middle_is_rolled_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r");
    std::fs::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    for number in 0..5 {
        std::fs::write(path.join(number.to_string()), "x").unwrap();
        git(&path, &["add", "-A"]);
        git(&path, &["commit", "-q", "-m", &number.to_string()]);
    }
    for has_files in [false, true] {
        let sandbox = sandbox();
        if has_files {
            sandbox.fs().write("/other", "x").unwrap();
        }
        let commits = std::sync::atomic::AtomicUsize::new(0);
        let refuse_third = move |_: &runtime::Commit<'_>| {
            let earlier = commits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if earlier == 2 { Err("closed".to_owned()) } else { Ok(()) }
        };
        sandbox.on_commit("/r", refuse_third).unwrap();
        let error = import(&sandbox, &path, "/r").unwrap_err().to_string();
        assert!(error.contains("closed"), "{error}");
        assert!(!sandbox.fs().exists("/r").unwrap(), "{has_files}");
        assert_eq!(sandbox.versions().checkpoints().unwrap(), [], "{has_files}");
        assert_eq!(import(&sandbox, &path, "/r").unwrap().versions, 5, "{has_files}");
    }
}

#[test]
fn a_repository_that_cannot_be_imported_is_an_error_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let new = |name: &str, format: &str| {
        git(directory.path(), &["init", "-q", "-b", "main", format, name]);
        std::fs::write(at(name).join("file"), "x\n".repeat(2000)).unwrap();
        git(&at(name), &["add", "-A"]);
        git(&at(name), &["commit", "-q", "-m", "one"]);
    };
    new("plain", "--object-format=sha1");
    new("sha256", "--object-format=sha256");
    new("reftable", "--object-format=sha1");
    let config = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n";
    std::fs::write(at("reftable/.git/config"), config).unwrap();
    new("module", "--object-format=sha1");
    let head = git(&at("plain"), &["rev-parse", "HEAD"]);
    git(&at("module"), &["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", head.trim())]);
    git(&at("module"), &["commit", "-q", "-m", "with a submodule"]);
    git(directory.path(), &["clone", "-q", "--shared", "plain", "shared"]);
    git(&at("plain"), &["worktree", "add", "-q", "../worktree"]);
    git(&at("plain"), &["bundle", "create", "-q", "../whole.bundle", "main"]);
    std::fs::write(at("plain/file"), "y").unwrap();
    git(&at("plain"), &["commit", "-q", "-a", "-m", "two"]);
    git(&at("plain"), &["bundle", "create", "-q", "../part.bundle", "main~1..main"]);
    let whole = std::fs::read(at("whole.bundle")).unwrap();
    std::fs::write(at("cut.bundle"), &whole[..whole.len() - 30]).unwrap();
    std::fs::write(at("head.bundle"), &whole[..20]).unwrap();
    let mut changed = whole.clone();
    let middle = changed.len() - 60;
    changed[middle] ^= 1;
    std::fs::write(at("changed.bundle"), &changed).unwrap();
    new("missing", "--object-format=sha1");
    let blob = git(&at("missing"), &["rev-parse", "HEAD:file"]);
    std::fs::remove_file(at("missing/.git/objects").join(&blob[..2]).join(blob[2..].trim())).unwrap();
    std::fs::create_dir(at("empty")).unwrap();
    git(directory.path(), &["init", "-q", "unborn"]);
    for (name, reason) in [
        ("sha256", "SHA-256"),
        ("reftable", "reference storage other than files"),
        ("module", "`sub` is a submodule"),
        ("shared", "alternates"),
        ("worktree", "points to another directory"),
        ("part.bundle", "requires commits that it does not contain"),
        ("cut.bundle", "truncated"),
        ("head.bundle", "truncated"),
        ("changed.bundle", "checksum differs"),
        ("missing", "is missing"),
        ("empty", "not a git repository"),
        ("unborn", "unknown git reference `HEAD`"),
        ("plain/file", "not a git repository"),
    ] {
        let sandbox = sandbox();
        let before = (sandbox.versions().resolve("HEAD").unwrap(), in_sandbox(&sandbox, "/"));
        let error = import(&sandbox, &at(name), "/").unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
        assert_eq!((sandbox.versions().resolve("HEAD").unwrap(), in_sandbox(&sandbox, "/")), before, "{name}");
    }
}

#[test]
fn an_import_overwrites_nothing_and_fits_the_quota() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r");
    std::fs::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    std::fs::create_dir(path.join("d")).unwrap();
    std::fs::write(path.join("d/file"), vec![7; 3 << 20]).unwrap();
    git(&path, &["add", "-A"]);
    git(&path, &["commit", "-q", "-m", "one"]);
    let sandbox = sandbox();
    sandbox.bash("mkdir -p /r/d; echo mine > /r/d/file; echo other > /r/d/other").unwrap();
    let error = import(&sandbox, &path, "/r").unwrap_err().to_string();
    assert!(error.contains("`/r/d/file` would be overwritten"), "{error}");
    assert_eq!(sandbox.fs().read("/r/d/file").unwrap(), b"mine\n");
    sandbox.bash("rm /r/d/file").unwrap();
    import(&sandbox, &path, "/r").unwrap();
    assert_eq!(sandbox.fs().read("/r/d/other").unwrap(), b"other\n");
    for (limit, reason) in [
        ("disk = \"2 MB\"", "it requires 3145728 bytes"),
        ("file = \"1 MB\"", "cannot write `/r/d/file`: the limit `file` is"),
        ("inodes = 5", "it requires"),
    ] {
        let limits = Limits::parse_custom(&format!("base = \"strict\"\n{limit}")).unwrap();
        let small = Sandbox::builder().host(super::host()).custom_limits(limits).open().unwrap();
        let error = import(&small, &path, "/r").unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(!small.fs().exists("/r").unwrap());
    }
}

#[test]
fn pruned_versions_become_one_commit() {
    let (sandbox, directory) = (sandbox(), tempfile::tempdir().unwrap());
    for number in 0..5 {
        sandbox.bash(format!("echo {number} > /n{number}")).unwrap();
    }
    sandbox.versions().prune(&Keep { versions: Some(2), ..Keep::default() }).unwrap();
    let path = directory.path().join("x.git");
    let exported = export(&sandbox, &path, "/");
    let oldest = sandbox.versions().log(None, None, None).unwrap().last().unwrap().version.number;
    assert_eq!((exported.commits, exported.first_version), (2, oldest));
    assert_eq!(git(&path, &["ls-tree", "--name-only", "main~1"]), "n0\nn1\nn2\nn3\n");
    assert_eq!(git(&path, &["fsck", "--strict"]), "");
}

#[test]
fn an_export_begins_where_another_program_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let (database, path) = (directory.path().join("a.db"), directory.path().join("x.git"));
    let open = || Sandbox::builder().host(super::host()).database(&database).open().unwrap();
    open().bash("echo one > /note").unwrap();
    let other = rusqlite::Connection::open(&database).unwrap();
    // AgentFS's SDKs add this when they open a file.
    let visit = "CREATE INDEX idx_kv_store_created_at ON kv_store(created_at);
        UPDATE fs_data SET data=CAST('two' || char(10) AS BLOB) WHERE length(data)=4";
    other.execute_batch(visit).unwrap();
    drop(other);
    let sandbox = open();
    sandbox.bash("echo three > /note").unwrap();
    let exported = export(&sandbox, &path, "/");
    assert_eq!(exported.commits, 2);
    assert_eq!(git(&path, &["show", "main:note"]), "three\n");
    assert_eq!(git(&path, &["show", "main~1:note"]), "two\n");
    assert!(git(&path, &["log", "-1", "--format=%s", "main~1"]).starts_with("Changes by another program"));
}

#[test]
fn an_export_of_a_past_version_ends_there() {
    let (sandbox, directory) = (changed(), tempfile::tempdir().unwrap());
    let (part, whole) = (directory.path().join("part.git"), directory.path().join("whole.git"));
    export(&sandbox, &whole, "/src");
    let exported = export(&sandbox.at("HEAD~2").unwrap(), &part, "/src");
    assert_eq!(exported.commits, 7);
    assert_eq!(git(&whole, &["rev-parse", "main~1"]).trim(), exported.head);
}

#[test]
fn checkpoints_are_the_commits_of_an_export_and_keep_their_hashes() {
    let directory = tempfile::tempdir().unwrap();
    let work = |sandbox: &Sandbox, name: &str, file: &str| {
        let export = GitExport { path: "/repo".to_owned(), form: GitForm::Bundle, checkpoints: true };
        sandbox.bash(format!("mkdir -p /repo; echo first > /repo/{file}; cd /repo; echo second > {file}")).unwrap();
        sandbox.bash(format!("chmod +x /repo/{file}")).unwrap();
        sandbox.versions().checkpoint(name, Some(&format!("add {file}\n\nin two lines"))).unwrap();
        let to = directory.path().join(format!("{name}.bundle"));
        sandbox.versions().git_export(&to, &export).unwrap();
        to
    };
    let first = work(&sandbox(), "one", "a");
    let restored = sandbox();
    import(&restored, &first, "/repo").unwrap();
    let second = work(&restored, "two", "b");
    git(directory.path(), &["clone", "-q", first.to_str().unwrap(), "first"]);
    git(directory.path(), &["clone", "-q", second.to_str().unwrap(), "second"]);
    let log = |name: &str, form: &str| git(&directory.path().join(name), &["log", "--reverse", &format!("--format={form}")]);
    assert_eq!(log("second", "%B"), "add a\n\nin two lines\n\nadd b\n\nin two lines\n\n");
    assert!(log("second", "%H").starts_with(&log("first", "%H")), "a commit that was imported is the same commit");
    assert_eq!(git(&directory.path().join("second"), &["tag"]), "");
    assert_eq!(on_host(&directory.path().join("second")).len(), 2);
    git(&directory.path().join("second"), &["fsck", "--strict"]);
}
