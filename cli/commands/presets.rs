//! `sandlite presets`.

use runtime::Preset;

use crate::args::Presets;
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(args: &Presets, printer: &mut Printer) -> anyhow::Result<Code> {
    if printer.is_json() {
        let chosen = args.name.map_or(Preset::ALL.to_vec(), |name| vec![name]);
        let values = chosen.into_iter().map(|preset| (preset.name().to_owned(), limits(preset)));
        printer.json(&serde_json::Value::Object(values.collect()));
        return Ok(Code::Success);
    }
    if let Some(name) = args.name {
        printer.line(name.source().trim_end());
        return Ok(Code::Success);
    }
    let columns = Preset::ALL.map(|preset| preset.limits().entries());
    let [strict, normal, permissive] = &columns;
    printer.line(&format!("{:<16} {:>14} {:>15} {:>16}", "", "strict", "normal", "permissive"));
    for ((strict, normal), permissive) in strict.iter().zip(normal).zip(permissive) {
        printer.line(&format!("{:<16} {:>14} {:>15} {:>16}", strict.0.as_str(), strict.1, normal.1, permissive.1));
    }
    Ok(Code::Success)
}

fn limits(preset: Preset) -> serde_json::Value {
    let entries = preset.limits().entries().into_iter().map(|(name, value)| (name.as_str().to_owned(), value.into()));
    serde_json::Value::Object(entries.collect())
}
