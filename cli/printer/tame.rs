//! Sanitizes guest output for terminals: control sequences become a visible sign (T-ISO-07).

/// The replacement for a character that a terminal would interpret.
const SIGN: char = '\u{fffd}';

/// Sanitizes a stream that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Tamer {
    active: bool,
    /// An incomplete character at the end of the last piece, kept until the rest arrives.
    held: Vec<u8>,
}

impl Tamer {
    /// Creates a filter that changes nothing unless `active`.
    pub(crate) fn new(active: bool) -> Self {
        Self { active, held: Vec::new() }
    }

    /// Replaces everything a terminal would interpret, except line feeds and tabs, by a visible sign. Invalid UTF-8 is replaced
    /// as well, because an eight-bit terminal may interpret such a byte as a control (0x9B starts a sequence as Escape and `[`
    /// do).
    pub(crate) fn tame(&mut self, bytes: &[u8]) -> Vec<u8> {
        if !self.active {
            return bytes.to_vec();
        }
        let mut whole = std::mem::take(&mut self.held);
        whole.extend_from_slice(bytes);
        let mut tamed = String::with_capacity(whole.len());
        let mut chunks = whole.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            tamed.extend(chunk.valid().chars().map(|c| if is_harmless(c) { c } else { SIGN }));
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_unfinished(invalid) {
                self.held = invalid.to_vec();
            } else if !invalid.is_empty() {
                tamed.push(SIGN);
            }
        }
        tamed.into_bytes()
    }

    /// Returns the rest at the end of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        if std::mem::take(&mut self.held).is_empty() { Vec::new() } else { SIGN.to_string().into_bytes() }
    }
}

fn is_harmless(c: char) -> bool {
    !is_deceptive(c) || matches!(c, '\n' | '\t' | '\r')
}

/// Returns whether a terminal or a browser would interpret a character instead of showing it: controls (C0, DEL, C1), and the
/// marks, embeddings, overrides and isolates that change the direction of the surrounding text.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control() || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the visible form of a character.
pub(crate) fn shown(c: char) -> char {
    if is_deceptive(c) { SIGN } else { c }
}

/// Returns JSON text in which every such character is escaped, so that it is harmless when displayed. They can occur only in
/// strings.
pub(super) fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_deceptive(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Sanitizes one of our own lines but keeps our own colors.
pub(super) fn wall(text: &str) -> String {
    let mut walled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = colour(rest).unwrap_or(0);
        if length > 0 {
            let (sequence, after) = rest.split_at(length);
            walled.push_str(sequence);
            rest = after;
            continue;
        }
        walled.push(if is_harmless(c) && c != '\r' { c } else { SIGN });
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    walled
}

// Returns the length of a leading sequence that only sets colors.
fn colour(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\x1b[")?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inner.get(end..)?.starts_with('m').then_some(end + 3)
}

fn is_unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Returns a text as one line for tables and messages: line feeds become a sign too.
pub(super) fn line(text: &str) -> String {
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], expected: &str) {
        let mut tamer = Tamer::new(true);
        let mut tamed: Vec<u8> = pieces.iter().flat_map(|piece| tamer.tame(piece)).collect();
        tamed.extend(tamer.finish());
        assert_eq!(String::from_utf8_lossy(&tamed), expected);
    }

    // T-ISO-07.
    #[test]
    fn control_sequences_are_escaped() {
        check(&[b"plain\ttext\n"], "plain\ttext\n");
        check(&[b"\x1b[2J\x1b]0;owned\x07"], "\u{fffd}[2J\u{fffd}]0;owned\u{fffd}");
        check(&["\u{9b}31m".as_bytes()], "\u{fffd}31m");
        check(&["grün ✓".as_bytes()], "grün ✓");
        check(&[b"eight bits: \x9b31m \xff"], "eight bits: \u{fffd}31m \u{fffd}");
    }

    // T-ISO-07: the two bytes of a C1 control in two writes.
    #[test]
    fn a_control_sequence_in_two_pieces_is_found() {
        check(&[b"a\xc2", b"\x9b31m"], "a\u{fffd}31m");
        check(&[b"a\xc2", b"\xa9"], "a©");
        check(&[b"a\xc2"], "a\u{fffd}");
        check(&[b"\xe2", b"\x9c", b"\x93"], "✓");
        check(&[b"\xe2\x9c", b"\x9b31m"], "✛31m");
        check(&[b"\xe2\x9c", b"\x1b[m"], "\u{fffd}\u{fffd}[m");
    }

    // T-ISO-07: `invoice_fdp.exe` that looks like `invoice_exe.pdf`.
    #[test]
    fn characters_that_turn_the_direction_of_text_are_made_visible() {
        for c in ['\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202c}', '\u{202e}', '\u{2066}', '\u{2069}'] {
            let text = format!("a{c}b");
            check(&[text.as_bytes()], "a\u{fffd}b");
            assert_eq!((line(&text), wall(&text)), ("a\u{fffd}b".to_owned(), "a\u{fffd}b".to_owned()));
            assert_eq!(json(&text), format!("a\\u{:04x}b", u32::from(c)));
        }
        check(&["שלום مرحبا".as_bytes()], "שלום مرحبا");
    }

    // T-ISO-07.
    #[test]
    fn json_stays_data_on_a_terminal() {
        let value = serde_json::json!({ "\u{9b}31m": "\u{7f}\u{80}\u{9f}\u{1b}\u{202e}ü" });
        let text = json(&value.to_string());
        assert_eq!(text, r#"{"\u009b31m":"\u007f\u0080\u009f\u001b\u202eü"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    // T-ISO-07: the last line of defense passes only our own colors.
    #[test]
    fn a_line_of_our_own_has_colours_and_no_other_sequence() {
        assert_eq!(wall("\x1b[1;31merror:\x1b[0m x\n"), "\x1b[1;31merror:\x1b[0m x\n");
        assert_eq!(wall("\x1b[2J\x1b]0;t\x07\r\x1b["), "\u{fffd}[2J\u{fffd}]0;t\u{fffd}\u{fffd}\u{fffd}[");
    }

    #[test]
    fn output_to_a_program_is_not_changed() {
        assert_eq!(Tamer::new(false).tame(b"\x1b[2J\xc2"), b"\x1b[2J\xc2");
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(line("a\nb\x1b[m\tc"), "a\u{fffd}b\u{fffd}[m\u{fffd}c");
    }
}
