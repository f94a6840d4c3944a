//! A deterministic run repeats itself: the same output, the same files with the same times, the same fuel, whatever the
//! machine is doing and however many processes there are.

use runtime::{Command, Output};

use super::sandbox;

/// Enough that an order which only usually is the same would differ once.
const RUNS: usize = 20;

// The final content of the files is part of the output; the sandbox's own directories are as old as the sandbox.
const STATE: &str = "wait; find /tmp -mindepth 1 -printf '%p %i %m %s %T@\\n'; cat /tmp/* 2>/dev/null | cksum; echo $RANDOM";

fn run(script: &str, seed: u64) -> Output {
    sandbox().run(Command::bash(format!("{script}\n{STATE}")).deterministic(seed)).unwrap()
}

fn check(script: &str) -> Output {
    let first = run(script, 7);
    for _ in 1..RUNS {
        let again = run(script, 7);
        assert_eq!(String::from_utf8_lossy(&again.stdout), String::from_utf8_lossy(&first.stdout), "{script}");
        assert_eq!((&again.stderr, &again.status), (&first.stderr, &first.status), "{script}");
        assert_eq!((again.usage.fuel, again.usage.memory_peak), (first.usage.fuel, first.usage.memory_peak), "{script}");
    }
    first
}

#[test]
fn pipelines_repeat() {
    check("seq 3000 | grep 7 | sort -r | tee /tmp/out | tail -n 3; yes | head -n 1000 | wc -c");
}

#[test]
fn background_jobs_write_in_the_same_order() {
    check("for i in 1 2 3 4 5; do (for j in 1 2 3; do echo $i-$j >> /tmp/log; echo $i-$j; done) & done");
    check(
        "a() { for i in {1..20}; do echo a$i; done; }; b() { for i in {1..20}; do echo b$i; done; }; a & b & wait; { a & b & wait; } | sort | tail -n 1",
    );
}

#[test]
fn forks_and_signals_repeat() {
    check("trap 'echo caught' USR1; (kill -USR1 $$) & wait; x=$(echo $(echo $((RANDOM)))); echo $x $!");
    check("sleep 100 & kill $!; wait $!; echo $?; (exit 3) & (exit 4) & wait -n; echo $?");
    check("while [ ! -e /tmp/flag ]; do :; done & : > /tmp/flag; wait; echo seen");
}

#[test]
fn time_passes_by_the_run_s_own_clock_and_in_order() {
    let output = check(
        "(sleep 3; echo third) & (sleep 1; echo first) & (sleep 2; echo second) & wait; timeout 5 sleep 100; echo $? $SECONDS",
    );
    assert!(output.stdout.starts_with(b"first\nsecond\nthird\n124 8\n"), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.usage.wall.as_secs() < 8);
}

#[test]
fn another_seed_is_another_run() {
    let draw = |seed| run("head -c 8 /dev/urandom | od -An -tx1", seed).stdout;
    assert_ne!(draw(1), draw(2));
    assert_eq!(draw(1), draw(1));
}

#[test]
fn input_during_a_run_is_awaited() {
    let (command, mut stdin) = Command::bash("cat | tr a-z A-Z").deterministic(1).stdin_pipe();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, b"late"));
    assert_eq!(sandbox().run(command).unwrap().stdout, b"LATE");
    writer.join().unwrap().unwrap();
}

#[test]
fn a_host_function_is_waited_for_while_other_processes_wait_too() {
    let slow = runtime::Tool::new("slow", "Takes its time.", "{}", |_| {
        std::thread::yield_now();
        Ok("done".into())
    });
    let sandbox = runtime::Sandbox::builder().host(super::host()).tool(slow).open().unwrap();
    for _ in 0..20 {
        let output = sandbox.run(Command::bash("slow; slow | cat; x=$(slow); echo $x").deterministic(1)).unwrap();
        assert_eq!(output.stdout, b"done\ndone\ndone\n");
    }
}
