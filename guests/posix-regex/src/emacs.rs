//! Emacs's syntax, which `find -regex` and `tac -r` read.

/// Rewrites a pattern in basic syntax, from which Emacs's differs in `+` and `?` being operators.
#[must_use]
pub fn from_emacs(pattern: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(pattern.len() + 8);
    let mut at = 0;
    while at < pattern.len() {
        let byte = pattern[at];
        at += 1;
        match byte {
            b'\\' if at < pattern.len() => {
                if !matches!(pattern[at], b'+' | b'?') {
                    out.push(b'\\');
                }
                out.push(pattern[at]);
                at += 1;
            }
            b'+' | b'?' => {
                out.push(b'\\');
                out.push(byte);
            }
            b'[' => {
                out.push(b'[');
                let first = at;
                while at < pattern.len() && (pattern[at] != b']' || at == first || at == first + 1 && pattern[first] == b'^') {
                    out.push(pattern[at]);
                    at += 1;
                }
            }
            _ => out.push(byte),
        }
    }
    out
}
