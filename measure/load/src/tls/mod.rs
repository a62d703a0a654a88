//! TLS between the socket of a connection and its codec, for any protocol.
//!
//! Handshakes happen while a connection is set up, where waiting is allowed. In the run, [`TlsSession`] only converts
//! bytes; the engine reads and writes the socket.

mod client;
mod insecure;
mod refusal;
mod session;

pub(crate) use client::TlsClient;
pub(crate) use refusal::NO_HTTP2_HINT;
pub(crate) use session::TlsSession;

/// Names of protocols in the extension ALPN of TLS.
pub(crate) const ALPN_HTTP1: &[u8] = b"http/1.1";
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
