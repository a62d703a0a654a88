//! How fast messages are recognised, beside a copy of the same bytes in the same run: bytes that a proxy passes on
//! cost a copy or two anyway. Run with `cargo bench -p wire`.
//!
//! Each row is one conversation: requests and their replies, whole messages in one buffer per direction. A
//! connection is new in every round; `ns a frame` includes both directions.

use std::hint::black_box;
use std::time::Instant;
use wire::memcached::{self, MemcachedParser};
use wire::nbd::{self, Framing, NbdParser};
use wire::rpc::RpcParser;
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::{ParseStep, ParserLimits, ProtocolParser};

const MESSAGES: u32 = 2000;
const ROUNDS: usize = 40;

struct Talk {
    name: &'static str,
    new: fn() -> Box<dyn ProtocolParser>,
    requests: Vec<u8>,
    replies: Vec<u8>,
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn new_rpc() -> Box<dyn ProtocolParser> {
    Box::new(RpcParser::new(ParserLimits::RPC))
}

fn new_nbd() -> Box<dyn ProtocolParser> {
    Box::new(NbdParser::after_handshake(ParserLimits::NBD, Framing::Structured))
}

fn new_memcached() -> Box<dyn ProtocolParser> {
    Box::new(MemcachedParser::new(ParserLimits::MEMCACHED))
}

fn nfs(name: &'static str, writes: bool, size: u32) -> Talk {
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    let auth = Credentials::Unix { machine: "client.example", uid: 0, gid: 0 };
    let data = vec![7; size as usize];
    let mut calls = CallEncoder::new(&mut requests, auth);
    for xid in 0..MESSAGES {
        let offset = u64::from(xid) * u64::from(size);
        if writes {
            calls.write(xid, &[9; 32], offset, StableHow::Unstable, &data);
        } else {
            calls.read(xid, &[9; 32], offset, size);
        }
        // Accepted, status, no attributes, then count and data or the like.
        let body = 11 * 4 + if writes { 0 } else { size };
        replies.extend(words(&[1 << 31 | body, xid, 1, 0, 0, 0, 0, 0, 0, size, 0, size]));
        replies.extend(if writes { &[] } else { &data[..] });
    }
    Talk { name, new: new_rpc, requests, replies }
}

/// SEQUENCE, PUTFH, READ and GETATTR in one compound, as clients of NFSv4.1 send them.
fn nfs4(name: &'static str, size: u32) -> Talk {
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    for xid in 0..MESSAGES {
        let call = [1 << 31 | 224, xid, 0, 2, 100_003, 4, 1, 1, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4];
        requests.extend(words(&call));
        requests.extend(words(&[53, 1, 2, 3, 4, xid, 0, 0, 0]));
        requests.extend(words(&[22, 64]));
        requests.extend([9; 64]);
        requests.extend(words(&[25, 1, 2, 3, 4, 0, xid * 4096, size]));
        requests.extend(words(&[9, 1, 24]));
        // Accepted, status, and results that nobody reads.
        replies.extend(words(&[1 << 31 | (28 + size), xid, 1, 0, 0, 0, 0, 0]));
        replies.extend(vec![7; size as usize]);
    }
    Talk { name, new: new_rpc, requests, replies }
}

fn nbd_talk(name: &'static str, writes: bool, size: u32) -> Talk {
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    let data = vec![7; size as usize];
    for cookie in 0..u64::from(MESSAGES) {
        if writes {
            nbd::client::write(&mut requests, cookie, 0, &data);
            replies.extend(words(&[nbd::protocol::SIMPLE_REPLY_MAGIC, 0]));
            replies.extend(cookie.to_be_bytes());
        } else {
            nbd::client::read(&mut requests, cookie, 0, size);
            replies.extend(words(&[nbd::protocol::STRUCTURED_REPLY_MAGIC, 0x0001_0001]));
            replies.extend(cookie.to_be_bytes());
            replies.extend((size + 8).to_be_bytes());
            replies.extend([0; 8]);
            replies.extend(&data);
        }
    }
    Talk { name, new: new_nbd, requests, replies }
}

fn text(name: &'static str, size: usize, keys: usize) -> Talk {
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    let value = vec![b'x'; size];
    let key = b"a-key-of-ordinary-length";
    for _ in 0..MESSAGES {
        memcached::client::get(&mut requests, &vec![&key[..]; keys]);
        for _ in 0..keys {
            replies.extend(format!("VALUE a-key-of-ordinary-length 0 {size}\r\n").as_bytes());
            replies.extend(&value);
            replies.extend(b"\r\n");
        }
        replies.extend(b"END\r\n");
    }
    Talk { name, new: new_memcached, requests, replies }
}

fn meta(name: &'static str, size: usize) -> Talk {
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    let value = vec![b'x'; size];
    for n in 0..MESSAGES {
        let opaque = format!("O{n}");
        memcached::client::meta_set(&mut requests, b"a-key-of-ordinary-length", &value, &["T60", &opaque]);
        replies.extend(format!("HD {opaque}\r\n").as_bytes());
    }
    Talk { name, new: new_memcached, requests, replies }
}

fn binary(name: &'static str, size: usize) -> Talk {
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    let value = vec![b'x'; size];
    for n in 0..MESSAGES {
        requests.extend(words(&[0x8000_0003, 0, 3, n, 0, 0]));
        requests.extend(b"key");
        replies.extend(words(&[0x8100_0000, 0x0400_0000, u32::try_from(size).unwrap() + 4, n, 0, 0, 0]));
        replies.extend(&value);
    }
    Talk { name, new: new_memcached, requests, replies }
}

/// Frames in both directions.
fn recognise(talk: &Talk) -> u64 {
    let mut wire = (talk.new)();
    frames(&talk.requests, |buffer| wire.next_request(buffer))
        + frames(&talk.replies, |buffer| wire.next_reply(buffer))
}

fn frames<T, E: std::fmt::Debug>(all: &[u8], mut next: impl FnMut(&[u8]) -> Result<ParseStep<T>, E>) -> u64 {
    let mut rest = all;
    let mut count = 0;
    while !rest.is_empty() {
        let extent = match next(rest).expect("well-formed") {
            ParseStep::Message { extent, .. } | ParseStep::Continued { extent } => extent,
            ParseStep::NeedMore { at_least } => panic!("complete, and wants {at_least}"),
        };
        rest = &rest[usize::try_from(extent.len.0).expect("fits")..];
        count += 1;
    }
    count
}

/// Seconds of the best round, and the last result.
fn best<T>(mut work: impl FnMut() -> T) -> (f64, T) {
    let mut least = f64::INFINITY;
    let mut last = None;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        last = Some(black_box(work()));
        least = least.min(start.elapsed().as_secs_f64());
    }
    (least, last.expect("at least one round"))
}

