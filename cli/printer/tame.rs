//! Makes what a guest wrote harmless for a terminal: control sequences become a visible sign (T-ISO-07).

/// What stands for something that a terminal would have obeyed.
const SIGN: &str = "\u{fffd}";

/// The first byte of a C1 control in UTF-8; the second is 0x80 to 0x9F.
const C1_LEAD: u8 = 0xc2;

/// Tames a stream that comes in pieces.
#[derive(Debug)]
pub(crate) struct Tamer {
    active: bool,
    /// The last piece ended with [`C1_LEAD`], which means nothing before the next byte is known.
    held: bool,
}

impl Tamer {
    /// Changes nothing unless `active`.
    pub(crate) fn new(active: bool) -> Self {
        Self { active, held: false }
    }

    /// Replaces what a terminal would obey, but for line ends and tabs, by a visible sign.
    pub(crate) fn tame(&mut self, bytes: &[u8]) -> Vec<u8> {
        if !self.active {
            return bytes.to_vec();
        }
        let mut tamed = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if std::mem::take(&mut self.held) {
                if (0x80..=0x9f).contains(&byte) {
                    tamed.extend_from_slice(SIGN.as_bytes());
                    continue;
                }
                tamed.push(C1_LEAD);
            }
            match byte {
                b'\n' | b'\t' | b'\r' => tamed.push(byte),
                0x00..=0x1f | 0x7f => tamed.extend_from_slice(SIGN.as_bytes()),
                C1_LEAD => self.held = true,
                _ => tamed.push(byte),
            }
        }
        tamed
    }

    /// What is left at the end of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        if std::mem::take(&mut self.held) { vec![C1_LEAD] } else { Vec::new() }
    }
}

/// A text as one line: line ends too become a sign, for tables and messages.
pub(super) fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
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
    fn what_a_terminal_would_obey_is_made_harmless() {
        check(&[b"plain\ttext\n"], "plain\ttext\n");
        check(&[b"\x1b[2J\x1b]0;owned\x07"], "\u{fffd}[2J\u{fffd}]0;owned\u{fffd}");
        check(&["\u{9b}31m".as_bytes()], "\u{fffd}31m");
        check(&["grün ✓".as_bytes()], "grün ✓");
    }

    // T-ISO-07: the two bytes of a C1 control in two writes.
    #[test]
    fn a_control_that_comes_in_two_pieces_is_seen() {
        check(&[b"a\xc2", b"\x9b31m"], "a\u{fffd}31m");
        check(&[b"a\xc2", b"\xa9"], "a©");
        check(&[b"a\xc2"], "a\u{fffd}");
    }

    #[test]
    fn a_stream_to_a_program_is_left_alone() {
        assert_eq!(Tamer::new(false).tame(b"\x1b[2J\xc2"), b"\x1b[2J\xc2");
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(line("a\nb\x1b[m\tc"), "a\u{fffd}b\u{fffd}[m\u{fffd}c");
    }
}
