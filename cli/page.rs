//! A sandbox as one HTML page: runs with output and changes, versions, files and keys. The page loads nothing, its content
//! security policy forbids scripts, and everything that a guest wrote is escaped.

mod chart;
mod escape;
mod files;
mod runs;
mod versions;

use std::io::Write;

use runtime::{HistoryFilter, Run, Sandbox, Summary};

use crate::commands::history::each_run;
use crate::time;
use escape::{attribute, text};

/// Maximum number of runs on a page; the newest are shown.
const RUNS: usize = 500;

/// Maximum number of keys on a page.
const KEYS: usize = 1_000;

/// Maximum number of bytes shown of one value.
const VALUE_BYTES: usize = 4_096;

/// Writes the page of a whole sandbox. Runs are rendered one by one because their output can exceed the available memory.
pub(crate) fn sandbox(sandbox: &Sandbox, out: &mut dyn Write) -> anyhow::Result<()> {
    let summary = sandbox.info()?;
    let newest = HistoryFilter { limit: RUNS, ..HistoryFilter::default() };
    let mut files = files::Shown::new(sandbox)?;
    let mut measured = Vec::new();
    each_run(sandbox, &newest, |run| {
        files.note(run);
        if run.usage.is_some() && measured.len() < chart::BARS {
            measured.push(Run { changes: None, parameters: None, command: String::new(), ..run.clone() });
        }
        Ok(())
    })?;
    let name = summary.path.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| "in memory".to_owned());
    out.write_all(head(&name).as_bytes())?;
    out.write_all(header(&name, "sandbox").as_bytes())?;
    out.write_all(cards(&summary).as_bytes())?;
    if summary.runs > 0 {
        out.write_all(section("Usage", &chart::usage(&measured)).as_bytes())?;
    }
    if let Some(versions) = versions::section(sandbox)? {
        out.write_all(section("Versions", &versions).as_bytes())?;
    }
    out.write_all(section_start("Timeline").as_bytes())?;
    timeline(sandbox, &newest, &files, summary.runs, out)?;
    out.write_all(SECTION_END.as_bytes())?;
    out.write_all(section("Files", &files.tree()).as_bytes())?;
    out.write_all(section("Keys", &keys(sandbox)?).as_bytes())?;
    Ok(out.write_all(foot().as_bytes())?)
}

/// Writes the page of one run.
pub(crate) fn run(sandbox: &Sandbox, run: &Run, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut files = files::Shown::new(sandbox)?;
    each_run(sandbox, &HistoryFilter { limit: RUNS, ..HistoryFilter::default() }, |run| {
        files.note(run);
        Ok(())
    })?;
    let title = format!("run {}", run.id);
    out.write_all(head(&title).as_bytes())?;
    out.write_all(header(&title, "run").as_bytes())?;
    out.write_all(section("What happened", &runs::article(run, &files, true)).as_bytes())?;
    Ok(out.write_all(foot().as_bytes())?)
}

fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} · sandlite</title>\n<style>\n{}</style>\n</head>\n\
         <body>\n<main>\n",
        text(title),
        include_str!("page/style.css"),
    )
}

fn foot() -> String {
    let (version, moment) = (env!("CARGO_PKG_VERSION"), time::moment(time::now()));
    format!("</main>\n<footer>Made by sandlite {version} on {moment} UTC.</footer>\n</body>\n</html>\n")
}

fn header(name: &str, kind: &str) -> String {
    format!("<header><p class=\"kind\">sandlite {kind}</p><h1>{}</h1></header>\n", text(name))
}

fn section(title: &str, content: &str) -> String {
    format!("{}{content}{SECTION_END}", section_start(title))
}

fn section_start(title: &str) -> String {
    let id = title.to_lowercase().replace(' ', "-");
    format!("<section id=\"{}\"><h2>{}</h2>\n", attribute(&id), text(title))
}

const SECTION_END: &str = "</section>\n";

fn cards(summary: &Summary) -> String {
    let card = |value: String, name: &str, note: String| {
        format!("<div class=\"card\"><b>{}</b><span>{name}</span><small>{}</small></div>\n", text(&value), text(&note))
    };
    let used = summary.disk_used.saturating_mul(100).checked_div(summary.disk_allowed).unwrap_or(0);
    let mut cards = String::from("<div class=\"cards\">\n");
    let budget = |used: u64, allowed: u64| format!("{} of {}", time::size(used), time::size(allowed));
    cards += &card(summary.runs.to_string(), "runs", budget(summary.history_used, summary.history_allowed));
    cards += &card(summary.versions.to_string(), "versions", budget(summary.past_used, summary.past_allowed));
    cards += &card(summary.files.to_string(), "files", format!("{} directories", summary.directories));
    cards += &card(summary.keys.to_string(), "keys", budget(summary.keys_used, summary.keys_allowed));
    cards += &card(time::size(summary.disk_used), "in files", format!("{used} % of {}", time::size(summary.disk_allowed)));
    cards += &card(time::size(summary.names_used), "in names", format!("of {}", time::size(summary.names_allowed)));
    cards += &card(time::size(summary.sessions_used), "in sessions", format!("of {}", time::size(summary.sessions_allowed)));
    cards += &card(time::size(summary.database_bytes), "database", format!("AgentFS {}", summary.schema));
    cards + "</div>\n"
}

fn timeline(
    sandbox: &Sandbox,
    newest: &HistoryFilter,
    files: &files::Shown,
    all: u64,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut shown = 0;
    each_run(sandbox, newest, |run| {
        let [stdout, stderr] = sandbox.history_output(run.id, runs::BEGINNING_BYTES)?.map(beginning);
        shown += 1;
        Ok(out.write_all(runs::article(&Run { stdout, stderr, ..run.clone() }, files, false).as_bytes())?)
    })?;
    if shown == 0 {
        out.write_all(b"<p class=\"none\">No runs yet.</p>\n")?;
    }
    if all > shown {
        writeln!(out, "<p class=\"none\">The newest {shown} of {all} runs.</p>")?;
    }
    Ok(())
}

/// Returns the beginning of a stream, with a note if it is truncated.
fn beginning((mut bytes, length): (Vec<u8>, u64)) -> Vec<u8> {
    let more = length.saturating_sub(bytes.len() as u64);
    if more > 0 {
        bytes.extend_from_slice(format!("\n… {more} more bytes").as_bytes());
    }
    bytes
}

fn keys(sandbox: &Sandbox) -> anyhow::Result<String> {
    let kv = sandbox.kv();
    let page = kv.keys_after("", None)?;
    let keys = page.keys;
    if keys.is_empty() {
        return Ok("<p class=\"none\">None.</p>\n".to_owned());
    }
    let mut rows = String::from("<table class=\"keys\"><thead><tr><th>key</th><th>value</th></tr></thead><tbody>\n");
    for key in keys.iter().take(KEYS) {
        let entry = kv.entry(key)?;
        let value = match entry {
            Some(entry) if entry.secret => "<i>secret</i>".to_owned(),
            Some(entry) => format!("<code>{}</code>", text(&escape::shortened(&entry.value.to_string(), VALUE_BYTES))),
            None => String::new(),
        };
        rows += &format!("<tr><td><code>{}</code></td><td>{value}</td></tr>\n", text(key));
    }
    rows += "</tbody></table>\n";
    if keys.len() > KEYS || page.more {
        rows += &format!("<p class=\"none\">Only the first {} keys.</p>\n", keys.len().min(KEYS));
    }
    Ok(rows)
}
