//! Files and trees of a sandbox as bytes.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::super::http::{Answer, Server};
use super::{act, bash, created};

struct Box {
    server: Server,
    id: String,
}

impl Box {
    fn new() -> Self {
        let server = Server::start(&[]);
        let id = created(&server, json!({}));
        Self { server, id }
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.server.send(&format!("{method} /v1/sandboxes/{}/{path}", self.id), Some(&self.server.key), headers, body)
    }
}

#[test]
fn a_file_is_written_read_and_deleted_with_tags() {
    let sandbox = Box::new();
    let first = sandbox.send("PUT", "files/d/a.html", &[], b"<b>0123456789</b>").expect(201);
    let tag = first.header("etag").unwrap().to_owned();
    let read = sandbox.send("GET", "files/d/a.html", &[], b"").expect(200);
    assert_eq!((read.body.as_slice(), read.header("etag")), (&b"<b>0123456789</b>"[..], Some(tag.as_str())));
    // T-NET-07: never a page of ours.
    assert_eq!(read.header("content-type"), Some("application/octet-stream"));
    assert_eq!(read.header("content-disposition"), Some("attachment; filename=\"a.html\""));
    assert_eq!(read.header("x-content-type-options"), Some("nosniff"));
    assert!(read.header("content-security-policy").unwrap().contains("sandbox"));
    assert_eq!(sandbox.send("GET", "files/d/a.html", &[("If-None-Match", &tag)], b"").expect(304).body, b"");
    let head = sandbox.send("HEAD", "files/d/a.html", &[], b"").expect(200);
    assert_eq!((head.header("content-length"), head.body.len()), (Some("17"), 0));
    let part = sandbox.send("GET", "files/d/a.html", &[("Range", "bytes=3-5")], b"").expect(206);
    assert_eq!((part.body.as_slice(), part.header("content-range")), (&b"012"[..], Some("bytes 3-5/17")));
    let none = sandbox.send("GET", "files/d/a.html", &[("Range", "bytes=99-")], b"").expect(416);
    assert_eq!(none.header("content-range"), Some("bytes */17"));

    sandbox.send("PUT", "files/d/a.html", &[("If-None-Match", "*")], b"new").expect(412);
    let second = sandbox.send("PUT", "files/d/a.html", &[("If-Match", &tag)], b"two").expect(204);
    assert_ne!(second.header("etag"), Some(tag.as_str()));
    sandbox.send("PUT", "files/d/a.html", &[("If-Match", &tag)], b"three").expect(412);
    sandbox.send("DELETE", "files/d/a.html", &[("If-Match", &tag)], b"").expect(412);
    sandbox.send("PUT", "files/missing", &[("If-Match", "*")], b"x").expect(412);
    assert_eq!(sandbox.send("GET", "files/d/a.html?at=HEAD~1", &[], b"").expect(200).body, b"<b>0123456789</b>");
    assert_eq!(bash(&sandbox.server, &sandbox.id, "cat /d/a.html")["stdout"], "two");

    // RFC 9110: a list of tags, of which a weak one matches no content; conditions of a read.
    let tag = second.header("etag").unwrap().to_owned();
    let list = format!("\"other\", {tag}");
    sandbox.send("PUT", "files/d/a.html", &[("If-Match", &format!("W/{tag}"))], b"no").expect(412);
    sandbox.send("PUT", "files/d/a.html", &[("If-None-Match", &list)], b"no").expect(412);
    sandbox.send("GET", "files/d/a.html", &[("If-Match", "\"other\"")], b"").expect(412);
    assert_eq!(sandbox.send("GET", "files/d/a.html", &[("If-Match", &list)], b"").expect(200).body, b"two");
    sandbox.send("PUT", "files/d/a.html", &[("If-Match", &list)], b"four").expect(204);
    sandbox.send("DELETE", "files/d", &[("If-Match", &tag)], b"").expect(400);

    sandbox.send("GET", "files/d", &[], b"").expect(400);
    sandbox.send("DELETE", "files/d", &[], b"").expect(409);
    sandbox.send("DELETE", "files/d?recursive=true", &[], b"").expect(204);
    sandbox.send("DELETE", "files/d", &[], b"").expect(404);
    sandbox.send("PUT", "files/usr/x/y", &[("If-Match", "nonsense")], b"").expect(400);
    // It will never work, so that no client is asked to try again.
    let root = sandbox.send("DELETE", "files//?recursive=true", &[], b"").expect(409);
    assert_eq!((root.error().1.as_str(), root.header("retry-after")), ("conflict", None));
}

