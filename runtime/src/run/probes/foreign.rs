//! Custom modules: exact preview1, and the hostile modules of our own guests under the same rules.

use presets::Preset;

use super::super::{Command, ExitStatus};
use crate::host::Host;
use crate::sandbox::Sandbox;

fn sandbox(host: &Host, text: &str) -> Sandbox {
    let builder = Sandbox::builder().host(host).program("probe", wat::parse_str(text).unwrap());
    let sandbox = builder.file("/work/in", "inside").file("/secret", "outside").open().unwrap();
    sandbox.fs().symlink("../secret", "/work/up").unwrap();
    sandbox.fs().symlink("/secret", "/work/abs").unwrap();
    sandbox
}

#[test]
fn a_module_of_the_owner_finds_preview1_to_the_letter() {
    let host = Host::builder().build().unwrap();
    for (name, text) in probes::FOREIGN {
        let command = Command::program("probe", [""; 0]).directories([("work", "/work")]);
        let output = sandbox(&host, text).run(command).unwrap();
        assert_eq!(output.status, ExitStatus::Exited(0), "{name}: the number is that of the step that failed");
    }
}

// Whatever a module does, the sandbox still works. (The outcome of each probe is different here: other rights, other errors.)
#[test]
fn t_dos_10_hostile_modules_of_an_owner_end_as_any_program_does() {
    let host = Host::builder().build().unwrap();
    let limits = || presets::Overrides {
        wall: Some(presets::WallTime(std::time::Duration::from_millis(500))),
        compute: Some(50_000_000),
        ..presets::Overrides::default()
    };
    for (name, text) in probes::WASI {
        let builder = Sandbox::builder().host(&host).preset(Preset::Strict).program("probe", wat::parse_str(text).unwrap());
        let sandbox = builder.open().unwrap();
        for directories in [None, Some([("work", "/tmp")])] {
            let command = Command::program("probe", [""; 0]).limits(limits());
            let command = directories.into_iter().fold(command, Command::directories);
            let output = sandbox.run(command).unwrap();
            assert!(!matches!(output.status, ExitStatus::Signaled(6)), "{name}: {:?}", output.status);
            assert_eq!(sandbox.history(1).unwrap()[0].exit_code, Some(i32::from(output.status.code())), "{name}");
        }
        sandbox.fs().write("/after", "well").unwrap();
    }
}

#[test]
fn a_module_without_directories_has_none() {
    let host = Host::builder().build().unwrap();
    let text = r#"(module
        (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $fdstat (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func (export "_start")
            (if (i32.ne (call $prestat (i32.const 3) (i32.const 64)) (i32.const 8)) (then (call $exit (i32.const 1))))
            (if (i32.ne (call $fdstat (i32.const 3) (i32.const 64)) (i32.const 8)) (then (call $exit (i32.const 2))))
            (drop (call $environ (i32.const 0) (i32.const 4)))
            (call $exit (i32.add (i32.const 10) (i32.load (i32.const 0))))))"#;
    let none: [(&str, &str); 0] = [];
    let run = |command: Command| sandbox(&host, text).run(command).unwrap().status;
    assert_eq!(run(Command::program("probe", [""; 0]).directories(none).only_own_env().env("A", "b")), ExitStatus::Exited(11));
    assert_eq!(run(Command::program("probe", [""; 0])), ExitStatus::Exited(1));
}
