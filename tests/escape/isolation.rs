//! T-ISO: a guest reads and writes nothing but its own sandbox.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use runtime::{Mount, Preset, Sandbox};

use super::{host, sandbox, survive, text};

#[test]
fn t_iso_02_no_path_leads_out_of_the_tree() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    fs::write(&secret, "host secret").unwrap();
    let secret = secret.to_str().unwrap();
    let up = "../".repeat(40);
    let script = format!(
        "cat {secret}; cat /..{secret}; cat {up}{secret}; cat ./{up}/{secret}//; ln -s {up}{secret} /tmp/l; cat /tmp/l
         ln -s / /tmp/root; cat /tmp/root/{up}{secret}; cat /proc/self/root{secret}; cat /proc/self/cwd/{up}{secret}
         cat /dev/fd/../../..{secret}; cd /tmp/root/..; cat .{secret}; : > {secret}; cat $'/tmp/a\\0b'
         a=/tmp/a b=/tmp/b; ln -s $b $a; ln -s $a $b; cat $a; echo end"
    );
    let output = survive(&script);
    assert!(!text(&output).contains("host secret"), "{}", text(&output));
    assert!(output.stdout.ends_with(b"end\n"));
    assert_eq!(fs::read(secret).unwrap(), b"host secret");
    let files = sandbox(Preset::Normal);
    for path in [secret, &format!("/..{secret}"), &format!("/tmp/{up}{secret}"), "", "relative/../..", "/\0"] {
        assert!(files.fs().read(path).is_err(), "{path:?}");
    }
}

#[test]
fn t_iso_03_nothing_outside_a_mounted_directory_is_reachable() {
    let directory = tempfile::tempdir().unwrap();
    let (inside, outside) = (directory.path().join("inside"), directory.path().join("outside"));
    fs::create_dir_all(inside.join("sub/.ssh")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "host secret").unwrap();
    fs::write(inside.join("sub/.ssh/id"), "host secret").unwrap();
    symlink(outside.join("secret"), inside.join("absolute")).unwrap();
    symlink("../outside/secret", inside.join("relative")).unwrap();
    symlink("../outside", inside.join("directory")).unwrap();
    symlink("/proc/self/environ", inside.join("environ")).unwrap();
    assert!(Command::new("mkfifo").arg(inside.join("fifo")).status().unwrap().success());
    let database = inside.join("agent.db");
    for mount in [Mount::read_only(&inside, "/m"), Mount::overlay(&inside, "/m")] {
        let sandbox = Sandbox::builder().host(host()).database(&database).mount(mount).env("ONLY", "this").open().unwrap();
        let script = "cd /m; cat absolute relative directory/secret ../outside/secret sub/../../outside/secret sub/.ssh/id
            cat fifo; cat agent.db agent.db-wal; ls -A . sub; tr '\\0' '\\n' < environ | grep -c ONLY; cat /m/../outside/secret
            echo x > absolute; echo x > directory/new; rm -rf directory/ ; ls /m/../outside; mv sub/../relative /tmp; cp -rL . /tmp/all";
        let output = sandbox.bash(script).unwrap();
        let seen = text(&output);
        assert!(!seen.contains("host secret") && !seen.contains("SQLite format"), "{seen}");
        for hidden in ["\nfifo\n", ".ssh\n", "agent.db\n"] {
            assert!(!seen.contains(hidden), "{hidden:?} shows: {seen}");
        }
        assert_eq!(fs::read(outside.join("secret")).unwrap(), b"host secret");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }
}

