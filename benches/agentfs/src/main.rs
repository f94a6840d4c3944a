//! The same work on `sqlite-fs`, on AgentFS's Rust SDK and on the machine's own filesystem, in one run.
//!
//! Processor time (the kernel's share included), the best of a few rounds in turns: the machine may be busy with other
//! things, ratios hold all the same. `cargo run --release [rounds]`. `agentfs-sdk` commits every call, ours one transaction per command; that
//! is the design, not an accident of the measurement.
//!
//! What is wanted is five times AgentFS's speed for small files and for sequential work. Writing 100 MB has a floor: plain SQLite,
//! inserting the same rows in one transaction and doing nothing else, is the row below it. For the caller the log's own thread
//! takes part of that away; counted for the whole process we are at that floor, about three times AgentFS, and no file
//! layer above SQLite gets below it. Reads of 4 KiB anywhere are neither small files nor sequential: a row of 64 KiB, which the other
//! workloads gain by, costs them a walk along its pages.

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
    /// Waits for what goes on after the answer.
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

/// What one piece of work took: on the thread that asked for it, and in the whole process. They differ where a thread of
/// the library goes on with something after the answer, as ours does with a long log.
#[derive(Clone, Copy)]
pub struct Took {
    caller: Duration,
    process: Duration,
}

const LONGEST: Took = Took { caller: Duration::MAX, process: Duration::MAX };

fn time_of(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Does all the work once and keeps the best times.
fn measure(best: &mut [Took], mut subject: Box<dyn Subject>) {
    for ((_, work), best) in WORK.iter().zip(best) {
        let (caller, process) = (time_of(ClockId::ThreadCPUTime), cpu());
        work(subject.as_mut());
        best.caller = best.caller.min(time_of(ClockId::ThreadCPUTime) - caller);
        subject.settle();
        best.process = best.process.min(cpu() - process);
    }
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(3, |count| count.parse().expect("a number of rounds"));
    let dir = tempfile::tempdir_in(".").expect("a temporary directory");
    let mut number = 0;
    let mut fresh = || {
        number += 1;
        let path = dir.path().join(number.to_string());
        std::fs::create_dir(&path).expect("a directory");
        path
    };
    let [mut ours, mut memory, mut machine, mut agentfs] = [(); 4].map(|()| vec![LONGEST; WORK.len()]);
    let mut plain = LONGEST;
    // In turns, so that all of them meet the same neighbours on the machine.
    for _ in 0..rounds {
        let path = fresh();
        measure(&mut ours, Box::new(ours::Ours::new(Some(&path.join("ours.db")))));
        measure(&mut memory, Box::new(ours::Ours::new(None)));
        measure(&mut machine, Box::new(machine::Machine::new(&path)));
        measure(&mut agentfs, Box::new(agentfs::AgentFs::new(&path.join("agentfs.db"))));
        let took = ours::plain_sqlite(&path.join("plain.db"));
        plain = Took { caller: plain.caller.min(took), process: plain.process.min(took) };
        std::fs::remove_dir_all(path).expect("the round's own directory");
    }
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!("Processor time, best of {rounds} rounds. \"Whole process\" has the log's own thread too.\n");
    println!(
        "| work | sqlite-fs ms | whole process ms | in memory ms | ext4 ms | agentfs-sdk ms | times faster | whole process | of ext4's time |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (index, (name, _)) in WORK.iter().enumerate() {
        let (o, p, m) = (ms(ours[index].caller), ms(ours[index].process), ms(memory[index].caller));
        let (e, a, b) = (ms(machine[index].caller), ms(agentfs[index].caller), ms(agentfs[index].process));
        println!("| {name} | {o:.1} | {p:.1} | {m:.1} | {e:.1} | {a:.1} | {:.1} | {:.1} | {:.2} |", a / o, b / p, o / e);
        if *name == "write 100 MB" {
            let s = ms(plain.caller);
            println!(
                "| the same rows in plain SQLite | {s:.1} | {s:.1} | | {e:.1} | {a:.1} | {:.1} | {:.1} | {:.2} |",
                a / s,
                b / s,
                s / e
            );
        }
    }
    ours::snapshots(dir.path());
}
