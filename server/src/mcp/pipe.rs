//! Messages over standard input and output, one per line, limited in size and number. Every rejected message gets an error
//! response (T-NET-04).

use std::io;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::load::Load;
use crate::message::Shape;

/// Maximum number of messages queued for writing; producers wait for space.
const WAITING: usize = 8;
/// How long the client may take to read the last messages.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Number of bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// Buffer capacity kept for the next line.
const KEPT_BYTES: usize = 64 << 10;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const BUSY: i32 = -32000;

/// One client connected by a pair of pipes.
pub(super) struct Pipe<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    shape: Shape,
    /// A queued response: `receive` can be dropped while it waits.
    refusal: Option<Vec<u8>>,
    write: Option<mpsc::Sender<Vec<u8>>>,
    writing: Option<JoinHandle<()>>,
    load: Load,
}

impl<R: AsyncRead + Send + Unpin> Pipe<R> {
    pub(super) fn new(read: R, write: impl AsyncWrite + Send + Unpin + 'static, load: Load) -> Self {
        let (sender, messages) = mpsc::channel(WAITING);
        let writing = tokio::spawn(write_all(write, messages));
        Self {
            read: BufReader::with_capacity(READ_BYTES, read),
            line: Vec::new(),
            shape: Shape::default(),
            refusal: None,
            write: Some(sender),
            writing: Some(writing),
            load,
        }
    }

    // Reads up to the end of a line; a rejected line is discarded. Returns `false` at the end of the input. Cancel-safe:
    // everything read is stored in `self`.
    async fn read_line(&mut self) -> bool {
        loop {
            let Ok(available) = self.read.fill_buf().await else { return false };
            if available.is_empty() {
                return false;
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let bytes = end.and_then(|end| available.get(..end)).unwrap_or(available);
            self.shape.feed(bytes);
            if self.shape.fault().is_none() {
                self.line.extend_from_slice(bytes);
            } else {
                self.line = Vec::new();
            }
            let taken = bytes.len() + usize::from(end.is_some());
            self.read.consume(taken);
            if end.is_some() {
                return true;
            }
        }
    }

    // Returns the message on a line, or its error.
    fn parse(&self) -> Result<Option<ClientJsonRpcMessage>, (i32, &'static str)> {
        if let Some(fault) = self.shape.fault() {
            return Err((INVALID_REQUEST, fault.as_str()));
        }
        let line = self.line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.line).trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let is_request = self.shape.id().is_some() && self.shape.method().is_some();
        let taken = if is_request { self.load.take(self.shape.weight()) } else { None };
        if is_request && taken.is_none() {
            return Err((BUSY, "too many concurrent requests: wait for a response, then send this one again"));
        }
        match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
            Ok(JsonRpcMessage::Request(mut request)) => {
                // Counted for as long as the request's context lives.
                taken.map(|taken| request.request.extensions_mut().insert(taken));
                Ok(Some(JsonRpcMessage::Request(request)))
            }
            Ok(message) => Ok(Some(message)),
            // Notifications get no response.
            Err(_) if self.shape.id().is_none() && self.shape.method().is_some() => Ok(None),
            Err(error) if error.is_data() || self.shape.id().is_some() => Err((INVALID_REQUEST, "Invalid request")),
            Err(_) => Err((PARSE_ERROR, "Parse error: a message is one line of JSON")),
        }
    }
}

async fn write_all(mut write: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        if write.write_all(&message).await.is_err() || write.flush().await.is_err() {
            return;
        }
    }
}

fn error_line(id: Option<Value>, code: i32, text: &str) -> Vec<u8> {
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } });
    format!("{error}\n").into_bytes()
}

fn closed() -> io::Error {
    io::Error::from(io::ErrorKind::BrokenPipe)
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Pipe<R> {
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = self.write.clone();
        async move {
            let mut line = serde_json::to_vec(&item)?;
            drop(item);
            line.push(b'\n');
            write.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if self.refusal.is_some() {
                let place = self.write.as_ref()?.reserve().await.ok()?;
                if let Some(refusal) = self.refusal.take() {
                    place.send(refusal);
                }
            }
            if !self.read_line().await {
                return None;
            }
            let parsed = self.parse();
            if let Err((code, text)) = parsed {
                self.refusal = Some(error_line(self.shape.id(), code, text));
            }
            self.line.clear();
            self.line.shrink_to(KEPT_BYTES);
            self.shape = Shape::default();
            if let Ok(Some(message)) = parsed {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write = None;
        if let Some(writing) = self.writing.take() {
            let _ = tokio::time::timeout(LAST_WORDS, writing).await;
        }
        Ok(())
    }
}
