//! `$name` and `${ … }`.

use crate::ast::{CaseChange, Index, Operation, Parameter, ParameterName, Part, ReplaceAnchor, Word};

use super::input::{is_name_byte, is_name_start};
use super::words::{Mode, QuotedMode};
use super::{Parsed, Parser, SyntaxError};

impl Parser {
    /// Parses `$name`, `$1`, `$?`; `None` if the `$` is literal.
    pub(super) fn bare_parameter(&mut self) -> Option<Part> {
        let start = self.pos + 1;
        let first = self.at(start);
        let name = if is_name_start(first) {
            let mut end = start + 1;
            while is_name_byte(self.at(end)) || self.join_at(end) {
                end += usize::from(is_name_byte(self.at(end)));
            }
            self.pos = end;
            ParameterName::Variable(self.slice(start, end).to_owned())
        } else {
            let name = match first {
                b'1'..=b'9' => ParameterName::Positional(u32::from(first - b'0')),
                b'0' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => ParameterName::Special(char::from(first)),
                _ => return None,
            };
            self.pos = start + 1;
            name
        };
        Some(Part::Parameter(Box::new(Parameter {
            indirect: false,
            name,
            index: None,
            operation: Operation::Get,
            braced: false,
        })))
    }

    /// Parses `${ … }`; the parser stands at the `$`.
    pub(super) fn braced_parameter(&mut self, quoted: bool) -> Parsed<Part> {
        let open = self.pos;
        self.pos += 2;
        if let Some(parameter) = self.parameter_form(open, quoted)? {
            return Ok(Part::Parameter(Box::new(parameter)));
        }
        let end = self.closing_brace(open + 2, quoted)?;
        self.pos = end + 1;
        Ok(Part::Parameter(Box::new(Parameter {
            indirect: false,
            name: ParameterName::Variable(String::new()),
            index: None,
            operation: Operation::Bad(self.slice(open + 2, end).to_owned()),
            braced: true,
        })))
    }

    /// Parses the text between the braces; `None` for a form that bash rejects when it expands it.
    fn parameter_form(&mut self, open: usize, quoted: bool) -> Parsed<Option<Parameter>> {
        if self.here() == b'#' && self.at(self.pos + 1) != b'}' {
            let back = self.pos;
            self.pos += 1;
            if let Some(name) = self.parameter_name()
                && let Some(index) = self.index_of(&name)?
                && self.here() == b'}'
            {
                self.pos += 1;
                let operation = Operation::Length;
                return Ok(Some(Parameter { indirect: false, name, index, operation, braced: true }));
            }
            self.pos = back;
            // `${#x…}` has no other operators; `${#-x}` and its kin are about `$#`.
            let next = self.at(back + 1);
            if is_name_byte(next) || matches!(next, b'/' | b'%' | b'=' | b'+') && self.at(back + 2) == b'}' {
                return Ok(None);
            }
        }
        let mut indirect = false;
        if self.here() == b'!' && self.names_something(self.pos + 1) {
            indirect = true;
            self.pos += 1;
        }
        let Some(name) = self.parameter_name() else { return Ok(None) };
        if indirect
            && matches!(name, ParameterName::Variable(_))
            && matches!(self.here(), b'*' | b'@')
            && self.at(self.pos + 1) == b'}'
        {
            let operation = Operation::Names { separate: self.here() == b'@' };
            self.pos += 2;
            return Ok(Some(Parameter { indirect: false, name, index: None, operation, braced: true }));
        }
        let Some(index) = self.index_of(&name)? else { return Ok(None) };
        if indirect && self.here() == b'}' && matches!(index, Some(Index::All | Index::Joined)) {
            let operation = Operation::Keys { separate: index == Some(Index::All) };
            self.pos += 1;
            return Ok(Some(Parameter { indirect: false, name, index, operation, braced: true }));
        }
        let Some(operation) = self.operation(quoted)? else { return Ok(None) };
        if self.here() != b'}' {
            if self.here() != 0 {
                return Ok(None);
            }
            let line = self.line_at(open);
            return Err(SyntaxError::unmatched(line, '}'));
        }
        self.pos += 1;
        Ok(Some(Parameter { indirect, name, index, operation, braced: true }))
    }

