//! Word splitting: segments in, fields out.

use super::Segment;
use pattern::Piece;

/// One field, still knowing which of its text was quoted.
#[derive(Debug, Default)]
pub(crate) struct Field {
    /// The text without quotes.
    pub text: String,
    /// Where runs of quoted (`true`) and unquoted text begin.
    pub runs: Vec<(usize, bool)>,
    /// Some unquoted character may make it a pattern.
    pub pattern: bool,
}

impl Field {
    fn push(&mut self, text: &str, quoted: bool) {
        if self.runs.last().is_none_or(|(_, last)| *last != quoted) {
            self.runs.push((self.text.len(), quoted));
        }
        if !quoted && text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'(' | b'\\')) {
            self.pattern = true;
        }
        self.text.push_str(text);
    }

    /// Returns the field as pieces of a pattern.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        let ends = self.runs.iter().skip(1).map(|run| run.0).chain([self.text.len()]);
        self.runs
            .iter()
            .zip(ends)
            .map(|(&(start, quoted), end)| (self.text.get(start..end).unwrap_or_default(), quoted))
            .collect()
    }
}

/// Gathers fields.
pub(crate) struct Fields<'a> {
    ifs: &'a str,
    done: Vec<Field>,
    current: Option<Field>,
    /// The last field was ended by white space: a separator that follows belongs to the same border.
    after_blank: bool,
}

impl<'a> Fields<'a> {
    pub fn new(ifs: &'a str) -> Self {
        Self { ifs, done: Vec::new(), current: None, after_blank: false }
    }

    pub fn add(&mut self, segment: Segment) {
        match segment {
            Segment::Break => {
                self.done.extend(self.current.take());
                self.after_blank = false;
            }
            Segment::Text { text, quoted, split } if quoted || !split => {
                if !text.is_empty() || quoted {
                    self.current.get_or_insert_default().push(&text, quoted);
                    self.after_blank = false;
                }
            }
            Segment::Text { text, .. } => self.split(&text),
        }
    }

    fn split(&mut self, text: &str) {
        let mut start = 0;
        for (at, c) in text.char_indices() {
            if !self.ifs.contains(c) {
                continue;
            }
            if start < at {
                self.current.get_or_insert_default().push(&text[start..at], false);
                self.after_blank = false;
            }
            start = at + c.len_utf8();
            if matches!(c, ' ' | '\t' | '\n') {
                if let Some(field) = self.current.take() {
                    self.done.push(field);
                    self.after_blank = true;
                }
            } else {
                match self.current.take() {
                    Some(field) => self.done.push(field),
                    None if self.after_blank => {}
                    None => self.done.push(Field::default()),
                }
                self.after_blank = false;
            }
        }
        if start < text.len() {
            self.current.get_or_insert_default().push(&text[start..], false);
            self.after_blank = false;
        }
    }

    pub fn finish(mut self) -> Vec<Field> {
        self.done.extend(self.current.take());
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ifs: &str, text: &str, expected: &[&str]) {
        let mut fields = Fields::new(ifs);
        fields.add(Segment::Text { text: text.to_owned(), quoted: false, split: true });
        let texts: Vec<_> = fields.finish().into_iter().map(|field| field.text).collect();
        assert_eq!(texts, expected, "{text:?} by {ifs:?}");
    }

    #[test]
    fn text_is_split_as_posix_requires() {
        check(" \t\n", "  a  b ", &["a", "b"]);
        check(":", "a::b:", &["a", "", "b"]);
        check(" :", " : a : b", &["", "a", "b"]);
        check("", "a b", &["a b"]);
        check(":", "", &[]);
    }
}
