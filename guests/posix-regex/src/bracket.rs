//! Bracket expressions: `[a-z]`, `[^]x]`, `[[:alpha:]]`, `[[.-.]]`, `[[=a=]]`.

use crate::{Class, Node, Parser};

const NAMES: [&str; 12] =
    ["alpha", "digit", "alnum", "upper", "lower", "space", "blank", "punct", "print", "graph", "cntrl", "xdigit"];

const OPEN: &str = "Unmatched [, [^, [:, [., or [=";

impl Parser {
    /// Parses after the opening bracket.
    pub(super) fn bracket(&mut self) -> Result<Node, String> {
        let start = self.at;
        let mut class = Class::default();
        if self.peek(0) == Some('^') {
            class.negated = true;
            self.at += 1;
        }
        let first = self.at;
        loop {
            let Some(char) = self.units.get(self.at).copied() else { return Err(OPEN.to_string()) };
            if char == u32::from(']') && self.at > first {
                self.at += 1;
                break;
            }
            if self.peek(0) == Some('[') && self.peek(1) == Some(':') {
                self.named(&mut class)?;
                continue;
            }
            let low = self.member()?;
            if self.peek(0) == Some('-') && self.peek(1).is_some() && self.peek(1) != Some(']') {
                self.at += 1;
                let high = self.member()?;
                if high < low {
                    return Err("Invalid range end".to_string());
                }
                class.ranges.push((low, high));
            } else {
                class.ranges.push((low, low));
            }
        }
        let inside = &self.units[start..self.at - 1];
        let is = |at: Option<&u32>| at == Some(&u32::from(':'));
        if inside.len() > 2 && is(inside.first()) && is(inside.last()) && !self.syntax.awk && !self.syntax.library {
            return Err("character class syntax is [[:space:]], not [:space:]".to_string());
        }
        Ok(Node::Class(class))
    }

    fn named(&mut self, class: &mut Class) -> Result<(), String> {
        self.at += 2;
        let start = self.at;
        while !(self.peek(0) == Some(':') && self.peek(1) == Some(']')) {
            if self.end() {
                return Err(OPEN.to_string());
            }
            self.at += 1;
        }
        let name: String = self.units[start..self.at].iter().filter_map(|&unit| char::from_u32(unit)).collect();
        self.at += 2;
        match NAMES.iter().find(|known| **known == name) {
            Some(known) => class.names.push(known),
            None => return Err("Invalid character class name".to_string()),
        }
        Ok(())
    }

    fn member(&mut self) -> Result<u32, String> {
        if self.peek(0) == Some('[') && matches!(self.peek(1), Some('.' | '=')) {
            let mark = self.peek(1);
            let value = self.units.get(self.at + 2).copied();
            if self.peek(3) == mark && self.peek(4) == Some(']') {
                self.at += 5;
                return value.ok_or_else(|| OPEN.to_string());
            }
            let closed = (self.at + 2..self.units.len())
                .any(|at| self.units[at] == mark.map_or(0, u32::from) && self.units.get(at + 1) == Some(&u32::from(']')));
            return Err(if closed { "Invalid collation character" } else { OPEN }.to_string());
        }
        let Some(&unit) = self.units.get(self.at) else { return Err(OPEN.to_string()) };
        self.at += 1;
        if unit != u32::from('\\') || self.end() {
            return Ok(unit);
        }
        let next = self.units[self.at];
        let letter = char::from_u32(next).unwrap_or('\0');
        if self.syntax.awk {
            self.at += 1;
            return Ok(if letter == 'b' { 8 } else { self.character_escape(letter, next) });
        }
        if self.syntax.escapes && matches!(letter, 'n' | 't' | 'f' | 'v' | 'a' | 'r' | 'x' | 'o' | 'd' | 'c') {
            let at = self.at;
            self.at += 1;
            let value = self.character_escape(letter, next);
            if value != next {
                return Ok(value);
            }
            self.at = at;
        }
        Ok(unit)
    }
}
