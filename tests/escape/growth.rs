//! T-DOS-07, T-REL-06: nothing in a sandbox grows without bound, however many commands, opens and clients there are.

use std::path::Path;

use runtime::{Command, Error, HistoryFilter, LimitName, Preset, Sandbox};

use super::{host, limit, sandbox};

const MB: u64 = 1 << 20;

fn open(path: &Path) -> Sandbox {
    Sandbox::builder().host(host()).preset(Preset::Strict).database(path).open().unwrap()
}

fn size(path: &Path) -> u64 {
    ["", "-wal"].iter().map(|suffix| std::fs::metadata(format!("{}{suffix}", path.display())).map_or(0, |file| file.len())).sum()
}

#[test]
fn t_dos_07_three_hundred_floods_of_output_stay_within_the_history() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let mut sandbox = open(&path);
    for number in 0..300 {
        // Opening it again changes nothing.
        if number % 50 == 49 {
            drop(sandbox);
            sandbox = open(&path);
        }
        let output = sandbox.bash(format!("head -c 1M /dev/zero; : {number}")).unwrap();
        assert_eq!(output.stdout.len() as u64, MB);
    }
    let info = sandbox.info().unwrap();
    assert!(info.history_used <= info.history_allowed && info.history_used > 14 * MB, "{info:?}");
    assert_eq!((info.runs, info.history_allowed), (300, 16 * MB));
    let runs = sandbox.history_with(&HistoryFilter { limit: 300, ..HistoryFilter::default() }).unwrap();
    let whole = runs.iter().take_while(|run| !run.output_pruned).count();
    assert!((14..=16).contains(&whole) && runs[whole..].iter().all(|run| run.output_pruned), "{whole}");
    assert_eq!(sandbox.history_run(runs[0].id).unwrap().unwrap().stdout.len() as u64, MB);
    assert_eq!(sandbox.check().unwrap(), []);
    drop(sandbox);
    assert!(size(&path) < 20 * MB, "{}", size(&path));
}

#[test]
fn t_dos_07_hard_links_with_long_names_are_charged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let sandbox = open(&path);
    let links = "import os\nopen('/f', 'w').close()\nn = 0\ntry:\n  while True:\n    os.link('/f', '/%0255d' % n); n += 1\nexcept OSError as e: print(e.errno, n)";
    let output = sandbox.python(links).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let (errno, made) = said.trim().split_once(' ').unwrap();
    assert!(errno == "51" || errno == "28", "{said}");
    assert!(made.parse::<u64>().unwrap() * (64 + 255) <= 4 * MB, "{said}");
    let info = sandbox.info().unwrap();
    assert!(info.names_used <= info.names_allowed && info.names_used > 3 * MB, "{info:?}");
    // A full budget keeps nothing from going, and commands from being recorded.
    sandbox.fs().remove_file("/f").unwrap();
    let removed =
        sandbox.python("import os\nfor name in os.listdir('/'):\n  if name.startswith('000'): os.unlink('/' + name)").unwrap();
    assert!(removed.status.success(), "{removed:?}");
    assert!(sandbox.info().unwrap().names_used < 10_000);
    drop(sandbox);
    assert!(size(&path) < 20 * MB, "{}", size(&path));
}

#[test]
fn t_dos_07_keys_and_sessions_are_charged() {
    let sandbox = sandbox(Preset::Strict);
    let value = "v".repeat(200_000);
    let set = (0..1_000).take_while(|number| sandbox.kv().set(&format!("key{number}"), value.as_str()).is_ok()).count();
    assert_eq!(set, 20);
    let error = sandbox.kv().set("more", value.as_str()).unwrap_err();
    assert!(
        matches!(error, Error::Database(_)) && error.to_string().starts_with("limit `keys` reached: 4 MB allowed"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("delete keys"), "{error}");
    assert!(sandbox.kv().set(&"k".repeat(1_025), 1).is_err());
    assert!(sandbox.kv().delete("key3").unwrap());
    sandbox.kv().set("more", value.as_str()).unwrap();

    let session = |number: usize| {
        let command = Command::bash("x=$(head -c 150000 /dev/zero | tr '\\0' x); echo done > /tmp/done");
        sandbox.session(format!("s{number}")).unwrap().run(command).unwrap()
    };
    let outputs: Vec<_> = (0..30).map(session).collect();
    let full = outputs.iter().filter(|output| limit(output) == Some(LimitName::Sessions)).count();
    assert!((2..10).contains(&full), "{full}");
    assert!(outputs.iter().all(|output| limit(output).is_none_or(|limit| limit == LimitName::Sessions)));
    let info = sandbox.info().unwrap();
    assert!(info.sessions_used <= info.sessions_allowed && info.keys_used <= info.keys_allowed, "{info:?}");
    // The changes of the command exist, and other commands continue.
    assert_eq!(sandbox.bash("cat /tmp/done").unwrap().stdout, b"done\n");
    assert!(sandbox.session("s0").unwrap().remove().unwrap());
    assert_eq!(limit(&session(99)), None);
}

/// The variable that is set if the test below started this program, to measure it.
const ALONE: &str = "SANDLITE_READERS_ALONE";

/// The most that this program had in memory so far.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

// T-DOS-03: in a separate program, where no other test counts.
#[test]
fn t_dos_03_readers_of_a_long_history_need_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let sandbox = Sandbox::builder().host(host()).database(&path).open().unwrap();
    for _ in 0..30 {
        assert_eq!(sandbox.bash("head -c 8M /dev/zero").unwrap().stdout.len() as u64, 8 * MB);
    }
    drop(sandbox);
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "growth::readers", "--nocapture"])
        .env(ALONE, &path)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("digest"), "{said}");
}

/// The measuring itself: nothing unless it was asked for by the test above.
#[test]
fn readers() {
    let Some(path) = std::env::var_os(ALONE) else { return };
    let sandbox = Sandbox::builder().database(&path).open().unwrap();
    let start = peak();
    println!("digest {}", sandbox.digest(runtime::Export::default()).unwrap());
    let digest = peak() - start;
    let copy = Path::new(&path).with_extension("copy");
    sandbox.export(&copy).unwrap();
    sandbox.fork_to(Path::new(&path).with_extension("fork")).unwrap();
    let copies = peak() - start;
    for run in sandbox.history(100).unwrap() {
        assert_eq!(sandbox.history_output(run.id, 1000).unwrap()[0].0.len(), 1000);
    }
    let heads = peak() - start;
    Sandbox::builder().import(&copy).database(Path::new(&path).with_extension("import")).open().unwrap();
    let import = peak() - start;
    println!("peaks in bytes: digest {digest}, copies {copies}, heads {heads}, import {import}");
    assert!(digest < 16 * MB && copies < 64 * MB && heads < 64 * MB && import < 96 * MB);
}
