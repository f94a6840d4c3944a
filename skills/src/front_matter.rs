//! The front matter of a `SKILL.md`: YAML between two `---` lines, parsed with limits on everything (T-SKL-04).
//!
//! It uses an event parser, so that a document is counted before it becomes a tree. Anchors, aliases and tags are rejected:
//! skills do not need them, and "billion laughs" attacks do.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// Maximum size of the front matter.
const HEAD_BYTES: usize = 64 << 10;
/// Maximum number of values, and maximum depth.
const MOST_NODES: usize = 4096;
const MOST_DEPTH: usize = 32;

/// A `SKILL.md`, split into front matter and body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// The fields, in order.
    pub(crate) fields: Vec<Field>,
    /// The text after the front matter.
    pub(crate) body: String,
    /// The line on which the body starts, from 1.
    pub(crate) body_line: usize,
    /// The line of the first field that was parsed only after quoting its value.
    pub(crate) repaired: Option<usize>,
}

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Its line in the file, from 1.
    pub(crate) line: usize,
    pub(crate) value: Yaml,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Yaml {
    /// A text, and whether it is unquoted and may therefore be a number, a boolean or null.
    Scalar(String, bool),
    List(Vec<Yaml>),
    Map(Vec<(String, Yaml)>),
}

/// An error in the front matter, and its line in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

impl Yaml {
    /// Returns the text of a scalar, verbatim.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    /// Returns whether the value is null, as in `key:`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Scalar(text, true) if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Converts the value to JSON, using YAML's core schema.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Scalar(text, false) => Value::from(text.as_str()),
            Self::Scalar(text, true) => plain(text),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(fields) => {
                Value::Object(fields.iter().map(|(name, value)| (name.clone(), value.to_json())).collect::<Map<_, _>>())
            }
        }
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let looks_numeric = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            let number = text.strip_prefix('+').unwrap_or(text);
            if let Ok(whole) = number.parse::<i64>() {
                return Value::from(whole);
            }
            match number.parse::<f64>() {
                Ok(number) if looks_numeric && number.is_finite() => Value::from(number),
                _ => Value::from(text),
            }
        }
    }
}

/// Splits a `SKILL.md` and parses its front matter.
pub(crate) fn read(text: &str) -> Result<Document, Malformed> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().take_while(|line| line.trim().is_empty()).count();
    let mut lines = text.lines().enumerate().skip(first);
    let malformed = |line: usize, reason: &str| Malformed { line: line + 1, reason: reason.to_owned() };
    match lines.next() {
        Some((_, line)) if line.trim_end() == "---" => {}
        _ => return Err(malformed(first, "SKILL.md must begin with '---' frontmatter delimiter")),
    }
    let Some((end, _)) = lines.find(|(_, line)| line.trim_end() == "---") else {
        return Err(malformed(first, "SKILL.md is missing closing '---' frontmatter delimiter"));
    };
    let head: Vec<&str> = text.lines().skip(first + 1).take(end - first - 1).collect();
    let head = head.join("\n");
    if head.len() > HEAD_BYTES {
        return Err(Malformed { line: first + 1, reason: format!("the front matter is larger than {HEAD_BYTES} bytes") });
    }
    let above = first + 1;
    let (fields, repaired) = match parse(&head, above) {
        Ok(fields) => (fields, None),
        // Many published skills have an unquoted colon in the description, and every client accepts them.
        Err(error) => match quoted(&head).and_then(|(quoted, line)| Some((parse(&quoted, above).ok()?, line))) {
            Some((fields, line)) => (fields, Some(above + line)),
            None => return Err(error),
        },
    };
    let body = text.split_inclusive('\n').skip(end + 1).collect::<String>();
    Ok(Document { fields, body, body_line: end + 2, repaired })
}

// Returns the front matter with quotes around each plain value that contains a colon, and the first line changed.
fn quoted(head: &str) -> Option<(String, usize)> {
    let mut first = None;
    let mut lines: Vec<String> = Vec::new();
    for (number, line) in head.lines().enumerate() {
        let quoted = line.split_once(": ").and_then(|(name, value)| {
            let value = value.trim();
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            let is_plain = !value.starts_with(['"', '\'', '[', '{', '|', '>', '&', '*', '!', '#', '%', '@', '`']);
            let has_colon = value.contains(": ") || value.ends_with(':');
            (is_name && is_plain && has_colon).then(|| format!("{name}: '{}'", value.replace('\'', "''")))
        });
        if quoted.is_some() {
            first.get_or_insert(number + 1);
        }
        lines.push(quoted.unwrap_or_else(|| line.to_owned()));
    }
    first.map(|first| (lines.join("\n"), first))
}

/// A list or map being parsed.
enum Open {
    List(Vec<Yaml>),
    Map(Vec<(String, Yaml)>, Option<String>),
}

