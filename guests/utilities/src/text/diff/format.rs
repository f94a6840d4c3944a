//! Edit scripts on paper: normal, unified, context, ed, side by side.

use super::compare::Change;
use super::{Options, Style};
use crate::io::Out;

/// One side of a comparison.
pub(super) struct Side<'a> {
    pub header: Vec<u8>,
    pub lines: Vec<&'a [u8]>,
    /// Whether the last line lacks its newline.
    pub open_end: bool,
}

pub(super) struct Paper<'a, 'o> {
    pub options: &'o Options,
    pub out: &'o mut Out,
    pub old: Side<'a>,
    pub new: Side<'a>,
}

const RED: &[u8] = b"\x1b[31m";
const GREEN: &[u8] = b"\x1b[32m";
const CYAN: &[u8] = b"\x1b[36m";
const BOLD: &[u8] = b"\x1b[1m";
const RESET: &[u8] = b"\x1b[0m";

impl Paper<'_, '_> {
    pub fn write(&mut self, changes: &[Change]) {
        match self.options.style {
            Style::Normal => changes.iter().for_each(|change| self.normal(change)),
            Style::Unified => self.grouped(changes, true),
            Style::Context => self.grouped(changes, false),
            Style::Ed => changes.iter().rev().for_each(|change| self.ed(change)),
            Style::SideBySide => self.side_by_side(changes),
        }
    }

    fn paint(&mut self, color: &[u8], text: &[u8]) {
        if self.options.color {
            self.out.put(color);
            self.out.put(text);
            self.out.put(RESET);
        } else {
            self.out.put(text);
        }
    }

    fn line(&mut self, prefix: &[u8], old: bool, index: usize, color: &[u8]) {
        let side = if old { &self.old } else { &self.new };
        let text = [prefix, side.lines[index]].concat();
        let last = side.open_end && index + 1 == side.lines.len();
        if color.is_empty() {
            self.out.put(&text)
        } else {
            self.paint(color, &text)
        }
        self.out.byte(b'\n');
        if last {
            self.out.put(b"\\ No newline at end of file\n");
        }
    }

    fn normal(&mut self, change: &Change) {
        let range = |range: &std::ops::Range<usize>| {
            if range.len() > 1 { format!("{},{}", range.start + 1, range.end) } else { range.end.to_string() }
        };
        let letter = match (change.old.is_empty(), change.new.is_empty()) {
            (true, _) => 'a',
            (_, true) => 'd',
            _ => 'c',
        };
        let head = format!("{}{letter}{}", range(&change.old), range(&change.new));
        self.paint(CYAN, head.as_bytes());
        self.out.byte(b'\n');
        for index in change.old.clone() {
            self.line(b"< ", true, index, RED);
        }
        if letter == 'c' {
            self.out.put(b"---\n");
        }
        for index in change.new.clone() {
            self.line(b"> ", false, index, GREEN);
        }
    }

    fn ed(&mut self, change: &Change) {
        let start = change.old.start + 1;
        let range = if change.old.len() > 1 { format!("{start},{}", change.old.end) } else { change.old.end.to_string() };
        if change.new.is_empty() {
            self.out.put(format!("{range}d\n").as_bytes());
            return;
        }
        let letter = if change.old.is_empty() { 'a' } else { 'c' };
        self.out.put(format!("{range}{letter}\n").as_bytes());
        for index in change.new.clone() {
            let text = [self.new.lines[index], b"\n"].concat();
            self.out.put(&text);
        }
        self.out.put(b".\n");
    }

    fn grouped(&mut self, changes: &[Change], unified: bool) {
        let context = self.options.context;
        let (old_mark, new_mark): (&[u8], &[u8]) = if unified { (b"--- ", b"+++ ") } else { (b"*** ", b"--- ") };
        let head = [old_mark, &self.old.header].concat();
        self.paint(BOLD, &head);
        self.out.byte(b'\n');
        let head = [new_mark, &self.new.header].concat();
        self.paint(BOLD, &head);
        self.out.byte(b'\n');
        let mut at = 0;
        while at < changes.len() {
            let mut last = at;
            while last + 1 < changes.len() && changes[last + 1].old.start - changes[last].old.end <= 2 * context {
                last += 1;
            }
            if unified {
                self.unified_hunk(&changes[at..=last])
            } else {
                self.context_hunk(&changes[at..=last])
            }
            at = last + 1;
        }
    }

