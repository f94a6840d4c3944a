//! The cost of keeping versions and of reading an old one, measured alternately with and without in one run.
//!
//! `cargo bench -p sqlite-fs --bench past [WORD…]` runs the benchmarks whose names contain one of the words. Figures are the
//! median processor time of the calling thread. The last column has the bar, and whether it is met.

#![expect(clippy::disallowed_methods, reason = "a bench makes files of its own, and measures")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sqlite_fs::{Database, Durability, NewCall, Outcome, ROOT, Reader};

const FILES: u32 = 10_000;
const ROUNDS: u32 = 10;
/// Saved rows in the file of which an old version is opened.
const ROWS: u32 = 1_000_000;
/// Maximum growth of a file for each appended line: the line, a row of the inode and a row of the version, but no chunk.
const LINE_BYTES: f64 = 300.0;

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
fn compare(name: &str, bar: Option<f64>, mut ours: impl FnMut() -> Duration, mut theirs: impl FnMut() -> Duration) {
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
    println!("| {name} | {a:.1} | {b:.1} | {:.2} | {} |", a / b, judge(a / b, bar));
}

/// Returns a bar and whether a figure is within it.
fn judge(figure: f64, bar: Option<f64>) -> String {
    bar.map_or_else(|| "-".to_owned(), |bar| format!("{bar}: {}", if figure <= bar { "met" } else { "missed" }))
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

/// Overwrites like a shell's `>`: the file is emptied first.
fn rewrite(database: &Database, byte: u8) {
    let t = database.begin(None).unwrap();
    for i in 0..FILES {
        t.fs().write(&format!("/d/f{i}"), [byte; 1024]).unwrap();
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
    let both = |name: &str, bar: Option<f64>, before: &dyn Fn(&Database), work: &dyn Fn(&Database)| {
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
    both("history row x 1 000", Some(1.15), &|_| (), &echo);
    both("create 10 000 files of 1 KiB", Some(1.15), &|_| (), &create);
    both("write 100 MB", Some(1.15), &|_| (), &large);
    both("append a line x 1 000", Some(1.15), &log, &append);
    both("overwrite 10 000 files of 1 KiB", Some(2.0), &create, &|database| overwrite(database, 8));
    both("empty and write 10 000 files of 1 KiB", Some(2.0), &create, &|database| rewrite(database, 8));
    both("remove 10 000 files of 1 KiB", None, &create, &remove);
    for (name, change) in
        [("overwritten since", &(|database: &Database| overwrite(database, 9)) as &dyn Fn(&Database)), ("removed since", &remove)]
    {
        let (now, old) = (database(dir, true), database(dir, true));
        create(&now);
        create(&old);
        change(&old);
        compare(
            &format!("read a version of 10 000 files, {name}; the present"),
            Some(1.5),
            || timed(|| read(&old.reader_at(1).unwrap())),
            || timed(|| read(&now.reader().unwrap())),
        );
    }
    if is_wanted("bytes") {
        bytes(dir, &log);
    }
    if is_wanted("open") {
        open(dir);
    }
}

/// The bytes that a file takes for 1 000 appended lines, beyond those of a file without versions.
fn bytes(dir: &Path, log: &dyn Fn(&Database)) {
    let size = |versions: bool| {
        let database = database(dir, versions);
        log(&database);
        append(&database);
        database.compact(None).unwrap();
        let (path, used) = (database.path().unwrap().to_owned(), database.reader().unwrap().used().unwrap());
        drop(database);
        (fs::metadata(path).unwrap().len(), used)
    };
    let ((with, used), (without, _)) = (size(true), size(false));
    let each = (with - without) as f64 / 1000.0;
    println!(
        "\nbytes for each appended line of {} bytes: {each:.0} in the file (bar {}), {} in the budget",
        used.bytes / 1000,
        judge(each, Some(LINE_BYTES)),
        used.past / 1000
    );
}

/// The time to open the oldest version of a file with a million saved rows.
fn open(dir: &Path) {
    let many = database(dir, true);
    create(&many);
    // Each round saves a row of data and an inode of each file.
    (0..ROWS / FILES / 2).for_each(|round| overwrite(&many, u8::try_from(round % 200).unwrap()));
    let path = many.path().unwrap().to_owned();
    let rows: i64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT (SELECT count(*) FROM sandlite_past_data)+(SELECT count(*) FROM sandlite_past_inode)", [], |row| {
            row.get(0)
        })
        .unwrap();
    let start = Instant::now();
    (0..100).for_each(|_| drop(many.reader_at(1).unwrap()));
    let opened = start.elapsed().as_secs_f64() * 10.0;
    let start = Instant::now();
    for _ in 0..100 {
        assert_eq!(many.reader_at(1).unwrap().fs().read("/d/f77").unwrap().len(), 1024);
    }
    let read = start.elapsed().as_secs_f64() * 10.0;
    drop(many);
    let start = Instant::now();
    let again = Database::options().path(&path).open().unwrap();
    again.reader_at(1).unwrap();
    let cold = start.elapsed().as_secs_f64() * 1000.0;
    println!(
        "\nopening version 1 of a file with {rows} saved rows: {opened:.3} ms (bar {}); with a read of one file {read:.3} ms; \
         with opening the database {cold:.3} ms",
        judge(opened, Some(1.0))
    );
}
