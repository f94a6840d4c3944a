//! How `ls` prints: long lines, columns, commas, quotes and colours.

use std::ffi::OsStr;

use sys::stat::{S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK};

use super::color::Colors;
use super::{Entry, Format, Indicator, Quoting, Settings, Time};
use crate::accounts::Accounts;
use crate::date;
use crate::files::mode;
use crate::program::{Output, bytes, utf8};
use crate::quote;
use crate::size::Scale;
use crate::text::wc::display_width;

/// A listing's printer.
pub struct Show {
    /// Where it prints.
    pub out: Output,
    names: Accounts,
    colors: Option<Colors>,
    /// Whether the first colour of the run is still to come.
    fresh: bool,
    now: i64,
}

/// Half a Gregorian year in seconds: older files show their year instead of the time of day.
const RECENT: i64 = 31_556_952 / 2;

impl Show {
    pub fn new(settings: &Settings) -> Self {
        let needs_names = settings.format == Format::Long && !settings.numeric;
        Self {
            out: Output::new(),
            names: if needs_names { Accounts::read() } else { Accounts::none() },
            colors: if settings.color { Colors::load() } else { None },
            fresh: true,
            now: i64::try_from(sys::now_ns()).unwrap_or(i64::MAX),
        }
    }

    /// Prints entries; a directory's come with their total.
    pub fn list(&mut self, s: &Settings, entries: &[Entry], is_directory: bool) {
        if is_directory && (s.format == Format::Long || s.blocks) {
            let total: u64 = entries.iter().filter_map(|entry| entry.stat).map(|stat| mode::allocated(&stat)).sum();
            self.out.text(format!("total {}", s.block_scale.show(total)));
            self.out.byte(s.end);
        }
        match s.format {
            Format::Long => self.long(s, entries),
            Format::Single => {
                let inode = column(entries.iter().map(|entry| inode(s, entry).len()));
                let blocks = column(entries.iter().map(|entry| blocks(s, entry).len()));
                for entry in entries {
                    self.prefix(s, entry, inode, blocks);
                    self.name(s, entry);
                    self.out.byte(s.end);
                }
            }
            Format::Commas => self.commas(s, entries),
            Format::Vertical | Format::Across => self.columns(s, entries),
        }
    }

    fn prefix(&mut self, s: &Settings, entry: &Entry, inode_width: usize, blocks_width: usize) {
        if s.inode {
            self.out.text(format!("{:>inode_width$} ", inode(s, entry)));
        }
        if s.blocks {
            self.out.text(format!("{:>blocks_width$} ", blocks(s, entry)));
        }
    }

    /// Returns the name as the quoting style shows it.
    pub fn quoted(&self, s: &Settings, name: &OsStr) -> Vec<u8> {
        let raw = bytes(name);
        let visible = |text: Vec<u8>| if s.hide_control { hide(&text) } else { text };
        match s.quoting {
            Quoting::Literal => visible(raw.to_vec()),
            Quoting::Shell => visible(quote::shell_plain(raw, false)),
            Quoting::ShellAlways => visible(quote::shell_plain(raw, true)),
            Quoting::ShellEscape => quote::shell_name(raw, false).into_bytes(),
            Quoting::ShellEscapeAlways => quote::shell_name(raw, true).into_bytes(),
            Quoting::C => quote::c_style(raw, true).into_bytes(),
            Quoting::Escape => quote::c_style(raw, false).into_bytes(),
        }
    }

    fn colored(&mut self, s: &Settings, name: &OsStr, code: Option<String>) {
        let text = self.quoted(s, name);
        match code {
            Some(code) => {
                if std::mem::take(&mut self.fresh) {
                    self.out.put(b"\x1b[0m");
                }
                self.out.text(format!("\x1b[{code}m"));
                self.out.put(&text);
                self.out.put(b"\x1b[0m");
            }
            None => self.out.put(&text),
        }
    }

    fn name(&mut self, s: &Settings, entry: &Entry) {
        let code = match (&self.colors, entry.stat) {
            (Some(colors), Some(stat)) => {
                colors.of(bytes(&entry.name), &stat, entry.target.as_ref().map(|(_, there)| *there)).map(str::to_owned)
            }
            _ => None,
        };
        self.colored(s, &entry.name, code);
        if s.format == Format::Long
            && let Some((target, there)) = &entry.target
        {
            let code = match (&self.colors, there) {
                (Some(colors), Some(stat)) => colors.of(bytes(target), stat, None).map(str::to_owned),
                _ => None,
            };
            self.out.put(b" -> ");
            self.colored(s, target, code);
            if let Some(stat) = there {
                self.out.put(indicator(s, stat.mode));
            }
        } else if let Some(stat) = entry.stat {
            self.out.put(indicator(s, stat.mode));
        }
    }

