//! The versions: a slider, the tree at each version, and the changes of each.
//!
//! The page has no scripts: the slider is a group of radio buttons, and the style sheet shows the elements of the selected one.
//! The tree has one row for each state of a path, with the range of versions in which the path had that state.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use runtime::{Difference, DifferenceKind, FileType, Found, LoggedVersion, Sandbox, ValueDifference, ValueKind, VersionKind};

use super::escape::{attribute, shortened, text};
use super::runs::{badge, diff_html};
use crate::time;

/// Maximum number of versions on a page; the newest are shown.
const VERSIONS: usize = 200;

/// Maximum number of rows in the tree, for all versions together.
const ROWS: usize = 5_000;

/// Maximum number of changed files listed per version, and of those whose lines are shown.
const CHANGES: usize = 100;

/// Maximum size of the diff of one file, and of all diffs, in bytes.
const DIFF_BYTES: usize = 16 << 10;
const ALL_DIFF_BYTES: usize = 2 << 20;

/// A path in one state, for a range of versions.
struct Row {
    depth: usize,
    kind: FileType,
    size: u64,
    from: usize,
    to: Option<usize>,
    /// The run that produced the state.
    run: Option<i64>,
}

/// All states of all paths, in tree order.
#[derive(Default)]
struct Rows {
    rows: BTreeMap<Vec<String>, Vec<Row>>,
    count: usize,
    left_out: usize,
}

