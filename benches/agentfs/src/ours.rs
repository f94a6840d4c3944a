//! `sqlite-fs`: one transaction per command.

use std::path::Path;

use sqlite_fs::{Database, Durability, Export, ROOT};

use crate::{FILES, LARGE, Rounds, SMALL, STEP, Subject, Took, deep_path, offsets, took};

/// The database, and how many threads there were before its own.
pub struct Ours(Database, usize);

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

impl Ours {
    pub fn new(path: Option<&Path>) -> Self {
        let options = Database::options().durability(Durability::CrashSafe);
        Self(path.map_or(options.clone(), |path| options.path(path)).open().unwrap(), threads())
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
        while threads() > self.1 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// The same chunks inserted by plain SQLite with the same settings, its own checkpoint included: what it takes at least.
pub fn plain_sqlite(path: &Path) -> Took {
    let mut connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-8192;
             CREATE TABLE fs_data (ino INTEGER NOT NULL, chunk_index INTEGER NOT NULL, data BLOB NOT NULL,
               PRIMARY KEY (ino, chunk_index));",
        )
        .unwrap();
    let buffer = vec![9u8; STEP];
    let work = |connection: &mut rusqlite::Connection| {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut insert = connection.prepare("INSERT INTO fs_data VALUES (2, ?1, ?2)").unwrap();
        for index in 0..(LARGE / STEP as u64) as i64 {
            insert.execute(rusqlite::params![index, buffer]).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
    };
    took(&mut connection, work, |_| ())
}

/// Export against SQLite's own backup, on 10 and 100 MB: processor time of both, and wall time.
pub fn snapshots(dir: &Path) {
    println!("\n| snapshot | export | SQLite's backup | ratio | export, wall | SQLite's backup, wall | ratio |");
    println!("|---|---|---|---|---|---|---|");
    for megabytes in [10u64, 100] {
        let path = dir.join(format!("snapshot{megabytes}.db"));
        let mut database = Database::options().path(&path).durability(Durability::CrashSafe).open().unwrap();
        let t = database.begin(None).unwrap();
        for i in 0..megabytes {
            t.fs().write(&format!("/f{i}"), vec![i as u8; 1 << 20]).unwrap();
        }
        t.commit().unwrap();
        let (mut ours, mut theirs) = (Rounds::default(), Rounds::default());
        for _ in 0..9 {
            let target = dir.join("copy.db");
            let export = |database: &mut Database| database.export(&target, Export::default()).unwrap();
            ours.0.push(took(&mut database, export, |_| std::fs::remove_file(&target).unwrap()));
            theirs.0.push(took(&mut (), |_| backup(&path, &target), |_| std::fs::remove_file(&target).unwrap()));
        }
        let (ours, theirs) = (ours.median(), theirs.median());
        println!(
            "| {megabytes} MB | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} | {:.2} |",
            ours.caller,
            theirs.caller,
            ours.caller / theirs.caller,
            ours.wall,
            theirs.wall,
            ours.wall / theirs.wall
        );
    }
}

fn backup(from: &Path, to: &Path) {
    let source = rusqlite::Connection::open(from).unwrap();
    let mut target = rusqlite::Connection::open(to).unwrap();
    let whole = rusqlite::backup::Backup::new(&source, &mut target).unwrap();
    whole.run_to_completion(1 << 20, std::time::Duration::ZERO, None).unwrap();
}
