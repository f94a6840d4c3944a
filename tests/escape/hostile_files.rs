//! T-SNAP-01, T-SNAP-02, T-SNAP-03, T-SNAP-04, T-SRC-01: a database that somebody else made, opened with every verb of the command
//! line, and as a base.
//!
//! Each case is a kind of lie and a verb, run as a separate process: it ends in time and within its memory, prints and
//! writes a bounded amount, does not crash, and leaves what is outside its directory as it was. Every lie meets two verbs
//! here; `cargo xtask attack files` tries all of them (`SANDLITE_ATTACK=all`). `SANDLITE_ATTACK=lie` or `SANDLITE_ATTACK=lie/verb`
//! tries one.

mod make;
mod rows;
mod run;

use std::ffi::OsString;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use make::{Lie, lies};
use run::{BASES, Seen, VERBS, Verb};

/// The program under attack: ours, or the one that `SANDLITE_ATTACKED` names.
fn program() -> OsString {
    std::env::var_os("SANDLITE_ATTACKED").unwrap_or_else(|| env!("CARGO_BIN_EXE_sandlite").into())
}

/// Verbs that each lie meets in the short form.
const VERBS_PER_LIE: usize = 2;

#[test]
fn t_snap_02_hostile_files_are_handled_by_every_verb() {
    let wanted = std::env::var("SANDLITE_ATTACK").unwrap_or_default();
    let directory = tempfile::tempdir().unwrap();
    let sound = make::sound(directory.path());
    let lies = lies();
    let cases = cases(&lies, &wanted);
    assert!(!cases.is_empty(), "there is no such case: {wanted}");
    let (next, seen) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((lie, verbs)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let made = tempfile::tempdir().unwrap();
            lie.make(&sound, made.path());
            for verb in verbs {
                let outcome = run::case(made.path(), verb);
                if let Some(bad) = &outcome.bad {
                    eprintln!("{}/{}: {bad}: {}", lie.name, verb.name, outcome.said);
                }
                seen.lock().unwrap().push((format!("{}/{}", lie.name, verb.name), outcome));
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let seen = seen.into_inner().unwrap();
    report(&seen);
    let bad: Vec<_> = seen.iter().filter_map(|(name, seen)| Some(format!("{name}: {}", seen.bad?))).collect();
    assert!(bad.is_empty(), "{} of {} cases:\n{}", bad.len(), seen.len(), bad.join("\n"));
}

// Each lie with the verbs that it meets.
fn cases<'a>(lies: &'a [Lie], wanted: &str) -> Vec<(&'a Lie, Vec<&'static Verb>)> {
    let (lie, verb) = wanted.split_once('/').unwrap_or((wanted, ""));
    let all = wanted == "all";
    let chosen = lies.iter().enumerate().filter(|(_, known)| all || wanted.is_empty() || known.name == lie);
    chosen
        .map(|(index, known)| {
            let some = (0..VERBS_PER_LIE).map(|step| &VERBS[(index * 7 + step * 17) % VERBS.len()]);
            let every = || VERBS.iter().chain(BASES);
            let verbs = match (wanted.is_empty(), verb) {
                (true, _) => some.chain([&BASES[index % BASES.len()]]).collect(),
                (false, "") => every().collect(),
                (false, name) => every().filter(|verb| verb.name == name).collect(),
            };
            (known, verbs)
        })
        .collect()
}

fn report(seen: &[(String, Seen)]) {
    let largest = seen.iter().max_by_key(|(_, seen)| seen.memory).unwrap();
    let slowest = seen.iter().max_by_key(|(_, seen)| seen.took).unwrap();
    let opened = seen.iter().filter(|(_, seen)| seen.success).count();
    eprintln!("{} cases, {opened} of them with status 0", seen.len());
    eprintln!("most memory: {} MB ({})", largest.1.memory >> 20, largest.0);
    eprintln!("slowest: {} ms ({})", slowest.1.took.as_millis(), slowest.0);
    for class in run::Bad::ALL {
        eprintln!("{class}: {}", seen.iter().filter(|(_, seen)| seen.bad == Some(class)).count());
    }
}
