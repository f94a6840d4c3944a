//! `sub`, `gsub`, `gensub`, `match`, `split`: the functions that work with patterns.

use std::rc::Rc;

use super::ast::{Expr, Place};
use super::interp::{Cell, Interp, known};
use super::record::Splitter;
use super::value::{Text, Value};
use crate::utf8;
use posix_regex::{Regex, Span};

enum Piece {
    Text(Vec<u8>),
    Group(usize),
}

/// Parses a replacement; `groups` is whether `\1` means a group.
fn pieces(text: &[u8], groups: bool) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut literal = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        let next = text.get(at + 1).copied();
        at += 1;
        let group = match (byte, next) {
            (b'&', _) => Some(0),
            (b'\\', Some(digit @ b'0'..=b'9')) if groups => {
                at += 1;
                Some(usize::from(digit - b'0'))
            }
            // Before an `&` two backslashes are one, and one that is left makes it ordinary; elsewhere they stay.
            (b'\\', _) if !groups => {
                let run = 1 + text[at..].iter().take_while(|byte| **byte == b'\\').count();
                at += run - 1;
                let special = text.get(at) == Some(&b'&');
                literal.resize(literal.len() + if special { run / 2 } else { run }, b'\\');
                if special && run % 2 == 1 {
                    literal.push(b'&');
                    at += 1;
                }
                None
            }
            (b'\\', Some(escaped @ (b'&' | b'\\'))) => {
                literal.push(escaped);
                at += 1;
                None
            }
            _ => {
                literal.push(byte);
                None
            }
        };
        if let Some(group) = group {
            out.push(Piece::Text(std::mem::take(&mut literal)));
            out.push(Piece::Group(group));
        }
    }
    out.push(Piece::Text(literal));
    out
}

/// Replaces the matches that `wanted` picks (0: all, else that one): the new text and how many.
fn replace(regex: &Regex, text: &[u8], replacement: &[Piece], wanted: usize, multibyte: bool) -> Option<(Vec<u8>, usize)> {
    let needs_groups = replacement.iter().any(|piece| matches!(piece, Piece::Group(group) if *group > 0));
    let mut out = Vec::new();
    let mut spans: Vec<Option<Span>> = Vec::new();
    let (mut at, mut copied, mut count, mut done) = (0, 0, 0, 0);
    let mut previous_end = usize::MAX;
    while at <= text.len() {
        let found = if needs_groups {
            regex.captures_at(text, at, &mut spans).then(|| spans[0]).flatten()
        } else {
            regex.find_at(text, at)
        };
        let Some((from, to)) = found else { break };
        let step = |at: usize| if multibyte { utf8::length(&text[at.min(text.len())..]) } else { 1 };
        if from == to && from == previous_end {
            at = to + step(to);
            previous_end = usize::MAX;
            continue;
        }
        count += 1;
        previous_end = to;
        if wanted == 0 || count == wanted {
            out.extend_from_slice(&text[copied..from]);
            for piece in replacement {
                match piece {
                    Piece::Text(literal) => out.extend_from_slice(literal),
                    Piece::Group(0) => out.extend_from_slice(&text[from..to]),
                    Piece::Group(group) => {
                        if let Some((start, end)) = spans.get(*group).copied().flatten() {
                            out.extend_from_slice(&text[start..end]);
                        }
                    }
                }
            }
            copied = to;
            done += 1;
            if wanted != 0 {
                break;
            }
        }
        at = if from == to {
            previous_end = usize::MAX;
            to + step(to)
        } else {
            to
        };
    }
    if done == 0 {
        return None;
    }
    out.extend_from_slice(&text[copied.min(text.len())..]);
    Some((out, done))
}

impl<'p> Interp<'p> {
    /// `sub` (the first match) and `gsub` (all).
    pub fn sub(&mut self, args: &'p [Expr], all: bool) -> Value {
        let regex = self.regex(&args[0]);
        let replacement = self.text(&args[1]);
        let replacement = pieces(&replacement, false);
        let place = match args.get(2) {
            Some(Expr::Place(place)) => Some(place),
            Some(Expr::Group(inner)) => match &**inner {
                Expr::Place(place) => Some(place),
                _ => None,
            },
            _ => None,
        };
        let text = match (args.get(2), place) {
            (_, Some(place)) => self.place(place).text(&self.convfmt),
            (Some(other), None) => self.text(other),
            (None, None) => Text::from_slice(self.record.text(&self.ofs, &self.convfmt)),
        };
        let Some((out, count)) = replace(&regex, &text, &replacement, usize::from(!all), self.utf8) else {
            return Value::Num(0.0);
        };
        match place {
            Some(place) => self.assign(place, Value::Str(Text::new(out))),
            None if args.len() < 3 => self.set_record(&out),
            None => {}
        }
        Value::Num(count as f64)
    }

