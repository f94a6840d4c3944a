//! An agent loop: a model requests actions, the sandbox performs them. The model is scripted, so that the example runs anywhere.

use sandlite_runtime::actions::{Answer, Context, find};
use sandlite_runtime::{Error, Sandbox};
use serde_json::{Value, json};

/// Returns the requests of the scripted model, turn by turn.
fn model(turn: usize) -> Option<(&'static str, Value)> {
    let calls = [
        (
            "write_file",
            json!({ "path": "fib.py", "content": "a, b = 0, 1\nfor _ in range(9):\n    a, b = b, a + b\nprint(a)\n" }),
        ),
        ("bash", json!({ "command": "python3 fib.py" })),
        ("kv_set", json!({ "key": "answer", "value": 34 })),
    ];
    calls.into_iter().nth(turn)
}

/// Runs the loop.
pub fn main() -> Result<(), Error> {
    let sandbox = Sandbox::builder().open()?;
    let context = Context::new(sandbox.clone());
    for turn in 0.. {
        // With a real model: send it the name, description and schema of each of `actions()`, and the last results.
        let Some((name, arguments)) = model(turn) else { break };
        let answer = find(name).map_or_else(|| Answer::error("unknown tool"), |action| action.run(&context, arguments));
        println!("{name}: {}", answer.text);
    }
    assert_eq!(sandbox.kv().get("answer")?, Some(34.into()));
    Ok(())
}
