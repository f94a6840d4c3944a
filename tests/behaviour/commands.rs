//! A command is bash, its output comes back, and a failure is a result.

use std::io::Read;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use runtime::{Command, ExitStatus, LimitName, Overrides, Sandbox, Stream, Tool, WallTime};

use super::{bash, bash_with, check, host, sandbox};

#[test]
fn two_utilities_joined_by_a_pipe_write_a_file() {
    let sandbox = sandbox();
    let output = sandbox.bash("echo hello | tr a-z A-Z > /greeting; cat /greeting").unwrap();
    assert_eq!(output.stdout, b"HELLO\n");
    assert_eq!(sandbox.fs().read("/greeting").unwrap(), b"HELLO\n");
}

#[test]
fn a_failing_command_is_a_result_with_its_code() {
    assert_eq!(bash("exit 3").status, ExitStatus::Exited(3));
    assert_eq!(bash("false").status.code(), 1);
}

#[test]
fn an_unknown_command_exits_with_127_and_bashs_message() {
    let output = bash("nonesuch");
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (127, "bash: line 1: nonesuch: command not found\n")
    );
}

// Programs that no sandbox can have are not found by `command -v`; starting one prints the reason.
#[test]
fn an_unsupported_program_reports_the_reason() {
    let output = bash("command -v curl; which git; type sudo; curl x");
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).as_ref(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        (127, "", "bash: line 1: type: sudo: not found\nbash: line 1: curl: not available in the sandbox: there is no network\n")
    );
}