#[test]
fn t_iso_03_a_host_that_swaps_files_for_links_discloses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (inside, outside) = (directory.path().join("inside"), directory.path().join("outside"));
    fs::create_dir_all(inside.join("d")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "host secret").unwrap();
    fs::write(inside.join("d/f"), "public").unwrap();
    symlink(&outside, inside.join("link")).unwrap();
    symlink(outside.join("f"), inside.join("flink")).unwrap();
    let sandbox = Sandbox::builder().host(host()).mount(Mount::read_only(&inside, "/m")).open().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The directory and a link to elsewhere change places all the time.
            while !over.load(Ordering::Relaxed) {
                for (from, to) in [("d", "aside"), ("link", "d"), ("d", "link"), ("aside", "d")] {
                    let _ = fs::rename(inside.join(from), inside.join(to));
                }
            }
        });
        for _ in 0..60 {
            let output = sandbox.bash("for i in {1..50}; do cat /m/d/f; cat < /m/d/f; done 2>/dev/null").unwrap();
            let seen = text(&output);
            assert!(!seen.contains("host secret"), "{seen}");
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn t_iso_04_the_host_is_not_visible() {
    let output =
        survive("env | cut -d= -f1 | sort | tr '\\n' ' '; hostname; id -u; whoami; date +%Z; uname -n; tty; echo $$ $PPID");
    let seen = text(&output);
    assert!(seen.starts_with("HOME LANG LOGNAME PATH PWD "), "{seen}");
    assert!(seen.contains("sandlite\n1000\nuser\nUTC\nsandlite\nnot a tty\n1 0\n"), "{seen}");
    let real = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let seen = text(&survive("cat /proc/*/* /etc/* 2>/dev/null; ls -l /dev/fd/ /proc/self/fd; set"));
    assert!(!seen.contains(&format!(" {}", real.trim())) && !seen.contains("CARGO"), "{seen}");
}

#[test]
fn t_iso_05_there_is_no_network() {
    let output =
        survive("echo x > /dev/tcp/127.0.0.1/80; echo x > /dev/udp/127.0.0.1/53; exec 5<>/dev/tcp/127.0.0.1/22; echo end");
    assert!(text(&output).contains("end\n") || !output.status.success());
    let python = sandbox(Preset::Normal);
    for code in [
        "import socket; socket.create_connection(('127.0.0.1', 80), 1); print('reached')",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:80/', timeout=1); print('reached')",
        "import _bashkit; print('reached' if _bashkit.http('GET', 'http://127.0.0.1/', [], b'') else '')",
    ] {
        let output = python.python(code).unwrap();
        assert!(!output.status.success() && !output.stdout.starts_with(b"reached"), "{code}: {}", text(&output));
    }
}

// The terminal is that of `script`, which every Debian has.
#[test]
fn t_iso_07_a_terminal_is_not_driven_by_a_guest() {
    let command = format!("{} bash -c 'printf \"a\\033]0;owned\\007b\\033[2Jc\\302\\233d\"'", env!("CARGO_BIN_EXE_sandlite"));
    let output = Command::new("script").args(["--quiet", "--return", "--command", &command, "/dev/null"]).output().unwrap();
    assert!(
        !output.stdout.contains(&0x1b) && !output.stdout.windows(2).any(|pair| pair == [0xc2, 0x9b]),
        "{:?}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(output.stdout.starts_with(b"a"), "{:?}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn t_iso_08_errors_do_not_mention_the_host() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap().display().to_string();
    let mounted = directory.path().join("mounted");
    fs::create_dir(&mounted).unwrap();
    fs::write(mounted.join("unreadable"), "x").unwrap();
    let mount = Mount::overlay(&mounted, "/m");
    let sandbox = Sandbox::builder().host(host()).database(directory.path().join("agent.db")).mount(mount).open().unwrap();
    for script in [
        "cat /nope; ls /m/nope; cat /m; rm /m; mv /m /x; cd /m/unreadable; /m/unreadable; df; mount; cat /proc/mounts",
        "python3 -c 'import os, sys; print(sys.path, os.getcwd(), os.environ); open(\"/m/nope\")'",
        "set; env; realpath /m; readlink -f /m/unreadable; stat /m; find / -name '*.db*'",
    ] {
        let seen = text(&sandbox.bash(script).unwrap());
        assert!(!seen.contains(&place), "{seen}");
    }
    assert!(!format!("{:?}", sandbox.history(10).unwrap()).contains(&place));
}

#[test]
fn t_iso_09_python_has_no_way_out() {
    let sandbox = sandbox(Preset::Normal);
    for code in [
        "import ctypes; ctypes.CDLL(None); print('reached')",
        "import js; print('reached')",
        "import os; os.fork(); print('reached')",
        "import mmap; mmap.mmap(-1, 10); open('/dev/mem'); print('reached')",
        "import _posixsubprocess, os; os.execv('/usr/bin/env', ['env']); print('reached')",
        "import multiprocessing; multiprocessing.Process(target=print).start(); print('reached')",
        "print(open('/proc/1/environ', 'rb').read()); print('reached')",
        "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()\nprint('reached')",
    ] {
        let output = sandbox.python(code).unwrap();
        let reached = String::from_utf8_lossy(&output.stdout).contains("reached") || text(&output).contains("CARGO");
        assert!(!reached, "{code}: {}", text(&output));
    }
    assert_eq!(sandbox.python("print(6 * 7)").unwrap().stdout, b"42\n");
}
