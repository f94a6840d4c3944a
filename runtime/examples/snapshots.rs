//! Snapshots: a whole sandbox as one file, to resume later, elsewhere, or repeatedly from the same point.

use std::error::Error;

use sandlite_runtime::Sandbox;

/// Recovers from an accident.
pub fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let (database, snapshot) = (directory.path().join("agent.db"), directory.path().join("snapshot.db"));
    let sandbox = Sandbox::builder().database(&database).open()?;
    sandbox.session("work")?.bash("mkdir project && cd project && echo v1 > state")?;
    sandbox.export(&snapshot)?;
    sandbox.bash("rm -r project")?;
    assert!(!sandbox.fs().exists("/home/user/project")?);

    // Files, sessions, values and history, as they were.
    let restored = Sandbox::builder().import(&snapshot).open()?;
    let output = restored.session("work")?.bash("pwd; cat state")?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.stdout, b"/home/user/project\nv1\n");
    Ok(())
}