#[test]
fn every_program_supports_help() {
    let output = bash(
        "for name in $(sandlite); do case $name in [ | true | false | test | sandlite) ;; *)
        /bin/$name --help > /tmp/help < /dev/null 2>&1 && [ -s /tmp/help ] || echo $name;; esac; done",
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[test]
fn stdin_reaches_the_command() {
    assert_eq!(bash_with("tr a-z A-Z", "shout").stdout, b"SHOUT");
}

#[test]
fn arguments_environment_and_directory_are_the_callers() {
    let command = Command::bash("echo $0 $1; echo $NAME; pwd").arg("zero").arg("one").env("NAME", "value").cwd("/tmp");
    assert_eq!(sandbox().run(command).unwrap().stdout, b"zero one\nvalue\n/tmp\n");
}

#[test]
fn output_arrives_as_it_is_written() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let command = Command::bash("echo one; echo two").on_output(runtime::Stream::Stdout, move |bytes| {
        let _ = sender.send(bytes.to_vec());
    });
    let output = sandbox().run(command).unwrap();
    assert_eq!(receiver.try_iter().flatten().collect::<Vec<u8>>(), output.stdout);
}

#[test]
fn bytes_that_are_not_utf8_pass_through() {
    assert_eq!(bash(r"printf '\377\000\200' | cat").stdout, [0xff, 0, 0x80]);
}

// T-ISO-04: environment, user and host name are made up.
#[test]
fn the_host_is_not_visible() {
    check("whoami; hostname; id -u; echo $HOME; date +%Z", "user\nsandlite\n1000\n/home/user\nUTC\n");
    let output = bash("env");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for name in text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name) {
        let known = ["HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "USER", "SHLVL", "_", "OLDPWD"];
        assert!(known.contains(&name), "`{name}` is in the environment");
    }
}

#[test]
fn a_command_starts_from_the_prepared_image() {
    // Without the image a shell fills its tables first, which takes more than 100 000.
    let fuel = sandbox().run(Command::bash(":").deterministic(1)).unwrap().usage.fuel;
    assert!(fuel < 80_000, "{fuel}");
}

#[test]
fn a_deterministic_run_repeats_to_the_byte() {
    let run = |script: &str, seed| sandbox().run(Command::bash(script).deterministic(seed)).unwrap();
    let script = "echo $RANDOM; date +%s%N; od -An -tx1 -N8 /dev/urandom";
    let (first, second) = (run(script, 7), run(script, 7));
    assert_eq!((&first.stdout, first.usage.fuel), (&second.stdout, second.usage.fuel));
    assert_ne!(first.stdout, run(script, 8).stdout);
    // Processes that run side by side print the same; how often each had to wait is up to the machine.
    let script = "head -c 8 /dev/urandom | od -An -tx1 | cat";
    assert_eq!(run(script, 7).stdout, run(script, 7).stdout);
}

#[test]
fn a_flag_ends_a_command_wherever_it_is() {
    let sandbox = sandbox();
    // Waiting, computing, and before it began.
    for (script, calls) in [("echo said; sleep 60", 10), ("echo said; python3 -c 'while True: pass'", 10), ("sleep 60", 0)] {
        let asked = std::sync::atomic::AtomicU32::new(0);
        let command =
            Command::bash(script).cancel_when(move || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= calls);
        let output = sandbox.run(command).unwrap();
        assert_eq!(output.status, ExitStatus::Signaled(9), "{script}");
    }
    let command = Command::bash("sleep 60");
    command.cancel().kill();
    assert_eq!(sandbox.run(command).unwrap().status, ExitStatus::Signaled(9));
    assert_eq!(sandbox.bash("echo next").unwrap().stdout, b"next\n");
}

#[test]
fn a_missing_working_directory_is_an_error_and_nothing_runs() {
    let sandbox = sandbox();
    sandbox.fs().write("/plain", "").unwrap();
    for (directory, reason) in
        [("/missing", "no such file or directory"), ("/plain", "not a directory"), ("/etc/passwd", "not a directory")]
    {
        for command in [Command::bash("touch /ran"), Command::python("open('/ran', 'w')")] {
            let error = sandbox.run(command.cwd(directory)).unwrap_err().to_string();
            assert_eq!(error, format!("invalid working directory `{directory}`: {reason}"));
        }
        let error = sandbox.session("s").unwrap().run(Command::bash("touch /ran").cwd(directory)).unwrap_err().to_string();
        assert_eq!(error, format!("invalid working directory `{directory}`: {reason}"));
    }
    assert!(!sandbox.fs().exists("/ran").unwrap());
    // Three rows for each directory, and the one of `exists`: a command that did not start was not interrupted.
    let rows = sandbox.history(4).unwrap();
    let refused = "invalid working directory `/etc/passwd`: not a directory";
    assert_eq!(rows[0].command, "exists /ran");
    for row in &rows[1..] {
        assert_eq!((row.status, row.exit_code, row.error.as_deref()), ("error", None, Some(refused)), "{}", row.command);
    }
    // A command may remove the directory that others start in by default.
    assert!(sandbox.bash("rm -rf ~").unwrap().status.success());
    assert_eq!(sandbox.bash("pwd").unwrap().stdout, b"/\n");
}

#[test]
fn a_working_directory_is_the_one_that_cd_would_show() {
    let sandbox = sandbox();
    assert!(sandbox.bash("mkdir sub").unwrap().status.success());
    for (directory, shown) in [("sub", "/home/user/sub"), (".", "/home/user"), ("/tmp/", "/tmp"), ("/tmp/.././/bin/..", "/")] {
        let output = sandbox.run(Command::bash("pwd").cwd(directory)).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{shown}\n"));
    }
    let error = sandbox.run(Command::bash("pwd").cwd("")).unwrap_err().to_string();
    assert_eq!(error, "invalid working directory ``: no such file or directory");
}

#[test]
fn rolling_back_on_failure_keeps_the_row_and_not_the_files() {
    let sandbox = sandbox();
    sandbox.run(Command::bash("echo x > /left; false").rollback_on_failure()).unwrap();
    assert_eq!(sandbox.history(1).unwrap()[0].exit_code, Some(1));
    assert!(!sandbox.fs().exists("/left").unwrap());
    sandbox.run(Command::bash("echo x > /left").rollback_on_failure()).unwrap();
    assert!(sandbox.fs().exists("/left").unwrap());
}

#[test]
fn the_list_of_programs_matches_the_guest() {
    let listed = include_str!("../../guests/programs.txt");
    let held = String::from_utf8(bash("sandlite").stdout).unwrap();
    assert_eq!(listed, held, "write `sandlite bash -c sandlite` to guests/programs.txt");
}

// A guest would see such a text cut, or a variable as another one.
#[test]
fn texts_with_zero_bytes_are_rejected() {
    let sandbox = sandbox();
    let refused = |command: Command| sandbox.run(command).unwrap_err().to_string();
    assert_eq!(refused(Command::bash("echo a\0b")), "invalid command: it contains a zero byte");
    assert_eq!(refused(Command::python("print(1)\0")), "invalid command: it contains a zero byte");
    assert_eq!(refused(Command::bash("true").arg("a\0")), "invalid command: it contains a zero byte");
    assert_eq!(refused(Command::bash("true").cwd("/tmp\0")), "invalid directory: it contains a zero byte");
    assert_eq!(refused(Command::bash("true").env("", "x")), "invalid environment variable ``: its name is empty");
    assert_eq!(refused(Command::bash("true").env("A=B", "x")), "invalid environment variable `A=B`: its name contains `=`");
    assert_eq!(refused(Command::bash("true").env("A", "\0")), "invalid environment variable `A`: it contains a zero byte");
    assert!(sandbox.python_in("s", Command::python("1\0")).is_err() && sandbox.session("s").unwrap().bash("a\0b").is_err());
    assert!(Sandbox::builder().host(host()).env("=", "x").open().is_err());
    assert_eq!(sandbox.bash("echo fine").unwrap().stdout, b"fine\n");
}

#[test]
fn a_tool_that_waits_learns_that_its_command_is_over() {
    let (ended, wait) = mpsc::channel::<()>();
    let (said, hear) = mpsc::channel();
    let wait = Mutex::new(wait);
    let ask = Tool::with_context("ask", "Asks a person.", "{}", move |_, context| {
        let before = context.is_over();
        let _ = wait.lock().unwrap().recv();
        said.send((before, context.is_over())).unwrap();
        Ok("too late".into())
    });
    let sandbox = Sandbox::builder().host(host()).tool(ask).open().unwrap();
    let limits = Overrides { wall: Some("300 ms".parse().unwrap()), ..Overrides::default() };
    let output = sandbox.run(Command::bash("tool ask '{}'").limits(limits)).unwrap();
    assert!(output.status.limit().is_some());
    drop(ended);
    assert_eq!(hear.recv(), Ok((false, true)));
}

#[test]
fn a_command_waits_for_a_reader_that_has_begun_and_for_no_other() {
    let (finished, has_finished) = mpsc::channel();
    let finished = Mutex::new(finished);
    let done = Tool::new("done", "The end.", "{}", move |_| {
        finished.lock().unwrap().send(()).unwrap();
        Ok(true.into())
    });
    let sandbox = Sandbox::builder().host(host()).tool(done).open().unwrap();
    let script = "head -c 1000000 /dev/zero; tool done {} > /dev/null";
    let mut child = sandbox.spawn(Command::bash(script)).unwrap();
    has_finished.recv_timeout(Duration::from_secs(20)).expect("nobody reads, so nobody is waited for");
    let mut first = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut first).unwrap();
    assert_eq!((first.len(), child.wait().unwrap().stdout.len()), (1_000_000, 1_000_000));

    let command = Command::bash(script);
    let mut stdout = command.output_of(Stream::Stdout);
    stdout.follow();
    let running = std::thread::spawn({
        let sandbox = sandbox.clone();
        move || sandbox.run(command).unwrap()
    });
    stdout.read_exact(&mut [0; 100]).unwrap();
    assert!(has_finished.recv_timeout(Duration::from_millis(300)).is_err(), "the command did not wait for its reader");
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert_eq!((rest.len(), running.join().unwrap().stdout.len()), (999_900, 1_000_000));
}

