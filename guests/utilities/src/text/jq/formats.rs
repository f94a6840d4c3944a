//! `@csv`, `@sh` and the other formats of strings.

use super::functions::{Native, error, to_text, type_error};
use super::print;
use super::value::Json;

type Outcome = Result<Json, Json>;

pub(super) const NATIVES: &[Native] = &[Native {
    name: "format",
    arguments: 1,
    run: |_, value, arguments| match arguments.first() {
        Some(Json::String(name)) => format(&value, name),
        Some(other) => Err(type_error(other, "is not a valid format")),
        None => Ok(value),
    },
}];

fn escape(text: &str, table: &[(char, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match table.iter().find(|(special, _)| *special == char) {
            Some((_, replacement)) => out.push_str(replacement),
            None => out.push(char),
        }
    }
    out
}

fn format(value: &Json, name: &str) -> Outcome {
    match name {
        "json" => Ok(Json::string(print::compact(value))),
        "text" => Ok(Json::String(to_text(value))),
        "csv" => row(value, "csv", ",", |text| format!("\"{}\"", text.replace('"', "\"\""))),
        "tsv" => row(value, "tsv", "\t", |text| escape(text, &[('\t', "\\t"), ('\r', "\\r"), ('\n', "\\n"), ('\\', "\\\\")])),
        "html" => {
            let table = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('\'', "&apos;"), ('"', "&quot;")];
            Ok(Json::string(escape(&to_text(value), &table)))
        }
        "uri" => {
            let mut out = String::new();
            for byte in to_text(value).bytes() {
                if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                    out.push(char::from(byte));
                } else {
                    out.push_str(&format!("%{byte:02X}"));
                }
            }
            Ok(Json::string(out))
        }
        "urid" => Ok(Json::text(&percent_decoded(value)?)),
        "sh" => shell(value),
        "base64" => Ok(Json::string(encode(to_text(value).as_bytes(), 6, BASE64))),
        "base64d" => base64_decoded(value),
        "base32" => Ok(Json::string(encode(to_text(value).as_bytes(), 5, BASE32))),
        "base32d" => base32_decoded(value),
        _ => Err(error(format!("{name} is not a valid format"))),
    }
}

fn row(value: &Json, name: &str, separator: &str, quote: impl Fn(&str) -> String) -> Outcome {
    let Json::Array(items) = value else {
        return Err(type_error(value, &format!("cannot be {name}-formatted, only array")));
    };
    let mut cells = Vec::with_capacity(items.0.len());
    for item in &items.0 {
        cells.push(match item {
            Json::Null => String::new(),
            Json::Number(number) if number.is_nan() => String::new(),
            Json::Bool(_) | Json::Number(_) | Json::Literal(_) => print::compact(item),
            Json::String(text) => quote(text),
            _ => return Err(type_error(item, "is not valid in a csv row")),
        });
    }
    Ok(Json::string(cells.join(separator)))
}

fn shell(value: &Json) -> Outcome {
    let alone = [value.clone()];
    let items = if let Json::Array(items) = value { items.0.as_slice() } else { &alone };
    let mut words = Vec::with_capacity(items.len());
    for item in items {
        words.push(match item {
            Json::String(text) => format!("'{}'", text.replace('\'', "'\\''")),
            Json::Array(_) | Json::Object(_) => return Err(type_error(item, "can not be escaped for shell")),
            _ => print::compact(item),
        });
    }
    Ok(Json::string(words.join(" ")))
}

fn percent_decoded(value: &Json) -> Result<Vec<u8>, Json> {
    let text = to_text(value);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let code = text.get(at..at + 2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(code.ok_or_else(|| type_error(value, "is not a valid uri encoding"))?);
        at += 2;
    }
    Ok(out)
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Groups of `bits` as letters, filled up with `=`.
fn encode(bytes: &[u8], bits: u32, letters: &[u8]) -> String {
    let (group, width) = if bits == 6 { (3, 4) } else { (5, 8) };
    let mut out = String::with_capacity(bytes.len() * 2);
    for chunk in bytes.chunks(group) {
        let mut code = 0u64;
        for at in 0..group {
            code = code << 8 | u64::from(chunk.get(at).copied().unwrap_or(0));
        }
        let used = (chunk.len() as u32 * 8).div_ceil(bits);
        for at in 0..width {
            let index = (code >> (bits * (width - 1 - at))) as usize & (letters.len() - 1);
            out.push(if at < used { char::from(letters[index]) } else { '=' });
        }
    }
    out
}

fn base64_decoded(value: &Json) -> Outcome {
    let text = to_text(value);
    let mut out = Vec::with_capacity(text.len());
    let (mut code, mut count) = (0u32, 0);
    for byte in text.bytes().take_while(|byte| *byte != b'=') {
        let Some(index) = BASE64.iter().position(|letter| *letter == byte) else {
            return Err(type_error(&Json::String(text), "is not valid base64 data"));
        };
        code = code << 6 | index as u32;
        count += 1;
        if count == 4 {
            out.extend_from_slice(&code.to_be_bytes()[1..]);
            (code, count) = (0, 0);
        }
    }
    match count {
        3 => out.extend_from_slice(&((code >> 2) as u16).to_be_bytes()),
        2 => out.push((code >> 4) as u8),
        1 => return Err(type_error(&Json::String(text), "trailing base64 byte found")),
        _ => {}
    }
    Ok(Json::text(&out))
}

fn base32_decoded(value: &Json) -> Outcome {
    let text = to_text(value);
    let mut out = Vec::with_capacity(text.len());
    let (mut code, mut bits) = (0u64, 0);
    for byte in text.bytes().take_while(|byte| *byte != b'=') {
        let Some(index) = BASE32.iter().position(|letter| *letter == byte) else {
            return Err(type_error(&Json::String(text), "is not valid base32 data"));
        };
        code = code << 5 | index as u64;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push((code >> bits) as u8);
        }
    }
    Ok(Json::text(&out))
}
