//! The line editor: reads keys and returns a whole command. Supports the usual keys of a shell, history, search and completion.
//!
//! Written for this program, on termion's keys. `rustyline` 18 has no continuation prompt, so a block of Python could not be
//! distinguished from a new command. `reedline` 0.48 has one, but depends on `chrono`, `crossterm` and some twenty more crates.
//! Both read the terminal themselves and keep what they read, so a command that runs next would not receive type-ahead.

use std::io::{self, Write};

use termion::event::Key;

use super::keyboard::{Keyboard, Pressed};
use super::line::Line;
use super::screen::{Screen, View};
use crate::printer::shown;

/// The result of reading a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A whole command.
    Command(String),
    /// Ctrl-C: discard the input and start again.
    Nothing,
    /// Ctrl-D, or the terminal was closed.
    End,
}

/// The operations that depend on the language.
pub(super) trait Language {
    /// Returns whether a text is a complete command; otherwise Enter starts another line.
    fn is_complete(&mut self, text: &str) -> bool;

    /// Returns the start of the word that ends `before`, in characters, and its completions.
    fn complete(&mut self, before: &str) -> (usize, Vec<String>);

    /// Returns the text to insert after a completed word.
    fn after_word(&self) -> &'static str;
}

/// A prompt.
#[derive(Clone, Debug)]
pub(super) struct Prompt {
    /// The text as written to the terminal.
    pub(super) text: String,
    /// Its width on the terminal.
    pub(super) width: usize,
    /// The prompt of continuation lines.
    pub(super) continuation: &'static str,
}

/// Maximum number of completions to list, so that they do not scroll everything else away.
const CHOICES: usize = 100;

/// Enables bracketed paste, so that pasted lines are not run one by one.
const PASTE_MARKED: &str = "\x1b[?2004h";
const PASTE_PLAIN: &str = "\x1b[?2004l";

pub(super) struct Editor {
    keyboard: Keyboard,
    history: Vec<String>,
    cut: String,
}

/// A command being typed.
struct Editing<'a> {
    prompt: &'a Prompt,
    line: Line,
    screen: Screen,
    /// The position in the history, and the text typed before moving there.
    back: usize,
    typed: Line,
    /// The search text of Ctrl-R.
    search: Option<String>,
}

/// The action after a key.
enum Next {
    Edit,
    Typed(Typed),
}

impl Editor {
    /// Creates an editor whose history contains these commands, oldest first.
    pub(super) fn new(keyboard: Keyboard, history: Vec<String>) -> Self {
        Self { keyboard, history, cut: String::new() }
    }

    /// Reads one command. The terminal is in raw mode.
    pub(super) fn read(&mut self, prompt: &Prompt, language: &mut dyn Language, out: &mut dyn Write) -> io::Result<Typed> {
        let line = Line::default();
        let mut editing = Editing { prompt, line: line.clone(), screen: Screen::default(), back: 0, typed: line, search: None };
        write!(out, "{PASTE_MARKED}")?;
        loop {
            editing.draw(out)?;
            let next = match self.keyboard.next() {
                Pressed::Key(key) if editing.search.is_some() => self.search(key, &mut editing),
                Pressed::Key(key) => self.press(key, &mut editing, language, out)?,
                Pressed::Paste(text) => {
                    editing.line.insert(&text.replace("\r\n", "\n").replace('\r', "\n"));
                    Next::Edit
                }
                Pressed::Gone => Next::Typed(Typed::End),
            };
            if let Next::Typed(typed) = next {
                // The cursor moves out of the text before anything else is written.
                editing.search = None;
                editing.line.move_to(editing.line.end());
                editing.draw(out)?;
                let mark = if typed == Typed::Nothing { "^C" } else { "" };
                write!(out, "{mark}{PASTE_PLAIN}\r\n")?;
                out.flush()?;
                if let Typed::Command(text) = &typed {
                    self.remember(text);
                }
                return Ok(typed);
            }
        }
    }

    fn remember(&mut self, text: &str) {
        if !text.trim().is_empty() && self.history.last().is_none_or(|last| last != text) {
            self.history.push(text.to_owned());
        }
    }

