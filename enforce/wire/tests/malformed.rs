//! What is no message, and what is said about it: one row a defect.

mod common;
#[path = "common/defects.rs"]
mod defects;

use common::Watch;
use defects::{CLIENT, SERVER, table};
use units::Bytes;
use wire::memcached::MemcachedParser;
use wire::nbd::{Framing, NbdParser};
use wire::rpc::RpcParser;
use wire::rpc::client::{CallEncoder, Credentials};
use wire::{ParserLimits, ProtocolError, ReplyExpectation, RequestClass};

/// Numbers of 32 bits.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A mark of 2 GiB would be one that no limit passes.
const RECORD: u32 = 1 << 31;

#[test]
fn rpc() {
    let long_cred = words(&[RECORD | 1000, 1, 0, 2, 100_003, 3, 6, 1, 401]);
    let gss = words(&[RECORD | 100, 1, 0, 2, 100_003, 3, 6, 6, 0]);
    let handle = words(&[RECORD | 100, 1, 0, 2, 100_003, 3, 6, 0, 0, 0, 0, 65]);
    let write = words(&[RECORD | 64, 1, 0, 2, 100_003, 3, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 9]);
    let null = words(&[RECORD | 40, 1, 0, 2, 100_003, 3, 0, 0, 0, 0, 0]);
    let mount = words(&[RECORD | 44, 1, 0, 2, 100_005, 3, 1, 0, 0, 0, 0, 0]);
    let mounts: Vec<u8> =
        (0..17).flat_map(|xid| words(&[RECORD | 44, xid, 0, 2, 100_005, 3, 1, 0, 0, 0, 0, 0])).collect();
    table(
        Watch::rpc,
        &[
            (&[(CLIENT, b"GET / HTTP/1.1\r\n")], "RPC record in bytes: at most 1073741824, found 1195725856"),
            (
                &[(CLIENT, &words(&[RECORD | 1_073_741_825]))],
                "RPC record in bytes: at most 1073741824, found 1073741825",
            ),
            (&[(CLIENT, &words(&[RECORD]))], "RPC xid: needs 4 bytes, the message has 0 left"),
            (
                &[(CLIENT, &words(&[RECORD | 6, 1]))],
                "RPC message type: needs 4 bytes, the message has 2 left",
            ),
            (
                &[(CLIENT, &words(&[RECORD | 40, 1, 2]))],
                "RPC message type: expected 0 (call) or 1 (reply), found 0x2",
            ),
            (&[(CLIENT, &words(&[RECORD | 40, 1, 0, 3]))], "RPC version: expected 2, found 0x3"),
            (&[(CLIENT, &long_cred)], "RPC credentials: at most 400, found 401"),
            (
                &[(CLIENT, &gss)],
                "RPCSEC_GSS is refused: mount with sec=sys, arguments under Kerberos cannot be read",
            ),
            (&[(CLIENT, &handle)], "NFSv3 file handle: at most 64, found 65"),
            (&[(CLIENT, &write)], "NFSv3 WRITE data in bytes: needs 9 bytes, the message has 0 left"),
            (
                &[(SERVER, &words(&[RECORD | 12, 1, 2]))],
                "RPC message type: expected 1 (reply), or 0 (call) to the client, found 0x2",
            ),
            (
                &[(CLIENT, &null), (SERVER, &words(&[RECORD | 12, 1, 1, 2]))],
                "RPC reply state: expected 0 (accepted) or 1 (denied), found 0x2",
            ),
            (
                &[(CLIENT, &words(&[RECORD | 24, 9, 1, 0, 0, 0, 0]))],
                "client's reply to RPC xid 9: no outstanding request that it could answer",
            ),
            (
                &[(CLIENT, &mount), (SERVER, &words(&[RECORD | 32, 1, 1, 0, 0, 0, 0, 0, 65]))],
                "root of a MOUNT reply: at most 64, found 65",
            ),
            (&[(CLIENT, &mounts)], "outstanding MOUNT calls: at most 16, found 17"),
        ],
    );
}

