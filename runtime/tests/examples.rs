//! Every example runs unmodified; each checks its own result.

#[path = "../examples/agent_loop.rs"]
mod agent_loop;
#[path = "../examples/approval.rs"]
mod approval;
#[path = "../examples/best_of_n.rs"]
mod best_of_n;
#[path = "../examples/limits.rs"]
mod limits;
#[path = "../examples/snapshots.rs"]
mod snapshots;
#[path = "../examples/streaming.rs"]
mod streaming;

#[test]
fn an_agent_loop_runs() {
    agent_loop::main().unwrap();
}

#[test]
fn a_tool_with_approval_runs() {
    approval::main().unwrap();
}

#[test]
fn forks_for_the_best_of_several_attempts_run() {
    best_of_n::main().unwrap();
}

#[test]
fn custom_limits_run() {
    limits::main().unwrap();
}

#[test]
fn snapshots_run() {
    snapshots::main().unwrap();
}

#[test]
fn streaming_runs() {
    streaming::main().unwrap();
}
