//! A sandbox as one HTML page: what ran, what it printed and changed, the files, the keys. Nothing is loaded from anywhere,
//! nothing runs (its own policy forbids scripts), and everything that a guest wrote is escaped.

mod chart;
mod escape;
mod files;
mod runs;

use runtime::{HistoryFilter, Run, Sandbox, Summary};

use crate::time;
use escape::{attribute, text};

/// Runs on a page at most, the newest.
const RUNS: usize = 500;

/// Keys on a page at most.
const KEYS: usize = 1_000;

/// Bytes of one value that are shown.
const VALUE_BYTES: usize = 4_096;

/// The page of a whole sandbox.
pub(crate) fn sandbox(sandbox: &Sandbox) -> anyhow::Result<String> {
    let summary = sandbox.info()?;
    let runs = sandbox.history_with(&HistoryFilter { limit: RUNS, output: true, ..HistoryFilter::default() })?;
    let files = files::Shown::new(sandbox, &runs)?;
    let name = summary.path.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| "in memory".to_owned());
    let mut body = header(&name, "sandbox");
    body.push_str(&cards(&summary));
    if !runs.is_empty() {
        body.push_str(&section("Usage", &chart::usage(&runs)));
    }
    body.push_str(&section("Timeline", &timeline(&runs, &files, summary.runs)));
    body.push_str(&section("Files", &files.tree()));
    body.push_str(&section("Keys", &keys(sandbox)?));
    Ok(page(&name, &body))
}

/// The page of one run.
pub(crate) fn run(sandbox: &Sandbox, run: &Run) -> anyhow::Result<String> {
    let files = files::Shown::new(sandbox, &sandbox.history_with(&HistoryFilter { limit: RUNS, ..HistoryFilter::default() })?)?;
    let title = format!("run {}", run.id);
    let mut body = header(&title, "run");
    body.push_str(&section("What happened", &runs::article(run, &files, true)));
    Ok(page(&title, &body))
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} · sandlite</title>\n<style>\n{}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n<footer>Made by sandlite {} on {} UTC.</footer>\n</body>\n</html>\n",
        text(title),
        include_str!("page/style.css"),
        env!("CARGO_PKG_VERSION"),
        time::moment(time::now()),
    )
}

fn header(name: &str, kind: &str) -> String {
    format!("<header><p class=\"kind\">sandlite {kind}</p><h1>{}</h1></header>\n", text(name))
}

fn section(title: &str, content: &str) -> String {
    let id = title.to_lowercase().replace(' ', "-");
    format!("<section id=\"{}\"><h2>{}</h2>\n{content}</section>\n", attribute(&id), text(title))
}

fn cards(summary: &Summary) -> String {
    let card = |value: String, name: &str, note: String| {
        format!("<div class=\"card\"><b>{}</b><span>{name}</span><small>{}</small></div>\n", text(&value), text(&note))
    };
    let used = summary.disk_used.saturating_mul(100).checked_div(summary.disk_allowed).unwrap_or(0);
    let mut cards = String::from("<div class=\"cards\">\n");
    let budget = |used: u64, allowed: u64| format!("{} of {}", time::size(used), time::size(allowed));
    cards += &card(summary.runs.to_string(), "runs", budget(summary.history_used, summary.history_allowed));
    cards += &card(summary.files.to_string(), "files", format!("{} directories", summary.directories));
    cards += &card(summary.keys.to_string(), "keys", budget(summary.keys_used, summary.keys_allowed));
    cards += &card(time::size(summary.disk_used), "in files", format!("{used} % of {}", time::size(summary.disk_allowed)));
    cards += &card(time::size(summary.names_used), "in names", format!("of {}", time::size(summary.names_allowed)));
    cards += &card(time::size(summary.sessions_used), "in sessions", format!("of {}", time::size(summary.sessions_allowed)));
    cards += &card(time::size(summary.database_bytes), "database", format!("AgentFS {}", summary.schema));
    cards + "</div>\n"
}

fn timeline(runs: &[Run], files: &files::Shown, all: u64) -> String {
    if runs.is_empty() {
        return "<p class=\"none\">Nothing has run here yet.</p>\n".to_owned();
    }
    let mut timeline: String = runs.iter().map(|run| runs::article(run, files, false)).collect();
    if all > runs.len() as u64 {
        timeline += &format!("<p class=\"none\">The newest {} of {all} runs.</p>\n", runs.len());
    }
    timeline
}

fn keys(sandbox: &Sandbox) -> anyhow::Result<String> {
    let kv = sandbox.kv();
    let keys = kv.keys("")?;
    if keys.is_empty() {
        return Ok("<p class=\"none\">There are none.</p>\n".to_owned());
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
    if keys.len() > KEYS {
        rows += &format!("<p class=\"none\">The first {KEYS} of {} keys.</p>\n", keys.len());
    }
    Ok(rows)
}
