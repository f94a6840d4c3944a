//! POSIX extended regular expressions, written again for the regex engine.

/// The same expression in the engine's syntax; `None` when bash would call it wrong.
#[must_use]
pub fn translate(source: &str) -> Option<String> {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    let mut depth = 0u32;
    // Where nothing stands that could be repeated, `*` is an error.
    let mut repeatable = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                match chars.next() {
                    Some('<') => out.push_str(r"\b{start}"),
                    Some('>') => out.push_str(r"\b{end}"),
                    Some('`') => out.push_str(r"\A"),
                    Some('\'') => out.push_str(r"\z"),
                    Some(class @ ('w' | 'W' | 's' | 'S' | 'b' | 'B')) => {
                        out.push('\\');
                        out.push(class);
                    }
                    Some(other) => push_literal(&mut out, other),
                    None => return None,
                }
                repeatable = true;
            }
            '[' => {
                translate_bracket(&mut chars, &mut out)?;
                repeatable = true;
            }
            '(' => {
                depth += 1;
                out.push('(');
                repeatable = false;
                continue;
            }
            ')' if depth > 0 => {
                depth -= 1;
                out.push(')');
                repeatable = true;
            }
            ')' => push_literal(&mut out, ')'),
            '*' | '+' | '?' | '{' if !repeatable => return None,
            '*' | '+' | '?' => {
                out.push(c);
                // The engine would read `a+?` as a lazy repetition; POSIX repeats the repetition.
                while let Some(next) = chars.peek().copied().filter(|next| matches!(next, '*' | '+' | '?')) {
                    chars.next();
                    wrap_last(&mut out);
                    out.push(next);
                }
            }
            '{' => {
                let interval: String = chars.clone().take_while(|c| *c != '}').collect();
                if is_interval(&interval) && chars.clone().any(|c| c == '}') {
                    let interval = if interval.starts_with(',') { format!("0{interval}") } else { interval.clone() };
                    out.push('{');
                    out.push_str(&interval);
                    out.push('}');
                    let skip = chars.clone().take_while(|c| *c != '}').count() + 1;
                    for _ in 0..skip {
                        chars.next();
                    }
                } else {
                    return None;
                }
            }
            '|' => {
                out.push('|');
                repeatable = false;
            }
            '^' => {
                out.push_str(r"\A");
                repeatable = false;
            }
            '$' => {
                out.push_str(r"\z");
                repeatable = true;
            }
            '.' => {
                out.push('.');
                repeatable = true;
            }
            other => {
                push_literal(&mut out, other);
                repeatable = true;
            }
        }
    }
    (depth == 0).then_some(out)
}

/// Puts what the last repetition repeats into a group, so that another can follow.
fn wrap_last(out: &mut String) {
    let whole = std::mem::take(out);
    // The repetition is of the last atom; wrapping all of what precedes would change alternations, so find its start.
    let start = last_atom(&whole);
    out.push_str(&whole[..start]);
    out.push_str("(?:");
    out.push_str(&whole[start..]);
    out.push(')');
}

fn last_atom(text: &str) -> usize {
    let bytes = text.as_bytes();
    let end = bytes.len().saturating_sub(1);
    match bytes.get(end.wrapping_sub(1)) {
        Some(b')') => {
            let mut depth = 0;
            for at in (0..end).rev() {
                match bytes[at] {
                    b')' => depth += 1,
                    b'(' => {
                        depth -= 1;
                        if depth == 0 {
                            return at;
                        }
                    }
                    _ => {}
                }
            }
            0
        }
        Some(b']') => text[..end].rfind('[').unwrap_or(0),
        _ => {
            let at = text[..end].char_indices().next_back().map_or(0, |(at, _)| at);
            if at > 0 && bytes[at - 1] == b'\\' { at - 1 } else { at }
        }
    }
}

fn is_interval(text: &str) -> bool {
    let (low, high) = text.split_once(',').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    digits(low) && digits(high) && !text.is_empty() && text != ","
}

fn push_literal(out: &mut String, c: char) {
    // The engine reads `\<` and `\>` as the edges of words.
    if c.is_ascii_punctuation() && !matches!(c, '<' | '>') {
        out.push('\\');
    }
    out.push(c);
}

fn translate_bracket(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    if chars.peek() == Some(&'^') {
        chars.next();
        out.push('^');
    }
    let mut first = true;
    loop {
        let c = chars.next()?;
        match c {
            ']' if !first => break,
            '[' if matches!(chars.peek(), Some(':' | '.' | '=')) => {
                let kind = chars.next()?;
                let mut name = String::new();
                loop {
                    let c = chars.next()?;
                    if c == kind && chars.peek() == Some(&']') {
                        chars.next();
                        break;
                    }
                    name.push(c);
                }
                if kind == ':' {
                    const CLASSES: [&str; 12] = [
                        "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
                        "xdigit",
                    ];
                    if !CLASSES.contains(&name.as_str()) {
                        return None;
                    }
                    match name.as_str() {
                        "alpha" => out.push_str(r"\p{Alphabetic}"),
                        "alnum" => out.push_str(r"\p{Alphabetic}\p{Nd}"),
                        "lower" => out.push_str(r"\p{Lowercase}"),
                        "upper" => out.push_str(r"\p{Uppercase}"),
                        _ => {
                            out.push_str("[:");
                            out.push_str(&name);
                            out.push_str(":]");
                        }
                    }
                } else {
                    for c in name.chars() {
                        push_literal(out, c);
                    }
                }
            }
            '-' if first || chars.peek() == Some(&']') => out.push_str(r"\-"),
            '-' => out.push('-'),
            other => push_literal(out, other),
        }
        first = false;
    }
    out.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, text: &str, expected: bool) {
        let regex = regex::Regex::new(&translate(source).expect("valid")).expect("translated");
        assert_eq!(regex.is_match(text), expected, "{source} on {text}");
    }

    #[test]
    fn posix_expressions_match_as_in_c() {
        check("^[[:digit:]]+$", "123", true);
        check("^[]a]+$", "]a", true);
        check("a{2}", "aa", true);
        check("^(a|b)*$", "abba", true);
        check(r"\.", "x", false);
        check("[a-c-]", "-", true);
        check(r"[\d]", "\\", true);
        check("(<a>)", "<a>", true);
    }

    #[test]
    fn repetitions_of_nothing_are_errors() {
        for source in ["*", "+a", "a|*b", "(*a)", "^*a", "{", "a{", "a{1", "a{x}"] {
            assert_eq!(translate(source), None, "{source}");
        }
    }
}