// Parses the fields of front matter that starts after `above` lines.
fn parse(head: &str, above: usize) -> Result<Vec<Field>, Malformed> {
    let mut stack: Vec<Open> = Vec::new();
    let (mut root, mut lines, mut nodes, mut documents) = (None, Vec::new(), 0usize, 0usize);
    for event in Parser::new_from_str(head) {
        let (event, span) = event.map_err(|error| Malformed {
            line: above + error.marker().line(),
            reason: format!("invalid YAML: {}", error.info()),
        })?;
        let line = above + span.start.line();
        let malformed = |reason: &str| Malformed { line, reason: reason.to_owned() };
        let done = match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err(malformed("invalid YAML: more than one document"));
                }
                continue;
            }
            Event::Alias(_) => return Err(malformed("invalid YAML: aliases are not allowed")),
            Event::Scalar(_, _, 1.., _) | Event::SequenceStart(1.., _) | Event::MappingStart(1.., _) => {
                return Err(malformed("invalid YAML: anchors are not allowed"));
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err(malformed("invalid YAML: tags are not allowed"));
            }
            Event::Scalar(text, style, _, _) => Yaml::Scalar(text.into_owned(), style == ScalarStyle::Plain),
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if stack.len() >= MOST_DEPTH {
                    return Err(malformed("invalid YAML: nested too deeply"));
                }
                let is_list = matches!(event, Event::SequenceStart(..));
                stack.push(if is_list { Open::List(Vec::new()) } else { Open::Map(Vec::new(), None) });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match stack.pop() {
                Some(Open::List(items)) => Yaml::List(items),
                Some(Open::Map(fields, _)) => Yaml::Map(fields),
                None => continue,
            },
            _ => continue,
        };
        nodes += 1;
        if nodes > MOST_NODES {
            return Err(malformed("invalid YAML: too many values"));
        }
        let depth = stack.len();
        match stack.last_mut() {
            None => root = Some(done),
            Some(Open::List(items)) => items.push(done),
            Some(Open::Map(fields, name)) => match name.take() {
                Some(name) => fields.push((name, done)),
                None => {
                    let Yaml::Scalar(key, _) = done else { return Err(malformed("invalid YAML: a key must be a string")) };
                    if fields.iter().any(|(known, _)| *known == key) {
                        return Err(malformed(&format!("invalid YAML: duplicate key `{key}`")));
                    }
                    if depth == 1 {
                        lines.push(line);
                    }
                    *name = Some(key);
                }
            },
        }
    }
    match root {
        Some(Yaml::Map(fields)) => {
            Ok(fields.into_iter().zip(lines).map(|((name, value), line)| Field { name, line, value }).collect())
        }
        None => Ok(Vec::new()),
        Some(value) if value.is_null() => Ok(Vec::new()),
        Some(_) => Err(Malformed { line: above + 1, reason: "invalid YAML: expected `name: value` lines".to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(head: &str) -> String {
        read(&format!("---\n{head}\n---\nbody\n")).err().map(|error| error.reason).unwrap_or_default()
    }

    #[test]
    fn a_head_is_fields_with_lines_and_the_rest_is_the_body() {
        let text = "\n---\nname: x\nversion: 1.10\nresources:\n  memory: 64Mi\nlist: [1, 'a', true]\n---\n# Title\n\ntext\n";
        let document = read(text).unwrap();
        let names: Vec<_> = document.fields.iter().map(|field| (field.name.as_str(), field.line)).collect();
        assert_eq!(names, [("name", 3), ("version", 4), ("resources", 5), ("list", 7)]);
        assert_eq!(document.fields[1].value.text(), Some("1.10"), "a version is the text that was written");
        assert_eq!(document.fields[2].value.to_json(), serde_json::json!({ "memory": "64Mi" }));
        assert_eq!(document.fields[3].value.to_json(), serde_json::json!([1, "a", true]));
        assert_eq!((document.body.as_str(), document.body_line), ("# Title\n\ntext\n", 9));
    }

    #[test]
    fn a_colon_in_an_unquoted_description_is_read_and_noted() {
        let document = read("---\nname: x\ndescription: Use when: it's late\n---\n").unwrap();
        assert_eq!(document.fields[1].value.text(), Some("Use when: it's late"));
        assert_eq!(document.repaired, Some(3));
    }

    // T-SKL-04: Z19, Z20.
    #[test]
    fn hostile_yaml_is_refused() {
        assert!(complaint("a: &x [1]\nb: *x").contains("anchors"));
        assert!(complaint("b: *x").contains("invalid YAML"));
        assert!(complaint("a: !!python/object:os.system x").contains("tags"));
        assert!(complaint("a: 1\na: 2").contains("duplicate key"));
        assert!(complaint(&format!("a: {}1{}", "[".repeat(40), "]".repeat(40))).contains("deep"));
        assert!(complaint(&format!("a: [{}]", "1,".repeat(5000))).contains("too many"));
        assert!(complaint(&"# x\n".repeat(20_000)).contains("bytes"));
        assert!(complaint("? [a, b]\n: c").contains("a key must be a string"));
        assert!(complaint("just text").contains("expected"));
        assert!(complaint("[1, 2]").contains("expected"));
        assert!(complaint("a: [").contains("invalid YAML"));
        let laughs = "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]";
        assert!(complaint(laughs).contains("anchors"));
    }

    #[test]
    fn a_file_without_a_head_is_refused() {
        for text in ["", "# no head", "---\nname: x\n", "--\nname: x\n---\n"] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
