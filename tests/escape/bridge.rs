//! Host commands: only what was granted, in a jail, on a copy; a hostile tree and a hostile command get nowhere.
//!
//! Where bubblewrap is missing or cannot make namespaces, nothing can be granted, and each test reports SKIPPED.

use std::path::Path;
use std::time::Duration;

use runtime::{Builder, ByteSize, Command, Error, LimitName, Mount, Output, Overrides, Policy, Sandbox, WallTime};

use super::host;
use super::skipped::skip;

fn builder() -> Builder {
    Sandbox::builder().host(host()).file("/work/file", "inside\n").cwd("/work")
}

/// A sandbox that may run the host's `dash`, which can try anything; none where there is no jail.
fn opened(builder: Builder) -> Option<Sandbox> {
    match builder.allow_host(["dash"]).open() {
        Ok(sandbox) => Some(sandbox),
        Err(Error::HostBridge { reason }) => {
            skip(&reason);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a script of the host's shell in the jail.
fn jailed(sandbox: &Sandbox, script: &str) -> Output {
    sandbox.bash(format!("cat > /tmp/script <<'EOF'\n{script}\nEOF\nhost dash -c \"$(cat /tmp/script)\"")).unwrap()
}

#[test]
fn t_brg_01_only_granted_programs_exist_and_run() {
    let none = builder().open().unwrap();
    assert_eq!(none.bash("dash -c true").unwrap().status.code(), 127);
    assert_eq!(none.bash("host dash -c true").unwrap().status.code(), 127);
    let Some(sandbox) = opened(builder()) else { return };
    assert_eq!(stdout(&sandbox.bash("ls /usr/local/bin; dash -c 'echo $((6 * 7))'").unwrap()), "dash\nhost\n42\n");
    for command in ["host cat file", "host /bin/cat file", "host ../bin/dash", "host /usr/bin/dash -c true"] {
        let output = sandbox.bash(command).unwrap();
        assert_eq!(output.status.code(), 126, "{command}: {}", stderr(&output));
    }
    assert_eq!(stderr(&sandbox.bash("host cat file").unwrap()), "host: the host command `cat` is not granted\n");
    let unknown = builder().allow_host(["no-such-program-here"]).open().map(drop).unwrap_err();
    assert!(
        unknown
            .to_string()
            .starts_with("cannot grant host commands: cannot grant `no-such-program-here`: `no-such-program-here` is not in"),
        "{unknown}"
    );
    assert!(builder().allow_host(["../bin/sh"]).open().is_err());
}

#[test]
fn t_pol_06_a_denied_host_program_is_not_started_by_another_program() {
    let Some(sandbox) = opened(builder()) else { return };
    let policy = |text: &str| sandbox.with_policy(Policy::parse(text).unwrap()).unwrap();
    for bound in [policy("denied_commands = [\"dash\"]"), policy("allowed_commands = [\"bash\", \"host\", \"echo\"]")] {
        assert_eq!(bound.bash("dash -c true").unwrap().status.code(), 127);
        let output = bound.bash("host dash -c true").unwrap();
        let expected = (126, "host: the host command `dash` is not granted\n".to_owned());
        assert_eq!((output.status.code(), stderr(&output)), expected);
    }
}

// T-POL-01, T-POL-02, T-POL-03: a host command changes only what its caller may change.
#[test]
fn changes_of_a_host_command_that_a_policy_forbids_are_reported_and_the_others_made() {
    let builder = builder().file("/work/fixed", "1\n").file("/work/log", "1\n").file("/work/secret/key", "k\n");
    let Some(sandbox) = opened(builder) else { return };
    let rules = [("fixed", "read"), ("log", "append"), ("secret", "hidden")];
    let rules: String =
        rules.iter().map(|(name, access)| format!("[[rule]]\npath = \"/work/{name}\"\naccess = \"{access}\"\n")).collect();
    let bound = sandbox.with_policy(Policy::parse(&rules).unwrap()).unwrap();
    let output =
        jailed(&bound, "ls; echo 2 > file; echo 2 > fixed; echo 2 > log; mkdir secret; echo 2 > secret/key; echo 2 > new");
    assert_eq!(output.status.code(), 125, "{output:?}");
    assert_eq!(stdout(&output), "file\nfixed\nlog\n");
    let mut refused: Vec<_> = stderr(&output).lines().map(str::to_owned).collect();
    refused.sort();
    assert!(refused.iter().all(|line| line.starts_with("host: ") || line.starts_with("dash: ")), "{refused:?}");
    for path in ["/work/fixed", "/work/log", "/work/secret"] {
        assert!(refused.iter().any(|line| line.contains(&format!("`{path}`"))), "{path}: {refused:?}");
    }
    let read = |path: &str| String::from_utf8(sandbox.fs().read(path).unwrap()).unwrap();
    let found = ["file", "new", "fixed", "log", "secret/key"].map(|name| read(&format!("/work/{name}")));
    assert_eq!(found, ["2\n", "2\n", "1\n", "1\n", "k\n"]);
}

// T-POL-03: a directory that cannot be replaced because of a file that is not seen in it does not discard the rest.
#[test]
fn a_directory_with_hidden_files_is_not_replaced_and_the_other_changes_are_made() {
    let Some(sandbox) = opened(builder().file("/work/dir/.env", "k\n").file("/work/tree/.env", "k\n")) else { return };
    let policy = Policy::parse("[[rule]]\npath = \"/**/.env\"\naccess = \"hidden\"\n").unwrap();
    let bound = sandbox.with_policy(policy).unwrap();
    let output = jailed(&bound, "rmdir dir tree; ln -s file dir; echo x > tree; echo 2 > zlast");
    assert_eq!(output.status.code(), 125, "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("`/work/dir`") && said.contains("`/work/tree`") && !said.contains(".env"), "{said}");
    let found = ["dir/.env", "tree/.env", "zlast"].map(|name| sandbox.fs().read(&format!("/work/{name}")).unwrap());
    assert_eq!(found, [b"k\n", b"k\n", b"2\n"]);
}

#[test]
fn a_host_command_works_on_a_copy_and_its_changes_are_part_of_the_run() {
    let Some(sandbox) = opened(builder().file("/work/sub/old", "old\n").file("/other/x", "x\n")) else { return };
    let script = "pwd; cat file; echo changed >> file; mkdir -p new/deep; echo n > new/deep/n; rm sub/old; rmdir sub; ln -s file link; chmod 755 file";
    let output = jailed(&sandbox, script);
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("/work\ninside\n", ""));
    let seen = sandbox.bash("cd /work; cat file new/deep/n link; test -x file && echo x; find . | sort").unwrap();
    assert_eq!(stdout(&seen), "inside\nchanged\nn\ninside\nchanged\nx\n.\n./file\n./link\n./new\n./new/deep\n./new/deep/n\n");
    // Another tree, standard input, the exit status, a pipeline.
    assert_eq!(stdout(&sandbox.bash("echo up | host -p /other dash -c 'pwd; ls; cat' | tr a-z A-Z").unwrap()), "/OTHER\nX\nUP\n");
    assert_eq!(sandbox.bash("dash -c 'exit 7'").unwrap().status.code(), 7);
    assert_eq!(stdout(&sandbox.bash("seq 100000 | dash -c cat | tail -n 1").unwrap()), "100000\n");
    let output = sandbox.run(Command::bash("dash -c 'echo gone > gone'; false").rollback_on_failure()).unwrap();
    assert_eq!((output.status.code(), sandbox.fs().exists("/work/gone").unwrap()), (1, false));
    let row = sandbox.history(50).unwrap().into_iter().rfind(|run| run.name == "host").unwrap();
    let result = row.result.unwrap();
    assert_eq!((row.exit_code, row.parent.is_some(), &result["changes"]["removed"]), (Some(0), true, &2.into()), "{result}");
    assert!(result["durationMs"].is_u64() && row.parameters.unwrap()["argv"][1] == "dash", "{result}");
}

#[test]
fn t_brg_02_arguments_are_never_parsed_by_a_shell() {
    let Some(sandbox) = opened(builder()) else { return };
    let output =
        sandbox.bash(r#"dash -c 'printf "%s\n" "$@"' x '; touch pwned' '$(touch pwned)' '--ro-bind' '-- ' "a'b" "#).unwrap();
    assert_eq!(stdout(&output), "; touch pwned\n$(touch pwned)\n--ro-bind\n-- \na'b\n");
    assert!(!sandbox.fs().exists("/work/pwned").unwrap());
    let output = sandbox
        .bash("host -p /nowhere dash -c true; host -p /usr dash -c true; host -p / dash -c true; host -p; host -x")
        .unwrap();
    let said = stderr(&output);
    assert_eq!(said.lines().filter(|line| line.starts_with("host: cannot lend `/")).count(), 3, "{said}");
    assert_eq!(said.lines().filter(|line| *line == "host: usage: host [-p PATH] COMMAND [ARG]…").count(), 2, "{said}");
}

#[test]
fn t_brg_02_variables_of_the_guest_count_after_the_limits() {
    let Some(sandbox) = opened(builder()) else { return };
    let output = sandbox.bash("LD_DEBUG=files ENV=/work/file BASH_ENV=/work/file host dash -c 'echo $LD_DEBUG'").unwrap();
    assert_eq!(stdout(&output), "files\n");
    // The loader of glibc lists the programs that it starts: the shell that sets limits is not among them.
    let said = stderr(&output);
    assert!(!said.contains("bin/bash") && !said.contains("bin/sh") && !said.contains("bin/env"), "{said}");
}

#[test]
fn t_brg_02_no_descriptor_of_ours_is_passed_on() {
    let Some(sandbox) = opened(builder()) else { return };
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty()).unwrap();
    rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).unwrap();
    // Its own three streams are pipes.
    let output = jailed(&sandbox, "ls -l /proc/$$/fd > /tmp/list; grep -c pipe: /tmp/list");
    assert_eq!(stdout(&output), "3\n", "{}", stderr(&output));
}

#[test]
fn t_brg_02_nothing_outside_of_the_tree_is_read_or_written() {
    let Some(sandbox) = opened(builder()) else { return };
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let place = outside.path().display();
    // Links of the sandbox lead to the host's files only where the jail shows some.
    sandbox.fs().symlink(&format!("{place}/secret"), "/work/out").unwrap();
    sandbox.fs().symlink("/etc/shadow", "/work/shadow").unwrap();
    let script = format!(
        "cat out shadow {place}/secret /etc/passwd /etc/hostname /root/.bashrc; ls /home /root /var /srv /run /sys; \
         echo x > out; echo x > /usr/x; echo x > /etc/x; echo x > {place}/new; ln /usr/bin/env hard; \
         mount -t tmpfs none /usr; mknod dev c 1 3; chroot / true; echo end"
    );
    let output = jailed(&sandbox, &script);
    assert_eq!(stdout(&output), "end\n", "{}", stderr(&output));
    let names = |path: &Path| std::fs::read_dir(path).unwrap().count();
    assert_eq!((names(outside.path()), std::fs::read(outside.path().join("secret")).unwrap().as_slice()), (1, &b"secret"[..]));
    assert!(!Path::new("/usr/x").exists() && !Path::new("/etc/x").exists());
    for made in ["hard", "dev"] {
        assert!(!sandbox.fs().exists(&format!("/work/{made}")).unwrap(), "{made}");
    }
}

#[test]
fn t_brg_02_leftovers_of_a_hostile_command_have_no_effect() {
    let Some(sandbox) = opened(builder().file("/work/dir/a", "a\n")) else { return };
    let script = "ln -s /etc/passwd abs; ln -s ../../../../../../etc/passwd up; ln -s loop loop; mkfifo pipe; echo s > suid; chmod 6777 suid; \
                  echo x > \"$(printf 'bad\\377name')\"; ln file second; rm -r dir; ln -s / dir; mkdir locked; echo l > locked/l; chmod 000 locked/l locked";
    let output = jailed(&sandbox, script);
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("dash: skipped `pipe`: not a file, directory or link\n"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    let fs = sandbox.fs();
    assert_eq!((fs.read_link("/work/abs").unwrap().as_str(), fs.read_link("/work/dir").unwrap().as_str()), ("/etc/passwd", "/"));
    assert_eq!(fs.metadata("/work/suid").unwrap().mode & 0o7777, 0o777);
    assert!(!fs.exists("/work/pipe").unwrap());
    // They lead to the sandbox's own files, and two names of one file are two files.
    let seen = sandbox.bash("cat abs up | sort -u | cut -d: -f1 | paste -sd,; cat loop; echo more >> file; cat second").unwrap();
    assert_eq!(stdout(&seen), "root,user\ninside\n");
    assert_eq!(fs.metadata("/work/locked/l").unwrap().mode & 0o777, 0);
    assert_eq!(sandbox.check().unwrap(), []);
}

#[test]
fn t_brg_06_no_secret_of_the_host_is_in_the_jail() {
    let Some(sandbox) = opened(builder()) else { return };
    let output = sandbox
        .bash("export MINE=1; dash -c 'echo $HOME $MINE; cat /proc/sys/kernel/hostname; id -u; env | cut -d= -f1'")
        .unwrap();
    let said = stdout(&output);
    let (start, names) = said.split_at(said.match_indices('\n').nth(2).unwrap().0 + 1);
    assert_eq!(start, "/tmp/home 1\nsandlite\n1000\n");
    let known = "HOME LANG LOGNAME PATH SHELL TERM USER PWD MINE TMPDIR OLDPWD SHLVL _";
    let unknown: Vec<&str> = names.lines().filter(|name| known.split(' ').all(|known| known != *name)).collect();
    assert_eq!(unknown, [""; 0], "variables that are not the sandbox's");
    let ours = std::env::vars().map(|(name, _)| name).find(|name| known.split(' ').all(|known| known != *name));
    assert!(ours.is_some_and(|ours| !names.contains(&ours)), "this program has others, and none gets in");
}

#[test]
fn t_iso_05_a_host_command_has_no_network() {
    let Some(sandbox) = opened(builder()) else { return };
    let output = sandbox.bash("dash -c 'tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route | tail -n +2'").unwrap();
    assert_eq!(stdout(&output).trim(), "lo");
}

// Processes of this machine whose command line has this text.
fn processes_with(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}

#[test]
fn t_dos_05_a_host_command_does_not_outlive_its_call() {
    let Some(sandbox) = opened(builder()) else { return };
    let output = sandbox.bash("dash -c '(sleep 987651; echo late > late) > /dev/null 2>&1 & echo started'").unwrap();
    assert_eq!((stdout(&output).as_str(), processes_with("987651")), ("started\n", 0));
    let limits = || Overrides { wall: Some(WallTime(Duration::from_secs(1))), ..Overrides::default() };
    let output = sandbox.run(Command::bash("dash -c 'echo x > made; sleep 987652'").limits(limits())).unwrap();
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall));
    assert_eq!((processes_with("987652"), sandbox.fs().exists("/work/made").unwrap()), (0, false));
    let output = sandbox.bash("dash -c 'exec sleep 987653' & sleep 0.3; kill $!; wait $!; echo $?").unwrap();
    assert_eq!((stdout(&output).as_str(), processes_with("987653")), ("143\n", 0));
    // It sees its own processes and can signal no others.
    let output = sandbox.bash("dash -c 'kill -9 -1; ls /proc | grep -c \"^[0-9]\"'; echo alive").unwrap();
    assert!(stdout(&output).ends_with("alive\n"));
}

#[test]
fn t_dos_07_a_host_command_writes_no_more_than_the_sandbox_may_hold() {
    let limits = Overrides { disk: Some(ByteSize(4 << 20)), file: Some(ByteSize(2 << 20)), ..Overrides::default() };
    let Some(sandbox) = opened(builder().limits(limits)) else { return };
    let output = sandbox.bash("dash -c 'head -c 3000000 /dev/zero > large; echo $?'; ls").unwrap();
    assert!(!stdout(&output).starts_with("0\n"), "the limit `file` ends it: {}", stdout(&output));
    let script = "i=0; while [ $i -lt 9 ]; do head -c 1000000 /dev/zero > f$i; i=$((i + 1)); done";
    let output = jailed(&sandbox, script);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (125, "host: the tree is larger than the sandbox allows\n"));
    assert!(!sandbox.fs().exists("/work/f0").unwrap(), "all of it or nothing");
    // One that keeps writing is stopped.
    let output = jailed(&sandbox, "i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i + 1)); done");
    assert_eq!(output.status.code(), 125, "{}", stderr(&output));
    assert!(stderr(&output).contains("wrote more than the sandbox allows"), "{}", stderr(&output));
}

