//! A restore brings back hard links and modification times, too, also if nothing else differs.

use runtime::Sandbox;

use super::sandbox;

fn text(sandbox: &Sandbox, path: &str) -> String {
    String::from_utf8(sandbox.fs().read(path).unwrap()).unwrap()
}

#[test]
fn a_name_that_alone_differs_is_linked_again() {
    let sandbox = sandbox();
    let restore = |paths: &[String]| sandbox.versions().restore("linked", paths).unwrap();
    sandbox.bash("mkdir /d; echo 1 > /a; ln /a /b; ln /a /d/c; echo x > /x").unwrap();
    sandbox.versions().checkpoint("linked", None).unwrap();
    let detours = [
        "echo 2 > /new; mv /new /b",
        "cp /a /new; mv /new /b",
        "cp /a /new; mv /new /b; ln -f /b /d/c",
        "rm /b",
        "rm /b; ln /x /b",
        "mv /d /e",
        "mv /d /e; mkdir /d; cp /e/c /d/c",
        "rm /a /d/c; echo 3 > /d/c",
        "cp /a /new; rm /a /b /d/c; mv /new /a; ln /a /d/c; ln /a /other",
        "chmod 600 /a; cp /a /new; mv /new /d/c",
    ];
    for script in detours {
        assert!(sandbox.bash(script).unwrap().status.success(), "{script}");
        restore(&[]);
        assert!(sandbox.versions().compare("linked", "HEAD", &[]).unwrap().is_empty(), "{script}");
        assert_eq!((text(&sandbox, "/d/c").as_str(), text(&sandbox, "/x").as_str()), ("1\n", "x\n"), "{script}");
        sandbox.bash("echo shared > /d/c").unwrap();
        assert_eq!(["/a", "/b"].map(|path| text(&sandbox, path)), ["shared\n", "shared\n"], "{script}");
        restore(&[]);
    }
    sandbox.bash(detours[0]).unwrap();
    restore(&["/b".to_owned()]);
    sandbox.bash("echo shared > /b").unwrap();
    assert_eq!(text(&sandbox, "/a"), "shared\n");
}

#[test]
fn a_lost_link_is_a_difference() {
    let sandbox = sandbox();
    sandbox.bash("echo 1 > /a; ln /a /b; echo 1 > /c").unwrap();
    let compare = || {
        let compared = sandbox.versions().compare("HEAD~1", "HEAD", &[]).unwrap();
        let found: Vec<_> = compared.differences.iter().map(|one| format!("{} {}", one.kind.mark(), one.path)).collect();
        (found.join(", "), compared.patch())
    };
    sandbox.bash("cp /a /new; mv /new /b").unwrap();
    assert_eq!(compare(), ("l /a, l /b".to_owned(), "# the hard links of a changed\n# the hard links of b changed\n".to_owned()));
    sandbox.bash("ln /c /d").unwrap();
    assert_eq!(compare().0, "A /d");
    sandbox.bash("echo 2 > /new; mv /new /d").unwrap();
    assert_eq!(compare().0, "l /c, M /d");
}

#[test]
fn modification_times_of_files_are_restored() {
    let sandbox = sandbox();
    let time = |path: &str| sandbox.fs().metadata(path).unwrap().mtime;
    sandbox.bash("echo 1 > /a; echo 2 > /b; mkfifo /p").unwrap();
    for path in ["/a", "/b", "/p"] {
        sandbox.fs().set_times(path, None, Some(1_000_000_000)).unwrap();
    }
    sandbox.versions().checkpoint("before", None).unwrap();
    sandbox.fs().set_times("/a", None, Some(2_000_000_000)).unwrap();
    sandbox.fs().set_times("/p", None, Some(2_000_000_000)).unwrap();
    sandbox.bash("echo 3 > /b").unwrap();
    assert!(time("/b") > 2_000_000_000);
    sandbox.versions().restore("before", &["/a".to_owned()]).unwrap();
    assert_eq!(time("/a"), 1_000_000_000);
    sandbox.versions().undo(1).unwrap();
    assert_eq!(time("/a"), 2_000_000_000);
    sandbox.versions().restore("before", &[]).unwrap();
    assert_eq!(["/a", "/b", "/p"].map(time), [1_000_000_000; 3]);
    assert!(sandbox.versions().compare("before", "HEAD", &[]).unwrap().is_empty());
}
