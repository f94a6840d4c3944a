//! A host tool that asks a person (here: a rule) before it acts. The command's clock is paused meanwhile.

use std::time::Duration;

use sandlite_runtime::{Error, Sandbox, Tool};

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Lets programs in the sandbox deploy to staging, and nowhere else.
pub fn main() -> Result<(), Error> {
    let schema = r#"{"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}"#;
    let deploy = Tool::with_context("deploy", "Deploys the project.", schema, |arguments, context| {
        let pause = context.pause(PATIENCE);
        let is_approved = arguments["to"] == "staging";
        drop(pause);
        // The command may have been killed while the person decided.
        if !is_approved || context.is_over() {
            return Err("not approved".to_owned());
        }
        Ok("deployed".into())
    });
    let sandbox = Sandbox::builder().tool(deploy).open()?;
    let output = sandbox.bash(r#"for to in staging production; do tool deploy "{\"to\": \"$to\"}" 2>&1; done"#)?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.stdout, b"\"deployed\"\ntool: deploy: not approved\n");
    Ok(())
}
