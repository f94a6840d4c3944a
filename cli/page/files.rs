//! The files: a tree of all entries, with the beginning of every small text.

use std::collections::HashMap;

use runtime::{FileType, Found, Run, Sandbox};

use super::escape::text;
use crate::commands::history::changes;
use crate::time;

/// Maximum number of entries in the tree.
const ENTRIES: usize = 5_000;

/// Maximum size of a text that is shown.
const TEXT_BYTES: u64 = 8 << 10;

/// Maximum size of all texts together.
const ALL_TEXT_BYTES: usize = 2 << 20;

/// The file data of the page.
pub(super) struct Shown {
    found: Vec<Found>,
    all: usize,
    texts: HashMap<String, String>,
    links: HashMap<String, String>,
    /// The last run that changed each path; only its result still exists.
    last: HashMap<String, i64>,
}

impl Shown {
    /// Reads the sandbox's files.
    pub(super) fn new(sandbox: &Sandbox) -> anyhow::Result<Self> {
        let files = sandbox.fs();
        let mut found = files.walk("/")?;
        let all = found.len();
        found.truncate(ENTRIES);
        let mut texts = HashMap::new();
        let mut links = HashMap::new();
        let mut room = ALL_TEXT_BYTES;
        for Found { path, stat } in &found {
            match stat.file_type() {
                FileType::File if stat.size <= TEXT_BYTES && stat.size <= room as u64 => {
                    if let Ok(text) = String::from_utf8(files.read(path)?)
                        && !text.contains('\0')
                    {
                        room -= text.len();
                        texts.insert(path.clone(), text);
                    }
                }
                FileType::Symlink => drop(links.insert(path.clone(), files.read_link(path)?)),
                _ => {}
            }
        }
        Ok(Self { found, all, texts, links, last: HashMap::new() })
    }

    /// Records the changes of a run; call with the newest run first.
    pub(super) fn note(&mut self, run: &Run) {
        for path in changes(run).filter_map(|change| change["path"].as_str()) {
            if self.texts.contains_key(path) && !self.last.contains_key(path) {
                self.last.insert(path.to_owned(), run.id);
            }
        }
    }

    /// Returns a file that a run created and no later run changed, as a diff.
    pub(super) fn added_by(&self, run: i64, kind: &str, path: &str) -> Option<String> {
        let text =
            self.texts.get(path).filter(|text| kind == "created" && !text.is_empty() && self.last.get(path) == Some(&run))?;
        Some(text.lines().map(|line| format!("+{line}\n")).collect())
    }

    /// Renders the tree.
    pub(super) fn tree(&self) -> String {
        let depth_of = |path: &str| if path == "/" { 0 } else { path.matches('/').count() };
        let mut html = String::from("<div class=\"tree\">\n");
        let mut open = 0;
        for Found { path, stat } in &self.found {
            let depth = depth_of(path);
            while open > depth {
                html += "</div></details>\n";
                open -= 1;
            }
            let name = text(if path == "/" { "/" } else { path.rsplit('/').next().unwrap_or_default() });
            match stat.file_type() {
                FileType::Directory => {
                    let unfolded = if depth < 3 { " open" } else { "" };
                    html += &format!("<details class=\"dir\"{unfolded}><summary>{name}</summary><div class=\"below\">\n");
                    open = depth + 1;
                }
                FileType::Symlink => {
                    let target = self.links.get(path).map(|target| text(target)).unwrap_or_default();
                    html += &format!("<div class=\"leaf\">{name} <small>→ {target}</small></div>\n");
                }
                FileType::Device => {}
                FileType::Fifo => html += &format!("<div class=\"leaf\">{name} <small>named pipe</small></div>\n"),
                FileType::File => {
                    let size = time::size(stat.size);
                    html += &match self.texts.get(path).filter(|content| !content.is_empty()) {
                        Some(content) => format!(
                            "<details class=\"leaf\"><summary>{name} <small>{size}</small></summary><pre>{}</pre></details>\n",
                            text(content)
                        ),
                        None => format!("<div class=\"leaf\">{name} <small>{size}</small></div>\n"),
                    };
                }
            }
        }
        for _ in 0..open {
            html += "</div></details>\n";
        }
        html += "</div>\n";
        if self.all > self.found.len() {
            html += &format!("<p class=\"none\">The first {ENTRIES} of {} entries.</p>\n", self.all);
        }
        html
    }
}
