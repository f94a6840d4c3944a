//! Whatever was changed: restoring a version leaves no difference, an undo of an undo is a redo, and pruning changes no version that it
//! keeps.

use std::collections::BTreeMap;

use runtime::{FileType, Keep, Sandbox};
use serde_json::Value;

use super::sandbox;

const SEQUENCES: u64 = 25;
/// Changes before the first restore.
const CHANGES: usize = 12;
/// Restores of each sequence.
const RESTORES: usize = 4;
const PATHS: [&str; 6] = ["/w/a", "/w/b", "/w/d", "/w/d/a", "/w/d/e", "/w/d/e/f"];

/// Each path with its mode and its content or target, and all keys.
type State = (BTreeMap<String, (u32, Vec<u8>)>, Vec<(String, Value)>);

/// Numbers that repeat with their seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Makes one change, if it is possible.
fn change(sandbox: &Sandbox, random: &mut Random) {
    let (one, other) = (PATHS[random.below(PATHS.len())], PATHS[random.below(PATHS.len())]);
    let (size, mode) = (random.below(3000), [0o700, 0o744, 0o755][random.below(3)]);
    let (fs, kv) = (sandbox.fs(), sandbox.kv());
    let _ = match random.below(12) {
        0..=2 => fs.write(one, vec![7; size]),
        3 => fs.append(one, vec![8; size]),
        4 => fs.create_dir_all(one),
        5 => fs.remove_file(one),
        6 => fs.remove_dir_all(one),
        7 => fs.rename(one, other),
        8 => fs.symlink("a", one),
        9 => fs.hard_link(one, other),
        10 => fs.set_permissions(one, mode),
        _ if size.is_multiple_of(3) => kv.delete("key").map(|_| ()),
        _ => kv.set("key", size).map(|_| ()),
    };
}

fn state(sandbox: &Sandbox) -> State {
    let fs = sandbox.fs();
    let files = fs.walk("/w").unwrap().into_iter().map(|found| {
        let content = match found.stat.file_type() {
            FileType::File => fs.read(&found.path).unwrap(),
            FileType::Symlink => fs.read_link(&found.path).unwrap().into_bytes(),
            _ => Vec::new(),
        };
        (found.path, (found.stat.mode, content))
    });
    (files.collect(), sandbox.kv().items("").unwrap())
}

fn head(sandbox: &Sandbox) -> i64 {
    sandbox.versions().resolve("HEAD").unwrap().number
}

/// A sandbox after random changes, with the state at each of its versions.
fn changed(random: &mut Random) -> (Sandbox, BTreeMap<i64, State>) {
    let (sandbox, mut states) = (sandbox(), BTreeMap::new());
    sandbox.fs().create_dir_all("/w").unwrap();
    states.insert(head(&sandbox), state(&sandbox));
    for _ in 0..CHANGES {
        change(&sandbox, random);
        states.insert(head(&sandbox), state(&sandbox));
    }
    (sandbox, states)
}

#[test]
fn a_restore_leaves_no_difference_and_an_undo_of_an_undo_is_a_redo() {
    let mut undone = 0;
    for seed in 1..=SEQUENCES {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (sandbox, mut states) = changed(&mut random);
        for _ in 0..RESTORES {
            let numbers: Vec<i64> = states.keys().copied().collect();
            let number = numbers[random.below(numbers.len())];
            let (name, what) = (format!("v{number}"), format!("seed {seed}: v{number} at v{}", head(&sandbox)));
            let before = state(&sandbox);
            let done = sandbox.versions().restore(&name, &[]).unwrap();
            let restored = state(&sandbox);
            assert_eq!(restored, states[&number], "{what}");
            assert!(sandbox.versions().compare(&name, "HEAD", &[]).unwrap().is_empty(), "{what}");
            assert_eq!(sandbox.versions().digest("HEAD").unwrap(), sandbox.versions().digest(&name).unwrap(), "{what}");
            if done.is_empty() {
                assert_eq!(restored, before, "{what}");
                continue;
            }
            sandbox.versions().undo(1).unwrap();
            assert_eq!(state(&sandbox), before, "{what}");
            sandbox.versions().undo(1).unwrap();
            assert_eq!(state(&sandbox), restored, "{what}");
            states.insert(head(&sandbox), restored);
            undone += 1;
        }
        assert_eq!(sandbox.check().unwrap(), [], "seed {seed}");
    }
    assert!(undone > SEQUENCES, "hardly anything was restored: {undone}");
}

#[test]
fn pruning_changes_no_version_that_it_keeps() {
    for seed in 1..=SEQUENCES {
        let mut random = Random(seed.wrapping_mul(0xD1B5_4A32_D192_ED03));
        let (sandbox, states) = changed(&mut random);
        let keep = 1 + u64::try_from(random.below(states.len())).unwrap();
        let pruned = sandbox.versions().prune(&Keep { versions: Some(keep), ..Keep::default() }).unwrap();
        let kept: Vec<i64> = states.keys().copied().filter(|number| *number >= pruned.oldest).collect();
        assert!(!kept.is_empty(), "seed {seed}: {pruned:?}");
        for (number, expected) in &states {
            match sandbox.at(&format!("v{number}")) {
                Ok(then) => assert_eq!(&state(&then), expected, "seed {seed}: v{number}"),
                Err(error) => assert!(!kept.contains(number), "seed {seed}: v{number}: {error}"),
            }
        }
        assert_eq!(sandbox.check().unwrap(), [], "seed {seed}");
    }
}
