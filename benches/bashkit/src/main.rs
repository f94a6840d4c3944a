//! The same warm `echo hello` in crate `bashkit`, an interpreter in this very process without wasm and without a database:
//! prints the median time of one call in nanoseconds. With an argument, runs it as a script once, as a program from a terminal.

use std::time::Instant;

/// A session of `bashkit` takes a thousand calls and no more.
const CALLS: usize = 900;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut bash = bashkit::Bash::new();
    if let Some(script) = std::env::args().nth(1) {
        let result = runtime.block_on(bash.exec(&script))?;
        print!("{}", result.stdout);
        std::process::exit(result.exit_code);
    }
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let started = Instant::now();
        let result = runtime.block_on(bash.exec("echo hello"))?;
        times.push(started.elapsed());
        assert_eq!(result.stdout, "hello\n");
    }
    times.sort_unstable();
    println!("{}", times[CALLS / 2].as_nanos());
    Ok(())
}
