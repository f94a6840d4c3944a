//! Hostile guests: one test per threat (`T-ISO-…`, `T-DOS-…`) of SECURITY.md, named by its id, and the exact edge of every
//! limit under every preset. What needs a hand-written module is in `runtime/src/run/probes.rs`.

mod applied;
mod bridge;
mod components;
#[path = "../support/components.rs"]
mod components_support;
mod edges;
mod exhaustion;
mod files_in_memory;
mod growth;
mod guests;
mod hostile_files;
mod hostile_repositories;
mod isolation;
mod skills;
#[path = "../support/skipped.rs"]
mod skipped;
mod soak;
mod sources;

use std::sync::OnceLock;

use runtime::{Host, LimitName, Output, Overrides, Preset, Sandbox};

/// One engine for all tests of this program.
fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| Host::builder().build().unwrap())
}

/// A sandbox in memory.
fn sandbox(preset: Preset) -> Sandbox {
    Sandbox::builder().host(host()).preset(preset).open().unwrap()
}

/// Runs a hostile script under the strict preset; afterwards earlier files are intact, and the sandbox works (G8).
#[track_caller]
fn survive(script: &str) -> Output {
    survive_with(script, Overrides::default())
}

#[track_caller]
fn survive_with(script: &str, overrides: Overrides) -> Output {
    let sandbox = sandbox(Preset::Strict);
    sandbox.fs().write("/sentinel", "here").unwrap();
    sandbox.kv().set("sentinel", 1).unwrap();
    let output = sandbox.run(runtime::Command::bash(script).limits(overrides)).unwrap();
    assert_eq!(sandbox.bash("cat /sentinel").unwrap().stdout, b"here", "{script}");
    assert_eq!(sandbox.kv().get("sentinel").unwrap(), Some(1.into()), "{script}");
    assert_eq!(sandbox.check().unwrap(), [], "{script}");
    output
}

fn limit(output: &Output) -> Option<LimitName> {
    output.status.limit().map(|reached| reached.limit)
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
