//! Best of N: every attempt runs in its own fork, and the best one is kept.

use sandlite_runtime::{Error, Sandbox};

/// Three proposals of a model for "sort the numbers".
const ATTEMPTS: [&str; 3] = [
    "sort numbers > sorted", // as text: 10 comes before 9
    "sort -n numbers > sorted",
    "srot -n numbers > sorted",
];

/// Tries all of them and keeps the one that passes the test.
pub fn main() -> Result<(), Error> {
    let sandbox = Sandbox::builder().cwd("/work").file("/work/numbers", "9\n10\n1\n").open()?;
    let mut best = None;
    for attempt in ATTEMPTS {
        let fork = sandbox.fork()?;
        fork.bash(attempt)?;
        let passes = fork.bash("[ $(wc -l < sorted) = 3 ] && sort -nc sorted")?.status.success();
        println!("{}: {attempt}", if passes { "passes" } else { "fails" });
        if passes {
            best = Some(fork);
        }
    }
    let best = best.ok_or_else(|| Error::Invalid("no attempt passes".to_owned()))?;
    assert_eq!(best.fs().read("/work/sorted")?, b"1\n9\n10\n");
    assert!(!sandbox.fs().exists("/work/sorted")?);
    Ok(())
}
