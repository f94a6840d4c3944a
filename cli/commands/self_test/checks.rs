//! The checks of `sandlite self-test`, in the order of the table.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use runtime::{ByteSize, Command, ErrorKind, Export, LimitName, Output, Overrides, Policy, Sandbox, WallTime};

use super::{Bench, Check, launcher};

/// Every check.
pub(super) static ALL: [Check; 15] = [
    Check { name: "files", promise: "files stay when a sandbox is closed and opened again", run: files },
    Check { name: "bash", promise: "bash runs pipelines and reports the exit status", run: bash },
    Check { name: "python", promise: "Python runs on the same files as bash", run: python },
    Check { name: "keys", promise: "the key-value store keeps its values", run: keys },
    Check { name: "memory", promise: "a command cannot exceed its memory", run: memory },
    Check { name: "output", promise: "a command cannot print more than allowed", run: output },
    Check { name: "disk", promise: "a command cannot store more than allowed", run: disk },
    Check { name: "fuel", promise: "an endless loop runs out of fuel", run: fuel },
    Check { name: "timeout", promise: "a command ends when its time is over", run: timeout },
    Check { name: "crash", promise: "a killed process loses only its own command", run: crash },
    Check { name: "history", promise: "every run is recorded with its output", run: history },
    Check { name: "versions", promise: "earlier versions can be restored", run: versions },
    Check { name: "snapshot", promise: "a snapshot contains everything and detects changes", run: snapshot },
    Check { name: "policy", promise: "a policy hides files from commands", run: policy },
    Check { name: "isolation", promise: "commands reach no host file, variable or network", run: isolation },
];

// Runs a command whose output must be exactly this.
fn prints(sandbox: &Sandbox, command: Command, expected: &str) -> anyhow::Result<()> {
    let output = sandbox.run(command)?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(stdout == expected, "printed {stdout:?} ({:?}, {stderr:?}), expected {expected:?}", output.status);
    Ok(())
}

fn ended_by(output: &Output, limit: LimitName) -> anyhow::Result<()> {
    let reached = output.status.limit().map(|reached| reached.limit);
    ensure!(reached == Some(limit), "ended with {:?}, expected the limit `{limit}`", output.status);
    Ok(())
}

fn files(bench: &Bench) -> anyhow::Result<()> {
    let path = bench.path("files.db");
    let sandbox = bench.builder().database(&path).open()?;
    sandbox.fs().write("/home/user/from-host", "one\n")?;
    prints(&sandbox, Command::bash("mkdir -p a/b && cat from-host > a/b/two && ln -s b/two a/link && cat a/link"), "one\n")?;
    drop(sandbox);
    let sandbox = bench.builder().database(&path).open()?;
    let found = sandbox.fs().read("/home/user/a/b/two")?;
    ensure!(found == b"one\n", "after opening it again, the file contains {found:?}");
    let broken = sandbox.check()?;
    ensure!(broken.is_empty(), "the database has {} problems", broken.len());
    Ok(())
}

fn bash(bench: &Bench) -> anyhow::Result<()> {
    let sandbox = bench.builder().open()?;
    prints(&sandbox, Command::bash("printf '%s\\n' pear fig apple | sort | head -n 1 | tr a-z A-Z"), "APPLE\n")?;
    let status = sandbox.bash("false || exit 3")?.status;
    ensure!(status.code() == 3, "`exit 3` ended with {status:?}");
    Ok(())
}

fn python(bench: &Bench) -> anyhow::Result<()> {
    let sandbox = bench.builder().open()?;
    prints(&sandbox, Command::bash("echo 6 7 > numbers"), "")?;
    prints(&sandbox, Command::python("a, b = map(int, open('numbers').read().split())\nprint(a * b)"), "42\n")?;
    prints(&sandbox, Command::bash("python3 -c 'import json; print(json.dumps([1]))' | cat"), "[1]\n")
}

fn keys(bench: &Bench) -> anyhow::Result<()> {
    let path = bench.path("keys.db");
    bench.builder().database(&path).open()?.kv().set("step", 3)?;
    let value = bench.builder().database(&path).open()?.kv().get("step")?;
    ensure!(value == Some(3.into()), "the value is {value:?}, expected 3");
    Ok(())
}

