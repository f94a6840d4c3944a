//! A policy counts everywhere alike: in commands, in the library and in the tools of agents. What it hides is not there.

use std::collections::BTreeSet;

use runtime::actions::{Context, actions};
use runtime::{Builder, Command, Error, Mount, Policy, Sandbox, Tool};
use serde_json::{Value, json};

use super::host;

fn builder() -> Builder {
    Sandbox::builder().host(host())
}

fn policy(text: &str) -> Policy {
    Policy::parse(text).unwrap()
}

fn rules(rules: &[(&str, &str)]) -> Policy {
    policy(
        &rules.iter().map(|(path, access)| format!("[[rule]]\npath = \"{path}\"\naccess = \"{access}\"\n")).collect::<String>(),
    )
}

/// A rule for `/zone`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    None,
    Write,
    Append,
    Read,
    Hidden,
    /// It has a label that the view lacks.
    Unlabelled,
    /// It has a label that the view has.
    Labelled,
}

const CASES: [Case; 7] = [Case::None, Case::Write, Case::Append, Case::Read, Case::Hidden, Case::Unlabelled, Case::Labelled];

impl Case {
    fn is_gone(self) -> bool {
        matches!(self, Self::Hidden | Self::Unlabelled)
    }

    fn bind(self, sandbox: &Sandbox) -> Sandbox {
        let access = match self {
            Self::None => return sandbox.clone(),
            Self::Write => "access = \"write\"",
            Self::Append => "access = \"append\"",
            Self::Read => "access = \"read\"",
            Self::Hidden => "access = \"hidden\"",
            Self::Unlabelled | Self::Labelled => "label = \"pii\"",
        };
        let bound = sandbox.with_policy(policy(&format!("[[rule]]\npath = \"/zone\"\n{access}"))).unwrap();
        match self {
            Self::Unlabelled => bound.view("ann", ["other"]).unwrap(),
            Self::Labelled => bound.view("ann", ["pii"]).unwrap(),
            _ => bound,
        }
    }

    /// A letter of a list of those that are allowed something.
    fn letter(self) -> char {
        match self {
            Self::None => 'n',
            Self::Write => 'w',
            Self::Append => 'a',
            Self::Read => 'r',
            Self::Labelled => 'l',
            Self::Hidden | Self::Unlabelled => '-',
        }
    }
}

fn zone() -> Sandbox {
    builder()
        .file("/zone/f", "one\n")
        .file("/zone/other", "other\n")
        .file("/zone/full/g", "deep\n")
        .file("/out/o", "outside\n")
        .open()
        .inspect(|sandbox| sandbox.fs().create_dir_all("/zone/empty").unwrap())
        .unwrap()
}

