//! Binary commands with memcached: all opcodes with bodies of many shapes, a no-op behind each.

use super::common::{Side, Watch};
use super::corpus::{ComparisonCount, CorpusChoices, Ending, PATIENCE, converse, feed_pieces};
use super::memcached_server::{MemcachedProcess, binary_request};
use wire::ReplyExpectation;

const LAST_OPAQUE: u32 = 0xfeed_f00d;

/// Opcode, status, opaque and body length of each complete reply.
fn replies(heard: &[u8]) -> Vec<(u8, u16, u32, usize)> {
    let mut found = Vec::new();
    let mut rest = heard;
    while rest.len() >= 24 {
        let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
        let body = word(8) as usize;
        if rest.len() < 24 + body {
            break;
        }
        found.push((rest[1], u16::from_be_bytes([rest[6], rest[7]]), word(12), body));
        rest = &rest[24 + body..];
    }
    found
}

fn corpus() -> Vec<Vec<u8>> {
    let count: Vec<u8> = [&1u64.to_be_bytes()[..], &5u64.to_be_bytes(), &[0; 4]].concat();
    let long = [b'k'; 251];
    let big = vec![b'z'; 1_500_000];
    let shapes: [(&[u8], &[u8], &[u8]); 16] = [
        (b"", b"", b""),
        (b"", b"a", b""),
        (b"", b"none", b""),
        (b"", b"n", b""),
        (&[0; 8], b"a", b"v"),
        (&[0; 8], b"new", b""),
        (&[0; 8], b"none", b"get a\r\n"),
        (&count, b"n", b""),
        (&count, b"a", b""),
        (&[0; 4], b"a", b""),
        (&[0; 4], b"none", b""),
        (&[0; 4], b"", b""),
        (b"", b"a", b"v"),
        (b"", &long, b""),
        (b"xxx", b"a", b"abc"),
        (b"", b"reset", b""),
    ];
    let mut all = Vec::new();
    for opcode in 0..=255 {
        for (extras, key, value) in shapes {
            all.push(binary_request(opcode, extras, key, value, 7));
        }
    }
    for opcode in [0x01, 0x11, 0x0e, 0x19] {
        let extras = if opcode & 1 == 1 && opcode != 0x19 { &[0; 8][..] } else { b"" };
        all.push(binary_request(opcode, extras, b"big", &big, 7));
    }
    all
}

pub(super) fn one_by_one() {
    let Some(mut server) = MemcachedProcess::start() else { return };
    let mut choices = CorpusChoices::new(13);
    let mut counts = ComparisonCount::default();
    for request in corpus() {
        let shown = &request[..request.len().min(40)];
        let mut watch = Watch::memcached();
        if watch.feed(Side::Client, &request).is_err() {
            counts.refused += 1;
            continue;
        }
        let [head] = watch.requests()[..] else { panic!("one request: {shown:?}") };
        let injected = watch.wire.inject_barrier();
        let barrier = injected
            .map_or(binary_request(0x0a, b"", b"", b"", LAST_OPAQUE), |barrier| barrier.bytes.to_vec());
        let opaque = u32::from_be_bytes(barrier[12..16].try_into().unwrap());
        if injected.is_none() {
            watch.feed(Side::Client, &barrier).unwrap();
        }
        let before =
            [binary_request(0x01, &[0; 8], b"a", b"xyz", 1), binary_request(0x01, &[0; 8], b"n", b"5", 2)]
                .concat();
        let mut stream = server.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let writer = stream.try_clone().unwrap();
        let said = [before, request.clone(), barrier].concat();
        let (heard, ending) = converse(&mut stream, writer, &said, &mut choices, |heard| {
            replies(heard).last().is_some_and(|reply| reply.2 == opaque)
        });
        assert_ne!(ending, Ending::Silent, "{shown:?} is followed by a no-op: {:?}", replies(&heard));
        let heard = &heard[48.min(heard.len())..];
        let found = replies(heard);
        assert_eq!(
            feed_pieces(&mut watch, heard, &mut choices),
            Ok(()),
            "{shown:?} was answered by {found:?}"
        );
        assert_eq!(watch.replies().len(), found.len(), "{shown:?}: {found:?}");
        if ending == Ending::Closed {
            counts.closed += 1;
            continue;
        }
        assert!(watch.is_drained() && watch.wire.in_flight() == 0, "{shown:?}: {found:?}");
        let complete: Vec<_> = watch.replies().into_iter().filter(|(_, extent)| extent.last).collect();
        let (last, others) = complete.split_last().expect("a no-op");
        assert_eq!(last.0.is_injected, injected.is_some());
        assert!(
            others.iter().all(|(reply, _)| reply.id == head.id) && others.len() <= 1,
            "{shown:?}: {found:?}"
        );
        assert!(
            others.len() == 1 || head.reply != ReplyExpectation::Always,
            "{shown:?} is said to be answered"
        );
        if others.is_empty() { counts.silent += 1 } else { counts.answered += 1 }
    }
    counts.print("memcached binary, one by one");
}
