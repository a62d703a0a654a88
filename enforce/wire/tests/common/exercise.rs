//! What tests on random input and the fuzz target do with bytes.

use super::common::{Side, Watch};
use units::Bytes;
use wire::http1::HttpParser;
use wire::memcached::MemcachedParser;
use wire::nbd::{self, Framing};
use wire::resp::RespParser;
use wire::rpc::{self, RpcParser};
use wire::{ParserLimits, ProtocolParser};

const TIGHT: ParserLimits = ParserLimits { message: Bytes(4096), head: 1100, fragments: 5, in_flight: 3 };

/// A connection of one of eleven kinds, with wide or tight limits, with or without barriers.
#[allow(unreachable_pub, reason = "a test includes this file as a module, the fuzz crate re-exports it")]
pub fn connection(choice: u8) -> Watch {
    let fit = |limits| if choice & 8 == 0 { limits } else { TIGHT };
    let rpc = fit(ParserLimits::RPC);
    let nbd = fit(ParserLimits::NBD);
    let memcached = fit(ParserLimits::MEMCACHED);
    let on = |framing| Watch::new(nbd::NbdParser::after_handshake(nbd, framing), nbd);
    let http = fit(ParserLimits::HTTP);
    let resp = fit(ParserLimits::RESP);
    let mut watch = match choice & 7 {
        0 if choice & 32 != 0 => Watch::new(HttpParser::new(http), http),
        1 if choice & 32 != 0 => {
            let mut parser = RespParser::new(resp);
            if choice & 64 != 0 {
                parser.mediate();
            }
            Watch::new(parser, resp)
        }
        0 | 1 => Watch::new(RpcParser::new(rpc), rpc),
        2 => Watch::new(nbd::NbdParser::new(nbd), nbd),
        3 => on(Framing::Simple),
        4 => on(Framing::Structured),
        5 => on(Framing::Extended),
        _ => Watch::new(MemcachedParser::new(memcached), memcached),
    };
    watch.injects = choice & 16 != 0;
    watch
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
    if let Ok(body) = rpc::decode::record_body(content) {
        let _ = rpc::decode::read(&body);
    }
    let _ = (rpc::decode::null(content), rpc::decode::getport(content), rpc::decode::mount(content));
    let _ = (rpc::decode::lookup(content), rpc::decode::getattr(content), rpc::decode::create(content));
    let _ = (rpc::decode::read(content), rpc::decode::write(content), rpc::decode::commit(content));
    for ask in [nbd::client::ExportOption::Go, nbd::client::ExportOption::ExportName] {
        let mut handshake = nbd::client::ClientHandshake::new(b"x", ask).with_structured_replies();
        let mut rest = content;
        let mut out = Vec::new();
        while let Ok(nbd::client::HandshakeStep::Used(used)) = handshake.advance(rest, &mut out) {
            rest = &rest[used..];
        }
    }
}
