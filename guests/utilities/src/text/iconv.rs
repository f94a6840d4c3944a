//! `iconv`: text from one encoding to another.

use std::ffi::OsStr;

use encoding_rs::{DecoderResult, EncoderResult, Encoding};

use crate::io;
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, fail};

const SPEC: Spec = Spec {
    short: "f:t:o:cls",
    long: &[
        ("from-code", Needs, 'f'),
        ("to-code", Needs, 't'),
        ("output", Needs, 'o'),
        ("list", No, 'l'),
        ("silent", No, 's'),
        ("verbose", No, 'v'),
    ],
    help: "[OPTION...] [FILE...]",
};

/// An encoding of Unicode itself in units of some bytes, or one with a table.
#[derive(Clone, Copy, PartialEq)]
enum Code {
    Ascii,
    Utf8,
    Latin1,
    Units { width: usize, order: Order },
    Table(&'static Encoding),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
    /// Told by a mark at the beginning; little without one.
    Marked,
}

/// The names of what is not in a table, as `-l` lists them.
const NAMES: &[(&str, Code)] = &[
    ("ANSI_X3.4-1968", Code::Ascii),
    ("ASCII", Code::Ascii),
    ("US-ASCII", Code::Ascii),
    ("ISO-8859-1", Code::Latin1),
    ("ISO8859-1", Code::Latin1),
    ("ISO_8859-1", Code::Latin1),
    ("LATIN1", Code::Latin1),
    ("L1", Code::Latin1),
    ("UCS-2", Code::Units { width: 2, order: Order::Marked }),
    ("UCS-4", Code::Units { width: 4, order: Order::Big }),
    ("UTF-16", Code::Units { width: 2, order: Order::Marked }),
    ("UTF-16BE", Code::Units { width: 2, order: Order::Big }),
    ("UTF-16LE", Code::Units { width: 2, order: Order::Little }),
    ("UTF-32", Code::Units { width: 4, order: Order::Marked }),
    ("UTF-32BE", Code::Units { width: 4, order: Order::Big }),
    ("UTF-32LE", Code::Units { width: 4, order: Order::Little }),
    ("UTF-8", Code::Utf8),
    ("UTF8", Code::Utf8),
];

/// Encodings with tables, by a name that people use.
const TABLES: &[&str] = &[
    "BIG5",
    "CP1250",
    "CP1251",
    "CP1252",
    "CP1253",
    "CP1254",
    "CP1255",
    "CP1256",
    "CP1257",
    "CP1258",
    "CP866",
    "EUC-JP",
    "EUC-KR",
    "GB18030",
    "GBK",
    "ISO-2022-JP",
    "ISO-8859-10",
    "ISO-8859-13",
    "ISO-8859-14",
    "ISO-8859-15",
    "ISO-8859-16",
    "ISO-8859-2",
    "ISO-8859-3",
    "ISO-8859-4",
    "ISO-8859-5",
    "ISO-8859-6",
    "ISO-8859-7",
    "ISO-8859-8",
    "KOI8-R",
    "KOI8-U",
    "MACINTOSH",
    "SHIFT_JIS",
    "TIS-620",
];

/// The treatment of characters that the target encoding does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strange {
    Refuse,
    Skip,
    Replace,
}

/// Why a conversion ended, with the place in the input.
enum Wrong {
    Illegal(usize),
    Incomplete,
}

