//! The exact edge of every limit under every preset (G7): one below is allowed, the value is allowed, one above is not.
//!
//! Where a preset's own value is too large to fill in a test, it is tightened. `compute` and `memory` have their edges in
//! `runtime/src/run/probes.rs`, `wall` has its own in `runtime/src/limits/meter.rs`, where no time need pass for it.

use runtime::{ByteSize, Error, LimitName, Limits, Overrides, Preset, Sandbox};

use super::{host, limit};

const PRESETS: [Preset; 3] = [Preset::Strict, Preset::Normal, Preset::Permissive];

fn open(preset: Preset, overrides: Overrides) -> Sandbox {
    Sandbox::builder().host(host()).preset(preset).limits(overrides).open().unwrap()
}

/// Tries one below, the value and one above: `fits` returns whether the amount was allowed.
#[track_caller]
fn check(name: &str, preset: Preset, value: u64, fits: impl Fn(u64) -> bool) {
    let seen = [fits(value - 1), fits(value), fits(value + 1)];
    assert_eq!(seen, [true, true, false], "{name} = {value} under {preset:?}: one below, exactly, one above");
}

fn every(name: &str, value: impl Fn(&Limits) -> u64, fits: impl Fn(Preset, u64) -> bool) {
    for preset in PRESETS {
        let value = value(open(preset, Overrides::default()).limits());
        check(name, preset, value, |amount| fits(preset, amount));
    }
}

#[test]
fn loop_iterations() {
    every(
        "loop_iterations",
        |limits| limits.loop_iterations,
        |preset, rounds| {
            let output =
                open(preset, Overrides::default()).bash(format!("for ((i = 0; i < {rounds}; i++)); do x=1; done")).unwrap();
            assert!(matches!(limit(&output), None | Some(LimitName::LoopIterations | LimitName::Commands)), "{output:?}");
            limit(&output).is_none()
        },
    );
}

#[test]
fn commands() {
    every(
        "commands",
        |limits| limits.commands,
        |preset, amount| {
            let amount = usize::try_from(amount).unwrap();
            let output = open(preset, Overrides::default()).bash("true\n".repeat(amount)).unwrap();
            assert!(matches!(limit(&output), None | Some(LimitName::Commands)), "{output:?}");
            limit(&output).is_none()
        },
    );
}

#[test]
fn output() {
    every(
        "output",
        |limits| limits.output.0,
        |preset, bytes| {
            let output = open(preset, Overrides::default()).bash(format!("head -c {bytes} /dev/zero")).unwrap();
            assert!(matches!(limit(&output), None | Some(LimitName::Output)), "{:?}", output.status);
            limit(&output).is_none() && output.stdout.len() as u64 == bytes
        },
    );
}

#[test]
fn command_text() {
    every(
        "command_text",
        |limits| limits.command_text.0,
        |preset, bytes| {
            let sandbox = open(preset, Overrides::default());
            // The environment and the other arguments count too.
            let Err(Error::CommandTooLong { used, .. }) = sandbox.bash("x".repeat(usize::try_from(bytes).unwrap())) else {
                panic!("the command itself is already too long");
            };
            let script = format!(": {}", "x".repeat(usize::try_from(bytes - (used - bytes) - 2).unwrap()));
            match sandbox.bash(script) {
                Ok(_) => true,
                Err(Error::CommandTooLong { .. }) => false,
                Err(error) => panic!("{error}"),
            }
        },
    );
}

#[test]
fn value() {
    every(
        "value",
        |limits| limits.value.0,
        |preset, bytes| {
            // The quotes of a JSON string are part of it.
            let text = "x".repeat(usize::try_from(bytes - 2).unwrap());
            open(preset, Overrides::default()).kv().set("key", text).is_ok()
        },
    );
}

#[test]
fn keys() {
    for preset in PRESETS {
        let tight = Overrides { keys: Some(ByteSize(10_000)), ..Overrides::default() };
        // Each key counts twice, each entry 64 bytes, and the quotes of a JSON string are part of it.
        check("keys", preset, 10_000, |bytes| {
            let text = "x".repeat(usize::try_from(bytes - 64 - 2 * 3 - 2).unwrap());
            open(preset, tight.clone()).kv().set("key", text).is_ok()
        });
    }
}

