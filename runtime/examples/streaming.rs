//! Streaming output: read it while the command runs, respond to it, and wait for the end.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};

use sandlite_runtime::{Command, Sandbox};

/// Interacts with a command.
pub fn main() -> Result<(), Box<dyn Error>> {
    let sandbox = Sandbox::builder().open()?;
    let mut child = sandbox.spawn(Command::bash("while read -r name; do echo hello $name; done"))?;
    let (mut stdin, stdout) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
    // The command waits while this reader is more than 64 KB behind.
    let mut lines = BufReader::new(stdout).lines();
    for name in ["ada", "bob"] {
        writeln!(stdin, "{name}")?;
        let line = lines.next().ok_or("the command ended")??;
        println!("{line}");
        assert_eq!(line, format!("hello {name}"));
    }
    drop(stdin);
    assert!(child.wait()?.status.success());
    Ok(())
}
