//! `cargo xtask skillbox DIR`: Skillbox's own example programs against `sandlite serve`.
//!
//! `DIR` is a checkout of devs-group/skillbox; it is not part of this repository. Its shell program is run from a copy whose address and
//! directory of skills are those of this machine, and whose `printf` is one that shells other than BusyBox's take; its Python program and
//! client are run as they are. They need `curl`, `zip` and `python3`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use crate::run::target;
use crate::{Fallible, Outcome};

/// The key that the programs use.
const KEY: &str = "sk-example-test-key";
/// The address that the shell program uses.
const ADDRESS: &str = "http://api:8080";

/// Runs both programs, and prints how many of their checks passed.
pub(crate) fn run(args: &[String]) -> Outcome {
    let [directory] = args else { return Err("usage: cargo xtask skillbox DIR".into()) };
    let checkout = fs::canonicalize(directory).map_err(|error| format!("cannot read `{directory}`: {error}"))?;
    let program = env::var_os("SANDLITE").map_or_else(|| target().join("release/sandlite"), PathBuf::from);
    if !program.exists() {
        return Err(format!("`{}` does not exist: run `cargo build --release` first", program.display()).into());
    }
    let scratch = env::temp_dir().join(format!("sandlite-skillbox-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let counted = count(&program, &checkout, &scratch);
    let _ = fs::remove_dir_all(&scratch);
    let (passed, failed) = counted?;
    println!("{passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { Ok(()) } else { Err("some checks of Skillbox's programs failed".into()) }
}

/// Does the same if `SANDLITE_SKILLBOX` names a checkout; otherwise reports SKIPPED.
pub(crate) fn run_if_there() -> Outcome {
    match env::var("SANDLITE_SKILLBOX") {
        Ok(directory) => run(&[directory]),
        Err(_) => crate::skips::skip("xtask::skillbox", "no checkout of devs-group/skillbox: name one with SANDLITE_SKILLBOX"),
    }
}

fn count(program: &Path, checkout: &Path, scratch: &Path) -> Fallible<(usize, usize)> {
    let server = Server::start(program, scratch)?;
    let script = fs::read_to_string(checkout.join("examples/run-examples.sh"))?;
    let path = scratch.join("run-examples.sh");
    fs::write(&path, rewritten(&script, &server.url, &checkout.join("examples/skills"))?)?;
    let shell = tally(Command::new("sh").arg(&path))?;
    let mut python = Command::new("python3");
    python.arg(checkout.join("examples/python-sdk-e2e.py")).env("PYTHONPATH", checkout.join("sdks/python"));
    python.envs([("SKILLBOX_SERVER_URL", server.url.as_str()), ("SKILLBOX_API_KEY", KEY), ("PYTHONDONTWRITEBYTECODE", "1")]);
    let python = tally(&mut python)?;
    Ok((shell.0 + python.0, shell.1 + python.1))
}

// The program with another address, and with the skills where they are.
fn rewritten(script: &str, url: &str, skills: &Path) -> Fallible<String> {
    if !script.contains(ADDRESS) || !script.contains(KEY) {
        return Err("`run-examples.sh` is not the program that is known: its address or key differs".into());
    }
    let skills = skills.display();
    let script = script.replace(ADDRESS, url).replace("printf \"---", "printf -- \"---");
    Ok(script.replace(" /skills/", &format!(" {skills}/")).replace("\"/skills/", &format!("\"{skills}/")))
}

// Runs a program that prints a line for each check; returns how many passed and failed.
fn tally(command: &mut Command) -> Fallible<(usize, usize)> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let (passed, failed) = counted(&text);
    if !output.status.success() && failed == 0 {
        return Err(format!("the program ended early: {}", output.status).into());
    }
    Ok((passed, failed))
}

fn counted(text: &str) -> (usize, usize) {
    let lines = |word: &str| text.lines().filter(|line| line.trim_start().starts_with(word)).count();
    (lines("\u{1b}[32mPASS\u{1b}[0m"), lines("\u{1b}[31mFAIL\u{1b}[0m"))
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(program: &Path, scratch: &Path) -> Fallible<Self> {
        let first = format!("first-key={KEY}");
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--set", "log=off", "--set", &first, "--data"])
            .arg(scratch.join("data"))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().ok_or("the server has no standard error")?;
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("listening on ")?.1.trim().to_owned()));
        std::thread::spawn(move || lines.for_each(drop));
        let Some(url) = address else {
            let _ = child.kill();
            return Err("the server did not start".into());
        };
        Ok(Self { child, url })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_rewritten_where_it_must_be() {
        let script = "API_URL=\"http://api:8080\"\nK=sk-example-test-key\nup \"/skills/x\"\ncp -r /skills/x/* y\ncurl \"$API_URL/v1/skills/x\"\nprintf \"---\\n\"\n";
        let expected = "API_URL=\"http://h:1\"\nK=sk-example-test-key\nup \"/d/x\"\ncp -r /d/x/* y\ncurl \"$API_URL/v1/skills/x\"\nprintf -- \"---\\n\"\n";
        assert_eq!(rewritten(script, "http://h:1", Path::new("/d")).unwrap(), expected);
        assert!(rewritten("other", "http://h:1", Path::new("/d")).is_err());
    }

    #[test]
    fn checks_are_counted_by_their_lines() {
        let text = "  \u{1b}[32mPASS\u{1b}[0m  one\n  \u{1b}[31mFAIL\u{1b}[0m  two: PASS\n\u{1b}[32mALL TESTS PASSED\u{1b}[0m\n";
        assert_eq!(counted(text), (1, 1));
    }
}
