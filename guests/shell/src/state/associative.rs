//! Associative arrays, listed in the order in which bash lists them.
//!
//! bash keeps them in a hash table of 1 024 chains and walks it chain by chain, newest first. Scripts print such arrays and
//! people compare the output, so the order is part of the behaviour: a key's chain is its FNV-1 hash.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::hash::NameMap;
use crate::bytes;

const CHAINS: u32 = 1024;

/// Keys with their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Associative {
    places: NameMap<(u32, Reverse<u64>)>,
    entries: BTreeMap<(u32, Reverse<u64>), (String, String)>,
    made: u64,
}

fn chain(key: &str) -> u32 {
    let mut hash: u32 = 2_166_136_261;
    for &byte in bytes::encode(key).iter() {
        // bash's characters are signed.
        hash = hash.wrapping_mul(16_777_619) ^ i32::from(byte.cast_signed()).cast_unsigned();
    }
    hash & (CHAINS - 1)
}

impl Associative {
    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&String> {
        self.places.get(key).and_then(|place| self.entries.get(place)).map(|(_, value)| value)
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: String, value: String) {
        if let Some(entry) = self.places.get(&key).and_then(|place| self.entries.get_mut(place)) {
            entry.1 = value;
            return;
        }
        self.made += 1;
        let place = (chain(&key), Reverse(self.made));
        self.places.insert(key.clone(), place);
        self.entries.insert(place, (key, value));
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) {
        if let Some(place) = self.places.remove(key) {
            self.entries.remove(&place);
        }
    }

    /// Returns how many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys and values in bash's order.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.entries.values().map(|(key, value)| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_bash_s_order() {
        let mut array = Associative::default();
        for key in ["one", "two", "three", "four"] {
            array.insert(key.to_owned(), String::new());
        }
        let keys: Vec<_> = array.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["four", "two", "three", "one"]);
    }
}
