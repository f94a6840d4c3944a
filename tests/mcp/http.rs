//! The same over HTTP, and rejected requests: one test for each threat (T-NET-…).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::{initialize, sandlite};

pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) key: String,
    _directory: tempfile::TempDir,
}

/// An answer: status, headers in lower case, body.
pub(super) struct Answer {
    pub(super) status: u16,
    headers: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let value = |line: &'_ str| line.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).map(str::len);
        self.headers.lines().find(|line| value(line).is_some()).map(|line| &line[name.len() + 2..])
    }

    /// The last message, whether it came alone or at the end of a stream of events.
    fn message(&self) -> Value {
        let last = self
            .body
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("data:").map(str::trim).filter(|data| data.starts_with('{')));
        serde_json::from_str(last.unwrap_or(&self.body)).unwrap_or_else(|_| panic!("no message: {} {}", self.status, self.body))
    }
}

impl Server {
    pub(super) fn start(args: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let first = ["mcp", "--http", "127.0.0.1:0", "--key-file", "key"];
        let mut command = sandlite(&[&first[..], args].concat(), directory.path());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .find_map(|line| Some(line.unwrap().strip_prefix("listening on http://")?.strip_suffix("/mcp")?.parse().unwrap()));
        // The rest of its output is not needed; the pipe must not fill.
        std::thread::spawn(move || lines.for_each(drop));
        let key = std::fs::read_to_string(directory.path().join("key")).unwrap().trim().to_owned();
        Self { child, address: address.unwrap(), key, _directory: directory }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// A connection with these bytes sent.
    pub(super) fn connect(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let _ = stream.write_all(bytes);
        stream
    }

    fn raw(&self, bytes: &[u8]) -> Answer {
        read_answer(self.connect(bytes))
    }

    fn usual(&self) -> Vec<(&'static str, String)> {
        vec![
            ("Host", self.address.to_string()),
            ("Authorization", format!("Bearer {}", self.key)),
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Connection", "close".to_owned()),
        ]
    }

    /// A request with the usual headers, some of them changed (or left out, when empty).
    pub(super) fn with(&self, changed: &[(&'static str, &str)], body: &str) -> Vec<u8> {
        let mut headers = self.usual();
        for (name, value) in changed {
            headers.retain(|(known, _)| known != name);
            if !value.is_empty() {
                headers.push((name, (*value).to_owned()));
            }
        }
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("POST /mcp HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    pub(super) fn post(&self, changed: &[(&'static str, &str)], body: &Value) -> Answer {
        self.raw(&self.with(changed, &body.to_string()))
    }

    fn status(&self, changed: &[(&'static str, &str)]) -> u16 {
        self.post(changed, &list()).status
    }

    fn call(&self, id: u64, tool: &str, arguments: Value) -> Answer {
        let params = json!({ "name": tool, "arguments": arguments });
        self.post(&[], &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
    }

    fn bash(&self, command: &str) -> Value {
        self.call(1, "bash", json!({ "command": command })).message()["result"]["structuredContent"].clone()
    }

    fn begin(&self) -> String {
        let answer = self.post(&[], &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize() }));
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.message()["result"]["serverInfo"]["name"], "sandlite");
        answer.header("mcp-session-id").unwrap().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn read_answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let headers = head.to_ascii_lowercase();
    let body = if headers.contains("transfer-encoding: chunked") { unchunk(body) } else { body.to_owned() };
    Answer { status, headers, body }
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|_| size > 0) else { break };
        whole.push_str(chunk);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

pub(super) fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
}

#[test]
fn a_client_works_over_http() {
    let server = Server::start(&[]);
    let session = server.begin();
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
    let hello = server.post(&headers, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(hello.status, 202);
    let tools = server.post(&headers, &list());
    assert_eq!((tools.status, tools.message()["result"]["tools"].as_array().unwrap().len()), (200, 30));
    assert_eq!(tools.header("x-content-type-options"), Some("nosniff"));
    server.bash("echo from http > /f");
    assert_eq!(server.bash("cat /f")["stdout"], "from http\n");
}

#[test]
fn several_clients_share_one_file_through_one_server() {
    let server = Server::start(&["--db", "shared.db"]);
    let sessions = [server.begin(), server.begin()];
    assert_ne!(sessions[0], sessions[1]);
    let add = json!({ "command": "n=$(cat /n 2>/dev/null || echo 0); echo $((n + 1)) > /n" });
    let params = json!({ "name": "bash", "arguments": add });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    std::thread::scope(|scope| {
        for session in &sessions {
            let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
            let (server, call) = (&server, &call);
            scope.spawn(move || (0..10).for_each(|_| assert_eq!(server.post(&headers, call).status, 200)));
        }
    });
    assert_eq!(server.bash("cat /n")["stdout"], "20\n");
}

#[test]
fn a_client_of_the_protocol_without_sessions_works_too() {
    let server = Server::start(&[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "bash", "arguments": { "command": "echo hi" }, "_meta": meta });
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "bash")];
    let answer = server.post(&headers, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    assert_eq!(answer.message()["result"]["structuredContent"]["stdout"], "hi\n", "{}", answer.body);
    assert_eq!(answer.header("mcp-session-id"), None);
}

#[test]
fn progress_events_precede_the_result() {
    let server = Server::start(&[]);
    let params = json!({ "name": "bash", "arguments": { "command": "echo step" }, "_meta": { "progressToken": 5 } });
    let answer = server.post(&[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    assert!(answer.body.contains("notifications/progress") && answer.body.contains("step"), "{}", answer.body);
    assert_eq!(answer.message()["result"]["structuredContent"]["stdout"], "step\n");
}

/// T-NET-01: a page that rebinds its name, or posts across origins.
#[test]
fn t_net_01_foreign_hosts_pages_and_simple_posts_are_refused() {
    let server = Server::start(&[]);
    assert_eq!(server.status(&[]), 200);
    assert_eq!(server.status(&[("Host", "evil.example")]), 403);
    assert_eq!(server.status(&[("Host", "")]), 403);
    assert_eq!(server.status(&[("Origin", "https://evil.example")]), 403);
    assert_eq!(server.status(&[("Origin", "null")]), 403);
    assert_eq!(server.status(&[("Content-Type", "text/plain")]), 415);
    assert_eq!(server.status(&[("Content-Type", "")]), 415);
    let preflight =
        format!("OPTIONS /mcp HTTP/1.1\r\nHost: {}\r\nOrigin: https://evil.example\r\nConnection: close\r\n\r\n", server.address);
    let answer = server.raw(preflight.as_bytes());
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None));
}

/// T-NET-01: the first line names a host as the header does, and there is one of them.
#[test]
fn t_net_01_a_foreign_host_in_the_first_line_is_refused() {
    let server = Server::start(&[]);
    let usual = String::from_utf8(server.with(&[], &list().to_string())).unwrap();
    let status = |uri: &str| server.raw(usual.replace("/mcp HTTP", &format!("{uri} HTTP")).as_bytes()).status;
    assert_eq!(status(&server.url()), 200);
    for uri in
        ["http://evil.example/mcp", "http://localhost/mcp", "https://127.0.0.1/mcp", "evil.example:80", "*", "//evil.example/mcp"]
    {
        assert_ne!(status(uri), 200, "{uri}");
    }
    let hosts = |lines: &str| usual.replace(&format!("Host: {}\r\n", server.address), lines);
    for lines in [
        String::new(),
        format!("Host: {}\r\nHost: evil.example\r\n", server.address),
        format!("Host: {0}\r\nHost: {0}\r\n", server.address),
        format!("Host: {}, evil.example\r\n", server.address),
        format!("Host: evil.example\r\nX-Forwarded-Host: {}\r\n", server.address),
    ] {
        assert_ne!(server.raw(hosts(&lines).as_bytes()).status, 200, "{lines}");
    }
    let old = usual.replace("HTTP/1.1", "HTTP/1.0").replace(&format!("Host: {}\r\n", server.address), "");
    assert_eq!(server.raw(old.as_bytes()).status, 403);
}

/// T-NET-01, R19: other machines are served only under a configured name.
#[test]
fn t_net_01_an_address_open_to_others_needs_a_host_name() {
    let directory = tempfile::tempdir().unwrap();
    let output = sandlite(&["mcp", "--http", "0.0.0.0:0"], directory.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--allow-host"), "{output:?}");
}

/// T-NET-02: what the protocol's library leaves open by default is closed.
#[test]
fn t_net_02_only_named_origins_pass_and_there_is_no_stream_to_hold_open() {
    let server = Server::start(&["--allow-origin", "https://app.example:443"]);
    assert_eq!(server.status(&[("Origin", "https://app.example:443")]), 200);
    assert_eq!(server.status(&[("Origin", "https://other.example:443")]), 403);
    let get = String::from_utf8(server.with(&[("Accept", "text/event-stream")], "")).unwrap().replace("POST", "GET");
    assert_eq!(server.raw(get.as_bytes()).status, 405);
}

/// T-NET-03: only sessions that the server gave out are known, and only with the key.
#[test]
fn t_net_03_a_session_cannot_be_chosen_or_used_without_the_key() {
    let server = Server::start(&[]);
    let session = server.begin();
    assert_eq!(session.len(), 32);
    assert_ne!(server.begin(), session);
    assert_eq!(server.status(&[("Mcp-Session-Id", &session)]), 200);
    assert_eq!(server.status(&[("Mcp-Session-Id", &session), ("Authorization", "")]), 401);
    for chosen in ["00000000000000000000000000000000", "mine", "../../x"] {
        assert_eq!(server.status(&[("Mcp-Session-Id", chosen)]), 404, "{chosen}");
    }
    let end = String::from_utf8(server.with(&[("Mcp-Session-Id", &session)], "")).unwrap().replace("POST", "DELETE");
    assert_eq!(server.raw(end.as_bytes()).status, 200);
    assert_eq!(server.status(&[("Mcp-Session-Id", &session)]), 404);
}

/// T-NET-03: only an initialize request that succeeds begins a session.
#[test]
fn t_net_03_a_failed_initialize_begins_no_session() {
    let server = Server::start(&[]);
    let begin = |headers: &[(&'static str, &str)], id: Value, params: Value| {
        server.post(headers, &json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params }))
    };
    for (name, answer) in [
        ("no parameters", begin(&[], json!(1), json!({}))),
        ("wrong types", begin(&[], json!(1), json!({ "protocolVersion": 5, "capabilities": [], "clientInfo": 3 }))),
        ("a null id", begin(&[], Value::Null, initialize())),
        ("a notification", server.post(&[], &json!({ "jsonrpc": "2.0", "method": "initialize", "params": initialize() }))),
        ("not acceptable", begin(&[("Accept", "text/html")], json!(1), initialize())),
    ] {
        assert_eq!(answer.header("mcp-session-id"), None, "{name}: {} {}", answer.status, answer.body);
    }
    assert_eq!(server.begin().len(), 32);
}

/// T-NET-03: a session cancels its own requests and no others.
#[test]
fn t_net_03_a_cancelled_request_ends_for_its_own_session_only() {
    let server = Server::start(&["--preset", "permissive"]);
    let (session, other) = (server.begin(), server.begin());
    let params =
        json!({ "name": "bash", "arguments": { "command": "echo started; sleep 250" }, "_meta": { "progressToken": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string();
    let mut stream = BufReader::new(server.connect(&server.with(&[("Mcp-Session-Id", &session)], &call)));
    let mut line = String::new();
    while !line.contains("started") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0);
    }
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    assert_eq!(server.post(&[("Mcp-Session-Id", &other)], &cancel).status, 202);
    assert_eq!(server.post(&[], &cancel).status, 202);
    // Still running: a call that needs its turn would wait, one that reads does not.
    let rows = server.call(8, "history", json!({ "name": "bash" })).message();
    assert_eq!(rows["result"]["structuredContent"]["runs"], json!([]));
    assert_eq!(server.post(&[("Mcp-Session-Id", &session)], &cancel).status, 202);
    assert_eq!(server.bash("echo next")["stdout"], "next\n");
    let mut rest = String::new();
    let _ = stream.read_to_string(&mut rest);
    assert!(rest.contains("cancelled"), "{rest}");
}

/// T-NET-04: size, depth, batches, smuggling.
#[test]
fn t_net_04_large_deep_and_joined_bodies_are_refused() {
    let server = Server::start(&[]);
    let headers: String = server.usual().iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let said = format!("POST /mcp HTTP/1.1\r\n{headers}Content-Length: 99999999\r\n\r\n");
    let chunk = [b"100000\r\n", &vec![b' '; 1 << 20][..], b"\r\n"].concat();
    let chunked =
        [format!("POST /mcp HTTP/1.1\r\n{headers}Transfer-Encoding: chunked\r\n\r\n").into_bytes(), chunk.repeat(17)].concat();
    assert_eq!(server.raw(&[said.into_bytes(), vec![b' '; 17 << 20]].concat()).status, 413);
    assert_eq!(server.raw(&chunked).status, 413);
    let deep = format!("{{\"params\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(server.raw(&server.with(&[], &deep)).status, 400);
    let batch = server.post(&[], &json!([list(), list()]));
    assert_eq!((batch.status, batch.body.contains("batches")), (400, true));
    assert_eq!(server.raw(&server.with(&[], "not json")).status, 400);
    let both = format!("POST /mcp HTTP/1.1\r\n{headers}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nPOST /x");
    assert_ne!(server.raw(both.as_bytes()).status, 200);
    // Two lengths, and a second request where one of them ends: the connection ends with the first.
    let open = headers.replace("Connection: close\r\n", "");
    for lengths in ["Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5"] {
        let message = list().to_string();
        let first = format!("POST /mcp HTTP/1.1\r\n{open}{lengths}\r\n\r\n{:x}\r\n{message}\r\n0\r\n\r\n", message.len());
        let second = String::from_utf8(server.with(&[], &message)).unwrap();
        let answers = server.raw(format!("{first}{second}").as_bytes());
        assert!(!answers.body.contains("HTTP/1.1"), "{lengths}");
    }
    for (change, why) in [
        ("Content-Length: 2\r\n X-Folded: 1", "folded lines"),
        ("Content-Length: 2\r\nContent-Length: 3", "two lengths"),
        ("Content-Length: +2", "a sign"),
        ("Content-Length : 2", "a blank before the colon"),
        ("Transfer-Encoding: gzip, chunked", "another encoding"),
        ("Transfer-Encoding: chunked, identity", "not chunked at the end"),
    ] {
        let request = String::from_utf8(server.with(&[], "{}")).unwrap().replace("Content-Length: 2", change);
        assert_ne!(server.raw(request.as_bytes()).status, 200, "{why}");
    }
    let body = list().to_string();
    for (chunked, why) in [
        (format!("-{:x}\r\n{body}\r\n0\r\n\r\n", body.len()), "a negative size"),
        (format!("ffffffffffffffff{:x}\r\n{body}\r\n0\r\n\r\n", body.len()), "a size that overflows"),
        (format!("{:x}\r\n{body}0\r\n\r\n", body.len()), "no line end after a chunk"),
        (format!("{:x};{}\r\n{body}\r\n0\r\n\r\n", body.len(), "x".repeat(100_000)), "a long extension"),
        (format!("{:x}\r\n{body}\r\n0\r\n{}\r\n", body.len(), "X: y\r\n".repeat(10_000)), "many trailers"),
    ] {
        let head = format!("POST /mcp HTTP/1.1\r\n{headers}Transfer-Encoding: chunked\r\n\r\n");
        assert_ne!(server.raw(format!("{head}{chunked}").as_bytes()).status, 200, "{why}");
    }
    let long = server.with(&[("X-Long", &"x".repeat(100_000))], "{}");
    let status = server.raw(&long).status;
    assert!(matches!(status, 431 | 0), "{status}");
    assert_eq!(server.status(&[]), 200);
}

/// T-NET-05: names are never paths; missing sandboxes and those of others look the same.
#[test]
fn t_net_05_names_never_become_paths() {
    let server = Server::start(&[]);
    for name in ["../x", "/etc/passwd", "a/b", "", ".", "a\u{0}b", &"x".repeat(65)] {
        let answer = server.call(1, "import_snapshot", json!({ "snapshot": name })).message();
        assert_eq!(answer["result"]["isError"], true);
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("expected 1 to 64"), "{answer}");
    }
    let other = String::from_utf8(server.with(&[], "{}")).unwrap().replace("/mcp", "/../../etc/passwd");
    assert_eq!(server.raw(other.as_bytes()).status, 404);
}

/// T-NET-06: the key.
#[test]
fn t_net_06_requests_without_the_key_are_rejected() {
    let server = Server::start(&[]);
    for wrong in ["", "Bearer", "Bearer wrong", "Basic dXNlcjpwYXNz"] {
        let answer = server.post(&[("Authorization", wrong)], &list());
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("bearer")), "{wrong}");
        assert!(!answer.body.contains(&server.key));
    }
    let elsewhere = String::from_utf8(server.with(&[("Authorization", "")], "{}")).unwrap().replace("/mcp", "/nowhere");
    assert_eq!(server.raw(elsewhere.as_bytes()).status, 401, "without the key one does not even learn what there is");
}

/// T-NET-07: nothing from the sandbox is served as a page.
#[test]
fn t_net_07_files_come_as_data_only() {
    let server = Server::start(&[]);
    server.bash("echo '<script>alert(1)</script>' > /page.html");
    let read = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": "sandlite:///page.html" } });
    let answer = server.post(&[], &read);
    assert_eq!(answer.message()["result"]["contents"][0]["mimeType"], "text/plain");
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("application/json") || kind.starts_with("text/event-stream"), "{kind}");
    assert_eq!((answer.header("x-content-type-options"), answer.header("cache-control")), (Some("nosniff"), Some("no-store")));
}

/// T-NET-08: a client that does not read, or disconnects, does not delay others.
#[test]
fn t_net_08_clients_that_do_not_read_block_no_others() {
    let server = Server::start(&["--preset", "permissive"]);
    let call = |command: &str| {
        let params = json!({ "name": "bash", "arguments": { "command": command }, "_meta": { "progressToken": 1 } });
        server.with(&[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string())
    };
    let silent: Vec<TcpStream> = (0..8).map(|_| server.connect(&call("seq 100000"))).collect();
    let half: Vec<TcpStream> = (0..8).map(|_| server.connect(b"POST /mcp HTTP/1.1\r\nHost: loc")).collect();
    assert_eq!(server.bash("echo through")["stdout"], "through\n");
    drop((silent, half));
    // A client that disconnects while its command runs ends it: the next one gets its turn.
    let mut gone = BufReader::new(server.connect(&call("echo started; sleep 250")));
    let mut line = String::new();
    while !line.contains("started") {
        line.clear();
        assert!(gone.read_line(&mut line).unwrap() > 0);
    }
    drop(gone);
    assert_eq!(server.bash("echo next")["stdout"], "next\n");
}
