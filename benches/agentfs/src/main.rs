//! The same work on `sqlite-fs`, on AgentFS's Rust SDK and on the machine's own filesystem, in one run.
//!
//! Processor time of the whole process (the kernel's share included), the best of a few rounds: the machine may be busy
//! with other things, ratios hold all the same. `agentfs-sdk` commits every call, ours one transaction per command; that
//! is the design, not an accident of the measurement.

mod agentfs;
mod machine;
mod ours;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Small files in one directory, and their size.
pub const FILES: u32 = 10_000;
pub const SMALL: usize = 1024;
/// The large file, and how it is written and read.
pub const LARGE: u64 = 100 << 20;
pub const STEP: usize = 64 * 1024;
/// Reads of 4 KiB anywhere in the large file.
pub const RANDOM_READS: u64 = 5000;
/// Directories above the file whose attributes are asked for.
pub const DEPTH: usize = 20;

/// One system under comparison; every method is one command.
pub trait Subject {
    fn create(&mut self);
    fn stat(&mut self);
    fn read(&mut self);
    fn overwrite(&mut self);
    fn list(&mut self);
    fn deep_stat(&mut self);
    fn write_large(&mut self);
    fn read_large(&mut self);
    fn read_anywhere(&mut self);
    fn remove(&mut self);
}

/// The rounds' common order, with names for the table.
const WORK: &[(&str, fn(&mut dyn Subject))] = &[
    ("create 10 000 files of 1 KiB", |s| s.create()),
    ("stat 10 000", |s| s.stat()),
    ("read 10 000", |s| s.read()),
    ("overwrite 10 000", |s| s.overwrite()),
    ("list 10 000 names", |s| s.list()),
    ("1 000 stats, 20 directories deep", |s| s.deep_stat()),
    ("write 100 MB", |s| s.write_large()),
    ("read 100 MB", |s| s.read_large()),
    ("5 000 reads of 4 KiB anywhere", |s| s.read_anywhere()),
    ("remove 10 000 files", |s| s.remove()),
];

pub fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Offsets that are the same for everybody.
pub fn offsets() -> impl Iterator<Item = u64> {
    let mut state = 1u64;
    (0..RANDOM_READS).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % (LARGE - 4096)
    })
}

pub fn deep_path() -> String {
    "/x".repeat(DEPTH)
}

fn measure(rounds: usize, mut make: impl FnMut() -> Box<dyn Subject>) -> Vec<Duration> {
    let mut best = vec![Duration::MAX; WORK.len()];
    for _ in 0..rounds {
        let mut subject = make();
        for ((_, work), best) in WORK.iter().zip(&mut best) {
            let start = cpu();
            work(subject.as_mut());
            *best = (*best).min(cpu() - start);
        }
    }
    best
}

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut number = 0;
    let mut fresh = || {
        number += 1;
        let path = dir.path().join(number.to_string());
        std::fs::create_dir(&path).expect("a directory");
        path
    };
    let ours = measure(5, || Box::new(ours::Ours::new(Some(&fresh().join("ours.db")))));
    let memory = measure(5, || Box::new(ours::Ours::new(None)));
    let machine = measure(5, || Box::new(machine::Machine::new(&fresh())));
    let agentfs = measure(1, || Box::new(agentfs::AgentFs::new(&fresh().join("agentfs.db"))));
    println!("| work | sqlite-fs ms | in memory ms | ext4 ms | agentfs-sdk ms | times faster than agentfs-sdk | of ext4's time |");
    println!("|---|---|---|---|---|---|---|");
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    for (index, (name, _)) in WORK.iter().enumerate() {
        let (o, m, e, a) = (ms(ours[index]), ms(memory[index]), ms(machine[index]), ms(agentfs[index]));
        println!("| {name} | {o:.1} | {m:.1} | {e:.1} | {a:.1} | {:.1} | {:.2} |", a / o, o / e);
    }
    ours::snapshots(dir.path());
}
