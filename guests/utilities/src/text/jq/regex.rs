//! `match`, `test` and the functions made of them, in the syntax of Perl.

use fancy_regex::{Captures, Regex, RegexBuilder};

use super::functions::{error, type_error};
use super::value::Json;

/// Steps of backtracking after which a search is given up.
const MAX_STEPS: usize = 10_000_000;

/// Returns all matches as `match` describes them, or with `test` whether there is one.
pub(super) fn matches(value: &Json, pattern: &Json, flags: &Json, test: bool) -> Result<Json, Json> {
    let Json::String(text) = value else {
        return Err(type_error(value, "cannot be matched, as it is not a string"));
    };
    let Json::String(pattern) = pattern else { return Err(type_error(pattern, "is not a string")) };
    let flags = match flags {
        Json::Null => "",
        Json::String(flags) => flags.as_str(),
        other => return Err(type_error(other, "is not a string")),
    };
    if !flags.chars().all(|flag| "gixmspln".contains(flag)) {
        return Err(error(format!("{flags} is not a valid modifier string")));
    }
    let regex = compile(pattern, flags)?;
    let failure = |cause: fancy_regex::Error| error(format!("Regex failure: {cause}"));
    let not_empty = flags.contains('n');
    if test && !not_empty {
        return Ok(Json::Bool(regex.is_match(text).map_err(failure)?));
    }
    let mut counter = Counter { text, bytes: 0, characters: 0 };
    let mut found = Vec::new();
    let mut start = 0;
    while start <= text.len() {
        let Some(captures) = regex.captures_from_pos(text, start).map_err(failure)? else { break };
        let Some(whole) = captures.get(0) else { break };
        let (from, to) = (whole.start(), whole.end());
        start = if to > from { to } else { to + text[to..].chars().next().map_or(1, char::len_utf8) };
        if not_empty && from == to {
            continue;
        }
        if test {
            return Ok(Json::Bool(true));
        }
        found.push(describe(&regex, &captures, &mut counter));
        if !flags.contains('g') {
            break;
        }
    }
    Ok(if test { Json::Bool(false) } else { Json::array(found) })
}

fn compile(pattern: &str, flags: &str) -> Result<Regex, Json> {
    let mut inline = String::new();
    for (flag, letter) in [('i', 'i'), ('x', 'x')] {
        if flags.contains(flag) {
            inline.push(letter);
        }
    }
    if flags.contains('m') || flags.contains('p') {
        inline.push('s');
    }
    let text = if inline.is_empty() { pattern.to_string() } else { format!("(?{inline}){pattern}") };
    RegexBuilder::new(&text)
        .backtrack_limit(MAX_STEPS)
        .build()
        .map_err(|cause| error(format!("Regex failure: {}", reason(pattern, &cause.to_string()))))
}

/// Returns the complaint about a pattern in the words of jq's library.
fn reason(pattern: &str, cause: &str) -> String {
    let cause = cause.to_ascii_lowercase();
    let words = if cause.contains("target of repeat") || cause.contains("repetition operator missing") {
        "target of repeat operator is not specified"
    } else if cause.contains("unclosed character class") || cause.contains("invalid character class") {
        "premature end of char-class"
    } else if cause.contains("invalid repetition count") {
        "upper is smaller than lower in repeat range"
    } else if cause.contains("paren") {
        if pattern.matches('(').count() > pattern.matches(')').count() {
            "end pattern with unmatched parenthesis"
        } else {
            "unmatched close parenthesis"
        }
    } else if pattern.ends_with('\\') {
        "end pattern at escape"
    } else {
        return cause;
    };
    words.to_string()
}

/// Offsets in characters, counted on from the last one.
struct Counter<'t> {
    text: &'t str,
    bytes: usize,
    characters: usize,
}

impl Counter<'_> {
    fn at(&mut self, bytes: usize) -> f64 {
        if bytes < self.bytes {
            (self.bytes, self.characters) = (0, 0);
        }
        self.characters += self.text[self.bytes..bytes].chars().count();
        self.bytes = bytes;
        self.characters as f64
    }
}

/// Returns a part; an empty one names its length last, as jq does.
fn part(offset: f64, text: Option<&str>, whole: bool) -> Vec<(String, Json)> {
    let length = text.map_or(0, |text| text.chars().count());
    let mut fields = vec![
        ("offset".to_string(), Json::Number(offset)),
        ("length".to_string(), Json::Number(length as f64)),
        ("string".to_string(), text.map_or(Json::Null, Json::string)),
    ];
    if length == 0 && !whole {
        fields.swap(1, 2);
    }
    fields
}

fn describe(regex: &Regex, captures: &Captures<'_>, counter: &mut Counter<'_>) -> Json {
    let Some(whole) = captures.get(0) else { return Json::Null };
    let start = counter.at(whole.start());
    let empty = whole.start() == whole.end();
    let groups = captures.iter().zip(regex.capture_names()).skip(1).map(|(group, name)| {
        let mut fields = match group {
            // In an empty match every group is empty.
            _ if empty => part(start, Some(""), false),
            Some(group) => part(counter.at(group.start()), Some(group.as_str()), false),
            None => part(-1.0, None, false),
        };
        fields.push(("name".to_string(), name.map_or(Json::Null, Json::string)));
        Json::object(fields)
    });
    let groups = groups.collect();
    let mut fields = part(start, Some(whole.as_str()), true);
    fields.push(("captures".to_string(), Json::array(groups)));
    Json::object(fields)
}
