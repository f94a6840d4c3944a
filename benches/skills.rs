//! What a warm call of a skill costs beside the same script in a sandbox of its own, and beside the floor of Skillbox: a container with
//! the machine's Python, here bubblewrap and `python3` where both are installed.
//!
//! `cargo bench --bench skills`.

use std::hint::black_box;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use runtime::{Command, Host, Preset, Sandbox};
use skills::{Catalog, File, Needs, Package, Request, Skills};

const BASH: &str = "echo '{}' > out/output.json";
const PYTHON: &str = "import json, os\njson.dump({}, open(os.environ['SANDBOX_OUTPUT'], 'w'))";

fn warm(criterion: &mut Criterion) {
    let host = Host::builder().build().unwrap();
    let skills = Skills::new(Catalog::in_memory().unwrap(), &host, Preset::Normal.limits());
    let mut group = criterion.benchmark_group("skill");
    group.measurement_time(Duration::from_secs(3)).sample_size(50);
    for (name, entry, script) in [("bash", "main.sh", BASH), ("python", "main.py", PYTHON)] {
        let head = format!("---\nname: {name}\ndescription: A skill.\n---\n");
        let package = Package::from_files(vec![File::new("SKILL.md", head), File::new(entry, script)]).unwrap();
        skills.push(&package, Needs::default()).unwrap();
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(skills.run(Request::new(name).input(r#"{"a": 1}"#)).unwrap()));
        });
    }
    let sandbox = || {
        let builder = Sandbox::builder().host(&host).cwd("/sandbox").env("SANDBOX_OUTPUT", "/sandbox/out/output.json");
        builder.file("/sandbox/out/x", "").file("/sandbox/main.sh", BASH).file("/sandbox/main.py", PYTHON).open().unwrap()
    };
    let base = sandbox();
    group.bench_function("script alone, bash", |bencher| {
        bencher.iter(|| base.run(Command::bash_with(["/sandbox/main.sh"])).unwrap());
    });
    group.bench_function("script alone, python", |bencher| {
        bencher.iter(|| base.run(Command::python_with(["/sandbox/main.py"])).unwrap());
    });
    let base = sandbox();
    group.bench_function("fork of a sandbox", |bencher| bencher.iter(|| black_box(base.fork().unwrap())));
    group.bench_function("fork and one file", |bencher| {
        bencher.iter(|| base.fork().unwrap().fs().write("/sandbox/input.json", "{}").unwrap());
    });
    if Process::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        // The interpreter itself: `python3` may be a script that selects one of several, which takes longer than they do.
        let asked = Process::new("python3").args(["-c", "import sys; print(sys.executable, end='')"]).output().unwrap();
        let python = String::from_utf8(asked.stdout).unwrap();
        let words =
            ["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent", &python, "-c", "print('{}')"];
        group.bench_function("floor: bubblewrap and python3", |bencher| {
            bencher.iter(|| Process::new("bwrap").args(words).stdout(Stdio::null()).status().unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, warm);
criterion_main!(benches);
