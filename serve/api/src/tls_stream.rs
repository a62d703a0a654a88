//! Connections with TLS: the handshake happens on the connection's own task, so that a slow client delays no other.

use crate::limits::{HANDSHAKE_MAX, PLAIN_MAX};
use crate::tls::Tls;
use axum::serve::Listener;
use rustls::ServerConfig;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Accepts connections of another listener, with TLS.
pub(crate) struct TlsListener<L> {
    inner: L,
    tls: Arc<Tls>,
}

impl<L> TlsListener<L> {
    pub(crate) fn new(inner: L, tls: Arc<Tls>) -> Self {
        Self { inner, tls }
    }
}

impl<L: Listener<Io = TcpStream, Addr = SocketAddr>> Listener for TlsListener<L> {
    type Io = TlsConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TlsConnection, SocketAddr) {
        let (stream, address) = self.inner.accept().await;
        (TlsConnection::Opening(Box::pin(open(stream, self.tls.config()))), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection, which shakes hands when it is first read.
pub(crate) enum TlsConnection {
    Opening(Pin<Box<dyn Future<Output = io::Result<TlsStream<TcpStream>>> + Send>>),
    Open(Box<TlsStream<TcpStream>>),
    /// The handshake failed.
    Closed,
}

impl TlsConnection {
    fn poll_open(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Pin<&mut TlsStream<TcpStream>>>> {
        if let Self::Opening(handshake) = self {
            *self = match ready!(handshake.as_mut().poll(context)) {
                Ok(stream) => Self::Open(Box::new(stream)),
                Err(error) => {
                    *self = Self::Closed;
                    return Poll::Ready(Err(error));
                }
            };
        }
        Poll::Ready(match self {
            Self::Open(stream) => Ok(Pin::new(&mut **stream)),
            Self::Opening(_) | Self::Closed => Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_open(context))?.poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(context))?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Open(stream) => Pin::new(&mut **stream).poll_flush(context),
            // Nothing was written yet.
            Self::Opening(_) | Self::Closed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Open(stream) => Pin::new(&mut **stream).poll_shutdown(context),
            Self::Opening(_) | Self::Closed => {
                *self = Self::Closed;
                Poll::Ready(Ok(()))
            }
        }
    }
}

/// Shakes hands. A client that speaks HTTP without TLS gets an answer that says so.
async fn open(mut stream: TcpStream, config: Arc<ServerConfig>) -> io::Result<TlsStream<TcpStream>> {
    let opening = async {
        let mut first = [0];
        let length = stream.peek(&mut first).await?;
        // Methods of HTTP are capital letters; TLS begins with the type of a record, 22.
        if length == 1 && first[0].is_ascii_uppercase() {
            let _ = timeout(PLAIN_MAX, answer_plain(&mut stream)).await;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "HTTP without TLS"));
        }
        TlsAcceptor::from(config).accept(stream).await
    };
    timeout(HANDSHAKE_MAX, opening).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

const PLAIN_BODY: &str = "{\"error\":\"this port speaks TLS\",\"hint\":\"use https:// in place of http://; a token that was sent \
    could be read on the way: revoke it\"}\n";

async fn answer_plain(stream: &mut TcpStream) -> io::Result<()> {
    let length = PLAIN_BODY.len();
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all((head + PLAIN_BODY).as_bytes()).await?;
    stream.shutdown().await?;
    // Closed with unread bytes, the kernel would reset the connection, and the client lose the answer.
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
