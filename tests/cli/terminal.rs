//! Output on a terminal: the interactive shell, control sequences made harmless, colors, Ctrl-C.
//!
//! The terminal is that of `script` (in every Debian), so that no crate for pseudo-terminals is needed. Tests never sleep: they wait for what
//! they expect, and give up after a while.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// When a test gives up. Long, for the machine may be busy; no test that passes waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a command that is expected to end may be silent before its input is closed.
const SILENCE: Duration = Duration::from_secs(5);

/// A command on its own terminal.
struct Terminal {
    child: Child,
    keyboard: Option<ChildStdin>,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn new(command: &str, directory: &Path) -> Self {
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", command, "/dev/null"]).current_dir(directory);
        script.env("PATH", crate::transcript::path()).env("TERM", "xterm").env_remove("NO_COLOR").env("SHELL", "/bin/bash");
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let keyboard = child.stdin.take();
        Self { child, keyboard, screen, seen: String::new() }
    }

    fn press(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// Waits until the screen shows a text, and forgets everything up to it.
    #[track_caller]
    fn expect(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(text) {
                let after = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, after);
            }
            match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout) => panic!("waited for {text:?}, saw {:?}", self.seen),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended before {text:?}, saw {:?}", self.seen),
            }
        }
    }

    /// Waits for the end: the rest of the screen, and the exit code.
    fn end(mut self) -> (String, i32) {
        loop {
            let patience = if self.keyboard.is_some() { SILENCE } else { PATIENCE };
            match self.screen.recv_timeout(patience) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                // `script` sometimes misses the end of its command, but not that of its input.
                Err(RecvTimeoutError::Timeout) if self.keyboard.take().is_some() => {}
                Err(_) => break,
            }
        }
        drop(self.keyboard.take());
        (std::mem::take(&mut self.seen), self.child.wait().unwrap().code().unwrap())
    }
}

// A terminal that is left open would keep its command, which holds the standard error of the tests.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn terminal(command: &str) -> (Terminal, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Terminal::new(command, directory.path()), directory)
}

// T-ISO-07.
#[test]
fn control_sequences_are_harmless_on_a_terminal() {
    let (terminal, _directory) = terminal(r#"sandlite bash -c 'printf "\033]0;owned\007\033[2Jtext\n"'"#);
    let (screen, code) = terminal.end();
    assert_eq!((screen.trim_end(), code), ("\u{fffd}]0;owned\u{fffd}\u{fffd}[2Jtext", 0));
}

// T-ISO-07: names, keys and commands that turn the direction of text, wherever they are printed.
#[test]
fn text_that_turns_its_direction_is_visible_wherever_it_is_printed() {
    let fill =
        r#"sandlite --db a.db bash -c $'printf x > "/home/user/a\xe2\x80\xaeb\xc2\x9bc"; ln -s $\'t\xe2\x81\xa6\' /home/user/l'"#;
    let key = r#"sandlite --db a.db kv set $'k\xe2\x80\x8fy' 1"#;
    let (terminal, directory) = terminal(&format!("{fill}; {key}"));
    assert_eq!(terminal.end().1, 0);
    for command in
        ["fs ls /home/user", "fs ls -l /home/user", "fs tree /", "fs find /", "history", "history show 1", "kv list", "info"]
    {
        for json in ["", "--json "] {
            let (screen, _) = Terminal::new(&format!("sandlite --db a.db {json}{command}"), directory.path()).end();
            let bad = screen.chars().find(|c| matches!(c, '\u{80}'..='\u{9f}' | '\u{200f}' | '\u{202e}' | '\u{2066}'));
            assert_eq!(bad, None, "{json}{command}: {screen}");
        }
    }
    let (screen, _) = Terminal::new("sandlite --db a.db fs ls /home/user", directory.path()).end();
    assert!(screen.contains("a\u{fffd}b\u{fffd}c"), "{screen}");
    let (screen, _) = Terminal::new("sandlite --db a.db --json fs ls /home/user", directory.path()).end();
    assert!(screen.contains(r"a\u202eb\u009bc"), "{screen}");
}

#[test]
fn control_sequences_pass_with_raw() {
    let (terminal, _directory) = terminal(r#"sandlite bash --raw -c 'printf "\033[32mgreen\033[0m\n"'"#);
    assert_eq!(terminal.end().0.trim_end(), "\x1b[32mgreen\x1b[0m");
}

#[test]
fn errors_have_color_on_a_terminal_unless_disabled() {
    let (coloured, _directory) = terminal("sandlite history");
    assert!(coloured.end().0.contains("\x1b[1;31merror:\x1b[0m cannot find"));
    let (plain, _directory) = terminal("NO_COLOR=1 sandlite history");
    assert!(plain.end().0.starts_with("error: cannot find"));
}

#[test]
fn ctrl_c_ends_the_command_and_keeps_its_row() {
    let (mut terminal, directory) = terminal("sandlite --db agent.db bash -c 'echo kept > /file; echo begun; sleep 1000'");
    terminal.expect("begun");
    terminal.press("\x03");
    assert_eq!(terminal.end().1, 130);
    let output = Command::new(env!("CARGO_BIN_EXE_sandlite"))
        .args(["--db", "agent.db", "bash", "-c", "cat /file"])
        .current_dir(&directory)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "kept\n");
    let history = Command::new(env!("CARGO_BIN_EXE_sandlite"))
        .args(["--db", "agent.db", "history", "show", "1"])
        .current_dir(&directory)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&history.stdout).contains("stdout | begun"));
}

