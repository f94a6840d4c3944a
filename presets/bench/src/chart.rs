//! The report as an SVG: one group of bars per workload, on a logarithmic scale, with colors that work on light and dark pages.

use std::fmt::Write as _;

use crate::report::{Cell, Report, time};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 64.0;
const BAR: f64 = 9.0;
const GAP: f64 = 12.0;

const STYLE: &str = "
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 } .small { font-size: 10px } .muted { fill: #57606a }
  .grid { stroke: #d0d7de } .c0 { fill: #2f81f7 } .c1 { fill: #1a9c6c } .c2 { fill: #c77d0a } .c3 { fill: #8b949e }
  .stopped { fill: #d1434b }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .muted { fill: #9198a1 } .grid { stroke: #3d444d }
    .c0 { fill: #58a6ff } .c1 { fill: #3fb982 } .c2 { fill: #e3a03c } .stopped { fill: #ff7b72 }
  }
";

/// Renders the chart.
pub(crate) fn draw(report: &Report) -> String {
    let columns: Vec<&str> = report.columns().collect();
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    let (rows, bars) = (report.rows.len() as f64, columns.len() as f64);
    let height = TOP + rows * (bars * BAR + GAP) + 40.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"The same work under each preset\">\n<style>{STYLE}</style>\n"
    );
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"10\" y=\"22\">The same work under each preset (median time, logarithmic)</text>"
    );
    let mut x = 10.0;
    for (index, name) in columns.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<rect class=\"c{index}\" x=\"{x}\" y=\"34\" width=\"10\" height=\"10\"/><text x=\"{}\" y=\"43\">{}</text>",
            x + 15.0,
            escape(name)
        );
        x += 105.0;
    }
    let _ = writeln!(svg, "<text class=\"stopped\" x=\"{x}\" y=\"43\">⊘ ended by a limit</text>");
    grid(&mut svg, height);
    let mut y = TOP;
    for row in &report.rows {
        let middle = y + bars * BAR / 2.0 + 4.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{middle:.0}\" text-anchor=\"end\">{} <tspan class=\"muted small\">{}</tspan></text>",
            LEFT - 8.0,
            escape(row.workload),
            row.language
        );
        for (index, cell) in row.cells.iter().enumerate() {
            bar(&mut svg, cell, index, y);
            y += BAR;
        }
        y += GAP;
    }
    let _ = writeln!(
        svg,
        "<text class=\"muted small\" x=\"10\" y=\"{:.0}\">{}; sandlite {}; {} runs each</text>",
        height - 8.0,
        escape(&report.machine),
        report.version,
        report.rounds
    );
    svg.push_str("</svg>\n");
    svg
}

// 0.1 ms to 1 s; shorter and longer bars are clipped.
fn length(micros: f64) -> f64 {
    (micros.max(1.0) / 50.0).log10().clamp(0.02, 4.3) / 4.3 * (WIDTH - LEFT - RIGHT)
}

fn grid(svg: &mut String, height: f64) {
    for (label, micros) in [("0.1 ms", 100.0), ("1 ms", 1e3), ("10 ms", 1e4), ("100 ms", 1e5), ("1 s", 1e6)] {
        let x = LEFT + length(micros);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{:.0}\"/><text class=\"muted small\" x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{label}</text>",
            TOP - 6.0,
            height - 36.0,
            height - 24.0
        );
    }
}

fn bar(svg: &mut String, cell: &Cell, index: usize, y: f64) {
    #[expect(clippy::cast_precision_loss, reason = "a length on paper")]
    let length = length(cell.micros as f64);
    let (label_x, label_y) = (LEFT + length + 4.0, y + BAR - 1.0);
    let _ = match &cell.stopped {
        Some(limit) => {
            writeln!(svg, "<text class=\"stopped small\" x=\"{:.0}\" y=\"{label_y:.0}\">⊘ {}</text>", LEFT + 4.0, escape(limit))
        }
        None => writeln!(
            svg,
            "<rect class=\"c{index}\" x=\"{LEFT}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"{}\"/><text class=\"muted small\" x=\"{label_x:.0}\" y=\"{label_y:.0}\">{}</text>",
            BAR - 1.0,
            time(cell.micros)
        ),
    };
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
