//! Sets up a connection by HTTP/1.1 or HTTP/2, as client and server agree.

use super::ready_connection::{ConnectionSocket, ReadyConnection};
use super::stream::SetupStream;
use crate::address_space::AddressSpace;
use crate::codec::{ClientCodec, Exchange, Http2Codec, HttpCodec};
use crate::target::HttpVersion;
use crate::tls::{ALPN_HTTP1, ALPN_HTTP2, NO_HTTP2_HINT};
use model::OperationError;
use std::net::SocketAddr;

/// The path of one host.
#[derive(Debug, Clone, Copy)]
pub(super) struct HttpPlace<'a> {
    pub(super) server: SocketAddr,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
}

/// The protocols that are offered to a server by TLS, most wanted first.
pub(super) fn alpn(version: HttpVersion) -> &'static [&'static [u8]] {
    match version {
        HttpVersion::One => &[ALPN_HTTP1],
        HttpVersion::Two => &[ALPN_HTTP2],
        HttpVersion::Negotiated => &[ALPN_HTTP2, ALPN_HTTP1],
    }
}

/// Prepares a connection for GET and PUT.
pub(super) fn connect(
    stream: SetupStream,
    place: HttpPlace<'_>,
    version: HttpVersion,
) -> Result<ReadyConnection, OperationError> {
    let HttpPlace { server, host, path } = place;
    let chosen = stream.tls.as_ref().and_then(|tls| tls.alpn());
    let is_two = match version {
        HttpVersion::One => false,
        HttpVersion::Two => true,
        HttpVersion::Negotiated => chosen == Some(ALPN_HTTP2),
    };
    if !is_two {
        return Ok(ready(stream, Box::new(HttpCodec::new(host.to_owned(), path.to_owned()))));
    }
    let exchange = Exchange::http(scheme(&stream), host, path);
    let exchange =
        exchange.map_err(|why| OperationError::input(why).hint("expected a host and a path of a URL"))?;
    connect_two(stream, server, exchange)
}

/// Prepares a connection for unary calls of gRPC with one message.
pub(super) fn connect_grpc(
    stream: SetupStream,
    place: HttpPlace<'_>,
    message: &[u8],
) -> Result<ReadyConnection, OperationError> {
    let exchange = Exchange::grpc(scheme(&stream), place.host, place.path, message);
    let exchange = exchange
        .map_err(|why| OperationError::input(why).hint("expected grpc://HOST:PORT/package.Service/Method"))?;
    connect_two(stream, place.server, exchange)
}

fn scheme(stream: &SetupStream) -> &'static str {
    if stream.tls.is_some() { "https" } else { "http" }
}

/// Exchanges settings, so that the first request already knows how many the server takes at once.
fn connect_two(
    mut stream: SetupStream,
    server: SocketAddr,
    exchange: Exchange,
) -> Result<ReadyConnection, OperationError> {
    let hint = if stream.tls.is_some() {
        NO_HTTP2_HINT
    } else {
        "does this port speak HTTP/2 without TLS and without an upgrade from HTTP/1.1? http:// asks by HTTP/1.1"
    };
    if let Some(tls) = &stream.tls
        && tls.alpn() != Some(ALPN_HTTP2)
    {
        let message = format!("{server}: the server has no HTTP/2: it ignored the offer of h2 in TLS (ALPN)");
        return Err(OperationError::machine(message).hint(hint));
    }
    let codec = open_two(&mut stream, exchange)
        .map_err(|why| OperationError::machine(format_args!("{server}: HTTP/2: {why}")).hint(hint))?;
    Ok(ready(stream, Box::new(codec)))
}

fn open_two(stream: &mut SetupStream, exchange: Exchange) -> Result<Http2Codec, String> {
    let mut codec = Http2Codec::new(exchange)?;
    let mut received = Vec::new();
    let mut replies = Vec::new();
    let mut out = Vec::new();
    loop {
        codec.accept(&received, &mut replies, &mut out)?;
        stream.send(&std::mem::take(&mut out))?;
        if codec.is_ready() {
            return Ok(codec);
        }
        received.clear();
        stream.receive(&mut received)?;
    }
}

fn ready(stream: SetupStream, codec: Box<dyn ClientCodec>) -> ReadyConnection {
    let SetupStream { socket, tls } = stream;
    ReadyConnection { socket: ConnectionSocket::Stream(socket), tls, codec, space: AddressSpace::Nothing }
}
