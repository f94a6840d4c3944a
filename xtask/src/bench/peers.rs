//! `cargo xtask bench peers`: the same work in Sandlite and in similar tools.
//!
//! Other tools are in a separate directory outside the repository and are installed there by name on request (`--install`). A
//! tool that is missing, or that cannot run a workload, is listed; nothing is omitted silently.

mod chart;
mod neighbours;

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::{cargo, root, run, step};
use neighbours::{Neighbour, neighbours};

/// Default number of runs per figure, which is their median.
const ROUNDS: usize = 15;

/// A tool that takes this long runs only this many times.
const LONG: Duration = Duration::from_secs(1);
const ROUNDS_IF_LONG: usize = 5;

/// A workload in one of two languages.
struct Work {
    name: &'static str,
    language: &'static str,
    code: &'static str,
    prints: &'static str,
}

static WORK: [Work; 7] = [
    Work { name: "start", language: "bash", code: "echo hello", prints: "hello" },
    Work { name: "pipeline", language: "bash", code: "seq 20000 | sort -r | head -n 1", prints: "9999" },
    Work {
        name: "loop of 900",
        language: "bash",
        code: "n=0; for i in {1..900}; do n=$((n + i)); done; echo $n",
        prints: "405450",
    },
    Work {
        name: "100 programs",
        language: "bash",
        code: "for i in {1..100}; do basename /a/$i; done | tail -n 1",
        prints: "100",
    },
    Work { name: "start", language: "python", code: "print('hello')", prints: "hello" },
    Work { name: "json", language: "python", code: JSON, prints: "20000" },
    Work {
        name: "a million squares",
        language: "python",
        code: "print(sum(i * i for i in range(10**6)))",
        prints: "333332833333500000",
    },
];

const JSON: &str = "import json; print(len(json.loads(json.dumps([{'id': i} for i in range(20000)]))))";

/// The results of one tool: the median for each workload, `None` if it did not print the expected output.
struct Measured {
    neighbour: Neighbour,
    figures: Vec<(&'static Work, Option<Duration>)>,
}

/// Measures, prints, and writes `docs/benchmarks.md` and its chart.
pub(super) fn peers(args: &[String]) -> crate::Outcome {
    let value = |option: &str| args.iter().position(|arg| arg == option).and_then(|at| args.get(at + 1));
    let rounds = value("--rounds").map_or(Ok(ROUNDS), |text| text.parse())?;
    step("building sandlite");
    run(cargo().args(["build", "--release", "--quiet", "--workspace", "--bins"]), "it is part of Rust")?;
    let place = neighbours::place();
    if args.iter().any(|arg| arg == "--install") {
        neighbours::install(&place)?;
    }
    neighbours::write_drivers(&place)?;
    step(&format!("measuring, {rounds} rounds"));
    let (measured, missing) = measure_all(neighbours(&place), rounds);
    let mut page = page(&measured, &missing, rounds);
    if let Some(note) = value("--note") {
        let _ = write!(page, "\n{note}\n");
    }
    println!("{page}");
    let docs = root().join("docs");
    std::fs::create_dir_all(&docs)?;
    std::fs::write(docs.join("benchmarks.md"), page)?;
    std::fs::write(docs.join("benchmarks.svg"), chart::draw(&measured))?;
    step("wrote docs/benchmarks.md and docs/benchmarks.svg");
    Ok(())
}

// Round by round, so that load on the machine affects all of them alike.
fn measure_all(all: Vec<Neighbour>, rounds: usize) -> (Vec<Measured>, Vec<&'static str>) {
    let mut times: Vec<(Neighbour, Vec<Times>)> = Vec::new();
    let mut missing = Vec::new();
    for neighbour in all {
        let works = WORK.iter().filter(|work| work.language == neighbour.language);
        // The first time fills caches and does not count.
        let first: Vec<Times> = works.map(|work| Times::new(&neighbour, work)).collect();
        if first.iter().all(|times| times.first.is_none()) {
            eprintln!("    {} ({}): not installed", neighbour.name, neighbour.language);
            missing.push(neighbour.name);
        } else {
            eprintln!("    {} ({})", neighbour.name, neighbour.language);
            times.push((neighbour, first));
        }
    }
    for round in 0..rounds {
        for (neighbour, works) in &mut times {
            works.iter_mut().for_each(|times| times.again(neighbour, round));
        }
    }
    let measured = times.into_iter().map(|(neighbour, works)| Measured {
        neighbour,
        figures: works.into_iter().map(|times| (times.work, times.median())).collect(),
    });
    missing.dedup();
    (measured.collect(), missing)
}

struct Times {
    work: &'static Work,
    first: Option<Duration>,
    later: Vec<Duration>,
}

impl Times {
    fn new(neighbour: &Neighbour, work: &'static Work) -> Self {
        Self { work, first: once(neighbour, work), later: Vec::new() }
    }

