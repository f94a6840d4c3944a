//! The work of commands on the database and on the machine's own filesystem, side by side.
//!
//! `cargo bench -p sqlite-fs` prints a table of ratios at the end (`-- ratios` prints only the table). The comparison with
//! AgentFS's own SDK is in `benches/agentfs`, which includes its engine.

#![expect(clippy::disallowed_methods, reason = "a bench makes files of its own, and measures")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group};
use sqlite_fs::{Database, Durability, Export, NewCall, Outcome, ROOT};

const FILES: u32 = 10_000;
const SMALL: [u8; 1024] = [7; 1024];
const LARGE: u64 = 100 << 20;
const STEP: usize = 64 * 1024;

fn database(dir: &Path) -> Database {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let path = dir.join(format!("bench{}.db", NUMBER.fetch_add(1, Ordering::Relaxed)));
    Database::options().path(path).durability(Durability::CrashSafe).open().unwrap()
}

fn fill(database: &Database) {
    let t = database.begin(None).unwrap();
    let dir = t.mkdir(ROOT, "d", 0o755, 0, 0).unwrap();
    for i in 0..FILES {
        let ino = t.create(dir, &format!("f{i}"), 0o644, 0, 0).unwrap();
        t.write(ino, 0, &SMALL).unwrap();
    }
    t.commit().unwrap();
}

fn overwrite(database: &Database) {
    let t = database.begin(None).unwrap();
    for i in 0..FILES {
        let ino = t.fs().metadata(&format!("/d/f{i}")).unwrap().ino;
        t.write(ino, 0, &[8; SMALL.len()]).unwrap();
    }
    t.commit().unwrap();
}

fn overwrite_ext4(real: &Path) {
    for i in 0..FILES {
        let file = fs::File::options().write(true).open(real.join(format!("f{i}"))).unwrap();
        file.write_all_at(&[8; SMALL.len()], 0).unwrap();
    }
}

fn fill_ext4(real: &Path) {
    fs::create_dir(real).unwrap();
    for i in 0..FILES {
        fs::write(real.join(format!("f{i}")), SMALL).unwrap();
    }
}

/// The same offsets for all candidates.
fn offsets() -> impl Iterator<Item = u64> {
    (0..5000u64).scan(1u64, |state, _| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((*state >> 33) % (LARGE - 4096))
    })
}

fn write_large(database: &Database, bytes: &[u8]) {
    let t = database.begin(None).unwrap();
    let open = sqlite_fs::path::Open { write: true, create: true, truncate: true, ..Default::default() };
    let ino = t.fs().open("/large", &open, 0o644).unwrap();
    (0..LARGE / STEP as u64).for_each(|step| assert_eq!(t.write(ino, step * STEP as u64, bytes), Ok(STEP)));
    t.commit().unwrap();
}

fn write_large_ext4(real: &Path, bytes: &[u8]) {
    let file = fs::File::create(real).unwrap();
    (0..LARGE / STEP as u64).for_each(|step| file.write_all_at(bytes, step * STEP as u64).unwrap());
}

/// Creates a database with this many files of 1 MiB.
fn filled(dir: &Path, megabytes: u64) -> Database {
    let full = database(dir);
    let t = full.begin(None).unwrap();
    (0..megabytes).for_each(|i| t.fs().write(&format!("/f{i}"), vec![i as u8; 1 << 20]).unwrap());
    t.commit().unwrap();
    full
}

fn backup(from: &Path, to: &Path) {
    let source = rusqlite::Connection::open(from).unwrap();
    let mut target = rusqlite::Connection::open(to).unwrap();
    rusqlite::backup::Backup::new(&source, &mut target).unwrap().run_to_completion(1 << 20, Duration::ZERO, None).unwrap();
}

