//! Commits of a repository that are mounted without a checkout, and overlays over them.

use runtime::{Mount, Sandbox, Side};

use super::git::{git, in_sandbox, on_host, repository};

#[test]
fn a_commit_is_mounted_without_a_checkout() {
    let directory = tempfile::tempdir().unwrap();
    let path = repository(directory.path());
    git(&path, &["gc", "-q"]);
    git(&path, &["checkout", "-q", "--detach"]);
    for (reference, commit) in [("", "main"), ("@release", "release"), ("@main~100", "main~100"), ("@side49", "side49")] {
        let spec = format!("git:{}{reference}:/src", path.display());
        let sandbox = Sandbox::builder().host(super::host()).mount(Mount::parse(&spec).unwrap()).open().unwrap();
        git(&path, &["checkout", "-q", "--detach", commit]);
        assert_eq!(in_sandbox(&sandbox, "/src"), on_host(&path), "{reference}");
        let count = sandbox.bash("find /src -type f | xargs cat | wc -c; grep -l changed -r /src | wc -l").unwrap();
        let bytes: usize =
            on_host(&path).values().filter(|(_, content)| !content.starts_with(b"-> ")).map(|(_, content)| content.len()).sum();
        assert!(String::from_utf8_lossy(&count.stdout).starts_with(&format!("{bytes}\n")), "{count:?}");
        let refused = sandbox.bash("echo x > /src/new").unwrap();
        assert!(String::from_utf8_lossy(&refused.stderr).contains("Read-only file system"), "{refused:?}");
        git(&path, &["checkout", "-q", "--detach", "main"]);
    }
}

#[test]
fn changes_over_a_mounted_commit_stay_in_the_sandbox() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r");
    std::fs::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    std::fs::write(path.join("note"), "one\n").unwrap();
    std::fs::write(path.join("run"), "#!/bin/bash\necho ran\n").unwrap();
    git(&path, &["add", "-A"]);
    git(&path, &["update-index", "--chmod=+x", "run"]);
    git(&path, &["commit", "-q", "-m", "one"]);
    let before = (on_host(&path), git(&path, &["rev-parse", "HEAD"]));
    let bundle = directory.path().join("r.bundle");
    git(&path, &["bundle", "create", "-q", bundle.to_str().unwrap(), "main"]);
    for source in [path.clone(), bundle] {
        let mount = Mount::git(&source, "/src").writable();
        let sandbox = Sandbox::builder().host(super::host()).mount(mount).open().unwrap();
        let output = sandbox.bash("cd /src; ./run; echo two >> note; cat note; rm run; ls; stat -c %Y note >/dev/null").unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\none\ntwo\nnote\n");
        assert_eq!((on_host(&path), git(&path, &["rev-parse", "HEAD"])), before);
    }
    for (source, reason) in [(path.join("nothing"), "No such file"), (directory.path().to_owned(), "not a git repository")] {
        let opened = Sandbox::builder().host(super::host()).mount(Mount::git(&source, "/src")).open();
        let error = opened.err().unwrap().causes().join(": ");
        assert!(error.contains(reason) || error.contains("cannot use"), "{error}");
    }
    let opened = Sandbox::builder().host(super::host()).mount(Mount::git(format!("{}@nobody", path.display()), "/src")).open();
    assert!(opened.err().unwrap().to_string().contains("unknown git reference `nobody`"));
}

