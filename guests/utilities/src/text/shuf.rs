//! `shuf`, and the random numbers that others need too.

use std::ffi::OsString;
use std::io::Read;

use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Descriptor, Outcome, Output, bytes, extra_operand, fail, open, read_all, usage};
use crate::quote;

/// Random numbers: from the system, or from a file that someone chose.
pub struct Random {
    state: [u64; 4],
    source: Option<Descriptor>,
}

impl Random {
    /// Creates a generator seeded by the system; `salt` distinguishes two of the same moment.
    pub fn from_system(salt: u64) -> Self {
        // The standard library's hash keys are the system's random numbers.
        use std::hash::{BuildHasher, Hasher, RandomState};
        let mut state = [0; 4];
        for (index, word) in state.iter_mut().enumerate() {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(salt.wrapping_add(index as u64));
            hasher.write_i128(sys::now_ns());
            *word = hasher.finish() | 1;
        }
        Self { state, source: None }
    }

    /// Creates a source that reads a file.
    pub fn from_file(file: &std::ffi::OsStr) -> std::io::Result<Self> {
        Ok(Self { state: [1; 4], source: Some(open(file)?) })
    }

    /// Returns the next number of xoshiro256++, or eight bytes of the source.
    pub fn next(&mut self) -> u64 {
        if let Some(source) = &mut self.source {
            let mut eight = [0; 8];
            if source.read_exact(&mut eight).is_err() {
                std::process::exit(fail("end of file in random source"));
            }
            return u64::from_le_bytes(eight);
        }
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a number below `bound`, each as likely as the other.
    pub fn below(&mut self, bound: u64) -> u64 {
        let zone = u64::MAX - u64::MAX % bound.max(1);
        loop {
            let value = self.next();
            if value < zone {
                return value % bound.max(1);
            }
        }
    }
}

/// Runs `shuf`.
pub fn main(args: Args) -> Outcome {
    let spec = Spec {
        short: "ei:n:o:rz",
        long: &[
            ("echo", No, 'e'),
            ("input-range", Needs, 'i'),
            ("head-count", Needs, 'n'),
            ("output", Needs, 'o'),
            ("random-source", Needs, 'R'),
            ("repeat", No, 'r'),
            ("zero-terminated", No, 'z'),
        ],
        help: "[OPTION]... [FILE]",
    };
    let given = options::parse(args, &spec)?;
    let end = if given.has('z') { 0 } else { b'\n' };
    if given.has('e') && given.has('i') {
        return Err(usage("cannot combine -e and -i options"));
    }
    let mut limit = u64::MAX;
    for (_, value) in given.options.iter().filter(|(letter, _)| *letter == 'n') {
        let count = value
            .to_str()
            .and_then(|text| text.parse::<u64>().ok())
            .ok_or_else(|| fail(format!("invalid line count: {}", quote::plain(value))))?;
        limit = limit.min(count);
    }
    let range = match given.value('i') {
        Some(value) => {
            let text = value.to_string_lossy();
            let ends = text.split_once('-').and_then(|(low, high)| Some((low.parse::<u64>().ok()?, high.parse::<u64>().ok()?)));
            Some(
                ends.filter(|(low, high)| *low <= high.saturating_add(1))
                    .ok_or_else(|| fail(format!("invalid input range: {}", quote::plain(value))))?,
            )
        }
        None => None,
    };
    let mut all = Vec::new();
    let lines: Lines<'_> = if let Some((low, high)) = range {
        if let Some(extra) = given.operands.first() {
            return Err(extra_operand(extra));
        }
        Lines::Range(low, high)
    } else if given.has('e') {
        Lines::Words(given.operands.iter().map(|word| bytes(word)).collect())
    } else {
        if let Some(extra) = given.operands.get(1) {
            return Err(extra_operand(extra));
        }
        let file = given.operands.first().cloned().unwrap_or_else(|| OsString::from("-"));
        all = read_all(&file).map_err(|error| fail(format!("{}: {}", quote::maybe(&file), sys::message(&error))))?;
        if all.last() == Some(&end) {
            all.pop();
        } else if all.is_empty() {
            return Ok(0);
        }
        Lines::Words(all.split(|&byte| byte == end).collect())
    };
    let mut random = match given.value('R') {
        Some(file) => {
            Random::from_file(file).map_err(|error| fail(format!("{}: {}", quote::maybe(file), sys::message(&error))))?
        }
        None => Random::from_system(0),
    };
    let mut out = Output::new();
    let mut file_out = Vec::new();
    let target = given.value('o').map(OsString::from);
    let count = lines.count();
    let mut put = |line: &[u8], out: &mut Output| {
        if target.is_some() {
            file_out.extend_from_slice(line);
            file_out.push(end);
        } else {
            out.line(line, end);
        }
    };
    if given.has('r') {
        if count == 0 && limit > 0 {
            return Err(fail("no lines to repeat"));
        }
        for _ in 0..limit {
            let line = lines.get(random.below(count));
            put(&line, &mut out);
        }
    } else {
        permute(count, limit.min(count), &mut random, |index| {
            let line = lines.get(index);
            put(&line, &mut out);
        });
    }
    if let Some(target) = target {
        let written = Descriptor::create(&target).and_then(|file| sys::write_all(file.fd(), &file_out));
        written.map_err(|error| fail(format!("{}: {}", quote::maybe(&target), sys::message(&error))))?;
    }
    let _ = &all;
    Ok(0)
}

enum Lines<'a> {
    Range(u64, u64),
    Words(Vec<&'a [u8]>),
}

impl Lines<'_> {
    fn count(&self) -> u64 {
        match self {
            Self::Range(low, high) => (high + 1).saturating_sub(*low),
            Self::Words(words) => words.len() as u64,
        }
    }

    fn get(&self, index: u64) -> Vec<u8> {
        match self {
            Self::Range(low, _) => (low + index).to_string().into_bytes(),
            Self::Words(words) => words[index as usize].to_vec(),
        }
    }
}

/// Returns the first `take` numbers of a shuffled `count`, without storing more than was touched.
fn permute(count: u64, take: u64, random: &mut Random, mut each: impl FnMut(u64)) {
    let mut moved = std::collections::HashMap::new();
    for at in 0..take {
        let pick = at + random.below(count - at);
        let chosen = moved.get(&pick).copied().unwrap_or(pick);
        let here = moved.get(&at).copied().unwrap_or(at);
        moved.insert(pick, here);
        each(chosen);
    }
}