fn memory(bench: &Bench) -> anyhow::Result<()> {
    let sandbox = bench.limited(Overrides { memory: Some(ByteSize(128 << 20)), ..Overrides::default() })?;
    let output = sandbox.python("block = bytearray(512 << 20)\nprint(len(block))")?;
    ensure!(!output.status.success() && output.stdout.is_empty(), "512 MB were allocated although 128 MB are allowed");
    prints(&sandbox, Command::bash("echo alive"), "alive\n")
}

fn output(bench: &Bench) -> anyhow::Result<()> {
    let sandbox = bench.limited(Overrides { output: Some(ByteSize(1000)), ..Overrides::default() })?;
    let output = sandbox.bash("yes")?;
    ended_by(&output, LimitName::Output)?;
    ensure!(output.stdout.len() <= 1000, "{} bytes were printed although 1000 are allowed", output.stdout.len());
    Ok(())
}

fn disk(bench: &Bench) -> anyhow::Result<()> {
    let sandbox = bench.limited(Overrides { disk: Some(ByteSize(1 << 20)), ..Overrides::default() })?;
    let output = sandbox.bash("head -c 8M /dev/zero > big")?;
    ensure!(!output.status.success(), "8 MB were written although 1 MB is allowed");
    let size = sandbox.fs().metadata("/home/user/big").map(|stat| stat.size);
    ensure!(size.as_ref().is_ok_and(|size| *size <= 1 << 20), "the file has {size:?} bytes although 1 MB is allowed");
    Ok(())
}

fn fuel(bench: &Bench) -> anyhow::Result<()> {
    let sandbox = bench.limited(Overrides { compute: Some(200_000_000), ..Overrides::default() })?;
    ended_by(&sandbox.python("while True: pass")?, LimitName::Compute)
}

/// Much longer than the time limit of the check, and much shorter than its commands.
const SOON: Duration = Duration::from_secs(5);

fn timeout(bench: &Bench) -> anyhow::Result<()> {
    let sandbox = bench.limited(Overrides { wall: Some(WallTime(Duration::from_millis(200))), ..Overrides::default() })?;
    for command in [Command::bash("sleep 60"), Command::python("while True: pass")] {
        let begin = Instant::now();
        ended_by(&sandbox.run(command)?, LimitName::Wall)?;
        let took = begin.elapsed();
        ensure!(took < SOON, "the command ended after {took:?} although 200 ms are allowed");
    }
    Ok(())
}

fn crash(bench: &Bench) -> anyhow::Result<()> {
    let path = bench.path("crash.db");
    let sandbox = bench.builder().database(&path).open()?;
    prints(&sandbox, Command::bash("echo kept > before"), "")?;
    drop(sandbox);
    let mut process = launcher::command()?;
    process.arg("--db").arg(&path).args(["bash", "-c", "echo lost > during; echo started; sleep 60"]);
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = process.spawn().context("cannot start a second process of this program")?;
    let mut line = String::new();
    let read = child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
    child.kill().context("cannot kill the second process")?;
    child.wait().context("cannot wait for the second process")?;
    ensure!(matches!(read, Some(Ok(_))) && line == "started\n", "the second process printed {line:?}, expected \"started\\n\"");
    let sandbox = bench.builder().database(&path).open()?;
    let before = sandbox.fs().read("/home/user/before")?;
    ensure!(before == b"kept\n", "a file of the command before contains {before:?}");
    ensure!(!sandbox.fs().exists("/home/user/during")?, "a file of the killed command was kept");
    let broken = sandbox.check()?;
    ensure!(broken.is_empty(), "the database has {} problems", broken.len());
    prints(&sandbox, Command::bash("cat before"), "kept\n")
}

fn history(bench: &Bench) -> anyhow::Result<()> {
    let sandbox = bench.builder().open()?;
    let output = sandbox.bash("echo seen; exit 4")?;
    let run = sandbox.history_run(output.run)?.context("the run is not in the history")?;
    ensure!(run.stdout == b"seen\n" && run.exit_code == Some(4), "recorded {:?} with exit code {:?}", run.stdout, run.exit_code);
    Ok(())
}

