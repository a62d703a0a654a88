//! Barriers that a proxy injects behind memcached requests which may stay silent: every reply then belongs to one
//! request without doubt, and what the client sees is what it would have seen.

mod common;

use common::{Event, Side, Watch};
use wire::memcached::MemcachedParser;
use wire::nbd::{Framing, NbdParser};
use wire::rpc::RpcParser;
use wire::{InjectedBarrier, ParseStep, ParserLimits, ProtocolParser, ReplyExpectation};

const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;

/// Feeds requests, each as one piece, and injects a barrier where the parser wants one; the identifiers of barriers.
fn ask(watch: &mut Watch, requests: &[&[u8]]) -> Vec<u64> {
    let mut barriers = Vec::new();
    for request in requests {
        watch.feed(CLIENT, request).expect("well-formed");
        barriers.extend(watch.wire.inject_barrier().map(|barrier| barrier.id));
    }
    barriers
}

/// Identifiers of complete replies, and whether each answers a barrier.
fn answered(watch: &Watch) -> Vec<(u64, bool)> {
    let complete = watch.replies().into_iter().filter(|(_, extent)| extent.last);
    complete.map(|(reply, _)| (reply.id, reply.is_injected)).collect()
}

#[test]
fn errors_belong_to_the_silent_request_before_the_barrier() {
    let mut watch = Watch::memcached();
    let said: [&[u8]; 5] = [
        b"get a\r\n",
        b"set a 0 0 1 noreply\r\nx\r\n",
        b"get b\r\n",
        b"set a 0 0 9 noreply\r\n123456789\r\n",
        b"get c\r\n",
    ];
    assert_eq!(ask(&mut watch, &said), [2, 5]);
    assert_eq!(watch.wire.in_flight(), 7, "the silent ones wait, too");
    watch
        .feed(SERVER, b"END\r\nVERSION 1\r\nEND\r\nSERVER_ERROR out of memory\r\nVERSION 1\r\nEND\r\n")
        .unwrap();
    assert_eq!(answered(&watch), [(0, false), (2, true), (3, false), (4, false), (5, true), (6, false)]);
    assert!(watch.replies().iter().all(|(reply, _)| reply.is_solicited));
    assert_eq!(watch.wire.in_flight(), 0);
}

/// Without barriers, as in a load generator, requests with `noreply` do not wait.
#[test]
fn who_injects_nothing_sees_no_difference() {
    let mut watch = Watch::memcached();
    watch.feed(CLIENT, b"set a 0 0 1 noreply\r\nx\r\ndelete a noreply\r\nget a\r\n").unwrap();
    assert_eq!(watch.wire.in_flight(), 1);
    assert_eq!(watch.requests().last().map(|request| request.id), Some(2));
}

#[test]
fn the_client_can_ask_for_the_version_itself() {
    let mut watch = Watch::memcached();
    assert_eq!(ask(&mut watch, &[b"version\r\n", b"mg a v q\r\n", b"version\r\n"]), [2]);
    watch.feed(SERVER, b"VERSION 1\r\nVERSION 1\r\nVERSION 1\r\n").unwrap();
    assert_eq!(answered(&watch), [(0, false), (2, true), (3, false)]);
}

#[test]
fn binary_requests_get_a_noop() {
    let message = |magic: u8, opcode: u8, opaque: [u8; 4]| {
        [&[magic, opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &opaque, &[0; 8]].concat()
    };
    let mut watch = Watch::memcached();
    let flush = message(0x80, 0x18, *b"twir");
    let noop = message(0x80, 0x0a, *b"twir");
    watch.feed(CLIENT, &flush).unwrap();
    let barrier = watch.wire.inject_barrier().expect("FLUSHQ may be silent");
    let mut other = MemcachedParser::new(ParserLimits::MEMCACHED);
    let step = other.next_request(barrier.bytes).expect("a barrier is a request");
    let ParseStep::Message { message: head, extent } = step else { panic!("complete") };
    assert_eq!((head.reply, extent.len.0), (ReplyExpectation::Always, barrier.bytes.len() as u64));
    // The client's own no-op looks the same, and is told apart by its place.
    assert_eq!(ask(&mut watch, &[&noop]), [0; 0]);
    let done = message(0x81, 0x0a, *b"twir");
    watch.feed(SERVER, &[done.clone(), done].concat()).unwrap();
    assert_eq!(answered(&watch), [(barrier.id, true), (2, false)]);
}

#[test]
fn none_where_nothing_would_answer() {
    let quit: [&[u8]; 4] = [b"quit\r\n", b"quit now\r\n", b"shutdown\r\n", b"shutdown graceful\r\n"];
    for said in quit {
        assert_eq!(ask(&mut Watch::memcached(), &[said]), [0; 0], "{said:?}");
    }
    for opcode in [0x07, 0x17] {
        let quit = [&[0x80, opcode][..], &[0; 22]].concat();
        assert_eq!(ask(&mut Watch::memcached(), &[&quit]), [0; 0]);
    }
    let loud: [&[u8]; 3] = [b"get a\r\n", b"set a 0 0 1\r\nx\r\n", b"mn q\r\n"];
    assert_eq!(ask(&mut Watch::memcached(), &loud), [0; 0], "what is answered needs none");
    // One request, one barrier.
    let mut watch = Watch::memcached();
    assert_eq!(ask(&mut watch, &[b"delete a noreply\r\n"]), [1]);
    assert_eq!(watch.wire.inject_barrier(), None);
    let disconnect = [&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 2][..], &[0; 20]].concat();
    let mut nbd = NbdParser::after_handshake(ParserLimits::NBD, Framing::Simple);
    nbd.next_request(&disconnect).unwrap();
    assert_eq!((nbd.inject_barrier(), RpcParser::new(ParserLimits::RPC).inject_barrier()), (None, None));
}

/// A flood of silent requests with their barriers stays within the limit.
#[test]
fn barriers_are_bounded() {
    let limits = ParserLimits { in_flight: 10, ..ParserLimits::MEMCACHED };
    let mut watch = Watch::new(MemcachedParser::new(limits), limits);
    let mut accepted = 0;
    while watch.feed(CLIENT, b"mg k q\r\n").is_ok() {
        let InjectedBarrier { id, bytes } = watch.wire.inject_barrier().expect("it may be silent");
        assert_eq!((id, bytes), (2 * accepted + 1, &b"version\r\n"[..]));
        accepted += 1;
    }
    assert_eq!((accepted, watch.wire.in_flight()), (5, 10));
    assert!(watch.events.iter().all(|event| matches!(event, Event::Request(..))));
}