/// Every operation on files as a command does it: its bash, its Python, and who may.
const OPERATIONS: &[(&str, &str, &str, &str)] = &[
    ("read", "cat /zone/f", "open('/zone/f').read()", "nwarl"),
    ("read at", "tail -c 2 /zone/f", "os.pread(os.open('/zone/f', os.O_RDONLY), 2, 1)", "nwarl"),
    ("list", "ls /zone", "os.listdir('/zone')", "nwarl"),
    ("scan", "ls -la /zone/full", "list(os.scandir('/zone/full'))", "nwarl"),
    ("stat", "stat /zone/f", "os.stat('/zone/f')", "nwarl"),
    ("lstat", "stat /zone", "os.lstat('/zone')", "nwarl"),
    ("enter", "cd /zone/full", "os.chdir('/zone/full')", "nwarl"),
    ("find", "find /zone -name g", "os.stat('/zone/full/g')", "nwarl"),
    ("count", "du /zone", "os.stat('/zone/full')", "nwarl"),
    ("pack", "tar cf /out/x.tar /zone", "open('/zone/full/g').close()", "nwarl"),
    ("append", "echo x >> /zone/f", "open('/zone/f', 'a').write('x')", "nwal"),
    ("create", "echo x > /zone/new", "open('/zone/new', 'w').write('x')", "nwal"),
    ("create exclusively", "set -C; echo x > /zone/new", "open('/zone/new', 'x').write('x')", "nwal"),
    ("mkdir", "mkdir /zone/new", "os.mkdir('/zone/new')", "nwal"),
    ("symlink", "ln -s /out/o /zone/new", "os.symlink('/out/o', '/zone/new')", "nwal"),
    ("mkfifo", "mkfifo /zone/new", "subprocess.run(['mkfifo', '/zone/new'], check=True)", "nwal"),
    ("copy in", "cp /out/o /zone/new", "shutil.copyfile('/out/o', '/zone/new')", "nwal"),
    ("overwrite", "echo x > /zone/f", "open('/zone/f', 'w').write('x')", "nwl"),
    ("overwrite in place", "exec 3<>/zone/f; echo x >&3", "os.pwrite(os.open('/zone/f', os.O_RDWR), b'x', 0)", "nwl"),
    ("overwrite by cp", "cp /out/o /zone/f", "shutil.copyfile('/out/o', '/zone/f')", "nwl"),
    ("truncate", "truncate -s 1 /zone/f", "os.truncate('/zone/f', 1)", "nwl"),
    ("extend", "truncate -s 99 /zone/f", "os.truncate('/zone/f', 99)", "nwl"),
    ("truncate a descriptor", ": > /zone/f", "os.ftruncate(os.open('/zone/f', os.O_RDWR), 1)", "nwl"),
    ("append and truncate", "truncate -s 0 /zone/f", "os.open('/zone/f', os.O_WRONLY | os.O_APPEND | os.O_TRUNC)", "nwl"),
    ("unlink", "rm -f /zone/f && [ ! -e /zone/f ] && [ -e /zone ]", "os.unlink('/zone/f')", "nwl"),
    ("rmdir", "rmdir /zone/empty", "os.rmdir('/zone/empty')", "nwl"),
    ("remove all", "rm -r /zone/full", "shutil.rmtree('/zone/full')", "nwl"),
    ("rename", "mv /zone/f /zone/new", "os.rename('/zone/f', '/zone/new')", "nwl"),
    ("rename over", "mv /zone/other /zone/f", "os.replace('/zone/other', '/zone/f')", "nwl"),
    ("rename a directory", "mv /zone/full /zone/new", "os.rename('/zone/full', '/zone/new')", "nwl"),
    ("rename all of it", "python3 -c 'import os; os.rename(\"/zone\", \"/new\")'", "os.rename('/zone', '/new')", "nw"),
    ("link", "ln /zone/f /zone/new", "os.link('/zone/f', '/zone/new')", "nwl"),
    ("link out", "ln /zone/f /out/new", "os.link('/zone/f', '/out/new')", "nw"),
    ("link in", "ln /out/o /zone/new", "os.link('/out/o', '/zone/new')", "nw"),
    ("rename out", "python3 -c 'import os; os.rename(\"/zone/f\", \"/out/new\")'", "os.rename('/zone/f', '/out/new')", "nw"),
    ("rename in", "python3 -c 'import os; os.rename(\"/out/o\", \"/zone/new\")'", "os.rename('/out/o', '/zone/new')", "nw"),
    ("rename in over", "python3 -c 'import os; os.replace(\"/out/o\", \"/zone/f\")'", "os.replace('/out/o', '/zone/f')", "nw"),
    ("chmod", "chmod 600 /zone/f", "os.chmod('/zone/f', 0o600)", "nwl"),
    ("chown", "chown 1000 /zone/f", "os.chown('/zone/f', 1000, 1000)", "nwl"),
    ("times", "touch -d @5 /zone/f", "os.utime('/zone/f', (1, 1))", "nwl"),
];

/// Everything below a directory with its content, as the owner sees it.
fn tree(sandbox: &Sandbox, top: &str) -> Vec<(String, u32, Vec<u8>)> {
    let fs = sandbox.fs();
    let walked = fs.walk(top).unwrap_or_default();
    walked
        .into_iter()
        .map(|found| {
            let content = if found.stat.is_file() { fs.read(&found.path).unwrap() } else { Vec::new() };
            (found.path, found.stat.mode, content)
        })
        .collect()
}

// T-POL-01, T-POL-02: each operation under each rule, in both languages.
#[test]
fn commands_can_do_only_what_the_rule_allows() {
    let owner = zone();
    for (name, bash, python, allowed) in OPERATIONS {
        for case in CASES {
            let python = format!("import os, shutil, subprocess\n{python}");
            for command in [Command::bash(*bash), Command::python(python)] {
                let fork = owner.fork().unwrap();
                let before = tree(&fork, "/zone");
                let output = case.bind(&fork).run(command).unwrap();
                let (is_allowed, stderr) =
                    (allowed.contains(case.letter()), String::from_utf8_lossy(&output.stderr).into_owned());
                assert_eq!(output.status.success(), is_allowed, "{name} under {case:?}: {stderr}");
                if !is_allowed {
                    assert_eq!(tree(&fork, "/zone"), before, "{name} under {case:?} changed something");
                }
                if case.is_gone() {
                    assert!(stderr.contains("No such file") || stderr.is_empty(), "{name} under {case:?}: {stderr}");
                    assert!(!stderr.contains("denied") && !stderr.contains("permitted"), "{name} under {case:?}: {stderr}");
                }
            }
        }
    }
}

