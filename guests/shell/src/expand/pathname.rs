//! Pathname expansion: which files a field's pattern names.

use super::fields::Field;
use crate::shell::{Done, Shell};
use crate::state::options::{SetOption, ShoptOption};
use pattern::{self, GlobOptions, Piece};

impl Shell {
    /// Adds a field's text, or the files that its pattern names.
    pub(super) fn expand_pathname(&mut self, field: Field, out: &mut Vec<String>) -> Done<()> {
        if !field.pattern || self.on(SetOption::NoGlob) {
            out.push(field.text);
            return Ok(());
        }
        let Some(mut found) = self.glob(&field.pieces()) else {
            out.push(field.text);
            return Ok(());
        };
        if !found.is_empty() {
            out.append(&mut found);
        } else if self.shopt(ShoptOption::FailGlob) {
            self.complain(format_args!("no match: {}", field.text));
            return Err(self.discard());
        } else if !self.shopt(ShoptOption::NullGlob) {
            out.push(field.text);
        }
        Ok(())
    }

    /// Returns the files that a pattern names, sorted; `None` if it is not a pattern.
    pub(crate) fn glob(&mut self, pieces: &[Piece<'_>]) -> Option<Vec<String>> {
        let ignore: Vec<String> = match self.get("GLOBIGNORE") {
            Some(text) if !text.is_empty() => split_patterns(&text),
            _ => Vec::new(),
        };
        let options = GlobOptions {
            extglob: self.shopt(ShoptOption::ExtGlob),
            nocaseglob: self.shopt(ShoptOption::NoCaseGlob),
            dotglob: self.shopt(ShoptOption::DotGlob) || !ignore.is_empty(),
            globstar: self.shopt(ShoptOption::GlobStar),
        };
        let mut found =
            pattern::glob(pieces, &mut crate::exec::RealFiles { dots: !self.shopt(ShoptOption::GlobSkipDots) }, options)?;
        if !ignore.is_empty() {
            let patterns: Vec<Vec<_>> =
                ignore.iter().map(|text| text.split('/').map(|part| self.compile_pattern(part, false)).collect()).collect();
            found.retain(|path| {
                !matches!(path.as_str(), "." | "..") && !patterns.iter().any(|pattern| matches_path(pattern, path))
            });
        }
        Some(found)
    }
}

/// GLOBIGNORE's patterns: a colon inside of brackets does not separate them.
fn split_patterns(text: &str) -> Vec<String> {
    let mut patterns = vec![String::new()];
    let mut brackets = 0u32;
    for c in text.chars() {
        match c {
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            ':' if brackets == 0 => {
                patterns.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = patterns.last_mut() {
            last.push(c);
        }
    }
    patterns
}

/// Returns whether a path matches part by part: no pattern matches a slash.
fn matches_path(patterns: &[pattern::Pattern], path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    parts.len() == patterns.len() && patterns.iter().zip(parts).all(|(pattern, part)| pattern.matches(part))
}
