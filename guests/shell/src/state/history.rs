//! The commands that were typed.

/// A list of commands, numbered from 1; old ones may have been dropped.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The commands, oldest first.
    pub lines: Vec<String>,
    /// How many were dropped before the first.
    pub dropped: usize,
    /// How many lines of the history file have been read or written.
    pub in_file: usize,
    /// How many commands are newer than the last time that the file was read or written.
    pub fresh: usize,
}

impl History {
    /// Adds a command.
    pub fn add(&mut self, line: &str) {
        self.lines.push(line.to_owned());
        self.fresh += 1;
    }

    /// Removes the newest command.
    pub fn forget_last(&mut self) {
        self.lines.pop();
        self.fresh = self.fresh.saturating_sub(1);
    }

    /// Keeps only the newest commands.
    pub fn shrink(&mut self, most: usize) {
        let extra = self.lines.len().saturating_sub(most);
        self.lines.drain(..extra);
        // Cut by more than one, bash numbers what is left from the number of those that went.
        self.dropped = if extra > 1 { extra - 1 } else { self.dropped + extra };
    }

    /// Returns the number of the command being run.
    #[must_use]
    pub fn number(&self) -> usize {
        (self.dropped + self.lines.len()).max(1)
    }

    /// Returns the place in the list of what an offset names: from 1, or from the end when negative.
    #[must_use]
    pub fn place(&self, offset: i64) -> Option<usize> {
        let count = i64::try_from(self.lines.len()).ok()?;
        let at = if offset < 0 { count + offset } else { offset - 1 - i64::try_from(self.dropped).ok()? };
        usize::try_from(at).ok().filter(|at| *at < self.lines.len())
    }
}
