//! A session continues where its last call ended.

use runtime::{Command, Overrides, Sandbox};

use super::{host, sandbox};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn check(before: &str, ask: &str, expected: &str) {
    let session = sandbox().session("s").unwrap();
    session.bash(before).unwrap();
    let output = session.bash(ask).unwrap();
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), (expected, ""), "{before} | {ask}");
}

#[test]
fn a_session_keeps_the_state_of_its_shell() {
    check("mkdir -p /tmp/deep/er; cd /tmp/deep/er", "pwd; cd ..; pwd; echo $OLDPWD", "/tmp/deep/er\n/tmp/deep\n/tmp/deep/er\n");
    check(
        "x='a  b'; declare -i n=4; readonly fixed=1; export OUT=e",
        "n+=1; echo \"$x\" $n; env | grep ^OUT; declare -p fixed",
        "a  b 5\nOUT=e\ndeclare -r fixed=\"1\"\n",
    );
    check("list=(1 'two words' 3); declare -A map=([k]=v [l]=w)", "echo ${#list[@]} \"${list[1]}\" ${map[l]}", "3 two words w\n");
    check("f() { case $1 in (a) echo A;; *) echo other; esac; }", "f a; f b | tr a-z A-Z", "A\nOTHER\n");
    check("shopt -s expand_aliases; alias up='tr a-z A-Z'", "echo x | up", "X\n");
    check("set -o pipefail; shopt -s nullglob", "false | true; echo $? /none*", "1\n");
    check("umask 077", "umask; : > /tmp/file; stat -c %a /tmp/file", "0077\n600\n");
    check("set -- one 'two three'", "echo $# \"$2\"", "2 two three\n");
    check("pushd /tmp > /dev/null; pushd / > /dev/null", "dirs", "/ /tmp ~\n");
    check("trap 'echo caught' USR1", "kill -USR1 $$; echo after", "caught\nafter\n");
    check("unset HOME", "echo ${HOME-none}", "none\n");
    check("(exit 3)", "echo $?", "3\n");
}

#[test]
fn exit_and_exec_end_the_call_and_not_the_session() {
    let session = sandbox().session("s").unwrap();
    assert_eq!(session.bash("x=1; exit 7; x=2").unwrap().status.code(), 7);
    assert_eq!(session.bash("echo $? $x").unwrap().stdout, b"7 1\n");
    assert_eq!(session.bash("y=1; f() { local y=2; exit; }; f").unwrap().status.code(), 0);
    assert_eq!(session.bash("echo $y; z=3; exec echo replaced").unwrap().stdout, b"1\nreplaced\n");
    assert_eq!(session.bash("w=4; exec bash -c 'v=5; exit 1'").unwrap().status.code(), 1);
    assert_eq!(session.bash("echo $z $w ${v-none}").unwrap().stdout, b"3 4 none\n");
    assert_eq!(session.bash("trap 'echo bye' EXIT").unwrap().stdout, b"bye\n");
    assert_eq!(session.bash("echo again; set -e; false; echo not reached").unwrap().stdout, b"again\n");
    assert_eq!(session.bash("set +e; false; echo on").unwrap().stdout, b"on\n");
}

#[test]
fn subshells_and_other_shells_do_not_change_the_session() {
    let session = sandbox().session("s").unwrap();
    session.bash("x=1; (x=2; cd /tmp); bash -c 'x=3'; echo y | { read -r x; }; x=4 true & wait").unwrap();
    assert_eq!(session.bash("echo $x; pwd").unwrap().stdout, b"1\n/home/user\n");
}

#[test]
fn a_call_that_reaches_a_limit_or_is_rolled_back_keeps_the_previous_state() {
    let session = sandbox().session("s").unwrap();
    session.bash("x=good").unwrap();
    let few = Overrides { commands: Some(5), ..Overrides::default() };
    let stopped = session.run(Command::bash("x=bad; for i in {1..9}; do :; done").limits(few)).unwrap();
    assert!(stopped.status.limit().is_some());
    let undone = session.run(Command::bash("x=bad; cd /tmp; false").rollback_on_failure()).unwrap();
    assert_eq!(undone.status.code(), 1);
    assert_eq!(session.bash("echo $x; pwd").unwrap().stdout, b"good\n/home/user\n");
}

#[test]
fn a_state_that_is_too_large_is_reported_and_discarded() {
    let small = Overrides { value: Some("4 KB".parse().unwrap()), ..Overrides::default() };
    let sandbox = Sandbox::builder().host(host()).limits(small).open().unwrap();
    let session = sandbox.session("s").unwrap();
    session.bash("x=kept").unwrap();
    let output = session.bash("x=lost; printf -v big %5000s").unwrap();
    assert!(text(&output.stderr).contains("cannot be kept"), "{output:?}");
    assert_eq!(session.bash("echo $x").unwrap().stdout, b"kept\n");
}

#[test]
fn options_of_a_call_apply_to_that_call() {
    let session = sandbox().session("s").unwrap();
    session.bash("A=old; cd /tmp; set -- x").unwrap();
    let command = Command::bash("echo $A $PWD $1").env("A", "new").cwd("/home/user").arg("name").arg("given");
    assert_eq!(session.run(command).unwrap().stdout, b"new /home/user given\n");
    assert_eq!(session.bash("echo $A").unwrap().stdout, b"new\n");
}

#[test]
fn sessions_are_apart_listed_and_removed() {
    let sandbox = sandbox();
    let (one, two) = (sandbox.session("one").unwrap(), sandbox.session("two").unwrap());
    one.bash("x=1").unwrap();
    two.bash("x=2").unwrap();
    assert_eq!(sandbox.bash("echo ${x-none}").unwrap().stdout, b"none\n");
    assert_eq!(one.bash("echo $x").unwrap().stdout, b"1\n");
    assert_eq!(sandbox.sessions().unwrap(), ["one", "two"]);
    assert!(two.remove().unwrap() && !two.remove().unwrap());
    assert_eq!(sandbox.sessions().unwrap(), ["one"]);
    assert_eq!(two.bash("echo ${x-none}").unwrap().stdout, b"none\n");
    assert!(sandbox.session("").is_err() && sandbox.session("a\nb").is_err() && sandbox.session("x".repeat(256)).is_err());
}

#[test]
fn a_snapshot_resumes_its_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let (file, snapshot) = (directory.path().join("a.db"), directory.path().join("b.db"));
    let first = Sandbox::builder().host(host()).database(&file).open().unwrap();
    first.session("s").unwrap().bash("cd /tmp; x=carried; f() { echo \"f $1\"; }").unwrap();
    first.export(&snapshot).unwrap();
    drop(first);
    for builder in [Sandbox::builder().database(&file), Sandbox::builder().import(&snapshot)] {
        let sandbox = builder.host(host()).open().unwrap();
        assert_eq!(sandbox.session("s").unwrap().bash("f $x; pwd").unwrap().stdout, b"f carried\n/tmp\n");
    }
}