#[test]
fn floods_of_fragments() {
    let limits = ParserLimits { fragments: 3, message: Bytes(100), ..ParserLimits::RPC };
    let watch = || Watch::new(RpcParser::new(limits), limits);
    // A null call in one fragment that is not the last, then empty ones.
    let open = words(&[40, 1, 0, 2, 100_003, 3, 0, 0, 0, 0, 0]);
    let none = words(&[0]);
    let more = words(&[61]);
    table(
        watch,
        &[
            (
                &[(CLIENT, &open), (CLIENT, &none), (CLIENT, &none), (CLIENT, &none)],
                "fragments of an RPC record: at most 3, found 4",
            ),
            (&[(CLIENT, &words(&[0, 0, 0, 0]))], "fragments of an RPC record: at most 3, found 4"),
            (&[(CLIENT, &open), (CLIENT, &more)], "RPC record in bytes: at most 100, found 101"),
        ],
    );
    let head = ParserLimits { head: 30, ..ParserLimits::RPC };
    let watch = || Watch::new(RpcParser::new(head), head);
    table(watch, &[(&[(CLIENT, &open)], "RPC head in bytes: at most 30, found 32")]);
}

#[test]
fn outstanding_requests_are_bounded() {
    let limits = ParserLimits { in_flight: 2, ..ParserLimits::RPC };
    let call = |xid| {
        let mut out = Vec::new();
        CallEncoder::new(&mut out, Credentials::None).null(xid);
        out
    };
    let mut watch = Watch::new(RpcParser::new(limits), limits);
    for xid in [1, 2, 2, 1] {
        watch.feed(CLIENT, &call(xid)).unwrap();
    }
    let repeated: Vec<bool> = watch.requests().iter().map(|request| request.is_retransmission).collect();
    assert_eq!(repeated, [false, false, true, true], "retransmissions are not counted again");
    let most = watch.feed(CLIENT, &call(3)).unwrap_err();
    assert_eq!(most, ProtocolError::AboveLimit { field: "outstanding RPC calls", max: 2, found: 3 });

    let nbd = ParserLimits { in_flight: 1, ..ParserLimits::NBD };
    let mut watch = Watch::new(NbdParser::after_handshake(nbd, Framing::Simple), nbd);
    watch.feed(CLIENT, &words(&[0x2560_9513, 3, 0, 1, 0, 0, 0])).unwrap();
    let most = watch.feed(CLIENT, &words(&[0x2560_9513, 3, 0, 2, 0, 0, 0])).unwrap_err();
    assert_eq!(most.to_string(), "outstanding NBD commands: at most 1, found 2");

    let memcached = ParserLimits { in_flight: 1, ..ParserLimits::MEMCACHED };
    let mut watch = Watch::new(MemcachedParser::new(memcached), memcached);
    watch.feed(CLIENT, b"get a\r\nset a 0 0 1 noreply\r\nx\r\n").unwrap();
    let most = watch.feed(CLIENT, b"get a\r\n").unwrap_err();
    assert_eq!(most.to_string(), "outstanding memcached requests: at most 1, found 2");
}