#[test]
fn an_overlay_stays_on_its_commit_until_it_is_updated() {
    let directory = tempfile::tempdir().unwrap();
    let (path, own) = (directory.path().join("r"), directory.path().join("own.db"));
    std::fs::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    let commit = |files: &[(&str, &str)]| {
        for (name, content) in files {
            std::fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
            std::fs::write(path.join(name), content).unwrap();
        }
        git(&path, &["add", "-A"]);
        git(&path, &["commit", "-q", "-m", "next"]);
        git(&path, &["rev-parse", "HEAD"]).trim().to_owned()
    };
    let first = commit(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n"), ("d/e", "1\n")]);
    git(&path, &["tag", "first"]);
    let open = |reference: &str| {
        let mount = Mount::git(format!("{}{reference}", path.display()), "/src").writable();
        Sandbox::builder().host(super::host()).database(&own).mount(mount).open()
    };
    let check = |sandbox: &Sandbox, script: &str, expected: &str| {
        let output = sandbox.bash(script).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{script}: {output:?}");
    };
    let sandbox = open("@main").unwrap();
    check(&sandbox, "cd /src; echo mine > a; echo mine > new; rm c; rm -r d; cat b", "1\n");
    let second = commit(&[("a", "2\n"), ("b", "2\n"), ("d/e", "2\n"), ("f", "2\n")]);
    git(&path, &["gc", "-q"]);
    drop(sandbox);
    let error = open(&format!("@{second}")).map(drop).unwrap_err().to_string();
    let reason = format!("it is on commit {first}, expected {second}");
    assert_eq!(error, format!("cannot mount an overlay at `/src`: {reason}; move it with `sandlite update`"));
    // Opened again, it is still on the first commit.
    let sandbox = open("@main").unwrap();
    check(&sandbox, "cd /src; cat a b; ls", "mine\n1\na\nb\nnew\n");
    let refused = sandbox.update("/src", None, None).unwrap_err();
    assert_eq!(refused.to_string(), "cannot update `/src`: 2 paths were changed on both sides: `/src/a`, `/src/d`");
    check(&sandbox, "cd /src; cat a b; ls", "mine\n1\na\nb\nnew\n");
    let fork = sandbox.fork().unwrap();
    let done = fork.update("/src", None, Some(Side::Theirs)).unwrap();
    assert_eq!((done.commits, done.changes), (Some((first.clone(), second.clone())), 4));
    check(&fork, "cd /src; cat a b d/e f; ls", "2\n2\n2\n2\na\nb\nd\nf\nnew\n");
    let start = sandbox.events_after(None, None).unwrap().version;
    assert_eq!(sandbox.update("/src", None, Some(Side::Ours)).unwrap().conflicts, ["/src/a", "/src/d"]);
    let events = sandbox.events_after(Some(start), None).unwrap().events;
    let listed: Vec<_> = events.iter().map(|event| (event.kind.as_str(), event.path.as_str())).collect();
    assert_eq!(listed, [("modified", "/src/b"), ("created", "/src/f")]);
    check(&sandbox, "cd /src; cat a b f; ls", "mine\n2\n2\na\nb\nf\nnew\n");
    drop(sandbox);
    let sandbox = open("@main").unwrap();
    check(&sandbox, "cd /src; cat a b f; ls", "mine\n2\n2\na\nb\nf\nnew\n");
    // To a named commit, and nothing is written for an unknown one.
    assert!(sandbox.update("/src", Some("nobody"), None).unwrap_err().to_string().contains("unknown git reference `nobody`"));
    sandbox.update("/src", Some("first"), Some(Side::Ours)).unwrap();
    check(&sandbox, "cat /src/b; ls /src", "1\na\nb\nnew\n");
    drop(sandbox);
    let database = Sandbox::builder().host(super::host()).database(&own).mount(Mount::past("HEAD", "/src").writable()).open();
    assert!(database.map(drop).unwrap_err().to_string().contains("it was created over another source"));
}

#[test]
fn a_commit_that_was_removed_is_an_error_and_an_update_moves_off_it() {
    let directory = tempfile::tempdir().unwrap();
    let (path, own) = (directory.path().join("r"), directory.path().join("own.db"));
    let create = |content: &str| {
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        git(&path, &["init", "-q", "-b", "main"]);
        std::fs::write(path.join("a"), content).unwrap();
        git(&path, &["add", "-A"]);
        git(&path, &["commit", "-q", "-m", content.trim()]);
    };
    let open = || {
        let mount = Mount::git(&path, "/src").writable();
        Sandbox::builder().host(super::host()).database(&own).mount(mount).open().unwrap()
    };
    create("1\n");
    open().bash("echo mine > /src/new").unwrap();
    create("2\n");
    let sandbox = open();
    let output = sandbox.bash("cat /src/a").unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("is no longer in the mounted git repository"), "{said}");
    // Later changes of the other side are unknown.
    assert_eq!(sandbox.update("/src", None, Some(Side::Ours)).unwrap().conflicts, ["/src/new"]);
    assert_eq!(sandbox.bash("cat /src/a /src/new").unwrap().stdout, b"2\nmine\n");
}
