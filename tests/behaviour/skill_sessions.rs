//! A session of skills keeps the files of its runs, whatever scripts, other programs and full disks do to it.

use ::skills::{Catalog, Request, Skills, Status};
use runtime::Preset;

use super::host;
use super::skills::{push, skills};

#[test]
fn a_session_survives_a_script_that_removes_its_directories() {
    let skills = skills();
    push(&skills, "wild", "", &[("main.sh", "rm -r out session input && echo done")]);
    push(&skills, "put", "", &[("main.sh", "echo one > out/session/note && ls session")]);
    let result = skills.run(Request::new("wild").session("s")).unwrap();
    assert_eq!((result.status, result.logs.as_str()), (Status::Success, "done\n"), "{:?}", result.error);
    assert_eq!(skills.run(Request::new("put").session("s")).unwrap().logs, "");
    assert_eq!(skills.run(Request::new("put").session("s")).unwrap().logs, "note\n");
}

#[test]
fn a_session_survives_a_script_that_puts_other_things_in_the_place_of_its_directories() {
    let skills = skills();
    let wild =
        "rm -r out session input input.json; echo x > out; ln -s /etc session; echo x > input; mkdir input.json; echo done";
    push(&skills, "wild", "", &[("main.sh", wild)]);
    push(&skills, "files", "", &[("main.sh", "rm -r out/* && echo x > out/files && echo x > out/session && echo done")]);
    push(&skills, "put", "", &[("main.sh", "cat input.json; echo one > out/session/note && ls session")]);
    let logs = |name: &str| {
        let result = skills.run(Request::new(name).session("s")).unwrap();
        assert_eq!((result.status, result.error), (Status::Success, None), "{name}");
        result.logs
    };
    assert_eq!([logs("wild"), logs("put"), logs("files"), logs("put")], ["done\n", "{}", "done\n", "{}note\n"]);
}

#[test]
fn programs_take_turns_in_a_session() {
    let directory = tempfile::tempdir().unwrap();
    // Each has its own catalog, as in processes of their own.
    let open = || Skills::new(Catalog::open(directory.path()).unwrap(), host(), Preset::Normal.limits());
    let script = "n=$(cat session/n 2> /dev/null); sleep 0.05; echo $((n + 1)) | tee out/session/n > out/output.json";
    push(&open(), "count", "", &[("main.sh", script)]);
    let run = || open().run(Request::new("count").session("s")).unwrap().output.unwrap();
    let mut outputs: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6).map(|_| scope.spawn(run)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    outputs.sort();
    assert_eq!(outputs, ["1", "2", "3", "4", "5", "6"]);
    // A run that waits for its turn can be cancelled.
    let held = std::fs::File::open(directory.path().join("sessions/s.lock")).unwrap();
    held.lock().unwrap();
    let cancel = runtime::Cancel::default();
    cancel.kill();
    let cancelled = open().run(Request::new("count").session("s").cancelled_by(cancel)).unwrap();
    assert_eq!((cancelled.status, cancelled.error.as_deref()), (Status::Failed, Some("execution was cancelled")));
}

#[test]
fn the_file_of_a_session_does_not_grow_with_its_runs() {
    let directory = tempfile::tempdir().unwrap();
    let skills = Skills::new(Catalog::open(directory.path()).unwrap(), host(), Preset::Normal.limits());
    push(&skills, "test", "", &[("main.sh", "head -c 300000 /dev/urandom > out/files/data")]);
    let size = |runs: usize| {
        (0..runs).for_each(|_| drop(skills.run(Request::new("test").session("s")).unwrap()));
        std::fs::metadata(directory.path().join("sessions/s.db")).unwrap().len()
    };
    let (few, many) = (size(4), size(16));
    assert!(many < few + 600_000, "{few} bytes after 4 runs, {many} after 20");
}

#[test]
fn a_session_without_room_for_the_files_of_a_run_reports_it() {
    let limits = runtime::Limits { disk: runtime::ByteSize(8 << 20), ..Preset::Normal.limits() };
    let skills = Skills::new(Catalog::in_memory().unwrap(), host(), limits);
    push(&skills, "large", "", &[("main.sh", "head -c 5000000 /dev/zero > out/files/large && echo done")]);
    let result = skills.run(Request::new("large").session("s")).unwrap();
    assert_eq!((result.status, result.logs.as_str(), result.files.len()), (Status::Success, "done\n", 1));
    assert!(result.notes[0].starts_with("its files are not kept for the session: "), "{:?}", result.notes);
}
