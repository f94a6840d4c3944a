//! `sqlite-fs`: one transaction per command.

use std::path::Path;

use sqlite_fs::{Database, Durability, Export, ROOT};

use crate::{FILES, LARGE, SMALL, STEP, Subject, cpu, deep_path, offsets};

pub struct Ours(Database);

impl Ours {
    pub fn new(path: Option<&Path>) -> Self {
        let options = Database::options().durability(Durability::CrashSafe);
        Self(path.map_or(options.clone(), |path| options.path(path)).open().unwrap())
    }
}

impl Subject for Ours {
    fn create(&mut self) {
        let t = self.0.begin(None).unwrap();
        let dir = t.mkdir(ROOT, "d", 0o755, 0, 0).unwrap();
        for i in 0..FILES {
            let ino = t.create(dir, &format!("f{i}"), 0o644, 0, 0).unwrap();
            t.write(ino, 0, &[7; SMALL]).unwrap();
        }
        t.fs().create_dir_all(&deep_path()).unwrap();
        t.commit().unwrap();
    }

    fn stat(&mut self) {
        let t = self.0.begin(None).unwrap();
        for i in 0..FILES {
            assert_eq!(t.fs().metadata(&format!("/d/f{i}")).unwrap().size, SMALL as u64);
        }
        t.commit().unwrap();
    }

    fn read(&mut self) {
        let t = self.0.begin(None).unwrap();
        for i in 0..FILES {
            assert_eq!(t.fs().read(&format!("/d/f{i}")).unwrap().len(), SMALL);
        }
        t.commit().unwrap();
    }

    fn overwrite(&mut self) {
        let t = self.0.begin(None).unwrap();
        for i in 0..FILES {
            let ino = t.fs().metadata(&format!("/d/f{i}")).unwrap().ino;
            t.write(ino, 0, &[8; SMALL]).unwrap();
        }
        t.commit().unwrap();
    }

    fn list(&mut self) {
        let t = self.0.begin(None).unwrap();
        assert_eq!(t.fs().list("/d").unwrap().len(), FILES as usize);
        t.commit().unwrap();
    }

    fn deep_stat(&mut self) {
        let t = self.0.begin(None).unwrap();
        let path = deep_path();
        for _ in 0..1000 {
            t.fs().metadata(&path).unwrap();
        }
        t.commit().unwrap();
    }

    fn write_large(&mut self) {
        let t = self.0.begin(None).unwrap();
        let ino = t.create(ROOT, "large", 0o644, 0, 0).unwrap();
        let buffer = vec![9; STEP];
        for step in 0..LARGE / STEP as u64 {
            t.write(ino, step * STEP as u64, &buffer).unwrap();
        }
        t.commit().unwrap();
    }

    fn read_large(&mut self) {
        let t = self.0.begin(None).unwrap();
        let (ino, _) = t.lookup(ROOT, "large").unwrap();
        let mut buffer = vec![0; STEP];
        for step in 0..LARGE / STEP as u64 {
            assert_eq!(t.read(ino, step * STEP as u64, &mut buffer).unwrap(), STEP);
        }
        t.commit().unwrap();
    }

    fn read_anywhere(&mut self) {
        let t = self.0.begin(None).unwrap();
        let (ino, _) = t.lookup(ROOT, "large").unwrap();
        let mut buffer = vec![0; 4096];
        for offset in offsets() {
            assert_eq!(t.read(ino, offset, &mut buffer).unwrap(), 4096);
        }
        t.commit().unwrap();
    }

    fn remove(&mut self) {
        let t = self.0.begin(None).unwrap();
        t.fs().remove_dir_all("/d").unwrap();
        t.commit().unwrap();
    }

    /// The thread that brings a long log back into the file ends by itself.
    fn settle(&mut self) {
        let is_log = |task: std::io::Result<std::fs::DirEntry>| {
            task.and_then(|task| std::fs::read_to_string(task.path().join("comm")))
                .is_ok_and(|name| name.trim() == "sqlite-fs log")
        };
        while std::fs::read_dir("/proc/self/task").unwrap().any(is_log) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// The same chunks inserted by plain SQLite with the same settings, its own checkpoint included: what it takes at least.
pub fn plain_sqlite(path: &Path) -> std::time::Duration {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-8192;
             CREATE TABLE fs_data (ino INTEGER NOT NULL, chunk_index INTEGER NOT NULL, data BLOB NOT NULL,
               PRIMARY KEY (ino, chunk_index));",
        )
        .unwrap();
    let buffer = vec![9u8; STEP];
    let start = cpu();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut insert = connection.prepare("INSERT INTO fs_data VALUES (2, ?1, ?2)").unwrap();
    for index in 0..(LARGE / STEP as u64) as i64 {
        insert.execute(rusqlite::params![index, buffer]).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    cpu() - start
}

/// Export against SQLite's own backup, on 10 and 100 MB.
pub fn snapshots(dir: &Path) {
    println!("\n| snapshot | export ms | SQLite's backup ms | ratio |\n|---|---|---|---|");
    for megabytes in [10u64, 100] {
        let path = dir.join(format!("snapshot{megabytes}.db"));
        let database = Database::options().path(&path).durability(Durability::CrashSafe).open().unwrap();
        let t = database.begin(None).unwrap();
        for i in 0..megabytes {
            t.fs().write(&format!("/f{i}"), vec![i as u8; 1 << 20]).unwrap();
        }
        t.commit().unwrap();
        let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
        for round in 0..5 {
            let start = cpu();
            database.export(&dir.join(format!("export{megabytes}-{round}.db")), Export::default()).unwrap();
            ours = ours.min((cpu() - start).as_secs_f64() * 1000.0);
            let start = cpu();
            let source = rusqlite::Connection::open(&path).unwrap();
            let mut target = rusqlite::Connection::open(dir.join(format!("backup{megabytes}-{round}.db"))).unwrap();
            rusqlite::backup::Backup::new(&source, &mut target)
                .unwrap()
                .run_to_completion(1 << 20, std::time::Duration::ZERO, None)
                .unwrap();
            theirs = theirs.min((cpu() - start).as_secs_f64() * 1000.0);
        }
        println!("| {megabytes} MB | {ours:.1} | {theirs:.1} | {:.2} |", ours / theirs);
    }
}
