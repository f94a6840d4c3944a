//! Lines on pages: where a page ends, what stands beside what, and how far apart.

use super::{FOOT, HEAD, Settings};
use crate::program::Output;

/// The pages of one file, or of several side by side.
pub struct Sheet<'a> {
    settings: &'a Settings,
    date: Vec<u8>,
    title: Vec<u8>,
    out: &'a mut Output,
    page: usize,
    number: i64,
}

/// A cell: its line, and the line's number.
type Cell<'a> = Option<(&'a [u8], i64)>;

impl<'a> Sheet<'a> {
    /// Pages with this date and title.
    pub fn new(settings: &'a Settings, (date, title): (Vec<u8>, Vec<u8>), out: &'a mut Output) -> Self {
        let number = settings.numbers.map_or(1, |numbers| numbers.first);
        Self { settings, date, title, out, page: 0, number }
    }

    /// Prints one text in the requested number of columns.
    pub fn columns(&mut self, text: &[u8]) {
        let per_page = self.settings.rows.saturating_mul(self.settings.columns);
        for part in parts(text) {
            for lines in part.chunks(per_page.max(1)) {
                let cells: Vec<Cell<'_>> = lines.iter().zip(self.number..).map(|(line, number)| Some((*line, number))).collect();
                self.number += cells.len() as i64;
                let rows = self.rows(&cells);
                self.put_page(&rows);
            }
        }
    }

    /// Prints several texts, one per column.
    pub fn merged(&mut self, texts: &[&[u8]]) {
        let files: Vec<Vec<&[u8]>> = texts.iter().map(|text| parts(text).concat()).collect();
        let longest = files.iter().map(Vec::len).max().unwrap_or(0);
        let all: Vec<usize> = (0..longest).collect();
        for page in all.chunks(self.settings.rows.max(1)) {
            let rows: Vec<Vec<Cell<'_>>> = page
                .iter()
                .map(|&row| files.iter().map(|lines| lines.get(row).map(|line| (*line, self.number + row as i64))).collect())
                .collect();
            self.put_page(&rows);
        }
    }

