//! The functions filters may call: those written here, and those that are filters themselves.

use std::rc::Rc;

use super::ast::Definition;
use super::input::Inputs;
use super::parse;
use super::paths;
use super::print;
use super::value::{Json, Object, sorted_keys};
use super::{dates, formats, json, math, modules, regex};

/// The environment of a filter.
pub(super) struct Host<'a> {
    pub inputs: &'a mut Inputs,
    /// Set by `halt` and `halt_error`: the status, and what is printed.
    pub halted: Option<(Json, Option<Json>)>,
    pub style: print::Style,
    pub search: Vec<String>,
}

type Outcome = Result<Json, Json>;
type Run = fn(&mut Host<'_>, Json, Vec<Json>) -> Outcome;

/// A function written in Rust.
pub(super) struct Native {
    pub name: &'static str,
    pub arguments: usize,
    pub run: Run,
}

impl std::fmt::Debug for Native {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.name, self.arguments)
    }
}

const DEFINITIONS: &str = include_str!("definitions.jq");

/// Returns the definition of a function that is a filter: its name and text.
pub(super) fn definition(name: &str, arguments: usize) -> Option<(&'static str, &'static str)> {
    let mut from = 0;
    while let Some(at) = DEFINITIONS[from..].find("\ndef ") {
        let start = from + at + 1;
        from = start + "def ".len();
        let rest = &DEFINITIONS[from..];
        let Some(after) = rest.strip_prefix(name) else { continue };
        let count = match after.as_bytes().first() {
            Some(b':') => 0,
            Some(b'(') => after.split(')').next().unwrap_or("").matches(';').count() + 1,
            _ => continue,
        };
        if count == arguments {
            let end = rest.find("\ndef ").map_or(DEFINITIONS.len(), |end| from + end);
            return Some((&rest[..name.len()], &DEFINITIONS[start..end]));
        }
    }
    None
}

/// Returns the tree of a definition from the list.
pub(super) fn read_definition(text: &str) -> Option<Definition> {
    let mut module = parse::parse(text, usize::MAX).ok()?;
    Rc::into_inner(module.definitions.pop()?)
}

/// Returns all names with their numbers of arguments.
fn builtins() -> Vec<Json> {
    let mut names: Vec<String> = ["empty/0", "not/0", "path/1", "range/2", "builtins/0"].map(str::to_string).to_vec();
    for native in tables() {
        names.push(format!("{}/{}", native.name, native.arguments));
    }
    for text in DEFINITIONS.split("\ndef ").skip(1) {
        let name: String = text.chars().take_while(|char| !matches!(char, ':' | '(')).collect();
        let parameters = text[name.len()..].starts_with('(');
        let count = if parameters { text.split(')').next().unwrap_or("").matches(';').count() + 1 } else { 0 };
        names.push(format!("{name}/{count}"));
    }
    names.retain(|name| !name.starts_with('_'));
    names.into_iter().map(Json::string).collect()
}

fn tables() -> impl Iterator<Item = &'static Native> {
    NATIVES.iter().chain(formats::NATIVES).chain(math::NATIVES).chain(dates::NATIVES)
}

pub(super) fn native(name: &str, arguments: usize) -> Option<&'static Native> {
    tables().find(|native| native.name == name && native.arguments == arguments)
}

pub(super) fn error(message: impl Into<String>) -> Json {
    Json::string(message)
}

/// `number (1) cannot be …`.
pub(super) fn type_error(value: &Json, message: &str) -> Json {
    error(format!("{} ({}) {message}", value.kind(), print::short(value, 15)))
}

fn type_error2(a: &Json, b: &Json, message: &str) -> Json {
    let (one, two) = (print::short(a, 15), print::short(b, 15));
    error(format!("{} ({one}) and {} ({two}) {message}", a.kind(), b.kind()))
}

/// Returns the next argument; their number is in the table.
pub(super) fn take(arguments: &mut Vec<Json>) -> Json {
    if arguments.is_empty() { Json::Null } else { arguments.remove(0) }
}

