//! A fast hash for the names that a shell looks up all the time.
//!
//! Names come from the script itself, so collisions are not an attack: a script that wants to be slow can loop.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Multiplies and rotates a word at a time.
#[derive(Default)]
pub struct NameHasher(u64);

const MULTIPLIER: u64 = 0x51_7c_c1_b7_27_22_0a_95;

impl NameHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        if let Some(slot) = last.get_mut(..rest.len()) {
            slot.copy_from_slice(rest);
            self.add(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
        }
    }

    fn finish(&self) -> u64 {
        // The table uses the top bits; the multiplication left the good ones there, the low ones are weak.
        self.0.rotate_left(26)
    }
}

/// A map from names.
pub type NameMap<V> = HashMap<String, V, BuildHasherDefault<NameHasher>>;
/// A set of names.
pub type NameSet = HashSet<String, BuildHasherDefault<NameHasher>>;
