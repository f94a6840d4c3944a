//! Promise: whatever is mounted (another database, a past version, a function) is read as files are, and never changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use runtime::actions::{Answer, Context, find};
use runtime::{Builder, Command, Error, FsError, Mount, Overrides, ProvidedNode, Provider, Sandbox, Side, WallTime};
use serde_json::{Value, json};

use super::host;

fn builder() -> Builder {
    Sandbox::builder().host(host())
}

fn check(sandbox: &Sandbox, script: &str, expected: &str) {
    let output = sandbox.bash(script).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, expected, "{script}");
}

/// A database with a few files.
fn base(directory: &Path) -> PathBuf {
    let file = directory.join("base.db");
    let sandbox = builder().database(&file).open().unwrap();
    let script = "mkdir -p /work/deep/er /home/user/x; echo one > /work/a; echo two > /work/deep/b; seq 100000 > /work/deep/er/large
        ln -s ../a /work/deep/link; chmod 755 /work/a; echo secret > /work/closed; chmod 000 /work/closed; mkfifo /work/pipe; echo r > /readme";
    assert!(sandbox.bash(script).unwrap().status.success());
    file
}

#[test]
fn a_database_is_mounted_for_reading() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = builder().mount(Mount::database(base(directory.path()), "/base")).open().unwrap();
    check(
        &sandbox,
        "cat /base/work/a /base/work/deep/link; ls /base/work; stat -c %a /base/work/a",
        "one\none\na\nclosed\ndeep\n755\n",
    );
    check(&sandbox, "md5sum < /base/work/deep/er/large; seq 100000 | md5sum", &{
        let output = sandbox.bash("seq 100000 | md5sum; seq 100000 | md5sum").unwrap();
        String::from_utf8(output.stdout).unwrap()
    });
    check(&sandbox, "cat /base/work/closed", "cat: /base/work/closed: Permission denied\n");
    check(&sandbox, "echo x > /base/work/a", "bash: line 1: /base/work/a: Read-only file system\n");
    check(&sandbox, "rm -rf /base/work/deep 2>&1 | head -n 1", "rm: cannot remove '/base/work/deep/b': Read-only file system\n");
    check(&sandbox, "grep base /proc/mounts", "database /base database ro,relatime 0 0\n");
    assert_eq!(sandbox.fs().read("/base/work/deep/b").unwrap(), b"two\n");
    assert_eq!(sandbox.fs().list("/base").unwrap().len(), 4);
}

#[test]
fn a_sandbox_laid_over_a_base_changes_only_itself() {
    let directory = tempfile::tempdir().unwrap();
    let file = base(directory.path());
    let own = directory.path().join("own.db");
    let open = || builder().database(&own).base(&file).open().unwrap();
    let sandbox = open();
    check(
        &sandbox,
        "cd /work; echo more >> a; rm deep/b; echo new > deep/n; mv deep/er/large l; ls . deep; cat a",
        ".:\na\nclosed\ndeep\nl\n\ndeep:\ner\nlink\nn\none\nmore\n",
    );
    drop(sandbox);
    let again = open();
    check(
        &again,
        "cat /work/a /readme; ls /work/deep; ls /home/user /; wc -l < /work/l",
        "one\nmore\nr\ner\nlink\nn\n/:\nbin\ndev\netc\nhome\nlib\nproc\nreadme\nsbin\ntmp\nusr\nwork\n\n/home/user:\nx\n100000\n",
    );
    let untouched = builder().database(&file).open().unwrap();
    check(&untouched, "cat /work/a; ls /work/deep", "one\nb\ner\nlink\n");
}

#[test]
fn many_sandboxes_share_a_base_and_stay_isolated() {
    let directory = tempfile::tempdir().unwrap();
    let file = base(directory.path());
    let sandboxes: Vec<Sandbox> = (0..20).map(|_| builder().base(&file).open().unwrap()).collect();
    for (number, sandbox) in sandboxes.iter().enumerate() {
        sandbox.fs().write("/work/a", number.to_string()).unwrap();
    }
    for (number, sandbox) in sandboxes.iter().enumerate() {
        assert_eq!(sandbox.fs().read("/work/a").unwrap(), number.to_string().into_bytes());
        assert_eq!(sandbox.fs().read("/work/deep/b").unwrap(), b"two\n");
    }
}

