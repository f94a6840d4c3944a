//! A sample of CPython's own tests, where `cargo xtask cpython-tests` has fetched them; that command runs all.

use std::path::Path;

use runtime::{Command, Mount, Preset, Sandbox};

use super::skipped::skip;
use super::{host, texts};

#[test]
fn a_sample_of_cpythons_own_tests_passes() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/cpython-tests/suite");
    if !suite.join("test").is_dir() {
        skip("run `cargo xtask cpython-tests` first");
        return;
    }
    let mount = Mount::read_only(&suite, "/suite");
    let sandbox = Sandbox::builder().host(host()).preset(Preset::Permissive).mount(mount).open().unwrap();
    for module in ["test_textwrap", "test_defaultdict"] {
        let output = sandbox.run(Command::python(include_str!("cpython.py")).env("MODULE", module)).unwrap();
        assert!(output.status.success(), "{module}: {:?}", texts(&output));
    }
}
