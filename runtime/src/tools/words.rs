//! The words of a command line as the arguments of a tool: `--city Paris` by its schema, and the text for `--help`.
//!
//! Does not validate: the schema is checked afterwards, as for every call.

use serde_json::{Map, Value};

/// The request in the words of a command line.
#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    /// A call with these arguments.
    Call(Value),
    /// A request for the help text.
    Help(String),
}

/// Parses the words after the name of a tool.
pub(super) fn read(name: &str, description: &str, schema: &Value, words: &[String]) -> Result<Asked, String> {
    // The whole call as one JSON object, as for `tool NAME JSON`.
    if let [only] = words
        && only.trim_start().starts_with('{')
    {
        return serde_json::from_str(only).map(Asked::Call).map_err(|error| format!("the arguments are not JSON: {error}"));
    }
    let options = Options::new(schema);
    let mut given = Map::new();
    let mut words = words.iter();
    let mut only_values = false;
    let mut positions = options.required.iter();
    while let Some(word) = words.next() {
        let flag = word.strip_prefix("--").filter(|flag| !only_values && !flag.is_empty());
        match flag {
            Some(flag) => {
                let (flag, value) = flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
                let Some((property, negated)) = options.find(flag) else {
                    if flag == "help" {
                        return Ok(Asked::Help(options.help(name, description)));
                    }
                    return Err(format!("unknown option `--{flag}`: run `{name} --help` to list the options"));
                };
                let rule = options.rule(property);
                let is_switch = kinds(schema, rule).contains(&"boolean");
                let value = match value {
                    Some(value) => value.to_owned(),
                    None if is_switch => (!negated).to_string(),
                    None => words.next().cloned().ok_or_else(|| format!("missing value for option `--{flag}`"))?,
                };
                put(&mut given, schema, property, rule, &value);
            }
            None if word == "--" && !only_values => only_values = true,
            None if word == "-h" && !only_values => return Ok(Asked::Help(options.help(name, description))),
            None => {
                let property = positions
                    .find(|property| !given.contains_key(**property))
                    .ok_or_else(|| format!("unexpected argument `{word}`: run `{name} --help` to list the options"))?;
                put(&mut given, schema, property, options.rule(property), word);
            }
        }
    }
    Ok(Asked::Call(Value::Object(given)))
}

/// The properties of a schema, as options.
struct Options<'a> {
    schema: &'a Value,
    properties: Vec<(&'a str, &'a Value)>,
    required: Vec<&'a str>,
}

