//! Small SVG charts with one bar per run, oldest first.

use std::fmt::Write as _;

use runtime::Run;

use super::escape::{attribute, text};
use crate::time;

/// Maximum number of bars in a chart; the newest runs are shown.
pub(super) const BARS: usize = 60;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 72.0;

/// Renders time, compute and memory of the last runs.
pub(super) fn usage(runs: &[Run]) -> String {
    let measured: Vec<&Run> = runs.iter().filter(|run| run.usage.is_some()).take(BARS).collect();
    if measured.is_empty() {
        return "<p class=\"none\">No command has run yet.</p>\n".to_owned();
    }
    let of = |name: &'static str| move |run: &Run| run.usage.as_ref().and_then(|usage| usage[name].as_u64()).unwrap_or(0);
    let micros = |value: u64| time::span(std::time::Duration::from_micros(value));
    let mut charts = String::from("<div class=\"charts\">\n");
    charts += &chart("Wall clock", &measured, of("wall_us"), micros);
    charts += &chart("Compute", &measured, of("fuel"), fuel);
    charts += &chart("Peak memory", &measured, of("memory_peak"), time::size);
    charts + "</div>\n"
}

/// Formats an amount of fuel as `950`, `12.3 k`, `4.5 M` or `1.2 G`.
fn fuel(fuel: u64) -> String {
    match fuel {
        0..1_000 => fuel.to_string(),
        1_000..1_000_000 => format!("{}.{} k", fuel / 1_000, fuel / 100 % 10),
        1_000_000..1_000_000_000 => format!("{}.{} M", fuel / 1_000_000, fuel / 100_000 % 10),
        _ => format!("{}.{} G", fuel / 1_000_000_000, fuel / 100_000_000 % 10),
    }
}

fn chart(title: &str, runs: &[&Run], value: impl Fn(&Run) -> u64, shown: impl Fn(u64) -> String) -> String {
    let most = runs.iter().map(|run| value(run)).max().unwrap_or(0).max(1);
    let step = WIDTH / runs.len().max(12) as f64;
    let mut bars = String::new();
    for (index, run) in runs.iter().rev().enumerate() {
        let amount = value(run);
        let height = (amount as f64 / most as f64 * HEIGHT).max(1.5);
        let class = if run.exit_code == Some(0) { "ok" } else { "bad" };
        let label = format!("run {}: {}", run.id, shown(amount));
        let _ = writeln!(
            bars,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" rx=\"1.5\"><title>{}</title></rect>",
            index as f64 * step + 1.0,
            HEIGHT - height,
            (step - 2.0).max(1.0),
            text(&label),
        );
    }
    format!(
        "<figure><figcaption><b>{}</b> <span>up to {}</span></figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" preserveAspectRatio=\"none\">\n{bars}</svg></figure>\n",
        text(title),
        text(&shown(most)),
        attribute(title),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuel_is_short() {
        assert_eq!([fuel(950), fuel(12_345), fuel(4_560_000), fuel(1_200_000_000)], ["950", "12.3 k", "4.5 M", "1.2 G"]);
    }
}
