//! A push of a skill is killed at a random moment: the catalog is as it was, or has the whole version.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ::skills::Catalog;

use super::{Random, Signal};

/// Pushes that are killed.
const PUSHES: u64 = 60;
/// Files of the skill, each of some kilobytes.
const FILES: usize = 200;

#[test]
fn a_push_that_is_killed_leaves_the_catalog_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let (source, place) = (directory.path().join("source"), directory.path().join("catalog"));
    fs::create_dir(&source).unwrap();
    let write = |version: u64| {
        fs::write(source.join("SKILL.md"), format!("---\nname: large\ndescription: A skill.\nversion: 1.0.{version}\n---\n"))
            .unwrap();
        (0..FILES).for_each(|file| fs::write(source.join(format!("f{file}")), format!("{version} ").repeat(4000)).unwrap());
    };
    let push = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
        command.args(["skill", "--skills"]).arg(&place).arg("push").arg(&source);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let versions = || Catalog::open(&place).unwrap().versions("large").unwrap();
    write(0);
    let start = Instant::now();
    assert!(push().wait().unwrap().success());
    let whole = start.elapsed();
    let (mut random, mut killed) = (Random(77), 0);
    for version in 1..=PUSHES {
        let before = versions();
        write(version);
        let mut child = push();
        // Not a wait for something: the moment of death.
        thread::sleep(Duration::from_nanos(random.below(u64::try_from(whole.as_nanos()).unwrap())));
        Signal::Kill.send(&mut child);
        let acknowledged = child.wait().unwrap().success();
        let after = versions();
        if after == before {
            assert!(!acknowledged, "version {version} was acknowledged and is not there");
            killed += 1;
            continue;
        }
        assert_eq!(after.len(), before.len() + 1, "version {version}");
        // Reading compares the digest of the files with that of the push.
        let package = Catalog::open(&place).unwrap().get("large").unwrap();
        assert_eq!((package.manifest().version.as_str(), package.files().len()), (format!("1.0.{version}").as_str(), FILES + 1));
    }
    assert!(killed >= PUSHES / 4, "only {killed} pushes were killed before they were done");
    assert!(push().wait().unwrap().success());
    assert_eq!(versions()[0].version, format!("1.0.{PUSHES}"));
    let names: Vec<_> = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| name.starts_with("skills.db")), "{names:?}");
}