impl<'a> Options<'a> {
    fn new(schema: &'a Value) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        Self {
            schema,
            properties: properties.into_iter().flatten().map(|(name, rule)| (name.as_str(), rule)).collect(),
            required: required.into_iter().flatten().filter_map(Value::as_str).collect(),
        }
    }

    fn rule(&self, property: &str) -> &'a Value {
        self.properties.iter().find(|(name, _)| *name == property).map_or(&Value::Null, |(_, rule)| rule)
    }

    /// Returns the property of a flag, and whether it is negated. `-` and `_` are equivalent.
    fn find(&self, flag: &str) -> Option<(&'a str, bool)> {
        let named = |flag: &str| {
            let same = |name: &str| name.replace('-', "_") == flag.replace('-', "_");
            self.properties.iter().map(|(name, _)| *name).find(|name| same(name))
        };
        named(flag).map(|property| (property, false)).or_else(|| {
            let property = named(flag.strip_prefix("no-")?)?;
            kinds(self.schema, self.rule(property)).contains(&"boolean").then_some((property, true))
        })
    }

    fn help(&self, name: &str, description: &str) -> String {
        let mut usage = format!("Usage: {name}");
        let mut lines = Vec::new();
        // Required properties first, in the order of positional arguments.
        let others = self.properties.iter().map(|(property, _)| *property).filter(|property| !self.required.contains(property));
        for property in self.required.iter().copied().chain(others) {
            let rule = self.rule(property);
            let kinds = kinds(self.schema, rule);
            let flag = property.replace('_', "-");
            let is_required = self.required.contains(&property);
            let shown = match kinds.iter().find(|kind| **kind != "null") {
                Some(&"boolean") => format!("--[no-]{flag}"),
                Some(kind) => format!("--{flag} {}", kind.to_uppercase()),
                None => format!("--{flag} VALUE"),
            };
            usage.push_str(&if is_required { format!(" {shown}") } else { format!(" [{shown}]") });
            let mut notes: Vec<String> = Vec::new();
            notes.extend(rule.get("description").and_then(Value::as_str).map(str::to_owned));
            if let Some(choices) = rule.get("enum").and_then(Value::as_array) {
                let choices: Vec<String> = choices.iter().map(plain).collect();
                notes.push(format!("(one of {})", choices.join(", ")));
            }
            if let Some(default) = rule.get("default").filter(|default| !default.is_null()) {
                notes.push(format!("[default: {}]", plain(default)));
            }
            if is_required {
                notes.push("[required]".to_owned());
            }
            lines.push((shown, notes.join(" ")));
        }
        lines.push(("--help".to_owned(), "Print this text".to_owned()));
        let width = lines.iter().map(|(shown, _)| shown.len()).max().unwrap_or_default();
        let mut text = format!("{usage}\n");
        if !description.is_empty() {
            text.push_str(&format!("\n{description}\n"));
        }
        text.push_str("\nOptions:\n");
        for (shown, notes) in lines {
            text.push_str(format!("  {shown:<width$}  {notes}").trim_end());
            text.push('\n');
        }
        text
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the types that a rule allows, including those of its alternatives; none if unspecified.
fn kinds<'a>(schema: &'a Value, rule: &'a Value) -> Vec<&'a str> {
    let rule = resolved(schema, rule);
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|word| rule.get(word)).filter_map(Value::as_array).flatten();
    let own = match rule.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let of_choices = choices.map(|choice| resolved(schema, choice)).filter_map(|choice| choice.get("type")?.as_str());
    own.into_iter().chain(of_choices).collect()
}

// One step: a definition that refers to another is not supported as an option.
fn resolved<'a>(schema: &'a Value, rule: &'a Value) -> &'a Value {
    let pointer = rule.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'));
    pointer.and_then(|pointer| schema.pointer(pointer)).unwrap_or(rule)
}

// A repeated flag adds to a list, and replaces any other value.
fn put(given: &mut Map<String, Value>, schema: &Value, property: &str, rule: &Value, word: &str) {
    let kinds = kinds(schema, rule);
    if !kinds.contains(&"array") || kinds.contains(&"string") {
        given.insert(property.to_owned(), value(&kinds, rule, word));
        return;
    }
    if let Ok(list @ Value::Array(_)) = serde_json::from_str(word) {
        given.insert(property.to_owned(), list);
        return;
    }
    let item = rule.get("items").unwrap_or(&Value::Null);
    let item = value(&self::kinds(schema, item), resolved(schema, item), word);
    match given.get_mut(property) {
        Some(Value::Array(items)) => items.push(item),
        _ => {
            given.insert(property.to_owned(), Value::Array(vec![item]));
        }
    }
}

