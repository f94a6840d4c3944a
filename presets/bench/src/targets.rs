//! The project's performance targets, each measured together with its reference in one run.

use std::process::{Command as HostCommand, Stdio};
use std::time::{Duration, Instant};

use runtime::{Command, Error, Host, Metering, Preset, Sandbox};

/// A target: what was measured, and whether it is met.
pub struct Target {
    what: &'static str,
    measured: String,
    promised: &'static str,
    holds: bool,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.holds { "✓" } else { "✗" };
        write!(f, "{mark} {:44} {:34} ({})", self.what, self.measured, self.promised)
    }
}

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Measures all targets; `bashkit` is the time of the same warm call in that crate, if known.
///
/// # Errors
///
/// Returns an error if a workload cannot be run.
pub fn targets(bashkit: Option<Duration>) -> Fallible<Vec<Target>> {
    let host = Host::builder().build()?;
    let warm = warm(&host)?;
    let mut targets = vec![first(&host)?, spawn(&host)?, throughput(&host)?];
    targets.extend(metering()?);
    targets.push(idle(&host)?);
    targets.extend(start()?);
    let against = bashkit.map(|theirs| {
        let ratio = ratio(warm, theirs);
        Target {
            what: "warm `echo hello`",
            measured: format!("{warm:.1?}, {ratio:.1} x bashkit"),
            promised: "at most 10 x",
            holds: ratio <= 10.0,
        }
    });
    // LocalSandbox 0.3.2 on a similar machine, where `bashkit` takes 0.01 ms.
    let alone = Target {
        what: "warm `echo hello`",
        measured: format!("{warm:.1?}"),
        promised: "1/5 of LocalSandbox's 1.05 ms",
        holds: warm.as_micros() <= 210,
    };
    targets.insert(0, against.unwrap_or(alone));
    Ok(targets)
}

fn sandbox(host: &Host) -> Result<Sandbox, Error> {
    Sandbox::builder().host(host).preset(Preset::Permissive).open()
}

fn median(times: usize, mut once: impl FnMut() -> Fallible<()>) -> Fallible<Duration> {
    let mut all = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        once()?;
        all.push(started.elapsed());
    }
    all.sort_unstable();
    Ok(all.get(times / 2).copied().unwrap_or_default())
}

fn ratio(ours: Duration, theirs: Duration) -> f64 {
    ours.as_secs_f64() / theirs.as_secs_f64()
}

fn run(sandbox: &Sandbox, script: &str) -> Fallible<()> {
    let output = sandbox.run(Command::bash(script))?;
    if output.status.success() { Ok(()) } else { Err(format!("{script}: {output:?}").into()) }
}

fn warm(host: &Host) -> Fallible<Duration> {
    let sandbox = sandbox(host)?;
    median(500, || run(&sandbox, "echo hello"))?;
    median(5_000, || run(&sandbox, "echo hello"))
}

fn first(host: &Host) -> Fallible<Target> {
    let time = median(100, || run(&sandbox(host)?, "echo hello"))?;
    let holds = time.as_micros() <= 8_100;
    Ok(Target {
        what: "a new sandbox and its first command",
        measured: format!("{time:.1?}"),
        promised: "1/10 of LocalSandbox's 81 ms",
        holds,
    })
}

fn spawn(host: &Host) -> Fallible<Target> {
    const PROGRAMS: u32 = 100;
    let sandbox = sandbox(host)?;
    let none = median(50, || run(&sandbox, "for ((i = 0; i < 100; i++)); do :; done"))?;
    let many = median(50, || run(&sandbox, "for ((i = 0; i < 100; i++)); do /bin/true; done"))?;
    let ours = many.saturating_sub(none) / PROGRAMS;
    let native = median(500, || Ok(HostCommand::new("/bin/true").status().map(drop)?))?;
    let ratio = ratio(ours, native);
    Ok(Target {
        what: "a utility, against fork + exec of /bin/true",
        measured: format!("{ours:.1?} against {native:.1?}: {ratio:.2}"),
        promised: "at most 1/5",
        holds: ratio <= 0.2,
    })
}

