//! The protocols whose messages can be told apart.

use wire::http1::HttpParser;
use wire::memcached::MemcachedParser;
use wire::nbd::NbdParser;
use wire::resp::RespParser;
use wire::rpc::RpcParser;
use wire::{ParserLimits, ProtocolParser};

/// What clients and a server speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplicationProtocol {
    /// HTTP/1.0 and HTTP/1.1, without TLS.
    Http1,
    /// RESP, of Redis and Valkey.
    Resp,
    /// memcached: text, meta and binary commands.
    Memcached,
    /// NBD, joined by its cookies.
    Nbd,
    /// RPC of NFS, joined by its xids.
    Nfs,
}

/// Where in its life a connection is when its messages begin to be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionAge {
    /// Its first bytes are still to come.
    New,
    /// It has answered everything before.
    Established,
}

impl ApplicationProtocol {
    /// A parser for a connection of this age.
    pub(crate) fn parser(self, age: ConnectionAge) -> MessageParser {
        match self {
            Self::Http1 => MessageParser::Http1(HttpParser::new(ParserLimits::HTTP)),
            Self::Resp => MessageParser::Resp(RespParser::new(ParserLimits::RESP)),
            Self::Memcached => MessageParser::Memcached(MemcachedParser::new(ParserLimits::MEMCACHED)),
            Self::Nfs => MessageParser::Nfs(RpcParser::new(ParserLimits::RPC)),
            Self::Nbd => MessageParser::Nbd(match age {
                ConnectionAge::New => NbdParser::new(ParserLimits::NBD),
                ConnectionAge::Established => NbdParser::within_connection(ParserLimits::NBD),
            }),
        }
    }

    /// The most bytes of a buffer that are copied while there is room. Clients of RESP and memcached send many commands at
    /// once, and servers answer them at once, so that heads are behind values; elsewhere heads begin buffers.
    pub(crate) fn buffer_bytes_max(self) -> u32 {
        match self {
            Self::Resp | Self::Memcached => 64 << 10,
            Self::Http1 | Self::Nbd | Self::Nfs => 4 << 10,
        }
    }

    /// Whether an answer names its request, so that it can be no other's.
    pub(crate) fn has_ids(self) -> bool {
        match self {
            Self::Nbd | Self::Nfs => true,
            Self::Http1 | Self::Resp | Self::Memcached => false,
        }
    }

    /// What says which datagrams belong together, from their first bytes; `None` where nothing does.
    pub(crate) fn datagram_id(self, head: [u8; 8]) -> Option<u32> {
        let [a, b, c, d, ..] = head;
        match self {
            Self::Memcached => Some(u32::from(u16::from_be_bytes([a, b]))),
            Self::Nfs => Some(u32::from_be_bytes([a, b, c, d])),
            Self::Http1 | Self::Resp | Self::Nbd => None,
        }
    }
}

/// A parser of one of the protocols.
#[derive(Debug)]
pub(crate) enum MessageParser {
    Http1(HttpParser),
    Resp(RespParser),
    Memcached(MemcachedParser),
    Nbd(NbdParser),
    Nfs(RpcParser),
}

impl MessageParser {
    pub(crate) fn get(&mut self) -> &mut dyn ProtocolParser {
        match self {
            Self::Http1(parser) => parser,
            Self::Resp(parser) => parser,
            Self::Memcached(parser) => parser,
            Self::Nbd(parser) => parser,
            Self::Nfs(parser) => parser,
        }
    }
}