#[test]
fn a_command_that_waits_for_its_reader_can_be_killed_and_has_a_deadline() {
    let command = Command::bash("yes");
    let (stdout, cancel) = (command.output_of(Stream::Stdout), command.cancel());
    stdout.follow();
    let killed = std::thread::spawn(move || {
        while stdout.available().is_none() {
            std::thread::yield_now();
        }
        cancel.kill();
        stdout
    });
    assert_eq!(sandbox().run(command).unwrap().status, ExitStatus::Signaled(9));
    drop(killed.join().unwrap());

    let wall = Some(WallTime(Duration::from_millis(300)));
    let command = Command::bash("yes").limits(Overrides { wall, ..Overrides::default() });
    let stdout = command.output_of(Stream::Stdout);
    stdout.follow();
    let output = sandbox().run(command).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall));
    assert!(output.stdout.len() < 1 << 20, "{} bytes", output.stdout.len());
    drop(stdout);
}

#[test]
fn the_time_of_an_approval_has_a_separate_limit() {
    let ask = |longest: u64, taken: u64| {
        Tool::with_context("ask", "Asks.", "{}", move |_, context| {
            let pause = context.pause(Duration::from_millis(longest));
            // A person: nothing else can end the wait.
            let (_open, never) = mpsc::channel::<()>();
            let _ = never.recv_timeout(Duration::from_millis(taken));
            drop(pause);
            Ok(true.into())
        })
    };
    let wall = Some(WallTime(Duration::from_millis(300)));
    let run = |tool: Tool| {
        let sandbox = Sandbox::builder().host(host()).tool(tool).open().unwrap();
        sandbox.run(Command::bash("tool ask {}").limits(Overrides { wall, ..Overrides::default() })).unwrap()
    };
    let slow = run(ask(20_000, 500));
    assert_eq!((slow.stdout, slow.status), (b"true\n".to_vec(), ExitStatus::Exited(0)));
    let too_slow = run(ask(100, 2_000));
    let reached = too_slow.status.limit().expect("the pause has an end");
    assert_eq!((reached.limit, reached.used.as_str()), (LimitName::Wall, "100 ms of waiting for approval"));
    assert_eq!(reached.hint(), "decide about the call sooner, or allow more time for approval");
    assert!(too_slow.usage.wall < Duration::from_millis(1_500), "{:?}", too_slow.usage.wall);
}

#[test]
fn python_code_displays_values_and_pictures() {
    let code = "class P:\n def _repr_png_(self): return b'png'\nP()";
    let output = sandbox().run(Command::python(code).echo()).unwrap();
    let shown: Vec<(&str, &[u8])> = output.shown.iter().map(|shown| (shown.mime.as_str(), shown.data.as_slice())).collect();
    assert_eq!(shown.last(), Some(&("image/png", &b"png"[..])));
    let output = sandbox().run(Command::python("[1, 'a']").echo()).unwrap();
    let shown: Vec<(&str, &[u8])> = output.shown.iter().map(|shown| (shown.mime.as_str(), shown.data.as_slice())).collect();
    assert_eq!(shown, [("text/plain", &b"[1, 'a']"[..]), ("application/json", b"[1, \"a\"]")]);
    assert!(sandbox().run(Command::python("[1, 'a']")).unwrap().shown.is_empty());
}