/// Runs `iconv`.
pub fn iconv(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let mut out = Output::new();
    if given.has('l') {
        for name in NAMES.iter().map(|(name, _)| *name).chain(TABLES.iter().copied()) {
            out.text(format!("{name}//\n"));
        }
        return Ok(0);
    }
    let from = given.value('f').map_or(Some((Code::Utf8, Strange::Refuse)), code);
    let to = given.value('t').map_or(Some((Code::Utf8, Strange::Refuse)), code);
    let (Some((from, _)), Some((to, mut strange))) = (from, to) else {
        return Err(fail("failed to start conversion processing: No such file or directory"));
    };
    let discards = given.has('c');
    if discards && strange == Strange::Refuse {
        strange = Strange::Skip;
    }
    let names = if given.operands.is_empty() { vec!["-".into()] } else { given.operands.clone() };
    let (mut status, mut converted) = (0, Vec::new());
    let mut is_first = true;
    for name in &names {
        let input = match io::read_all(bytes(name)) {
            Ok(input) => input,
            Err(error) => {
                status = fail(format!("cannot open input file `{}': {}", name.to_string_lossy(), sys::message(&error)));
                continue;
            }
        };
        let mut skipped = false;
        let result = convert(&input, from, (to, is_first), strange, discards, &mut converted, &mut skipped);
        is_first = false;
        match result {
            Ok(()) if skipped && strange == Strange::Skip && !discards => {
                flush(&mut out, &given, &converted)?;
                converted.clear();
                status = fail(format!("illegal input sequence at position {}", input.len()));
            }
            Ok(()) => {}
            Err(wrong) => {
                flush(&mut out, &given, &converted)?;
                return Err(match wrong {
                    Wrong::Illegal(at) => fail(format!("illegal input sequence at position {at}")),
                    Wrong::Incomplete => fail("incomplete character or shift sequence at end of buffer"),
                });
            }
        }
    }
    flush(&mut out, &given, &converted)?;
    Ok(status)
}

fn flush(out: &mut Output, given: &options::Given, converted: &[u8]) -> Result<(), i32> {
    match given.value('o') {
        Some(file) => {
            std::fs::write(file, converted).map_err(|error| fail(format!("unable to open output file: {}", sys::message(&error))))
        }
        None => {
            out.put(converted);
            out.send();
            Ok(())
        }
    }
}

/// Returns an encoding's name, with `//TRANSLIT` or `//IGNORE` after it.
fn code(text: &OsStr) -> Option<(Code, Strange)> {
    let text = text.to_string_lossy().to_uppercase();
    let (name, suffix) = text.split_once("//").unwrap_or((&text, ""));
    let strange = match suffix {
        suffix if suffix.contains("TRANSLIT") => Strange::Replace,
        suffix if suffix.contains("IGNORE") => Strange::Skip,
        _ => Strange::Refuse,
    };
    if name.is_empty() {
        return Some((Code::Utf8, strange));
    }
    if let Some((_, code)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some((*code, strange));
    }
    let label = match name.strip_prefix("CP125") {
        Some(digit) => format!("WINDOWS-125{digit}"),
        None => name.to_owned(),
    };
    Encoding::for_label_no_replacement(label.as_bytes()).map(|table| (Code::Table(table), strange))
}

fn convert(
    input: &[u8],
    from: Code,
    (to, is_first): (Code, bool),
    strange: Strange,
    discards: bool,
    out: &mut Vec<u8>,
    skipped: &mut bool,
) -> Result<(), Wrong> {
    if is_first && let Code::Units { width, order: Order::Marked } = to {
        put(out, to, width, '\u{feff}');
    }
    let mut encoder = match to {
        Code::Table(table) => Some(table.new_encoder()),
        _ => None,
    };
    let result = decode(input, from, discards, |at, character| {
        if encode(out, to, encoder.as_mut(), character) {
            return Ok(());
        }
        match strange {
            Strange::Refuse => return Err(Wrong::Illegal(at)),
            Strange::Skip => *skipped = true,
            Strange::Replace => {
                for plain in like(character).chars() {
                    encode(out, to, encoder.as_mut(), plain);
                }
            }
        }
        Ok(())
    });
    if let Some(encoder) = &mut encoder {
        let mut end = [0; 16];
        let (_, _, written) = encoder.encode_from_utf8_without_replacement("", &mut end, true);
        out.extend_from_slice(end.get(..written).unwrap_or_default());
    }
    result
}