fn small_files(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let mut group = c.benchmark_group("10000 small files");
    group.sample_size(10).throughput(Throughput::Elements(u64::from(FILES)));
    group.bench_function("create", |b| {
        b.iter_batched(|| database(dir.path()), |database| fill(&database), BatchSize::PerIteration);
    });
    let mut number = 0;
    group.bench_function("create, ext4", |b| {
        b.iter_batched(
            || {
                number += 1;
                dir.path().join(format!("real{number}"))
            },
            |real| fill_ext4(&real),
            BatchSize::PerIteration,
        );
    });
    let filled = database(dir.path());
    fill(&filled);
    let real = dir.path().join("real");
    fill_ext4(&real);
    group.bench_function("stat", |b| {
        b.iter(|| {
            let t = filled.begin(None).unwrap();
            (0..FILES).for_each(|i| assert_eq!(t.fs().metadata(&format!("/d/f{i}")).unwrap().size, 1024));
            t.commit().unwrap();
        });
    });
    group.bench_function("stat, ext4", |b| {
        b.iter(|| (0..FILES).for_each(|i| assert_eq!(fs::metadata(real.join(format!("f{i}"))).unwrap().len(), 1024)));
    });
    group.bench_function("read", |b| {
        b.iter(|| {
            let t = filled.begin(None).unwrap();
            (0..FILES).for_each(|i| assert_eq!(t.fs().read(&format!("/d/f{i}")).unwrap().len(), 1024));
            t.commit().unwrap();
        });
    });
    group.bench_function("read, ext4", |b| {
        b.iter(|| (0..FILES).for_each(|i| assert_eq!(fs::read(real.join(format!("f{i}"))).unwrap().len(), 1024)));
    });
    group.bench_function("overwrite", |b| b.iter(|| overwrite(&filled)));
    group.bench_function("overwrite, ext4", |b| b.iter(|| overwrite_ext4(&real)));
    group.bench_function("list", |b| {
        b.iter(|| {
            let t = filled.begin(None).unwrap();
            assert_eq!(t.fs().list("/d").unwrap().len(), FILES as usize);
            t.commit().unwrap();
        });
    });
    group.bench_function("list, ext4", |b| b.iter(|| assert_eq!(fs::read_dir(&real).unwrap().count(), FILES as usize)));
    group.finish();
}

fn large_file(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let mut group = c.benchmark_group("100 MB");
    group.sample_size(10).throughput(Throughput::Bytes(LARGE));
    let mut buffer = vec![9; STEP];
    let database = database(dir.path());
    group.bench_function("write", |b| b.iter(|| write_large(&database, &buffer)));
    let real = dir.path().join("large");
    group.bench_function("write, ext4", |b| {
        b.iter(|| write_large_ext4(&real, &buffer));
    });
    // Needed even if only the following benchmarks were selected.
    write_large(&database, &buffer);
    write_large_ext4(&real, &buffer);
    let t = database.begin(None).unwrap();
    let (ino, _) = t.lookup(ROOT, "large").unwrap();
    group.bench_function("read", |b| {
        b.iter(|| (0..LARGE / STEP as u64).for_each(|step| assert_eq!(t.read(ino, step * STEP as u64, &mut buffer), Ok(STEP))));
    });
    let file = fs::File::open(&real).unwrap();
    group.bench_function("read, ext4", |b| {
        b.iter(|| (0..LARGE / STEP as u64).for_each(|step| file.read_exact_at(&mut buffer, step * STEP as u64).unwrap()));
    });
    let mut small = [0; 4096];
    group.bench_function("5000 reads of 4 KiB anywhere", |b| {
        b.iter(|| offsets().for_each(|at| assert_eq!(t.read(ino, at, &mut small), Ok(4096))));
    });
    group.bench_function("5000 reads of 4 KiB anywhere, ext4", |b| {
        b.iter(|| offsets().for_each(|at| file.read_exact_at(&mut small, at).unwrap()));
    });
    group.finish();
}

fn snapshots(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let mut group = c.benchmark_group("snapshot");
    group.sample_size(10);
    let mut number = 0;
    let mut fresh = || {
        number += 1;
        dir.path().join(format!("snapshot{number}.db"))
    };
    for megabytes in [10, 100] {
        let full = filled(dir.path(), megabytes);
        group.throughput(Throughput::Bytes(megabytes << 20));
        group.bench_function(format!("{megabytes} MB"), |b| {
            b.iter(|| {
                let path = fresh();
                full.export(&path, Export::default()).unwrap();
                fs::remove_file(path).unwrap();
            });
        });
        group.bench_function(format!("{megabytes} MB, SQLite's backup"), |b| {
            b.iter(|| {
                let path = fresh();
                backup(full.path().unwrap(), &path);
                fs::remove_file(path).unwrap();
            });
        });
    }
    group.finish();
}

