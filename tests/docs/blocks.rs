//! The `rust` blocks of the pages, written by `cargo xtask docs`.

#![allow(unused, reason = "excerpts for people")]

macro_rules! println {
    ($($text:tt)*) => { crate::rust::print(format_args!($($text)*)) };
}

type Done = Result<(), Box<dyn std::error::Error>>;

pub type Block = (&'static str, fn() -> Done);

pub const BLOCKS: &[Block] = &[
    ("readme_12", readme_12),
    ("docs_files_7", docs_files_7),
    ("docs_host_tools_6", docs_host_tools_6),
    ("docs_limits_6", docs_limits_6),
    ("docs_rust_0", docs_rust_0),
    ("docs_rust_2", docs_rust_2),
    ("docs_rust_4", docs_rust_4),
    ("docs_rust_6", docs_rust_6),
    ("docs_rust_8", docs_rust_8),
    ("docs_rust_10", docs_rust_10),
];

fn readme_12() -> Done {
use runtime::{Preset, Sandbox};

let sandbox = Sandbox::builder().database("agent.db").preset(Preset::Normal).open()?;
sandbox.fs().write("/notes.txt", "TODO: ship it\n")?;
let output = sandbox.bash("grep -c TODO /notes.txt")?;   // a failing command is a result, not an error
println!("{}", String::from_utf8_lossy(&output.stdout).trim());
sandbox.kv().set("step", 3)?;
for run in sandbox.history(20)? {
    println!("{} {}", run.id, run.name);
}
sandbox.export("snapshot.db")?;
Ok(())
}

fn docs_files_7() -> Done {
use runtime::Sandbox;

let sandbox = Sandbox::builder().file("/work/table.csv", "a,1\nb,2\n").open()?;
sandbox.fs().write("/work/note.txt", "hello\n")?;
let output = sandbox.bash("cat /work/*")?;
println!("{}", String::from_utf8(output.stdout)?.trim_end());
println!("{} bytes", sandbox.fs().read("/work/note.txt")?.len());
Ok(())
}

fn docs_host_tools_6() -> Done {
use runtime::{Sandbox, Tool};

let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
let square = Tool::new("square", "Squares a number.", schema, |arguments| {
    let n = arguments["n"].as_i64().ok_or("n is not an integer")?;
    Ok((n * n).into())
});
let sandbox = Sandbox::builder().tool(square).open()?;
println!("{}", String::from_utf8(sandbox.bash("square --n 12")?.stdout)?.trim());
Ok(())
}

fn docs_limits_6() -> Done {
use runtime::{Limits, Sandbox};

let limits = Limits::parse_custom("base = \"strict\"\nloop_iterations = 10\n")?;
let sandbox = Sandbox::builder().custom_limits(limits).open()?;
let output = sandbox.bash("for i in {1..100}; do echo $i; done")?;
println!("{} {}", output.status.code(), output.status.limit().unwrap());
Ok(())
}

fn docs_rust_0() -> Done {
use runtime::{Preset, Sandbox};

let sandbox = Sandbox::builder().database("agent.db").preset(Preset::Normal).open()?;
let output = sandbox.bash("echo hello | tr a-z A-Z")?;
println!("{}", String::from_utf8(output.stdout)?.trim());
println!("{}", String::from_utf8(sandbox.python("print(6 * 7)")?.stdout)?.trim());
Ok(())
}

fn docs_rust_2() -> Done {
use runtime::{Command, ErrorKind, ExitStatus, Preset, Sandbox};

let sandbox = Sandbox::builder().preset(Preset::Strict).open()?;
println!("{:?}", sandbox.bash("exit 3")?.status);
match sandbox.bash("while :; do :; done")?.status {
    ExitStatus::Limit(reached) => println!("{reached}; {}", reached.hint()),
    status => println!("{status:?}"),
}
let error = sandbox.fs().read("/missing").unwrap_err();
println!("{:?}: {error}", error.kind());
Ok(())
}

fn docs_rust_4() -> Done {
use runtime::{Command, Sandbox};

let sandbox = Sandbox::builder().file("/work/names", "ada\nbob\n").open()?;
let command = Command::bash("cat names - | tr a-z A-Z; echo $MODE").cwd("/work").env("MODE", "test").stdin("eve\n");
println!("{}", String::from_utf8(sandbox.run(command)?.stdout)?.trim_end());
Ok(())
}

fn docs_rust_6() -> Done {
use std::io::{BufRead, BufReader, Write};

use runtime::{Command, Sandbox};

let sandbox = Sandbox::builder().open()?;
let mut child = sandbox.spawn(Command::bash("while read -r name; do echo hello $name; done"))?;
let mut stdin = child.stdin.take().unwrap();
let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
for name in ["ada", "bob"] {
    writeln!(stdin, "{name}")?;
    println!("{}", lines.next().unwrap()?);
}
drop(stdin);
println!("{}", child.wait()?.status.success());
Ok(())
}

fn docs_rust_8() -> Done {
use runtime::{Host, Sandbox};

let host = Host::builder().build()?;
let threads: Vec<_> = (0..4)
    .map(|n| {
        let sandbox = Sandbox::builder().host(&host).open();
        std::thread::spawn(move || sandbox?.bash(format!("echo $(({n} * {n}))")).map(|output| output.stdout))
    })
    .collect();
for thread in threads {
    println!("{}", String::from_utf8(thread.join().unwrap()?)?.trim());
}
Ok(())
}

fn docs_rust_10() -> Done {
use runtime::Sandbox;

let sandbox = Sandbox::builder().database("agent.db").open()?;
sandbox.fs().write("/notes", "one\n")?;
sandbox.kv().set("step", 3)?;
sandbox.export("snapshot.db")?;
sandbox.bash("rm /notes")?;
let restored = Sandbox::builder().import("snapshot.db").open()?;
println!("{} {:?}", String::from_utf8(restored.fs().read("/notes")?)?.trim(), restored.kv().get("step")?);
println!("{} runs", sandbox.history(10)?.len());
Ok(())
}
