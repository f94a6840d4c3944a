//! Brace expansion: `{a,b}` and `{1..9}`, done on a word before anything else is.
//!
//! Only unquoted text takes part. Quoted text and expansions are carried along as they are.

use crate::ast::{Part, QuoteStyle, Word};

/// Maximum nesting of braces; deeper ones are literal.
const MAX_DEPTH: u32 = 100;

/// A sequence of more numbers is literal.
const MOST_NUMBERS: i128 = i32::MAX as i128 - 2;

/// The expansion would have made more words than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// Returns whether a word might change: nearly all do not.
pub fn may_expand(word: &Word) -> bool {
    word.parts.iter().any(|part| matches!(part, Part::Literal(text) if text.as_bytes().contains(&b'{')))
        && word.parts.iter().any(|part| matches!(part, Part::Literal(text) if text.as_bytes().contains(&b'}')))
}

/// Returns the words that a word stands for, in order; at most `limit` of them.
pub fn expand(word: &Word, limit: usize) -> Result<Vec<Word>, TooMany> {
    let mut items = Vec::new();
    for part in &word.parts {
        match part {
            Part::Literal(text) => items.extend(text.chars().map(Item::Char)),
            other => items.push(Item::Part(other)),
        }
    }
    let words = expand_items(&items, limit, 0)?;
    Ok(words.into_iter().map(|items| Word { parts: join(items) }).collect())
}

#[derive(Clone, Copy, Debug)]
enum Item<'a> {
    Char(char),
    Part(&'a Part),
    /// A backslash out of `{Z..a}`, which bash takes for a quote of nothing.
    Nothing,
}

type Items<'a> = Vec<Item<'a>>;

fn join(items: Items<'_>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for item in items {
        match item {
            Item::Char(c) => {
                if let Some(Part::Literal(text)) = parts.last_mut() {
                    text.push(c);
                } else {
                    parts.push(Part::Literal(c.to_string()));
                }
            }
            Item::Part(part) => parts.push(part.clone()),
            Item::Nothing => parts.push(Part::Quoted(String::new(), QuoteStyle::Backslash)),
        }
    }
    parts
}

fn char_at(items: &[Item<'_>], at: usize) -> Option<char> {
    match items.get(at) {
        Some(Item::Char(c)) => Some(*c),
        _ => None,
    }
}

/// Returns the `}` that makes the text after a `{` an expansion: one with a comma or `..` before it, at its own level.
fn closing(items: &[Item<'_>], start: usize) -> Option<usize> {
    let (mut level, mut separators) = (0u32, 0u32);
    for at in start..items.len() {
        match char_at(items, at) {
            Some('{') => level += 1,
            Some('}') if level > 0 => level -= 1,
            Some('}') if separators > 0 => return Some(at),
            Some(',') if level == 0 => separators += 1,
            Some('.') if level == 0 && char_at(items, at + 1) == Some('.') && char_at(items, at + 2) != Some('}') => {
                separators += 1;
            }
            _ => {}
        }
    }
    None
}

fn expand_items<'a>(items: &[Item<'a>], limit: usize, depth: u32) -> Result<Vec<Items<'a>>, TooMany> {
    let mut words: Vec<Items<'a>> = vec![Vec::new()];
    let mut rest = items;
    loop {
        let Some((open, close)) = next_braces(rest, depth) else {
            for word in &mut words {
                word.extend_from_slice(rest);
            }
            return Ok(words);
        };
        let (before, after) = rest.split_at(open);
        let inner = after.get(1..close - open).unwrap_or_default();
        for word in &mut words {
            word.extend_from_slice(before);
        }
        let choices = if inner.iter().any(|item| matches!(item, Item::Char(','))) {
            list(inner, limit, depth)?
        } else {
            match sequence(inner, limit)? {
                Some(sequence) => sequence,
                None => vec![after.get(..=close - open).unwrap_or_default().to_vec()],
            }
        };
        if words.len().saturating_mul(choices.len()) > limit {
            return Err(TooMany);
        }
        words = words
            .iter()
            .flat_map(|word| choices.iter().map(move |choice| word.iter().chain(choice).copied().collect()))
            .collect();
        rest = rest.get(close + 1..).unwrap_or_default();
    }
}

