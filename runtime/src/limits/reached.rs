//! A reached limit: its name, the allowed and used amounts, and a hint.

use std::fmt;

use presets::LimitName;

/// How the used amount ends if a person did not decide in time.
pub(super) const APPROVAL: &str = "of waiting for approval";

/// A limit reached by a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitReached {
    /// The limit.
    pub limit: LimitName,
    /// The allowed amount, with its unit.
    pub value: String,
    /// The amount that the command used or requested, with its unit.
    pub used: String,
    /// Whether the command's changes were rolled back because they could not be stored in time; otherwise they were kept.
    pub rolled_back: bool,
}

impl LimitReached {
    /// Returns a hint.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.limit {
            LimitName::Compute => "do less work per command, or use a preset with more `compute`",
            LimitName::Wall if self.used.ends_with(APPROVAL) => "decide about the call sooner, or allow more time for approval",
            LimitName::Wall => "split the work into several commands, or use a preset with a longer `wall` time",
            LimitName::Memory => "process the data in pieces, store the sandbox in a file, or use a preset with more `memory`",
            LimitName::Output => "write the output to a file and read the part you need",
            LimitName::Disk | LimitName::File | LimitName::Inodes | LimitName::Names => {
                "remove files you no longer need, or use a less restrictive preset"
            }
            LimitName::Processes | LimitName::ProcessStarts => "start fewer programs; shell builtins do not count",
            LimitName::Descriptors => "close descriptors you no longer need",
            LimitName::LoopIterations => "use a tool that loops by itself (awk, sed, python), or a less restrictive preset",
            LimitName::Commands => "split the script into several commands, or use a less restrictive preset",
            LimitName::CommandText => "put the text into a file and run the file",
            LimitName::Value => "store large values as files",
            LimitName::Keys => "delete keys you no longer need, or use a less restrictive preset",
            LimitName::Sessions => "remove sessions you no longer need, or use a less restrictive preset",
            LimitName::History => "write the output to a file, or use a less restrictive preset",
            LimitName::Past => "prune old versions, or use a less restrictive preset",
        }
    }

    /// Returns the exit code of a command that this limit ended: 124 for time and compute, 137 for memory, 126 for the rest.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.limit {
            LimitName::Compute | LimitName::Wall => 124,
            LimitName::Memory => 137,
            _ => 126,
        }
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            // LocalSandbox's texts, on which its users match.
            LimitName::LoopIterations => write!(f, "too many iterations ({}) in one loop", self.value),
            LimitName::Commands => write!(f, "too many commands executed (>{})", self.value),
            limit => write!(f, "limit `{limit}` reached: {} allowed, {} used", self.value, self.used),
        }?;
        if self.rolled_back { f.write_str("; the changes could not be stored in time and were rolled back") } else { Ok(()) }
    }
}