// T-POL-03: a hidden path cannot be distinguished from a missing one.
#[test]
fn a_hidden_directory_looks_exactly_like_a_missing_one() {
    let hidden = Case::Hidden.bind(&zone());
    let missing = builder().file("/out/o", "outside\n").open().unwrap();
    let listing = "ls -la / | tail -n +2 | awk '{print $1, $NF}' | grep -v -e out -e tmp; find / -name f -o -name zone; \
                   echo /z* /*/f; du -a / | grep zone; cat /proc/self/mounts; python3 -c 'import os; print(sorted(os.listdir(\"/\")))'; \
                   grep -r one /zone; compgen -f /zo; test -e /zone; echo $?; ls / | wc -l";
    for script in OPERATIONS.iter().map(|(_, bash, _, _)| *bash).chain([listing]) {
        let run = |sandbox: &Sandbox| {
            let output = sandbox.fork().unwrap().bash(script).unwrap();
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stdout).into_owned(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        };
        assert_eq!(run(&hidden), run(&missing), "{script}");
    }
    // The link count of a directory would count its directories.
    assert_eq!(hidden.bash("stat -c %h / /out").unwrap().stdout, b"1\n1\n");
}

/// Calls of the library: what they do, and who may.
type Call = fn(&Sandbox) -> Result<(), Error>;

const CALLS: &[(&str, Call, &str)] = &[
    ("read", |sandbox| sandbox.fs().read("/zone/f").map(drop), "nwarl"),
    ("read_versioned", |sandbox| sandbox.fs().read_versioned("/zone/f").map(drop), "nwarl"),
    ("list", |sandbox| sandbox.fs().list("/zone").map(drop), "nwarl"),
    ("walk", |sandbox| sandbox.fs().walk("/zone").map(drop), "nwarl"),
    ("metadata", |sandbox| sandbox.fs().metadata("/zone/f").map(drop), "nwarl"),
    ("append", |sandbox| sandbox.fs().append("/zone/f", "x"), "nwal"),
    ("append to a new file", |sandbox| sandbox.fs().append("/zone/new", "x"), "nwal"),
    ("write a new file", |sandbox| sandbox.fs().write("/zone/new", "x"), "nwal"),
    ("create_dir_all", |sandbox| sandbox.fs().create_dir_all("/zone/new"), "nwal"),
    ("symlink", |sandbox| sandbox.fs().symlink("/out/o", "/zone/new"), "nwal"),
    ("copy in", |sandbox| sandbox.fs().copy("/out/o", "/zone/new").map(drop), "nwal"),
    ("write", |sandbox| sandbox.fs().write("/zone/f", "x"), "nwl"),
    ("copy over", |sandbox| sandbox.fs().copy("/out/o", "/zone/f").map(drop), "nwl"),
    ("remove_file", |sandbox| sandbox.fs().remove_file("/zone/f"), "nwl"),
    ("remove_dir", |sandbox| sandbox.fs().remove_dir("/zone/empty"), "nwl"),
    ("remove_dir_all", |sandbox| sandbox.fs().remove_dir_all("/zone/full"), "nwl"),
    ("rename", |sandbox| sandbox.fs().rename("/zone/f", "/zone/new"), "nwl"),
    ("rename over", |sandbox| sandbox.fs().rename("/zone/other", "/zone/f"), "nwl"),
    ("rename out", |sandbox| sandbox.fs().rename("/zone/f", "/out/new"), "nw"),
    ("rename in", |sandbox| sandbox.fs().rename("/out/o", "/zone/new"), "nw"),
    ("hard_link", |sandbox| sandbox.fs().hard_link("/zone/f", "/zone/new"), "nwl"),
    ("hard_link out", |sandbox| sandbox.fs().hard_link("/zone/f", "/out/new"), "nw"),
    ("hard_link in", |sandbox| sandbox.fs().hard_link("/out/o", "/zone/new"), "nw"),
    ("set_permissions", |sandbox| sandbox.fs().set_permissions("/zone/f", 0o600), "nwl"),
    ("set_times", |sandbox| sandbox.fs().set_times("/zone/f", Some(1), Some(1)), "nwl"),
];