    pub fn gensub(&mut self, args: &'p [Expr]) -> Value {
        let regex = self.regex(&args[0]);
        let replacement = self.text(&args[1]);
        let how = self.eval(&args[2]);
        let how_text = how.text(&self.convfmt);
        let wanted = if matches!(how_text.first(), Some(b'g' | b'G')) { 0 } else { how.number().max(1.0) as usize };
        let text = match args.get(3) {
            Some(target) => self.text(target),
            None => Text::from_slice(self.record.text(&self.ofs, &self.convfmt)),
        };
        match replace(&regex, &text, &pieces(&replacement, true), wanted, self.utf8) {
            Some((out, _)) => Value::Str(Text::new(out)),
            None => Value::Str(text),
        }
    }

    fn position(&self, text: &[u8], at: usize) -> usize {
        if self.utf8 { utf8::count(&text[..at]) } else { at }
    }

    pub fn match_function(&mut self, args: &'p [Expr]) -> Value {
        let text = self.text(&args[0]);
        let regex = self.regex(&args[1]);
        let array = match args.get(2) {
            Some(Expr::Place(Place::Var(var))) => Some(self.array(*var)),
            Some(Expr::Place(place)) => self.element_array(place, true),
            _ => None,
        };
        let mut spans = Vec::new();
        let found = if array.is_some() {
            regex.captures_at(&text, 0, &mut spans)
        } else {
            spans.extend(regex.find_at(&text, 0).map(Some));
            !spans.is_empty()
        };
        if let Some(array) = &array {
            array.borrow_mut().clear();
        }
        let (mut start, mut length) = (0.0, -1.0);
        if found {
            for (group, span) in spans.iter().enumerate() {
                let Some((from, to)) = *span else { continue };
                let first = self.position(&text, from) as f64 + 1.0;
                let size = self.position(&text, to) as f64 + 1.0 - first;
                if group == 0 {
                    (start, length) = (first, size);
                }
                if let Some(array) = &array {
                    let mut array = array.borrow_mut();
                    array.insert(Text::new(group.to_string().into_bytes()), Value::Input(Text::from_slice(&text[from..to])));
                    for (name, value) in [("start", first), ("length", size)] {
                        let key = [group.to_string().as_bytes(), &self.subsep, name.as_bytes()].concat();
                        array.insert(Text::new(key), Value::Num(value));
                    }
                }
            }
        }
        self.globals[known::RSTART] = Cell::Value(Value::Num(start));
        self.globals[known::RLENGTH] = Cell::Value(Value::Num(length));
        Value::Num(start)
    }

    pub fn split(&mut self, args: &'p [Expr], content: bool) -> Value {
        let text = self.text(&args[0]);
        let splitter = match args.get(2) {
            None if content => Rc::new(Splitter::Content(self.pattern(b"[^[:space:]]+"))),
            None => Rc::clone(&self.splitter),
            Some(pattern) if content => Rc::new(Splitter::Content(self.regex(pattern))),
            Some(Expr::Regex(regex)) if regex.source().is_empty() => Rc::new(Splitter::Characters),
            Some(Expr::Regex(regex)) => Rc::new(Splitter::Pattern(Rc::clone(regex))),
            Some(separator) => {
                let separator = self.text(separator);
                Rc::new(self.splitter_for(&separator))
            }
        };
        let array_of = |interp: &mut Self, arg: Option<&'p Expr>| match arg {
            Some(Expr::Place(Place::Var(var))) => Some(interp.array(*var)),
            Some(Expr::Place(place)) => interp.element_array(place, true),
            _ => None,
        };
        let Some(array) = array_of(self, args.get(1)) else { self.fatal("split: second argument is not an array") };
        let separators = array_of(self, args.get(3));
        array.borrow_mut().clear();
        if let Some(separators) = &separators {
            separators.borrow_mut().clear();
        }
        let mut count = 0u32;
        splitter.split(&text, |field, separator| {
            count += 1;
            let key = Text::new(count.to_string().into_bytes());
            if let Some(separators) = &separators {
                separators.borrow_mut().insert(key.clone(), Value::Str(Text::from_slice(separator)));
            }
            array.borrow_mut().insert(key, Value::Input(Text::from_slice(field)));
        });
        Value::Num(f64::from(count))
    }
}
