//! Nothing passes from one run to the next, nor to the outside.

use runtime::Command;

use super::{check, check_error, python, sandbox, texts};

#[test]
fn every_run_starts_afresh() {
    let sandbox = sandbox();
    sandbox.python("import sys, json, builtins; json.canary = builtins.canary = 1; sys.path.append('canary')").unwrap();
    let output = sandbox
        .python("import sys, json, builtins; print(hasattr(json, 'canary'), hasattr(builtins, 'canary'), 'canary' in sys.path)");
    assert_eq!(texts(&output.unwrap()).0, "False False False\n");
}

#[test]
fn randomness_is_fresh_in_each_run() {
    for code in [
        "import random; print(random.random())",
        "import random; random.seed(); print(random.getrandbits(64))",
        "import random; print(random.Random().random(), random.SystemRandom().random())",
        "import os; print(os.urandom(8))",
        "import secrets; print(secrets.token_hex(8))",
        "import uuid; print(uuid.uuid4())",
        "import tempfile; print(tempfile.mkdtemp())",
    ] {
        let (first, second) = (python(code).stdout, python(code).stdout);
        assert!(!first.is_empty() && first != second, "{code}");
    }
}

#[test]
fn a_deterministic_run_repeats_itself() {
    let code = "import os, random, secrets, tempfile, time, uuid\n\
                print(random.random(), os.urandom(8), secrets.token_hex(8), uuid.uuid4(), uuid.uuid1(), tempfile.mkdtemp())\n\
                print(time.time(), {'a', 'b', 'c'}, hash('a'))";
    let run = |seed| sandbox().run(Command::python(code).deterministic(seed)).unwrap().stdout;
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn there_is_no_network() {
    for code in [
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        "import urllib.request; urllib.request.urlopen('http://example.com/')",
        "import _bashkit; _bashkit.http('GET', 'http://example.com/', [], b'', None)",
    ] {
        let output = python(code);
        assert_eq!(output.status.code(), 1, "{code}");
    }
    check_error(
        "import urllib.request; urllib.request.urlopen('http://example.com/')",
        "urllib.error.URLError: <urlopen error there is no network in the sandbox>",
    );
}

#[test]
fn the_host_does_not_show() {
    check("import os; print(os.listdir('/home'), os.getlogin(), os.uname().sysname, os.cpu_count())", "['user'] user Linux 1\n");
    check_error("open('/etc/shadow')", "FileNotFoundError: [Errno 44] No such file or directory: '/etc/shadow'");
}

#[test]
fn the_door_rejects_invalid_requests() {
    check(
        "import _bashkit\n\
         for name in ['', 'nothing', 'stat', 'spawn', 'exec', 'wait', 'dup', 'kill']:\n    \
             for body in [b'', b'x', b'\\xff' * 64, b'\\0' * 8]:\n        \
                 if (name, body[:1]) != ('kill', b'\\0'): print(_bashkit.http('sandlite', name, (), body, 0)[0] != 0, end='')\n",
        &"True".repeat(31),
    );
}