#[test]
fn a_command_can_ask_on_the_terminal() {
    let (mut terminal, _directory) = terminal("sandlite bash -c 'echo name?; read name; echo hello $name'");
    terminal.expect("name?");
    terminal.press("World\r");
    terminal.expect("hello World");
}

#[test]
fn a_command_can_prompt_on_the_terminal() {
    let (mut terminal, _directory) =
        terminal("sandlite bash -c 'read -p \"name? \" name; echo hello $name; test -t 0 && echo typed'");
    terminal.expect("name? ");
    terminal.press("World\r");
    terminal.expect("hello World\r\ntyped\r\n");
}

#[test]
fn prompts_of_the_interactive_shell_are_seen() {
    let (mut bash, _directory) = terminal("sandlite bash");
    bash.expect("$ ");
    bash.press("read -p 'who? ' name\r");
    bash.expect("\nwho? ");
    bash.press("me\r");
    bash.expect("$ ");
    bash.press("echo got $name\r");
    bash.expect("\ngot me\r\n");
    bash.expect("$ ");
    bash.press("python3\r");
    bash.expect(">>> ");
    bash.press("x = 20\r");
    bash.expect(">>> ");
    bash.press("for i in range(2):\r");
    bash.expect("... ");
    bash.press("    print(x + i)\r");
    bash.expect("... ");
    bash.press("\r");
    bash.expect("20\r\n21\r\n>>> ");
    bash.press("exit(3)\r");
    bash.expect("$ ");
    bash.press("echo status $?\r");
    bash.expect("\nstatus 3\r\n");
}

#[test]
fn python_remembers_and_asks_for_the_rest_of_a_block() {
    let (mut python, _directory) = terminal("sandlite python");
    python.expect(">>> ");
    python.press("x = 20\r");
    python.expect(">>> ");
    python.press("x + 1\r");
    python.expect("\n21\r\n");
    python.expect(">>> ");
    python.press("def double(n):\r");
    python.expect("... ");
    python.press("    return n * 2\r");
    python.expect("... ");
    python.press("\r");
    python.press("double(x)\r");
    python.expect("\n40\r\n");
    python.expect(">>> ");
    python.press("1/0\r");
    python.expect("ZeroDivisionError");
    python.press("exit(3)\r");
    assert_eq!(python.end().1, 3);
}

#[test]
fn ctrl_c_ends_the_statement_and_not_the_session() {
    let (mut python, _directory) = terminal("sandlite python");
    python.expect(">>> ");
    python.press("half a thought\x03");
    python.expect("^C");
    python.press("print('begun'); import time; time.sleep(1000)\r");
    python.expect("\nbegun");
    python.press("\x03");
    python.expect(">>> ");
    python.press("6 * 7\r");
    python.expect("\n42\r\n");
    python.expect(">>> ");
    python.press("\x04");
    assert_eq!(python.end().1, 0);
}

