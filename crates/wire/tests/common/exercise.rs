//! What tests on random input and the fuzz target do with bytes.

use super::common::{Side, Watch};
use tailwright_wire::Limits;
use tailwright_wire::memcached::Connection as Memcached;
use tailwright_wire::nbd::{self, Framing};
use tailwright_wire::rpc::{self, Connection as Rpc};
use units::Bytes;

const TIGHT: Limits = Limits { message: Bytes(4096), head: 1100, fragments: 5, outstanding: 3 };

/// A connection of one of eight kinds, with wide or tight limits.
#[allow(unreachable_pub, reason = "a test includes this file as a module, the fuzz crate re-exports it")]
pub fn connection(choice: u8) -> Watch {
    let fit = |limits| if choice & 8 == 0 { limits } else { TIGHT };
    let (rpc, nbd, memcached) = (fit(Limits::RPC), fit(Limits::NBD), fit(Limits::MEMCACHED));
    let on = |framing| Watch::new(nbd::Connection::transmitting(nbd, framing), nbd);
    match choice & 7 {
        0 | 1 => Watch::new(Rpc::new(rpc), rpc),
        2 => Watch::new(nbd::Connection::new(nbd), nbd),
        3 => on(Framing::Simple),
        4 => on(Framing::Structured),
        5 => on(Framing::Extended),
        _ => Watch::new(Memcached::new(memcached), memcached),
    }
}

/// The first byte chooses a connection, then each byte the side and length of a piece that follows it. Whatever
/// it is, the promises that [`Watch`] checks hold; decoders of results do not panic.
#[allow(unreachable_pub, reason = "as above")]
pub fn exercise(content: &[u8]) {
    let Some((&choice, content)) = content.split_first() else { return };
    results(content);
    let mut watch = connection(choice);
    let mut rest = content;
    while let Some((&turn, behind)) = rest.split_first() {
        let (piece, behind) = behind.split_at(behind.len().min(usize::from(turn >> 1) + 1));
        let side = if turn & 1 == 0 { Side::Client } else { Side::Server };
        if watch.feed(side, piece).is_err() {
            return;
        }
        rest = behind;
    }
}

fn results(content: &[u8]) {
    if let Ok(body) = rpc::decode::body(content) {
        let _ = rpc::decode::read(&body);
    }
    let _ = (rpc::decode::null(content), rpc::decode::getport(content), rpc::decode::mount(content));
    let _ = (rpc::decode::lookup(content), rpc::decode::getattr(content), rpc::decode::create(content));
    let _ = (rpc::decode::read(content), rpc::decode::write(content), rpc::decode::commit(content));
    for ask in [nbd::client::Ask::Go, nbd::client::Ask::ExportName] {
        let mut handshake = nbd::client::Handshake::new(b"x", ask).with_structured_replies();
        let mut rest = content;
        let mut out = Vec::new();
        while let Ok(nbd::client::Progress::Used(used)) = handshake.next(rest, &mut out) {
            rest = &rest[used..];
        }
    }
}
