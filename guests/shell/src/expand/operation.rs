//! The operations of `${x…}` on a value: defaults, removal, replacement, substrings, case.

use super::parameter::Expanded;
use super::{Mode, Segment, Tilde};
use crate::ast::{CaseChange, Index, Operation, ParameterName, ReplaceAnchor, Word};
use crate::shell::{Done, Flow, Shell};
use crate::state::assign::Subscript;
use crate::state::options::{SetOption, ShoptOption};
use crate::state::variables::Value;
use common::bytes;
use pattern::{Flags, Pattern};

impl Shell {
    /// Expands a parameter with its operation into segments.
    pub(super) fn expand_operation(
        &mut self,
        name: &ParameterName,
        index: Option<&Index>,
        operation: &Operation,
        mode: Mode,
        out: &mut Vec<Segment>,
    ) -> Done<()> {
        if let Operation::Transform(letter) = operation {
            let mut expanded = self.transform(name, index, *letter)?;
            if let Expanded::Many { joined, .. } = &mut expanded
                && !mode.split
            {
                *joined = true;
            }
            self.push_expanded(expanded, mode, out);
            return Ok(());
        }
        let value = match (operation, name, index) {
            (Operation::Length, ParameterName::Variable(base), Some(index)) => self.value_to_measure(base, index)?,
            _ => self.parameter_value(name, index)?,
        };
        let expanded = match operation {
            Operation::Default { or_empty, word } => {
                if self.is_missing(&value, *or_empty, mode) {
                    return self.expand_inner_word(word, mode, out);
                }
                value
            }
            Operation::Alternative { or_empty, word } => {
                if !self.is_missing(&value, *or_empty, mode) {
                    return self.expand_inner_word(word, mode, out);
                }
                if matches!(name, ParameterName::Special('@')) || index == Some(&Index::All) {
                    return Ok(());
                }
                Expanded::One(String::new())
            }
            Operation::Assign { or_empty, word } => {
                if self.is_missing(&value, *or_empty, mode) {
                    Expanded::One(self.assign_default(name, index, word, mode)?)
                } else {
                    value
                }
            }
            Operation::Error { or_empty, word } => {
                if self.is_missing(&value, *or_empty, mode) {
                    return Err(self.refuse_missing(name, index, *or_empty, word));
                }
                value
            }
            Operation::Length => Expanded::One(self.length(name, index, value)?),
            _ => {
                if matches!(value, Expanded::Unset) {
                    self.refuse_unset(name, index, matches!(operation, Operation::Get))?;
                }
                self.modify(name, index, operation, value)?
            }
        };
        let expanded = match expanded {
            Expanded::Many { values, joined: true }
                if mode.split && !mode.quoted && is_change(operation) && self.ifs().is_empty() =>
            {
                Expanded::One(values.join(" "))
            }
            // Where there are no fields, changed elements are joined as `*` joins them.
            Expanded::Many { values, joined: false } if !mode.split && is_change(operation) => {
                Expanded::Many { values, joined: true }
            }
            other => other,
        };
        self.push_expanded(expanded, mode, out);
        Ok(())
    }

    /// Returns the value whose length is requested; the messages for an unset one differ from those elsewhere.
    fn value_to_measure(&mut self, base: &str, index: &Index) -> Done<Expanded> {
        let name = ParameterName::Variable(base.to_owned());
        let known = self.variables.get(base).is_some();
        match index {
            _ if !known && self.on(SetOption::NoUnset) => {
                self.refuse_unset(&name, None, false)
                    .map_err(|flow| if let Flow::Exit(_) = flow { Flow::Exit(1) } else { flow })?;
            }
            Index::Element(_) if !known => return Ok(Expanded::Unset),
            Index::Element(word) if !self.is_reference(base) => {
                if let Subscript::Number(number) = self.expand_subscript(base, word)?
                    && number < 0
                    && let Value::Indexed(map) = self.value(base)
                    && map.last_key_value().map_or(0, |(last, _)| last + 1) + number < 0
                {
                    self.complain(format_args!("{}]: bad array subscript", crate::print::word(word)));
                    return Err(self.discard());
                }
            }
            _ => {}
        }
        self.parameter_value(&name, Some(index))
    }

    fn is_missing(&mut self, value: &Expanded, or_empty: bool, mode: Mode) -> bool {
        match value {
            Expanded::Unset => true,
            Expanded::One(text) => or_empty && text.is_empty(),
            Expanded::Many { values, joined } => match values.as_slice() {
                [] => true,
                [one] => or_empty && one.is_empty(),
                // Several empty elements are something, unless joining them leaves nothing.
                several => {
                    or_empty && *joined && mode.quoted && several.iter().all(String::is_empty) && self.ifs_joint().is_empty()
                }
            },
        }
    }

