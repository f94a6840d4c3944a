//! Imports arbitrary bytes as a foreign file: either rejected with a rule, or imported into an intact database.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sqlite_fs::{Database, Import, Quota};
use std::time::{Duration, Instant};

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("sqlite-fs-fuzz-{}.db", std::process::id()));
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, bytes).expect("the fuzzer's own file");
    let import = Import { deadline: Some(Instant::now() + Duration::from_secs(5)), max_bytes: 64 << 20, ..Import::default() };
    let quota = Quota { bytes: 64 << 20, inodes: 100_000, ..Quota::default() };
    if let Ok((database, _)) = Database::import(&path, Database::options().quota(quota), &import) {
        assert_eq!(database.check().expect("a fresh database can be read"), []);
    }
});
