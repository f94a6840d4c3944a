//! `cargo xtask wasi-testsuite DIR`: the public tests of preview1 against `sandlite wasm`.
//!
//! `DIR` is a checkout of WebAssembly/wasi-testsuite with the compiled modules (its branch `prod/testsuite-base`); it is not part
//! of this repository. A test is a module with a JSON file: arguments, variables, a directory, the expected output and exit code.
//! The suite's own runner needs no adapter either: `WASMTIME='sandlite wasm' ./run-tests --runtime adapters/wasmtime.py`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::{Fallible, Outcome};

/// The expectations of a test.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    args: Vec<String>,
    env: Vec<(String, String)>,
    root: Option<String>,
    stdout: Option<String>,
    exit_code: i32,
}

/// Runs every test, and reports the failures.
pub(crate) fn run(args: &[String]) -> Outcome {
    let [directory] = args else { return Err("usage: cargo xtask wasi-testsuite DIR".into()) };
    let program = env::var_os("SANDLITE").map_or_else(|| PathBuf::from("target/release/sandlite"), PathBuf::from);
    if !program.exists() {
        return Err(format!("`{}` does not exist: run `cargo build --release` first", program.display()).into());
    }
    let mut modules = Vec::new();
    find(Path::new(directory), &mut modules)?;
    modules.sort();
    if modules.is_empty() {
        return Err(format!("no modules for wasm32-wasip1 in `{directory}`").into());
    }
    let mut passed = 0;
    for module in &modules {
        match test(&program, module)? {
            None => passed += 1,
            Some(why) => println!("FAIL {}: {why}", module.display()),
        }
    }
    println!("{passed} of {} passed", modules.len());
    if passed == modules.len() { Ok(()) } else { Err("some tests failed".into()) }
}

fn find(directory: &Path, modules: &mut Vec<PathBuf>) -> Outcome {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, modules)?;
        } else if path.extension().is_some_and(|extension| extension == "wasm") && path.parent().is_some_and(is_preview1) {
            modules.push(path);
        }
    }
    Ok(())
}

fn is_preview1(directory: &Path) -> bool {
    directory.ends_with("wasm32-wasip1")
}

// The reason a test fails, if it does.
fn test(program: &Path, module: &Path) -> Fallible<Option<String>> {
    let expected = match fs::read_to_string(module.with_extension("json")) {
        Ok(text) => read(&text)?,
        Err(_) => Expected::default(),
    };
    let root = expected.root.as_ref().map(|root| module.with_file_name(root));
    let mut command = Command::new(program);
    command.arg("wasm");
    for (name, value) in &expected.env {
        command.arg("--env").arg(format!("{name}={value}"));
    }
    if let Some(root) = &root {
        clean(root)?;
        command.arg("--dir").arg(format!("{}::/", root.display()));
    }
    let output = command.arg(module).args(&expected.args).stdin(Stdio::null()).output()?;
    if let Some(root) = &root {
        clean(root)?;
    }
    let (code, stdout) = (output.status.code(), String::from_utf8_lossy(&output.stdout));
    if code != Some(expected.exit_code) {
        let said = String::from_utf8_lossy(&output.stderr);
        return Ok(Some(format!("exit {code:?}, expected {}: {}", expected.exit_code, said.trim())));
    }
    match &expected.stdout {
        Some(text) if *text != stdout => Ok(Some(format!("printed {stdout:?}, expected {text:?}"))),
        _ => Ok(None),
    }
}

// Tests leave files with these suffixes behind, and must start without them.
fn clean(directory: &Path) -> Outcome {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        match (path.extension().is_some_and(|extension| extension == "cleanup"), kind.is_dir()) {
            (true, true) => fs::remove_dir_all(path)?,
            (true, false) => fs::remove_file(path)?,
            (false, true) => clean(&path)?,
            (false, false) => {}
        }
    }
    Ok(())
}

fn read(text: &str) -> Fallible<Expected> {
    let mut expected = Expected::default();
    let mut words = Words(text.trim());
    words.take('{')?;
    while let Some(key) = words.key()? {
        match key.as_str() {
            "args" => expected.args = words.list()?,
            "env" => {
                words.take('{')?;
                while let Some(name) = words.key()? {
                    expected.env.push((name, words.string()?));
                }
            }
            "root" => expected.root = Some(words.string()?),
            "stdout" => expected.stdout = Some(words.string()?),
            "exit_code" => expected.exit_code = words.number()?,
            other => return Err(format!("unknown key `{other}` of a test").into()),
        }
    }
    Ok(expected)
}

/// The subset of JSON that the tests use.
struct Words<'a>(&'a str);

impl Words<'_> {
    fn skip(&mut self) {
        self.0 = self.0.trim_start();
    }

    fn next_if(&mut self, wanted: char) -> bool {
        self.skip();
        match self.0.strip_prefix(wanted) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn take(&mut self, wanted: char) -> Outcome {
        if self.next_if(wanted) { Ok(()) } else { Err(format!("expected `{wanted}` before `{}`", self.0).into()) }
    }

    // The next key of an object, or nothing at its end.
    fn key(&mut self) -> Fallible<Option<String>> {
        self.next_if(',');
        if self.next_if('}') {
            return Ok(None);
        }
        let key = self.string()?;
        self.take(':')?;
        Ok(Some(key))
    }

    fn list(&mut self) -> Fallible<Vec<String>> {
        let mut list = Vec::new();
        self.take('[')?;
        while !self.next_if(']') {
            list.push(self.string()?);
            self.next_if(',');
        }
        Ok(list)
    }

    fn string(&mut self) -> Fallible<String> {
        self.take('"')?;
        let mut text = String::new();
        let mut letters = self.0.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Ok(text);
                }
                '\\' => match letters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, letter @ ('"' | '\\' | '/'))) => text.push(letter),
                    _ => return Err("unsupported escape in a test".into()),
                },
                _ => text.push(letter),
            }
        }
        Err("unterminated string".into())
    }

    fn number(&mut self) -> Fallible<i32> {
        self.skip();
        let end = self.0.find(|letter: char| !letter.is_ascii_digit() && letter != '-').unwrap_or(self.0.len());
        let (number, rest) = self.0.split_at(end);
        self.0 = rest;
        Ok(number.parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expectation_of_a_test_is_read() {
        let text = r#"{"args": ["a", "the \"b\""], "env": {"c": "new\nline"}, "root": "fs-tests.dir", "exit_code": 33}"#;
        let expected = read(text).unwrap();
        assert_eq!(expected.args, ["a", "the \"b\""]);
        assert_eq!(expected.env, [("c".to_owned(), "new\nline".to_owned())]);
        assert_eq!((expected.root.as_deref(), expected.stdout, expected.exit_code), (Some("fs-tests.dir"), None, 33));
        assert_eq!(read("{}").unwrap(), Expected::default());
        assert!(read("{\"new\": 1}").is_err() && read("").is_err());
    }
}
