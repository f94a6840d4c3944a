//! Everything that ran is a row, and a guest cannot alter it.

use super::{sandbox, strict};

#[test]
fn a_run_keeps_its_text_output_usage_and_changes() {
    let sandbox = sandbox();
    let output = sandbox.bash("echo out; echo err >&2; echo x > /new; exit 4").unwrap();
    let run = sandbox.history_run(output.run).unwrap().unwrap();
    assert_eq!(run.command, "echo out; echo err >&2; echo x > /new; exit 4");
    assert_eq!((run.exit_code, run.stdout.as_slice(), run.stderr.as_slice()), (Some(4), &b"out\n"[..], &b"err\n"[..]));
    assert_eq!(run.changes.unwrap()[0]["path"], "/new");
    assert!(run.usage.unwrap()["fuel"].as_u64().unwrap() > 1_000);
}

#[test]
fn the_newest_run_comes_first() {
    let sandbox = sandbox();
    for script in ["true", "false", "exit 9"] {
        sandbox.bash(script).unwrap();
    }
    let codes: Vec<_> = sandbox.history(2).unwrap().iter().map(|run| run.exit_code).collect();
    assert_eq!(codes, [Some(9), Some(1)]);
}

#[test]
fn a_command_that_met_a_limit_says_so_in_its_row() {
    let sandbox = strict();
    sandbox.bash("while true; do :; done").unwrap();
    let run = &sandbox.history(1).unwrap()[0];
    assert_eq!(run.limit.as_deref(), Some("too many iterations (100) in one loop"));
}