    fn press(
        &mut self,
        key: Key,
        editing: &mut Editing<'_>,
        language: &mut dyn Language,
        out: &mut dyn Write,
    ) -> io::Result<Next> {
        let line = &mut editing.line;
        let cursor = line.cursor();
        match key {
            Key::Char('\n' | '\r') => {
                let text = line.text();
                if language.is_complete(&text) {
                    return Ok(Next::Typed(Typed::Command(text)));
                }
                line.move_to(line.end());
                line.insert("\n");
            }
            Key::Char('\t') => complete(editing, language, out)?,
            Key::Char(c) => line.insert(c.encode_utf8(&mut [0; 4])),
            Key::Ctrl('c') => return Ok(Next::Typed(Typed::Nothing)),
            Key::Ctrl('d') if line.is_empty() => return Ok(Next::Typed(Typed::End)),
            Key::Ctrl('d') | Key::Delete => drop(line.cut(cursor, (cursor + 1).min(line.end()))),
            Key::Backspace | Key::Ctrl('h') => drop(line.cut(cursor.saturating_sub(1), cursor)),
            Key::Left | Key::Ctrl('b') => line.move_to(cursor.saturating_sub(1)),
            Key::Right | Key::Ctrl('f') => line.move_to(cursor + 1),
            Key::Home | Key::Ctrl('a') => line.move_to(line.line_start()),
            Key::End | Key::Ctrl('e') => line.move_to(line.line_end()),
            Key::Alt('b') => line.move_to(line.word_start(char::is_alphanumeric)),
            Key::Alt('f') => line.move_to(line.word_end()),
            Key::Alt('d') => self.cut = line.cut(cursor, line.word_end()),
            Key::Ctrl('k') => self.cut = line.cut(cursor, line.line_end()),
            Key::Ctrl('u') => self.cut = line.cut(line.line_start(), cursor),
            Key::Ctrl('w') => self.cut = line.cut(line.word_start(|c| !c.is_whitespace()), cursor),
            Key::Ctrl('y') => line.insert(&self.cut),
            Key::Ctrl('l') => {
                write!(out, "\x1b[H\x1b[2J")?;
                editing.screen.forget();
            }
            Key::Up if line.move_line(false) => {}
            Key::Down if line.move_line(true) => {}
            Key::Up | Key::Ctrl('p') => self.go_back(editing, editing.back + 1),
            Key::Down | Key::Ctrl('n') => self.go_back(editing, editing.back.saturating_sub(1)),
            Key::Ctrl('r') => editing.search = Some(String::new()),
            _ => {}
        }
        Ok(Next::Edit)
    }

    fn go_back(&self, editing: &mut Editing<'_>, back: usize) {
        if editing.back == 0 {
            editing.typed = editing.line.clone();
        }
        if back == 0 {
            editing.line = editing.typed.clone();
        } else if let Some(text) = self.history.len().checked_sub(back).and_then(|at| self.history.get(at)) {
            editing.line = Line::new(text);
        } else {
            return;
        }
        editing.back = back;
    }

    // While searching, text changes the search; every other key ends the search and keeps the match.
    fn search(&mut self, key: Key, editing: &mut Editing<'_>) -> Next {
        let mut wanted = editing.search.clone().unwrap_or_default();
        let from = match key {
            Key::Char(c) if !c.is_control() => {
                wanted.push(c);
                editing.back.max(1)
            }
            Key::Backspace | Key::Ctrl('h') => {
                wanted.pop();
                1
            }
            Key::Ctrl('r') => editing.back + 1,
            Key::Char('\n' | '\r') => {
                editing.search = None;
                return Next::Typed(Typed::Command(editing.line.text()));
            }
            Key::Ctrl('c' | 'g') => {
                editing.search = None;
                editing.line = Line::default();
                editing.back = 0;
                return Next::Edit;
            }
            _ => {
                editing.search = None;
                return Next::Edit;
            }
        };
        let found = self.history.iter().rev().enumerate().skip(from - 1).find(|(_, text)| text.contains(&wanted));
        if let Some((at, text)) = found.filter(|_| !wanted.is_empty()) {
            editing.line = Line::new(text);
            editing.back = at + 1;
        }
        editing.search = Some(wanted);
        Next::Edit
    }
}

impl Editing<'_> {
    fn draw(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let width = super::width();
        let text = self.line.text();
        let searching = self.search.as_ref().map(|wanted| format!("(search: {wanted}) "));
        let (prompt, prompt_width) = match &searching {
            Some(prompt) => (prompt.as_str(), prompt.chars().count()),
            None => (self.prompt.text.as_str(), self.prompt.width),
        };
        let view = View { prompt, prompt_width, continuation: self.prompt.continuation, text: &text, cursor: self.line.cursor() };
        let drawn = self.screen.draw(&view, width);
        out.write_all(drawn.as_bytes())?;
        out.flush()
    }
}

fn complete(editing: &mut Editing<'_>, language: &mut dyn Language, out: &mut dyn Write) -> io::Result<()> {
    let before = editing.line.before();
    let (start, choices) = language.complete(&before);
    let word: String = before.chars().skip(start).collect();
    match choices.as_slice() {
        [] => {}
        [only] => {
            let end = if only.ends_with('/') { "" } else { language.after_word() };
            editing.line.replace_from(start, &format!("{only}{end}"));
        }
        several => {
            let common = common_start(several);
            if common.chars().count() > word.chars().count() {
                editing.line.replace_from(start, &common);
                return Ok(());
            }
            write!(out, "\r\n")?;
            let width = several.iter().map(|choice| choice.chars().count()).max().unwrap_or(0) + 2;
            let columns = (super::width() / width).max(1);
            for row in several.iter().take(CHOICES).collect::<Vec<_>>().chunks(columns) {
                let row: String =
                    row.iter().flat_map(|choice| format!("{choice:<width$}").chars().map(shown).collect::<Vec<_>>()).collect();
                write!(out, "{}\r\n", row.trim_end())?;
            }
            if several.len() > CHOICES {
                write!(out, "… and {} more\r\n", several.len() - CHOICES)?;
            }
            editing.screen.forget();
        }
    }
    Ok(())
}

fn common_start(choices: &[String]) -> String {
    let Some((first, rest)) = choices.split_first() else { return String::new() };
    let mut common: Vec<char> = first.chars().collect();
    for choice in rest {
        let same = common.iter().zip(choice.chars()).take_while(|(a, b)| **a == *b).count();
        common.truncate(same);
    }
    common.into_iter().collect()
}