#[test]
fn ctrl_c_is_a_keyboard_interrupt_that_keeps_variables() {
    let (mut python, _directory) = terminal("sandlite python");
    python.expect(">>> ");
    python.press("kept = 41; import time\r");
    python.expect(">>> ");
    for busy in ["time.sleep(1000)", "exec('while True: pass')", "sum(i for i in range(10**12))", "input()"] {
        python.press(&format!("print('begun'); {busy}\r"));
        python.expect("\nbegun\r\n");
        python.press("\x03");
        let seen = python.expect(">>> ");
        assert!(seen.contains("KeyboardInterrupt") || busy == "input()" && seen.contains("EOFError"), "{busy}: {seen}");
        python.press("kept + 1\r");
        python.expect("\n42\r\n");
        python.expect(">>> ");
    }
    // Caught as everywhere.
    python.press("try:\r");
    python.expect("... ");
    python.press("    print('trying'); time.sleep(1000)\r");
    python.expect("... ");
    python.press("except KeyboardInterrupt: print('caught')\r");
    python.expect("... ");
    python.press("\r");
    python.expect("\ntrying\r\n");
    python.press("\x03");
    python.expect("caught\r\n");
}

#[test]
fn an_unresponsive_python_is_ended_and_reports_the_lost_state() {
    let (mut python, _directory) = terminal("sandlite python");
    python.expect(">>> ");
    python.press("lost = 1\r");
    python.expect(">>> ");
    python.press("while True:\r");
    python.expect("... ");
    python.press("    try: print('begun'); [1 for i in range(10**12)]\r");
    python.expect("... ");
    python.press("    except KeyboardInterrupt: pass\r");
    python.expect("... ");
    python.press("\r");
    python.expect("\nbegun\r\n");
    python.press("\x03");
    python.expect("the session has a new Python interpreter");
    python.expect(">>> ");
    python.press("'lost' in globals()\r");
    python.expect("\nFalse\r\n");
}

#[test]
fn python_reads_typed_input() {
    let (mut python, _directory) = terminal("sandlite python");
    python.expect(">>> ");
    python.press("name = input('who? ')\r");
    python.expect("\nwho? ");
    python.press("me\r");
    python.expect(">>> ");
    python.press("name\r");
    python.expect("\n'me'\r\n");
}

#[test]
fn bash_remembers_from_line_to_line() {
    let (mut bash, _directory) = terminal("sandlite bash");
    bash.expect("~\u{1b}[0m$ ");
    bash.press("name=world; greet() { echo hello $1; }; mkdir -p work; cd work\r");
    bash.expect("~/work\u{1b}[0m$ ");
    bash.press("greet $name\r");
    bash.expect("\nhello world\r\n");
    bash.expect("$ ");
    bash.press("for i in 1 2; do\r");
    bash.expect("> ");
    bash.press("echo number $i; done\r");
    bash.expect("\nnumber 1\r\nnumber 2\r\n");
    bash.expect("$ ");
    bash.press("exit 7\r");
    assert_eq!(bash.end().1, 7);
}

#[test]
fn exit_leaves_wherever_it_is() {
    for (shell, prompt, typed, status) in [
        ("bash", "$ ", "if true; then exit 5; fi\recho stays\r", 5),
        ("bash", "$ ", "f() { exit 6; }; f\recho stays\r", 6),
        ("bash", "$ ", "set -e; false\recho stays\r", 1),
        ("python", ">>> ", "import sys; sys.exit(3)\rprint('stays')\r", 3),
        ("python", ">>> ", "raise SystemExit(4)\rprint('stays')\r", 4),
    ] {
        let (mut terminal, _directory) = terminal(&format!("sandlite {shell}"));
        terminal.expect(prompt);
        terminal.press(typed);
        assert_eq!(terminal.end().1, status, "{typed}");
    }
}

#[test]
fn exit_in_a_part_of_a_command_does_not_leave() {
    let (mut bash, _directory) = terminal("sandlite bash");
    bash.expect("$ ");
    for part in ["(exit 3)", "x=$(exit 3)", "exit 3 | cat", "exit 1 2", "trap 'exit 3' EXIT"] {
        bash.press(&format!("{part}\r"));
        bash.expect("$ ");
        bash.press("echo stays\r");
        bash.expect("\nstays\r\n");
        bash.expect("$ ");
    }
    bash.press("exit 7\r");
    assert_eq!(bash.end().1, 7);
}

#[test]
fn clear_clears_the_screen() {
    let (mut bash, _directory) = terminal("sandlite bash");
    bash.expect("$ ");
    bash.press("clear\r");
    bash.expect("\x1b[H\x1b[2J\x1b[3J");
    bash.expect("$ ");
    // A command that only contains it is a guest's.
    bash.press("clear; echo on\r");
    bash.expect("\u{fffd}[H\u{fffd}[2J\u{fffd}[3Jon\r\n");
    bash.press("\x04");
    assert_eq!(bash.end().1, 0);
}

