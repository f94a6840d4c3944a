//! Random bytes for guests: from the machine, or from a seed for repeatable runs.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The source of a command's random bytes.
pub(crate) enum Random {
    /// The operating system.
    Machine,
    /// An endless stream derived from a seed.
    Seeded(Mutex<blake3::OutputReader>),
}

impl Random {
    /// Creates the stream of a seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("sandlite deterministic random");
        hasher.update(&seed.to_le_bytes());
        Self::Seeded(Mutex::new(hasher.finalize_xof()))
    }

    /// Fills a buffer.
    pub(crate) fn fill(&self, buffer: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Machine => from_machine(buffer),
            Self::Seeded(reader) => {
                reader.lock().unwrap_or_else(PoisonError::into_inner).fill(buffer);
                Ok(())
            }
        }
    }
}

fn from_machine(mut buffer: &mut [u8]) -> std::io::Result<()> {
    while !buffer.is_empty() {
        let length = rustix::rand::getrandom(&mut *buffer, rustix::rand::GetRandomFlags::empty())?;
        buffer = buffer.get_mut(length..).unwrap_or_default();
    }
    Ok(())
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine => "Random::Machine",
            Self::Seeded(_) => "Random::Seeded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_is_one_stream() {
        let draw = |seed| {
            let mut bytes = [0; 16];
            Random::seeded(seed).fill(&mut bytes).map(|()| bytes).ok()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
