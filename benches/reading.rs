//! Reading while a command runs, in a sandbox of 20 000 files whose history has twenty runs with 1 000 changes each.
//!
//! `cargo bench --bench reading`. The bar of each: 5 ms. `benches/python_package.py` measures the same through Python and MCP.

use std::time::{Duration, Instant};

use runtime::actions::{Context, find};
use runtime::{Command, Content, Host, Preset, Sandbox};
use serde_json::{Value, json};

const ROUNDS: usize = 20;
const BAR: Duration = Duration::from_millis(5);

fn main() {
    let host = Host::builder().build().expect("the engine starts");
    let directory = tempfile::tempdir().expect("a directory");
    for (name, database) in [("memory", None), ("file", Some(directory.path().join("reads.db")))] {
        let builder = Sandbox::builder().host(&host).preset(Preset::Permissive);
        let builder = match database {
            Some(path) => builder.database(path),
            None => builder,
        };
        measure(name, &builder.open().expect("the sandbox opens"));
    }
}

fn measure(name: &str, sandbox: &Sandbox) {
    let write = |directory: &str, count: usize| {
        let files = (0..count).map(|file| (format!("{directory}/{file}"), Content::from(format!("line {file}\n").into_bytes())));
        sandbox.fs().write_all(files.collect()).expect("the files are written");
    };
    write("/few", 20);
    (0..20).for_each(|number| write(&format!("/d{number}"), 1000));
    sandbox.kv().set("k", json!({ "a": 1 })).expect("the value is stored");
    let running = sandbox.spawn(Command::bash("sleep 20")).expect("the command starts");
    let context = Context::new(sandbox.clone());
    for (action, arguments) in [
        ("read_file", json!({ "path": "/d0/5" })),
        ("glob", json!({ "pattern": "d1/*9", "path": "/" })),
        ("grep", json!({ "pattern": "line 1", "path": "/few" })),
        ("list_files", json!({ "path": "/d3" })),
        ("kv_get", json!({ "key": "k" })),
        ("history", json!({})),
    ] {
        report(name, action, || act(&context, action, &arguments));
    }
    report(name, "Sandbox::history", || assert_eq!(sandbox.history(20).expect("the history is read").len(), 20));
    running.kill();
    running.wait().expect("the command ends");
}

fn act(context: &Context, action: &str, arguments: &Value) {
    let answer = find(action).expect("the action exists").run(context, arguments.clone());
    assert!(!answer.is_error, "{action}: {}", answer.text);
}

fn report(sandbox: &str, what: &str, work: impl Fn()) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let median = times[ROUNDS / 2];
    let verdict = if median <= BAR { "met" } else { "MISSED" };
    println!("{sandbox:<7} {what:<20} {:>8.3} ms  bar 5  {verdict}", median.as_secs_f64() * 1e3);
}
