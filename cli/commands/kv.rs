//! `sandlite kv`.

use anyhow::Context as _;
use runtime::actions::{KvDeleted, KvNames, KvStored, KvValue};
use serde_json::{Value, json};

use crate::args::{Global, Kv, KvVerb};
use crate::exit::Code;
use crate::input;
use crate::printer::{Hinted, Printer};

pub(crate) fn run(global: &Global, args: &Kv, printer: &Printer) -> anyhow::Result<Code> {
    match &args.verb {
        KvVerb::Get { key } => get(global, key, printer),
        KvVerb::Set { key, value, text } => set(global, key, value, *text, printer),
        KvVerb::Delete { keys } => delete(global, keys, printer),
        KvVerb::Keys { prefix } => list(global, prefix, printer),
    }
}

fn get(global: &Global, key: &str, printer: &Printer) -> anyhow::Result<Code> {
    let value = super::looking_bound(global, printer)?.kv().get(key)?;
    match value {
        None => Ok(super::answered(Err(anyhow::anyhow!("key `{key}` does not exist")), printer)),
        Some(value) if printer.is_json() => {
            printer.json(&json!(KvValue::whole(key.to_owned(), value)));
            Ok(Code::Success)
        }
        Some(value) => {
            let text = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            printer.bytes(format!("{text}\n").as_bytes())?;
            Ok(Code::Success)
        }
    }
}

fn set(global: &Global, key: &str, value: &str, text: bool, printer: &Printer) -> anyhow::Result<Code> {
    let mut given = value.to_owned();
    if value == "-" {
        let read = input::bounded(std::io::stdin(), global.preset.limits().value, "standard input");
        given = String::from_utf8(read.map_err(too_large)?).context("standard input is not UTF-8")?;
    }
    let parsed = if text { None } else { serde_json::from_str(&given).ok() };
    let value = parsed.unwrap_or(Value::String(given));
    let version = super::stored(global, printer)?.kv().set(key, value)?;
    if printer.is_json() {
        printer.json(&json!(KvStored { key: key.to_owned(), version }));
    }
    Ok(Code::Success)
}

fn too_large(error: anyhow::Error) -> anyhow::Error {
    let hint = "the limit is `value`: store larger data in a file, or use a less restrictive preset";
    if error.source().is_some() { error } else { Hinted::error(error.to_string(), hint) }
}

fn delete(global: &Global, keys: &[String], printer: &Printer) -> anyhow::Result<Code> {
    let found = super::existing_bound(global, printer)?.kv().delete_all(keys)?;
    let deleted = KvDeleted::new(keys.to_vec(), &found);
    if printer.is_json() {
        printer.json(&json!(deleted));
    } else {
        for key in &deleted.missing {
            printer.error(&anyhow::anyhow!("key `{key}` does not exist"));
        }
    }
    Ok(if deleted.found { Code::Success } else { Code::Failure })
}

fn list(global: &Global, prefix: &str, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = super::looking_bound(global, printer)?;
    if printer.is_json() {
        printer.json(&json!(KvNames { keys: sandbox.kv().keys(prefix)?, truncated: false }));
        return Ok(Code::Success);
    }
    let mut after: Option<String> = None;
    loop {
        let page = sandbox.kv().keys_after(prefix, after.as_deref())?;
        page.keys.iter().for_each(|key| printer.line(&printer.foreign(key)));
        if !page.more || printer.is_unread() {
            return Ok(Code::Success);
        }
        after = page.keys.into_iter().next_back();
    }
}
