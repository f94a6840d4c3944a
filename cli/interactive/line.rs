//! The text being edited and the position of the cursor.

/// Text with a cursor. Both are counted in characters; the text may have several lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    text: Vec<char>,
    cursor: usize,
}

impl Line {
    /// Creates a text with the cursor at its end.
    pub(super) fn new(text: &str) -> Self {
        let text: Vec<char> = text.chars().filter(|&c| is_text(c)).collect();
        Self { cursor: text.len(), text }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Returns the text before the cursor.
    pub(super) fn before(&self) -> String {
        self.text.iter().take(self.cursor).collect()
    }

    /// Returns whether the text is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Inserts text at the cursor, without control characters.
    pub(super) fn insert(&mut self, text: &str) {
        let new: Vec<char> = text.chars().filter(|&c| is_text(c)).collect();
        let count = new.len();
        self.text.splice(self.cursor..self.cursor, new);
        self.cursor += count;
    }

    /// Replaces everything from `start` to the cursor with `text`.
    pub(super) fn replace_from(&mut self, start: usize, text: &str) {
        self.cut(start.min(self.cursor), self.cursor);
        self.insert(text);
    }

    /// Removes the characters from `start` to `end`, moves the cursor there, and returns them.
    pub(super) fn cut(&mut self, start: usize, end: usize) -> String {
        self.cursor = start;
        self.text.drain(start..end).collect()
    }

    /// Returns the position of the cursor.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns the end of the text.
    pub(super) fn end(&self) -> usize {
        self.text.len()
    }

    /// Moves the cursor.
    pub(super) fn move_to(&mut self, place: usize) {
        self.cursor = place.min(self.text.len());
    }

    /// Returns the start of the cursor's line.
    pub(super) fn line_start(&self) -> usize {
        self.text.iter().take(self.cursor).rposition(|&c| c == '\n').map_or(0, |at| at + 1)
    }

    /// Returns the end of the cursor's line.
    pub(super) fn line_end(&self) -> usize {
        self.text.iter().skip(self.cursor).position(|&c| c == '\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// Returns the start of the word before the cursor.
    pub(super) fn word_start(&self, is_word: fn(char) -> bool) -> usize {
        let before = self.text.get(..self.cursor).unwrap_or_default();
        let end = before.iter().rposition(|&c| is_word(c)).map_or(0, |at| at + 1);
        before.iter().take(end).rposition(|&c| !is_word(c)).map_or(0, |at| at + 1)
    }

    /// Returns the end of the word after the cursor.
    pub(super) fn word_end(&self) -> usize {
        let after = |from: usize, wanted: bool| {
            let rest = self.text.iter().skip(from);
            rest.clone().position(|c| c.is_alphanumeric() == wanted).map_or(self.text.len(), |at| from + at)
        };
        after(after(self.cursor, true), false)
    }

    /// Moves the cursor one line up or down, and returns whether there was such a line.
    pub(super) fn move_line(&mut self, down: bool) -> bool {
        let start = self.line_start();
        let column = self.cursor - start;
        let target = if down {
            Some(self.line_end() + 1).filter(|&next| next <= self.text.len())
        } else {
            let before = start.checked_sub(1);
            before.map(|end| self.text.iter().take(end).rposition(|&c| c == '\n').map_or(0, |at| at + 1))
        };
        let Some(target) = target else { return false };
        self.cursor = target;
        self.cursor = (target + column).min(self.line_end());
        true
    }
}

fn is_text(c: char) -> bool {
    !c.is_control() || c == '\n' || c == '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_on_both_sides() {
        let mut line = Line::new("echo one-two  three");
        assert_eq!(line.word_start(char::is_alphanumeric), 14);
        line.move_to(14);
        assert_eq!(line.word_start(char::is_alphanumeric), 9);
        assert_eq!(line.word_start(|c| !c.is_whitespace()), 5);
        line.move_to(0);
        assert_eq!(line.word_end(), 4);
    }

    #[test]
    fn the_cursor_moves_between_lines_and_keeps_its_column() {
        let mut line = Line::new("first\nse\nthird");
        assert!(line.move_line(false));
        assert_eq!(line.before(), "first\nse");
        assert!(line.move_line(false));
        assert_eq!(line.before(), "fi");
        assert!(!line.move_line(false));
        assert!(line.move_line(true) && line.move_line(true));
        assert!(!line.move_line(true));
    }

    #[test]
    fn control_characters_never_become_text() {
        let mut line = Line::new("a\x1b[2J\n\tb");
        line.insert("\x07c");
        assert_eq!(line.text(), "a[2J\n\tbc");
    }
}