    /// Returns whether a parameter to look through begins here, in `${!…}`.
    fn names_something(&self, position: usize) -> bool {
        let byte = self.at(position);
        is_name_byte(byte)
            || (matches!(byte, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') && matches!(self.at(position + 1), b'}' | b':'))
    }

    fn parameter_name(&mut self) -> Option<ParameterName> {
        let start = self.pos;
        let first = self.here();
        let mut end = start + 1;
        if is_name_start(first) {
            while is_name_byte(self.at(end)) || self.join_at(end) {
                end += usize::from(is_name_byte(self.at(end)));
            }
            self.pos = end;
            return Some(ParameterName::Variable(self.slice(start, end).to_owned()));
        }
        if first.is_ascii_digit() {
            while self.at(end).is_ascii_digit() {
                end += 1;
            }
            self.pos = end;
            // A number beyond any parameter is as unset as the greatest one.
            let number = self.slice(start, end).parse().unwrap_or(u32::MAX);
            return Some(if number == 0 { ParameterName::Special('0') } else { ParameterName::Positional(number) });
        }
        if matches!(first, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') {
            self.pos = end;
            return Some(ParameterName::Special(char::from(first)));
        }
        None
    }

    /// Parses the subscript of a variable, if it has one; `None` for a form that is refused.
    fn index_of(&mut self, name: &ParameterName) -> Parsed<Option<Option<Index>>> {
        if self.here() != b'[' {
            return Ok(Some(None));
        }
        if !matches!(name, ParameterName::Variable(_)) {
            return Ok(None);
        }
        let index = if self.starts_with("[@]") {
            self.pos += 3;
            Index::All
        } else if self.starts_with("[*]") {
            self.pos += 3;
            Index::Joined
        } else if self.starts_with("[]") || self.matching_bracket(self.pos).is_none() {
            return Ok(None);
        } else {
            Index::Element(self.subscript()?)
        };
        Ok(Some(Some(index)))
    }

    /// Parses an operand that is treated as the text around the expansion is.
    fn operand(&mut self, quoted: bool) -> Parsed<Word> {
        if quoted { self.quoted_word(QuotedMode::Brace) } else { self.word(Mode::Brace) }
    }

    fn operation(&mut self, quoted: bool) -> Parsed<Option<Operation>> {
        let here = self.here();
        let next = self.at(self.pos + 1);
        let operation = match here {
            b'}' | 0 => Operation::Get,
            b':' if matches!(next, b'-' | b'=' | b'?' | b'+') => {
                self.pos += 2;
                self.default_operation(next, true, quoted)?
            }
            b':' => {
                self.pos += 1;
                if self.here() == b'}' {
                    return Ok(None);
                }
                let offset = self.quoted_word(QuotedMode::Offset)?;
                let mut length = None;
                if self.here() == b':' {
                    self.pos += 1;
                    length = Some(self.quoted_word(QuotedMode::Offset)?);
                }
                Operation::Substring { offset, length }
            }
            b'-' | b'=' | b'?' | b'+' => {
                self.pos += 1;
                self.default_operation(here, false, quoted)?
            }
            b'#' | b'%' => {
                let longest = next == here;
                self.pos += 1 + usize::from(longest);
                let pattern = self.word(Mode::Brace)?;
                match here {
                    b'#' => Operation::RemovePrefix { longest, pattern },
                    _ => Operation::RemoveSuffix { longest, pattern },
                }
            }
            b'/' => self.replace_operation(next)?,
            b'^' | b',' | b'~' => {
                let all = next == here;
                self.pos += 1 + usize::from(all);
                let change = match here {
                    b'^' => CaseChange::Upper,
                    b',' => CaseChange::Lower,
                    _ => CaseChange::Toggle,
                };
                Operation::Case { change, all, pattern: self.word(Mode::Brace)? }
            }
            b'@' if matches!(next, b'U' | b'u' | b'L' | b'Q' | b'E' | b'P' | b'A' | b'K' | b'a' | b'k') => {
                self.pos += 2;
                Operation::Transform(char::from(next))
            }
            _ => return Ok(None),
        };
        Ok(Some(operation))
    }

    fn default_operation(&mut self, operator: u8, or_empty: bool, quoted: bool) -> Parsed<Operation> {
        let word = self.operand(quoted)?;
        Ok(match operator {
            b'-' => Operation::Default { or_empty, word },
            b'=' => Operation::Assign { or_empty, word },
            b'?' => Operation::Error { or_empty, word },
            _ => Operation::Alternative { or_empty, word },
        })
    }

    fn replace_operation(&mut self, next: u8) -> Parsed<Operation> {
        let anchor = match next {
            b'/' => ReplaceAnchor::All,
            b'#' => ReplaceAnchor::Start,
            b'%' => ReplaceAnchor::End,
            _ => ReplaceAnchor::First,
        };
        self.pos += 1 + usize::from(anchor != ReplaceAnchor::First);
        let mut pattern = Word::default();
        // A slash right here belongs to the pattern.
        if anchor != ReplaceAnchor::Start && anchor != ReplaceAnchor::End && self.here() == b'/' {
            self.pos += 1;
            pattern = self.word(Mode::BraceSlash)?;
            match pattern.parts.first_mut() {
                Some(Part::Literal(text)) => text.insert(0, '/'),
                _ => pattern.parts.insert(0, Part::Literal("/".to_owned())),
            }
        } else {
            pattern.parts = self.word(Mode::BraceSlash)?.parts;
        }
        let mut replacement = None;
        if self.here() == b'/' {
            self.pos += 1;
            replacement = Some(self.word(Mode::Brace)?);
        }
        Ok(Operation::Replace { anchor, pattern, replacement })
    }
}
