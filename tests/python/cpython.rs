//! A sample of CPython's own tests, if `cargo xtask cpython-tests --fetch` has downloaded them; `cargo xtask cpython-tests` runs all.

use runtime::{Command, Mount, Preset, Sandbox};

use super::skipped::skip;
use super::{host, texts};

#[test]
fn a_sample_of_cpythons_own_tests_passes() {
    // This program is in `release/deps` of cargo's target directory.
    let program = std::env::current_exe().unwrap();
    let suite = program.ancestors().nth(3).unwrap().join("cpython-tests/suite");
    if !suite.join("test").is_dir() {
        skip("run `cargo xtask cpython-tests --fetch` first");
        return;
    }
    let mount = Mount::read_only(&suite, "/suite");
    let sandbox = Sandbox::builder().host(host()).preset(Preset::Permissive).mount(mount).open().unwrap();
    for module in ["test_textwrap", "test_defaultdict"] {
        let output = sandbox.run(Command::python(include_str!("cpython.py")).env("MODULE", module)).unwrap();
        assert!(output.status.success(), "{module}: {:?}", texts(&output));
    }
}
