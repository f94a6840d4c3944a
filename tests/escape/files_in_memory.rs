//! Files of a sandbox in memory count in the memory limit (T-DOS-03).

use runtime::{ByteSize, Overrides, Preset};

use super::{sandbox, text};

fn at_most(memory: u64) -> Overrides {
    Overrides { memory: Some(ByteSize(memory)), ..Overrides::default() }
}

#[test]
fn t_dos_03_a_command_fills_memory_with_files_only_up_to_its_limit() {
    let sandbox = sandbox(Preset::Strict);
    let script = "for i in {1..6}; do head -c 10M /dev/zero > /tmp/f$i || exit 3; done";
    let output = sandbox.run(runtime::Command::bash(script).limits(at_most(48 << 20))).unwrap();
    assert_eq!(output.status.code(), 3, "{}", text(&output));
    assert!(text(&output).contains("No space left on device"), "{}", text(&output));
    assert!(sandbox.info().unwrap().disk_used < 48 << 20);
    assert_eq!(sandbox.bash("rm /tmp/f*; for i in {1..6}; do head -c 10M /dev/zero > /tmp/f$i; done").unwrap().status.code(), 0);
}

#[test]
fn t_dos_03_files_that_are_there_leave_a_command_less_memory() {
    let sandbox = sandbox(Preset::Strict);
    let take = "x=$(head -c 20M /dev/zero | tr '\\0' x); echo ${#x}";
    let alone = sandbox.run(runtime::Command::bash(take).limits(at_most(128 << 20))).unwrap();
    assert_eq!(text(&alone), format!("{}\n", 20 << 20));
    assert!(sandbox.bash("for i in {1..4}; do head -c 15M /dev/zero > /tmp/f$i; done").unwrap().status.success());
    let beside = sandbox.run(runtime::Command::bash(take).limits(at_most(96 << 20))).unwrap();
    assert!(!beside.status.success() && text(&beside).contains("limit `memory` reached: 96 MB allowed"), "{}", text(&beside));
}
