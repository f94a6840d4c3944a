//! JSON Schema (draft 2020-12), as far as it describes the arguments of a tool.
//!
//! Every keyword is either checked, or known to assert nothing; a schema with any other keyword is rejected when the tool is
//! registered, so that nothing passes unchecked. The arguments come from a guest: patterns are matched in linear time, and a
//! check has a bounded number of steps.

mod value;

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use value::{canonical, compare, is_a, is_multiple, kind_of};

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// Keywords whose value is a schema, a list of schemas, or schemas by name.
const SCHEMAS: [&str; 8] = ["items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"];
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords whose value is a number, and a count.
const NUMBERS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const COUNTS: [&str; 8] =
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"];
/// The other keywords that are checked.
const OTHERS: [&str; 8] = ["type", "enum", "const", "required", "dependentRequired", "pattern", "uniqueItems", "$ref"];
/// Keywords that assert nothing. `format` is one: the draft makes its check optional.
const ANNOTATIONS: [&str; 15] = [
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentMediaType",
    "contentEncoding",
    "discriminator",
];

/// Maximum memory of a compiled pattern.
const PATTERN_BYTES: usize = 1 << 20;
/// Maximum number of schemas entered in one check, and maximum depth, because a recursive schema has no end.
const MAX_STEPS: usize = 1_000_000;
const MAX_DEPTH: usize = 200;

/// A schema with only supported keywords.
#[derive(Debug)]
pub(super) struct Schema {
    root: Value,
    patterns: HashMap<String, Regex>,
}

/// Parses the schema of a tool's arguments; the error is the reason.
pub(super) fn parse(text: &str) -> Result<Schema, String> {
    let root: Value = serde_json::from_str(text).map_err(|error| format!("not JSON ({error})"))?;
    let schema = understood(root)?;
    match schema.root.get("type") {
        None => Ok(schema),
        Some(kind) if kind == "object" => Ok(schema),
        Some(_) => Err("`type` must be \"object\"".to_owned()),
    }
}

fn understood(root: Value) -> Result<Schema, String> {
    let mut patterns = HashMap::new();
    check_schema(&root, &root, &mut patterns)?;
    Ok(Schema { root, patterns })
}

/// A JSON schema (draft 2020-12) with only supported keywords, for untrusted values.
///
/// ```
/// use sandlite_runtime::JsonSchema;
/// let schema = JsonSchema::parse(&serde_json::json!({ "properties": { "n": { "type": "integer" } } }))?;
/// assert_eq!(schema.check(&serde_json::json!({ "n": 1 })), Ok(()));
/// assert_eq!(schema.check(&serde_json::json!({ "n": "1" })).unwrap_err(), "`n` must be of type integer, not string");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct JsonSchema(Schema);

impl JsonSchema {
    /// Parses a schema.
    ///
    /// # Errors
    ///
    /// Returns the problem, such as an unsupported keyword.
    pub fn parse(schema: &Value) -> Result<Self, String> {
        understood(schema.clone()).map(Self)
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// Returns the violation, with its position.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        check(&self.0, value)
    }
}

