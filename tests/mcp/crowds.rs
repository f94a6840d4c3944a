//! Crowds of clients over HTTP: half-open connections, slow senders, unread responses (T-NET-04, T-NET-08).
//!
//! Sockets have a time limit only so that a test that fails does not hang; nothing here measures time.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use runtime::{Host, Preset, Sandbox};
use serde_json::json;
use server::{Key, Listen, Service, Settings, Times, serve_http};

use super::http::{Server, list, read_answer};

/// Long enough for any answer, and shorter than the server's own patience with those who do not say anything.
const HANG: Duration = Duration::from_secs(4);

/// A server of this process with times of our own; it ends with the process.
fn impatient(times: Times) -> (SocketAddr, String) {
    let (key, text) = Key::random().unwrap();
    let (sender, address) = mpsc::channel();
    std::thread::spawn(move || {
        let host = Host::builder().build().unwrap();
        let sandbox = Sandbox::builder().host(&host).open().unwrap();
        let listen = Listen { address: ([127, 0, 0, 1], 0).into(), key, hosts: Vec::new(), origins: Vec::new(), times };
        serve_http(Service::new(sandbox, Settings::new(host, Preset::Normal.limits())).unwrap(), listen, |address| {
            sender.send(address).unwrap()
        })
    });
    (address.recv().unwrap(), text)
}

fn short() -> Duration {
    Duration::from_millis(100)
}

fn connect(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let _ = stream.write_all(bytes);
    stream
}

/// Whether the server closed a connection, with or without a word.
fn is_closed(mut stream: TcpStream) -> bool {
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

fn request(address: SocketAddr, key: &str, body: &str, rest: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{rest}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// T-NET-08: half-open requests without a key take no place from a client with one.
#[test]
fn t_net_08_half_open_requests_do_not_delay_a_client_with_the_key() {
    let server = Server::start(&[]);
    let half = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer wrong", server.address);
    let crowd: Vec<TcpStream> = (0..300).map(|_| connect(server.address, half.as_bytes())).collect();
    let silent: Vec<TcpStream> = (0..300).map(|_| connect(server.address, b"")).collect();
    for _ in 0..10 {
        let stream = server.connect(&server.with(&[], &list().to_string()));
        stream.set_read_timeout(Some(HANG)).unwrap();
        assert_eq!(read_answer(stream).status, 200);
    }
    // A connection that has shown the key stays, however many others come after it.
    let mut kept = server.connect(&server.with(&[("Connection", "keep-alive")], &list().to_string()));
    kept.set_read_timeout(Some(HANG)).unwrap();
    read_one(&mut kept);
    let more: Vec<TcpStream> = (0..300).map(|_| connect(server.address, half.as_bytes())).collect();
    kept.write_all(&server.with(&[], &list().to_string())).unwrap();
    assert_eq!(read_answer(kept).status, 200);
    drop((crowd, silent, more));
}

// One answer of a connection that stays open.
fn read_one(stream: &mut TcpStream) {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "it was closed");
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() >= length.parse::<usize>().unwrap() {
            return;
        }
    }
}

/// T-NET-04: the key is asked for before anything of the body is read.
#[test]
fn t_net_04_a_body_without_the_key_is_not_waited_for() {
    let server = Server::start(&[]);
    for key in ["", "Bearer wrong"] {
        let whole = String::from_utf8(server.with(&[("Authorization", key)], "{}")).unwrap();
        let head = whole.replace("Content-Length: 2", "Content-Length: 16000000").trim_end_matches("{}").to_owned();
        let stream = server.connect(head.as_bytes());
        stream.set_read_timeout(Some(HANG)).unwrap();
        assert_eq!(read_answer(stream).status, 401, "{key}");
    }
}

/// T-NET-08: a client that does not send the key in time is disconnected, however slowly it sends.
#[test]
fn t_net_08_clients_that_do_not_send_the_key_in_time_are_disconnected() {
    let (address, _) = impatient(Times { key: short(), ..Times::default() });
    for begun in ["", "POST", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"] {
        assert!(is_closed(connect(address, begun.as_bytes())), "{begun}");
    }
    let mut slow = connect(address, b"POST /mcp HTTP/1.1\r\nX: ");
    while slow.write_all(b"x").is_ok() {}
}

/// T-NET-04: a body that does not come is not waited for without end, by a client with the key either.
#[test]
fn t_net_04_a_body_that_does_not_come_is_an_error() {
    let (address, key) = impatient(Times { body: short(), ..Times::default() });
    let head = request(address, &key, "{}", "Connection: close\r\n").replace("Content-Length: 2", "Content-Length: 9");
    assert_eq!(read_answer(connect(address, head.as_bytes())).status, 408);
}

/// T-NET-08: requests that are sent ahead while no answer is read end with the connection, and with what it held.
#[test]
fn t_net_08_unread_responses_end_the_connection() {
    let (address, key) = impatient(Times { write: short(), ..Times::default() });
    let request = request(address, &key, &list().to_string(), "");
    let mut stream = connect(address, b"");
    let error = loop {
        if let Err(error) = stream.write_all(request.as_bytes()) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
}

/// T-NET-04: bodies together are bounded, too.
#[test]
fn t_net_04_bodies_at_a_time_are_bounded() {
    let server = Server::start(&[]);
    let whole = String::from_utf8(server.with(&[], "{}")).unwrap();
    let head = whole.replace("Content-Length: 2", "Content-Length: 16000000").trim_end_matches("{}").to_owned();
    let slow: Vec<TcpStream> = (0..6).map(|_| server.connect(head.as_bytes())).collect();
    let mut refused = 0;
    for stream in slow {
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        refused += usize::from(read_answer(stream).status == 503);
    }
    assert_eq!(refused, 2, "four of the largest are read at a time");
    assert_eq!(server.post(&[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).status, 200);
}
