//! Limits hold, say which one they are, and keep the output so far.

use presets_of::{overrides, wall};
use runtime::{Command, ExitStatus, LimitName, Output};

use super::{bash, strict};

mod presets_of {
    //! Short ways to say a limit.

    use runtime::Overrides;

    pub fn wall(text: &str) -> Overrides {
        Overrides { wall: Some(text.parse().unwrap()), ..Overrides::default() }
    }

    pub fn overrides(change: impl FnOnce(&mut Overrides)) -> Overrides {
        let mut overrides = Overrides::default();
        change(&mut overrides);
        overrides
    }
}

fn limit(output: &Output) -> Option<LimitName> {
    output.status.limit().map(|reached| reached.limit)
}

// T-DOS-08: the shell runs inside the limits, so its own loops do.
#[test]
fn a_loop_has_as_many_iterations_as_the_preset_allows() {
    let output = strict().bash("for i in {1..100}; do :; done; echo fine").unwrap();
    assert_eq!(output.stdout, b"fine\n");
    let output = strict().bash("for i in {1..101}; do echo $i; done").unwrap();
    assert_eq!(limit(&output), Some(LimitName::LoopIterations));
    assert_eq!(output.stdout.iter().filter(|&&byte| byte == b'\n').count(), 100);
    assert_eq!(output.status.code(), 126);
}

#[test]
fn commands_are_counted() {
    let run = |commands: usize| strict().bash("true;".repeat(commands)).unwrap();
    assert_eq!(limit(&run(500)), None);
    assert_eq!(limit(&run(501)), Some(LimitName::Commands));
}

#[test]
fn output_so_far_is_kept_when_time_runs_out() {
    let output = strict().run(Command::bash("echo before; sleep 60; echo after").limits(wall("200 ms"))).unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"before\n"[..], 124));
    let reached = output.status.limit().unwrap();
    assert_eq!((reached.limit, reached.value.as_str()), (LimitName::Wall, "200 ms"));
    assert!(!reached.hint().is_empty());
}

// T-DOS-01.
#[test]
fn compute_is_one_pot_for_all_processes() {
    let script = "yes > /dev/null & yes > /dev/null & wait";
    let output = strict().run(Command::bash(script).limits(overrides(|o| o.compute = Some(200_000_000)))).unwrap();
    assert_eq!((limit(&output), output.status.code()), (Some(LimitName::Compute), 124));
}

// T-DOS-04.
#[test]
fn a_fork_bomb_ends() {
    let output = strict().bash(":(){ :|:& :; }; :; wait").unwrap();
    assert!(!output.status.success());
    assert!(output.usage.processes <= 500);
}

// T-DOS-07.
#[test]
fn the_disk_is_full_at_its_limit() {
    let output = strict().bash("head -c 20000000 /dev/zero > big; echo $?; ls -l big | wc -l").unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("File too large"), "{output:?}");
}

// T-DOS-05.
#[test]
fn nothing_outlives_the_command() {
    let sandbox = strict();
    let output = sandbox.bash("(while sleep 0.01; do echo x >> /tmp/alive; done) & sleep 0.05; echo done").unwrap();
    assert_eq!(output.stdout, b"done\n");
    let size = || sandbox.fs().read("/tmp/alive").map(|content| content.len()).unwrap_or(0);
    let before = size();
    sandbox.bash("sleep 0.05").unwrap();
    assert_eq!(size(), before);
}

#[test]
fn very_deep_recursion_ends_only_the_guest() {
    let output = bash("f() { f; }; f");
    assert_eq!(output.status, ExitStatus::Exited(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("f: maximum function nesting level exceeded (1000)"), "{output:?}");
    // Past the shell's own count: the guest's stack ends, and the next command runs.
    let output = bash("f() { eval f; }; f");
    assert_eq!(output.status, ExitStatus::Signaled(11));
    assert_eq!(output.stderr, b"sandlite: stack overflow: 4 MB allowed\n");
    assert_eq!(bash("echo alive").stdout, b"alive\n");
}

#[test]
fn pipelines_subshells_and_substitutions_fit_the_tightest_preset() {
    let output = strict().bash("seq 30 | sort -rn | (head -n 1; cat <(echo $(echo in)) > /tmp/x); cat /tmp/x").unwrap();
    assert_eq!((output.stdout, output.stderr), (b"30\nin\n".to_vec(), Vec::new()));
}
