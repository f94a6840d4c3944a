//! Custom limits: a preset, lowered for the sandbox and again for one command. Reaching a limit is a result, not a crash.

use std::time::Duration;

use sandlite_runtime::{ByteSize, Command, Error, LimitName, Overrides, Preset, Sandbox, WallTime};

/// Reaches two limits.
pub fn main() -> Result<(), Error> {
    let small = Overrides { memory: Some(ByteSize(64 << 20)), output: Some(ByteSize(1000)), ..Overrides::default() };
    let sandbox = Sandbox::builder().preset(Preset::Strict).limits(small).open()?;

    let output = sandbox.bash("echo before; yes")?;
    println!("{} bytes, then: {:?}", output.stdout.len(), output.status);
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Output));

    let short = Overrides { wall: Some(WallTime(Duration::from_millis(300))), ..Overrides::default() };
    let output = sandbox.run(Command::bash("echo so far; sleep 100").limits(short))?;
    println!("{:?}", output.status);
    assert_eq!(output.stdout, b"so far\n");
    assert_eq!(output.status.limit().map(|reached| reached.limit), Some(LimitName::Wall));
    Ok(())
}
