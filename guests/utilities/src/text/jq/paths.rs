//! What an index, a slice and a path mean: reading, writing and deleting.

use std::rc::Rc;

use super::value::{Json, List, Object};

type Result<T> = std::result::Result<T, String>;

/// Largest index that is written: one array cannot take all memory at once.
const MAX_INDEX: f64 = 536_870_911.0;

fn clamp(index: f64) -> i64 {
    index.clamp(-2_147_483_648.0, 2_147_483_647.0) as i64
}

/// Returns where a slice begins and ends in something of this length.
fn slice(length: usize, object: &Object) -> Result<(usize, usize)> {
    let field = |name: &str| object.get(name).cloned().unwrap_or(Json::Null);
    let bound = |value: Json, default: f64| match value {
        Json::Null => Some(default),
        value => value.as_number(),
    };
    let size = length as f64;
    let (Some(start), Some(end)) = (bound(field("start"), 0.0), bound(field("end"), size)) else {
        return Err("Array/string slice indices must be integers".to_string());
    };
    let mut start = if start.is_nan() { 0.0 } else { start };
    if start < 0.0 {
        start += size;
    }
    let from = start.clamp(0.0, size) as usize;
    let mut end = if end.is_nan() { size } else { end };
    if end < 0.0 {
        end += size;
    }
    if end < 0.0 {
        end = from as f64;
    }
    let to = (end.ceil().clamp(0.0, size) as usize).max(from);
    Ok((from, to))
}

fn position(length: usize, index: f64) -> Option<usize> {
    let index = clamp(index);
    usize::try_from(if index < 0 { index + length as i64 } else { index }).ok()
}

/// Returns the value at a key.
pub(super) fn get(value: &Json, key: &Json) -> Result<Json> {
    match (value, key) {
        (Json::Object(object), Json::String(key)) => Ok(object.0.get(key).cloned().unwrap_or(Json::Null)),
        (Json::Array(list), Json::Number(_) | Json::Literal(_)) => {
            let index = key.as_number().unwrap_or(f64::NAN);
            if index.is_nan() {
                return Ok(Json::Null);
            }
            Ok(position(list.0.len(), index).and_then(|at| list.0.get(at)).cloned().unwrap_or(Json::Null))
        }
        (Json::Array(list), Json::Object(bounds)) => {
            let (from, to) = slice(list.0.len(), bounds)?;
            Ok(Json::array(list.0.get(from..to).unwrap_or_default().to_vec()))
        }
        (Json::String(text), Json::Object(bounds)) => {
            let (from, to) = slice(text.chars().count(), bounds)?;
            Ok(Json::string(text.chars().skip(from).take(to - from).collect::<String>()))
        }
        (Json::Array(list), Json::Array(part)) => Ok(indexes(list, part)),
        (Json::Null, Json::String(_) | Json::Number(_) | Json::Literal(_) | Json::Object(_)) => Ok(Json::Null),
        (_, Json::String(key)) if key.len() < 30 => Err(format!("Cannot index {} with string \"{key}\"", value.kind())),
        _ => Err(format!("Cannot index {} with {}", value.kind(), key.kind())),
    }
}

fn indexes(list: &List, part: &List) -> Json {
    if part.0.is_empty() {
        return Json::Null;
    }
    let matches = |at: &usize| {
        list.0.get(*at..).is_some_and(|rest| rest.len() >= part.0.len() && rest.iter().zip(&part.0).all(|(a, b)| a.equals(b)))
    };
    Json::array((0..list.0.len()).filter(matches).map(|at| Json::Number(at as f64)).collect())
}

/// Returns the value with another one at a key.
pub(super) fn set(value: Json, key: &Json, new: Json) -> Result<Json> {
    match (value, key) {
        (value @ (Json::Object(_) | Json::Null), Json::String(key)) => {
            let mut object = if let Json::Object(object) = value { object } else { Rc::new(Object::default()) };
            Rc::make_mut(&mut object).0.insert(Rc::clone(key), new);
            Ok(Json::Object(object))
        }
        (value @ (Json::Array(_) | Json::Null), Json::Number(_) | Json::Literal(_)) => {
            let index = key.as_number().unwrap_or(f64::NAN);
            if index.is_nan() {
                return Err("Cannot set array element at NaN index".to_string());
            }
            let mut list = if let Json::Array(list) = value { list } else { Rc::new(List::default()) };
            let Some(at) = position(list.0.len(), index) else {
                return Err("Out of bounds negative array index".to_string());
            };
            if at as f64 > MAX_INDEX {
                return Err("Array index too large".to_string());
            }
            let List(items) = Rc::make_mut(&mut list);
            if at >= items.len() {
                items.resize(at + 1, Json::Null);
            }
            items[at] = new;
            Ok(Json::Array(list))
        }
        (value @ (Json::Array(_) | Json::Null), Json::Object(bounds)) => {
            let mut list = if let Json::Array(list) = value { list } else { Rc::new(List::default()) };
            let (from, to) = slice(list.0.len(), bounds)?;
            let Json::Array(items) = &new else {
                return Err("A slice of an array can only be assigned another array".to_string());
            };
            Rc::make_mut(&mut list).0.splice(from..to, items.0.iter().cloned());
            Ok(Json::Array(list))
        }
        (Json::String(_), Json::Object(_)) => Err("Cannot update string slices".to_string()),
        (value, key) => Err(format!("Cannot update field at {} index of {}", key.kind(), value.kind())),
    }
}

