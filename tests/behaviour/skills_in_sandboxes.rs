//! Skills are files of a sandbox, and a catalog can be inside one.

use std::collections::BTreeSet;

use ::skills::{Catalog, Error, File, Needs, Package, Request, Skills};
use runtime::{Preset, Sandbox};

use super::host;
use super::skills::{package, push, skills};

#[test]
fn skills_are_shown_in_a_sandbox_and_cannot_be_changed_there() {
    let skills = skills();
    push(&skills, "one", "version: 1.0.0\n", &[("main.sh", "echo 1")]);
    push(&skills, "two", "", &[]);
    let show = || {
        let mount = runtime::Mount::read_only(skills.directory().unwrap(), "/skills");
        let sandbox = Sandbox::builder().host(host()).mount(mount).open().unwrap();
        let output = sandbox.bash("ls /skills; grep version /skills/*/SKILL.md; echo x > /skills/one/SKILL.md").unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let expected = "one\ntwo\nversion: 1.0.0\nbash: line 1: /skills/one/SKILL.md: Read-only file system\n";
    assert_eq!(show().replace("/skills/one/SKILL.md:version", "version"), expected);
    push(&skills, "one", "version: 1.1.0\n", &[("main.sh", "echo 1")]);
    skills.catalog().delete("two").unwrap();
    assert!(show().starts_with("one\nversion: 1.1.0\n"), "{}", show());
}

#[test]
fn a_loaded_skill_is_in_a_sandbox_that_was_opened_before_it_was_pushed() {
    let skills = skills();
    let mount = runtime::Mount::read_only(skills.directory().unwrap(), "/skills");
    let sandbox = Sandbox::builder().host(host()).mount(mount).open().unwrap();
    assert_eq!(sandbox.bash("ls /skills").unwrap().stdout, b"");
    push(&skills, "late", "", &[("main.sh", "echo 1")]);
    let load = ::skills::actions::find("load_skill").unwrap().prepare(serde_json::json!({ "name": "late" })).unwrap();
    let loaded = load.run(&::skills::actions::Context::new(skills.clone())).unwrap();
    assert_eq!(loaded.data["location"], "/skills/late/SKILL.md");
    assert_eq!(sandbox.bash("sed -n 2p /skills/late/SKILL.md").unwrap().stdout, b"name: late\n");
}

#[test]
fn a_catalog_without_a_directory_is_shown_as_it_is() {
    let skills = skills();
    let sandbox = Sandbox::builder().host(host()).mount(skills.mount("/skills").unwrap()).open().unwrap();
    let program = File { is_executable: true, ..File::new("scripts/deep/hello", "#!/bin/bash\necho hello\n") };
    let manifest = File::new("SKILL.md", "---\nname: late\ndescription: A skill for tests.\n---\n");
    skills.push(&Package::from_files(vec![manifest, program]).unwrap(), Needs::default()).unwrap();
    let shown =
        sandbox.bash("cd /skills; find . -type f; late/scripts/deep/hello; sed -n 2p late/SKILL.md; touch late/x 2>&1").unwrap();
    let expected =
        "./late/SKILL.md\n./late/scripts/deep/hello\nhello\nname: late\ntouch: cannot touch 'late/x': Read-only file system\n";
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), expected);
    skills.catalog().delete("late").unwrap();
    assert_eq!(sandbox.bash("ls /skills").unwrap().stdout, b"");
}

#[test]
fn processes_that_show_the_same_catalog_do_not_disturb_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(directory.path()).unwrap();
    for number in 0..20 {
        catalog.push(&package(&format!("skill-{number}"), "", &[("main.sh", "echo 1")]), false, None).unwrap();
    }
    // Each has its own catalog, as in processes of their own.
    let show = || Skills::new(Catalog::open(directory.path()).unwrap(), host(), Preset::Normal.limits()).directory().unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(show)).collect();
        for thread in threads {
            assert_eq!(std::fs::read_dir(thread.join().unwrap()).unwrap().count(), 20);
        }
    });
}

#[test]
fn an_interrupted_update_of_the_shown_skills_is_completed_by_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let skills = Skills::new(Catalog::open(directory.path()).unwrap(), host(), Preset::Normal.limits());
    push(&skills, "one", "", &[]);
    push(&skills, "two", "", &[]);
    let shown = skills.directory().unwrap();
    let names = |directory: &std::path::Path| {
        let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<String>>()
    };
    // A process that was killed leaves this.
    let place = directory.path().join("mounted");
    std::fs::remove_file(place.join("digests.json")).unwrap();
    std::fs::create_dir(place.join(".new-x")).unwrap();
    skills.catalog().delete("two").unwrap();
    skills.directory().unwrap();
    assert_eq!(names(&shown), BTreeSet::from(["one".to_owned()]));
    assert_eq!(names(&place), BTreeSet::from(["digests.json", "lock", "skills"].map(str::to_owned)));
    std::fs::remove_file(place.join("digests.json")).unwrap();
    skills.catalog().delete("one").unwrap();
    skills.directory().unwrap();
    assert!(names(&shown).is_empty());
}