/// Passes on each character with its place; `discards` leaves out what is none.
fn decode(input: &[u8], from: Code, discards: bool, mut each: impl FnMut(usize, char) -> Result<(), Wrong>) -> Result<(), Wrong> {
    match from {
        Code::Utf8 => decode_utf8(input, discards, each),
        Code::Ascii | Code::Latin1 => {
            for (at, byte) in input.iter().enumerate() {
                if from == Code::Latin1 || byte.is_ascii() {
                    each(at, char::from(*byte))?;
                } else if !discards {
                    return Err(Wrong::Illegal(at));
                }
            }
            Ok(())
        }
        Code::Units { width, order } => decode_units(input, width, order, discards, each),
        Code::Table(table) => {
            let mut decoder = table.new_decoder_without_bom_handling();
            let mut text = String::with_capacity(1024);
            let mut at = 0;
            loop {
                let start = at;
                let (result, read) =
                    decoder.decode_to_string_without_replacement(input.get(at..).unwrap_or_default(), &mut text, true);
                at += read;
                for character in text.drain(..) {
                    each(start, character)?;
                }
                match result {
                    DecoderResult::InputEmpty => return Ok(()),
                    DecoderResult::OutputFull => {}
                    DecoderResult::Malformed(..) if discards => {}
                    DecoderResult::Malformed(length, after) => {
                        return Err(Wrong::Illegal(at.saturating_sub(usize::from(length) + usize::from(after))));
                    }
                }
            }
        }
    }
}

fn decode_utf8(input: &[u8], discards: bool, mut each: impl FnMut(usize, char) -> Result<(), Wrong>) -> Result<(), Wrong> {
    let mut at = 0;
    for chunk in input.utf8_chunks() {
        for character in chunk.valid().chars() {
            each(at, character)?;
            at += character.len_utf8();
        }
        let invalid = chunk.invalid();
        if invalid.is_empty() || discards {
            at += invalid.len();
            continue;
        }
        let is_cut =
            at + invalid.len() == input.len() && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        return Err(if is_cut { Wrong::Incomplete } else { Wrong::Illegal(at) });
    }
    Ok(())
}

fn decode_units(
    input: &[u8],
    width: usize,
    order: Order,
    discards: bool,
    mut each: impl FnMut(usize, char) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let mut big = order == Order::Big;
    let mut at = 0;
    if order == Order::Marked {
        let unit = |big: bool| input.get(..width).map(|bytes| number(bytes, big));
        if unit(false) == Some(0xfeff) {
            at = width;
        } else if unit(true) == Some(0xfeff) {
            (big, at) = (true, width);
        }
    }
    while at < input.len() {
        let Some(unit) = input.get(at..at + width).map(|bytes| number(bytes, big)) else { return Err(Wrong::Incomplete) };
        let (mut value, mut length) = (unit, width);
        if width == 2 && (0xd800..0xdc00).contains(&unit) {
            let Some(low) = input.get(at + 2..at + 4).map(|bytes| number(bytes, big)) else { return Err(Wrong::Incomplete) };
            if (0xdc00..0xe000).contains(&low) {
                value = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                length = 4;
            }
        }
        match char::from_u32(value) {
            Some(character) => each(at, character)?,
            None if discards => {}
            None => return Err(Wrong::Illegal(at)),
        }
        at += length;
    }
    Ok(())
}

fn number(bytes: &[u8], big: bool) -> u32 {
    let step = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
    if big { bytes.iter().fold(0, step) } else { bytes.iter().rev().fold(0, step) }
}