impl Rows {
    fn begin(&mut self, path: &str, kind: FileType, size: u64, from: usize, run: Option<i64>) {
        if self.count >= ROWS {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        let names: Vec<String> = path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let depth = names.len().saturating_sub(1);
        self.rows.entry(names).or_default().push(Row { depth, kind, size, from, to: None, run });
    }

    fn end(&mut self, path: &str, at: usize) {
        let names: Vec<String> = path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let last = self.rows.get_mut(&names).and_then(|rows| rows.last_mut());
        if let Some(row) = last.filter(|row| row.to.is_none()) {
            row.to = Some(at.saturating_sub(1));
        }
    }

    fn change(&mut self, one: &Difference, kind: FileType, at: usize, run: Option<i64>) {
        let is_kept = one.is_directory && matches!(one.kind, DifferenceKind::Mode) || matches!(one.kind, DifferenceKind::Links);
        if is_kept {
            return;
        }
        self.end(&one.path, at);
        if one.kind != DifferenceKind::Deleted {
            self.begin(&one.path, kind, one.new_size, at, run);
        }
    }

    fn html(&self) -> String {
        let mut html = String::from("<div class=\"states\">\n");
        for (names, rows) in &self.rows {
            for row in rows {
                let mut classes = format!("state a{}", row.from);
                if let Some(to) = row.to {
                    let _ = write!(classes, " b{to}");
                }
                let name = names.last().map_or("", String::as_str);
                let (name, note) = match row.kind {
                    FileType::Directory => (format!("<b>{}/</b>", text(name)), String::new()),
                    FileType::Symlink => (text(name), "link".to_owned()),
                    FileType::Fifo => (text(name), "pipe".to_owned()),
                    _ => (text(name), time::size(row.size)),
                };
                let run = row.run.map_or_else(String::new, |run| format!("run {run}"));
                let indents = "<span class=\"indent\"></span>".repeat(row.depth.min(32));
                let _ = writeln!(
                    html,
                    "<div class=\"{classes}\">{indents}<span class=\"name\">{name}</span><small>{note}</small><small class=\"by\">{run}</small></div>"
                );
            }
        }
        html += "</div>\n";
        if self.left_out > 0 {
            let _ = writeln!(html, "<p class=\"none\">{} more entries are not shown in the tree.</p>", self.left_out);
        }
        html
    }
}

/// Writes the section if there is more than one version.
pub(super) fn section(sandbox: &Sandbox) -> anyhow::Result<Option<String>> {
    let (shown, older) = listed(sandbox)?;
    if shown.len() < 2 {
        return Ok(None);
    }
    let (mut rows, mut panels, mut room) = (Rows::default(), String::new(), ALL_DIFF_BYTES);
    if let Some(first) = shown.first() {
        let oldest = sandbox.at(&reference(first))?;
        for Found { path, stat } in oldest.fs().walk("/")?.into_iter().filter(|found| found.path != "/") {
            rows.begin(&path, stat.file_type(), if stat.is_file() { stat.size } else { 0 }, 0, first.version.call);
        }
        panels += &panel(first, 0, shown.len(), "<p class=\"none\">The oldest version on this page.</p>\n");
    }
    for (at, pair) in shown.windows(2).enumerate() {
        let [before, logged] = pair else { continue };
        let compared = sandbox.versions().compare(&reference(before), &reference(logged), &[])?;
        let run = logged.version.call;
        let then = sandbox.at(&reference(logged))?;
        for one in &compared.differences {
            let kind = match one.is_directory {
                true => FileType::Directory,
                false => then.fs().symlink_metadata(&one.path).map_or(FileType::File, |stat| stat.file_type()),
            };
            rows.change(one, kind, at + 1, run);
        }
        let mut changes = String::from("<ul class=\"changes\">\n");
        for one in compared.differences.iter().take(CHANGES) {
            let patch = if room > 0 && !one.is_directory { compared.patch_of(one) } else { String::new() };
            let patch = shortened(&patch, DIFF_BYTES.min(room));
            room = room.saturating_sub(patch.len());
            changes += &change(one, &patch);
        }
        if compared.differences.len() > CHANGES {
            let _ = writeln!(changes, "<li>… and {} more</li>", compared.differences.len() - CHANGES);
        }
        compared.values.iter().take(CHANGES).for_each(|one| changes += &value(one));
        if compared.values.len() > CHANGES {
            let _ = writeln!(changes, "<li>… and {} more keys and sessions</li>", compared.values.len() - CHANGES);
        }
        if compared.values_unknown {
            changes += "<li>Keys that differ are unknown: another program wrote to the file.</li>\n";
        }
        changes += "</ul>\n";
        if compared.is_empty() {
            changes = "<p class=\"none\">No file, key or session differs.</p>\n".to_owned();
        }
        panels += &panel(logged, at + 1, shown.len(), &changes);
    }
    let mut html = format!("<style>\n{}</style>\n", style(shown.len()));
    html += &slider(&shown);
    html += &panels;
    html += &rows.html();
    if room == 0 {
        let _ = writeln!(html, "<p class=\"none\">Diffs beyond {} are not shown.</p>", time::size(ALL_DIFF_BYTES as u64));
    }
    if older {
        let _ = writeln!(html, "<p class=\"none\">The newest {} versions; older ones are not shown.</p>", shown.len());
    }
    Ok(Some(html))
}

fn reference(logged: &LoggedVersion) -> String {
    format!("v{}", logged.version.number)
}

// Returns the versions, oldest first, and whether there are more. States that another program overwrote are unknown before that
// point.
fn listed(sandbox: &Sandbox) -> anyhow::Result<(Vec<LoggedVersion>, bool)> {
    let before = sandbox.version_shown().map(|version| version + 1);
    let mut listed = sandbox.versions().log(None, before, Some(VERSIONS + 1))?;
    let known = listed.iter().position(|logged| logged.version.kind == VersionKind::Outside).map_or(usize::MAX, |at| at + 1);
    let most = VERSIONS.min(known);
    let is_more = listed.len() > most;
    listed.truncate(most);
    listed.reverse();
    Ok((listed, is_more))
}

// One CSS rule for each version and each element that depends on the selection.
fn style(count: usize) -> String {
    let mut css = String::new();
    for at in 0..count {
        let _ = writeln!(
            css,
            "main:has(.ticks>input:checked~#v{at}) .a{at},main:has(#v{at}~input:checked) .b{at}{{display:none}}\n\
             main:has(#v{at}:checked) .p{at}{{display:block}}"
        );
        if at > 0 {
            let _ = writeln!(css, "main:has(#v{at}:checked) .a{at}{{background:var(--add)}}");
        }
    }
    css
}

fn slider(shown: &[LoggedVersion]) -> String {
    let mut html = String::from(
        "<fieldset class=\"slider\"><legend>Version: choose with a click or the arrow keys</legend>\n<div class=\"ticks\">\n",
    );
    for (at, logged) in shown.iter().enumerate() {
        let checked = if at + 1 == shown.len() { " checked" } else { "" };
        let named = if logged.version.labels.is_empty() { "" } else { " class=\"named\"" };
        let title = attribute(&shortened(&title(logged), 120).replace('\n', " "));
        let _ = writeln!(
            html,
            "<input type=\"radio\" name=\"version\" id=\"v{at}\"{named}{checked} title=\"{title}\" aria-label=\"{title}\">"
        );
    }
    html + "</div>\n</fieldset>\n"
}

fn title(logged: &LoggedVersion) -> String {
    let what = logged.run.as_ref().map(|run| run.command.lines().next().unwrap_or_default().to_owned());
    format!("v{}: {}", logged.version.number, what.filter(|what| !what.is_empty()).unwrap_or_else(|| logged.made_by().to_owned()))
}

fn panel(logged: &LoggedVersion, at: usize, count: usize, changes: &str) -> String {
    let step = |to: usize, word: &str| format!("<label class=\"step\" for=\"v{to}\">{word}</label>");
    let older = at.checked_sub(1).map(|to| step(to, "‹ older")).unwrap_or_default();
    let newer = Some(at + 1).filter(|to| *to < count).map(|to| step(to, "newer ›")).unwrap_or_default();
    let labels: String = logged
        .version
        .labels
        .iter()
        .map(|label| format!("<span class=\"label\">{}</span>", text(&shortened(label, 100))))
        .collect();
    let (run, command) = match &logged.run {
        Some(run) => {
            let (word, class) = badge(run);
            let badge = format!("<span class=\"badge {class}\">{}</span> run {}", text(&word), run.id);
            (badge, format!("<pre class=\"command\">{}</pre>\n", text(&shortened(&run.command, 2_000))))
        }
        None => (text(logged.made_by()), String::new()),
    };
    format!(
        "<article class=\"panel p{at}\">\n<p class=\"head\"><b>v{}</b> {run} {labels}<span class=\"when\">{}</span>{older}{newer}</p>\n{command}{changes}</article>\n",
        logged.version.number,
        text(&time::moment(logged.version.time)),
    )
}

// The word and the class of a kind of difference.
fn kind(kind: DifferenceKind) -> (&'static str, &'static str) {
    match kind {
        DifferenceKind::Added => ("added", "created"),
        DifferenceKind::Modified => ("modified", "modified"),
        DifferenceKind::Mode => ("mode", "attributes"),
        DifferenceKind::Links => ("links", "attributes"),
        DifferenceKind::Deleted => ("deleted", "deleted"),
    }
}

fn value(one: &ValueDifference) -> String {
    let (word, class) = kind(one.kind);
    let what = match one.value {
        ValueKind::Key => "key",
        ValueKind::Session => "session",
    };
    format!("<li><span class=\"change {class}\">{word}</span> {what} <code>{}</code></li>\n", text(&shortened(&one.name, 200)))
}

fn change(one: &Difference, patch: &str) -> String {
    let (word, class) = kind(one.kind);
    let slash = if one.is_directory { "/" } else { "" };
    let title = format!("<span class=\"change {class}\">{word}</span> <code>{}{slash}</code>", text(&one.path));
    if patch.is_empty() {
        return format!("<li>{title}</li>\n");
    }
    format!("<li><details><summary>{title}</summary>{}</details></li>\n", diff_html(patch))
}
