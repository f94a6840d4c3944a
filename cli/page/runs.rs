//! One run: its command, status, output, usage and changes.

use std::time::Duration;

use runtime::Run;

use super::escape::{shortened, text};
use super::files::Shown;
use crate::commands::history::{changes, output_note};
use crate::time;

/// Maximum number of bytes shown of each stream.
const OUTPUT_BYTES: usize = 64 << 10;

/// Maximum number of bytes read of each stream for a sandbox's page, with room for the truncation note.
pub(super) const BEGINNING_BYTES: usize = OUTPUT_BYTES - 64;

/// Maximum number of changed files shown per run.
const CHANGES: usize = 200;

/// Returns the status text of a run and its CSS class.
pub(super) fn badge(run: &Run) -> (String, &'static str) {
    match run.exit_code {
        Some(0) => ("exit 0".to_owned(), "ok"),
        Some(code) => (format!("exit {code}"), "bad"),
        None if run.status == "success" => ("done".to_owned(), "quiet"),
        None => (run.status.to_owned(), "warn"),
    }
}

/// Renders one run, collapsed unless `open`.
pub(super) fn article(run: &Run, files: &Shown, open: bool) -> String {
    let (badge, class) = badge(run);
    let nanos = run.completed.map_or(0, |completed| completed.saturating_sub(run.started));
    let took = time::span(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)));
    let first = run.command.lines().next().unwrap_or_default();
    let more = if run.command.lines().nth(1).is_some() { " …" } else { "" };
    let mut html = format!(
        "<details class=\"run\" id=\"run-{id}\"{}><summary><span class=\"id\">{id}</span><span class=\"badge {class}\">{}</span>\
         <code>{}{more}</code><span class=\"when\">{} · {}</span></summary>\n<div class=\"inside\">\n",
        if open { " open" } else { "" },
        text(&badge),
        text(&shortened(first, 200).replace('\n', " ")),
        text(&time::moment(run.started)),
        text(&took),
        id = run.id,
    );
    if run.command.len() > 200 || !more.is_empty() || open {
        html += &format!("<pre class=\"command\">{}</pre>\n", text(&shortened(&run.command, OUTPUT_BYTES)));
    }
    if let Some(limit) = &run.limit {
        html += &format!("<p class=\"limit\">{}</p>\n", text(limit));
    }
    if let Some(error) = &run.error {
        html += &format!("<p class=\"limit\">{}</p>\n", text(error));
    }
    if let Some(note) = output_note(run) {
        html += &format!("<p class=\"limit\">output {}</p>\n", text(note));
    }
    for (title, bytes) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        if !bytes.is_empty() {
            let shown = shortened(&String::from_utf8_lossy(bytes), OUTPUT_BYTES);
            html += &format!("<h3>{title}</h3><pre class=\"{title}\">{}</pre>\n", text(&shown));
        }
    }
    html += &changed(run, files);
    html += &usage(run);
    html + "</div></details>\n"
}

fn usage(run: &Run) -> String {
    let Some(usage) = &run.usage else { return String::new() };
    let number = |name: &str| usage[name].as_u64().unwrap_or(0);
    format!(
        "<p class=\"usage\">{} · {} fuel · {} memory · {} processes · {} read · {} written</p>\n",
        text(&run.name),
        number("fuel"),
        time::size(number("memory_peak")),
        number("processes"),
        time::size(number("bytes_read")),
        time::size(number("bytes_written")),
    )
}

fn changed(run: &Run, files: &Shown) -> String {
    let all: Vec<_> = changes(run).collect();
    if all.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h3>changes</h3><ul class=\"changes\">\n");
    for change in all.iter().take(CHANGES) {
        let word = |key: &str| change[key].as_str().unwrap_or_default();
        let (kind, path) = (word("kind"), word("path"));
        let from = change["from"].as_str().map(|from| format!(" <small>from <code>{}</code></small>", text(from)));
        let size = change["size"].as_u64().filter(|_| word("type") == "file").map(time::size).unwrap_or_default();
        let title = format!(
            "<span class=\"change {}\">{}</span> <code>{}</code>{} <small>{size}</small>",
            if ["created", "modified", "deleted", "renamed", "attributes"].contains(&kind) { kind } else { "modified" },
            text(kind),
            text(path),
            from.unwrap_or_default(),
        );
        let diff = change["diff"].as_str().map(str::to_owned).or_else(|| files.added_by(run.id, kind, path));
        html += &match diff {
            Some(diff) => format!("<li><details><summary>{title}</summary>{}</details></li>\n", diff_html(&diff)),
            None => format!("<li>{title}</li>\n"),
        };
    }
    if all.len() > CHANGES {
        html += &format!("<li>… and {} more</li>\n", all.len() - CHANGES);
    }
    html + "</ul>\n"
}

pub(super) fn diff_html(diff: &str) -> String {
    let lines = shortened(diff, OUTPUT_BYTES);
    let lines = lines.lines().map(|line| {
        let class = match line.as_bytes().first() {
            Some(b'+') => "add",
            Some(b'-') => "del",
            Some(b'@') => "at",
            _ => "same",
        };
        format!("<span class=\"{class}\">{}</span>\n", text(line))
    });
    format!("<pre class=\"diff\">{}</pre>", lines.collect::<String>())
}