fn commands(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let mut group = c.benchmark_group("one command");
    for (name, database) in [("memory", Database::options().open().unwrap()), ("file", database(dir.path()))] {
        group.bench_function(format!("nothing, {name}"), |b| b.iter(|| database.begin(None).unwrap().commit().unwrap()));
        group.bench_function(format!("history row, {name}"), |b| {
            b.iter(|| {
                let t = database.begin(None).unwrap();
                let call = NewCall { name: "bash", parameters: Some("{}"), command: "echo hi", parent: None };
                let id = t.calls().begin(&call).unwrap();
                let outcome = Outcome { result: Some("{}"), stdout: b"hi\n", exit_code: Some(0), ..Outcome::default() };
                t.calls().finish(id, &outcome).unwrap();
                t.commit().unwrap();
            });
        });
    }
    group.bench_function("open in memory", |b| b.iter(|| Database::options().open().unwrap()));
    let database = Database::options().open().unwrap();
    let t = database.begin(None).unwrap();
    let deep = "/x".repeat(20);
    t.fs().create_dir_all(&deep).unwrap();
    group.bench_function("stat, 20 directories deep", |b| b.iter(|| t.fs().metadata(&deep).unwrap()));
    let real = dir.path().join(deep.trim_start_matches('/'));
    fs::create_dir_all(&real).unwrap();
    group.bench_function("stat, 20 directories deep, ext4", |b| b.iter(|| fs::metadata(&real).unwrap()));
    group.finish();
}

/// Returns the processor time of this thread, including the kernel's share. The entry in `/proc` is updated at the scheduler's
/// tick and whenever a thread yields; without yielding, the resolution would be 4 ms.
fn cpu() -> Duration {
    std::thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Number of rounds of each comparison.
const ROUNDS: u32 = 9;

/// Runs two functions alternately, each in its own place, and returns the median processor time of both.
fn compare(name: &str, bar: &str, mut ours: impl FnMut(u32) -> Duration, mut theirs: impl FnMut(u32) -> Duration) {
    let (mut a, mut b): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|round| (ours(round), theirs(round))).unzip();
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1000.0
    };
    let (a, b) = (median(&mut a), median(&mut b));
    println!("| {name} | {a:.1} | {b:.1} | {:.2} | {bar} |", a / b);
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = cpu();
    work();
    cpu() - start
}

/// Prints the performance targets as ratios within one run: processor time of the calling thread.
fn ratios() {
    let dir = tempfile::tempdir().unwrap();
    let (at, buffer) = (|name: String| dir.path().join(name), vec![9; STEP]);
    println!("\n| work | sqlite-fs ms | theirs ms | ratio | bar |\n|---|---|---|---|---|");
    compare(
        "create 10 000 files of 1 KiB, ext4",
        "1",
        |_| {
            let database = database(dir.path());
            timed(|| fill(&database))
        },
        |round| timed(|| fill_ext4(&at(format!("small{round}")))),
    );
    compare(
        "write 100 MB, ext4",
        "12",
        |_| {
            let database = database(dir.path());
            timed(|| write_large(&database, &buffer))
        },
        |round| timed(|| write_large_ext4(&at(format!("large{round}")), &buffer)),
    );
    let large = database(dir.path());
    write_large(&large, &buffer);
    // Another, later command: the log has been copied into the file.
    let path = large.path().unwrap().to_owned();
    drop(large);
    let large = Database::options().path(path).durability(Durability::CrashSafe).open().unwrap();
    let t = large.begin(None).unwrap();
    let (ino, _) = t.lookup(ROOT, "large").unwrap();
    let (mut mine, mut other) = (buffer.clone(), buffer.clone());
    let file = fs::File::open(at("large0".to_owned())).unwrap();
    compare(
        "read 100 MB, ext4",
        "3",
        |_| timed(|| (0..LARGE / STEP as u64).for_each(|i| assert_eq!(t.read(ino, i * STEP as u64, &mut mine), Ok(STEP)))),
        |_| timed(|| (0..LARGE / STEP as u64).for_each(|i| file.read_exact_at(&mut other, i * STEP as u64).unwrap())),
    );
    drop(t);
    for megabytes in [10u64, 100] {
        let full = filled(dir.path(), megabytes);
        compare(
            &format!("export of {megabytes} MB, SQLite's backup"),
            "1",
            |round| timed(|| full.export(&at(format!("export{megabytes}-{round}.db")), Export::default()).unwrap()),
            |round| timed(|| backup(full.path().unwrap(), &at(format!("backup{megabytes}-{round}.db")))),
        );
    }
}

criterion_group!(benches, small_files, large_file, snapshots, commands);

fn main() {
    if !std::env::args().any(|argument| argument == "ratios") {
        benches();
        Criterion::default().configure_from_args().final_summary();
    }
    ratios();
}