fn versions(bench: &Bench) -> anyhow::Result<()> {
    let sandbox = bench.builder().open()?;
    prints(&sandbox, Command::bash("echo first > plan"), "")?;
    sandbox.versions().checkpoint("start", None)?;
    prints(&sandbox, Command::bash("echo second > plan; echo more > other"), "")?;
    prints(&sandbox.at("start")?, Command::bash("cat plan"), "first\n")?;
    prints(&sandbox, Command::bash("cat plan"), "second\n")?;
    sandbox.versions().restore("start", &[])?;
    prints(&sandbox, Command::bash("cat plan; ls"), "first\nplan\n")
}

fn snapshot(bench: &Bench) -> anyhow::Result<()> {
    let path = bench.path("snapshot.db");
    let sandbox = bench.builder().open()?;
    prints(&sandbox, Command::bash("echo here > file"), "")?;
    sandbox.export(&path)?;
    let digest = sandbox.digest(Export::default())?;
    let copy = bench.builder().import(&path).import_digest(digest).open()?;
    prints(&copy, Command::bash("cat file"), "here\n")?;
    ensure!(
        bench.builder().import(&path).import_digest("0".repeat(64)).open().is_err(),
        "a snapshot with another digest was accepted"
    );
    Ok(())
}

fn policy(bench: &Bench) -> anyhow::Result<()> {
    let policy = Policy::parse("[[rule]]\npath = \"/keys\"\naccess = \"hidden\"")?;
    let sandbox = bench.builder().policy(policy).file("/keys/id", "secret").open()?;
    prints(&sandbox, Command::bash("cat /keys/id 2> /dev/null || echo none"), "none\n")?;
    let kind = sandbox.fs().read("/keys/id").map_err(|error| error.kind());
    ensure!(kind == Err(ErrorKind::NotFound), "reading a hidden file returned {kind:?}");
    let secret = sandbox.owner()?.fs().read("/keys/id")?;
    ensure!(secret == b"secret", "the owner reads {secret:?}");
    Ok(())
}

/// Prints each way in which Python reaches outside; the arguments are a host path and a port.
const REACH: &str = "\
import socket, sys
path, port = sys.argv[1], int(sys.argv[2])
try:
    print('file', open(path).read())
except OSError:
    pass
try:
    socket.create_connection(('127.0.0.1', port), 1)
    print('network')
except (OSError, AttributeError):
    pass
";

fn isolation(bench: &Bench) -> anyhow::Result<()> {
    let canary = bench.path("canary");
    std::fs::write(&canary, "of the host").context("cannot write a file for the check")?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot listen on 127.0.0.1 for the check")?;
    let port = listener.local_addr()?.port();
    let sandbox = bench.builder().file("/home/user/reach.py", REACH).open()?;
    let quoted = format!("'{}'", canary.display().to_string().replace('\'', "'\\''"));
    prints(&sandbox, Command::bash(format!("python3 reach.py {quoted} {port}")), "")?;
    prints(&sandbox, Command::bash(format!("cat {quoted} /proc/1/root{quoted} 2> /dev/null")), "")?;
    prints(&sandbox, Command::bash(format!("(echo hello > /dev/tcp/127.0.0.1/{port}) 2> /dev/null && echo sent")), "")?;
    // The environment of a process cannot be changed safely, so a second process has the variable.
    let mut process = launcher::command()?;
    process.env("SELF_TEST_CANARY", "of the host").current_dir(bench.directory.path());
    process.args(["bash", "-c", "echo ${SELF_TEST_CANARY-unset}"]).stdin(Stdio::null());
    let found = process.output().context("cannot start a second process of this program")?;
    let printed = String::from_utf8_lossy(&found.stdout);
    ensure!(printed == "unset\n", "a variable of the host is {printed:?} in the sandbox");
    listener.set_nonblocking(true)?;
    ensure!(listener.accept().is_err(), "a command connected to a port of the host");
    Ok(())
}
