//! What is no message of memcached, and what is said about it; and replies that could be those of several requests.

mod common;
#[path = "common/defects.rs"]
mod defects;

use common::Watch;
use defects::{CLIENT, SERVER, table};
use wire::ProtocolError;

#[test]
fn memcached() {
    let key = [b"get ", &b"k".repeat(251)[..], b"\r\n"].concat();
    let line = [b"get ", &b"k".repeat(70_000)[..]].concat();
    let binary = [&[0x80, 1, 0, 9, 8, 0, 0, 0, 0, 0, 0, 16][..], &[0; 12]].concat();
    let unknown = [&[0x80, 0x1b, 0, 0, 4, 0, 0, 0, 0, 0, 0, 4][..], &[0; 12]].concat();
    let get = [&[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 12], b"k"].concat();
    let stray = [&[0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9][..], &[0; 8]].concat();
    table(
        Watch::memcached,
        &[
            (&[(CLIENT, &key)], "memcached key in bytes: at most 250, found 251"),
            (&[(CLIENT, &line)], "memcached line in bytes: at most 65536, found 65537"),
            (&[(CLIENT, b"\x16\x03\x01\x02\n")], "memcached command: expected a word"),
            (&[(CLIENT, &unknown)], "memcached binary opcode: expected a known one, or no body, found 0x1b"),
            (&[(CLIENT, b"watch fetchers\r\n")], "memcached's watch is refused: connect without the proxy"),
            (
                &[(CLIENT, &binary)],
                "extras and key of a memcached binary message: needs 17 bytes, the message has 16 left",
            ),
            (
                &[(CLIENT, &get), (CLIENT, b"get k\r\n")],
                "memcached binary magic: expected 0x80 (request), found 0x67",
            ),
            (
                &[(CLIENT, &get), (SERVER, &stray)],
                "memcached reply: expected opcode and opaque value of the first request not answered",
            ),
            (
                &[(SERVER, b"STORED\r\n")],
                "memcached reply after request 0: no outstanding request that it could answer",
            ),
            (
                &[(CLIENT, b"get k\r\n"), (SERVER, b"STORED\r\n")],
                "memcached reply: expected VALUE, END or an error, for get",
            ),
            (
                &[(CLIENT, b"get k\r\n"), (SERVER, b"VALUE k 0 x\r\n")],
                "length in a VALUE line: expected a number",
            ),
            (
                &[(CLIENT, b"delete k\r\n"), (SERVER, b"END\r\n")],
                "memcached reply: expected one line, for a text command",
            ),
            (
                &[(CLIENT, b"stats\r\n"), (SERVER, b"key=a\r\n")],
                "memcached reply: expected STAT lines and END, for stats",
            ),
            (
                &[(CLIENT, b"mg k v O1\r\n"), (SERVER, b"HD O2\r\n")],
                "memcached reply: expected a meta code of the first request not answered, with its opaque value",
            ),
        ],
    );
}

/// Behind quiet requests some replies could be anybody's; the count comes out right.
#[test]
fn doubtful_replies_are_made_up_for() {
    let mut watch = Watch::memcached();
    watch.feed(CLIENT, b"md a q\r\nmd b\r\nmg c v\r\n").unwrap();
    // A version that is silent about the first miss.
    watch.feed(SERVER, b"NF\r\nEN\r\n").unwrap();
    assert_eq!(watch.wire.in_flight(), 0);
    // A quiet miss, then a hit that is not quiet, without opaque values.
    watch.feed(CLIENT, b"mg a v q\r\nmg b v\r\nmn\r\n").unwrap();
    watch.feed(SERVER, b"VA 1\r\nx\r\nMN\r\n").unwrap();
    assert_eq!(watch.wire.in_flight(), 0);
    watch.feed(CLIENT, b"mg a q\r\nget b\r\nmn\r\n").unwrap();
    watch.feed(SERVER, b"SERVER_ERROR out of memory\r\nMN\r\n").unwrap();
    assert_eq!(watch.wire.in_flight(), 0);
    watch.feed(CLIENT, b"set a 0 0 1 noreply\r\nx\r\nmn\r\n").unwrap();
    watch.feed(SERVER, b"SERVER_ERROR out of memory\r\nMN\r\n").unwrap();
    let asked: Vec<bool> = watch.replies().iter().map(|(reply, _)| reply.is_solicited).collect();
    assert_eq!(asked, [true, true, true, true, true, true, false, true]);
    assert_eq!(watch.wire.in_flight(), 0);
}

/// The same with the binary protocol and one opaque value for all.
#[test]
fn equal_opaque_values_are_made_up_for() {
    let message = |magic: u8, opcode: u8, body: &[u8]| {
        let key = if magic == 0x80 { body.len() } else { 0 };
        let head = [
            magic,
            opcode,
            0,
            u8::try_from(key).unwrap(),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            u8::try_from(body.len()).unwrap(),
        ];
        [&head[..], &[0; 12], body].concat()
    };
    let mut watch = Watch::memcached();
    let asked =
        [message(0x80, 9, b"a"), message(0x80, 0, b"b"), message(0x80, 0x0a, b""), message(0x80, 0, b"c")];
    watch.feed(CLIENT, &asked.concat()).unwrap();
    watch.feed(SERVER, &[message(0x81, 0, b"value"), message(0x81, 0x0a, b"")].concat()).unwrap();
    assert_eq!(watch.wire.in_flight(), 1);
    let stray = watch.feed(SERVER, &message(0x81, 0x0b, b"1.6")).unwrap_err();
    assert!(matches!(stray, ProtocolError::Line { .. }), "behind a no-op nothing is made up for: {stray}");
}
