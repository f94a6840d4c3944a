//! Random sequences of host calls with random arguments: the host must respond to all of them and continue (T-DOS-10).
//!
//! One module makes the calls described by its input: first a data area (paths, lists of buffers, noise), then calls of eighty
//! bytes each, a number and nine arguments. Results overwrite both, so that later calls have unforeseen arguments. The sequences
//! are derived from consecutive numbers: a failure reports the number that reproduces it.

use std::time::Duration;

use presets::{ByteSize, Overrides, Preset, WallTime};

use crate::host::Host;
use crate::process::Start;
use crate::run::{Command, ExitStatus};
use crate::sandbox::Sandbox;
use crate::wasi::PREVIEW1;

/// The calls beyond preview1. `fork` has its own probe, and `count` would only end a sequence early.
const OWN: [(&str, &str); 24] = [
    ("answer", "ii"),
    ("chmod", "iiii"),
    ("chown", "iiiii"),
    ("cwd", "iii"),
    ("dup", "iiii"),
    ("dup2", "ii"),
    ("exec", "ii"),
    ("fstat", "ii"),
    ("kill", "is"),
    ("pipe", "i"),
    ("process_ids", "i"),
    ("session_load", "iii"),
    ("session_save", "ii"),
    ("set_close_on_exec", "ii"),
    ("set_group", "ii"),
    ("signal_action", "iii"),
    ("signals_ignored", "i"),
    ("signals_take", "i"),
    ("spawn", "iii"),
    ("stat", "iiii"),
    ("tool", "iiiii"),
    ("tools", "ii"),
    ("umask", "ii"),
    ("wait", "iii"),
];

const SEQUENCES: u64 = 2_000;
const CALLS: usize = 30;
/// The sandbox is checked after this many sequences.
const PER_SANDBOX: u64 = 100;

const DATA_BYTES: usize = 4096;
const CALL_BYTES: usize = 80;

struct Import {
    module: &'static str,
    name: &'static str,
    parameters: &'static str,
}

fn imports() -> Vec<Import> {
    let wasi = PREVIEW1.iter().map(|&(name, parameters)| Import { module: "wasi_snapshot_preview1", name, parameters });
    let own = OWN.iter().map(|&(name, parameters)| Import { module: abi::MODULE, name, parameters });
    // Without `proc_exit`, which only ends a sequence.
    wasi.chain(own).filter(|import| import.name != "proc_exit").collect()
}

/// The module that interprets its input.
fn module(imports: &[Import]) -> String {
    let mut declared = String::new();
    let (mut opened, mut labels, mut cases) = (String::new(), String::new(), String::new());
    for (number, import) in imports.iter().enumerate() {
        let (mut kinds, mut arguments) = (String::new(), String::new());
        for (index, kind) in import.parameters.chars().enumerate() {
            let load = format!("(i64.load offset={} (local.get $at))", 8 + 8 * index);
            if kind == 'l' {
                kinds.push_str(" i64");
                arguments.push_str(&load);
            } else {
                kinds.push_str(" i32");
                arguments.push_str(&format!("(i32.wrap_i64 {load})"));
            }
        }
        let Import { module, name, .. } = import;
        declared.push_str(&format!("(import \"{module}\" \"{name}\" (func $f{number} (param{kinds}) (result i32)))\n"));
        opened = format!("(block $c{number} {opened}");
        labels.push_str(&format!(" $c{number}"));
        cases.push_str(&format!(") (drop (call $f{number} {arguments})) (return)\n"));
    }
    let read = imports.iter().position(|import| import.name == "fd_read").unwrap();
    format!(
        "(module {declared} (memory (export \"memory\") 2)
         (func $call (param $at i32)
           (block $none {opened} (br_table{labels} $none (i32.sub (i32.load (local.get $at)) (i32.const 1))) {cases})
         )
         (func (export \"_start\") (local $at i32)
           (i32.store (i32.const 65528) (i32.const 0))
           (i32.store (i32.const 65532) (i32.const 60000))
           (drop (call $f{read} (i32.const 0) (i32.const 65528) (i32.const 1) (i32.const 65520)))
           (local.set $at (i32.const {DATA_BYTES}))
           (loop $next
             (call $call (local.get $at))
             (local.set $at (i32.add (local.get $at) (i32.const {CALL_BYTES})))
             (br_if $next (i32.lt_u (local.get $at) (i32.const {end}))))))",
        end = DATA_BYTES + CALLS * CALL_BYTES
    )
}