    fn long(&mut self, s: &Settings, entries: &[Entry]) {
        let rows: Vec<[String; 7]> = entries.iter().map(|entry| self.row(s, entry)).collect();
        let widths: Vec<usize> = (0..7).map(|index| column(rows.iter().map(|row| row[index].chars().count()))).collect();
        let inode_width = column(entries.iter().map(|entry| inode(s, entry).len()));
        let blocks_width = column(entries.iter().map(|entry| blocks(s, entry).len()));
        for (entry, row) in entries.iter().zip(&rows) {
            self.prefix(s, entry, inode_width, blocks_width);
            let [mode, links, owner, group, author, size, time] = row;
            let mut line = format!("{mode} {links:>width$} ", width = widths[1]);
            if s.owner {
                line.push_str(&pad(owner, widths[2], s.numeric));
            }
            if s.group {
                line.push_str(&pad(group, widths[3], s.numeric));
            }
            if s.author {
                line.push_str(&pad(author, widths[4], s.numeric));
            }
            line.push_str(&format!("{size:>width$} {time:>time_width$} ", width = widths[5], time_width = widths[6]));
            self.out.text(line);
            self.name(s, entry);
            self.out.byte(s.end);
        }
    }

    fn row(&self, s: &Settings, entry: &Entry) -> [String; 7] {
        let Some(stat) = entry.stat else {
            return ["??????????", "?", "?", "?", "?", "?", "?"].map(str::to_owned);
        };
        let user = if s.numeric { stat.uid.to_string() } else { self.names.show_user(stat.uid) };
        let group = if s.numeric { stat.gid.to_string() } else { self.names.show_group(stat.gid) };
        let size = match stat.kind() {
            S_IFCHR | 0o060_000 => format!("{}, {:>3}", stat.rdev >> 8 & 0xfff, stat.rdev & 0xff),
            _ => s.file_scale.show(stat.size),
        };
        let time = match s.time {
            Time::Modification => stat.mtime,
            Time::Access => stat.atime,
            Time::Change => stat.ctime,
        };
        let recent = time <= self.now && self.now - time < RECENT * 1_000_000_000;
        let format = match s.time_style.strip_prefix('+') {
            None if recent => "%b %e %H:%M",
            None => "%b %e  %Y",
            Some(style) => {
                let (old, new) = style.split_once('\n').unwrap_or((style, style));
                if recent { new } else { old }
            }
        };
        let time = String::from_utf8_lossy(&date::format(format.as_bytes(), i128::from(time))).into_owned();
        [mode::long(stat.mode), stat.nlink.to_string(), user.clone(), group, user, size, time]
    }

    fn cell(&self, s: &Settings, entry: &Entry, inode_width: usize, blocks_width: usize) -> usize {
        let text = self.quoted(s, &entry.name);
        let mark = entry.stat.map_or(0, |stat| indicator(s, stat.mode).len());
        let extra = if s.inode { inode_width + 1 } else { 0 } + if s.blocks { blocks_width + 1 } else { 0 };
        width(&text) + mark + extra
    }

    fn commas(&mut self, s: &Settings, entries: &[Entry]) {
        let mut at = 0;
        for (index, entry) in entries.iter().enumerate() {
            let (inode_width, blocks_width) = (inode(s, entry).len(), blocks(s, entry).len());
            let cell = self.cell(s, entry, inode_width, blocks_width);
            if index > 0 {
                if s.width != 0 && at + cell + 2 >= s.width {
                    self.out.put(b",\n");
                    at = 0;
                } else {
                    self.out.put(b", ");
                    at += 2;
                }
            }
            self.prefix(s, entry, inode_width, blocks_width);
            self.name(s, entry);
            at += cell;
        }
        if !entries.is_empty() {
            self.out.byte(b'\n');
        }
    }