/// Returns the result of an operator on two constants.
pub(super) fn fold_constants(name: &str, a: &Json, b: &Json) -> Outcome {
    match name {
        "_plus" => plus(a.clone(), b.clone()),
        "_minus" => minus(a, b),
        "_multiply" => multiply(a.clone(), b.clone()),
        "_divide" => divide(a, b),
        "_mod" => modulo(a, b),
        _ => Ok(Json::Bool(compare(name, a, b))),
    }
}

fn compare(name: &str, a: &Json, b: &Json) -> bool {
    match name {
        "_equal" => a.equals(b),
        "_notequal" => !a.equals(b),
        "_less" => a.order(b).is_lt(),
        "_lesseq" => a.order(b).is_le(),
        "_greater" => a.order(b).is_gt(),
        _ => a.order(b).is_ge(),
    }
}

fn plus(a: Json, b: Json) -> Outcome {
    match (a, b) {
        (Json::Null, other) | (other, Json::Null) => Ok(other),
        (Json::String(mut a), Json::String(b)) => {
            Rc::make_mut(&mut a).push_str(&b);
            Ok(Json::String(a))
        }
        (Json::Array(mut a), Json::Array(b)) => {
            Rc::make_mut(&mut a).0.extend(b.0.iter().cloned());
            Ok(Json::Array(a))
        }
        (Json::Object(mut a), Json::Object(b)) => {
            let Object(fields) = Rc::make_mut(&mut a);
            fields.extend(b.0.iter().map(|(key, value)| (Rc::clone(key), value.clone())));
            Ok(Json::Object(a))
        }
        (a, b) => match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => Ok(Json::Number(a + b)),
            _ => Err(type_error2(&a, &b, "cannot be added")),
        },
    }
}

fn minus(a: &Json, b: &Json) -> Outcome {
    match (a, b) {
        (Json::Array(a), Json::Array(b)) => {
            Ok(Json::array(a.0.iter().filter(|item| !b.0.iter().any(|other| item.equals(other))).cloned().collect()))
        }
        _ => match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => Ok(Json::Number(a - b)),
            _ => Err(type_error2(a, b, "cannot be subtracted")),
        },
    }
}

/// Longest string that repeating another one makes.
const MAX_REPEATED: usize = 1 << 29;

fn multiply(a: Json, b: Json) -> Outcome {
    let repeat = |text: &Rc<String>, count: f64| {
        if count < 0.0 || count.is_nan() {
            return Ok(Json::Null);
        }
        if count as usize > MAX_REPEATED / text.len().max(1) {
            return Err(error("Repeat string result too long"));
        }
        Ok(Json::string(text.repeat(count as usize)))
    };
    match (&a, &b) {
        (Json::String(text), other) | (other, Json::String(text)) if other.as_number().is_some() => {
            repeat(text, other.as_number().unwrap_or(f64::NAN))
        }
        (Json::Object(_), Json::Object(_)) => Ok(merge(a, &b)),
        _ => match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => Ok(Json::Number(a * b)),
            _ => Err(type_error2(&a, &b, "cannot be multiplied")),
        },
    }
}

fn merge(a: Json, b: &Json) -> Json {
    let (Json::Object(mut a), Json::Object(b)) = (a, b) else { return b.clone() };
    let Object(fields) = Rc::make_mut(&mut a);
    for (key, value) in &b.0 {
        match fields.get_mut(key) {
            Some(slot @ Json::Object(_)) if matches!(value, Json::Object(_)) => {
                *slot = merge(std::mem::replace(slot, Json::Null), value);
            }
            _ => {
                fields.insert(Rc::clone(key), value.clone());
            }
        }
    }
    Json::Object(a)
}

fn divide(a: &Json, b: &Json) -> Outcome {
    match (a, b) {
        (Json::String(a), Json::String(b)) => Ok(split(a, b)),
        _ => match (a.as_number(), b.as_number()) {
            (Some(_), Some(0.0)) => Err(type_error2(a, b, "cannot be divided because the divisor is zero")),
            (Some(a), Some(b)) => Ok(Json::Number(a / b)),
            _ => Err(type_error2(a, b, "cannot be divided")),
        },
    }
}