fn throughput(host: &Host) -> Fallible<Target> {
    const SCRIPT: &str = "head -c 1000000000 /dev/zero | cat | cat | wc -c";
    let sandbox = sandbox(host)?;
    let ours = median(3, || run(&sandbox, SCRIPT))?;
    let native = median(3, || Ok(HostCommand::new("bash").args(["-c", SCRIPT]).stdout(Stdio::null()).status().map(drop)?))?;
    let ratio = 1.0 / ratio(ours, native);
    Ok(Target {
        what: "1 GB through cat | cat | wc -c",
        measured: format!("{ours:.1?} against {native:.1?}: {ratio:.2}"),
        promised: "at least 1/3 of native",
        holds: ratio >= 1.0 / 3.0,
    })
}

// Three compute-bound guests, because the cost of limits depends on a program's calls and loops.
fn metering() -> Fallible<[Target; 2]> {
    const WORK: [(&str, &str); 3] = [
        ("awk", "awk 'BEGIN { for (i = 0; i < 300000; i++) s += i % 7; print s }'"),
        ("sha256sum", "head -c 16000000 /dev/zero | sha256sum"),
        ("Python", "python3 -c 'f = lambda n: n if n < 2 else f(n - 1) + f(n - 2); f(22)'"),
    ];
    let mut sandboxes = Vec::new();
    for metering in [Metering::Full, Metering::Time, Metering::None] {
        sandboxes.push(sandbox(&Host::builder().metering(metering).build()?)?);
    }
    let mut costs = Vec::new();
    for (name, work) in WORK {
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..7 {
            for (sandbox, times) in sandboxes.iter().zip(&mut times) {
                times.push(median(1, || run(sandbox, work))?);
            }
        }
        let [full, time, none] = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        });
        costs.push((name, ratio(full, none), ratio(time, none)));
    }
    let target = |what, promised, most: f64, cost: fn(&(&str, f64, f64)) -> f64| {
        let mean = costs.iter().map(|each| cost(each).ln()).sum::<f64>() / costs.len() as f64;
        let each: Vec<_> = costs.iter().map(|each| format!("{} {:.2}", each.0, cost(each))).collect();
        Target { what, measured: format!("{:.2} x ({})", mean.exp(), each.join(", ")), promised, holds: mean.exp() <= most }
    };
    Ok([
        target("fuel and epochs, on guests that compute", "at most 1.6 x", 1.6, |each| each.1),
        target("epochs alone", "at most 1.2 x", 1.2, |each| each.2),
    ])
}

fn idle(host: &Host) -> Fallible<Target> {
    const SANDBOXES: usize = 100;
    run(&sandbox(host)?, "echo hello")?;
    let before = resident()?;
    let mut held = Vec::new();
    for _ in 0..SANDBOXES {
        let sandbox = sandbox(host)?;
        run(&sandbox, "echo hello > file")?;
        held.push(sandbox);
    }
    let each = resident()?.saturating_sub(before) / SANDBOXES;
    drop(held);
    Ok(Target {
        what: "an idle sandbox of 100",
        measured: format!("{} KB", each >> 10),
        promised: "under 1 MB",
        holds: each < 1 << 20,
    })
}

fn resident() -> Fallible<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? << 10)
}

// Only if the command line was built into the same directory.
fn start() -> Fallible<Option<Target>> {
    let sandlite = std::env::current_exe()?.with_file_name("sandlite");
    if !sandlite.exists() {
        return Ok(None);
    }
    let quiet = |program: &std::ffi::OsStr, args: &[&str]| -> Fallible<()> {
        HostCommand::new(program).args(args).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        Ok(())
    };
    let ours = median(40, || quiet(sandlite.as_os_str(), &["bash", "-c", "echo hi"]))?;
    let native = median(40, || quiet("bash".as_ref(), &["-c", "echo hi"]))?;
    let ratio = ratio(ours, native);
    Ok(Some(Target {
        what: "`sandlite bash -c`, against bash",
        measured: format!("{ours:.1?} against {native:.1?}: {ratio:.1} x"),
        promised: "at most 3 x, and under 30 ms",
        holds: ratio <= 3.0 && ours.as_millis() < 30,
    }))
}