// Converts a word to one of these types. If it does not look like one it stays text, which the schema then rejects.
fn value(kinds: &[&str], rule: &Value, word: &str) -> Value {
    let text = || Value::from(word);
    if kinds.contains(&"string") {
        return text();
    }
    let parsed: Option<Value> = serde_json::from_str(word).ok();
    if let Some(choices) = rule.get("enum").and_then(Value::as_array) {
        let known = |candidate: &Value| choices.contains(candidate);
        return parsed.filter(known).unwrap_or_else(text);
    }
    let fits = |value: &Value| match value {
        Value::Number(_) => kinds.contains(&"integer") || kinds.contains(&"number"),
        Value::Bool(_) => kinds.contains(&"boolean"),
        Value::Null => kinds.contains(&"null"),
        Value::Object(_) => kinds.contains(&"object"),
        Value::Array(_) => kinds.contains(&"array"),
        Value::String(_) => false,
    };
    parsed.filter(|value| kinds.is_empty() || fits(value)).unwrap_or_else(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({ "properties": {
            "city": { "type": "string", "description": "Where." },
            "days": { "type": "integer", "default": 1 },
            "max_wind": { "anyOf": [{ "type": "number" }, { "type": "null" }] },
            "deep": { "type": "boolean" },
            "tag": { "type": "array", "items": { "type": "integer" } },
            "unit": { "enum": ["c", "f", 1] },
            "at": { "type": "object" },
            "any": {},
        }, "required": ["city"] })
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    fn check(line: &str, expected: Value) {
        assert_eq!(read("weather", "", &schema(), &words(line)), Ok(Asked::Call(expected)), "{line}");
    }

    fn complaint(line: &str, expected: &str) {
        assert_eq!(read("weather", "", &schema(), &words(line)), Err(expected.to_owned()), "{line}");
    }

    #[test]
    fn flags_are_values_of_their_types() {
        check("--city Paris", json!({ "city": "Paris" }));
        check("--city=7 --days 3", json!({ "city": "7", "days": 3 }));
        check("--max-wind 1.5 --city a", json!({ "city": "a", "max_wind": 1.5 }));
        check("--max_wind null", json!({ "max_wind": null }));
        check("--deep --unit 1", json!({ "deep": true, "unit": 1 }));
        check("--no-deep --unit f", json!({ "deep": false, "unit": "f" }));
        check("--deep=false", json!({ "deep": false }));
        check("--tag 1 --tag 2", json!({ "tag": [1, 2] }));
        check("--tag [1,2]", json!({ "tag": [1, 2] }));
        check("--at {\"x\":1}", json!({ "at": { "x": 1 } }));
        check("--any true --city --days", json!({ "any": true, "city": "--days" }));
        check("", json!({}));
    }

    #[test]
    fn a_word_of_another_type_is_left_to_the_schema() {
        check("--days many --unit k", json!({ "days": "many", "unit": "k" }));
    }

    #[test]
    fn required_arguments_need_no_name() {
        check("Paris --days 2", json!({ "city": "Paris", "days": 2 }));
        check("-- --help", json!({ "city": "--help" }));
        complaint("Paris Rome", "unexpected argument `Rome`: run `weather --help` to list the options");
    }

    #[test]
    fn one_object_is_all_arguments() {
        check("{\"city\":\"Rome\"}", json!({ "city": "Rome" }));
        assert!(read("weather", "", &schema(), &words("{oops")).is_err());
    }

    #[test]
    fn an_unknown_flag_is_named() {
        complaint("--town Paris", "unknown option `--town`: run `weather --help` to list the options");
        complaint("--no-city", "unknown option `--no-city`: run `weather --help` to list the options");
        complaint("--city", "missing value for option `--city`");
    }

    #[test]
    fn help_has_every_option() {
        let schema = json!({ "properties": {
            "days": { "type": "integer", "default": 1, "description": "How many." },
            "city": { "type": "string" },
            "deep": { "type": "boolean" },
            "unit": { "enum": ["c", "f"] },
        }, "required": ["city"] });
        let expected = "Usage: weather --city STRING [--days INTEGER] [--[no-]deep] [--unit VALUE]\n\n\
                        Reports the weather.\n\n\
                        Options:\n  \
                        --city STRING   [required]\n  \
                        --days INTEGER  How many. [default: 1]\n  \
                        --[no-]deep\n  \
                        --unit VALUE    (one of c, f)\n  \
                        --help          Print this text\n";
        for line in ["--help", "-h", "--city x --help"] {
            let asked = read("weather", "Reports the weather.", &schema, &words(line));
            assert_eq!(asked, Ok(Asked::Help(expected.to_owned())));
        }
    }

    #[test]
    fn a_tool_can_have_a_property_called_help() {
        let schema = json!({ "properties": { "help": { "type": "string" } } });
        assert_eq!(read("t", "", &schema, &words("--help me")), Ok(Asked::Call(json!({ "help": "me" }))));
    }
}
