//! Compares output with a recording: times differ from run to run, so `…` stands for any text in a line.

/// Compares one line.
pub fn line_agrees(shown: &str, seen: &str) -> bool {
    let mut rest = seen;
    let parts: Vec<&str> = shown.split('…').collect();
    for (index, part) in parts.iter().enumerate() {
        let found = match index {
            0 => rest.starts_with(part).then_some(0),
            _ if index + 1 == parts.len() => rest.len().checked_sub(part.len()).filter(|_| rest.ends_with(part)),
            _ => rest.find(part),
        };
        let Some(at) = found else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

#[test]
fn dots_stand_for_any_text() {
    assert!(line_agrees("a…c", "abc") && line_agrees("a…", "a") && line_agrees("…c…", "abcd") && line_agrees("a…b…", "a b b b"));
    assert!(line_agrees("a … b", "a b b b") && line_agrees("same", "same"));
    assert!(!line_agrees("a…c", "abd") && !line_agrees("abc", "ab") && !line_agrees("ab…b", "ab"));
}