    fn expand_inner_word(&mut self, word: &Word, mode: Mode, out: &mut Vec<Segment>) -> Done<()> {
        let tilde = match mode.tilde {
            _ if mode.quoted => Tilde::No,
            Tilde::Assignment => Tilde::Assignment,
            _ => Tilde::Word,
        };
        let inner = Mode { split_literals: mode.split && !mode.quoted, tilde, ..mode };
        let before = out.len();
        self.expand_parts(&word.parts, inner, out)?;
        if out.len() == before && mode.quoted && !word.parts.iter().any(super::parameter::is_list) {
            out.push(Segment::Text { text: String::new(), quoted: true, split: false });
        }
        Ok(())
    }

    fn assign_default(&mut self, name: &ParameterName, index: Option<&Index>, word: &Word, mode: Mode) -> Done<String> {
        let value = if mode.quoted { self.expand_untilded(word)? } else { self.expand_string(word)? };
        match (name, index) {
            (ParameterName::Variable(name), None) => {
                self.assign(name, value, false)?;
                Ok(self.get(name).unwrap_or_default())
            }
            (ParameterName::Variable(name), Some(Index::Element(index))) => {
                let (name, _) = self.resolve(name);
                let subscript = self.expand_subscript(&name, index)?;
                self.assign_element(&name, subscript.clone(), value, false)?;
                Ok(self.get_element(&name, &subscript).unwrap_or_default())
            }
            _ => {
                let shown = self.shown_name(name, index);
                self.complain(format_args!("${shown}: cannot assign in this way"));
                Err(self.discard())
            }
        }
    }

    fn refuse_missing(&mut self, name: &ParameterName, index: Option<&Index>, or_empty: bool, word: &Word) -> Flow {
        let text = match self.expand_string(word) {
            Ok(text) => text,
            Err(flow) => return flow,
        };
        let shown = self.shown_name(name, index);
        let said = if !text.is_empty() {
            text
        } else if or_empty {
            "parameter null or not set".to_owned()
        } else {
            "parameter not set".to_owned()
        };
        self.fatal(format_args!("{shown}: {said}"))
    }

    fn length(&mut self, name: &ParameterName, index: Option<&Index>, value: Expanded) -> Done<String> {
        Ok(match value {
            Expanded::Unset => {
                if let (Some(Index::Element(_)), ParameterName::Variable(base)) = (index, name)
                    && self.variables.get(base).is_some()
                {
                    return Ok("0".to_owned());
                }
                self.refuse_unset(name, index, false)?;
                "0".to_owned()
            }
            Expanded::One(text) if self.counts_bytes(&text) => bytes::encode(&text).len().to_string(),
            Expanded::One(text) => text.chars().count().to_string(),
            Expanded::Many { values, .. } => values.len().to_string(),
        })
    }

    /// Performs the operations that change each element on its own.
    fn modify(&mut self, name: &ParameterName, index: Option<&Index>, operation: &Operation, value: Expanded) -> Done<Expanded> {
        let by_bytes = match &value {
            Expanded::Unset => false,
            Expanded::One(text) => self.counts_bytes(text),
            Expanded::Many { values, .. } => values.iter().any(|text| self.counts_bytes(text)),
        };
        if !by_bytes {
            return self.modify_characters(name, index, operation, value);
        }
        let value = each(value, |text| bytes::apart(&text));
        Ok(each(self.modify_characters(name, index, operation, value)?, |text| bytes::together(&text)))
    }

