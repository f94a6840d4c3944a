//! Rendering of the edited text: the bytes to write to a terminal of a given width, and the resulting cursor position.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use crate::printer::shown;

/// The last drawing, so that it can be overwritten.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Screen {
    /// The row of the cursor, relative to the first row of the prompt.
    row: usize,
}

/// The content to draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// The prompt as written, including colors.
    pub(super) prompt: &'a str,
    /// The prompt's width on the terminal.
    pub(super) prompt_width: usize,
    /// The prompt of every other line.
    pub(super) continuation: &'a str,
    /// The text.
    pub(super) text: &'a str,
    /// The number of characters before the cursor.
    pub(super) cursor: usize,
}

/// A position on the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    row: usize,
    column: usize,
}

impl Screen {
    /// Returns the bytes that draw `view` over the previous drawing.
    pub(super) fn draw(&mut self, view: &View<'_>, width: usize) -> String {
        let width = width.max(2);
        let mut drawn = self.back_to_prompt();
        drawn.push_str(view.prompt);
        let mut place = Place { row: view.prompt_width / width, column: view.prompt_width % width };
        let mut cursor = None;
        for (index, c) in view.text.chars().enumerate() {
            if index == view.cursor {
                cursor = Some(place);
            }
            if c == '\n' {
                drawn.push_str("\r\n");
                drawn.push_str(view.continuation);
                place = Place { row: place.row + 1, column: view.continuation.chars().count() };
                continue;
            }
            // A tab is drawn as spaces up to the next tab stop, so that the column is known.
            let shown = if c == '\t' { " ".repeat(8 - place.column % 8) } else { shown(c).to_string() };
            for c in shown.chars() {
                let columns = c.width().unwrap_or(0);
                if place.column + columns > width {
                    drawn.push_str("\r\n");
                    place = Place { row: place.row + 1, column: 0 };
                }
                drawn.push(c);
                place.column += columns;
            }
        }
        // After a full last row, terminals differ in where the cursor is.
        if place.column >= width {
            drawn.push_str("\r\n");
            place = Place { row: place.row + 1, column: 0 };
        }
        let cursor = cursor.unwrap_or(place);
        if place.row > cursor.row {
            let _ = write!(drawn, "\x1b[{}A", place.row - cursor.row);
        }
        drawn.push('\r');
        if cursor.column > 0 {
            let _ = write!(drawn, "\x1b[{}C", cursor.column);
        }
        self.row = cursor.row;
        drawn
    }

    /// Returns the bytes that clear the drawing and move to where the prompt was.
    pub(super) fn back_to_prompt(&mut self) -> String {
        let row = std::mem::take(&mut self.row);
        let up = if row > 0 { format!("\x1b[{row}A") } else { String::new() };
        format!("{up}\r\x1b[J")
    }

    /// Notes that something else was written: the next drawing starts at the cursor.
    pub(super) fn forget(&mut self) {
        self.row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, cursor: usize, expected: &str) {
        let view = View { prompt: "$ ", prompt_width: 2, continuation: "> ", text, cursor };
        assert_eq!(Screen::default().draw(&view, 10), format!("\r\x1b[J$ {expected}"));
    }

    #[test]
    fn the_cursor_matches_the_text() {
        check("", 0, "\r\x1b[2C");
        check("abc", 3, "abc\r\x1b[5C");
        check("abc", 0, "abc\r\x1b[2C");
        check("日本", 1, "日本\r\x1b[4C");
    }

    #[test]
    fn long_and_several_lines_are_wrapped() {
        check("12345678", 8, "12345678\r\n\r");
        check("123456789", 1, "12345678\r\n9\x1b[1A\r\x1b[3C");
        check("if\nfi", 5, "if\r\n> fi\r\x1b[4C");
        check("if\nfi", 1, "if\r\n> fi\x1b[1A\r\x1b[3C");
        check("1234567日", 8, "1234567\r\n日\r\x1b[2C");
    }

    #[test]
    fn the_previous_screen_is_overwritten() {
        let mut screen = Screen::default();
        let view = View { prompt: "$ ", prompt_width: 2, continuation: "> ", text: "a\nb", cursor: 3 };
        screen.draw(&view, 10);
        assert!(screen.draw(&view, 10).starts_with("\x1b[1A\r\x1b[J$ "));
    }
}
