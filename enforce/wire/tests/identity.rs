//! What a connection is allowed to use: the trees that MOUNT granted, the handles that requests name, and the export of
//! an NBD connection, whatever order a client asks in.

mod common;

use common::{Side, Watch};
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::{GrantedMount, ParserLimits, ProtocolParser, nbd::NbdParser, rpc::RpcParser};

const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn record(body: &[u8]) -> Vec<u8> {
    [&words(&[1 << 31 | u32::try_from(body.len()).unwrap()])[..], body].concat()
}

/// A MOUNT call of a version.
fn mount(version: u32, xid: u32, path: &[u8]) -> Vec<u8> {
    let mut body = words(&[xid, 0, 2, 100_005, version, 1, 0, 0, 0, 0, u32::try_from(path.len()).unwrap()]);
    body.extend(path);
    body.resize(body.len().next_multiple_of(4), 0);
    record(&body)
}

/// An accepted reply with these results.
fn reply(xid: u32, results: &[u32]) -> Vec<u8> {
    record(&[words(&[xid, 1, 0, 0, 0, 0]), words(results)].concat())
}

fn granted(path: &[u8], root: &[u8]) -> GrantedMount {
    GrantedMount { path: path.to_vec(), root: root.to_vec() }
}

#[test]
fn each_mount_is_granted_what_its_own_reply_says() {
    let mut watch = Watch::rpc();
    watch
        .feed(CLIENT, &[mount(3, 1, b"/mine"), mount(3, 2, b"/theirs"), mount(1, 3, b"/old")].concat())
        .unwrap();
    watch.feed(SERVER, &reply(2, &[13])).unwrap();
    assert_eq!(watch.mounts, [], "a refusal grants nothing");
    watch.feed(SERVER, &reply(3, &[0, 1, 2, 3, 4, 5, 6, 7, 8])).unwrap();
    watch.feed(SERVER, &reply(1, &[0, 4, 0xabcd_ef01, 1, 1])).unwrap();
    let old = words(&[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(watch.mounts, [granted(b"/old", &old), granted(b"/mine", &[0xab, 0xcd, 0xef, 1])]);
    watch.feed(SERVER, &reply(1, &[0, 4, 1, 1, 1])).unwrap();
    assert_eq!(watch.mounts.len(), 2, "a second reply grants nothing");
    // A server that does not accept the call, or denies it.
    watch.feed(CLIENT, &[mount(3, 4, b"/a"), mount(3, 5, b"/b")].concat()).unwrap();
    let rejected = [record(&words(&[4, 1, 0, 0, 0, 1])), record(&words(&[5, 1, 1, 0, 0, 0]))].concat();
    watch.feed(SERVER, &rejected).unwrap();
    assert_eq!((watch.mounts.len(), watch.wire.in_flight()), (2, 0));
}

/// A repeated call grants what it asked for; another one under the same xid nothing, since its answer may be the other's.
#[test]
fn an_xid_that_names_two_paths_grants_neither() {
    let call = |xid| {
        let mut out = Vec::new();
        CallEncoder::new(&mut out, Credentials::None).lookup(xid, b"root", b"name");
        out
    };
    let ok = |xid| reply(xid, &[0, 4, 7, 0]);
    let mut watch = Watch::rpc();
    watch.feed(CLIENT, &[mount(3, 1, b"/mine"), mount(3, 1, b"/mine")].concat()).unwrap();
    watch.feed(SERVER, &ok(1)).unwrap();
    assert_eq!(watch.mounts, [granted(b"/mine", &[0, 0, 0, 7])]);
    for other in [mount(3, 2, b"/theirs"), call(2)] {
        watch.feed(CLIENT, &[mount(3, 2, b"/mine"), other.clone()].concat()).unwrap();
        watch.feed(SERVER, &ok(2)).unwrap();
        watch.feed(CLIENT, &[other, mount(3, 2, b"/mine")].concat()).unwrap();
        watch.feed(SERVER, &ok(2)).unwrap();
    }
    assert_eq!(watch.mounts.iter().filter(|mount| mount.path == b"/mine").count(), 1);
}

#[test]
fn requests_name_the_handle_that_they_are_about() {
    let name = |body: &[u8]| {
        let mut parser = RpcParser::new(ParserLimits::RPC);
        parser.next_request(&record(body)).expect("well-formed");
        parser.file_handle().map(<[u8]>::to_vec)
    };
    let call = |program: u32, version: u32, procedure: u32, arguments: &[u32]| {
        name(&words(&[&[1, 0, 2, program, version, procedure, 0, 0, 0, 0], arguments].concat()))
    };
    let handle = [5, 0x0102_0304, 0x0500_0000, 0, 0, 0, 0, 0, 0, 0, 0];
    let old = [9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0];
    for procedure in 1..=21 {
        assert_eq!(call(100_003, 3, procedure, &handle), Some(vec![1, 2, 3, 4, 5]), "NFSv3 {procedure}");
    }
    for procedure in 0..=17 {
        let named = call(100_003, 2, procedure, &old);
        assert_eq!(named, (![0, 3, 7].contains(&procedure)).then(|| words(&[9; 8])), "NFSv2 {procedure}");
    }
    assert_eq!(call(100_227, 3, 1, &handle), Some(vec![1, 2, 3, 4, 5]), "GETACL");
    assert_eq!((call(100_003, 3, 0, &[]), call(100_003, 4, 0, &[])), (None, None), "NULL");
    let compound = |operations: &[u32]| call(100_003, 4, 1, &[&[0, 1][..], operations].concat());
    assert_eq!(compound(&[4, 24, 22, 2, 0x0708_0000, 22, 1, 9 << 24, 10]), Some(vec![9]), "the last of two");
    // READ: a state id, an offset and a count.
    let read = [25, 0, 0, 0, 0, 0, 0, 512];
    let put = |byte: u32| [22, 1, byte << 24];
    let one = [&[3][..], &put(7), &put(8), &read].concat();
    assert_eq!(compound(&one), Some(vec![8]), "that of the data");
    let behind = [&[3][..], &put(8), &read, &put(7)].concat();
    assert_eq!(compound(&behind), Some(vec![8]), "that of the data, whatever follows");
    let two = [&[4][..], &put(7), &read, &put(8), &read].concat();
    assert_eq!(compound(&two), Some(vec![]), "data of two files are nobody's");
    assert_eq!(compound(&[2, 24, 10]), None);
    assert_eq!(compound(&[1, 22, 0]), Some(vec![]));
    // The next request that names none.
    let mut parser = RpcParser::new(ParserLimits::RPC);
    let mut out = Vec::new();
    let mut calls = CallEncoder::new(&mut out, Credentials::None);
    calls.write(1, b"file", 0, StableHow::Unstable, b"data");
    let len = out.len();
    CallEncoder::new(&mut out, Credentials::None).null(2);
    parser.next_request(&out).unwrap();
    assert_eq!(parser.file_handle(), Some(&b"file"[..]));
    parser.next_request(&out[len..]).unwrap();
    assert_eq!((parser.file_handle(), parser.export_name()), (None, None));
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &words(&[option, u32::try_from(data.len()).unwrap()])[..], data].concat()
}

fn named(number: u32, name: &[u8]) -> Vec<u8> {
    option(number, &[&words(&[u32::try_from(name.len()).unwrap()])[..], name, &[0; 2]].concat())
}

fn option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let head = words(&[0x0003_e889, 0x0455_65a9, option, kind, u32::try_from(data.len()).unwrap()]);
    [&head[..], data].concat()
}