/// Returns the first braces that are an expansion.
fn next_braces(items: &[Item<'_>], depth: u32) -> Option<(usize, usize)> {
    if depth > MAX_DEPTH {
        return None;
    }
    let last = items.iter().rposition(|item| matches!(item, Item::Char('}')))?;
    (0..last).find_map(|open| {
        if char_at(items, open) != Some('{') || (open == 0 && char_at(items, 1) == Some('}')) {
            return None;
        }
        closing(items, open + 1).map(|close| (open, close))
    })
}

/// `a,b,c`, each expanded in turn.
fn list<'a>(items: &[Item<'a>], limit: usize, depth: u32) -> Result<Vec<Items<'a>>, TooMany> {
    let mut words = Vec::new();
    let mut level = 0u32;
    let mut start = 0;
    for at in 0..=items.len() {
        match char_at(items, at) {
            Some('{') => level += 1,
            Some('}') => level = level.saturating_sub(1),
            Some(',') if level == 0 => {}
            _ if at == items.len() => {}
            _ => continue,
        }
        let separates = at == items.len() || (level == 0 && char_at(items, at) == Some(','));
        if !separates {
            continue;
        }
        words.extend(expand_items(items.get(start..at).unwrap_or_default(), limit, depth + 1)?);
        if words.len() > limit {
            return Err(TooMany);
        }
        start = at + 1;
    }
    Ok(words)
}

/// `1..9`, `a..z`, with an optional step.
fn sequence<'a>(items: &[Item<'a>], limit: usize) -> Result<Option<Vec<Items<'a>>>, TooMany> {
    let text: Option<String> = items.iter().map(|item| if let Item::Char(c) = item { Some(*c) } else { None }).collect();
    let Some(text) = text else { return Ok(None) };
    let mut ends = text.splitn(3, "..");
    let (Some(first), Some(last)) = (ends.next(), ends.next()) else { return Ok(None) };
    let step = match ends.next().map(str::parse::<i64>) {
        None => 1,
        Some(Ok(step)) => step,
        Some(Err(_)) => return Ok(None),
    };
    if let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let width = if is_padded(first) || is_padded(last) { first.len().max(last.len()) } else { 0 };
        if count(from, to, step) > MOST_NUMBERS {
            return Ok(None);
        }
        let numbers = numbers(from, to, step, limit)?;
        return Ok(Some(numbers.map(|number| number_items(number, width)).collect()));
    }
    let (Some(from), Some(to)) = (single(first), single(last)) else { return Ok(None) };
    let letters = numbers(i64::from(from), i64::from(to), step, limit)?;
    Ok(Some(
        letters
            .map(|code| {
                let c = char::from(u8::try_from(code).unwrap_or(b'?'));
                vec![if c == '\\' { Item::Nothing } else { Item::Char(c) }]
            })
            .collect(),
    ))
}

fn single(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_alphabetic() => Some(*byte),
        _ => None,
    }
}

fn is_padded(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0')
}

fn number_items<'a>(number: i64, width: usize) -> Items<'a> {
    let text = if width > 0 { sys::padding::zeros(number, width) } else { number.to_string() };
    text.chars().map(Item::Char).collect()
}

fn count(from: i64, to: i64, step: i64) -> i128 {
    (i128::from(to) - i128::from(from)).abs() / i128::from(step.unsigned_abs().max(1)) + 1
}

