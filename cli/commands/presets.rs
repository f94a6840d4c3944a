//! `sandlite presets`.

use runtime::Preset;
use serde_json::{Value, json};

use crate::args::{Presets, PresetsVerb};
use crate::exit::Code;
use crate::printer::{Colour, Printer};

pub(crate) fn run(args: &Presets, printer: &Printer) -> anyhow::Result<Code> {
    match args.verb.as_ref().unwrap_or(&PresetsVerb::List) {
        PresetsVerb::List => list(printer),
        PresetsVerb::Show { preset } => show(*preset, printer),
        PresetsVerb::Diff { from, to } => diff(*from, *to, printer),
    }
    Ok(Code::Success)
}

fn list(printer: &Printer) {
    if printer.is_json() {
        let all = Preset::ALL.into_iter().map(|preset| (preset.name().to_owned(), limits(preset)));
        printer.json(&Value::Object(all.collect()));
        return;
    }
    let [strict, normal, permissive] = Preset::ALL.map(|preset| preset.limits().entries());
    printer.line(&printer.paint(Colour::Bold, row("", ["strict", "normal", "permissive"])));
    for ((strict, normal), permissive) in strict.iter().zip(&normal).zip(&permissive) {
        printer.line(&row(strict.0.as_str(), [&strict.1, &normal.1, &permissive.1]));
    }
}

fn row(name: &str, [strict, normal, permissive]: [&str; 3]) -> String {
    format!("{name:<16} {strict:>14} {normal:>15} {permissive:>16}")
}

fn show(preset: Preset, printer: &Printer) {
    if printer.is_json() {
        printer.json(&json!({ "preset": preset.name(), "limits": limits(preset) }));
    } else {
        printer.line(preset.source().trim_end());
    }
}

fn diff(from: Preset, to: Preset, printer: &Printer) {
    let (before, after) = (from.limits().entries(), to.limits().entries());
    let changed: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before.1 != after.1).collect();
    if printer.is_json() {
        let changes = changed.iter().map(|(before, after)| {
            let name = before.0.as_str().to_owned();
            (name, json!({ from.name(): before.1, to.name(): after.1 }))
        });
        printer.json(&Value::Object(changes.collect()));
        return;
    }
    for (before, after) in changed {
        printer.line(&format!("{:<16} {:>15}  ->  {}", before.0.as_str(), before.1, after.1));
    }
}

fn limits(preset: Preset) -> Value {
    let entries = preset.limits().entries().into_iter().map(|(name, value)| (name.as_str().to_owned(), value.into()));
    Value::Object(entries.collect())
}