#[test]
fn the_library_can_do_only_what_the_rule_allows() {
    let owner = zone();
    for (name, call, allowed) in CALLS {
        for case in CASES {
            let fork = owner.fork().unwrap();
            let before = tree(&fork, "/zone");
            let done = call(&case.bind(&fork));
            assert_eq!(done.is_ok(), allowed.contains(case.letter()), "{name} under {case:?}: {done:?}");
            if done.is_err() {
                assert_eq!(tree(&fork, "/zone"), before, "{name} under {case:?} changed something");
            }
            // A library call creates the directories above a file: those cannot be made where something is hidden.
            let text = done.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!case.is_gone() || text.contains("no such file") || text.contains("denied"), "{name} under {case:?}: {text}");
        }
    }
}

/// Actions with their arguments, and who may.
fn actions_on_the_zone() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("read_file", json!({ "path": "/zone/f" }), "nwarl"),
        ("file_info", json!({ "path": "/zone/f" }), "nwarl"),
        ("list_files", json!({ "path": "/zone" }), "nwarl"),
        ("find_files", json!({ "path": "/zone" }), "nwarl"),
        ("disk_usage", json!({ "path": "/zone" }), "nwarl"),
        ("tree", json!({ "path": "/zone" }), "nwarl"),
        ("append_file", json!({ "path": "/zone/f", "content": "x" }), "nwal"),
        ("write_file", json!({ "path": "/zone/new", "content": "x" }), "nwal"),
        ("write_files", json!({ "files": [{ "path": "/zone/new", "content": "x" }] }), "nwal"),
        ("make_directory", json!({ "path": "/zone/new" }), "nwal"),
        ("copy_files", json!({ "from": "/out/o", "to": "/zone/new" }), "nwal"),
        ("write_file", json!({ "path": "/zone/f", "content": "x" }), "nwl"),
        ("edit_file", json!({ "path": "/zone/f", "edits": [{ "old": "one", "new": "two" }] }), "nwl"),
        ("move_file", json!({ "from": "/zone/f", "to": "/zone/new" }), "nwl"),
        ("move_file", json!({ "from": "/zone/other", "to": "/zone/f", "overwrite": true }), "nwl"),
        ("delete_file", json!({ "path": "/zone/f" }), "nwl"),
        ("delete_file", json!({ "path": "/zone/full", "recursive": true }), "nwl"),
    ]
}

fn act(sandbox: &Sandbox, name: &str, arguments: Value) -> (bool, String) {
    let action = actions().iter().find(|action| action.name == name).unwrap();
    let answer = action.run(&Context::new(sandbox.clone()), arguments);
    (!answer.is_error, answer.text.clone())
}

#[test]
fn the_tools_of_agents_can_do_only_what_the_rule_allows() {
    let owner = zone();
    for (name, arguments, allowed) in actions_on_the_zone() {
        for case in CASES {
            let fork = owner.fork().unwrap();
            let before = tree(&fork, "/zone");
            let (is_done, text) = act(&case.bind(&fork), name, arguments.clone());
            assert_eq!(is_done, allowed.contains(case.letter()), "{name} {arguments} under {case:?}: {text}");
            if !is_done {
                assert_eq!(tree(&fork, "/zone"), before, "{name} under {case:?} changed something");
            }
        }
    }
    for case in [Case::Hidden, Case::Unlabelled] {
        let bound = case.bind(&owner);
        for (name, arguments) in [
            ("glob", json!({ "pattern": "**/*" })),
            ("grep", json!({ "pattern": "on[e]|d[e]ep", "path": "/" })),
            ("find_files", json!({ "path": "/" })),
            ("tree", json!({ "path": "/" })),
            ("list_files", json!({ "path": "/", "depth": 5 })),
            ("log", json!({})),
            ("history", json!({})),
            ("diff", json!({ "from": "HEAD~1", "to": "HEAD" })),
        ] {
            let (_, text) = act(&bound, name, arguments);
            assert!(!text.contains("zone") && !text.contains("deep"), "{name} under {case:?}: {text}");
        }
    }
}

