//! Pathname expansion: which files a field's pattern names.

use super::fields::Field;
use crate::pattern::{self, GlobOptions, Piece};
use crate::shell::{Done, Flow, Shell};
use crate::state::options::{SetOption, ShoptOption};

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
            return Err(Flow::Discard(1));
        } else if !self.shopt(ShoptOption::NullGlob) {
            out.push(field.text);
        }
        Ok(())
    }

    /// The files that a pattern names, sorted; `None` when it is no pattern.
    pub(crate) fn glob(&mut self, pieces: &[Piece<'_>]) -> Option<Vec<String>> {
        let ignore: Vec<String> = match self.get("GLOBIGNORE") {
            Some(text) if !text.is_empty() => text.split(':').map(str::to_owned).collect(),
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
            let patterns: Vec<_> = ignore.iter().map(|text| self.compile_pattern(text, false)).collect();
            found.retain(|path| !matches!(path.as_str(), "." | "..") && !patterns.iter().any(|pattern| pattern.matches(path)));
        }
        Some(found)
    }
}