#[test]
fn a_base_that_changes_is_seen_by_readers_and_not_by_overlays() {
    let directory = tempfile::tempdir().unwrap();
    let file = base(directory.path());
    let over = builder().base(&file).open().unwrap();
    let reading = builder().mount(Mount::database(&file, "/base")).open().unwrap();
    // Within one command, one state: the base changes between two of its reads.
    let changed = file.clone();
    let change = Provider::file(move |_| {
        let base = builder().database(&changed).open().map_err(|error| error.to_string())?;
        base.bash("echo changed > /work/a; rm /work/deep/b; echo n > /work/new").map_err(|error| error.to_string())?;
        Ok(b"done\n".to_vec())
    });
    let reading = reading.with_mount(Mount::dynamic("/change", change.clone())).unwrap();
    check(&reading, "cat /base/work/a /change /base/work/a /base/work/deep/b", "one\ndone\none\ntwo\n");
    check(&reading, "cat /base/work/a; ls /base/work", "changed\na\nclosed\ndeep\nnew\n");
    check(&over, "cat /work/a; ls /work", "one\na\nclosed\ndeep\n");
}

#[test]
fn a_past_version_is_mounted_for_reading_and_under_a_layer() {
    let directory = tempfile::tempdir().unwrap();
    let file = base(directory.path());
    let sandbox = builder().database(&file).open().unwrap();
    sandbox.versions().checkpoint("before", None).unwrap();
    sandbox.bash("echo later > /work/a; rm -r /work/deep").unwrap();
    let with = |mount: Mount| sandbox.with_mount(mount).unwrap();
    check(
        &with(Mount::past("before", "/then")),
        "cat /then/work/a /then/work/deep/b /work/a; echo x > /then/work/a",
        "one\ntwo\nlater\nbash: line 1: /then/work/a: Read-only file system\n",
    );
    check(
        &with(Mount::past("before", "/work").writable()),
        "echo x >> /work/work/a; rm /work/work/deep/b; cat /work/work/a /work/a; ls /work/work/deep",
        "one\nx\nlater\ner\nlink\n",
    );
    drop(sandbox);
    let other = builder().mount(Mount::database(format!("{}@before", file.display()), "/b")).open().unwrap();
    check(&other, "cat /b/work/a /b/work/deep/b", "one\ntwo\n");
    let unknown = builder().mount(Mount::database(format!("{}@nothing", file.display()), "/b")).open();
    assert!(unknown.is_err_and(|error| error.to_string().starts_with("invalid version `nothing`")));
}

fn counting() -> (Provider, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    (Provider::file(move |_| Ok(format!("call {}\n", calls.fetch_add(1, Ordering::Relaxed) + 1).into())), count)
}

#[test]
fn a_generated_file_is_read_by_every_program() {
    let lines = || Provider::file(|_| Ok((1..=1000).map(|n| format!("line {n}\n")).collect::<String>().into()));
    let sandbox = builder().dynamic("/gen/lines", lines()).open().unwrap();
    check(&sandbox, "cat /gen/lines | wc -l; wc -lc /gen/lines", "1000\n1000 8893 /gen/lines\n");
    check(
        &sandbox,
        "cp /gen/lines /tmp/c; cmp /gen/lines /tmp/c && wc -c < /tmp/c; head -c 9 /gen/lines; tail -n 1 /gen/lines",
        "8893\nline 1\nliline 1000\n",
    );
    check(
        &sandbox,
        "grep -c 'line 99' /gen/lines; tar cf /tmp/t.tar -C /gen lines; tar xf /tmp/t.tar -C /tmp; wc -l < /tmp/lines",
        "11\n1000\n",
    );
    let python = sandbox.python("print(len(open('/gen/lines').read()), len(open('/gen/lines','rb').read(7)))").unwrap();
    assert_eq!(python.stdout, b"8893 7\n");
    assert_eq!(sandbox.fs().read("/gen/lines").unwrap().len(), 8893);
    let request = runtime::agent::ReadFile { path: "/gen/lines".to_owned(), ..Default::default() };
    assert_eq!(sandbox.agent().read(&request).unwrap().total_lines, Some(1000));
}

