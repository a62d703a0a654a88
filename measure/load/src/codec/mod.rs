//! Encoding of requests and interpretation of replies, by protocol, on connections that are set up.

mod client_codec;
mod echo;
mod http;
mod http2;
mod memcached;
mod memcached_key;
mod memcached_udp;
mod nbd;
mod nfs;
mod reply_framer;

pub(crate) use client_codec::{ClientCodec, Decoded, IoRequest, ReplyStatus};
pub(crate) use echo::EchoCodec;
pub(crate) use http::HttpCodec;
pub(crate) use http2::{Exchange, Http2Codec};
pub(crate) use memcached::MemcachedCodec;
pub(crate) use memcached_key::KeyFormat;
pub(crate) use memcached_udp::MemcachedUdpCodec;
pub(crate) use nbd::NbdCodec;
pub(crate) use nfs::{AUTH_MACHINE, NfsCodec};
pub(crate) use reply_framer::ReplyFramer;
