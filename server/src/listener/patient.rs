//! A stream whose peer must keep reading: a write that blocks too long ends the connection (T-NET-08).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream with a timeout for each blocked write.
pub(crate) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Set while a write is blocked.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    // Updates the timer after a write: progress stops it, blocking starts it.
    fn timed<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + patience)));
        match waiting.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.timed(cx, written)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.timed(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.timed(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    // T-NET-08.
    #[tokio::test]
    async fn a_peer_that_reads_slowly_is_waited_for_and_one_that_does_not_read_is_cut() {
        let patience = Duration::from_millis(500);
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut ours = Patient::new(ours, patience);
        // Longer than the patience in all, and each step much shorter.
        let reading = async {
            for _ in 0..40 {
                tokio::time::sleep(Duration::from_millis(15)).await;
                theirs.read_exact(&mut [0; 16]).await.unwrap();
            }
        };
        let (written, ()) = futures_util::future::join(ours.write_all(&[0; 640]), reading).await;
        assert!(written.is_ok());
        let stuck = tokio::time::timeout(Duration::from_secs(60), ours.write_all(&[0; 64])).await;
        assert_eq!(stuck.map(|written| written.map_err(|error| error.kind())), Ok(Err(io::ErrorKind::TimedOut)));
        drop(theirs);
    }
}