#[test]
fn each_open_generates_once_and_a_descriptor_keeps_its_content() {
    let (provider, count) = counting();
    let sandbox = builder().dynamic("/n", provider).open().unwrap();
    check(&sandbox, "exec 5< /n; cat /n; read -u 5 line; echo $line; ls -l /n | cut -d' ' -f5", "call 2\ncall 1\n7\n");
    assert_eq!(count.load(Ordering::Relaxed), 2);
    assert_eq!(sandbox.fs().read("/n").unwrap(), b"call 3\n");
    check(
        &sandbox,
        "echo x > /n; rm /n; mv /n /m",
        "bash: line 1: /n: Read-only file system\nrm: cannot remove '/n': Device or resource busy\nmv: cannot move '/n' to '/m': Device or resource busy\n",
    );
}

#[test]
fn a_generated_directory_shows_what_its_function_returns() {
    let tree = Provider::directory(|context| {
        let later = Provider::file(|context| Ok(context.path().as_bytes().to_vec()));
        let run = format!("{}\n", context.run().is_some());
        Ok(ProvidedNode::directory([
            ("run", ProvidedNode::file(run)),
            ("users", ProvidedNode::directory([("1", ProvidedNode::file("{}\n")), ("later", ProvidedNode::later(later))])),
        ]))
    });
    let sandbox =
        builder().mount(Mount::dynamic("/d", tree.clone())).mount(Mount::dynamic("/w", tree).writable()).open().unwrap();
    check(
        &sandbox,
        "find /d | sort; cat /d/run /d/users/*",
        "/d\n/d/run\n/d/users\n/d/users/1\n/d/users/later\ntrue\n{}\n/d/users/later",
    );
    check(
        &sandbox,
        "echo more >> /w/users/1; echo all > /w/users/later; rm /w/run; cat /w/users/*; ls /w",
        "{}\nmore\nall\nusers\n",
    );
    check(&sandbox, "cat /d/users/1; cat /d/nope", "{}\ncat: /d/nope: No such file or directory\n");
    assert_eq!(sandbox.fs().read("/d/run").unwrap(), b"false\n");
}