fn check_schema(root: &Value, schema: &Value, patterns: &mut HashMap<String, Regex>) -> Result<(), String> {
    let schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(_) => return Ok(()),
        _ => return Err("expected an object".to_owned()),
    };
    for (keyword, value) in schema {
        let name = keyword.as_str();
        let expected = |what: &str| Err(format!("`{name}` must be {what}"));
        match (name, value) {
            (name, value) if SCHEMAS.contains(&name) => check_schema(root, value, patterns)?,
            (name, Value::Array(schemas)) if LISTS.contains(&name) => {
                schemas.iter().try_for_each(|schema| check_schema(root, schema, patterns))?;
            }
            (name, _) if LISTS.contains(&name) => return expected("a list"),
            (name, Value::Object(schemas)) if MAPS.contains(&name) => {
                if name == "patternProperties" {
                    schemas.keys().try_for_each(|pattern| compile(pattern, patterns))?;
                }
                schemas.values().try_for_each(|schema| check_schema(root, schema, patterns))?;
            }
            (name, _) if MAPS.contains(&name) => return expected("an object"),
            ("multipleOf", value) if value.as_f64().is_none_or(|step| step <= 0.0) => return expected("a number above 0"),
            (name, value) if NUMBERS.contains(&name) && !value.is_number() => return expected("a number"),
            (name, value) if COUNTS.contains(&name) && value.as_u64().is_none() => return expected("a count"),
            ("required", value) if !is_names(value) => return expected("a list of names"),
            ("dependentRequired", value) if !value.as_object().is_some_and(|map| map.values().all(is_names)) => {
                return expected("lists of names by name");
            }
            ("enum", value) if !value.is_array() => return expected("a list"),
            ("uniqueItems", value) if !value.is_boolean() => return expected("true or false"),
            ("pattern", Value::String(pattern)) => compile(pattern, patterns)?,
            ("pattern", _) => return expected("a string"),
            ("$ref", value) if value.as_str().and_then(|place| resolve(root, place)).is_none() => {
                return Err(format!("cannot resolve `$ref` {value}: only references within the schema are supported"));
            }
            ("type", _) => {
                if let Some(unknown) = types(schema).find(|kind| !TYPES.contains(kind)) {
                    return Err(format!("unknown type `{unknown}`"));
                }
            }
            (name, _) if NUMBERS.contains(&name) || COUNTS.contains(&name) || OTHERS.contains(&name) => {}
            (name, _) if ANNOTATIONS.contains(&name) || name.starts_with("x-") => {}
            _ => return Err(format!("unsupported keyword `{name}`")),
        }
    }
    Ok(())
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

fn compile(pattern: &str, patterns: &mut HashMap<String, Regex>) -> Result<(), String> {
    let built = RegexBuilder::new(&in_ascii(pattern)).size_limit(PATTERN_BYTES).build();
    let regex = built.map_err(|error| format!("invalid pattern `{pattern}`: {error}"))?;
    patterns.insert(pattern.to_owned(), regex);
    Ok(())
}

// The classes of JavaScript's expressions are ASCII; Rust's are Unicode.
fn in_ascii(pattern: &str) -> String {
    let (mut out, mut letters) = (String::with_capacity(pattern.len()), pattern.chars());
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('/') => out.push('/'),
            escaped => {
                out.push('\\');
                out.extend(escaped);
            }
        }
    }
    out
}

fn resolve<'a>(root: &'a Value, place: &str) -> Option<&'a Value> {
    place.strip_prefix('#').and_then(|pointer| root.pointer(pointer))
}

fn types(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let kinds = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.as_slice(),
        Some(kind) => std::slice::from_ref(kind),
        None => &[],
    };
    kinds.iter().map(|kind| kind.as_str().unwrap_or("?"))
}

/// Checks arguments against a schema; the error names the position.
pub(super) fn check(schema: &Schema, value: &Value) -> Result<(), String> {
    let check = Check { schema, steps: Cell::new(0), depth: Cell::new(0) };
    let result = check.at("", &schema.root, value);
    // An aborted check proves nothing, whatever `not` and `anyOf` made of it.
    if check.is_over() { Err("checking the arguments takes too long".to_owned()) } else { result }
}

struct Check<'a> {
    schema: &'a Schema,
    steps: Cell<usize>,
    depth: Cell<usize>,
}