    fn columns(&mut self, s: &Settings, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        let inode_width = column(entries.iter().map(|entry| inode(s, entry).len()));
        let blocks_width = column(entries.iter().map(|entry| blocks(s, entry).len()));
        let cells: Vec<usize> = entries.iter().map(|entry| self.cell(s, entry, inode_width, blocks_width)).collect();
        let across = s.format == Format::Across;
        let (count, widths) = layout(&cells, s.width, across);
        let rows = cells.len().div_ceil(count);
        for row in 0..rows {
            let mut at = 0;
            let mut stop = 0;
            for (col, column_width) in widths.iter().enumerate() {
                let index = if across { row * count + col } else { col * rows + row };
                let Some(entry) = entries.get(index) else { break };
                if !across && col > 0 && col * rows >= entries.len() {
                    break;
                }
                if col > 0 {
                    self.indent(s, at, stop);
                }
                self.prefix(s, entry, inode_width, blocks_width);
                self.name(s, entry);
                at = stop + cells[index];
                stop += column_width;
            }
            self.out.byte(b'\n');
        }
    }

    /// Moves from one column to another, by tabs where they reach.
    fn indent(&mut self, s: &Settings, mut from: usize, to: usize) {
        while from < to {
            if s.tab != 0 && to / s.tab > (from + 1) / s.tab {
                self.out.byte(b'\t');
                from += s.tab - from % s.tab;
            } else {
                self.out.byte(b' ');
                from += 1;
            }
        }
    }
}

fn pad(text: &str, width: usize, right: bool) -> String {
    if right { format!("{text:>width$} ") } else { format!("{text:<width$} ") }
}

fn column(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.max().unwrap_or(0)
}

fn inode(s: &Settings, entry: &Entry) -> String {
    match entry.stat {
        _ if !s.inode => String::new(),
        Some(stat) => stat.ino.to_string(),
        None => "?".into(),
    }
}

fn blocks(s: &Settings, entry: &Entry) -> String {
    match entry.stat {
        _ if !s.blocks => String::new(),
        Some(stat) => {
            let bytes = mode::allocated(&stat);
            match s.block_scale {
                Scale::Blocks(unit) => bytes.div_ceil(unit).to_string(),
                scale => scale.show(bytes),
            }
        }
        None => "?".into(),
    }
}

fn indicator(s: &Settings, mode: u32) -> &'static [u8] {
    match (mode & sys::stat::S_IFMT, s.indicator) {
        (_, Indicator::None) => b"",
        (S_IFDIR, _) => b"/",
        (_, Indicator::Slash) => b"",
        (S_IFLNK, _) => b"@",
        (S_IFIFO, _) => b"|",
        (0o140_000, _) => b"=",
        (sys::stat::S_IFREG, Indicator::Classify) if mode & 0o111 != 0 => b"*",
        _ => b"",
    }
}

fn hide(text: &[u8]) -> Vec<u8> {
    if !utf8() {
        return text.iter().map(|&byte| if byte.is_ascii_graphic() || byte == b' ' { byte } else { b'?' }).collect();
    }
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        out.extend(chunk.valid().chars().map(|c| if c.is_control() { '?' } else { c }).collect::<String>().bytes());
        out.extend(chunk.invalid().iter().map(|_| b'?'));
    }
    out
}

fn width(text: &[u8]) -> usize {
    if !utf8() {
        return text.len();
    }
    text.utf8_chunks().map(|chunk| chunk.valid().chars().map(|c| display_width(c) as usize).sum::<usize>()).sum()
}

/// Space between columns.
const GAP: usize = 2;

/// Returns the most columns that fit and their widths.
fn layout(cells: &[usize], line: usize, across: bool) -> (usize, Vec<usize>) {
    // Every column takes at least one character and its gap.
    let most = if line == 0 { cells.len() } else { line.div_ceil(GAP + 1).max(1).min(cells.len()) };
    for count in (2..=most).rev() {
        let rows = cells.len().div_ceil(count);
        let mut widths = vec![GAP + 1; count];
        for (index, cell) in cells.iter().enumerate() {
            let col = if across { index % count } else { index / rows };
            let gap = if col + 1 == count { 0 } else { GAP };
            widths[col] = widths[col].max(cell + gap);
        }
        let total: usize = widths.iter().sum();
        if line == 0 || total < line || widths.iter().all(|width| *width == GAP + 1) {
            return (count, widths);
        }
    }
    (1, vec![cells.iter().copied().max().unwrap_or(0)])
}