// T-POL-04: a name is not the file.
#[test]
fn a_hard_link_from_before_is_under_the_same_rule() {
    let owner = builder().file("/secret/key", "k3y").file("/log/l", "first\n").file("/free/f", "free").open().unwrap();
    owner.bash("ln /secret/key /free/key; ln /log/l /free/l; ln /free/f /free/g").unwrap();
    let bound = owner.with_policy(rules(&[("/secret", "hidden"), ("/log", "append")])).unwrap();
    let check = |script: &str, expected: &str| {
        let output = bound.fork().unwrap().bash(script).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{script}: {}", String::from_utf8_lossy(&output.stderr));
    };
    check("ls /free; cat /free/key; grep -r k3y /; find / -name key", "f\ng\nl\n");
    check("echo x > /free/l; cat /log/l", "first\n");
    check("echo more >> /free/l; cat /log/l", "first\nmore\n");
    check("rm -f /free/l; mv /free/l /free/m; cp /free/f /free/l; cat /log/l; ls /free", "first\nf\ng\nl\n");
    check("echo x > /free/g; cat /free/f; mv /free/g /free/h; ls /free", "x\nf\nh\nl\n");
    // A name that belongs to a hidden path is not reported as existing, and stays.
    check(
        "ln /free/f /free/key 2>/dev/null || echo no; mkdir /free/key 2>/dev/null || echo no; (echo x > /free/key) 2>/dev/null || echo no",
        "no\nno\nno\n",
    );
    assert_eq!(bound.fs().list("/free").unwrap().iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["f", "g", "l"]);
    assert_eq!(owner.fs().read("/free/key").unwrap(), b"k3y");
    // In a past version, too.
    owner.bash("rm /free/key").unwrap();
    assert!(!bound.at("HEAD~1").unwrap().fs().exists("/free/key").unwrap());
    assert!(owner.at("HEAD~1").unwrap().fs().exists("/free/key").unwrap());
}

// T-POL-05: moving a directory, or another one into its place, does not free its content from the rules.
#[test]
fn a_directory_does_not_leave_its_rules() {
    let owner = builder()
        .file("/work/secret/key", "k3y")
        .file("/work/log/l", "first\n")
        .file("/work/src/a", "a")
        .file("/work/src/.env", "token")
        .open()
        .unwrap();
    let bound = owner.with_policy(rules(&[("/work/secret", "hidden"), ("/work/log", "append"), ("/**/.env", "hidden")])).unwrap();
    let check = |script: &str, expected: &str| {
        let fork = bound.fork().unwrap();
        let output = fork.bash(script).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{script}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(owner.fs().read("/work/secret/key").unwrap(), b"k3y");
    };
    let rename = |from: &str, to: &str| {
        format!("python3 -c 'import os; os.rename(\"{from}\", \"{to}\")' 2>&1 | tail -n 1 | sed 's/\\[Errno [0-9]*\\] //'")
    };
    check(&rename("/work", "/moved"), "OSError: Cross-device link: '/work' -> '/moved'\n");
    check(&rename("/work/src", "/work/code"), "");
    check(&format!("{}; ls -a /work/code; cat /work/code/.env", rename("/work/src", "/work/code")), ".\n..\na\n");
    check(&rename("/work/log", "/work/old"), "PermissionError: Operation not permitted: '/work/log' -> '/work/old'\n");
    check(
        &format!("mkdir /work/s; {}", rename("/work/s", "/work/secret")),
        "PermissionError: Permission denied: '/work/s' -> '/work/secret'\n",
    );
    check("rm -r /work/src; ls -A /work/src; rmdir /work/src 2>&1", "rmdir: failed to remove '/work/src': Permission denied\n");
    check(
        "mkdir /work/secret 2>&1; mkdir /work/.env 2>&1; mkdir /work/src/.env 2>&1",
        "mkdir: cannot create directory ‘/work/secret’: Permission denied\nmkdir: cannot create directory ‘/work/.env’: Permission denied\nmkdir: cannot create directory ‘/work/src/.env’: Permission denied\n",
    );
    // `mv` copies where it cannot rename: hidden paths stay, and so do paths that may not be removed.
    check("mv /work /moved 2>/dev/null; find /moved -type f | sort; cat /work/log/l", "/moved/log/l\n/moved/src/a\nfirst\n");
}