/// Adds a character; `false` when the encoding does not have it.
fn encode(out: &mut Vec<u8>, to: Code, encoder: Option<&mut encoding_rs::Encoder>, character: char) -> bool {
    match to {
        Code::Utf8 => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        Code::Ascii | Code::Latin1 => match u8::try_from(u32::from(character)) {
            Ok(byte) if byte.is_ascii() || to == Code::Latin1 => out.push(byte),
            _ => return false,
        },
        Code::Units { width, .. } => put(out, to, width, character),
        Code::Table(_) => {
            let (Some(encoder), mut text, mut bytes) = (encoder, [0; 4], [0; 16]) else { return false };
            let text = character.encode_utf8(&mut text);
            let (result, _, written) = encoder.encode_from_utf8_without_replacement(text, &mut bytes, false);
            out.extend_from_slice(bytes.get(..written).unwrap_or_default());
            return !matches!(result, EncoderResult::Unmappable(_));
        }
    }
    true
}

fn put(out: &mut Vec<u8>, to: Code, width: usize, character: char) {
    let big = matches!(to, Code::Units { order: Order::Big, .. });
    let mut unit = |value: u32| match (width, big) {
        (2, true) => out.extend_from_slice(&(value as u16).to_be_bytes()),
        (2, false) => out.extend_from_slice(&(value as u16).to_le_bytes()),
        (_, true) => out.extend_from_slice(&value.to_be_bytes()),
        (_, false) => out.extend_from_slice(&value.to_le_bytes()),
    };
    if width == 2 {
        character.encode_utf16(&mut [0; 2]).iter().for_each(|part| unit(u32::from(*part)));
    } else {
        unit(u32::from(character));
    }
}

/// Returns `//TRANSLIT`: what stands for a character in ASCII.
fn like(character: char) -> &'static str {
    match character {
        'À'..='Å' | 'Ā' | 'Ă' | 'Ą' => "A",
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'Æ' => "AE",
        'æ' => "ae",
        'Ç' | 'Ć' | 'Č' => "C",
        'ç' | 'ć' | 'č' => "c",
        'Ď' => "D",
        'ď' => "d",
        'È'..='Ë' | 'Ē' | 'Ę' | 'Ě' => "E",
        'è'..='ë' | 'ē' | 'ę' | 'ě' => "e",
        'Ì'..='Ï' | 'Ī' | 'İ' => "I",
        'ì'..='ï' | 'ī' => "i",
        'Ł' => "L",
        'ł' => "l",
        'Ñ' | 'Ń' | 'Ň' => "N",
        'ñ' | 'ń' | 'ň' => "n",
        'Ò'..='Ö' | 'Ø' | 'Ő' => "O",
        'ò'..='ö' | 'ø' | 'ő' => "o",
        'Œ' => "OE",
        'œ' => "oe",
        'Ř' => "R",
        'ř' => "r",
        'Ś' | 'Š' | 'Ş' | 'Ș' => "S",
        'ś' | 'š' | 'ş' | 'ș' => "s",
        'ß' => "ss",
        'Ť' | 'Ţ' | 'Ț' => "T",
        'ť' | 'ţ' | 'ț' => "t",
        'Ù'..='Ü' | 'Ů' | 'Ű' | 'Ū' => "U",
        'ù'..='ü' | 'ů' | 'ű' | 'ū' => "u",
        'Ý' | 'Ÿ' => "Y",
        'ý' | 'ÿ' => "y",
        'Ź' | 'Ż' | 'Ž' => "Z",
        'ź' | 'ż' | 'ž' => "z",
        '€' => "EUR",
        '£' => "GBP",
        '¥' => "JPY",
        '©' => "(C)",
        '®' => "(R)",
        '™' => "(TM)",
        '«' => "<<",
        '»' => ">>",
        '‘' | '’' | '‚' => "'",
        '“' | '”' | '„' => "\"",
        '‐' | '‑' | '–' => "-",
        '—' => "--",
        '…' => "...",
        '•' => "o",
        '\u{a0}' => " ",
        '×' => "x",
        '→' => "->",
        '←' => "<-",
        '¼' => " 1/4 ",
        '½' => " 1/2 ",
        '¾' => " 3/4 ",
        _ => "?",
    }
}