#[test]
fn nbd_handshake() {
    let hello = b"NBDMAGICIHAVEOPT\0\x03";
    let flags = words(&[3]);
    let opt = |option: u32, data: &[u8]| {
        let head = words(&[option, u32::try_from(data.len()).unwrap()]);
        [b"IHAVEOPT", &head[..], data].concat()
    };
    let ack = |option: u32| [&0x0003_e889_0455_65a9_u64.to_be_bytes()[..], &words(&[option, 1, 0])].concat();
    let long = [&b"IHAVEOPT"[..], &words(&[7, 65_537])].concat();
    let name = [&b"IHAVEOPT"[..], &words(&[1, 4097])].concat();
    let tls = opt(5, b"");
    let structured = opt(8, b"");
    let list = opt(3, b"");
    let many = list.repeat(17);
    let name_beyond = opt(7, &words(&[1]));
    let go = opt(7, &[0; 6]);
    let reply = words(&[0x2560_9513]);
    let old = [&b"NBDMAGIC"[..], &0x0000_4202_8186_1253_u64.to_be_bytes()].concat();
    let c = (CLIENT, &flags[..]);
    let s = (SERVER, &hello[..]);
    table(
        Watch::nbd,
        &[
            (&[(SERVER, b"SSH-2.0-OpenSSH_9")], "NBD greeting: expected NBDMAGIC, found 0x5353482d322e302d"),
            (
                &[(SERVER, b"NBDMAGICSSH-2.0-")],
                "NBD greeting style: expected IHAVEOPT, found 0x5353482d322e302d",
            ),
            (&[(SERVER, &old)], "the oldstyle NBD handshake is refused: configure the server for newstyle"),
            (
                &[s, (CLIENT, &words(&[4]))],
                "NBD client flags: expected flags 0 to 3 of the client, found 0x4",
            ),
            (&[s, c, (CLIENT, &[0; 16])], "NBD option magic: expected IHAVEOPT, found 0x0"),
            (&[s, c, (CLIENT, &long)], "NBD option in bytes: at most 65536, found 65537"),
            (&[s, c, (CLIENT, &name)], "NBD export name in bytes: at most 4096, found 4097"),
            (&[s, c, (CLIENT, &name_beyond)], "NBD export name in bytes: at most 0, found 1"),
            (
                &[s, c, (CLIENT, &opt(6, b"abc"))],
                "NBD option GO or INFO: needs 4 bytes, the message has 3 left",
            ),
            (&[s, c, (CLIENT, &many)], "NBD options ahead of their replies: at most 16, found 17"),
            (
                &[s, c, (SERVER, &ack(7))],
                "reply to NBD option 0: no outstanding request that it could answer",
            ),
            (
                &[s, c, (CLIENT, &structured), (SERVER, &ack(7))],
                "NBD option reply: expected the first option not answered, found 0x7",
            ),
            (
                &[s, c, (CLIENT, &structured), (SERVER, &[0; 20])],
                "NBD option reply magic: expected 0x3e889045565a9, found 0x0",
            ),
            (
                &[s, c, (CLIENT, &tls), (SERVER, &ack(5))],
                "NBD over TLS is refused: switch TLS off between this client and server",
            ),
            (
                &[s, c, (CLIENT, &go), (SERVER, &ack(7)), (CLIENT, &go)],
                "NBD request magic: expected 0x25609513, found 0x49484156",
            ),
            (
                &[s, c, (CLIENT, &go), (SERVER, &ack(7)), (SERVER, &reply)],
                "NBD reply magic: expected 0x67446698 (simple), found 0x25609513",
            ),
        ],
    );
}

#[test]
fn nbd_transmission() {
    let framings = [Framing::Simple, Framing::Structured, Framing::Extended];
    let read = words(&[0x2560_9513, 0, 0, 7, 0, 0, 512]);
    let limits = ParserLimits { message: Bytes(32 << 20), ..ParserLimits::NBD };
    let on = |framing| move || Watch::new(NbdParser::after_handshake(limits, framing), limits);
    let write = words(&[0x2560_9513, 1, 0, 7, 0, 0, 33_554_433]);
    let big_read = words(&[0x2560_9513, 0, 0, 7, 0, 0, 33_554_433]);
    let simple = words(&[0x6744_6698, 0, 0, 7]);
    let other = words(&[0x6744_6698, 0, 0, 8]);
    let short = words(&[0x668e_33ef, 1, 0, 7, 7]);
    let long = words(&[0x668e_33ef, 1, 0, 7, 33_554_441]);
    table(
        on(framings[0]),
        &[
            (&[(CLIENT, &write)], "NBD payload in bytes: at most 33554432, found 33554433"),
            (&[(CLIENT, &big_read)], "NBD READ in bytes: at most 33554432, found 33554433"),
            (
                &[(CLIENT, &read), (CLIENT, &read)],
                "NBD cookie: expected one that is not outstanding, found 0x7",
            ),
            (
                &[(CLIENT, &read), (SERVER, &other)],
                "reply to NBD cookie 8: no outstanding request that it could answer",
            ),
            (
                &[(CLIENT, &read), (SERVER, &short)],
                "NBD reply magic: expected 0x67446698 (simple), found 0x668e33ef",
            ),
        ],
    );
    table(
        on(framings[1]),
        &[
            (
                &[(CLIENT, &read), (SERVER, &simple)],
                "NBD reply magic: expected 0x668e33ef (structured) for data, found 0x67446698",
            ),
            (
                &[(CLIENT, &read), (SERVER, &short)],
                "offset of an NBD data chunk: needs 8 bytes, the message has 7 left",
            ),
            (&[(CLIENT, &read), (SERVER, &long)], "NBD chunk in bytes: at most 33554440, found 33554441"),
        ],
    );
    let unannounced = words(&[0x21e4_1c71, 1, 0, 7, 0, 0, 0, 512]);
    let huge = words(&[0x21e4_1c71, 0x0020_0001, 0, 7, 0, 0, 1, 0]);
    table(
        on(framings[2]),
        &[
            (&[(CLIENT, &read)], "NBD request magic: expected 0x21e41c71 (extended), found 0x25609513"),
            (
                &[(CLIENT, &unannounced)],
                "flags of an extended NBD WRITE: expected the payload flag, found 0x0",
            ),
            (&[(CLIENT, &huge)], "NBD payload in bytes: at most 33554432, found 4294967296"),
            (&[(SERVER, &simple)], "NBD reply magic: expected 0x6e8a278c (extended), found 0x67446698"),
        ],
    );
}