impl Check<'_> {
    fn is_over(&self) -> bool {
        self.steps.get() > MAX_STEPS
    }

    fn at(&self, place: &str, schema: &Value, value: &Value) -> Result<(), String> {
        self.steps.set(self.steps.get() + 1);
        if self.is_over() || self.depth.get() >= MAX_DEPTH {
            self.steps.set(MAX_STEPS + 1);
            return Err(format!("{} is nested too deeply", named(place)));
        }
        self.depth.set(self.depth.get() + 1);
        let result = match schema {
            Value::Object(schema) => self.object_schema(place, schema, value),
            Value::Bool(false) => Err(format!("{} is not allowed", named(place))),
            _ => Ok(()),
        };
        self.depth.set(self.depth.get() - 1);
        result
    }

    fn fits(&self, place: &str, schema: &Value, value: &Value) -> bool {
        self.at(place, schema, value).is_ok()
    }

    fn object_schema(&self, place: &str, schema: &Map<String, Value>, value: &Value) -> Result<(), String> {
        if schema.contains_key("type") && !types(schema).any(|kind| is_a(kind, value)) {
            let wanted = types(schema).collect::<Vec<_>>().join(" or ");
            return Err(format!("{} must be of type {wanted}, not {}", named(place), kind_of(value)));
        }
        if let Some(Value::Array(allowed)) = schema.get("enum")
            && let found = canonical(value)
            && !allowed.iter().any(|allowed| canonical(allowed) == found)
        {
            let allowed = allowed.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
            return Err(format!("{} must be one of {allowed}", named(place)));
        }
        if let Some(only) = schema.get("const")
            && canonical(only) != canonical(value)
        {
            return Err(format!("{} must be {only}", named(place)));
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|place| resolve(&self.schema.root, place)) {
            self.at(place, target, value)?;
        }
        self.combinations(place, schema, value)?;
        match value {
            Value::Object(object) => self.object(place, schema, object),
            Value::Array(items) => self.array(place, schema, items),
            Value::String(text) => self.text(place, schema, text),
            Value::Number(_) => number(place, schema, value),
            _ => Ok(()),
        }
    }

    fn combinations(&self, place: &str, schema: &Map<String, Value>, value: &Value) -> Result<(), String> {
        let list = |name: &str| schema.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list("allOf").iter().try_for_each(|part| self.at(place, part, value))?;
        let choices = list("anyOf");
        if let Some(first) = choices.first()
            && !choices.iter().any(|choice| self.fits(place, choice, value))
        {
            self.at(place, first, value)?;
        }
        let choices = list("oneOf");
        let fitting = choices.iter().filter(|choice| self.fits(place, choice, value)).count();
        match choices.first() {
            Some(first) if fitting == 0 => self.at(place, first, value)?,
            Some(_) if fitting > 1 => {
                return Err(format!("{} matches {fitting} alternatives but must match exactly one", named(place)));
            }
            _ => {}
        }
        if schema.get("not").is_some_and(|not| self.fits(place, not, value)) {
            return Err(format!("{} matches an excluded schema", named(place)));
        }
        if let Some(condition) = schema.get("if") {
            let branch = if self.fits(place, condition, value) { "then" } else { "else" };
            return schema.get(branch).map_or(Ok(()), |branch| self.at(place, branch, value));
        }
        Ok(())
    }

    fn object(&self, place: &str, schema: &Map<String, Value>, object: &Map<String, Value>) -> Result<(), String> {
        let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        let names =
            |value: &'_ Value| value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let mut required: Vec<String> = schema.get("required").map(names).unwrap_or_default();
        for (name, others) in schema.get("dependentRequired").and_then(Value::as_object).into_iter().flatten() {
            if object.contains_key(name) {
                required.extend::<Vec<String>>(names(others));
            }
        }
        if let Some(missing) = required.iter().find(|name| !object.contains_key(*name)) {
            return Err(format!("{} is missing", named(&below(missing))));
        }
        counted(place, schema, object.len(), ("minProperties", "maxProperties"), "properties")?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let by_pattern = schema.get("patternProperties").and_then(Value::as_object);
        for (name, value) in object {
            let property = properties.and_then(|properties| properties.get(name));
            let patterns = by_pattern.into_iter().flatten().filter(|(pattern, _)| self.matches(pattern, name));
            let mut known = property.into_iter().chain(patterns.map(|(_, schema)| schema)).peekable();
            let others = if known.peek().is_none() { schema.get("additionalProperties") } else { None };
            known.chain(others).try_for_each(|schema| self.at(&below(name), schema, value))?;
            if let Some(names) = schema.get("propertyNames") {
                self.at(&below(name), names, &Value::from(name.as_str()))?;
            }
        }
        Ok(())
    }

    fn array(&self, place: &str, schema: &Map<String, Value>, items: &[Value]) -> Result<(), String> {
        counted(place, schema, items.len(), ("minItems", "maxItems"), "items")?;
        let first = schema.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let each = schema.get("items");
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or(each) {
                self.at(&format!("{place}[{index}]"), schema, item)?;
            }
        }
        if let Some(wanted) = schema.get("contains") {
            let found = items.iter().filter(|item| self.fits(place, wanted, item)).count();
            let mut bounds = schema.clone();
            bounds.entry("minContains").or_insert(1.into());
            counted(place, &bounds, found, ("minContains", "maxContains"), "items that match `contains`")?;
        }
        let mut seen = HashSet::new();
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) && !items.iter().all(|item| seen.insert(canonical(item))) {
            return Err(format!("{} must not contain duplicate items", named(place)));
        }
        Ok(())
    }

    fn text(&self, place: &str, schema: &Map<String, Value>, text: &str) -> Result<(), String> {
        counted(place, schema, text.chars().count(), ("minLength", "maxLength"), "characters")?;
        match schema.get("pattern").and_then(Value::as_str) {
            Some(pattern) if !self.matches(pattern, text) => Err(format!("{} must match `{pattern}`", named(place))),
            _ => Ok(()),
        }
    }

    fn matches(&self, pattern: &str, text: &str) -> bool {
        self.schema.patterns.get(pattern).is_some_and(|regex| regex.is_match(text))
    }
}

