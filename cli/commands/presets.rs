//! `sandlite presets`.

use runtime::{LimitValue, Limits, Preset};
use serde_json::{Value, json};

use crate::args::{Chosen, Presets, PresetsVerb};
use crate::exit::Code;
use crate::printer::{Colour, Printer};

pub(crate) fn run(args: &Presets, printer: &Printer) -> anyhow::Result<Code> {
    match args.verb.as_ref().unwrap_or(&PresetsVerb::List) {
        PresetsVerb::List => list(printer),
        PresetsVerb::Show { preset } => show(preset, printer),
        PresetsVerb::Diff { from, to } => diff(from, to, printer),
    }
    Ok(Code::Success)
}

fn list(printer: &Printer) {
    if printer.is_json() {
        let all = Preset::ALL.into_iter().map(|preset| (preset.name().to_owned(), limits(&preset.limits())));
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

fn show(preset: &Chosen, printer: &Printer) {
    if printer.is_json() {
        printer.json(&json!({ "preset": preset.to_string(), "limits": limits(&preset.limits()) }));
    } else {
        printer.line(&preset.source());
    }
}

fn diff(from: &Chosen, to: &Chosen, printer: &Printer) {
    let (before, after) = (from.limits(), to.limits());
    if printer.is_json() {
        let (before, after) = (limits(&before), limits(&after));
        let changed = before.as_object().into_iter().flatten().filter(|(name, value)| after[name.as_str()] != **value);
        let changes =
            changed.map(|(name, value)| (name.clone(), json!({ from.to_string(): value, to.to_string(): after[name.as_str()] })));
        printer.json(&Value::Object(changes.collect()));
        return;
    }
    let (before, after) = (before.entries(), after.entries());
    for (before, after) in before.iter().zip(&after).filter(|(before, after)| before.1 != after.1) {
        printer.line(&format!("{:<16} {:>15}  ->  {}", before.0.as_str(), before.1, after.1));
    }
}

// Values are plain numbers: bytes, milliseconds where the name ends with the unit, and counts.
fn limits(limits: &Limits) -> Value {
    let entries = limits.values().into_iter().map(|(name, value)| match value {
        LimitValue::Count(value) | LimitValue::Bytes(value) => (name.as_str().to_owned(), value.into()),
        LimitValue::Milliseconds(value) => (format!("{name}_ms"), value.into()),
    });
    Value::Object(entries.collect())
}
