//! Names in messages, quoted as GNU's `quotearg` does.

use std::ffi::OsStr;

use crate::program;

/// Returns the name as it is when a shell could take it so, else in shell quotes: `cat: 'a b': …`.
pub fn maybe(name: &OsStr) -> String {
    let bytes = name.as_encoded_bytes();
    // A colon would make the message ambiguous.
    shell(bytes, bytes.contains(&b':'))
}

/// Returns the name in shell quotes: `cannot access 'a'`.
pub fn always(name: impl AsRef<OsStr>) -> String {
    shell(name.as_ref().as_encoded_bytes(), true)
}

/// Text in the locale's quotes with C escapes: `invalid number of lines: 'x'`, with curled quotes where text is UTF-8.
pub fn plain(text: impl AsRef<OsStr>) -> String {
    plain_bytes(text.as_ref().as_encoded_bytes())
}

/// Bytes in the locale's quotes with C escapes.
pub fn plain_bytes(bytes: &[u8]) -> String {
    let (open, close) = if program::utf8() { ('‘', '’') } else { ('\'', '\'') };
    let mut out = String::from(open);
    for piece in pieces(bytes) {
        match piece {
            Piece::Char(c) if c == close => {
                out.push('\\');
                out.push(c);
            }
            Piece::Char('\\') => out.push_str("\\\\"),
            Piece::Char(c) => out.push(c),
            Piece::Escape(byte) => out.push_str(&escape(byte)),
        }
    }
    out.push(close);
    out
}

enum Piece {
    Char(char),
    Escape(u8),
}

fn pieces(bytes: &[u8]) -> Vec<Piece> {
    let utf8 = program::utf8();
    let mut out = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_ascii_graphic() || c == ' ' || (utf8 && !c.is_ascii() && !c.is_control()) {
                out.push(Piece::Char(c));
            } else {
                let mut buffer = [0; 4];
                out.extend(c.encode_utf8(&mut buffer).bytes().map(Piece::Escape));
            }
        }
        out.extend(chunk.invalid().iter().map(|&byte| Piece::Escape(byte)));
    }
    out
}

fn escape(byte: u8) -> String {
    match byte {
        7 => "\\a".into(),
        8 => "\\b".into(),
        9 => "\\t".into(),
        10 => "\\n".into(),
        11 => "\\v".into(),
        12 => "\\f".into(),
        13 => "\\r".into(),
        byte => format!("\\{byte:03o}"),
    }
}

/// Returns whether a shell would read the bytes as one plain word.
fn is_plain_word(bytes: &[u8]) -> bool {
    if bytes.is_empty() || matches!(bytes, b"{" | b"}") || matches!(bytes[0], b'#' | b'~') {
        return false;
    }
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || "%+,-./:@]_{}#~".contains(c) || (!c.is_ascii() && program::utf8() && !c.is_control())
    };
    bytes.utf8_chunks().all(|chunk| chunk.invalid().is_empty() && chunk.valid().chars().all(plain))
}

/// Shell quoting with `$'…'` for what cannot be printed.
pub fn shell(bytes: &[u8], force: bool) -> String {
    if !force && is_plain_word(bytes) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let list = pieces(bytes);
    let escapes = list.iter().any(|piece| matches!(piece, Piece::Escape(_)));
    if !escapes {
        let text: String = list.iter().map(|piece| if let Piece::Char(c) = piece { *c } else { '?' }).collect();
        if !text.contains('\'') {
            return format!("'{text}'");
        }
        // Double quotes read better than '\'' when nothing in them is special.
        if !text.contains(['"', '$', '`', '\\', '!']) {
            return format!("\"{text}\"");
        }
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut out = String::from("'");
    let mut escaping = false;
    for piece in list {
        match piece {
            Piece::Char(c) => {
                if escaping {
                    out.push_str("''");
                    escaping = false;
                }
                if c == '\'' {
                    out.push_str("'\\''");
                } else {
                    out.push(c);
                }
            }
            Piece::Escape(byte) => {
                if !escaping {
                    out.push_str("'$'");
                    escaping = true;
                }
                out.push_str(&escape(byte));
            }
        }
    }
    out.push('\'');
    out
}

/// Returns a listed name in shell quotes where a shell needs them: unlike in messages, `:` needs none and `~` at the end does not.
pub fn shell_name(bytes: &[u8], force: bool) -> String {
    shell(bytes, force)
}

/// Shell quotes without escapes: what cannot be printed stays as it is.
pub fn shell_plain(bytes: &[u8], force: bool) -> Vec<u8> {
    if !force && is_plain_word(bytes) {
        return bytes.to_vec();
    }
    if bytes.contains(&b'\'') && !bytes.iter().any(|byte| b"\"$`\\!".contains(byte)) {
        return [b"\"", bytes, b"\""].concat();
    }
    let mut out = vec![b'\''];
    for &byte in bytes {
        if byte == b'\'' { out.extend_from_slice(b"'\\''") } else { out.push(byte) }
    }
    out.push(b'\'');
    out
}

/// C escapes; in double quotes, or with blanks escaped too.
pub fn c_style(bytes: &[u8], quotes: bool) -> String {
    let mut out = String::new();
    if quotes {
        out.push('"');
    }
    for piece in pieces(bytes) {
        match piece {
            Piece::Char('\\') => out.push_str("\\\\"),
            Piece::Char('"') if quotes => out.push_str("\\\""),
            Piece::Char(' ') if !quotes => out.push_str("\\ "),
            Piece::Char(c) => out.push(c),
            Piece::Escape(byte) => out.push_str(&escape(byte)),
        }
    }
    if quotes {
        out.push('"');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_gnu_quotes_them() {
        for (name, maybe_text, always_text) in [
            ("a", "a", "'a'"),
            ("a b", "'a b'", "'a b'"),
            ("", "''", "''"),
            ("it's", "\"it's\"", "\"it's\""),
            ("a\nb", "'a'$'\\n''b'", "'a'$'\\n''b'"),
            ("a:b", "'a:b'", "'a:b'"),
        ] {
            assert_eq!(maybe(OsStr::new(name)), maybe_text);
            assert_eq!(always(name), always_text);
        }
    }
}
