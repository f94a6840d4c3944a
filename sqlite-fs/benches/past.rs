//! The cost of keeping versions and of reading an old one, measured alternately with and without in one run.
//!
//! `cargo bench -p sqlite-fs --bench past [WORD…]` runs the benchmarks whose names contain one of the words. Median processor
//! time of the calling thread.

#![expect(clippy::disallowed_methods, reason = "a bench makes files of its own, and measures")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sqlite_fs::{Database, Durability, NewCall, Outcome, ROOT, Reader};

const FILES: u32 = 10_000;
const ROUNDS: u32 = 10;

fn database(dir: &Path, versions: bool) -> Database {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let path = dir.join(format!("bench{}.db", NUMBER.fetch_add(1, Ordering::Relaxed)));
    Database::options().path(path).durability(Durability::CrashSafe).versions(versions).open().unwrap()
}

/// Returns the processor time of this thread, including the kernel's share.
fn cpu() -> Duration {
    std::thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = cpu();
    work();
    cpu() - start
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

/// Returns whether a name contains a word of the command line, or no word was given.
fn is_wanted(name: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--")).peekable();
    words.peek().is_none() || words.any(|word| name.contains(&word))
}

/// Runs two functions alternately and prints the median of both.
fn compare(name: &str, bar: &str, mut ours: impl FnMut() -> Duration, mut theirs: impl FnMut() -> Duration) {
    if !is_wanted(name) {
        return;
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The second one finds pages that the first has just freed.
        if round % 2 == 0 {
            a.push(ours());
            b.push(theirs());
        } else {
            b.push(theirs());
            a.push(ours());
        }
    }
    let (a, b) = (median(&mut a), median(&mut b));
    println!("| {name} | {a:.1} | {b:.1} | {:.2} | {bar} |", a / b);
}

fn create(database: &Database) {
    let t = database.begin(None).unwrap();
    let dir = t.mkdir(ROOT, "d", 0o755, 0, 0).unwrap();
    for i in 0..FILES {
        let ino = t.create(dir, &format!("f{i}"), 0o644, 0, 0).unwrap();
        t.write(ino, 0, &[7; 1024]).unwrap();
    }
    t.commit().unwrap();
}

fn overwrite(database: &Database, byte: u8) {
    let t = database.begin(None).unwrap();
    for i in 0..FILES {
        let ino = t.fs().metadata(&format!("/d/f{i}")).unwrap().ino;
        t.write(ino, 0, &[byte; 1024]).unwrap();
    }
    t.commit().unwrap();
}

fn large(database: &Database) {
    let t = database.begin(None).unwrap();
    let ino = t.create(ROOT, "large", 0o644, 0, 0).unwrap();
    let bytes = vec![9; 64 << 10];
    for step in 0..1600 {
        t.write(ino, step << 16, &bytes).unwrap();
    }
    t.commit().unwrap();
}

fn append(database: &Database) {
    for i in 0..1000 {
        let t = database.begin(None).unwrap();
        let ino = t.fs().metadata("/log").unwrap().ino;
        t.append(ino, format!("this is line number {i} of a log file\n").as_bytes()).unwrap();
        t.commit().unwrap();
    }
}

fn echo(database: &Database) {
    for _ in 0..1000 {
        let t = database.begin(None).unwrap();
        let call = NewCall { name: "bash", parameters: Some("{}"), command: "echo hi", parent: None };
        let id = t.calls().begin(&call).unwrap();
        let outcome = Outcome { result: Some("{}"), stdout: b"hi\n", exit_code: Some(0), ..Outcome::default() };
        t.calls().finish(id, &outcome).unwrap();
        t.commit().unwrap();
    }
}

/// Lists, stats and reads everything.
fn read(reader: &Reader) {
    let walked = reader.fs().walk("/d").unwrap();
    assert_eq!(walked.len() as u32, FILES + 1);
    for (path, stat) in walked.iter().skip(1) {
        assert_eq!(reader.fs().metadata(path).unwrap().size, 1024);
        assert_eq!(reader.fs().read(path).unwrap().len() as u64, stat.size);
    }
}

fn with(dir: &Path, versions: bool, before: impl Fn(&Database), work: impl Fn(&Database)) -> Duration {
    let database = database(dir, versions);
    before(&database);
    let time = timed(|| work(&database));
    let path = database.path().unwrap().to_owned();
    drop(database);
    fs::remove_file(path).unwrap();
    time
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    println!("\n| work | versions ms | none ms | ratio | bar |\n|---|---|---|---|---|");
    let both = |name: &str, bar: &str, before: &dyn Fn(&Database), work: &dyn Fn(&Database)| {
        compare(name, bar, || with(dir, true, before, work), || with(dir, false, before, work));
    };
    let log = |database: &Database| {
        let t = database.begin(None).unwrap();
        t.fs().write("/log", b"").unwrap();
        t.commit().unwrap();
    };
    let remove = |database: &Database| {
        let t = database.begin(None).unwrap();
        t.fs().remove_dir_all("/d").unwrap();
        t.commit().unwrap();
    };
    both("history row x 1 000", "1.15", &|_| (), &echo);
    both("create 10 000 files of 1 KiB", "1.15", &|_| (), &create);
    both("write 100 MB", "1.15", &|_| (), &large);
    both("append a line x 1 000", "1.15", &log, &append);
    both("overwrite 10 000 files of 1 KiB", "2", &create, &|database| overwrite(database, 8));
    both("remove 10 000 files of 1 KiB", "-", &create, &remove);
    for (name, change) in
        [("overwritten since", &(|database: &Database| overwrite(database, 9)) as &dyn Fn(&Database)), ("removed since", &remove)]
    {
        let (now, old) = (database(dir, true), database(dir, true));
        create(&now);
        create(&old);
        change(&old);
        compare(
            &format!("read a version of 10 000 files, {name}; the present"),
            "1.5",
            || timed(|| read(&old.reader_at(1).unwrap())),
            || timed(|| read(&now.reader().unwrap())),
        );
    }
    if !is_wanted("bytes") {
        return;
    }
    let logged = database(dir, true);
    log(&logged);
    append(&logged);
    let used = logged.reader().unwrap().used().unwrap();
    println!("\nappending 1 000 lines ({} bytes) saved {} bytes", used.bytes, used.past);
    let many = database(dir, true);
    create(&many);
    (0..50).for_each(|round| overwrite(&many, round));
    let (saved, versions) =
        (many.reader().unwrap().used().unwrap().past, many.reader().unwrap().versions(None, 99).unwrap().len());
    let start = Instant::now();
    (0..100).for_each(|_| drop(many.reader_at(1).unwrap()));
    println!("opening a version, {versions} versions and {} MB saved after it: {:?}", saved >> 20, start.elapsed() / 100);
}