/// From one number to another, the step's sign not mattering.
fn numbers(from: i64, to: i64, step: i64, limit: usize) -> Result<impl Iterator<Item = i64>, TooMany> {
    let size = i128::from(step.unsigned_abs().max(1));
    let count = count(from, to, step);
    let (from, to) = (i128::from(from), i128::from(to));
    if usize::try_from(count).map_or(true, |count| count > limit) {
        return Err(TooMany);
    }
    let size = if to < from { -size } else { size };
    Ok((0..count).map(move |i| (from + i * size) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{Argument, Command};
    use crate::syntax::{Options, Parser};

    /// Checks the expansion of the words of `echo …`, each shown as its plain text.
    fn check(words: &str, expected: &str) {
        let list = Parser::new(&format!("echo {words}"), Options::default()).all().expect("the words are well-formed");
        let Some(Command::Simple(simple)) = list.items.first().and_then(|item| item.and_or.first.commands.first()) else {
            panic!("not a simple command");
        };
        let mut shown = Vec::new();
        for argument in simple.words.iter().skip(1) {
            let Argument::Word(word) = argument else { panic!("an assignment") };
            for word in expand(word, 1000).expect("few words") {
                let text = show(&word.parts);
                if !text.is_empty() {
                    shown.push(text);
                }
            }
        }
        assert_eq!(shown.join(" "), expected, "{words}");
    }

    fn show(parts: &[Part]) -> String {
        parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) | Part::Quoted(text, _) => text.clone(),
                Part::DoubleQuoted { parts, .. } => show(parts),
                _ => "$".to_owned(),
            })
            .collect()
    }

    #[test]
    fn words_are_those_of_bash() {
        for (words, expected) in [
            ("{a,b}c {a,b{c,d}}e {,x}y {a} {a,} {,} {} a{b}c {a,b", "ac bc ae bce bde y xy {a} a {} a{b}c {a,b"),
            ("{1..5} {5..1} {1..10..3} {10..1..3}", "1 2 3 4 5 5 4 3 2 1 1 4 7 10 10 7 4 1"),
            ("{01..10}", "01 02 03 04 05 06 07 08 09 10"),
            ("{-5..5..5} {1..5..0} {1..5..-2} {a..e} {e..a..2}", "-5 0 5 1 2 3 4 5 1 3 5 a b c d e e c a"),
            ("{z..a..-5} {A..c..5}", "z u p k f a A F K P U Z _"),
            ("{001..3} {-01..2} {1..03}", "001 002 003 -01 000 001 002 01 02 03"),
            ("{1.5..2} {a..1} {1..a} {a..bb} {1..} {..1} {1...3}", "{1.5..2} {a..1} {1..a} {a..bb} {1..} {..1} {1...3}"),
            ("x{1..2}{a,b}y", "x1ay x1by x2ay x2by"),
            (r#""{a,b}" {"a,b",c} {a\,b,c} \{a,b} {a,b\} '{'a,b} {a,b'}'"#, "{a,b} a,b c a,b c {a,b} {a,b} {a,b} {a,b}"),
            ("${x}{a,b} ${y:-{a,b}} {a,$(echo b,c)}", "$a $b $} a $"),
            ("{{a,b},c} {{a},b} {a,{b} a{b,c}d{e,f}g", "a b c {a} b {a,{b} abdeg abdfg acdeg acdfg"),
            ("{a,b}{ {a,b}} }{a,b} {{1..3},x} {x,{1..3}y}", "a{ b{ a} b} }a }b 1 2 3 x x 1y 2y 3y"),
            ("{9223372036854775805..9223372036854775807}", "9223372036854775805 9223372036854775806 9223372036854775807"),
            ("{1..2..9223372036854775807} {+1..3} {1..+3}", "1 1 2 3 1 2 3"),
            ("{a.{b,c}.d,e} {01..100..50} {-10..-1..3} {0x1..0x3}", "a.b.d a.c.d e 001 051 -10 -7 -4 -1 {0x1..0x3}"),
            ("{00..2} {-00..2} {1,2}..{3,4} {a,b}}{", "00 01 02 000 001 002 1..3 1..4 2..3 2..4 a}{ b}{"),
            ("{{} {}} {a{b,c} {a}b,c} {,a,} {,,}", "{{} {}} {ab {ac a}b c a"),
            (r#"{a..b..x} \{1..3} {1..3\} {1\..3} {"1"..3}"#, "{a..b..x} {1..3} {1..3} {1..3} {1..3}"),
            ("{a,b,{c,d,{e,f}}} {1..3},{a,b}", "a b c d e f 1,a 1,b 2,a 2,b 3,a 3,b"),
        ] {
            check(words, expected);
        }
    }

    #[test]
    fn the_limit_is_kept() {
        let word = |text: &str| Word { parts: vec![Part::Literal(text.to_owned())] };
        assert_eq!(expand(&word("{1..1000000000}"), 1000), Err(TooMany));
        assert_eq!(expand(&word("{1..1000000000000}"), 1000), Ok(vec![word("{1..1000000000000}")]));
        assert_eq!(expand(&word(&"{a,b}".repeat(40)), 1000), Err(TooMany));
        assert!(expand(&word(&"{".repeat(500)), 1000).is_ok());
        assert!(expand(&word(&format!("{}{}", "{a,".repeat(300), "}".repeat(300))), 1000).is_ok());
    }
}