// T-SRC-02.
#[test]
fn an_error_of_a_function_is_an_io_error_with_its_message() {
    let sandbox = builder().dynamic("/bad", Provider::file(|_| Err("no such user".to_owned()))).open().unwrap();
    let output = sandbox.bash("cat /bad; echo $?").unwrap();
    assert_eq!(output.stdout, b"1\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "cat: /bad: Input/output error\nsandlite: /bad: no such user\n");
    let recorded = sandbox.history_run(output.run).unwrap().unwrap();
    assert!(String::from_utf8_lossy(&recorded.stderr).contains("no such user"));
    let error = sandbox.fs().read("/bad").unwrap_err();
    assert_eq!((error.to_string().as_str(), error.fs_error()), ("cannot read `/bad`: no such user", Some(FsError::Io)));
    assert!(sandbox.history(1).unwrap()[0].error.as_deref().is_some_and(|error| error.contains("no such user")));
}

// T-SRC-02.
#[test]
fn the_message_of_a_function_is_in_the_error_of_every_operation() {
    let sandbox = builder().dynamic("/bad", Provider::directory(|_| Err("no such user".to_owned()))).open().unwrap();
    let fs = sandbox.fs();
    let check = |error: Error| assert_eq!(error.to_string(), "cannot read `/bad`: no such user");
    check(fs.list("/bad").unwrap_err());
    check(fs.walk("/bad").unwrap_err());
    check(fs.walk("/").unwrap_err());
}

// As with `find`, which reports what it cannot read and continues.
#[test]
fn a_function_that_fails_does_not_end_a_search_of_everything_above_it() {
    let large = Provider::file(|_| Ok(vec![b'x'; 65 << 20]));
    let sandbox = builder()
        .dynamic("/top/bad", Provider::directory(|_| Err("no such user".to_owned())))
        .dynamic("/top/large", large)
        .dynamic("/top/silent", Provider::file(|_| Err("no answer".to_owned())))
        .file("/top/a/found", "needle\n")
        .file("/top/z", "needle\n")
        .open()
        .unwrap();
    let output = sandbox.bash("find /top -name '[fz]*' | sort; echo ${PIPESTATUS[0]}").unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "/top/a/found\n/top/z\n1\n");
    let note = "cannot read `/top/bad`: no such user";
    let try_to = |name: &str, arguments: Value| find(name).unwrap().run(&Context::new(sandbox.clone()), arguments);
    let act = |name: &str, arguments: Value| -> Answer {
        let answer = try_to(name, arguments);
        assert!(!answer.is_error, "{name}: {}", answer.text);
        answer
    };
    let top = || json!({ "path": "/top" });
    let glob = act("glob", json!({ "path": "/top", "pattern": "**/[fz]*" }));
    assert_eq!(glob.data["paths"], json!(["/top/a/found", "/top/z"]));
    assert_eq!(glob.text, format!("/top/a/found\n/top/z\n[{note}]"));
    let grep = act("grep", json!({ "path": "/top", "pattern": "needle" }));
    let notes = ["1 file larger than 64 MB not searched: use `bash` with grep", note, "cannot read `/top/silent`: no answer"];
    assert_eq!((grep.data["matches"].as_array().unwrap().len(), &grep.data["notes"]), (2, &json!(notes)));
    let list = act("list_files", json!({ "path": "/top", "depth": 2 }));
    assert_eq!((list.data["entries"].as_array().unwrap().len(), &list.data["notes"]), (6, &json!([note])));
    let found = act("find_files", json!({ "path": "/top", "name": "found" }));
    assert_eq!(found.text, format!("/top/a/found\n[{note}]"));
    assert_eq!(found.data["notes"], json!([note]));
    assert!(act("tree", top()).text.ends_with(&format!("\n\n2 directories, 4 files\n[{note}]")));
    let usage = act("disk_usage", top());
    assert_eq!((&usage.data["files"], &usage.data["notes"]), (&json!(4), &json!([note])));
    let page = sandbox.fs().page(None).unwrap();
    let paths: Vec<&str> = page.files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/top/a/found", "/top/large", "/top/silent", "/top/z"]);
    assert_eq!(page.notes, [note]);
    // A search of it alone is an error, and so is a copy of it.
    for (name, arguments) in [
        ("find_files", json!({ "path": "/top/bad" })),
        ("glob", json!({ "path": "/top/bad", "pattern": "*" })),
        ("grep", json!({ "path": "/top/silent", "pattern": "x" })),
        ("copy_files", json!({ "from": "/top", "to": "/copy", "recursive": true })),
    ] {
        let answer = try_to(name, arguments);
        assert!(answer.is_error, "{name}: {}", answer.text);
    }
}

// T-SRC-02.
#[test]
fn a_slow_function_ends_at_the_deadline_and_with_its_process() {
    let slow = Provider::file(|context| {
        while !context.is_over() {
            std::thread::park_timeout(Duration::from_millis(2));
        }
        Err("nobody waited".to_owned())
    });
    let sandbox = builder().dynamic("/slow", slow).open().unwrap();
    let began = Instant::now();
    let tight = Overrides { wall: Some(WallTime(Duration::from_millis(300))), ..Overrides::default() };
    let output = sandbox.run(Command::bash("cat /slow").limits(tight)).unwrap();
    assert!(output.status.limit().is_some(), "{:?}", output.status);
    assert!(began.elapsed() < Duration::from_secs(5));
    // A process that is killed does not wait for the function, and the rest of the command continues.
    check(&sandbox, "timeout 0.1 cat /slow; echo $?", "124\nsandlite: /slow: the command ended before the function did\n");
}

