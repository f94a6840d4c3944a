//! The measurements as a table for a terminal, as JSON for programs and as a chart for the documentation.

use std::fmt::Write as _;

/// The column whose engine meters nothing.
pub(crate) const NO_LIMITS: &str = "no limits";

/// Every workload under every column.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// The machine.
    pub machine: String,
    /// The version of Sandlite.
    pub version: &'static str,
    /// The number of runs per figure, which is their median.
    pub rounds: usize,
    /// The workloads.
    pub rows: Vec<Row>,
}

/// One workload.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Row {
    /// `bash` or `python`.
    pub language: &'static str,
    /// The name of the workload.
    pub workload: &'static str,
    /// One column per preset, strictest first, then one without metering.
    pub cells: Vec<Cell>,
}

/// One workload under one preset.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Cell {
    /// The preset, or `no limits`.
    pub column: &'static str,
    /// Median time in microseconds.
    pub micros: u64,
    /// Fuel used.
    pub fuel: u64,
    /// Peak memory, in bytes.
    pub memory: u64,
    /// The limit that ended the workload, if any.
    pub stopped: Option<String>,
}

impl Row {
    /// Returns the overhead of limits: the time under the most permissive preset relative to the time without limits, if both
    /// completed.
    #[must_use]
    pub fn overhead(&self) -> Option<f64> {
        let mut ended = self.cells.iter().filter(|cell| cell.stopped.is_none());
        let free = ended.clone().find(|cell| cell.column == NO_LIMITS)?;
        let widest = ended.rfind(|cell| cell.column != NO_LIMITS)?;
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        Some(widest.micros as f64 / free.micros.max(1) as f64)
    }
}

impl Report {
    /// Formats a Markdown table that is readable on a terminal.
    #[must_use]
    pub fn table(&self) -> String {
        let header: Vec<String> =
            ["", "workload"].into_iter().chain(self.columns()).chain(["overhead", "fuel", "memory"]).map(str::to_owned).collect();
        let mut lines = vec![header];
        for row in &self.rows {
            let mut line = vec![row.language.to_owned(), row.workload.to_owned()];
            line.extend(row.cells.iter().map(cell_text));
            line.push(row.overhead().map_or_else(String::new, |overhead| format!("{overhead:.2}x")));
            // The actual need, not an amount cut off by a limit.
            let most = row.cells.iter().filter(|cell| cell.stopped.is_none());
            line.push(most.clone().map(|cell| cell.fuel).max().map_or_else(String::new, millions));
            line.push(most.map(|cell| cell.memory).max().map_or_else(String::new, megabytes));
            lines.push(line);
        }
        let mut text = layout(&lines);
        let _ = writeln!(
            text,
            "\n{}; sandlite {}; median of {} runs each, in memory, warm. `⊘`: ended by that limit; `exit 1`: a memory allocation failed. Overhead: time with the most permissive preset relative to no limits.",
            self.machine, self.version, self.rounds
        );
        text
    }

    /// Formats the report as JSON.
    ///
    /// # Panics
    ///
    /// Never: every value of a report can be represented in JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    /// Renders a chart for light and dark pages.
    #[must_use]
    pub fn svg(&self) -> String {
        crate::chart::draw(self)
    }

    /// Returns the names of the columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.rows.first().into_iter().flat_map(|row| &row.cells).map(|cell| cell.column)
    }
}

fn cell_text(cell: &Cell) -> String {
    match &cell.stopped {
        Some(limit) => format!("⊘ {limit}"),
        None => time(cell.micros),
    }
}

/// Formats a time with three digits.
pub(crate) fn time(micros: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let millis = micros as f64 / 1e3;
    match micros {
        0..10_000 => format!("{millis:.2} ms"),
        10_000..100_000 => format!("{millis:.1} ms"),
        _ => format!("{millis:.0} ms"),
    }
}

fn millions(fuel: u64) -> String {
    format!("{}.{} M", fuel / 1_000_000, fuel / 100_000 % 10)
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1 << 20))
}

fn layout(lines: &[Vec<String>]) -> String {
    let width =
        |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|text| text.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines.first().map_or(0, Vec::len)).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let _ = if column < 2 { write!(text, "| {cell:width$} ") } else { write!(text, "| {cell:>width$} ") };
        }
        text.push_str("|\n");
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let _ = write!(text, "|-{}{}", "-".repeat(*width), if column < 2 { "-" } else { ":" });
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let cell = |column, micros, stopped: Option<&str>| Cell {
            column,
            micros,
            fuel: 2_500_000,
            memory: 3 << 20,
            stopped: stopped.map(str::to_owned),
        };
        let cells = vec![cell("strict", 90, Some("loop_iterations")), cell("normal", 1_500, None), cell(NO_LIMITS, 1_200, None)];
        Report {
            machine: "a machine".to_owned(),
            version: "0",
            rounds: 3,
            rows: vec![Row { language: "bash", workload: "<loop>", cells }],
        }
    }

    #[test]
    fn the_table_names_the_limit_that_ended_a_run() {
        let table = report().table();
        assert!(
            table.starts_with("|      | workload |            strict |  normal | no limits | overhead |  fuel | memory |\n"),
            "{table}"
        );
        assert!(
            table.contains("| bash | <loop>   | ⊘ loop_iterations | 1.50 ms |   1.20 ms |    1.25x | 2.5 M |   3 MB |\n"),
            "{table}"
        );
    }

    #[test]
    fn the_chart_is_well_formed_and_escapes_names() {
        let svg = report().svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("&lt;loop&gt;") && !svg.contains("<loop>"));
        assert!(svg.contains("prefers-color-scheme: dark"));
    }
}
