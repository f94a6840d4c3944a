//! The parser meets text that is not a program: the scripts of `tests/bash`, damaged. It may refuse them, but not panic, hang or
//! use more stack than a sandbox has.
//!
//! `SANDLITE_MUTATIONS` is the number of damaged scripts, `SANDLITE_MUTATION_SEED` selects them.

use std::path::Path;

use sandlite_shell::syntax::{Options, Parser};

/// How many damaged scripts an ordinary run tries.
const MUTATIONS: u64 = 20_000;

/// Less than what the shell of a sandbox has for itself.
const STACK: usize = 2 << 20;

/// Texts that begin, end or join something.
const TOKENS: &[&str] = &[
    "$(",
    ")",
    "${",
    "}",
    "((",
    "))",
    "`",
    "\"",
    "'",
    "$'",
    "\\",
    "\n",
    "<<E\n",
    "<<-'E'\n",
    "&&",
    "|",
    ";;",
    ";",
    "[[",
    "]]",
    " do ",
    " done ",
    " if ",
    " then ",
    " fi ",
    " case x in ",
    " esac ",
    "f() {",
    "=(",
    "[",
    "]",
    "#",
    "$((",
    "<(",
    "@(",
    "{a,",
    "..",
    "\0",
    "é",
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn parse_all(text: &str, extglob: bool) {
    let mut parser = Parser::new(text, Options { extglob, ..Options::default() });
    // Each step reads something or ends the text, so this ends.
    while let Ok(Some(_)) = parser.next() {}
}

/// Runs `body` with as little stack as a sandbox gives.
fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(body).expect("a thread").join().expect("no panic");
}

fn corpus() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bash/language");
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the corpus").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a topic");
        for case in text.split("\n#### ").skip(1) {
            let script = case.split("\n:::").next().unwrap_or_default();
            scripts.push(script.split_once('\n').map_or("", |(_, script)| script).to_owned());
        }
    }
    scripts.sort();
    scripts
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % end.max(1)
    }
}

fn damage(random: &mut Random, script: &str, other: &str) -> String {
    let mut bytes = script.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(12)).min(bytes.len());
        match random.below(6) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            2 | 3 => {
                let token = TOKENS[random.below(TOKENS.len())];
                bytes.splice(at..at, token.bytes());
            }
            4 => bytes.truncate(at),
            _ => {
                let from = random.below(other.len() + 1);
                bytes.splice(at..end, other.as_bytes()[from..].iter().copied());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn damaged_scripts_are_read_or_refused() {
    on_a_small_stack(|| {
        let scripts = corpus();
        assert!(scripts.len() > 1000, "the corpus is there");
        let mut random = Random(number("SANDLITE_MUTATION_SEED", 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..number("SANDLITE_MUTATIONS", MUTATIONS) {
            let (one, other) = (random.below(scripts.len()), random.below(scripts.len()));
            let text = damage(&mut random, &scripts[one], &scripts[other]);
            parse_all(&text, random.below(2) == 0);
        }
    });
}

#[test]
fn deep_nesting_is_refused() {
    on_a_small_stack(|| {
        for token in TOKENS.iter().chain(&[
            "( ",
            "{ ",
            "! ",
            "while ",
            "x=$(",
            "${x:-",
            "\"${x:-\"",
            "a[",
            "case x in x) ",
            "$((x?",
            "[[ ( ",
        ]) {
            parse_all(&token.repeat(20_000), true);
            parse_all(&format!("echo {}", token.repeat(3_000)), false);
        }
    });
}
