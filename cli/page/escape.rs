//! Foreign text in HTML: whatever a guest wrote, a browser sees text.

use crate::printer::shown;

/// Text between tags. Control characters, and those that turn the direction of what follows, become a visible sign.
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

/// Text inside of a quoted attribute.
pub(super) fn attribute(foreign: &str) -> String {
    text(foreign).replace(['\n', '\t'], " ")
}

/// The first `bytes` bytes of a text, and a sign when there are more.
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
    fn what_hides_or_turns_text_is_shown() {
        assert_eq!(text("a\u{202e}b\x1b[0m\0\u{61c}"), "a\u{fffd}b\u{fffd}[0m\u{fffd}\u{fffd}");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(shortened("äöü", 3), "ä\n… 4 more bytes");
        assert_eq!(shortened("abc", 3), "abc");
    }
}