// T-POL-02: existing bytes cannot be changed in any way.
#[test]
fn a_file_that_can_only_grow_keeps_its_bytes() {
    let owner = builder().file("/log/l", "first\n").open().unwrap();
    let bound = owner.with_policy(rules(&[("/log", "append")])).unwrap();
    let script = "import os
def trying(work):
    try: work()
    except OSError: pass
fd = os.open('/log/l', os.O_WRONLY | os.O_APPEND)
os.write(fd, b'second\\n')
trying(lambda: os.pwrite(fd, b'X', 0))
trying(lambda: (os.lseek(fd, 0, 0), os.set_blocking(fd, True), os.write(fd, b'third\\n')))
trying(lambda: os.ftruncate(fd, 0))
trying(lambda: os.open('/dev/fd/%d' % fd, os.O_WRONLY | os.O_TRUNC))
trying(lambda: os.write(os.open('/log/l', os.O_RDWR), b'X'))
new = os.open('/log/new', os.O_RDWR | os.O_CREAT)
os.write(new, b'abc'); os.lseek(new, 0, 0)
trying(lambda: os.write(new, b'X'))
os.lseek(new, 0, 2); os.write(new, b'def')
trying(lambda: os.replace('/log/new', '/log/l'))
os.symlink('/log/l', '/tmp/link')
trying(lambda: open('/tmp/link', 'w').write('X'))
trying(lambda: os.remove('/log/l'))
";
    let output = bound.python(script).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&owner.fs().read("/log/l").unwrap()), "first\nsecond\nthird\n");
    assert_eq!(String::from_utf8_lossy(&owner.fs().read("/log/new").unwrap()), "abcdef");
}

#[test]
fn an_allow_list_shows_only_the_parents_of_its_paths() {
    let owner = builder().file("/work/src/a", "a").file("/work/other", "b").file("/home/user/x", "c").open().unwrap();
    let bound = owner.with_policy(rules(&[("/**", "hidden"), ("/work/src", "write")])).unwrap();
    let output = bound
        .bash("cd /; ls -d work home tmp; ls /work; cat work/src/a; echo new > /work/src/b; echo x > /work/c; mkdir /tmp")
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "work\nsrc\na");
    assert!(owner.fs().exists("/work/src/b").unwrap() && !owner.fs().exists("/work/c").unwrap());
    let seen: BTreeSet<String> = bound.fs().walk("/").unwrap().into_iter().map(|found| found.path).collect();
    assert_eq!(seen, ["/", "//work", "//work/src", "//work/src/a", "//work/src/b"].map(|path| path.replace("//", "/")).into());
}

#[test]
fn mounted_directories_and_the_other_name_of_the_root_are_under_the_rules() {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in [("a", "a"), ("secret/key", "k3y"), ("sub/.env", "token"), ("sub/b", "b")] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let owner = builder()
        .mount(Mount::read_only(directory.path(), "/ro"))
        .mount(Mount::overlay(directory.path(), "/over"))
        .mount(Mount::read_only(directory.path(), "/hidden mount"))
        .root_alias("data")
        .cwd("/work")
        .file("/work/secret", "s")
        .open()
        .unwrap();
    let bound = owner
        .with_policy(rules(&[
            ("/*/secret", "hidden"),
            ("/over/sub", "append"),
            ("/**/.env", "hidden"),
            ("/hidden mount", "hidden"),
        ]))
        .unwrap();
    let check = |script: &str, expected: &str| {
        let output = bound.fork().unwrap().bash(script).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{script}: {}", String::from_utf8_lossy(&output.stderr));
    };
    check(
        "ls -A /ro /over /over/sub; cat /ro/secret/key /over/secret/key /ro/sub/.env /data/work/secret",
        "/over:\na\nsub\n\n/over/sub:\nb\n\n/ro:\na\nsub\n",
    );
    check(
        "echo x > /over/sub/b; echo more >> /over/sub/b; cat /over/sub/b; rm /over/sub/b; echo y > /over/a; cat /over/a",
        "bmore\ny\n",
    );
    check(
        "rm -r /over/sub; ls -A /over/sub; ls /data/work; cat /proc/mounts",
        "b\nsandlite / sandlite rw,relatime 0 0\nhost /ro host ro,relatime 0 0\noverlay /over overlay rw,relatime 0 0\n",
    );
}

