//! Commands whose changes take long to store: that time counts as the command's own, and changes that do not fit are rolled back.

use abi::WaitStatus;
use sqlite_fs::ROOT;

use super::*;
use crate::process::Job;

/// More memory than anything else here.
const MUCH: u64 = 250 << 20;

/// Writes a file twice, so that the commit has to recompute checksums; stops at the deadline.
fn write_twice(job: &Job, bytes: u64) {
    let rows = job.view.transaction();
    let (home, _) = rows.lookup(ROOT, "tmp").unwrap();
    let ino = rows.create(home, "large", 0o644, 1000, 1000).unwrap();
    for byte in [1, 2] {
        for at in (0..bytes).step_by(64 << 10) {
            if rows.write(ino, at, &[byte; 64 << 10]).is_err() {
                return;
            }
        }
    }
}

fn in_a_file(directory: &tempfile::TempDir) -> Sandbox {
    let host = Host::builder().build().unwrap();
    Sandbox::builder().host(&host).preset(Preset::Normal).database(directory.path().join("a.db")).open().unwrap()
}

#[test]
fn t_dos_02_changes_that_cannot_be_stored_in_time_are_rolled_back() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = in_a_file(&directory);
    sandbox.fs().write("/before", "1").unwrap();
    // Queued in memory for the next transaction.
    sandbox.fs().read("/before").unwrap();
    let output = sandbox
        .run_with(Command::bash("a probe").limits(wall(1_000)), |job, _, _| {
            write_twice(job, 32 << 20);
            let past = job.meter.end() + super::super::lifecycle::COMMIT_SLACK;
            while clock::now() <= past {
                std::hint::spin_loop();
            }
            Ok(WaitStatus::Exited(0))
        })
        .unwrap();
    let reached = output.status.limit().unwrap();
    assert_eq!((reached.limit, reached.rolled_back), (LimitName::Wall, true));
    assert!(!sandbox.fs().exists("/tmp/large").unwrap());
    let run = sandbox.history_run(output.run).unwrap().unwrap();
    assert_eq!((run.exit_code, run.changes), (Some(124), None));
    assert!(run.limit.unwrap().ends_with("; the changes could not be stored in time and were rolled back"));
    let names: Vec<_> = sandbox.history(10).unwrap().into_iter().map(|run| run.name).collect();
    assert_eq!(names.iter().filter(|name| *name == "read_file").count(), 1, "{names:?}");
    assert_eq!(sandbox.check().unwrap(), []);
    sandbox.fs().write("/after", "well").unwrap();
}

#[test]
fn t_dos_02_time_to_store_the_changes_is_reserved_while_the_command_runs() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = in_a_file(&directory);
    let output = sandbox
        .run_with(Command::bash("a probe"), |job, _, _| {
            write_twice(job, 64 << 20);
            // The tick detects it.
            while job.meter.deadline() == job.meter.end() {
                std::hint::spin_loop();
            }
            Ok(WaitStatus::Exited(0))
        })
        .unwrap();
    assert!(output.status.success());
    assert_eq!(sandbox.fs().metadata("/tmp/large").unwrap().size, 64 << 20);
}

// The state before the command is unchanged, even if the command changed all of it, and the library calls recorded with it are
// not lost.
#[test]
fn t_dos_07_a_rollback_needs_no_memory_for_the_previous_content() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = in_a_file(&directory);
    let fill = |command: Command, byte: u8, code: u8| {
        let write = |job: &Job| {
            let rows = job.view.transaction();
            let (tmp, _) = rows.lookup(ROOT, "tmp").unwrap();
            let ino =
                rows.lookup(tmp, "large").map_or_else(|_| rows.create(tmp, "large", 0o644, 1000, 1000).unwrap(), |found| found.0);
            for at in (0..MUCH).step_by(64 << 10) {
                rows.write(ino, at, &[byte; 64 << 10]).unwrap();
            }
        };
        sandbox
            .run_with(command, |job, _, _| {
                write(job);
                Ok(WaitStatus::Exited(code))
            })
            .unwrap()
    };
    assert!(fill(Command::bash("a probe"), 1, 0).status.success());
    let before = peak();
    let output = fill(Command::bash("a probe").rollback_on_failure(), 7, 1);
    let memory = peak() - before;
    // Other tests run concurrently.
    assert!(memory < MUCH >> 21, "{memory} MB");
    assert_eq!(output.status, ExitStatus::Exited(1));
    let run = sandbox.history_run(output.run).unwrap().unwrap();
    assert_eq!((run.exit_code, run.changes), (Some(1), None));
    assert_eq!(sandbox.bash("head -c 3 /tmp/large | od -An -tx1").unwrap().stdout, b" 01 01 01\n");
    assert_eq!(sandbox.check().unwrap(), []);
}

/// Returns the process's peak memory, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}
