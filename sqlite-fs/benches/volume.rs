//! The work of commands on the database and on the machine's own filesystem, side by side.
//!
//! `cargo bench -p sqlite-fs`; the comparison with AgentFS's own SDK is in `benches/agentfs`, which brings its engine.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
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
            |real| {
                fs::create_dir(&real).unwrap();
                for i in 0..FILES {
                    fs::write(real.join(format!("f{i}")), SMALL).unwrap();
                }
            },
            BatchSize::PerIteration,
        );
    });
    let filled = database(dir.path());
    fill(&filled);
    let real = dir.path().join("real1");
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
    let write = |bytes: &[u8]| {
        let t = database.begin(None).unwrap();
        let ino = t.fs().open(
            "/large",
            &sqlite_fs::path::Open { write: true, create: true, truncate: true, ..Default::default() },
            0o644,
        );
        let ino = ino.unwrap();
        (0..LARGE / STEP as u64).for_each(|step| assert_eq!(t.write(ino, step * STEP as u64, bytes), Ok(STEP)));
        t.commit().unwrap();
    };
    group.bench_function("write", |b| b.iter(|| write(&buffer)));
    let real = dir.path().join("large");
    group.bench_function("write, ext4", |b| {
        b.iter(|| {
            let file = fs::File::create(&real).unwrap();
            (0..LARGE / STEP as u64).for_each(|step| file.write_all_at(&buffer, step * STEP as u64).unwrap());
        });
    });
    write(&buffer);
    let t = database.begin(None).unwrap();
    let (ino, _) = t.lookup(ROOT, "large").unwrap();
    group.bench_function("read", |b| {
        b.iter(|| (0..LARGE / STEP as u64).for_each(|step| assert_eq!(t.read(ino, step * STEP as u64, &mut buffer), Ok(STEP))));
    });
    let file = fs::File::open(&real).unwrap();
    group.bench_function("read, ext4", |b| {
        b.iter(|| (0..LARGE / STEP as u64).for_each(|step| file.read_exact_at(&mut buffer, step * STEP as u64).unwrap()));
    });
    drop(t);
    let mut number = 0;
    group.bench_function("export", |b| {
        b.iter(|| {
            number += 1;
            let path = dir.path().join(format!("export{number}.db"));
            database.export(&path, Export::default()).unwrap();
            fs::remove_file(path).unwrap();
        });
    });
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
                let call = NewCall { name: "bash", parameters: Some("{}"), command: "echo hi" };
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
    group.finish();
}

criterion_group!(benches, small_files, large_file, commands);
criterion_main!(benches);