// T-POL-06.
#[test]
fn denied_programs_do_not_exist() {
    let sandbox = builder().open().unwrap();
    let text = "denied_commands = [\"rm\", \"python3\"]";
    let bound = sandbox.with_policy(policy(text)).unwrap();
    let check = |sandbox: &Sandbox, script: &str, expected: &str| {
        let output = sandbox.bash(script).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{script}: {}", String::from_utf8_lossy(&output.stderr));
    };
    check(
        &bound,
        "touch /tmp/x; rm /tmp/x; echo $?; /bin/rm /tmp/x; echo $?; command -v rm; ls /bin | grep -c '^rm$'; ls /tmp",
        "127\n127\n0\nx\n",
    );
    check(&bound, "echo /tmp/x | xargs rm; env rm /tmp/x; echo $?; find /tmp/x -exec rm {} \\;; ls /tmp", "127\nx\n");
    check(
        &bound,
        "ln -s /bin/rm /tmp/r; /tmp/r /tmp/x; echo $?; printf '#!/bin/rm\\n' > /tmp/s; chmod +x /tmp/s; /tmp/s; ls /tmp | tr '\\n' ' '",
        "127\nr s x ",
    );
    let copied = sandbox.fork().unwrap();
    copied.bash("cp /bin/rm /tmp/copy").unwrap();
    check(
        &copied.with_policy(policy(text)).unwrap(),
        "touch /tmp/x; /tmp/copy /tmp/x; [ $? != 0 ] && ls /tmp | tr '\\n' ' '",
        "copy r s x ",
    );
    let only = sandbox.with_policy(policy("allowed_commands = [\"bash\", \"ls\"]")).unwrap();
    check(&only, "ls /bin; cat /etc/passwd; echo $?", "bash\nls\n127\n");
    check(&bound, "python -c 'print(1)'; echo $?", "127\n");
    assert!(bound.python("print(1)").is_err() && only.python("print(1)").is_err());
    // Two lists: what both allow.
    let both = only.with_policy(policy("denied_commands = [\"ls\"]")).unwrap();
    check(&both, "ls /; echo $?; echo /bin/*", "127\n/bin/bash\n");
}

// T-POL-06.
#[test]
fn a_denied_tool_cannot_be_called_in_any_way() {
    let tool = |name: &str| Tool::new(name, "Answers.", r#"{"type": "object"}"#, |_| Ok(json!(42)));
    let sandbox = builder().tool(tool("answer")).tool(tool("other")).open().unwrap();
    let bound = sandbox.with_policy(policy("denied_commands = [\"answer\"]")).unwrap();
    let run = |sandbox: &Sandbox, script: &str| String::from_utf8(sandbox.bash(script).unwrap().stdout).unwrap();
    let scripts = [
        "answer",
        "tool answer '{}'",
        "echo '{}' | tool answer",
        "python3 -c 'from sandlite import tools; print(tools.answer())'",
    ];
    for script in scripts {
        assert_eq!((run(&sandbox, script), run(&bound, script)), ("42\n".to_owned(), String::new()), "{script}");
    }
    assert_eq!(run(&bound, "tool other '{}'; tool --list; answer --help; tool answer --help"), "42\nother\tAnswers.\n");
}

// T-POL-08.
#[test]
fn a_policy_is_stored_with_the_sandbox_and_a_caller_can_only_tighten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let open = || builder().database(&path);
    let sandbox = open().file("/secret/key", "k3y").file("/notes", "n").open().unwrap();
    sandbox.set_policy(Some(rules(&[("/secret", "hidden"), ("/notes", "read")]))).unwrap();
    assert!(!sandbox.fs().exists("/secret").unwrap(), "it counts at once");
    assert!(sandbox.owner().unwrap().fs().exists("/secret/key").unwrap());
    assert!(matches!(sandbox.export(directory.path().join("out.db")), Err(Error::Invalid(_))));
    sandbox.owner().unwrap().export(directory.path().join("snapshot.db")).unwrap();
    drop(sandbox);
    let wider = open().policy(rules(&[("/secret", "write"), ("/notes", "append")])).open().unwrap();
    assert!(!wider.fs().exists("/secret").unwrap() && wider.fs().append("/notes", "x").is_err());
    let view = wider.view("ann", ["any"]).unwrap();
    assert!(
        view.owner().is_err() && view.set_policy(None).is_err() && view.with_policy(Policy::default()).unwrap().owner().is_err()
    );
    drop((wider, view));
    let imported = builder().import(directory.path().join("snapshot.db")).open().unwrap();
    assert!(!imported.fs().exists("/secret").unwrap() && imported.owner().unwrap().fs().exists("/secret/key").unwrap());
    let again = open().open().unwrap();
    assert_eq!(again.policy().unwrap().unwrap().rules.len(), 2);
    again.set_policy(None).unwrap();
    assert!(again.fs().exists("/secret/key").unwrap() && again.policy().unwrap().is_none());
    assert!(again.check().unwrap().is_empty());
}