    /// Returns a page's lines as rows: across, or down in columns of the same height.
    fn rows<'b>(&self, cells: &[Cell<'b>]) -> Vec<Vec<Cell<'b>>> {
        let columns = self.settings.columns;
        if columns == 1 {
            return cells.iter().map(|cell| vec![*cell]).collect();
        }
        if self.settings.across {
            return cells.chunks(columns).map(<[Cell<'b>]>::to_vec).collect();
        }
        let full = cells.len() == self.settings.rows.saturating_mul(columns);
        let mut rest = cells;
        let mut rows: Vec<Vec<Cell<'b>>> = Vec::new();
        for column in 0..columns {
            let height = match full {
                true => self.settings.rows,
                false => cells.len() / columns + usize::from(column < cells.len() % columns),
            };
            let (now, later) = rest.split_at(height.min(rest.len()));
            rest = later;
            for (row, cell) in now.iter().enumerate() {
                match rows.get_mut(row) {
                    Some(row) => row.push(*cell),
                    None => rows.push(vec![*cell]),
                }
            }
        }
        rows
    }

    fn put_page(&mut self, rows: &[Vec<Cell<'_>>]) {
        self.page += 1;
        if self.page < self.settings.first_page || self.page > self.settings.last_page {
            return;
        }
        if self.settings.head {
            self.put_head();
        }
        let mut used = 0;
        for row in rows {
            self.put_row(row);
            used += 1;
            if self.settings.double {
                self.out.byte(b'\n');
                used += 1;
            }
        }
        if !self.settings.pages {
            return;
        }
        if self.settings.form_feed {
            self.out.byte(b'\x0c');
            return;
        }
        let blank = (self.settings.length - HEAD - FOOT).saturating_sub(used) + FOOT;
        self.out.fill(b'\n', blank);
    }

    fn put_head(&mut self) {
        let page = format!("Page {}", self.page);
        let length = |text: &[u8]| String::from_utf8_lossy(text).chars().count();
        let used = length(&self.date) + length(&self.title) + page.len();
        let room = self.settings.width.saturating_sub(used);
        let (left, right) = ((room / 2).max(1), (room - room / 2).max(1));
        self.out.put(b"\n\n");
        self.out.fill(b' ', self.settings.indent);
        self.out.put(&self.date);
        self.out.fill(b' ', left);
        self.out.put(&self.title);
        self.out.fill(b' ', right);
        self.out.text(page);
        self.out.put(b"\n\n\n");
    }

    fn put_row(&mut self, row: &[Cell<'_>]) {
        let settings = self.settings;
        let between = settings.separator.len();
        let numbers = settings.numbers.map_or(0, |numbers| numbers.digits + 1);
        let shared = if settings.merge { numbers } else { numbers * settings.columns };
        let gaps = between * (settings.columns - 1);
        let cell_width = (settings.width.saturating_sub(shared + gaps) / settings.columns).max(1);
        let mut line = Line { text: Vec::new(), column: 0, blanks: 0, tabs: settings.tabs };
        line.blank(settings.indent);
        let last = row.iter().rposition(Option::is_some).map_or(0, |at| if settings.merge { row.len() - 1 } else { at });
        for (index, cell) in row.iter().enumerate().take(last + 1) {
            if let (Some(numbers), Some((_, number)), true) = (settings.numbers, cell, index == 0 || !settings.merge) {
                let text = sys::padding::right(number, numbers.digits);
                // Too long a number loses its first digits.
                line.put(&text.as_bytes()[text.len() - numbers.digits.min(text.len())..]);
                line.put(&[numbers.separator]);
            }
            let start = line.column + line.blanks;
            let shown = cell.map_or_else(Vec::new, |(text, _)| render(text, settings));
            let kept = if settings.cut { cut(&shown, cell_width) } else { &shown[..] };
            line.put_with_blanks(kept);
            if index == last {
                break;
            }
            if settings.aligned {
                let wide = line.column + line.blanks - start;
                line.blank(cell_width.saturating_sub(wide));
            }
            match settings.separator.as_slice() {
                b" " if settings.aligned => line.blank(1),
                separator => line.put(separator),
            }
        }
        self.out.put(&line.text);
        self.out.byte(b'\n');
    }
}

/// Returns the lines of a text, page by page where form feeds part them.
fn parts(text: &[u8]) -> Vec<Vec<&[u8]>> {
    let pages = text.split(|&byte| byte == b'\x0c');
    pages
        .map(|page| page.strip_suffix(b"\n").unwrap_or(page))
        .enumerate()
        .filter(|(at, page)| !(page.is_empty() && (*at > 0 || text.is_empty())))
        .map(|(_, page)| page.split(|&byte| byte == b'\n').collect())
        .collect()
}

/// Returns a line as it is shown: tabs as blanks, controls as people can see them.
fn render(text: &[u8], settings: &Settings) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'\t' if settings.expand.is_some() => {
                let tab = settings.expand.unwrap_or(8).max(1);
                let column = width(&out);
                out.resize(out.len() + tab - column % tab, b' ');
            }
            b'\t' => out.push(byte),
            0..32 | 127 if settings.controls == Some(false) => out.extend_from_slice(&[b'^', byte ^ 64]),
            0..32 | 127..=255 if settings.controls == Some(true) => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            byte => out.push(byte),
        }
    }
    out
}

fn width(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

fn cut(text: &[u8], columns: usize) -> &[u8] {
    let mut starts = text.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80).map(|(at, _)| at);
    &text[..starts.nth(columns).unwrap_or(text.len())]
}

/// A line being put together: blanks are kept back until something follows them.
struct Line {
    text: Vec<u8>,
    column: usize,
    blanks: usize,
    tabs: Option<usize>,
}

impl Line {
    fn blank(&mut self, count: usize) {
        self.blanks = self.blanks.saturating_add(count);
    }

    fn settle(&mut self) {
        let goal = self.column.saturating_add(self.blanks);
        if let Some(tab) = self.tabs.filter(|tab| *tab > 0) {
            while goal - self.column > 1 && (self.column / tab * tab).saturating_add(tab) <= goal {
                self.text.push(b'\t');
                self.column = self.column / tab * tab + tab;
            }
        }
        self.text.resize(self.text.len().saturating_add(goal - self.column), b' ');
        self.column = goal;
        self.blanks = 0;
    }

    fn put(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        self.settle();
        self.text.extend_from_slice(text);
        for byte in text {
            match byte {
                b'\t' => self.column = self.column / 8 * 8 + 8,
                byte if byte & 0xc0 != 0x80 => self.column += 1,
                _ => {}
            }
        }
    }

    /// Adds text whose blanks may become tabs.
    fn put_with_blanks(&mut self, text: &[u8]) {
        if self.tabs.is_none() {
            return self.put(text);
        }
        for run in text.chunk_by(|a, b| (*a == b' ') == (*b == b' ')) {
            if run[0] == b' ' { self.blank(run.len()) } else { self.put(run) }
        }
    }
}