    /// Returns whether the characters of a text are bytes, because the locale is C.
    pub(crate) fn counts_bytes(&self, text: &str) -> bool {
        let set = |name: &&str| self.variables.get(name).and_then(|variable| variable.scalar()).filter(|value| !value.is_empty());
        !text.is_ascii() && matches!(["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set), Some("C" | "POSIX"))
    }

    fn modify_characters(
        &mut self,
        name: &ParameterName,
        index: Option<&Index>,
        operation: &Operation,
        value: Expanded,
    ) -> Done<Expanded> {
        match operation {
            Operation::RemovePrefix { longest, pattern } => {
                let pattern = self.compile_operand(pattern)?;
                Ok(each(value, |text| match pattern.prefix(&text, *longest) {
                    Some(end) => text.get(end..).unwrap_or_default().to_owned(),
                    None => text,
                }))
            }
            Operation::RemoveSuffix { longest, pattern } => {
                let pattern = self.compile_operand(pattern)?;
                Ok(each(value, |text| match pattern.suffix(&text, *longest) {
                    Some(start) => text.get(..start).unwrap_or_default().to_owned(),
                    None => text,
                }))
            }
            Operation::Replace { anchor, pattern, replacement } => self.replace(*anchor, pattern, replacement.as_ref(), value),
            Operation::Substring { offset, length } => self.substring(name, index, offset, length.as_ref(), value),
            Operation::Case { change, all, pattern } => {
                let any = pattern.parts.is_empty();
                let pattern = self.compile_operand(pattern)?;
                Ok(each(value, |text| change_case(&text, *change, *all, |c| any || pattern.matches(c.encode_utf8(&mut [0; 4])))))
            }
            _ => Ok(value),
        }
    }

    /// Returns the pattern of `#`, `%`, `^` and `,`, which `nocasematch` does not concern.
    fn compile_operand(&mut self, word: &Word) -> Done<Pattern> {
        let mut text = self.expand_pattern(word)?;
        if self.counts_bytes(&text) {
            text = bytes::apart(&text);
        }
        let flags = Flags { extglob: self.shopt(ShoptOption::ExtGlob), nocase: false, ..Flags::default() };
        Ok(Pattern::compile(&[(text.as_str(), false)], flags))
    }

    /// Returns a pattern as `case`, `[[` (which always has `extglob`) and expansions match it.
    pub(crate) fn compile_pattern(&self, text: &str, extglob: bool) -> Pattern {
        let flags = Flags {
            extglob: extglob || self.shopt(ShoptOption::ExtGlob),
            nocase: self.shopt(ShoptOption::NoCaseMatch),
            ..Flags::default()
        };
        if self.counts_bytes(text) {
            return Pattern::compile(&[(&bytes::apart(text), false)], flags);
        }
        Pattern::compile(&[(text, false)], flags)
    }

    /// Returns whether the whole text matches a pattern as `case` and `[[` match it.
    pub(crate) fn matches_pattern(&self, pattern: &str, extglob: bool, text: &str) -> bool {
        let pattern = self.compile_pattern(pattern, extglob);
        if self.counts_bytes(text) { pattern.matches(&bytes::apart(text)) } else { pattern.matches(text) }
    }

    fn replace(&mut self, anchor: ReplaceAnchor, pattern: &Word, replacement: Option<&Word>, value: Expanded) -> Done<Expanded> {
        let text = self.expand_pattern(pattern)?;
        // bash takes the first `]` of `[^]…]` for its end when it counts how long a match must be, and finds none.
        if (text.contains("[^]") || text.contains("[!]")) && !text.contains(['*', '(']) {
            return Ok(value);
        }
        let empty = text.is_empty();
        let pattern = self.compile_pattern(&text, false);
        let ampersand = self.shopt(ShoptOption::PatSubReplacement);
        let replacement = match replacement {
            None => String::new(),
            Some(word) if ampersand => self.expand_escaped(word, |c| c == '&' || c == '\\')?,
            Some(word) => self.expand_string(word)?,
        };
        let put = |out: &mut String, matched: &str| {
            if ampersand {
                put_replacement(out, &replacement, matched);
            } else {
                out.push_str(&replacement);
            }
        };
        Ok(each(value, |text| {
            if empty && !matches!(anchor, ReplaceAnchor::Start | ReplaceAnchor::End) {
                return text;
            }
            let mut out = String::with_capacity(text.len() + replacement.len());
            match anchor {
                ReplaceAnchor::Start => {
                    let end = if empty { Some(0) } else { pattern.prefix(&text, true) };
                    let Some(end) = end else { return text };
                    put(&mut out, &text[..end]);
                    out.push_str(&text[end..]);
                }
                ReplaceAnchor::End => {
                    let start = if empty { Some(text.len()) } else { pattern.suffix(&text, true) };
                    let Some(start) = start else { return text };
                    out.push_str(&text[..start]);
                    put(&mut out, &text[start..]);
                }
                ReplaceAnchor::First | ReplaceAnchor::All => {
                    let mut from = 0;
                    while let Some((start, end)) = pattern.find(&text, from) {
                        out.push_str(&text[from..start]);
                        put(&mut out, &text[start..end]);
                        from = end;
                        if start == end {
                            // An empty match: step over one character, or stop at the end.
                            let Some(c) = text[end..].chars().next() else { break };
                            out.push(c);
                            from = end + c.len_utf8();
                        }
                        if anchor == ReplaceAnchor::First || from >= text.len() {
                            break;
                        }
                    }
                    out.push_str(&text[from..]);
                }
            }
            out
        }))
    }

    fn substring(
        &mut self,
        name: &ParameterName,
        index: Option<&Index>,
        offset: &Word,
        length: Option<&Word>,
        value: Expanded,
    ) -> Done<Expanded> {
        match &value {
            Expanded::Unset => return Ok(Expanded::One(String::new())),
            Expanded::Many { values, .. } if values.is_empty() && matches!(name, ParameterName::Variable(_)) => return Ok(value),
            _ => {}
        }
        let prefix = format!("{}: ", self.shown_name(name, index));
        let offset = self.try_evaluate_word(offset)?.map_err(|error| self.refuse_arithmetic(&error, &prefix))?;
        if let Expanded::One(text) = &value {
            // The length is not looked at where there is nothing to take.
            let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            let start = if offset < 0 { count + offset } else { offset };
            if start < 0 || start > count {
                return Ok(Expanded::One(String::new()));
            }
        }
        let shown = match length {
            Some(word) => crate::print::word(word),
            None => String::new(),
        };
        let length = match length {
            Some(word) => Some(self.try_evaluate_word(word)?.map_err(|error| self.refuse_arithmetic(&error, &prefix))?),
            None => None,
        };
        match value {
            Expanded::Unset => Ok(Expanded::One(String::new())),
            Expanded::One(text) => {
                let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
                let start = if offset < 0 { count + offset } else { offset };
                if start < 0 || start > count {
                    return Ok(Expanded::One(String::new()));
                }
                let end = match length {
                    None => count,
                    Some(length) if length < 0 => count + length,
                    Some(length) => start.saturating_add(length).min(count),
                };
                if end < start {
                    self.complain(format_args!("{shown}: substring expression < 0"));
                    return Err(Flow::Discard(1));
                }
                let take = usize::try_from(end - start).unwrap_or_default();
                Ok(Expanded::One(text.chars().skip(usize::try_from(start).unwrap_or_default()).take(take).collect()))
            }
            Expanded::Many { values, joined } => {
                if length.is_some_and(|length| length < 0) {
                    self.complain(format_args!("{shown}: substring expression < 0"));
                    return Err(Flow::Discard(1));
                }
                let values = self.slice(name, index, values, offset, length);
                Ok(Expanded::Many { values, joined })
            }
        }
    }

    /// Returns `${@:offset:length}` and `${a[@]:offset:length}`.
    fn slice(
        &mut self,
        name: &ParameterName,
        index: Option<&Index>,
        mut values: Vec<String>,
        offset: i64,
        length: Option<i64>,
    ) -> Vec<String> {
        let take = length.map_or(usize::MAX, |length| usize::try_from(length).unwrap_or_default());
        if let (ParameterName::Variable(name), Some(_)) = (name, index) {
            let (name, _) = self.resolve(name);
            if let Value::Indexed(map) = self.value(&name) {
                let last = map.last_key_value().map_or(0, |(last, _)| last + 1);
                let from = if offset < 0 { last + offset } else { offset };
                if from < 0 {
                    return Vec::new();
                }
                return map.into_iter().filter(|(at, _)| *at >= from).map(|(_, value)| value).take(take).collect();
            }
            // The values of an associative array are counted from 1, and 0 is the first too.
            let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
            let from = if offset < 0 { count + 1 + offset } else { offset };
            let Ok(from) = usize::try_from(from) else { return Vec::new() };
            return values.into_iter().skip(from.saturating_sub(1)).take(take).collect();
        }
        // The positional parameters begin at 1: an offset of 0 is `$0`.
        values.insert(0, self.name.clone());
        let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
        let from = if offset < 0 { count + offset } else { offset };
        let Ok(from) = usize::try_from(from) else { return Vec::new() };
        values.into_iter().skip(from).take(take).collect()
    }
}

/// Returns whether an operation makes new text of each element.
fn is_change(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::RemovePrefix { .. }
            | Operation::RemoveSuffix { .. }
            | Operation::Replace { .. }
            | Operation::Substring { .. }
            | Operation::Case { .. }
    )
}

fn each(value: Expanded, mut change: impl FnMut(String) -> String) -> Expanded {
    match value {
        Expanded::Unset => Expanded::Unset,
        Expanded::One(text) => Expanded::One(change(text)),
        Expanded::Many { values, joined } => Expanded::Many { values: values.into_iter().map(change).collect(), joined },
    }
}

/// Puts a replacement in which `&` stands for what matched and a backslash makes it ordinary.
fn put_replacement(out: &mut String, replacement: &str, matched: &str) {
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if matches!(chars.peek(), Some('&' | '\\')) => out.extend(chars.next()),
            '&' => out.push_str(matched),
            c => out.push(c),
        }
    }
}

fn change_case(text: &str, change: CaseChange, all: bool, mut matches: impl FnMut(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.chars().enumerate() {
        if (!all && at > 0) || !matches(c) {
            out.push(c);
            continue;
        }
        let upper = match change {
            CaseChange::Upper => true,
            CaseChange::Lower => false,
            CaseChange::Toggle => c.is_lowercase(),
        };
        if upper { out.push(single(c, c.to_uppercase())) } else { out.push(single(c, c.to_lowercase())) }
    }
    out
}

/// Returns one character for one character, as C's `towupper` does.
fn single(original: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(c), None) => c,
        _ => original,
    }
}
