//! Escaping of untrusted text in HTML.

use crate::printer::shown;

/// Escapes text between tags. Control characters and bidirectional controls become a visible sign.
pub(super) fn text(foreign: &str) -> String {
    let mut safe = String::with_capacity(foreign.len());
    for c in foreign.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c => safe.push(shown(c)),
        }
    }
    safe
}

/// Escapes text inside a quoted attribute.
pub(super) fn attribute(foreign: &str) -> String {
    text(foreign).replace(['\n', '\t'], " ")
}

/// Returns the first `bytes` bytes of a text, with a note if it is truncated.
pub(super) fn shortened(foreign: &str, bytes: usize) -> String {
    if foreign.len() <= bytes {
        return foreign.to_owned();
    }
    let kept = foreign.get(..foreign.floor_char_boundary(bytes)).unwrap_or_default();
    format!("{kept}\n… {} more bytes", foreign.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        assert_eq!(text("<script>alert('&\"')</script>"), "&lt;script&gt;alert(&#39;&amp;&quot;&#39;)&lt;/script&gt;");
        assert_eq!(attribute("a\" onload=\"x\n"), "a&quot; onload=&quot;x ");
    }

    #[test]
    fn invisible_and_bidirectional_characters_are_shown() {
        assert_eq!(text("a\u{202e}b\x1b[0m\0\u{61c}"), "a\u{fffd}b\u{fffd}[0m\u{fffd}\u{fffd}");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(shortened("äöü", 3), "ä\n… 4 more bytes");
        assert_eq!(shortened("abc", 3), "abc");
    }
}
