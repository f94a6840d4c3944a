//! The measurement: workloads and columns alternate, so that load on the machine affects all columns alike.

use std::time::{Duration, Instant};

use runtime::{Error, Host, Output, Preset, Sandbox};

use crate::report::{Cell, NO_LIMITS, Report, Row};
use crate::workloads::{self, Workload};

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few seconds.
    Quick,
    /// A minute or two, for published figures.
    Thorough,
}

impl Effort {
    fn rounds(self) -> usize {
        match self {
            Self::Quick => 5,
            Self::Thorough => 25,
        }
    }
}

struct Column {
    name: &'static str,
    sandbox: Sandbox,
}

/// Runs every workload under every preset, and without metering. Calls `progress` at each step.
///
/// # Errors
///
/// Returns an error only if the host fails; a workload that reaches a limit is part of the report.
pub fn presets(effort: Effort, mut progress: impl FnMut(&str)) -> Result<Report, Error> {
    progress("compiling the guests for this machine, with limits and without (once)");
    let columns = columns()?;
    columns.iter().try_for_each(warm)?;
    let mut rows = Vec::new();
    for workload in &workloads::ALL {
        progress(&format!("{}: {}", workload.language, workload.name));
        let cells = row(workload, &columns, effort)?;
        rows.push(Row { language: workload.language, workload: workload.name, cells });
    }
    Ok(Report { machine: machine(), version: env!("CARGO_PKG_VERSION"), rounds: effort.rounds(), rows })
}

fn columns() -> Result<Vec<Column>, Error> {
    let host = Host::builder().build()?;
    let mut columns = Vec::new();
    for preset in Preset::ALL {
        columns.push(Column { name: preset.name(), sandbox: Sandbox::builder().host(&host).preset(preset).open()? });
    }
    let host = Host::builder().metering(runtime::Metering::None).build()?;
    let sandbox = Sandbox::builder().host(&host).preset(Preset::Permissive).open()?;
    columns.push(Column { name: NO_LIMITS, sandbox });
    Ok(columns)
}

// Compile both guests before measuring.
fn warm(column: &Column) -> Result<(), Error> {
    column.sandbox.bash("true")?;
    column.sandbox.python("")?;
    Ok(())
}

fn row(workload: &Workload, columns: &[Column], effort: Effort) -> Result<Vec<Cell>, Error> {
    let mut times = vec![Vec::new(); columns.len()];
    let mut last: Vec<Option<Output>> = vec![None; columns.len()];
    // The first round is a warm-up and does not count.
    for round in 0..=effort.rounds() {
        for (index, column) in columns.iter().enumerate() {
            let started = Instant::now();
            let output = column.sandbox.run(workload.command())?;
            let time = started.elapsed();
            if round > 0 {
                times[index].push(time);
            }
            last[index] = Some(output);
        }
    }
    Ok(columns.iter().zip(times).zip(last).filter_map(|((column, times), output)| Some(cell(column, times, &output?))).collect())
}

fn cell(column: &Column, mut times: Vec<Duration>, output: &Output) -> Cell {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let stopped = match output.status.limit() {
        Some(reached) => Some(reached.limit.as_str().to_owned()),
        None if output.status.success() => None,
        None => Some(format!("exit {}", output.status.code())),
    };
    Cell {
        column: column.name,
        micros: u64::try_from(median.as_micros()).unwrap_or(u64::MAX),
        fuel: output.usage.fuel,
        memory: output.usage.memory_peak,
        stopped,
    }
}

// The kernel's name of the processor and the number of cores, because figures depend on the machine.
fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    format!("{} × {cpus}", model.unwrap_or(std::env::consts::ARCH))
}