pub(super) fn has(value: &Json, key: &Json) -> Result<bool> {
    match (value, key) {
        (Json::Null, _) => Ok(false),
        (Json::Object(object), Json::String(key)) => Ok(object.0.contains_key(key)),
        (Json::Array(list), Json::Number(_) | Json::Literal(_)) => {
            let index = key.as_number().unwrap_or(f64::NAN);
            Ok(!index.is_nan() && usize::try_from(clamp(index)).is_ok_and(|at| at < list.0.len()))
        }
        _ => Err(format!("Cannot check whether {} has a {} key", value.kind(), key.kind())),
    }
}

fn components(path: &Json) -> Result<&[Json]> {
    match path {
        Json::Array(path) => Ok(&path.0),
        _ => Err("Path must be specified as an array".to_string()),
    }
}

/// Returns the value a path leads to.
pub(super) fn get_path(root: &Json, path: &Json) -> Result<Json> {
    let mut value = root.clone();
    for key in components(path)? {
        value = get(&value, key)?;
    }
    Ok(value)
}

/// Returns the value with another one at a path; what is missing on the way is created.
pub(super) fn set_path(root: Json, path: &Json, new: Json) -> Result<Json> {
    let path = components(path)?;
    // Each level is taken out of the one above, so that nothing is shared and copied when it is put back.
    let mut levels = Vec::with_capacity(path.len());
    let mut value = root;
    for key in path {
        let inner = get(&value, key)?;
        if !matches!(key, Json::Object(_)) {
            value = set(value, key, Json::Null)?;
        }
        levels.push((value, key));
        value = inner;
    }
    let mut value = new;
    for (level, key) in levels.into_iter().rev() {
        value = set(level, key, value)?;
    }
    Ok(value)
}

/// Returns the value without what the paths lead to.
pub(super) fn delete_paths(root: Json, paths: &Json) -> Result<Json> {
    let Json::Array(paths) = paths else { return Err("Paths must be specified as an array".to_string()) };
    let mut sorted = paths.0.clone();
    sorted.sort_by(Json::order);
    let mut lists = Vec::with_capacity(sorted.len());
    for path in &sorted {
        let Json::Array(path) = path else {
            return Err(format!("Path must be specified as array, not {}", path.kind()));
        };
        lists.push(path.0.as_slice());
    }
    match lists.first() {
        None => Ok(root),
        Some([]) => Ok(Json::Null),
        Some(_) => delete_sorted(root, &lists, 0),
    }
}

fn delete_sorted(mut value: Json, paths: &[&[Json]], start: usize) -> Result<Json> {
    let mut keys = Vec::new();
    let mut at = 0;
    while let Some(path) = paths.get(at) {
        let Some(key) = path.get(start) else { break };
        let same = paths[at..].iter().take_while(|other| other.get(start).is_some_and(|other| other.equals(key))).count().max(1);
        if path.len() == start + 1 {
            keys.push(key.clone());
        } else {
            let inner = get(&value, key)?;
            if !matches!(inner, Json::Null) {
                let inner = delete_sorted(inner, &paths[at..at + same], start + 1)?;
                value = set(value, key, inner)?;
            }
        }
        at += same;
    }
    delete_keys(value, &keys)
}

fn delete_keys(value: Json, keys: &[Json]) -> Result<Json> {
    if keys.is_empty() {
        return Ok(value);
    }
    match value {
        Json::Null => Ok(Json::Null),
        Json::Array(mut list) => {
            let length = list.0.len();
            let mut gone = vec![false; length];
            for key in keys {
                match key {
                    Json::Number(_) | Json::Literal(_) => {
                        let at = position(length, key.as_number().unwrap_or(0.0));
                        if let Some(slot) = at.and_then(|at| gone.get_mut(at)) {
                            *slot = true;
                        }
                    }
                    Json::Object(bounds) => {
                        let (from, to) = slice(length, bounds)?;
                        gone[from..to].fill(true);
                    }
                    _ => return Err(format!("Cannot delete {} element of array", key.kind())),
                }
            }
            let mut gone = gone.into_iter();
            Rc::make_mut(&mut list).0.retain(|_| !gone.next().unwrap_or(false));
            Ok(Json::Array(list))
        }
        Json::Object(mut object) => {
            for key in keys {
                let Json::String(key) = key else {
                    return Err(format!("Cannot delete {} field of object", key.kind()));
                };
                Rc::make_mut(&mut object).0.shift_remove(key);
            }
            Ok(Json::Object(object))
        }
        other => Err(format!("Cannot delete fields from {}", other.kind())),
    }
}
