//! The stream that h2 reads and writes: bytes in memory, which the engine moves to and from its socket.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Both directions of a connection.
#[derive(Debug, Default)]
struct PipeBytes {
    received: Vec<u8>,
    /// Length of the part of `received` that was read.
    read: usize,
    to_send: Vec<u8>,
}

/// A handle to both directions, shared by the codec and the connection of h2. One thread uses both, so that the lock is
/// free whenever it is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipe(Arc<Mutex<PipeBytes>>);

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, PipeBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes from the server.
    pub(super) fn push_received(&self, received: &[u8]) {
        self.lock().received.extend_from_slice(received);
    }

    /// Moves the bytes for the server to `out`.
    pub(super) fn take_to_send(&self, out: &mut Vec<u8>) {
        out.append(&mut self.lock().to_send);
    }
}

impl AsyncRead for Pipe {
    /// Never wakes: the codec polls whenever bytes have arrived.
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut bytes = self.lock();
        let available = &bytes.received[bytes.read..];
        if available.is_empty() {
            return Poll::Pending;
        }
        let count = available.len().min(into.remaining());
        into.put_slice(&available[..count]);
        bytes.read += count;
        if bytes.read == bytes.received.len() {
            bytes.received.clear();
            bytes.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.lock().to_send.extend_from_slice(from);
        Poll::Ready(Ok(from.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