#[test]
fn processes_that_create_a_catalog_at_the_same_time_do_not_disturb_each_other() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let (place, start) = (directory.path().join("catalog"), std::sync::Barrier::new(8));
        let create = |number: usize| {
            start.wait();
            let catalog = Catalog::open(&place).unwrap();
            catalog.push(&package(&format!("skill-{number}"), "", &[]), false, None).unwrap();
        };
        std::thread::scope(|scope| {
            for number in 0..8 {
                let create = &create;
                scope.spawn(move || create(number));
            }
        });
        assert_eq!(Catalog::open(&place).unwrap().list().unwrap().len(), 8);
    }
}

#[test]
fn a_catalog_inside_a_sandbox_keeps_the_files_of_sessions_in_it() {
    let sandbox = Sandbox::builder().host(host()).open().unwrap();
    let open = || Skills::new(Catalog::inside(sandbox.clone()).unwrap(), host(), Preset::Normal.limits());
    let script = "cat session/n input/n 2> /dev/null | wc -l; echo x >> session/n; cp session/n out/session";
    push(&open(), "test", "", &[("main.sh", script)]);
    let logs = |session: &str| open().run(Request::new("test").session(session)).unwrap().logs;
    assert_eq!([logs("s"), logs("s"), logs("s"), logs("t")], ["0\n", "2\n", "4\n", "0\n"]);
    assert_eq!(sandbox.fs().read("/var/lib/sandlite/sessions/s/n").unwrap(), b"x\nx\nx\n");
}

#[test]
fn a_catalog_inside_a_sandbox_travels_with_it() {
    let sandbox = Sandbox::builder().host(host()).open().unwrap();
    let skills = Skills::new(Catalog::inside(sandbox.clone()).unwrap(), host(), Preset::Normal.limits());
    push(&skills, "test", "version: 1.0.0\n", &[("main.sh", "echo 1")]);
    push(&skills, "test", "version: 1.1.0\n", &[("main.sh", "echo 2")]);
    skills.catalog().activate("test", "1.0.0").unwrap();
    let fork = sandbox.fork().unwrap();
    let again = Skills::new(Catalog::inside(fork.clone()).unwrap(), host(), Preset::Normal.limits());
    assert_eq!(again.run(Request::new("test")).unwrap().logs, "1\n");
    again.catalog().delete("test@1.1.0").unwrap();
    assert_eq!(Catalog::inside(fork.clone()).unwrap().versions("test").unwrap().len(), 1);
    assert_eq!(skills.catalog().versions("test").unwrap().len(), 2, "the first sandbox is another one");
    // T-SKL-01: programs in the sandbox can write there, and what they write is checked as what it is.
    fork.bash("cd /var/lib/sandlite/skills/test && echo rubbish > 9.0.0.zip && echo ../../x > active").unwrap();
    let checked = Catalog::inside(fork).unwrap();
    assert_eq!(checked.list().unwrap()[0].version, "1.0.0");
}

#[test]
fn programs_with_the_catalog_of_one_sandbox_see_each_others_changes() {
    let sandbox = Sandbox::builder().host(host()).open().unwrap();
    let open = || Catalog::inside(sandbox.clone()).unwrap();
    let (one, two) = (open(), open());
    let version = |version: &str, script: &str| package("test", &format!("version: {version}\n"), &[("main.sh", script)]);
    one.push(&version("1.0.0", "echo 1"), false, None).unwrap();
    assert_eq!(two.find("test").unwrap().version, "1.0.0");
    assert!(matches!(two.push(&version("1.0.0", "echo 2"), false, None), Err(Error::Conflict { .. })));
    two.push(&version("1.1.0", "echo 2"), false, None).unwrap();
    one.activate("test", "1.0.0").unwrap();
    assert_eq!((two.find("test").unwrap().version.as_str(), two.versions("test").unwrap().len()), ("1.0.0", 2));
    one.delete("test@1.0.0").unwrap();
    assert_eq!((two.find("test").unwrap().version.as_str(), two.versions("test").unwrap().len()), ("1.1.0", 1));
    std::thread::scope(|scope| {
        for (number, catalog) in [&one, &two].into_iter().enumerate() {
            scope.spawn(move || {
                for patch in 0..5 {
                    let head = format!("version: 2.{number}.{patch}\n");
                    catalog.push(&package("test", &head, &[("main.sh", "echo 3")]), false, None).unwrap();
                }
            });
        }
    });
    for catalog in [one, two, open()] {
        assert_eq!((catalog.find("test").unwrap().version.as_str(), catalog.versions("test").unwrap().len()), ("2.1.4", 11));
    }
}

#[test]
fn a_reopened_catalog_of_a_sandbox_knows_what_was_replaced_and_when() {
    let sandbox = Sandbox::builder().host(host()).open().unwrap();
    let catalog = Catalog::inside(sandbox.clone()).unwrap();
    let digests = ["echo 1", "echo 2", "echo 3"]
        .map(|script| catalog.push(&package("test", "", &[("main.sh", script)]), true, None).unwrap().digest);
    sandbox.bash("cd /var/lib/sandlite/skills/test; touch -d @1000000000 *.zip; echo rubbish >> 1.0.0.replaced").unwrap();
    let again = Catalog::inside(sandbox).unwrap().versions("test").unwrap();
    assert_eq!((again[0].uploaded_at, again[0].replaced.as_slice()), (1_000_000_000, &digests[..2]));
}
