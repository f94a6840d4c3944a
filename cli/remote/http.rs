//! Requests to a server: HTTP/1.1 over a socket, with TLS or without, one connection each.
//!
//! Written here because a crate for it is larger than everything else in this program's client.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

use super::tls::{Stream, Trust};
use crate::printer::Hinted;

/// How long the server may be silent: streams have a heartbeat, and no run takes longer.
const SILENCE: Duration = Duration::from_secs(660);
/// Longest line of a head, and most of them.
const LONGEST_LINE: u64 = 64 << 10;
const MOST_LINES: usize = 200;
/// Largest body that is read into memory.
const LARGEST: u64 = 1 << 30;

/// A server and the key for it.
pub(super) struct Http {
    authority: String,
    trust: Option<Trust>,
    prefix: String,
    key: String,
}

/// A request that the server refused.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: u16,
    message: String,
}

impl std::error::Error for Refused {}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (HTTP {})", self.message, self.status)
    }
}

/// A response whose body is still to be read.
pub(super) struct Response {
    status: u16,
    /// Whether it is a negative result.
    pub(super) is_negative: bool,
    body: Body,
}

/// The bytes of a body, as they come.
struct Body {
    stream: BufReader<Box<dyn Stream>>,
    length: Length,
}

enum Length {
    Known(u64),
    // The remaining bytes of the current chunk; `None` before the first one.
    Chunks(Option<u64>),
    UntilEnd,
    Over,
}

impl Http {
    /// Returns a server by its address; `ca` is a file with the only certificate authorities to trust.
    pub(super) fn new(url: &str, key: String, ca: Option<&Path>) -> anyhow::Result<Self> {
        let (rest, trust) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (rest, None),
            (None, Some(rest)) => (rest, Some(Trust::new(ca)?)),
            (None, None) => {
                return Err(Hinted::error(
                    format!("cannot use the server `{url}`"),
                    "name it as http://HOST:PORT or https://HOST",
                ));
            }
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        Ok(Self { authority: authority.to_owned(), trust, prefix: path.trim_end_matches('/').to_owned(), key })
    }

    /// Sends a request; a status of 400 or above is an error.
    pub(super) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> anyhow::Result<Response> {
        self.send_from(method, path, headers, (body.len() as u64, body))
    }

    /// Same as above, with a body of a known length that is read as it is sent.
    pub(super) fn send_from(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        (length, mut body): (u64, impl Read),
    ) -> anyhow::Result<Response> {
        let has_port = self.authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let port = if self.trust.is_some() { 443 } else { 80 };
        let target = if has_port { self.authority.clone() } else { format!("{}:{port}", self.authority) };
        let unreachable = || format!("cannot reach the server `{}`", self.authority);
        let stream = TcpStream::connect(&target).with_context(unreachable)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let mut stream: Box<dyn Stream> = match &self.trust {
            Some(trust) => {
                let host = target.rsplit_once(':').map_or(target.as_str(), |(host, _)| host);
                Box::new(trust.connect(host, stream)?)
            }
            None => Box::new(stream),
        };
        let mut head = format!("{method} {}{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.prefix, self.authority);
        head.push_str(&format!("Authorization: Bearer {}\r\nContent-Length: {length}\r\n", self.key));
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).with_context(unreachable)?;
        // A server that rejects a request may not read all of it: its response counts.
        let sent = std::io::copy(&mut body, &mut stream);
        if let Err(error) = sent.as_ref().map_err(std::io::Error::kind) {
            anyhow::ensure!(
                matches!(error, std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset),
                "{}",
                unreachable()
            );
        }
        let _ = stream.flush();
        Response::read(BufReader::new(stream)).with_context(unreachable)?.checked()
    }

    /// Sends JSON and returns JSON.
    pub(super) fn json(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let (text, headers): (_, &[(&str, &str)]) = match body {
            Some(body) => (body.to_string(), &[("Content-Type", "application/json")]),
            None => (String::new(), &[]),
        };
        let bytes = self.send(method, path, headers, text.as_bytes())?.bytes()?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).context("invalid response of the server")
    }
}

