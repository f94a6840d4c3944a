//! Bodies that are written by a thread and sent in pieces: whatever their size, little of them is in memory.

use std::io::{self, Write};

use axum::body::Body;
use bytes::Bytes;
use tokio::sync::mpsc;

/// Pieces that are made before the reader takes them.
const AHEAD: usize = 4;
/// Bytes of a piece.
const PIECE: usize = 64 << 10;

/// A writer that sends its bytes in pieces; it waits for a slow reader, and fails if the reader was dropped.
pub(super) struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

/// Returns a body with the bytes that `write` writes. If it fails, the body has no end, so the client detects that it is incomplete.
pub(super) fn body(write: impl FnOnce(&mut Pieces) -> io::Result<()> + Send + 'static) -> Body {
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut pieces = Pieces { sender, piece: Vec::with_capacity(PIECE) };
        if let Err(error) = write(&mut pieces).and_then(|()| pieces.flush()) {
            let _ = pieces.sender.blocking_send(Err(error));
        }
    });
    let next = |mut receiver: mpsc::Receiver<io::Result<Bytes>>| async move { Some((receiver.recv().await?, receiver)) };
    Body::from_stream(futures_util::stream::unfold(receiver, next))
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        self.sender.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