fn modulo(a: &Json, b: &Json) -> Outcome {
    let (Some(x), Some(y)) = (a.as_number(), b.as_number()) else {
        return Err(type_error2(a, b, "cannot be divided (remainder)"));
    };
    if x.is_nan() || y.is_nan() {
        return Ok(Json::Number(f64::NAN));
    }
    // A conversion saturates, as jq's does.
    let (x, y) = (x as i64, y as i64);
    if y == 0 {
        return Err(type_error2(a, b, "cannot be divided (remainder) because the divisor is zero"));
    }
    Ok(Json::Number(x.wrapping_rem(y) as f64))
}

fn split(text: &str, separator: &str) -> Json {
    if text.is_empty() {
        return Json::array(Vec::new());
    }
    if separator.is_empty() {
        return Json::array(text.chars().map(Json::string).collect());
    }
    Json::array(text.split(separator).map(Json::string).collect())
}

fn contains(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            b.0.iter()
                .all(|(key, value)| a.0.get(key).is_some_and(|found| found.kind() == value.kind() && contains(found, value)))
        }
        (Json::Array(a), Json::Array(b)) => b.0.iter().all(|wanted| a.0.iter().any(|item| contains(item, wanted))),
        (Json::String(a), Json::String(b)) => a.contains(b.as_str()),
        _ => a.equals(b),
    }
}

fn keys(value: &Json, sorted: bool) -> Outcome {
    match value {
        Json::Object(object) if sorted => {
            Ok(Json::array(sorted_keys(object).into_iter().map(|key| Json::String(Rc::clone(key))).collect()))
        }
        Json::Object(object) => Ok(Json::array(object.0.keys().map(|key| Json::String(Rc::clone(key))).collect())),
        Json::Array(list) => Ok(Json::array((0..list.0.len()).map(|at| Json::Number(at as f64)).collect())),
        _ => Err(type_error(value, "has no keys")),
    }
}

fn length(value: &Json) -> Outcome {
    Ok(Json::Number(match value {
        Json::Null => 0.0,
        Json::String(text) => text.chars().count() as f64,
        Json::Array(list) => list.0.len() as f64,
        Json::Object(object) => object.0.len() as f64,
        _ => return value.as_number().map(|number| Json::Number(number.abs())).ok_or_else(|| type_error(value, "has no length")),
    }))
}

/// Returns values with their sort keys, from two arrays of one length.
fn paired(values: Json, keys: Json) -> Result<Vec<(Json, Json)>, Json> {
    match (&values, &keys) {
        (Json::Array(items), Json::Array(by)) if items.0.len() == by.0.len() => {
            Ok(by.0.iter().cloned().zip(items.0.iter().cloned()).collect())
        }
        _ => Err(type_error2(&values, &keys, "cannot be sorted, as they are not both arrays")),
    }
}

fn sorted(values: Json, keys: Json) -> Result<Vec<(Json, Json)>, Json> {
    let mut pairs = paired(values, keys)?;
    pairs.sort_by(|a, b| a.0.order(&b.0));
    Ok(pairs)
}