// T-SRC-02.
#[test]
fn a_function_that_calls_its_own_sandbox_is_refused_at_once() {
    let place: Arc<std::sync::OnceLock<Sandbox>> = Arc::default();
    let found = Arc::clone(&place);
    let calls_back = Provider::file(move |context| {
        let sandbox = found.get().ok_or("no sandbox")?;
        let said = |error: Error| error.to_string();
        let mut all = vec![
            sandbox.fs().write("/x", "1").map_err(said).unwrap_err(),
            sandbox.bash("echo hi").map_err(said).unwrap_err(),
            sandbox.fs().read(context.path()).map_err(said).unwrap_err(),
        ];
        // Committed files, and those of the running command, can be read.
        all.push(String::from_utf8(sandbox.fs().read("/plain").map_err(said)?).unwrap());
        if let Some(files) = context.files() {
            all.push(String::from_utf8(files.read("/tmp/new").map_err(said)?).unwrap());
        }
        Ok(all.join("\n").into())
    });
    let sandbox = builder().dynamic("/back", calls_back).file("/plain", "plain").open().unwrap();
    let _ = place.set(sandbox.clone());
    let began = Instant::now();
    let refused = "a function that generates files cannot run or change anything in the sandbox that waits for it";
    let expected =
        format!("{refused}\n{refused}\ncannot read `/back`: a function cannot read the path that it is generating\nplain");
    check(&sandbox, "echo run > /tmp/new; cat /back", &format!("{expected}\nrun\n"));
    assert_eq!(String::from_utf8(sandbox.fs().read("/back").unwrap()).unwrap(), expected);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn mounts_of_functions_can_be_added_and_removed() {
    let (provider, _) = counting();
    let sandbox = builder().open().unwrap();
    let with = sandbox.with_mount(Mount::dynamic("/srv/n", provider.clone())).unwrap();
    check(&with, "cat /srv/n", "call 1\n");
    let twice = with.with_mount(Mount::dynamic("/srv/n", provider));
    assert!(twice.is_err_and(|error| error.to_string().ends_with("`/srv/n` is mounted there")));
    let without = with.without_mount("/srv/n").unwrap().unwrap();
    check(&without, "cat /srv/n; wc -c < /srv/n", "0\n");
    assert!(without.without_mount("/srv/n").unwrap().is_none());
}

#[test]
fn an_update_keeps_changes_and_lists_conflicts() {
    let directory = tempfile::tempdir().unwrap();
    let (file, own) = (base(directory.path()), directory.path().join("own.db"));
    let in_base = |script: &str| assert!(builder().database(&file).open().unwrap().bash(script).unwrap().status.success());
    let open = || builder().database(&own).base(&file).open().unwrap();
    let sandbox = open();
    check(&sandbox, "cd /work; echo mine > a; echo mine > new; rm deep/b; rm -r deep/er; echo same > converged", "");
    in_base("cd /work; echo theirs > a; echo theirs > deep/b; echo other > other; echo same > converged");
    let before = sandbox.versions().log(None, None, None).unwrap().len();
    let refused = sandbox.update("/", None, None).unwrap_err();
    assert_eq!(refused.to_string(), "cannot update `/`: 2 paths were changed on both sides: `/work/a`, `/work/deep/b`");
    assert_eq!(sandbox.versions().log(None, None, None).unwrap().len(), before, "nothing is written");
    check(&sandbox, "cat /work/a; ls /work", "mine\na\nclosed\nconverged\ndeep\nnew\n");
    let ours = sandbox.fork().unwrap();
    let done = ours.update("/", None, Some(Side::Ours)).unwrap();
    assert_eq!((done.changes, done.conflicts.len(), done.to > done.from), (5, 2, true));
    check(&ours, "cd /work; cat a new other; ls deep", "mine\nmine\nother\nlink\n");
    let done = sandbox.update("/", None, Some(Side::Theirs)).unwrap();
    assert_eq!(done.conflicts, ["/work/a", "/work/deep/b"]);
    let expected = "theirs\nmine\nother\ntheirs\nb\nlink\n";
    check(&sandbox, "cd /work; cat a new other deep/b; ls deep", expected);
    drop(sandbox);
    check(&open(), "cd /work; cat a new other deep/b; ls deep", expected);
    // Without a conflict no choice is needed, and a sandbox on the newest version stays there.
    in_base("echo third > /work/other");
    let sandbox = open();
    check(&sandbox, "cat /work/other", "other\n");
    sandbox.update("/", None, None).unwrap();
    sandbox.update("/", None, None).unwrap();
    check(&sandbox, "cat /work/other", "third\n");
    let nothing = sandbox.update("/work", None, None).unwrap_err();
    assert_eq!(nothing.to_string(), "cannot update `/work`: no overlay over a database or a git repository is mounted there");
}