// T-POL-07.
#[test]
fn a_view_sees_its_own_runs_and_sessions() {
    let owner = builder().file("/s/key", "k3y").open().unwrap();
    owner.set_policy(Some(policy("[[rule]]\npath = \"/s\"\nlabel = \"ops\""))).unwrap();
    let owner = owner.owner().unwrap();
    owner.bash("cat /s/key; echo changed > /s/key; echo open > /open").unwrap();
    owner.session("main").unwrap().bash("token=k3y").unwrap();
    owner.session("main").unwrap().python("token = 'k3y'").unwrap();
    let (ann, bob) = (owner.view("ann", ["ops"]).unwrap(), owner.view("bob", [""; 0]).unwrap());
    ann.bash("cat /s/key").unwrap();
    ann.fs().write("/s/by-ann", "x").unwrap();
    ann.kv().set("step", 1).unwrap();
    bob.bash("ls /; echo b > /by-bob").unwrap();
    assert!(bob.fs().read("/s/key").is_err());
    let commands = |sandbox: &Sandbox| sandbox.history(100).unwrap().into_iter().map(|run| run.command).collect::<Vec<_>>();
    assert_eq!(commands(&bob), ["read_file /s/key", "ls /; echo b > /by-bob"]);
    assert_eq!(commands(&ann), ["kv_set step", "write_file /s/by-ann", "cat /s/key"]);
    assert_eq!(commands(&owner.view("ann", [""; 0]).unwrap()), [""; 0], "with fewer labels");
    let all = owner.history(100).unwrap();
    assert!(all.len() > 6);
    for run in &all {
        let is_own = commands(&bob).contains(&run.command);
        assert_eq!(bob.history_run(run.id).unwrap().is_some(), is_own, "{}", run.command);
        assert!(is_own || bob.history_output(run.id, 100).unwrap()[0].0.is_empty());
    }
    let log: Vec<_> =
        bob.versions().log(None, None, None).unwrap().into_iter().map(|version| version.run.unwrap().command).collect();
    assert_eq!(log, ["ls /; echo b > /by-bob"]);
    let compared = bob.versions().compare("HEAD~3", "HEAD", &[]).unwrap();
    assert!(compared.paths().all(|path| !path.starts_with("/s")), "{:?}", compared.paths().collect::<Vec<_>>());
    assert!(bob.versions().undo(1).is_err() && bob.versions().prune(&runtime::Keep::default()).is_err());
    for view in [&ann, &bob] {
        let session = view.session("main").unwrap();
        assert_eq!(session.bash("echo [$token]").unwrap().stdout, b"[]\n");
        assert!(!session.python("print(token)").unwrap().status.success());
        session.bash(format!("token={}", view.principal().unwrap())).unwrap();
        assert_eq!(view.sessions().unwrap(), ["main"]);
    }
    assert_eq!(ann.session("main").unwrap().bash("echo [$token]").unwrap().stdout, b"[ann]\n");
    assert_eq!(owner.session("main").unwrap().bash("echo [$token]").unwrap().stdout, b"[k3y]\n");
    let whole = [bob.info().err(), bob.check().err(), bob.fork_to("/nowhere.db").err(), bob.export("/nowhere.db").err()];
    for refused in whole.into_iter().chain([bob.policy().err(), bob.fork().unwrap().policy().err()]) {
        assert!(refused.is_some_and(|error| error.to_string().ends_with("this view does not include the whole sandbox")));
    }
    // Changes that are hidden now are not listed any more.
    let later = ann.with_policy(rules(&[("/s", "hidden")])).unwrap();
    let written = later.history(100).unwrap().into_iter().find(|run| run.command == "write_file /s/by-ann").unwrap();
    assert_eq!(written.changes.as_deref(), Some(&json!([])));
}

#[test]
fn the_library_and_commands_agree_on_which_paths_exist() {
    let bound = Case::Hidden.bind(&zone());
    let error = bound.fs().read("/zone/f").unwrap_err();
    assert_eq!(error.to_string(), bound.fs().read("/none/f").unwrap_err().to_string().replace("/none", "/zone"));
    let Err(Error::Database(sqlite_fs_error)) = bound.fs().write("/zone/f", "x") else { panic!("it was written") };
    assert!(sqlite_fs_error.to_string().contains("denied"), "{sqlite_fs_error}");
}
