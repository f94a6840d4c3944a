//! A server over HTTP that is part of the test: a function creates each response.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio_rustls::rustls;

/// A server's response to a request.
pub type Respond = Arc<dyn Fn(&str, &Value, &mut dyn Write) -> std::io::Result<()> + Send + Sync>;

/// Starts a server and returns its port and the number of requests that it has read.
pub fn serve(config: Option<Arc<rustls::ServerConfig>>, respond: Respond) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, requests) = (listener.local_addr().unwrap().port(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, config, respond, counted) =
                (stream.unwrap(), config.clone(), Arc::clone(&respond), Arc::clone(&counted));
            // Some tests disconnect the client.
            std::thread::spawn(move || drop(converse(stream, config, &respond, &counted)));
        }
    });
    (port, requests)
}

fn converse(
    mut stream: TcpStream,
    config: Option<Arc<rustls::ServerConfig>>,
    respond: &Respond,
    requests: &AtomicUsize,
) -> std::io::Result<()> {
    match config {
        Some(config) => {
            let session = rustls::ServerConnection::new(config).map_err(std::io::Error::other)?;
            exchange(&mut rustls::StreamOwned::new(session, stream), respond, requests)
        }
        None => exchange(&mut stream, respond, requests),
    }
}

fn exchange<S: Read + Write>(stream: &mut S, respond: &Respond, requests: &AtomicUsize) -> std::io::Result<()> {
    let (mut head, mut length) = (String::new(), 0);
    let mut reader = BufReader::new(&mut *stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    requests.fetch_add(1, Ordering::SeqCst);
    respond(&head, &serde_json::from_slice(&body).unwrap_or_default(), stream)?;
    stream.flush()
}

/// Writes a response with a body.
pub fn reply(output: &mut dyn Write, status: &str, headers: &str, body: &str) -> std::io::Result<()> {
    write!(output, "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// A server with the tool `greet`.
pub fn honest(_: &str, message: &Value, output: &mut dyn Write) -> std::io::Result<()> {
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "test", "version": "1" }
        }),
        Some("tools/list") => json!({ "tools": [
            { "name": "greet", "description": "Greets.", "inputSchema": { "type": "object", "properties": {} } }
        ] }),
        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "hello" }] }),
        _ if message.get("id").is_some() => {
            let error =
                json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32601, "message": "unknown method" } });
            return reply(output, "200 OK", "content-type: application/json\r\n", &error.to_string());
        }
        _ => return reply(output, "202 Accepted", "", ""),
    };
    let text = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    reply(output, "200 OK", "content-type: application/json\r\n", &text)
}
