//! Long output of calls: it is stored byte for byte, in every order of columns, without being held several times meanwhile.
//!
//! A separate program: the kernel counts the memory of a process, not of a test.

#![expect(clippy::disallowed_methods, reason = "a test makes files of its own, and measures or waits")]

use sqlite_fs::{Database, NewCall, Outcome};

/// The most that the process had in memory so far, in MiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() / 1024
}

fn record(database: &Database, stdout: &[u8], stderr: &[u8]) -> i64 {
    let transaction = database.begin(None).unwrap();
    let call = NewCall { name: "bash", parameters: None, command: "yes", parent: None };
    let id = transaction.calls().begin(&call).unwrap();
    let outcome = Outcome { stdout, stderr, exit_code: Some(3), usage: Some("{}"), changes: Some("[]"), ..Outcome::default() };
    transaction.calls().finish(id, &outcome).unwrap();
    transaction.commit().unwrap();
    id
}

fn check(database: &Database, stdout: &[u8], stderr: &[u8]) {
    let id = record(database, stdout, stderr);
    let run = database.reader().unwrap().call(id).unwrap().unwrap().run.unwrap();
    assert!(run.stdout == stdout && run.stderr == stderr, "{} and {} bytes", stdout.len(), stderr.len());
    assert_eq!((run.exit_code, run.usage.as_deref(), run.changes.as_deref()), (Some(3), Some("{}"), Some("[]")));
}

fn check_lengths(database: &Database) {
    let text: Vec<u8> = (0..400_000u32).map(|number| number.to_le_bytes()[usize::from(number % 3 == 0)]).collect();
    for (stdout, stderr) in [(0, 0), (1, 65_535), (65_536, 0), (0, 65_537), (65_536, 65_536), (399_999, 131_073), (400_000, 1)] {
        check(database, &text[..stdout], &text[..stderr]);
    }
}

#[test]
fn output_of_any_length_is_stored_byte_for_byte() {
    check_lengths(&Database::options().open().unwrap());
    let directory = tempfile::tempdir().unwrap();
    check_lengths(&Database::options().path(directory.path().join("new.db")).open().unwrap());
    for format in ["1.sqlite", "2.sqlite"] {
        let path = directory.path().join(format);
        std::fs::copy(format!("{}/tests/formats/{format}", env!("CARGO_MANIFEST_DIR")), &path).unwrap();
        check_lengths(&Database::options().path(path).open().unwrap());
    }
}

/// T-DOS-03
#[test]
fn long_output_is_held_once_while_it_is_stored() {
    const MIB: usize = 64;
    let output = vec![b'y'; MIB << 20];
    let database = Database::options().open().unwrap();
    let before = peak();
    record(&database, &output, &[]);
    let used = peak().saturating_sub(before);
    assert!(used < MIB + MIB / 4, "{used} MiB for {MIB} MiB of output");
}
