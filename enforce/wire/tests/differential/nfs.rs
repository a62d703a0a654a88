//! Calls of NFS, MOUNT and unknown programs to nfs-ganesha: ordinary ones, all operations of NFSv4 with random
//! arguments, and broken ones, in fragments, many at once. Each call has one reply.

use super::common::{Side, Watch};
use super::corpus::{ComparisonCount, CorpusChoices, Ending, PATIENCE, converse, feed_pieces};
use std::net::TcpStream;
use testkit::nfs::{GaneshaServer, MOUNT_PORT, NFS_PORT};
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::rpc::{MOUNT, NFS};

const AUTH: Credentials<'_> = Credentials::Unix { machine: "tests", uid: 0, gid: 0 };

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The body of a call without its mark.
fn call(xid: u32, procedure: [u32; 3], arguments: &[u8]) -> Vec<u8> {
    let [program, version, procedure] = procedure;
    // AUTH_UNIX of root on no machine and without groups, and no verifier.
    let mut out = words(&[xid, 0, 2, program, version, procedure, 1, 20, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(arguments);
    out
}

/// A record of the body in fragments of random lengths.
fn fragments(body: &[u8], choices: &mut CorpusChoices) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let len =
            if choices.below(3) == 0 { 4 * (1 + choices.below(40)) } else { rest.len() }.min(rest.len());
        let (piece, behind) = rest.split_at(len);
        let last = u32::from(behind.is_empty()) << 31;
        out.extend(words(&[u32::try_from(len).unwrap() | last]));
        out.extend(piece);
        rest = behind;
    }
    out
}

/// What `CallEncoder` appends, without its mark.
fn encoded(encode: impl FnOnce(&mut CallEncoder<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut CallEncoder::new(&mut out, AUTH));
    out.split_off(4)
}

/// One call, mostly with a handle that the server knows.
fn any_call(choices: &mut CorpusChoices, xid: u32, root: &[u8]) -> Vec<u8> {
    let handle = match choices.below(4) {
        0 => choices.bytes(16),
        _ => root.to_vec(),
    };
    let offset = choices.of(&[0, 4096, u64::MAX]);
    let count = choices.of(&[0u32, 100, 4096, 65_536, u32::MAX]);
    match choices.below(12) {
        0 => encoded(|calls| calls.null(xid)),
        1 => encoded(|calls| calls.read(xid, &handle, offset, count)),
        2 => {
            let len = choices.of(&[0, 1, 5, 4096, 30_000]);
            let data = choices.bytes(len);
            encoded(|calls| calls.write(xid, &handle, 0, StableHow::Unstable, &data))
        }
        3 => encoded(|calls| calls.lookup(xid, &handle, b"none")),
        4 => encoded(|calls| calls.getattr(xid, &handle)),
        5 => encoded(|calls| calls.create(xid, &handle, b"new", 0o600, Some(0))),
        6 => encoded(|calls| calls.mount(xid, b"/nowhere")),
        7 => {
            let procedure = choices.of(&[
                [NFS, 3, 22],
                [NFS, 9, 1],
                [100_099, 1, 1],
                [MOUNT, 3, 5],
                [NFS, 4, 2],
                [NFS, 4, 0],
            ]);
            call(xid, procedure, &[])
        }
        8 => {
            // A handle and nothing else, for any procedure of NFSv3.
            let mut arguments = words(&[u32::try_from(root.len()).unwrap()]);
            arguments.extend(root);
            arguments.resize(arguments.len().next_multiple_of(4), 0);
            let procedure = choices.of(&[1u32, 2, 3, 4, 5, 9, 12, 14, 16, 17, 18, 19, 20]);
            call(xid, [NFS, 3, procedure], &arguments)
        }
        _ => compound(choices, xid),
    }
}

/// PUTROOTFH, an operation with random arguments, and a READ which is never reached or refused.
fn compound(choices: &mut CorpusChoices, xid: u32) -> Vec<u8> {
    let minor = u32::try_from(choices.below(3)).unwrap();
    let operation = u32::try_from(choices.below(76)).unwrap();
    let mut arguments = words(&[0, minor, 3, 24, operation]);
    // Small numbers, so that lengths inside them are short and the rest is arguments.
    for _ in 0..60 {
        arguments.extend(words(&[u32::try_from(choices.below(4)).unwrap()]));
    }
    arguments.extend(words(&[25, 0, 0, 0, 0, 0, 0, 4096]));
    call(xid, [NFS, 4, 1], &arguments)
}

/// The lengths of complete records and the xid of each.
fn records(heard: &[u8]) -> Vec<(u32, usize)> {
    let mut found = Vec::new();
    let mut rest = heard;
    while rest.len() >= 8 {
        let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
        assert!(word(0) >> 31 == 1, "this server sends one fragment");
        let len = 4 + (word(0) & !(1 << 31)) as usize;
        if rest.len() < len {
            break;
        }
        found.push((word(4), len));
        rest = &rest[len..];
    }
    found
}

/// The handle of the export's root.
fn root_of(server: &mut GaneshaServer, choices: &mut CorpusChoices) -> Vec<u8> {
    let mut stream = server.connect(MOUNT_PORT);
    let mut watch = Watch::rpc();
    let said = fragments(&encoded(|calls| calls.mount(1, b"/export")), &mut CorpusChoices::new(1));
    watch.feed(Side::Client, &said).unwrap();
    let writer = stream.try_clone().unwrap();
    let (heard, ending) = converse(&mut stream, writer, &said, choices, |heard| records(heard).len() == 1);
    assert_eq!(ending, Ending::Done);
    watch.feed(Side::Server, &heard).unwrap();
    let [mount] = &watch.mounts[..] else { panic!("/export is granted") };
    mount.root.clone()
}

pub(super) fn calls(server: &mut GaneshaServer) {
    let mut choices = CorpusChoices::new(15);
    let mut counts = ComparisonCount::default();
    let root = root_of(server, &mut choices);
    for round in 0..60u32 {
        let mut stream: TcpStream = server.connect(NFS_PORT);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut watch = Watch::rpc();
        let mut said = Vec::new();
        let mut xids = Vec::new();
        for xid in (round * 1000..).take(40) {
            let record = fragments(&any_call(&mut choices, xid, &root), &mut choices);
            let mut alone = Watch::rpc();
            if alone.feed(Side::Client, &record).is_err() {
                counts.refused += 1;
                continue;
            }
            watch.feed(Side::Client, &record).expect("the same record");
            said.extend(record);
            xids.push(xid);
        }
        let writer = stream.try_clone().unwrap();
        let (heard, ending) =
            converse(&mut stream, writer, &said, &mut choices, |heard| records(heard).len() >= xids.len());
        let found = records(&heard);
        let missing: Vec<&u32> =
            xids.iter().filter(|xid| !found.iter().any(|(found, _)| found == *xid)).collect();
        assert_eq!(ending, Ending::Done, "unanswered: {missing:?}");
        feed_pieces(&mut watch, &heard, &mut choices).expect("replies are well-formed");
        let replies = watch.replies();
        let seen: Vec<(u32, usize)> = replies
            .iter()
            .map(|(reply, extent)| (u32::try_from(reply.id).unwrap(), usize::try_from(extent.len.0).unwrap()))
            .collect();
        assert_eq!(seen, found, "the same records");
        assert!(replies.iter().all(|(reply, extent)| reply.is_solicited && extent.last), "one reply each");
        assert!(watch.is_drained() && watch.wire.in_flight() == 0);
        assert_eq!(watch.requests().len(), xids.len(), "as many calls as were sent");
        counts.answered += xids.len();
    }
    counts.print("NFS");
}