fn main() {
    let talks = [
        nfs("NFS read 4 KiB", false, 4096),
        nfs("NFS write 4 KiB", true, 4096),
        nfs("NFS write 64 KiB", true, 65_536),
        nfs4("NFSv4 read 4 KiB", 4096),
        nbd_talk("NBD read 4 KiB", false, 4096),
        nbd_talk("NBD write 4 KiB", true, 4096),
        text("memcached get 100 B", 100, 1),
        text("memcached get 10 × 100 B", 100, 10),
        meta("memcached ms 100 B", 100),
        binary("memcached binary get 100 B", 100),
    ];
    println!(
        "{:<28}{:>10}{:>12}{:>12}{:>10}{:>12}{:>10}",
        "", "frames", "M frames/s", "ns a frame", "GB/s", "copy GB/s", "ratio"
    );
    for talk in &talks {
        let bytes = (talk.requests.len() + talk.replies.len()) as f64;
        let (parse_s, count) = best(|| recognise(black_box(talk)));
        let mut up = talk.requests.clone();
        let mut down = talk.replies.clone();
        let (copy_s, ()) = best(|| {
            up.copy_from_slice(black_box(&talk.requests));
            down.copy_from_slice(black_box(&talk.replies));
            black_box((&mut up, &mut down));
        });
        let frames = count as f64;
        println!(
            "{:<28}{count:>10}{:>12.1}{:>12.1}{:>10.1}{:>12.1}{:>10.2}",
            talk.name,
            frames / parse_s / 1e6,
            parse_s / frames * 1e9,
            bytes / parse_s / 1e9,
            bytes / copy_s / 1e9,
            copy_s / parse_s,
        );
    }
    println!(
        "ratio: time of the copy over time of recognising; above 1 recognising is the cheaper of the two"
    );
}