#[test]
fn keys_edit_recall_search_and_complete() {
    let (mut bash, _directory) = terminal("sandlite --db agent.db bash");
    bash.expect("$ ");
    // Left twice, a letter; home, end.
    bash.press("echo on\x1b[D\x1b[D[\x01\x05]\r");
    bash.expect("\n[on]\r\n");
    bash.expect("$ ");
    bash.press("touch unusual-name; mkdir folder\r");
    bash.expect("$ ");
    bash.press("ls unu\t\r");
    bash.expect("\nunusual-name\r\n");
    bash.expect("$ ");
    bash.press("\x1b[A\x1b[A\x1b[A\r");
    bash.expect("\n[on]\r\n");
    bash.expect("$ ");
    bash.press("\x12unusual");
    bash.expect("(search: unusual)");
    bash.press("\x03");
    bash.press("basena\tx/y\r");
    bash.expect("\ny\r\n");
    bash.expect("$ ");
    bash.press("\x04");
    assert_eq!(bash.end().1, 0);
}

#[test]
fn the_first_command_that_is_interrupted_leaves_its_status() {
    let (mut bash, _directory) = terminal("sandlite bash");
    bash.expect("$ ");
    bash.press("echo begun; sleep 1000\r");
    bash.expect("\nbegun\r\n");
    bash.press("\x03");
    bash.expect("$ ");
    bash.press("echo status $? $HOME\r");
    bash.expect("\nstatus 130 /home/user\r\n");
    bash.expect("$ ");
    bash.press("echo then $?\r");
    bash.expect("\nthen 0\r\n");
}

#[test]
fn absolute_paths_are_completed_also_below_mounts() {
    for database in ["", "--db agent.db "] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("host")).unwrap();
        std::fs::write(directory.path().join("host/unmistakable"), "").unwrap();
        let mut bash = Terminal::new(&format!("sandlite {database}bash --mount host:/mnt"), directory.path());
        bash.expect("$ ");
        bash.press("echo /ho\tus\t /mnt/unmis\t. /usr/loc\t\r");
        bash.expect("\n/home/user/ /mnt/unmistakable . /usr/local/\r\n");
        bash.expect("$ ");
        bash.press("cat /etc/pass\t | head -n 1 | cut -c 1-4\r");
        bash.expect("\nroot\r\n");
    }
}

#[test]
fn names_and_attributes_of_python_are_completed() {
    let (mut python, directory) = terminal("sandlite --db agent.db python");
    python.expect(">>> ");
    python.press("import math; unmistakable = 'text'\r");
    python.expect(">>> ");
    python.press("math.factor\t(5)\r");
    python.expect("\n120\r\n");
    python.expect(">>> ");
    python.press("unmis\t.upp\t()\r");
    python.expect("\n'TEXT'\r\n");
    python.expect(">>> ");
    python.press("\x04");
    python.end();
    // Looking leaves no row.
    let history = Command::new(env!("CARGO_BIN_EXE_sandlite"))
        .args(["--db", "agent.db", "history"])
        .current_dir(&directory)
        .output()
        .unwrap();
    let rows = String::from_utf8_lossy(&history.stdout).lines().count();
    assert_eq!(rows, 4, "{}", String::from_utf8_lossy(&history.stdout));
}

#[test]
fn a_pasted_script_is_one_command() {
    let (mut bash, directory) = terminal("sandlite --db agent.db bash");
    bash.expect("$ ");
    bash.press("\x1b[200~a=1\necho pasted $a\x1b[201~\r");
    bash.expect("\npasted 1\r\n");
    bash.expect("$ ");
    bash.press("\x04");
    bash.end();
    let history = Command::new(env!("CARGO_BIN_EXE_sandlite"))
        .args(["--db", "agent.db", "--json", "history"])
        .current_dir(&directory)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&history.stdout).contains(r#""command":"a=1\necho pasted $a""#));
}

#[test]
fn ctrl_c_leaves_the_shell_as_it_was() {
    let (mut bash, _directory) = terminal("sandlite bash");
    bash.expect("$ ");
    bash.press("x=kept\r");
    bash.expect("$ ");
    bash.press("echo begun; sleep 1000\r");
    bash.expect("\nbegun\r\n");
    bash.press("\x03");
    bash.expect("$ ");
    bash.press("echo $x $?\r");
    bash.expect("\nkept 130\r\n");
    // A command reads from the terminal.
    bash.press("echo asked; read answer\r");
    bash.expect("\nasked\r\n");
    bash.press("typed\r");
    bash.expect("$ ");
    bash.press("echo got $answer\r");
    bash.expect("\ngot typed\r\n");
}
