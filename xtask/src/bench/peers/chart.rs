//! The table as a bar chart, on a logarithmic scale, with colors that work on light and dark pages.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Measured, WORK, millis};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 160.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 40.0;
const BAR: f64 = 14.0;
const GAP: f64 = 30.0;

const STYLE: &str = "
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 } .work { font-weight: 600 } .small { font-size: 11px } .muted { fill: #57606a }
  .grid { stroke: #d0d7de } .ours { fill: #2f81f7 } .native { fill: #8b949e } .theirs { fill: #c77d0a }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .muted { fill: #9198a1 } .grid { stroke: #3d444d } .ours { fill: #58a6ff } .theirs { fill: #e3a03c }
  }
";

/// Renders the chart.
pub(super) fn draw(measured: &[Measured]) -> String {
    let mut body = String::new();
    let mut y = TOP;
    for work in &WORK {
        y += GAP;
        let _ = writeln!(body, "<text class=\"work\" x=\"10\" y=\"{:.0}\">{}: {}</text>", y - 8.0, work.language, work.name);
        for one in measured {
            let time = one.figures.iter().find(|(known, _)| std::ptr::eq(*known, work)).and_then(|(_, time)| *time);
            if let Some(time) = time {
                bar(&mut body, one, time, y);
                y += BAR;
            }
        }
    }
    let height = y + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"The same work in Sandlite and similar tools\">\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"10\" y=\"22\">The same work, including the start of each program (logarithmic)</text>\n"
    );
    for (label, time) in [("1 ms", 1), ("10 ms", 10), ("100 ms", 100), ("1 s", 1_000), ("10 s", 10_000)] {
        let x = LEFT + length(Duration::from_millis(time));
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.0}\" y1=\"{TOP}\" x2=\"{x:.0}\" y2=\"{:.0}\"/>\
             <text class=\"small muted\" x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{label}</text>",
            height - 18.0,
            height - 5.0
        );
    }
    svg.push_str(&body);
    svg.push_str("</svg>\n");
    svg
}

fn bar(body: &mut String, one: &Measured, time: Duration, y: f64) {
    let class = match one.neighbour.isolation {
        super::neighbours::NONE => "native",
        _ if one.neighbour.name == "Sandlite" => "ours",
        _ => "theirs",
    };
    let length = length(time);
    let _ = writeln!(
        body,
        "<text class=\"small\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>\
         <rect class=\"{class}\" x=\"{LEFT}\" y=\"{:.0}\" width=\"{length:.0}\" height=\"{:.0}\"/>\
         <text class=\"small muted\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
        LEFT - 6.0,
        y + BAR - 4.0,
        one.neighbour.name,
        y,
        BAR - 3.0,
        LEFT + length + 5.0,
        y + BAR - 4.0,
        millis(time)
    );
}

// 1 ms to 10 s.
fn length(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).log10().clamp(0.02, 4.0) / 4.0 * (WIDTH - LEFT - RIGHT)
}