fn groups(pairs: Vec<(Json, Json)>) -> Vec<Vec<Json>> {
    let mut groups: Vec<(Json, Vec<Json>)> = Vec::new();
    for (key, value) in pairs {
        match groups.last_mut() {
            Some((known, group)) if known.equals(&key) => group.push(value),
            _ => groups.push((key, vec![value])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn extreme(values: Json, keys: Json, least: bool) -> Outcome {
    let (Json::Array(items), Json::Array(by)) = (&values, &keys) else {
        return Err(type_error2(&values, &keys, "cannot be iterated over"));
    };
    if items.0.len() != by.0.len() {
        return Err(type_error2(&values, &keys, "have wrong length"));
    }
    let mut best: Option<(&Json, &Json)> = None;
    for (key, value) in by.0.iter().zip(&items.0) {
        if best.is_none_or(|(known, _)| key.order(known).is_lt() == least) {
            best = Some((key, value));
        }
    }
    Ok(best.map_or(Json::Null, |(_, value)| value.clone()))
}

fn implode(value: &Json) -> Outcome {
    let Json::Array(codes) = value else { return Err(error("implode input must be an array")) };
    let mut text = String::new();
    for code in &codes.0 {
        match code.as_number() {
            Some(number) if !number.is_nan() => {
                let code = u32::try_from(number as i64).ok().and_then(char::from_u32);
                text.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            _ => return Err(type_error(code, "can't be imploded, unicode codepoint needs to be numeric")),
        }
    }
    Ok(Json::string(text))
}

fn to_number(value: Json) -> Outcome {
    match &value {
        Json::Number(_) | Json::Literal(_) => Ok(value),
        Json::String(text) => match json::parse(text) {
            Ok(number) if number.as_number().is_some() => Ok(number),
            Ok(_) => Err(type_error(&value, "cannot be parsed as a number")),
            Err(message) => Err(error(message)),
        },
        _ => Err(type_error(&value, "cannot be parsed as a number")),
    }
}

pub(super) fn to_text(value: &Json) -> Rc<String> {
    match value {
        Json::String(text) => Rc::clone(text),
        other => Rc::new(print::compact(other)),
    }
}

fn strings<'v>(a: &'v Json, b: &'v Json, message: &str) -> Result<(&'v str, &'v str), Json> {
    match (a, b) {
        (Json::String(a), Json::String(b)) => Ok((a, b)),
        _ => Err(error(message)),
    }
}

fn string_indices(a: &Json, b: &Json) -> Outcome {
    let (Json::String(text), Json::String(part)) = (a, b) else { return Ok(Json::Null) };
    let mut found = Vec::new();
    if !part.is_empty() {
        // Overlapping ones too, counted in characters.
        let (mut characters, mut counted) = (0, 0);
        for at in memchr::memmem::find_iter(text.as_bytes(), &part.as_bytes()[..1]) {
            if text.as_bytes()[at..].starts_with(part.as_bytes()) {
                characters += text[counted..at].chars().count();
                counted = at;
                found.push(Json::Number(characters as f64));
            }
        }
    }
    Ok(Json::array(found))
}

fn trim(value: &Json, start: bool, end: bool) -> Outcome {
    let Json::String(text) = value else { return Err(type_error(value, "cannot be trimmed")) };
    let mut rest = text.as_str();
    if start {
        rest = rest.trim_start();
    }
    if end {
        rest = rest.trim_end();
    }
    Ok(Json::string(rest))
}

fn environment() -> Json {
    Json::object(
        std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), Json::text(value.as_encoded_bytes()))),
    )
}

/// Returns the variables of the process.
pub(super) fn env() -> Json {
    environment()
}

fn input(host: &mut Host<'_>) -> Outcome {
    match host.inputs.next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(message)) => Err(error(message)),
        None => Err(error("break")),
    }
}

fn debug(host: &mut Host<'_>, value: Json) -> Outcome {
    let mut text = String::new();
    let style = print::Style { indent: None, ..host.style.clone() };
    print::write(&mut text, &style, 0, &Json::array(vec![Json::string("DEBUG:"), value.clone()]));
    crate::io::complain(text.as_bytes());
    Ok(value)
}

fn to_standard_error(value: Json) -> Outcome {
    let _ = sys::write_all(2, to_text(&value).as_bytes());
    Ok(value)
}

fn flag(truth: bool) -> Outcome {
    Ok(Json::Bool(truth))
}

fn is_number(value: &Json, test: fn(f64) -> bool) -> Outcome {
    flag(value.as_number().is_some_and(test))
}

const fn native_of(name: &'static str, arguments: usize, run: Run) -> Native {
    Native { name, arguments, run }
}

