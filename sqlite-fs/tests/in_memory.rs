//! The files of a database in memory are held once, also while a transaction is filling them and while it commits (T-DOS-03).
//!
//! A separate program: the kernel counts the memory of a process, not of a test.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use sqlite_fs::{Database, ROOT};

/// The most that the process had in memory so far, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

#[test]
fn files_in_memory_are_held_once() {
    const MIB: u64 = 300;
    let database = Database::options().open().unwrap();
    let before = peak();
    let transaction = database.begin(None).unwrap();
    let ino = transaction.create(ROOT, "large", 0o644, 0, 0).unwrap();
    let step = vec![1; 1 << 20];
    for _ in 0..MIB {
        transaction.append(ino, &step).unwrap();
    }
    transaction.commit().unwrap();
    let reader = database.reader().unwrap();
    assert_eq!(reader.fs().metadata("/large").unwrap().size, MIB << 20);
    let used = peak().saturating_sub(before);
    assert!(used < MIB + 64, "{used} MiB for {MIB} MiB of files");
}
