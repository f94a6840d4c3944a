//! Memory stays bounded whatever the size of the files.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use sqlite_fs::{Database, Durability, ROOT};

/// The most that the process had in memory so far, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1024
}

#[test]
fn large_files_pass_through_little_memory() {
    const STEP: usize = 48 * 1024;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let database = Database::options().path(&path).durability(Durability::CrashSafe).open().unwrap();
    let before = peak();
    let transaction = database.begin(None).unwrap();
    let ino = transaction.create(ROOT, "large", 0o644, 0, 0).unwrap();
    // Not in step with the chunks, so that all of it goes through the cache; and many small files besides.
    for step in 0..4000u64 {
        assert_eq!(transaction.write(ino, step * STEP as u64, &[step as u8; STEP]), Ok(STEP));
    }
    for i in 0..30_000 {
        let ino = transaction.create(ROOT, &format!("small{i}"), 0o644, 0, 0).unwrap();
        transaction.write(ino, 0, b"small").unwrap();
    }
    transaction.commit().unwrap();
    let transaction = database.begin(None).unwrap();
    let mut buffer = vec![0; STEP];
    for step in 0..4000u64 {
        assert_eq!(transaction.read(ino, step * STEP as u64, &mut buffer), Ok(STEP));
        assert_eq!(buffer[STEP - 1], step as u8);
    }
    transaction.commit().unwrap();
    database.export(&dir.path().join("b.db"), sqlite_fs::Export::default()).unwrap();
    let used = peak().saturating_sub(before);
    assert!(used < 64, "{used} MiB for 190 MB of files");
}
