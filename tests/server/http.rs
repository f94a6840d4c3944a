//! A server that a test starts, and a client of it that is nothing but sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A server with a data directory of its own.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The first key: tenant `default`, role admin.
    pub(crate) key: String,
    directory: tempfile::TempDir,
    settings: Vec<String>,
    log: Arc<Mutex<Vec<String>>>,
}

/// An answer: status, head in lower case, body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {} {}", self.status, self.text()))
    }

    /// The same, with the status that it should have.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// The status and the code of an error.
    pub(crate) fn error(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().unwrap_or_default().to_owned())
    }
}

/// The program, started with these arguments.
pub(crate) fn sandlite(args: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandlite"));
    command.args(args).current_dir(directory);
    command
}

fn start(directory: &Path, settings: &[String], log: &Arc<Mutex<Vec<String>>>) -> (Child, SocketAddr, Option<String>) {
    let mut args = vec!["serve", "--data", "data", "--listen", "127.0.0.1:0", "--set", "log=off"];
    args.extend(settings.iter().flat_map(|setting| ["--set", setting.as_str()]));
    let mut command = sandlite(&args, directory);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (mut key, mut said) = (None, String::new());
    let address = lines.find_map(|line| {
        let line = line.unwrap();
        said.push_str(&line);
        key = key.take().or_else(|| line.split_once("not shown again: ").map(|(_, key)| key.trim().to_owned()));
        line.split_once("listening on ")?.1.rsplit_once("//")?.1.trim().parse().ok()
    });
    // The pipe must not fill.
    let log = Arc::clone(log);
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| log.lock().unwrap().push(line)));
    (child, address.unwrap_or_else(|| panic!("the server did not start: {said}")), key)
}

impl Server {
    /// Starts a server with settings such as `artifact-time=1h`.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let log = Arc::default();
        let (child, address, key) = start(directory.path(), &settings, &log);
        Self { child, address, key: key.unwrap(), directory, settings, log }
    }

    /// Kills it, as a power cut does, and starts it again on the same data.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// The same, with one more setting.
    pub(crate) fn kill_and_restart_with(&mut self, setting: &str) {
        self.kill();
        self.settings.push(setting.to_owned());
        self.restart();
    }

    /// Kills it, even if a client waits for a response.
    pub(crate) fn kill(&self) {
        let killed = Command::new("kill").args(["-9", &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    /// Asks it to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(told.success());
    }

    /// Starts it again on the same data.
    pub(crate) fn restart(&mut self) {
        self.child.wait().unwrap();
        let (child, address, key) = start(self.directory.path(), &self.settings, &self.log);
        assert_eq!(key, None);
        (self.child, self.address) = (child, address);
    }

    /// Runs the program beside the server, in the directory that has its data.
    pub(crate) fn command(&self, args: &[&str]) -> std::process::Output {
        sandlite(args, self.directory.path()).output().unwrap()
    }

    /// A new key, made by another process while the server runs.
    pub(crate) fn key_of(&self, tenant: &str, role: &str) -> String {
        let args = ["keys", "create", "--data", "data", "--tenant", tenant, "--role", role];
        let output = sandlite(&args, self.directory.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let key = text.split_whitespace().find(|word| word.starts_with("sk-"));
        key.unwrap_or_else(|| panic!("no key: {text}")).to_owned()
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn send(&self, line: &str, key: Option<&str>, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        if let Some(key) = key {
            head.push_str(&format!("Authorization: Bearer {key}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !headers.iter().any(|(name, _)| *name == "Transfer-Encoding") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut stream = TcpStream::connect(self.address).unwrap();
        // A server that has seen enough may close before it has read all.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        answer(&bytes)
    }

    /// A request that may meet a server that dies; `None` if there is no whole answer.
    pub(crate) fn try_answer(&self, method: &str, path: &str, body: &[u8]) -> Option<Answer> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            self.key,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).ok()?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()?;
        let answer = answer(&bytes);
        let length: usize = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        (answer.status > 0 && answer.body.len() == length).then_some(answer)
    }

    pub(crate) fn try_send(&self, method: &str, path: &str, body: &[u8]) -> Option<u16> {
        self.try_answer(method, path, body).map(|answer| answer.status)
    }

    pub(crate) fn try_json(&self, method: &str, path: &str, body: &Value) -> Option<u16> {
        self.try_send(method, path, body.to_string().as_bytes())
    }

    /// What it has written to standard error since it listens.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Files and directories below the data directory.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let (mut found, mut left) = (Vec::new(), vec![self.directory.path().to_owned()]);
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap().flatten() {
                if entry.path().is_dir() {
                    left.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found
    }

    /// Files of the data directory whose names have this part.
    pub(crate) fn files_named(&self, part: &str) -> Vec<String> {
        let names = self.paths().into_iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        names.filter(|name| name.contains(part)).collect()
    }

    /// A request of the first key.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), Some(&self.key), &[], &[])
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send(&format!("DELETE {path}"), Some(&self.key), &[], &[])
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.with_json("POST", path, &[], body)
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.with_json("PUT", path, &[], body)
    }

    pub(crate) fn with_json(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        self.send(&format!("{method} {path}"), Some(&self.key), &headers, body.to_string().as_bytes())
    }

    /// Sends a form with a file and texts.
    pub(crate) fn form(&self, line: &str, headers: &[(&str, &str)], texts: &[(&str, &str)], file: (&str, &[u8])) -> Answer {
        let (kind, body) = form(texts, file);
        self.send(line, Some(&self.key), &[&[("Content-Type", kind.as_str())], headers].concat(), &body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A form: its type and its body.
pub(crate) fn form(texts: &[(&str, &str)], (name, content): (&str, &[u8])) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    for (name, text) in texts {
        let part = format!("--x--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
        body.extend(part.as_bytes());
    }
    let part = format!(
        "--x--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: text/html\r\n\r\n"
    );
    body.extend(part.as_bytes());
    body.extend(content);
    body.extend(b"\r\n--x--x--\r\n");
    ("multipart/form-data; boundary=x--x".to_owned(), body)
}

/// A body in chunks of a few bytes.
pub(crate) fn chunked(body: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    for piece in body.chunks(100) {
        chunks.extend(format!("{:x}\r\n", piece.len()).as_bytes());
        chunks.extend(piece);
        chunks.extend(b"\r\n");
    }
    chunks.extend(b"0\r\n\r\n");
    chunks
}

fn answer(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = bytes.get(end + 4..).unwrap_or_default();
    let head = head.lines().map(lower_name).collect::<Vec<_>>().join("\n");
    let body = if head.contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_vec() };
    Answer { status, head, body }
}

fn lower_name(line: &str) -> String {
    line.split_once(':').map_or_else(|| line.to_owned(), |(name, value)| format!("{}:{value}", name.to_ascii_lowercase()))
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&body[..end]).ok().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let Some(chunk) = size.filter(|size| *size > 0).and_then(|size| body.get(end + 2..end + 2 + size)) else { break };
        whole.extend(chunk);
        body = body.get(end + 4 + chunk.len()..).unwrap_or_default();
    }
    whole
}