// A mounted directory can be larger than any sandbox.
#[test]
fn t_dos_07_a_tree_is_measured_before_it_is_lent() {
    let directory = tempfile::tempdir().unwrap();
    // It has no bytes on this disk, but a copy of it would have.
    std::fs::File::create(directory.path().join("huge")).unwrap().set_len(8 << 30).unwrap();
    let limits = Overrides { wall: Some(WallTime(Duration::from_secs(3))), ..Overrides::default() };
    let mount = Mount::read_only(directory.path(), "/work/mounted");
    let Some(sandbox) = opened(builder().limits(limits).mount(mount)) else { return };
    let output = sandbox.bash("dash -c 'echo started'").unwrap();
    let expected = (125, String::new(), "dash: the tree is larger than the sandbox allows\n".to_owned());
    assert_eq!((output.status.code(), stdout(&output), stderr(&output)), expected);
}

#[test]
fn t_dos_04_a_fork_bomb_of_a_host_command_ends_with_its_limits() {
    let Some(sandbox) = opened(builder()) else { return };
    let limits = Overrides { wall: Some(WallTime(Duration::from_secs(2))), processes: Some(16), ..Overrides::default() };
    let output = sandbox.run(Command::bash("dash -c 'f() { f | f & }; f; sleep 987654' 2> /dev/null").limits(limits)).unwrap();
    assert!(!output.status.success());
    assert_eq!(processes_with("987654"), 0);
}

#[test]
fn a_deterministic_run_has_no_host_commands() {
    let Some(sandbox) = opened(builder()) else { return };
    let output = sandbox.run(Command::bash("dash -c true").deterministic(1)).unwrap();
    assert_eq!(stderr(&output), "dash: cannot run a host command in a deterministic run\n");
}