/// A connection behind its greeting.
fn greeted() -> Watch {
    let mut watch = Watch::nbd();
    watch.feed(SERVER, b"NBDMAGICIHAVEOPT\0\x03").unwrap();
    watch.feed(CLIENT, &words(&[3])).unwrap();
    watch
}

const REFUSED: u32 = 0x8000_0006;

#[test]
fn the_export_is_the_one_that_the_server_granted() {
    // Refused, asked about, listed, and granted at last, all options ahead of their replies.
    let mut watch = greeted();
    let meta = [&words(&[4])[..], b"meta", &words(&[1, 4]), b"base"].concat();
    let asked = [
        named(7, b"secret"),
        named(6, b"secret"),
        option(3, b""),
        option(10, &meta),
        option(9, &meta),
        named(7, b"mine"),
    ];
    watch.feed(CLIENT, &asked.concat()).unwrap();
    let replies = [
        option_reply(7, REFUSED, b"no"),
        option_reply(6, 3, &[0; 12]),
        option_reply(6, 1, b""),
        option_reply(3, 2, b"\0\0\0\x06secret"),
        option_reply(3, 1, b""),
        option_reply(10, 4, b"\0\0\0\x01base"),
        option_reply(10, 1, b""),
        option_reply(9, 1, b""),
        option_reply(7, 3, &[0; 12]),
    ];
    for reply in replies {
        watch.feed(SERVER, &reply).unwrap();
        assert_eq!(watch.wire.export_name(), None);
    }
    watch.feed(SERVER, &option_reply(7, 1, b"")).unwrap();
    assert_eq!(watch.wire.export_name(), Some(&b"mine"[..]));
}

#[test]
fn what_is_asked_behind_a_granted_export_changes_nothing() {
    for behind in [named(7, b"secret"), named(6, b"secret"), option(1, b"secret"), option(2, b"")] {
        let mut watch = greeted();
        watch.feed(CLIENT, &[named(7, b"mine"), behind.clone()].concat()).unwrap();
        watch.feed(SERVER, &option_reply(7, 1, b"")).unwrap();
        assert_eq!((watch.wire.export_name(), watch.wire.in_flight()), (Some(&b"mine"[..]), 0));
        watch.feed(SERVER, &option_reply(7, 1, b"")).expect_err("the handshake is over");
        watch.feed(CLIENT, &behind).expect_err("options are over");
        assert_eq!(watch.wire.export_name(), Some(&b"mine"[..]));
    }
}

#[test]
fn the_default_export_has_an_empty_name() {
    let mut watch = greeted();
    watch.feed(CLIENT, &named(7, b"")).unwrap();
    watch.feed(SERVER, &option_reply(7, 1, b"")).unwrap();
    assert_eq!(watch.wire.export_name(), Some(&b""[..]));
    let mut watch = greeted();
    watch.feed(CLIENT, &option(1, b"")).unwrap();
    assert_eq!(watch.wire.export_name(), None);
    watch.feed(SERVER, &[0; 10]).unwrap();
    assert_eq!(watch.wire.export_name(), Some(&b""[..]));
    // An aborted handshake has none.
    let mut watch = greeted();
    watch.feed(CLIENT, &[named(6, b"mine"), option(2, b"")].concat()).unwrap();
    watch.feed(SERVER, &[option_reply(6, 1, b""), option_reply(2, 1, b"")].concat()).unwrap();
    assert_eq!((watch.wire.export_name(), NbdParser::new(ParserLimits::NBD).export_name()), (None, None));
}
