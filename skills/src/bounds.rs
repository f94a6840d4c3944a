//! Limits of scripts besides those of a preset: the defaults, and the maximum that a skill can request.

use std::time::Duration;

/// Defaults and maximums of skills. The limits of the preset apply as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The time of a skill without `timeout`.
    pub default_timeout: Duration,
    /// The longest time that a skill gets.
    pub max_timeout: Duration,
    /// The memory of a skill without `resources.memory`, or with more than the maximum.
    pub default_memory: u64,
    /// The largest memory that a skill can ask for.
    pub max_memory: u64,
    /// Bytes of logs that are kept.
    pub log_bytes: usize,
}

impl Default for Bounds {
    /// Skillbox's own.
    fn default() -> Self {
        Self {
            default_timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            default_memory: 256 << 20,
            max_memory: 1 << 30,
            log_bytes: 1 << 20,
        }
    }
}
