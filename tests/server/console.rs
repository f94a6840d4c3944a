//! The console in a real browser: `tests/console/console.test.mjs` clicks through it.
//!
//! It needs `node`, Chromium (the variable `CHROMIUM`, or `/usr/bin/chromium`) and the npm package `playwright-core`, looked for in
//! the directory that the variable `PLAYWRIGHT_CORE` names, in `target/playwright`, where `.ci/run` installs it, and in `node_modules` of the
//! repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::clients::{has, packed};
use super::http::Server;
use super::skipped::skip;

fn playwright() -> Option<PathBuf> {
    let named = std::env::var_os("PLAYWRIGHT_CORE").map(PathBuf::from);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("playwright");
    let installed =
        [target.as_path(), Path::new(env!("CARGO_MANIFEST_DIR"))].map(|place| place.join("node_modules/playwright-core"));
    let places = named.into_iter().chain(installed);
    let found = places.map(|place| place.join("index.mjs")).find(|file| file.exists());
    if found.is_none() {
        skip("playwright-core is not installed; run `npm install --prefix target/playwright playwright-core`");
    }
    found
}

#[test]
fn a_person_can_use_the_console_and_hostile_content_cannot() {
    let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "/usr/bin/chromium".to_owned());
    let (true, Some(playwright)) = (has("node", "--version"), playwright()) else { return };
    if !Path::new(&chromium).exists() {
        return skip(&format!("{chromium} does not exist; name Chromium in CHROMIUM"));
    }
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&[]);
    let mut test = Command::new("node");
    test.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/console/console.test.mjs"))
        .arg(format!("http://{}", server.address))
        .arg(&server.key)
        .arg(packed("multi-file-output", directory.path()))
        .env("CHROMIUM", &chromium)
        .env("PLAYWRIGHT_CORE", &playwright)
        .env("PROFILE", directory.path().join("profile"));
    let output = test.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.ends_with("all passed\n"), "{out}\n{err}");
}
