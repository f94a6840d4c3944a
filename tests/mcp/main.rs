//! `sandlite mcp` as a client sees it: the real program, real pipes, real sockets.

mod clients;
mod crowds;
mod floods;
mod http;
mod skills;
#[path = "../support/skipped.rs"]
mod skipped;
mod stdio;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The program, started with these arguments.
fn sandlite(args: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
    command.args(args).current_dir(directory);
    command
}

/// A client over standard input and output.
struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: u64,
    /// Messages that are not responses.
    notifications: Vec<Value>,
    /// The server's output at its start.
    hello: Value,
    _directory: tempfile::TempDir,
}

impl Client {
    fn start(args: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = sandlite(&[&["mcp"], args].concat(), directory.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let notifications = Vec::new();
        let mut client = Self { child, stdin, stdout, last: 0, notifications, hello: Value::Null, _directory: directory };
        client.hello = client.request("initialize", initialize());
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
        stdin.flush().unwrap();
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }));
        self.last
    }

    /// The next message.
    fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the server closed");
        serde_json::from_str(&line).unwrap()
    }

    /// The answer to a request; what comes before is kept.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The error that a request ends in.
    fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)["error"].clone()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The data of a call that must work.
    fn data(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn initialize() -> Value {
    json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}
