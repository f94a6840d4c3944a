//! Keyboard input, read by one thread: for the line editor between commands, and for a command's standard input while it runs.

use std::collections::VecDeque;
use std::io::{self, Read, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use runtime::{ChildStdin, Command};
use termion::event::{Event, Key, parse_event};

/// An Escape not followed by another byte within this time is the Escape key; otherwise it starts the code of another key.
const ESCAPE_ALONE: Duration = Duration::from_millis(50);

/// The byte that Ctrl-D sends to a program that reads single keys.
const CTRL_D: u8 = 4;

/// The sequences that terminals put around pasted text, without the Escape.
const PASTE_BEGINS: &[u8] = b"[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// One input event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// A key.
    Key(Key),
    /// Text that arrived at once.
    Paste(String),
    /// The terminal was closed.
    Gone,
}

/// The terminal's input. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Keyboard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    typed: VecDeque<Typed>,
    gone: bool,
    command_ended: bool,
}

#[derive(Clone, Copy, Debug)]
enum Typed {
    Byte(u8),
    /// Ctrl-D on an empty line, which ends a command's input but not the terminal.
    End,
}

impl Keyboard {
    /// Starts reading standard input.
    pub(super) fn open() -> io::Result<Self> {
        Self::over(io::stdin())
    }

    fn over(mut source: impl Read + Send + 'static) -> io::Result<Self> {
        let keyboard = Self(Arc::default());
        let shared = Arc::clone(&keyboard.0);
        thread::Builder::new().name("sandlite keyboard".to_owned()).spawn(move || {
            let mut buffer = [0; 4096];
            let mut last_end = None::<Instant>;
            loop {
                match source.read(&mut buffer) {
                    // A terminal that was hung up reports end of file continuously.
                    Ok(0) if last_end.is_some_and(|end| end.elapsed() < Duration::from_millis(5)) => break,
                    Ok(0) => {
                        last_end = Some(Instant::now());
                        shared.push([Typed::End]);
                    }
                    Ok(length) => shared.push(buffer.iter().take(length).map(|&byte| Typed::Byte(byte))),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            shared.state().gone = true;
            shared.changed.notify_all();
        })?;
        Ok(keyboard)
    }

    /// Returns the next event.
    pub(super) fn next(&self) -> Pressed {
        loop {
            let Some(first) = self.byte(None) else { return Pressed::Gone };
            if first == 0x1b && !self.0.has_more(ESCAPE_ALONE) {
                return Pressed::Key(Key::Esc);
            }
            if first == 0x1b && self.0.take(PASTE_BEGINS) {
                return Pressed::Paste(self.pasted());
            }
            let mut rest = std::iter::from_fn(|| self.byte(Some(ESCAPE_ALONE)).map(Ok));
            if let Ok(Event::Key(key)) = parse_event(first, &mut rest) {
                return Pressed::Key(key);
            }
        }
    }

    fn pasted(&self) -> String {
        let mut text = Vec::new();
        while let Some(byte) = self.byte(None) {
            text.push(byte);
            if text.ends_with(PASTE_ENDS) {
                text.truncate(text.len() - PASTE_ENDS.len());
                break;
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    fn byte(&self, patience: Option<Duration>) -> Option<u8> {
        if patience.is_some_and(|patience| !self.0.has_more(patience)) {
            return None;
        }
        let mut state = self.0.state();
        while state.typed.is_empty() && !state.gone {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.typed.pop_front()? {
            Typed::Byte(byte) => Some(byte),
            // Typed just before the editor took over the terminal.
            Typed::End => Some(CTRL_D),
        }
    }

    /// Starts routing input to a command, one line per read. The rest stays for the editor.
    pub(super) fn feed(&self, command: Command) -> Command {
        self.0.state().command_ended = false;
        let shared = Arc::clone(&self.0);
        let begins = Arc::new(Mutex::new(None::<ChildStdin>));
        let asked = Arc::clone(&begins);
        let (command, stdin) = command.stdin_on_demand(move || {
            if let Some(stdin) = asked.lock().unwrap_or_else(PoisonError::into_inner).take() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.type_for(stdin));
            }
            // Under the lock, so that a thread about to wait does not miss it.
            let _state = shared.state();
            shared.changed.notify_all();
        });
        *begins.lock().unwrap_or_else(PoisonError::into_inner) = Some(stdin);
        command.typed()
    }

    /// Routes input to the editor again after a command ended.
    pub(super) fn take_back(&self) {
        self.0.state().command_ended = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, typed: impl IntoIterator<Item = Typed>) {
        self.state().typed.extend(typed);
        self.changed.notify_all();
    }

    fn has_more(&self, patience: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), patience, |state| state.typed.is_empty() && !state.gone);
        matches!(waited.unwrap_or_else(PoisonError::into_inner).0.typed.front(), Some(Typed::Byte(_)))
    }

    // Consumes these bytes if they come next. A terminal writes a key's code at once.
    fn take(&self, code: &[u8]) -> bool {
        let mut state = self.state();
        let next = state.typed.iter().take(code.len()).map_while(|typed| match typed {
            Typed::Byte(byte) => Some(byte),
            Typed::End => None,
        });
        let is_next = next.eq(code);
        if is_next {
            state.typed.drain(..code.len());
        }
        is_next
    }

    fn type_for(&self, mut stdin: ChildStdin) {
        while let Some(line) = self.for_command(|| stdin.is_wanted()) {
            if line.is_empty() || stdin.write_all(&line).is_err() {
                return;
            }
        }
    }

    // Returns a line typed for the running command; an empty one at the end of its input, `None` when the command ended.
    fn for_command(&self, is_wanted: impl Fn() -> bool) -> Option<Vec<u8>> {
        let state = self.state();
        let waiting = |state: &mut State| !state.command_ended && !state.gone && (state.typed.is_empty() || !is_wanted());
        let mut state = self.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        if state.command_ended {
            return None;
        }
        let mut line = Vec::new();
        while let Some(&Typed::Byte(byte)) = state.typed.front() {
            state.typed.pop_front();
            // In type-ahead, the Enter key is encoded as the terminal sends it.
            line.push(if byte == b'\r' { b'\n' } else { byte });
            if line.ends_with(b"\n") {
                return Some(line);
            }
        }
        if line.is_empty() {
            state.typed.pop_front();
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &'static [u8]) -> Vec<Pressed> {
        let keyboard = Keyboard::over(bytes).unwrap();
        let pressed = std::iter::from_fn(|| Some(keyboard.next()).filter(|pressed| *pressed != Pressed::Gone));
        let mut pressed: Vec<_> = pressed.collect();
        assert_eq!(pressed.pop(), Some(Pressed::Key(Key::Ctrl('d'))), "the end of the input is that key");
        pressed
    }

    #[test]
    fn bytes_become_keys() {
        let key = |key| Pressed::Key(key);
        assert_eq!(keys(b"a\x1b[A\x03"), [key(Key::Char('a')), key(Key::Up), key(Key::Ctrl('c'))]);
        assert_eq!(keys("ü".as_bytes()), [key(Key::Char('ü'))]);
        assert_eq!(keys(b"\x1b"), [key(Key::Esc)]);
    }

    #[test]
    fn a_command_takes_a_line_when_it_asks_and_leaves_the_rest() {
        let shared = Shared::default();
        shared.push(b"one\ntwo\r".iter().map(|&byte| Typed::Byte(byte)));
        assert_eq!(shared.for_command(|| true).as_deref(), Some(&b"one\n"[..]));
        assert_eq!(shared.state().typed.len(), 4);
        assert_eq!(shared.for_command(|| true).as_deref(), Some(&b"two\n"[..]));
        shared.push([Typed::End]);
        assert_eq!(shared.for_command(|| true).as_deref(), Some(&b""[..]));
        shared.push([Typed::Byte(b'x')]);
        shared.state().command_ended = true;
        assert_eq!(shared.for_command(|| false), None);
        assert_eq!(shared.state().typed.len(), 1);
    }

    #[test]
    fn pasted_text_is_inserted_at_once() {
        assert_eq!(keys(b"\x1b[200~a\nb\x1b[201~c"), [Pressed::Paste("a\nb".to_owned()), Pressed::Key(Key::Char('c'))]);
    }
}