#[test]
fn names() {
    for preset in PRESETS {
        let tight = Overrides { names: Some(ByteSize(2_000)), ..Overrides::default() };
        check("names", preset, 2_000, |bytes| {
            let sandbox = open(preset, tight.clone());
            let left = bytes - sandbox.info().unwrap().names_used;
            // One name of 200 bytes and 64 for it until the rest fits into one.
            let (long, rest) = ((left - 65) / 264, (left - 65) % 264);
            let rest = if rest == 0 { String::new() } else { format!("x{}", "x".repeat(usize::try_from(rest).unwrap())) };
            let first = if rest.is_empty() { "x".to_owned() } else { rest };
            let script = format!("set -e; : > {first}; for i in {}; do : > $(printf '%0200d' $i); done", list(long));
            sandbox.bash(script).unwrap().status.success()
        });
    }
}

#[test]
fn file() {
    for preset in PRESETS {
        let tight = Overrides { file: Some(ByteSize(100_000)), ..Overrides::default() };
        check("file", preset, 100_000, |bytes| {
            open(preset, tight.clone()).bash(format!("head -c {bytes} /dev/zero > f")).unwrap().status.success()
        });
        check("file", preset, 100_000, |bytes| {
            open(preset, tight.clone()).bash(format!("truncate -s {bytes} f")).unwrap().status.success()
        });
        check("file", preset, 100_000, |bytes| {
            open(preset, tight.clone()).fs().write("/f", vec![0; usize::try_from(bytes).unwrap()]).is_ok()
        });
    }
}

#[test]
fn disk() {
    for preset in PRESETS {
        let tight = Overrides { disk: Some(ByteSize(200_000)), ..Overrides::default() };
        check("disk", preset, 200_000, |bytes| {
            let script = format!("head -c 150000 /dev/zero > a && head -c {} /dev/zero > b", bytes - 150_000);
            open(preset, tight.clone()).bash(script).unwrap().status.success()
        });
    }
}

#[test]
fn inodes() {
    for preset in PRESETS {
        let tight = Overrides { inodes: Some(50), ..Overrides::default() };
        check("inodes", preset, 50, |total| {
            let sandbox = open(preset, tight.clone());
            let files = total - sandbox.info().unwrap().inodes_used;
            sandbox.bash(format!("touch $(seq -f f%g {files})")).unwrap().status.success()
        });
    }
}

#[test]
fn processes() {
    for preset in PRESETS {
        let tight = Overrides { processes: Some(8), ..Overrides::default() };
        check("processes", preset, 8, |alive| {
            // The shell is one of them.
            let script = format!("for i in {}; do sleep 5 & done", list(alive - 1));
            let output = open(preset, tight.clone()).bash(script).unwrap();
            output.stderr.is_empty()
        });
    }
}

fn list(count: u64) -> String {
    (1..=count).map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

#[test]
fn process_starts() {
    for preset in PRESETS {
        let tight = Overrides { process_starts: Some(12), ..Overrides::default() };
        check("process_starts", preset, 12, |starts| {
            let programs = usize::try_from(starts - 1).unwrap();
            // Not the last command: that one would be the shell itself.
            let output = open(preset, tight.clone()).bash(format!("{}:", "/bin/true;".repeat(programs))).unwrap();
            assert!(matches!(limit(&output), None | Some(LimitName::ProcessStarts)), "{output:?}");
            limit(&output).is_none()
        });
    }
}

#[test]
fn descriptors() {
    for preset in PRESETS {
        let tight = Overrides { descriptors: Some(100), ..Overrides::default() };
        // Numbers count from 0, so the highest one is 99.
        check("descriptors", preset, 99, |fd| {
            let output = open(preset, tight.clone()).bash(format!("exec {fd}>/dev/null && echo yes >&{fd}")).unwrap();
            output.status.success()
        });
    }
}