impl Response {
    fn read(mut stream: BufReader<Box<dyn Stream>>) -> anyhow::Result<Self> {
        let first = line(&mut stream)?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.filter(|_| first.starts_with("HTTP/1.")).context("the response is not HTTP")?;
        let mut headers = Vec::new();
        loop {
            let next = line(&mut stream)?;
            let Some((name, value)) = next.split_once(':') else { break };
            anyhow::ensure!(headers.len() < MOST_LINES, "the response has too many headers");
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let find = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let length = match (find("transfer-encoding"), find("content-length")) {
            (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Length::Chunks(None),
            (_, Some(length)) => Length::Known(length.parse().context("the response has an invalid length")?),
            _ if status == 204 || status == 304 => Length::Known(0),
            _ => Length::UntilEnd,
        };
        let is_negative = find("action-failed").is_some();
        Ok(Self { status, is_negative, body: Body { stream, length } })
    }

    fn checked(self) -> anyhow::Result<Self> {
        if self.status < 400 {
            return Ok(self);
        }
        let status = self.status;
        let bytes = self.bytes().unwrap_or_default();
        let problem: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let message = problem["message"].as_str().unwrap_or("the request was refused");
        match status {
            401 => Err(Hinted::error(message, "pass a key with `--key` or in SANDLITE_KEY")),
            _ => Err(Refused { status, message: message.to_owned() }.into()),
        }
    }

    pub(super) fn bytes(self) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.body.take(LARGEST).read_to_end(&mut bytes).context("the response ended early")?;
        Ok(bytes)
    }

    /// Writes the body as it comes.
    pub(super) fn copy_to(mut self, to: &mut impl std::io::Write) -> anyhow::Result<u64> {
        std::io::copy(&mut self.body, to).context("the response ended early")
    }

    /// Calls `each` with the name and the data of every server-sent event.
    pub(super) fn events(self, mut each: impl FnMut(&str, &Value) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let (mut kind, mut data) = (String::new(), String::new());
        for line in BufReader::new(self.body).lines() {
            let line = line.context("the stream ended early")?;
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "" if line.is_empty() => {
                    if !data.is_empty() {
                        each(&kind, &serde_json::from_str(&data).context("invalid event of the server")?)?;
                    }
                    (kind, data) = (String::new(), String::new());
                }
                "event" => kind = value.to_owned(),
                "data" => data.push_str(value),
                _ => {}
            }
        }
        Ok(())
    }
}

fn line(stream: &mut BufReader<Box<dyn Stream>>) -> std::io::Result<String> {
    let mut line = String::new();
    let count = stream.take(LONGEST_LINE).read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.trim_end_matches('\r').to_owned()),
        None if count == 0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        None if u64::try_from(count).is_ok_and(|count| count < LONGEST_LINE) => {
            Err(std::io::Error::other("the response is not HTTP: does the server speak TLS?"))
        }
        None => Err(std::io::Error::other("the response has a line that is too long")),
    }
}

impl Body {
    // Goes to the next chunk if the present one is over.
    fn chunk(&mut self) -> std::io::Result<()> {
        let Length::Chunks(left @ (None | Some(0))) = &mut self.length else { return Ok(()) };
        if left.is_some() {
            line(&mut self.stream)?;
        }
        let head = line(&mut self.stream)?;
        let size = u64::from_str_radix(head.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.map_err(|_| std::io::Error::other("the response has an invalid chunk"))?;
        self.length = if size == 0 { Length::Over } else { Length::Chunks(Some(size)) };
        Ok(())
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.chunk()?;
        let left = match &mut self.length {
            Length::Over => return Ok(0),
            Length::UntilEnd => return self.stream.read(buffer),
            Length::Known(left) | Length::Chunks(Some(left)) => left,
            Length::Chunks(None) => return Ok(0),
        };
        if *left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let most = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.stream.read(&mut buffer[..most])?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        *left -= count as u64;
        Ok(count)
    }
}

/// Returns a path or a name as part of an address; slashes stay.
pub(super) fn escaped(text: &str) -> String {
    let mut made = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => made.push(char::from(byte)),
            _ => made.push_str(&format!("%{byte:02X}")),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    // A server that gives one answer.
    fn answered(answer: &'static str) -> anyhow::Result<Response> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1024];
            let _ = stream.read(&mut asked).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let response = Http::new(&format!("http://{address}/"), "k".to_owned(), None).unwrap().send("GET", "/", &[], b"");
        server.join().unwrap();
        response
    }

    #[test]
    fn bodies_are_read_by_length_and_by_chunks() {
        let check = |answer, expected: &str| assert_eq!(answered(answer).unwrap().bytes().unwrap(), expected.as_bytes());
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi");
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            "abc0123456789",
        );
        check("HTTP/1.1 204 No Content\r\n\r\n", "");
        check("HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end");
    }

    #[test]
    fn a_body_that_ends_early_and_nonsense_are_errors() {
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi";
        assert!(answered(cut).unwrap().bytes().is_err());
        assert!(answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").unwrap().bytes().is_err());
        assert!(answered("SSH-2.0-x\r\n").is_err());
        let refused =
            answered("HTTP/1.1 404 Not Found\r\nContent-Length: 38\r\n\r\n{\"error\":\"not_found\",\"message\":\"gone\"}");
        assert_eq!(refused.err().unwrap().to_string(), "gone (HTTP 404)");
        assert!(Http::new("ftp://example", String::new(), None).is_err());
    }

    #[test]
    fn events_have_a_name_and_data() {
        let stream = "HTTP/1.1 200 OK\r\n\r\n: beat\n\nevent: stdout\ndata: {\"text\": \"a\"}\n\nevent: result\ndata: {}\n\n";
        let mut seen = Vec::new();
        answered(stream)
            .unwrap()
            .events(|name, data| {
                seen.push(format!("{name} {data}"));
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, [r#"stdout {"text":"a"}"#, "result {}"]);
        assert_eq!(escaped("/a b/ü#?"), "/a%20b/%C3%BC%23%3F");
    }
}