const NATIVES: &[Native] = &[
    native_of("_plus", 2, |_, _, mut a| plus(take(&mut a), take(&mut a))),
    native_of("_minus", 2, |_, _, mut a| minus(&take(&mut a), &take(&mut a))),
    native_of("_multiply", 2, |_, _, mut a| multiply(take(&mut a), take(&mut a))),
    native_of("_divide", 2, |_, _, mut a| divide(&take(&mut a), &take(&mut a))),
    native_of("_mod", 2, |_, _, mut a| modulo(&take(&mut a), &take(&mut a))),
    native_of("_equal", 2, |_, _, a| flag(a[0].equals(&a[1]))),
    native_of("_notequal", 2, |_, _, a| flag(!a[0].equals(&a[1]))),
    native_of("_less", 2, |_, _, a| flag(a[0].order(&a[1]).is_lt())),
    native_of("_lesseq", 2, |_, _, a| flag(a[0].order(&a[1]).is_le())),
    native_of("_greater", 2, |_, _, a| flag(a[0].order(&a[1]).is_gt())),
    native_of("_greatereq", 2, |_, _, a| flag(a[0].order(&a[1]).is_ge())),
    native_of("_negate", 0, |_, value, _| match value.as_number() {
        Some(number) => Ok(Json::Number(-number)),
        None => Err(type_error(&value, "cannot be negated")),
    }),
    native_of("tojson", 0, |_, value, _| Ok(Json::string(print::compact(&value)))),
    native_of("fromjson", 0, |_, value, _| match &value {
        Json::String(text) => json::parse(text).map_err(error),
        _ => Err(type_error(&value, "only strings can be parsed")),
    }),
    native_of("tonumber", 0, |_, value, _| to_number(value)),
    native_of("tostring", 0, |_, value, _| Ok(Json::String(to_text(&value)))),
    native_of("keys", 0, |_, value, _| keys(&value, true)),
    native_of("keys_unsorted", 0, |_, value, _| keys(&value, false)),
    native_of("startswith", 1, |_, value, a| {
        strings(&value, &a[0], "startswith() requires string inputs").and_then(|(text, part)| flag(text.starts_with(part)))
    }),
    native_of("endswith", 1, |_, value, a| {
        strings(&value, &a[0], "endswith() requires string inputs").and_then(|(text, part)| flag(text.ends_with(part)))
    }),
    native_of("ltrimstr", 1, |_, value, a| {
        let rest = strings(&value, &a[0], "").ok().and_then(|(text, part)| text.strip_prefix(part)).map(Json::string);
        Ok(rest.unwrap_or(value))
    }),
    native_of("rtrimstr", 1, |_, value, a| {
        let rest = strings(&value, &a[0], "").ok().and_then(|(text, part)| text.strip_suffix(part)).map(Json::string);
        Ok(rest.unwrap_or(value))
    }),
    native_of("trim", 0, |_, value, _| trim(&value, true, true)),
    native_of("ltrim", 0, |_, value, _| trim(&value, true, false)),
    native_of("rtrim", 0, |_, value, _| trim(&value, false, true)),
    native_of("split", 1, |_, value, a| {
        strings(&value, &a[0], "split input and separator must be strings").map(|(text, part)| split(text, part))
    }),
    native_of("explode", 0, |_, value, _| match &value {
        Json::String(text) => Ok(Json::array(text.chars().map(|char| Json::Number(f64::from(u32::from(char)))).collect())),
        _ => Err(error("explode input must be a string")),
    }),
    native_of("implode", 0, |_, value, _| implode(&value)),
    native_of("_strindices", 1, |_, value, a| string_indices(&value, &a[0])),
    native_of("setpath", 2, |_, value, mut a| {
        let path = take(&mut a);
        paths::set_path(value, &path, take(&mut a)).map_err(error)
    }),
    native_of("getpath", 1, |_, value, a| paths::get_path(&value, &a[0]).map_err(error)),
    native_of("delpaths", 1, |_, value, a| paths::delete_paths(value, &a[0]).map_err(error)),
    native_of("has", 1, |_, value, a| paths::has(&value, &a[0]).map(Json::Bool).map_err(error)),
    native_of("contains", 1, |_, value, a| {
        if value.kind() == a[0].kind() {
            flag(contains(&value, &a[0]))
        } else {
            Err(type_error2(&value, &a[0], "cannot have their containment checked"))
        }
    }),
    native_of("length", 0, |_, value, _| length(&value)),
    native_of("utf8bytelength", 0, |_, value, _| match &value {
        Json::String(text) => Ok(Json::Number(text.len() as f64)),
        _ => Err(type_error(&value, "only strings have UTF-8 byte length")),
    }),
    native_of("type", 0, |_, value, _| Ok(Json::string(value.kind()))),
    native_of("isinfinite", 0, |_, value, _| is_number(&value, f64::is_infinite)),
    native_of("isnan", 0, |_, value, _| is_number(&value, f64::is_nan)),
    native_of("isnormal", 0, |_, value, _| is_number(&value, f64::is_normal)),
    native_of("infinite", 0, |_, _, _| Ok(Json::Number(f64::INFINITY))),
    native_of("nan", 0, |_, _, _| Ok(Json::Number(f64::NAN))),
    native_of("sort", 0, |_, value, _| match value {
        Json::Array(mut list) => {
            Rc::make_mut(&mut list).0.sort_by(Json::order);
            Ok(Json::Array(list))
        }
        _ => Err(type_error(&value, "cannot be sorted, as it is not an array")),
    }),
    native_of("_sort_by_impl", 1, |_, value, mut a| {
        Ok(Json::array(sorted(value, take(&mut a))?.into_iter().map(|(_, value)| value).collect()))
    }),
    native_of("_group_by_impl", 1, |_, value, mut a| {
        Ok(Json::array(groups(sorted(value, take(&mut a))?).into_iter().map(Json::array).collect()))
    }),
    native_of("_unique_by_impl", 1, |_, value, mut a| {
        let first = |group: Vec<Json>| group.into_iter().next().unwrap_or(Json::Null);
        Ok(Json::array(groups(sorted(value, take(&mut a))?).into_iter().map(first).collect()))
    }),
    native_of("min", 0, |_, value, _| extreme(value.clone(), value, true)),
    native_of("max", 0, |_, value, _| extreme(value.clone(), value, false)),
    native_of("_min_by_impl", 1, |_, value, mut a| extreme(value, take(&mut a), true)),
    native_of("_max_by_impl", 1, |_, value, mut a| extreme(value, take(&mut a), false)),
    native_of("error", 0, |_, value, _| Err(value)),
    native_of("env", 0, |_, _, _| Ok(environment())),
    native_of("builtins", 0, |_, _, _| Ok(Json::array(builtins()))),
    native_of("input", 0, |host, _, _| input(host)),
    native_of("debug", 0, |host, value, _| debug(host, value)),
    native_of("stderr", 0, |_, value, _| to_standard_error(value)),
    native_of("input_filename", 0, |host, _, _| Ok(host.inputs.name().map_or(Json::Null, Json::string))),
    native_of("input_line_number", 0, |host, _, _| Ok(Json::Number(host.inputs.line() as f64))),
    native_of("halt", 0, |host, value, _| {
        host.halted = Some((Json::Number(0.0), None));
        Ok(value)
    }),
    native_of("halt_error", 1, |host, value, mut a| {
        let code = take(&mut a);
        if code.as_number().is_none() {
            return Err(type_error(&value, "halt_error/1: number required"));
        }
        host.halted = Some((code, Some(value.clone())));
        Ok(value)
    }),
    native_of("get_search_list", 0, |host, _, _| {
        Ok(Json::array(host.search.iter().map(|path| Json::string(path.as_str())).collect()))
    }),
    native_of("modulemeta", 0, |host, value, _| match &value {
        Json::String(name) => modules::metadata(name, &host.search).map_err(error),
        _ => Err(error("modulemeta input module name must be a string")),
    }),
    native_of("_match_impl", 3, |_, value, a| regex::matches(&value, &a[0], &a[1], a[2].is_true())),
    native_of("have_literal_numbers", 0, |_, _, _| flag(true)),
    native_of("have_decnum", 0, |_, _, _| flag(true)),
];