fn number(place: &str, schema: &Map<String, Value>, value: &Value) -> Result<(), String> {
    let refused = [
        ("minimum", "at least", Ordering::Less, false),
        ("maximum", "at most", Ordering::Greater, false),
        ("exclusiveMinimum", "more than", Ordering::Less, true),
        ("exclusiveMaximum", "less than", Ordering::Greater, true),
    ];
    for (keyword, words, wrong, or_equal) in refused {
        let Some(bound) = schema.get(keyword) else { continue };
        let found = compare(value, bound);
        if found == Some(wrong) || or_equal && found == Some(Ordering::Equal) {
            return Err(format!("{} must be {words} {bound}", named(place)));
        }
    }
    match schema.get("multipleOf") {
        Some(step) if !is_multiple(value, step) => Err(format!("{} must be a multiple of {step}", named(place))),
        _ => Ok(()),
    }
}

fn counted(place: &str, schema: &Map<String, Value>, count: usize, bounds: (&str, &str), things: &str) -> Result<(), String> {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    match (bound(bounds.0), bound(bounds.1)) {
        (Some(least), _) if (count as u64) < least => Err(format!("{} must have at least {least} {things}", named(place))),
        (_, Some(most)) if count as u64 > most => Err(format!("{} must have at most {most} {things}", named(place))),
        _ => Ok(()),
    }
}

