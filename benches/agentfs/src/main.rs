//! The same work on `sqlite-fs`, on AgentFS's Rust SDK and on the machine's own filesystem, in one run.
//!
//! Processor time (the kernel's share included) and wall time, the medians of a few rounds in turns: the machine may be busy
//! with other things, ratios hold all the same. `cargo run --release [rounds]`. `agentfs-sdk` commits every call, ours one
//! transaction per command; that is the design, not an accident of the measurement.
//!
//! The target is five times AgentFS's speed for small files and for sequential work. Writing 100 MB has a floor: plain SQLite,
//! inserting the same rows in one transaction and doing nothing else, is the row below it. The caller is ahead of that floor,
//! for the log is written in longer stretches and copied by a separate thread; no file layer above SQLite gets the
//! whole process far below it. Reads of 4 KiB anywhere are neither small files nor sequential: a row of 64 KiB, which the
//! other workloads gain by, costs them a walk along its pages.

mod agentfs;
mod machine;
mod ours;

use std::time::{Duration, Instant};

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
    /// Waits for background work after the result.
    fn settle(&mut self) {}
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

fn cpu() -> Duration {
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

/// What one piece of work took: of the processor on the thread that asked for it and in the whole process, and by the
/// clock until the answer. The first two differ where a thread of the library continues working after the result, as ours
/// does with a long log.
#[derive(Clone, Copy)]
pub struct Took {
    pub caller: f64,
    pub process: f64,
    pub wall: f64,
}

/// In milliseconds.
fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The rounds of one piece of work.
#[derive(Default)]
pub struct Rounds(pub Vec<Took>);

impl Rounds {
    pub fn median(&self) -> Took {
        let of = |part: fn(&Took) -> f64| median(self.0.iter().map(part).collect());
        Took { caller: of(|took| took.caller), process: of(|took| took.process), wall: of(|took| took.wall) }
    }
}

fn time_of(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Times one piece of work; `settle` waits for background work after the result.
pub fn took<S: ?Sized>(subject: &mut S, work: impl FnOnce(&mut S), settle: impl FnOnce(&mut S)) -> Took {
    let (caller, process, start) = (time_of(ClockId::ThreadCPUTime), cpu(), Instant::now());
    work(subject);
    let (caller, wall) = (time_of(ClockId::ThreadCPUTime) - caller, start.elapsed());
    settle(subject);
    Took { caller: ms(caller), process: ms(cpu() - process), wall: ms(wall) }
}

/// Does all the work once.
fn measure(rounds: &mut [Rounds], mut subject: Box<dyn Subject>) {
    for ((_, work), rounds) in WORK.iter().zip(rounds) {
        rounds.0.push(took(subject.as_mut(), |subject| work(subject), |subject| subject.settle()));
    }
}

/// A row of the table: what we took, and others.
fn row(name: &str, ours: Took, memory: Option<Took>, machine: Took, agentfs: Took) {
    let memory = memory.map(|took| format!("{:.1}", took.caller)).unwrap_or_default();
    println!(
        "| {name} | {:.1} | {:.1} | {:.1} | {memory} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} |",
        ours.caller,
        ours.process,
        ours.wall,
        machine.caller,
        agentfs.caller,
        agentfs.caller / ours.caller,
        agentfs.process / ours.process,
        agentfs.wall / ours.wall,
        ours.caller / machine.caller,
    );
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(5, |count| count.parse().expect("a number of rounds"));
    let dir = tempfile::tempdir_in(".").expect("a temporary directory");
    let mut number = 0;
    let mut fresh = || {
        number += 1;
        let path = dir.path().join(number.to_string());
        std::fs::create_dir(&path).expect("a directory");
        path
    };
    let [mut ours, mut memory, mut machine, mut agentfs] =
        [(); 4].map(|()| WORK.iter().map(|_| Rounds::default()).collect::<Vec<_>>());
    let mut plain = Rounds::default();
    // In turns, so that all of them meet the same neighbours on the machine.
    for _ in 0..rounds {
        let path = fresh();
        measure(&mut ours, Box::new(ours::Ours::new(Some(&path.join("ours.db")))));
        measure(&mut memory, Box::new(ours::Ours::new(None)));
        measure(&mut machine, Box::new(machine::Machine::new(&path)));
        measure(&mut agentfs, Box::new(agentfs::AgentFs::new(&path.join("agentfs.db"))));
        plain.0.push(ours::plain_sqlite(&path.join("plain.db")));
        std::fs::remove_dir_all(path).expect("the round's own directory");
    }
    println!(
        "Milliseconds, medians of {rounds} rounds: processor time, but for \"wall\". \"Process\" has the log's own thread too.\n"
    );
    println!(
        "| work | sqlite-fs | process | wall | in memory | ext4 | agentfs-sdk | times faster | by process | by wall | of ext4's time |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (index, (name, _)) in WORK.iter().enumerate() {
        let (machine, agentfs) = (machine[index].median(), agentfs[index].median());
        row(name, ours[index].median(), Some(memory[index].median()), machine, agentfs);
        if *name == "write 100 MB" {
            row("the same rows in plain SQLite", plain.median(), None, machine, agentfs);
        }
    }
    ours::snapshots(dir.path());
}