    fn again(&mut self, neighbour: &Neighbour, round: usize) {
        let is_long = self.first.is_some_and(|first| first > LONG);
        if self.first.is_some() && (!is_long || round < ROUNDS_IF_LONG) {
            self.later.extend(once(neighbour, self.work));
        }
    }

    fn median(mut self) -> Option<Duration> {
        self.later.sort_unstable();
        self.later.get(self.later.len() / 2).copied()
    }
}

// One run; `None` if it does not print the expected output.
fn once(neighbour: &Neighbour, work: &Work) -> Option<Duration> {
    let (program, args) = neighbour.command.split_first()?;
    let begin = Instant::now();
    let output = Command::new(program).args(args).arg(work.code).current_dir("/").stdin(Stdio::null()).output().ok()?;
    let time = begin.elapsed();
    let printed = String::from_utf8_lossy(&output.stdout);
    // Some print the result as JSON.
    let is_right = printed.trim() == work.prints || printed.contains(&format!("\"{}\\n\"", work.prints));
    is_right.then_some(time)
}

fn page(measured: &[Measured], missing: &[&str], rounds: usize) -> String {
    let mut page = format!(
        "# Comparison with similar tools\n\n![chart](benchmarks.svg)\n\nWritten by `cargo xtask bench peers --install` on {}; run it on your machine. Each \
         figure is the median of {rounds} runs ({ROUNDS_IF_LONG}\nif one takes over a second) of a program started \
         from a terminal, including its own start-up. The entries of a row were measured\nalternately, round by round. The ratio after each time is relative to \
         the native program. In a program that keeps its sandbox open, a warm\n`echo` takes a tenth of a millisecond: [presets.md](presets.md).\n",
        machine()
    );
    for language in ["bash", "python"] {
        let of_language = || measured.iter().filter(|measured| measured.neighbour.language == language);
        let works: Vec<_> = WORK.iter().filter(|work| work.language == language).collect();
        let names: Vec<_> = works.iter().map(|work| work.name).collect();
        let native = of_language().find(|measured| measured.neighbour.isolation == neighbours::NONE);
        let columns = "---:|".repeat(works.len());
        let _ = write!(page, "\n## {language}\n\n| | isolation | {} |\n|---|---|{columns}\n", names.join(" | "));
        for one in of_language() {
            let cells: Vec<_> = (0..works.len()).map(|index| shown(one, native, index)).collect();
            let _ = writeln!(page, "| {} | {} | {} |", one.neighbour.name, one.neighbour.isolation, cells.join(" | "));
        }
        page.push('\n');
        for work in works {
            let _ = writeln!(page, "- {}: `{}`", work.name, work.code);
        }
    }
    page.push_str(NOTES);
    let native = measured.iter().filter(|measured| measured.neighbour.isolation == neighbours::NONE);
    let files: Vec<_> = native.filter_map(|measured| Some(format!("`{}`", measured.neighbour.command.first()?))).collect();
    let _ = writeln!(page, "The native programs are {}.", files.join(" and "));
    if !missing.is_empty() {
        let _ = write!(page, "\nNot measured because they are not installed: {}.\n", missing.join(", "));
    }
    page
}

const NOTES: &str = "
Not visible in the figures: Sandlite's include opening a database, a transaction and a history row; bubblewrap, native bash and
native CPython meter nothing; just-bash and bashkit interpret bash without processes; Pyodide starts a browser's Python in Node.
";

fn shown(one: &Measured, native: Option<&Measured>, index: usize) -> String {
    let time = |measured: &Measured| measured.figures.get(index).and_then(|(_, time)| *time);
    match (time(one), native.and_then(time)) {
        (None, _) => "fails".to_owned(),
        (Some(ours), Some(theirs)) if one.neighbour.isolation != neighbours::NONE => {
            format!("{} ({:.1}x)", millis(ours), ours.as_secs_f64() / theirs.as_secs_f64())
        }
        (Some(ours), _) => millis(ours),
    }
}

fn millis(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis < 100.0 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{} × {cores}", model.unwrap_or(std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The page is written by this program, not by hand: all of it that is not measured is here.
    #[test]
    fn the_page_has_the_text_of_the_benchmark() {
        let page = std::fs::read_to_string(root().join("docs/benchmarks.md")).unwrap();
        assert!(page.contains(NOTES), "docs/benchmarks.md lacks the notes: run `cargo xtask bench peers`");
        for work in &WORK {
            let line = format!("- {}: `{}`\n", work.name, work.code);
            assert!(page.contains(&line), "docs/benchmarks.md lacks {line:?}: run `cargo xtask bench peers`");
        }
        let header =
            "of a program started from a terminal, including its own start-up. The entries of a row were measured\nalternately";
        assert!(page.contains(header), "docs/benchmarks.md has another introduction: run `cargo xtask bench peers`");
    }
}
