//! The protocols, and what distinguishes them in forwarding, observing and generating their messages.

use crate::http1::HttpParser;
use crate::memcached::{self, MemcachedParser};
use crate::nbd::NbdParser;
use crate::resp::RespParser;
use crate::rpc::RpcParser;
use crate::sharing::SharedConnections;
use crate::{ParserLimits, ProtocolParser};

/// A protocol between clients and a server. [`PROTOCOLS`] has a row for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1, without TLS.
    Http1,
    /// The protocol of Redis and Valkey.
    Resp,
    /// The text, meta and binary commands of memcached.
    Memcached,
    /// The protocol of network block devices.
    Nbd,
    /// NFS with MOUNT and the portmapper.
    Nfs,
}

/// Age of a connection at the first byte that a parser reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionAge {
    /// The parser reads the connection from its first byte.
    New,
    /// Earlier messages went unread; the next byte begins a request.
    Established,
}

/// Source of the name of the export, disk or file system that a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportSource {
    /// The protocol has no exports.
    None,
    /// The client names an export before its first request; the whole connection is about it.
    Handshake,
    /// Each request has a file handle.
    FileHandle,
}

/// A row of [`PROTOCOLS`].
#[derive(Debug)]
pub struct ProtocolRow {
    /// The protocol that the row describes.
    pub protocol: Protocol,
    /// Name in arguments, files and messages.
    pub name: &'static str,
    /// Description for help texts.
    pub words: &'static str,
    /// Ports on which servers listen by default; the first one serves requests.
    pub ports: &'static [u16],
    /// Creates a parser for one connection.
    pub parser: fn(ConnectionAge) -> Box<dyn ProtocolParser>,
    /// Source of the name of a request's export.
    pub export: ExportSource,
    /// The proxy can stand in front of its servers.
    pub has_front: bool,
    /// A reply has the identifier of its request; otherwise replies come in the order of the requests.
    pub has_ids: bool,
    /// Clients send many commands at once and servers answer them at once, so that heads also stand behind values.
    pub is_batched: bool,
    /// A server may answer a request whose head it has not read to the end.
    pub answers_half_heads: bool,
    /// The size that a request's head states does not delimit the message, so that it may be false.
    pub has_unchecked_size: bool,
    /// Reads the identifier that a request's datagrams share with those of its reply from their first bytes; `None`
    /// without such an identifier.
    pub datagram_id: Option<fn([u8; 8]) -> u32>,
    /// Requests of several clients may go over one connection to the server, if they are independent of it
    /// ([`RequestHead::is_independent`](crate::RequestHead::is_independent)).
    pub shared: Option<SharedConnections>,
}

/// Every protocol, in the order of [`Protocol`].
pub static PROTOCOLS: [ProtocolRow; 5] = [
    ProtocolRow {
        protocol: Protocol::Http1,
        name: "http1",
        words: "HTTP/1.0 and HTTP/1.1, without TLS",
        ports: &[80],
        parser: |_| Box::new(HttpParser::new(ParserLimits::HTTP)),
        export: ExportSource::None,
        has_front: false,
        has_ids: false,
        is_batched: false,
        answers_half_heads: true,
        has_unchecked_size: false,
        datagram_id: None,
        shared: None,
    },
    ProtocolRow {
        protocol: Protocol::Resp,
        name: "resp",
        words: "RESP, of Redis and Valkey",
        ports: &[6379],
        parser: |_| Box::new(RespParser::new(ParserLimits::RESP)),
        export: ExportSource::None,
        has_front: true,
        has_ids: false,
        is_batched: true,
        answers_half_heads: false,
        has_unchecked_size: false,
        datagram_id: None,
        shared: None,
    },
    ProtocolRow {
        protocol: Protocol::Memcached,
        name: "memcached",
        words: "memcached: text, meta and binary commands",
        ports: &[11211],
        parser: |_| Box::new(MemcachedParser::new(ParserLimits::MEMCACHED)),
        export: ExportSource::None,
        has_front: true,
        has_ids: false,
        is_batched: true,
        answers_half_heads: false,
        has_unchecked_size: false,
        datagram_id: Some(|[high, low, ..]| u32::from(u16::from_be_bytes([high, low]))),
        shared: Some(memcached::SHARED_CONNECTIONS),
    },
    ProtocolRow {
        protocol: Protocol::Nbd,
        name: "nbd",
        words: "NBD, network block devices",
        ports: &[10809],
        parser: |age| {
            Box::new(match age {
                ConnectionAge::New => NbdParser::new(ParserLimits::NBD),
                ConnectionAge::Established => NbdParser::within_connection(ParserLimits::NBD),
            })
        },
        export: ExportSource::Handshake,
        has_front: true,
        has_ids: true,
        is_batched: false,
        answers_half_heads: false,
        has_unchecked_size: false,
        datagram_id: None,
        shared: None,
    },
    ProtocolRow {
        protocol: Protocol::Nfs,
        name: "nfs",
        words: "NFS, with MOUNT and the portmapper",
        // Linux servers usually have MOUNT at the second one.
        ports: &[2049, 20048],
        parser: |_| Box::new(RpcParser::new(ParserLimits::RPC)),
        export: ExportSource::FileHandle,
        has_front: true,
        has_ids: true,
        is_batched: false,
        answers_half_heads: false,
        has_unchecked_size: true,
        datagram_id: Some(|[a, b, c, d, ..]| u32::from_be_bytes([a, b, c, d])),
        shared: None,
    },
];

impl Protocol {
    /// Returns the protocol's row.
    pub fn row(self) -> &'static ProtocolRow {
        &PROTOCOLS[self as usize]
    }

    /// Returns the protocol that has this name in arguments and files.
    pub fn named(name: &str) -> Option<Self> {
        PROTOCOLS.iter().find(|row| row.name == name).map(|row| row.protocol)
    }

    /// Creates a parser for a connection of this age.
    pub fn parser(self, age: ConnectionAge) -> Box<dyn ProtocolParser> {
        (self.row().parser)(age)
    }

    /// Returns the port on which servers listen by default.
    pub fn port(self) -> u16 {
        self.row().ports[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_protocols_and_have_distinct_names() {
        for (index, row) in PROTOCOLS.iter().enumerate() {
            assert_eq!(row.protocol as usize, index, "{}", row.name);
            assert_eq!(Protocol::named(row.name), Some(row.protocol));
            assert_eq!(row.protocol.row().name, row.name);
        }
        assert_eq!(Protocol::named("telnet"), None);
    }

    #[test]
    fn only_protocols_with_a_handshake_know_an_export_at_once() {
        for row in &PROTOCOLS {
            let [new, established] =
                [ConnectionAge::New, ConnectionAge::Established].map(|age| row.protocol.parser(age));
            assert_eq!(new.export_name(), None, "{}", row.name);
            assert_eq!((new.in_flight(), established.in_flight()), (0, 0), "{}", row.name);
        }
    }
}