fn named(place: &str) -> String {
    if place.is_empty() { "the arguments".to_owned() } else { format!("`{place}`") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaint(schema: Value, value: Value) -> String {
        let schema = parse(&schema.to_string()).unwrap();
        super::check(&schema, &value).err().unwrap_or_default()
    }

    #[test]
    fn valid_arguments_are_accepted() {
        let schema = json!({ "type": "object", "properties": {
            "n": { "type": "integer" }, "x": { "type": ["number", "null"] }, "mode": { "enum": ["r", "w"] },
            "list": { "type": "array", "items": { "type": "string" } }, "maybe": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        }, "required": ["n"], "additionalProperties": false });
        for value in [
            json!({ "n": 1 }),
            json!({ "n": 2.0, "x": 1.5, "mode": "r", "list": ["a"], "maybe": null }),
            json!({ "n": -1, "x": null, "list": [], "maybe": "m" }),
        ] {
            assert_eq!(complaint(schema.clone(), value), "");
        }
        assert_eq!(complaint(schema.clone(), json!({})), "`n` is missing");
        assert_eq!(complaint(schema.clone(), json!({ "n": 1.5 })), "`n` must be of type integer, not number");
        assert_eq!(complaint(schema.clone(), json!({ "n": 1, "x": "1" })), "`x` must be of type number or null, not string");
        assert_eq!(complaint(schema.clone(), json!({ "n": 1, "mode": "a" })), "`mode` must be one of \"r\", \"w\"");
        assert_eq!(
            complaint(schema.clone(), json!({ "n": 1, "list": ["a", 2] })),
            "`list[1]` must be of type string, not number"
        );
        assert_eq!(complaint(schema.clone(), json!({ "n": 1, "maybe": 2 })), "`maybe` must be of type string, not number");
        assert_eq!(complaint(schema, json!({ "n": 1, "other": 2 })), "`other` is not allowed");
    }

    #[test]
    fn places_inside_are_named() {
        let schema = json!({ "properties": { "at": { "type": "object", "required": ["x"], "properties": { "x": { "type": "number" } } } } });
        assert_eq!(complaint(schema.clone(), json!({ "at": {} })), "`at.x` is missing");
        assert_eq!(complaint(schema, json!({ "at": { "x": true } })), "`at.x` must be of type number, not boolean");
    }

    #[test]
    fn every_keyword_of_a_value_is_checked() {
        let check = |schema: Value, value: Value, expected: &str| {
            let schema = json!({ "properties": { "v": schema }, "$defs": { "even": { "multipleOf": 2 } } });
            assert_eq!(complaint(schema.clone(), json!({ "v": value })), expected, "{schema}");
        };
        check(json!({ "minimum": 1 }), json!(1), "");
        check(json!({ "minimum": 1 }), json!(0.5), "`v` must be at least 1");
        check(
            json!({ "maximum": 9_007_199_254_740_993_u64 }),
            json!(9_007_199_254_740_994_u64),
            "`v` must be at most 9007199254740993",
        );
        check(json!({ "exclusiveMinimum": 0 }), json!(0), "`v` must be more than 0");
        check(json!({ "exclusiveMaximum": 1.5 }), json!(1.5), "`v` must be less than 1.5");
        check(json!({ "multipleOf": 0.1 }), json!(0.3), "");
        check(json!({ "multipleOf": 3 }), json!(10), "`v` must be a multiple of 3");
        check(json!({ "minLength": 2 }), json!("é"), "`v` must have at least 2 characters");
        check(json!({ "maxLength": 1 }), json!("éé"), "`v` must have at most 1 characters");
        check(json!({ "pattern": "^\\d+$" }), json!("12"), "");
        check(json!({ "pattern": "^\\d+$" }), json!("1٣"), "`v` must match `^\\d+$`");
        check(json!({ "pattern": "^[\\w-]+$" }), json!("a-b_c"), "");
        check(json!({ "const": 1 }), json!(1.0), "");
        check(json!({ "const": "a" }), json!("b"), "`v` must be \"a\"");
        check(json!({ "enum": [1, [2]] }), json!([2.0]), "");
        check(json!({ "minItems": 1 }), json!([]), "`v` must have at least 1 items");
        check(json!({ "maxItems": 1 }), json!([1, 2]), "`v` must have at most 1 items");
        check(json!({ "uniqueItems": true }), json!([1, "1", 1.0]), "`v` must not contain duplicate items");
        check(json!({ "prefixItems": [{ "type": "string" }], "items": false }), json!(["a", 1]), "`v[1]` is not allowed");
        check(json!({ "contains": { "type": "string" } }), json!([1]), "`v` must have at least 1 items that match `contains`");
        check(json!({ "maxProperties": 1 }), json!({ "a": 1, "b": 2 }), "`v` must have at most 1 properties");
        check(json!({ "minProperties": 1 }), json!({}), "`v` must have at least 1 properties");
        check(
            json!({ "patternProperties": { "^n": { "type": "number" } } }),
            json!({ "n1": "" }),
            "`v.n1` must be of type number, not string",
        );
        check(json!({ "propertyNames": { "maxLength": 1 } }), json!({ "ab": 1 }), "`v.ab` must have at most 1 characters");
        check(json!({ "dependentRequired": { "a": ["b"] } }), json!({ "a": 1 }), "`v.b` is missing");
        check(json!({ "allOf": [{ "minimum": 0 }, { "maximum": 2 }] }), json!(3), "`v` must be at most 2");
        check(
            json!({ "oneOf": [{ "minimum": 0 }, { "minimum": 2 }] }),
            json!(3),
            "`v` matches 2 alternatives but must match exactly one",
        );
        check(json!({ "not": { "type": "null" } }), json!(null), "`v` matches an excluded schema");
        check(json!({ "if": { "minimum": 0 }, "then": { "maximum": 9 }, "else": false }), json!(10), "`v` must be at most 9");
        check(json!({ "if": { "minimum": 0 }, "then": { "maximum": 9 }, "else": false }), json!(-1), "`v` is not allowed");
        check(json!({ "$ref": "#/$defs/even" }), json!(3), "`v` must be a multiple of 2");
    }

    #[test]
    fn an_unknown_keyword_is_refused_and_a_comment_is_not() {
        for keyword in ["minimun", "unevaluatedProperties", "$dynamicRef", "dependentSchemas"] {
            let error = parse(&json!({ "properties": { "x": { keyword: 1 } } }).to_string()).unwrap_err();
            assert_eq!(error, format!("unsupported keyword `{keyword}`"));
        }
        for keyword in ["title", "format", "default", "x-order"] {
            assert!(parse(&json!({ "properties": { "x": { keyword: "y" } } }).to_string()).is_ok(), "{keyword}");
        }
    }

    // T-DOS-03: the arguments are a guest's.
    #[test]
    fn a_cyclic_schema_is_not_followed_endlessly() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "not": { "$ref": "#" } }),
            json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
            json!({ "type": "object", "additionalProperties": { "anyOf": [{ "$ref": "#" }, { "$ref": "#" }, { "type": "null" }] } }),
        ] {
            let mut value = json!({ "a": 1 });
            for _ in 0..60 {
                value = json!({ "a": value });
            }
            assert_eq!(complaint(schema.clone(), value), "checking the arguments takes too long", "{schema}");
        }
        let list: Vec<u32> = (0..300_000).collect();
        assert_eq!(complaint(json!({ "properties": { "l": { "uniqueItems": true } } }), json!({ "l": list })), "");
    }

    #[test]
    fn an_invalid_schema_is_rejected() {
        for schema in [
            "",
            "1",
            r#"{"type": "string"}"#,
            r#"{"properties": []}"#,
            r#"{"required": "x"}"#,
            r#"{"properties": {"x": {"type": "int"}}}"#,
            r#"{"properties": {"x": {"enum": 1}}}"#,
            r#"{"properties": {"x": {"minimum": "1"}}}"#,
            r#"{"properties": {"x": {"minLength": -1}}}"#,
            r#"{"properties": {"x": {"multipleOf": 0}}}"#,
            r#"{"properties": {"x": {"pattern": "(?=x)"}}}"#,
            r##"{"properties": {"x": {"$ref": "#/$defs/none"}}}"##,
            r#"{"properties": {"x": {"$ref": "https://example.com/schema"}}}"#,
        ] {
            assert!(parse(schema).is_err(), "{schema}");
        }
    }
}