    fn bounds(&self, changes: &[Change]) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let (first, last) = (&changes[0], &changes[changes.len() - 1]);
        let context = self.options.context;
        let before = context.min(first.old.start).min(first.new.start);
        let after = context.min(self.old.lines.len() - last.old.end).min(self.new.lines.len() - last.new.end);
        (first.old.start - before..last.old.end + after, first.new.start - before..last.new.end + after)
    }

    /// Returns the last line before `at` that looks like the start of a function.
    fn function(&self, at: usize) -> Option<Vec<u8>> {
        let regex = self.options.function.as_ref()?;
        let line = self.old.lines[..at.min(self.old.lines.len())].iter().rev().find(|line| regex.is_match(line))?;
        let cut = line.trim_ascii_end();
        Some(cut[..cut.len().min(40)].trim_ascii_end().to_vec())
    }

    fn unified_hunk(&mut self, changes: &[Change]) {
        let (old, new) = self.bounds(changes);
        let range = |range: &std::ops::Range<usize>| match range.len() {
            0 => format!("{},0", range.start),
            1 => (range.start + 1).to_string(),
            length => format!("{},{length}", range.start + 1),
        };
        let head = format!("@@ -{} +{} @@", range(&old), range(&new));
        self.paint(CYAN, head.as_bytes());
        if let Some(function) = self.function(old.start) {
            self.out.byte(b' ');
            self.out.put(&function);
        }
        self.out.byte(b'\n');
        let mut at = old.start;
        for change in changes {
            for index in at..change.old.start {
                self.line(self.blank(index), true, index, b"");
            }
            for index in change.old.clone() {
                self.line(b"-", true, index, RED);
            }
            for index in change.new.clone() {
                self.line(b"+", false, index, GREEN);
            }
            at = change.old.end;
        }
        for index in at..old.end {
            self.line(self.blank(index), true, index, b"");
        }
    }

    fn blank(&self, index: usize) -> &'static [u8] {
        if self.options.suppress_blank_empty && self.old.lines[index].is_empty() { b"" } else { b" " }
    }

    fn context_hunk(&mut self, changes: &[Change]) {
        let (old, new) = self.bounds(changes);
        let range = |range: &std::ops::Range<usize>| {
            if range.len() > 1 { format!("{},{}", range.start + 1, range.end) } else { range.end.to_string() }
        };
        self.out.put(b"***************");
        if let Some(function) = self.function(old.start) {
            self.out.byte(b' ');
            self.out.put(&function);
        }
        self.out.byte(b'\n');
        let head = format!("*** {} ****", range(&old));
        self.paint(CYAN, head.as_bytes());
        self.out.byte(b'\n');
        if changes.iter().any(|change| !change.old.is_empty()) {
            self.context_side(changes, old, true);
        }
        let head = format!("--- {} ----", range(&new));
        self.paint(CYAN, head.as_bytes());
        self.out.byte(b'\n');
        if changes.iter().any(|change| !change.new.is_empty()) {
            self.context_side(changes, new, false);
        }
    }

    fn context_side(&mut self, changes: &[Change], range: std::ops::Range<usize>, old: bool) {
        let mut at = range.start;
        for change in changes {
            let (mine, other) = if old { (&change.old, &change.new) } else { (&change.new, &change.old) };
            for index in at..mine.start {
                self.line(b"  ", old, index, b"");
            }
            let mark: &[u8] = match (other.is_empty(), old) {
                (false, _) => b"! ",
                (true, true) => b"- ",
                (true, false) => b"+ ",
            };
            for index in mine.clone() {
                self.line(mark, old, index, if old { RED } else { GREEN });
            }
            at = mine.end;
        }
        for index in at..range.end {
            self.line(b"  ", old, index, b"");
        }
    }

    fn side_by_side(&mut self, changes: &[Change]) {
        let (mut i, mut j) = (0, 0);
        let whole = Change { old: self.old.lines.len()..self.old.lines.len(), new: self.new.lines.len()..self.new.lines.len() };
        for change in changes.iter().chain([&whole]) {
            while i < change.old.start {
                if !self.options.suppress_common {
                    self.columns(Some(i), b' ', Some(j));
                }
                i += 1;
                j += 1;
            }
            while i < change.old.end && j < change.new.end {
                self.columns(Some(i), b'|', Some(j));
                i += 1;
                j += 1;
            }
            while i < change.old.end {
                self.columns(Some(i), b'<', None);
                i += 1;
            }
            while j < change.new.end {
                self.columns(None, b'>', Some(j));
                j += 1;
            }
        }
    }

    fn columns(&mut self, left: Option<usize>, mark: u8, right: Option<usize>) {
        // As GNU lays it out: the right column starts at a tab stop, the mark stands three columns before it.
        let width = self.options.width;
        let offset = (width + 8 + 3) / 16 * 8;
        let half = offset.saturating_sub(3).min(width.saturating_sub(offset));
        let offset = if half == 0 { width } else { offset };
        let left_text = left.map_or(&b""[..], |index| self.old.lines[index]);
        let shown = expand(left_text, half);
        self.out.put(&shown.0);
        let mut column = shown.1;
        let mark = if mark == b'|' && left.is_none() { b'>' } else { mark };
        let advance = |out: &mut Out, column: &mut usize, to: usize| {
            while *column < to {
                let next = *column / 8 * 8 + 8;
                if next <= to {
                    out.byte(b'\t');
                    *column = next;
                } else {
                    out.byte(b' ');
                    *column += 1;
                }
            }
        };
        if mark != b' ' {
            let at = (half + offset - 1) / 2;
            advance(self.out, &mut column, at);
            self.out.byte(mark);
            column += 1;
        }
        if let Some(index) = right {
            let text = self.new.lines[index];
            if !text.is_empty() {
                advance(self.out, &mut column, offset);
                let shown = expand(text, half);
                self.out.put(&shown.0);
            }
        }
        self.out.byte(b'\n');
    }
}

/// Returns at most `width` columns of a line, and how many it took.
fn expand(line: &[u8], width: usize) -> (Vec<u8>, usize) {
    let mut out = Vec::new();
    let mut column = 0;
    let mut at = 0;
    while at < line.len() {
        if line[at] == b'\t' {
            let next = column / 8 * 8 + 8;
            if next > width {
                break;
            }
            out.extend(std::iter::repeat_n(b' ', next - column));
            column = next;
            at += 1;
            continue;
        }
        if column + 1 > width {
            break;
        }
        let length = crate::utf8::length(&line[at..]);
        out.extend_from_slice(&line[at..at + length]);
        column += 1;
        at += length;
    }
    (out, column)
}