/// Data hidden behind a WRITE in its compound is charged; a second READ is found; the unknown ends the search.
#[test]
fn compounds() {
    let compound = |operations: &[u32]| {
        let count = 3;
        let head = [1, 0, 2, 100_003, 4, 1, 0, 0, 0, 0, 0, 0, count, 22, 4, 1];
        let body = [&head[..], operations].concat();
        [words(&[RECORD | (u32::try_from(body.len()).unwrap() * 4)]), words(&body)].concat()
    };
    let read = [25, 0, 0, 0, 0, 0, 4096, 1000];
    let write = [38, 0, 0, 0, 0, 0, 8192, 2, 4, 9];
    let hidden = [&write[..], &[0; 1000]].concat();
    let cases: [(Vec<u32>, RequestClass, Option<u64>); 6] = [
        ([read, read].concat(), RequestClass::Read(Bytes(2000)), Some(4096)),
        ([&write[..], &[9, 0]].concat(), RequestClass::Write(Bytes(4)), Some(8192)),
        (hidden, RequestClass::Write(Bytes(4000)), Some(8192)),
        ([&read[..], &write].concat(), RequestClass::Write(Bytes(1004)), Some(8192)),
        ([&[76][..], &read].concat(), RequestClass::Control, None),
        (vec![9, 0, 10], RequestClass::Control, None),
    ];
    for (operations, class, offset) in cases {
        let mut watch = Watch::rpc();
        watch.feed(CLIENT, &compound(&operations)).unwrap();
        let request = watch.requests()[0];
        assert_eq!((request.class, request.position.map(|position| position.offset)), (class, offset));
        assert_eq!(request.reply, ReplyExpectation::Always);
    }
}

#[test]
fn nfs2_is_recognised() {
    let handle = [5; 8];
    let read = [&[1, 0, 2, 100_003, 2, 6, 0, 0, 0, 0][..], &handle, &[4096, 512, 0]].concat();
    let write = [&[2, 0, 2, 100_003, 2, 8, 0, 0, 0, 0][..], &handle, &[0, 4096, 0, 8, 1, 1]].concat();
    let mut watch = Watch::rpc();
    for body in [read, write] {
        let mark = RECORD | (u32::try_from(body.len()).unwrap() * 4);
        watch.feed(CLIENT, &[words(&[mark]), words(&body)].concat()).unwrap();
    }
    let requests = watch.requests();
    assert_eq!(
        (requests[0].class, requests[1].class),
        (RequestClass::Read(Bytes(512)), RequestClass::Write(Bytes(8)))
    );
    assert_eq!(requests[0].position, requests[1].position);
}

/// A server may call its client on the same connection (NFSv4.1); neither call nor answer disturbs the count.
#[test]
fn calls_of_the_server_pass() {
    let mut watch = Watch::rpc();
    watch.feed(SERVER, &words(&[RECORD | 40, 9, 0, 2, 0x4000_0000, 1, 1, 0, 0, 0, 0])).unwrap();
    watch.feed(CLIENT, &words(&[RECORD | 24, 9, 1, 0, 0, 0, 0])).unwrap();
    assert!(!watch.replies()[0].0.is_solicited);
    let [answer] = watch.requests()[..] else { panic!("one record of the client") };
    assert!(answer.is_callback_reply && answer.reply == ReplyExpectation::Never && answer.id == 9);
    assert_eq!(watch.wire.in_flight(), 0);
    watch.feed(CLIENT, &words(&[RECORD | 24, 9, 1, 0, 0, 0, 0])).expect_err("answered before");
}