/// Pseudo-random numbers that are the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_of(&mut self, of: &[u64]) -> u64 {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    fn argument(&mut self, kind: char) -> u64 {
        const EDGES: [u64; 10] =
            [0, 1, 65_535, 131_068, 131_071, 131_072, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x7FFF_FFFF_FFFF_FFFF];
        // Not KILL, which is the signal of a process whose call made the host panic.
        const SIGNALS: [u64; 9] = [0, 1, 2, 13, 15, 17, 64, 65, 0xFFFF_FFFF];
        match (kind, self.below(8)) {
            ('s', _) => self.one_of(&SIGNALS),
            ('l', 0) => self.next(),
            ('l', 1 | 2) => self.one_of(&EDGES),
            ('l', 3) => u64::MAX,
            ('l', _) => self.below(70_000),
            (_, 0..=2) => self.below(12),
            (_, 3 | 4) => self.below(DATA_BYTES as u64),
            (_, 5) => self.below(64),
            (_, 6) => self.one_of(&EDGES),
            _ => self.next(),
        }
    }
}

const WORDS: &[u8] =
    b"/tmp/a/../b/dev/fd/0/dev/null/proc/self/fd/./home/user//..//x/dev/urandom/proc/self/status/bin/cat/tmp/a/tmp/link\0\xFF{}\"";

fn input(sequence: u64, imports: &[Import]) -> Vec<u8> {
    let mut numbers = Numbers(sequence);
    let mut bytes = Vec::with_capacity(DATA_BYTES + CALLS * CALL_BYTES);
    while bytes.len() < DATA_BYTES {
        match numbers.below(3) {
            0 => bytes.extend_from_slice(WORDS),
            // A list of buffers, or a subscription.
            1 => (0..8).for_each(|_| bytes.extend_from_slice(&numbers.argument('i').to_le_bytes()[..4])),
            _ => bytes.extend_from_slice(&numbers.argument('l').to_le_bytes()),
        }
    }
    bytes.truncate(DATA_BYTES);
    for _ in 0..CALLS {
        let number = numbers.below(imports.len() as u64);
        let import = &imports[usize::try_from(number).unwrap()];
        bytes.extend_from_slice(&(number + 1).to_le_bytes());
        let kinds = if import.name == "proc_raise" { "s" } else { import.parameters };
        for kind in kinds.chars().chain(std::iter::repeat('i')).take(9) {
            bytes.extend_from_slice(&numbers.argument(kind).to_le_bytes());
        }
    }
    bytes
}

#[test]
fn t_dos_10_no_sequence_of_calls_makes_the_host_panic() {
    let imports = imports();
    let host = Host::builder().build().unwrap();
    let prepared = host.prepared_from_text(&module(&imports));
    // A sequence that waits for itself is ended soon; its length does not matter.
    let limits = Overrides {
        wall: Some(WallTime(Duration::from_millis(20))),
        compute: Some(50_000_000),
        memory: Some(ByteSize(32 << 20)),
        ..Overrides::default()
    };
    let mut ended_by_themselves = 0;
    for first in (0..SEQUENCES).step_by(usize::try_from(PER_SANDBOX).unwrap()) {
        let sandbox = Sandbox::builder().host(&host).preset(Preset::Strict).open().unwrap();
        for sequence in first..first + PER_SANDBOX {
            let command = Command::bash("calls").stdin(input(sequence, &imports)).limits(limits.clone()).deterministic(sequence);
            let prepared = prepared.clone();
            let output = sandbox.run_as(command, |_, request| {
                let (args, env, cwd) = (request.args.clone(), request.env.clone(), request.cwd.clone());
                Ok((prepared, Start { args, env, cwd }))
            });
            let status = output.unwrap_or_else(|error| panic!("sequence {sequence}: {error}")).status;
            assert_ne!(status, ExitStatus::Signaled(9), "sequence {sequence} made the host panic");
            ended_by_themselves += u32::from(status.success());
        }
        assert_eq!(sandbox.check().unwrap(), [], "sequences from {first}");
    }
    assert!(ended_by_themselves > 0, "no sequence came to its end: the module is broken");
}