// As in tests/behaviour/ways.rs, whose views are those of the library.
#[test]
fn every_route_shows_the_files_that_commands_see() {
    let sandbox = Box::new();
    let run = |command: &str| bash(&sandbox.server, &sandbox.id, command)["stdout"].as_str().unwrap().to_owned();
    let ask = |action: &str, path: &str| act(&sandbox.server, &sandbox.id, action, json!({ "path": path }));
    run(
        "ln -s notes link; ln -s nowhere dangling; ln -s /etc/passwd users; mkdir -p deep/er; echo rows > notes; echo x > deep/er/.x",
    );
    for path in ["/etc/passwd", "/etc/hosts", "/home/user/notes", "/home/user/link", "/home/user/users", "/home/user/deep/er/.x"]
    {
        let expected = run(&format!("cat {path}"));
        assert!(!expected.is_empty(), "{path}");
        let file = sandbox.send("GET", &format!("files{path}"), &[], b"").expect(200);
        assert_eq!(file.text(), expected, "{path}");
        let read = ask("read_file", path).expect(200).json();
        assert_eq!((read["content"].as_str(), read["size"].as_u64()), (Some(&*expected), Some(expected.len() as u64)), "{path}");
        let tag = format!("\"{}\"", read["version"].as_str().unwrap());
        assert_eq!(file.header("etag"), Some(tag.as_str()), "{path}");
        let info = ask("file_info", path).expect(200).json();
        assert_eq!(info["size"], expected.len(), "{path}");
    }
    for path in ["/home/user/nothing", "/home/user/dangling", "/etc/shadow"] {
        assert_eq!(run(&format!("cat {path} 2>&1 | grep -c 'No such file'")), "1\n", "{path}");
        sandbox.send("GET", &format!("files{path}"), &[], b"").expect(404);
        ask("read_file", path).expect(404);
        ask("file_info", path).expect(404);
    }
    for path in ["/", "/etc", "/usr/local", "/proc", "/home/user", "/home/user/deep/er"] {
        let mut expected: Vec<String> = run(&format!("ls -A1 {path}/")).lines().map(str::to_owned).collect();
        expected.sort();
        let listed = act(&sandbox.server, &sandbox.id, "list_files", json!({ "path": path, "hidden": true })).expect(200).json();
        let name = |entry: &Value| entry["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let names: Vec<String> = listed["entries"].as_array().unwrap().iter().map(name).collect();
        assert_eq!(names, expected, "{path}");
    }
    for path in ["/etc/hosts", "/usr/bin/tool"] {
        assert_eq!(run(&format!("echo mine 2>/dev/null > {path} || echo refused")), "refused\n", "{path}");
        sandbox.send("PUT", &format!("files{path}"), &[], b"mine").expect(403);
        act(&sandbox.server, &sandbox.id, "write_file", json!({ "path": path, "content": "mine" })).expect(403);
    }
}

#[test]
fn large_files_go_both_ways_and_in_parts() {
    let sandbox = Box::new();
    let large: Vec<u8> = (0..6_000_000u32).map(|number| (number % 251) as u8).collect();
    let tag = sandbox.send("PUT", "files/large", &[], &large).expect(201).header("etag").unwrap().to_owned();
    let read = sandbox.send("GET", "files/large", &[], b"").expect(200);
    assert!(read.body == large && read.header("etag") == Some(tag.as_str()));
    let part = sandbox.send("GET", "files/large", &[("Range", "bytes=5000000-5000099")], b"").expect(206);
    assert_eq!(part.body, &large[5_000_000..5_000_100]);
    let late = sandbox.send("GET", "files/large", &[("Range", "bytes=0-9"), ("If-Range", "\"other\"")], b"").expect(200);
    assert_eq!(late.body.len(), large.len());
}

fn tar(arguments: &[&str], directory: &std::path::Path, input: Option<&[u8]>) -> Vec<u8> {
    use std::io::Write as _;
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut child =
        Command::new("tar").args(arguments).current_dir(directory).stdin(stdin).stdout(Stdio::piped()).spawn().unwrap();
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        stdin.write_all(input).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    output.stdout
}

#[test]
fn trees_go_both_ways_through_the_systems_tar() {
    let sandbox = Box::new();
    let directory = tempfile::tempdir().unwrap();
    let long = format!("{}/{}", "d".repeat(200), "f".repeat(200));
    for (path, content) in [("a/one.txt", "1"), ("a/run.sh", "#!/bin/bash\necho ran"), (long.as_str(), "long")] {
        std::fs::create_dir_all(directory.path().join(path).parent().unwrap()).unwrap();
        std::fs::write(directory.path().join(path), content).unwrap();
    }
    std::fs::create_dir(directory.path().join("empty")).unwrap();
    std::os::unix::fs::symlink("one.txt", directory.path().join("a/link")).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(directory.path().join("a/run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for format in ["--format=gnu", "--format=pax"] {
        let archive = tar(&["-c", format, "."], directory.path(), None);
        sandbox.send("PUT", "tree/in", &[("Content-Type", "application/x-tar")], &archive).expect(200);
        let script = format!("cat /in/a/link; /in/a/run.sh; cat '/in/{long}'; ls -d /in/empty; rm -r /in");
        assert_eq!(bash(&sandbox.server, &sandbox.id, &script)["stdout"], "1ran\nlong/in/empty\n", "{format}");
    }
    let archive = tar(&["-c", "."], directory.path(), None);
    sandbox.send("PUT", "tree/in", &[], &archive).expect(200);
    let out = sandbox.send("GET", "tree/in", &[], b"").expect(200);
    assert_eq!(out.header("content-type"), Some("application/x-tar"));
    let unpacked = tempfile::tempdir().unwrap();
    tar(&["-x"], unpacked.path(), Some(&out.body));
    assert_eq!(std::fs::read_to_string(unpacked.path().join(&long)).unwrap(), "long");
    assert_eq!(std::fs::read_link(unpacked.path().join("a/link")).unwrap(), std::path::Path::new("one.txt"));
    assert!(unpacked.path().join("empty").is_dir());
    let whole = sandbox.send("GET", "tree/", &[], b"").expect(200);
    assert!(whole.body.windows(12).any(|window| window == b"in/a/one.txt"));
    sandbox.send("GET", "tree/in/a/one.txt", &[], b"").expect(400);
    sandbox.send("GET", "tree/missing", &[], b"").expect(404);
}

// T-NET-07: nothing is written of an archive that has one hostile entry.
#[test]
fn an_archive_that_leads_out_is_rejected_as_a_whole() {
    let sandbox = Box::new();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("good"), "x").unwrap();
    std::os::unix::fs::symlink("/etc", directory.path().join("out")).unwrap();
    let hostile = [
        tar(&["-c", "good", "out"], directory.path(), None),
        tar(&["-c", "--transform=s,good,../../evil,", "-P", "good"], directory.path(), None),
        tar(&["-c", "--transform=s,good,/evil,", "-P", "good"], directory.path(), None),
        b"not a tar archive".repeat(100),
    ];
    for archive in hostile {
        let answer = sandbox.send("PUT", "tree/in", &[], &archive).expect(400);
        assert!(answer.text().contains("refused"), "{}", answer.text());
        sandbox.send("GET", "files/in/good", &[], b"").expect(404);
    }
}

#[test]
fn a_tree_is_written_again_with_its_links_and_one_that_does_not_fit_changes_nothing() {
    let sandbox = Box::new();
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("d")).unwrap();
    std::fs::write(directory.path().join("d/file"), "one").unwrap();
    std::os::unix::fs::symlink("file", directory.path().join("d/link")).unwrap();
    let put = |archive: &[u8]| sandbox.send("PUT", "tree/t", &[], archive);
    put(&tar(&["-c", "d"], directory.path(), None)).expect(200);
    std::fs::write(directory.path().join("d/file"), "two").unwrap();
    std::fs::remove_file(directory.path().join("d/link")).unwrap();
    std::os::unix::fs::symlink("./file", directory.path().join("d/link")).unwrap();
    put(&tar(&["-c", "d"], directory.path(), None)).expect(200);
    assert_eq!(bash(&sandbox.server, &sandbox.id, "cat /t/d/link; readlink /t/d/link")["stdout"], "two./file\n");

    // What is there is in the way: a file of a directory's name, and a directory of a link's.
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("a"), "new").unwrap();
    std::fs::create_dir_all(other.path().join("d/file")).unwrap();
    put(&tar(&["-c", "a", "d"], other.path(), None)).expect(409);
    std::fs::remove_dir_all(other.path().join("d")).unwrap();
    std::os::unix::fs::symlink("a", other.path().join("d")).unwrap();
    put(&tar(&["-c", "a", "d"], other.path(), None)).expect(409);
    // The archive contradicts itself.
    let mut twice = tar(&["-c", "a", "d"], other.path(), None);
    std::fs::remove_file(other.path().join("d")).unwrap();
    std::fs::create_dir(other.path().join("d")).unwrap();
    std::fs::write(other.path().join("d/x"), "").unwrap();
    twice.truncate(twice.len() - twice.iter().rev().take_while(|byte| **byte == 0).count() / 512 * 512);
    twice.extend(tar(&["-c", "d"], other.path(), None));
    let answer = sandbox.send("PUT", "tree/other", &[], &twice).expect(400);
    assert!(answer.text().contains("two different kinds"), "{}", answer.text());
    sandbox.send("GET", "files/t/a", &[], b"").expect(404);
    sandbox.send("GET", "files/other/a", &[], b"").expect(404);
}
