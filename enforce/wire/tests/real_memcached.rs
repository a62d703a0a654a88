//! A real memcached: everything that it answers is recognised, request by request.

mod common;
#[path = "common/memcached_server.rs"]
mod memcached_server;

use common::{Event, Side, Watch};
use memcached_server::{MemcachedProcess, binary_request};
use std::io::{Read, Write};
use std::net::Shutdown;
use wire::memcached::client;

/// Says everything, then hangs up; what was recognised of both sides.
fn talk(server: &mut MemcachedProcess, said: &[u8]) -> Watch {
    let mut stream = server.connect();
    let mut watch = Watch::memcached();
    watch.feed(Side::Client, said).expect("requests are well-formed");
    let mut sender = stream.try_clone().unwrap();
    let all = said.to_vec();
    let sending = std::thread::spawn(move || {
        sender.write_all(&all).unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
    });
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    sending.join().unwrap();
    for piece in heard.chunks(7) {
        watch
            .feed(Side::Server, piece)
            .unwrap_or_else(|bad| panic!("{bad} in {}", String::from_utf8_lossy(&heard)));
    }
    assert!(watch.is_drained(), "nothing is left over in {}", String::from_utf8_lossy(&heard));
    assert_eq!(watch.passed, (said.len() + heard.len()) as u64, "every byte is accounted for");
    watch
}

/// Each command line with its number of replies, complete ones.
fn complete(watch: &Watch) -> Vec<u64> {
    watch.replies().iter().filter(|(_, extent)| extent.last).map(|(reply, _)| reply.id).collect()
}

#[test]
fn text_commands() {
    let Some(mut server) = MemcachedProcess::start() else { return };
    let said = "set a 1 0 5\r\nhello\r\nset b 0 0 3 noreply\r\nxyz\r\nget a b c\r\ngets a\r\nget missing\r\ngat 0 a b\r\n\
        add a 0 0 1\r\nx\r\nreplace b 0 0 2\r\nok\r\nappend b 0 0 1\r\n!\r\nprepend b 0 0 1\r\n!\r\ncas a 0 0 1 99999\r\nx\r\n\
        cas a 0 0 1 99999 noreply\r\nx\r\nset n 0 0 1\r\n5\r\nincr n 3\r\ndecr n 1 noreply\r\nincr a 1\r\nincr none 1\r\n\
        touch a 0\r\ntouch none 0 noreply\r\ndelete b\r\ndelete b noreply\r\nversion\r\nverbosity 0\r\nverbosity 0 noreply\r\n\
        stats\r\nstats settings\r\nstats items\r\nstats slabs\r\nstats sizes\r\nstats detail on\r\nstats detail dump\r\nstats reset\r\n\
        stats cachedump 1 10\r\n\r\nnonsense\r\nget\r\nset big 0 0 3000000\r\n"
        .to_owned()
        + &"z".repeat(3_000_000)
        + "\r\nget a\r\nset a 0 0 3000000 noreply\r\n"
        + &"z".repeat(3_000_000)
        + "\r\nset a 0 0 1\r\nxyzzy\r\nflush_all\r\nflush_all noreply\r\nlru_crawler metadump all\r\nquit\r\n";
    let watch = talk(&mut server, said.as_bytes());
    let answered = complete(&watch);
    let silent: Vec<u64> = watch
        .requests()
        .iter()
        .filter(|request| request.reply == wire::ReplyExpectation::Never)
        .map(|request| request.id)
        .collect();
    let all: Vec<u64> = (0..watch.requests().len() as u64).filter(|id| !silent.contains(id)).collect();
    assert_eq!(answered, all, "each request has one reply, in order, except the silent ones");
    assert_eq!(watch.wire.in_flight(), 0);
}

#[test]
fn meta_commands() {
    let Some(mut server) = MemcachedProcess::start() else { return };
    let mut said = Vec::new();
    client::meta_set(&mut said, b"a", b"hello", &["O1"]); // 0
    client::meta_set(&mut said, b"a", b"again", &["q"]); // 1: silent
    client::meta_get(&mut said, b"a", &["v", "q", "O2"]); // 2
    client::meta_get(&mut said, b"none", &["v", "q", "O3"]); // 3: silent
    client::meta_get(&mut said, b"none", &["v", "q"]); // 4: silent
    client::meta_get(&mut said, b"a", &["s", "q", "k", "O5"]); // 5
    client::noop(&mut said); // 6
    client::meta_get(&mut said, b"none", &["v", "O7"]); // 7
    client::meta_get(&mut said, b"a", &["v"]); // 8
    client::meta_set(&mut said, b"none", b"1", &["MR", "q", "O9"]); // 9: not stored
    client::meta_set(&mut said, b"n", b"1", &["q"]); // 10: silent
    said.extend(b"ma n v\r\nma n q O12\r\nma none q O13\r\nma none\r\nma a q O15\r\n"); // 11, 12 and 13 silent, 14, 15: error
    said.extend(b"md n q O16\r\nmd n q O17\r\nmd n O18\r\nmd a C1 q O19\r\n"); // 16 and 17 silent, 18, 19: exists
    said.extend(b"me a\r\nme none\r\nmn\r\nmg a v k\r\n"); // 20 to 23
    said.extend(b"mg a v q\r\nget a\r\nset c 0 0 1\r\nx\r\nmg none q\r\nmn\r\n"); // 24 to 26, 27 silent, 28
    let watch = talk(&mut server, &said);
    // Whether quiet `ma` and `md` speak of a miss depends on the version.
    let answered: Vec<u64> = complete(&watch).into_iter().filter(|id| ![13, 17].contains(id)).collect();
    let expected = [0, 2, 5, 6, 7, 8, 9, 11, 14, 15, 18, 19, 20, 21, 22, 23, 24, 25, 26, 28];
    assert_eq!(answered, expected);
    assert_eq!(watch.wire.in_flight(), 0);
    let errors: Vec<u64> =
        watch.replies().iter().filter(|(reply, _)| reply.is_error).map(|(reply, _)| reply.id).collect();
    assert_eq!(errors, [15]);
}

#[test]
fn binary_commands() {
    let Some(mut server) = MemcachedProcess::start() else { return };
    let count: Vec<u8> = [&1u64.to_be_bytes()[..], &5u64.to_be_bytes(), &[0; 4]].concat();
    let said = [
        binary_request(0x01, &[0; 8], b"a", b"hello", 1), // 0: set
        binary_request(0x11, &[0; 8], b"b", b"hello", 2), // 1: set, quiet
        binary_request(0x12, &[0; 8], b"b", b"hello", 3), // 2: add, quiet: exists
        binary_request(0x00, &[], b"a", b"", 4),          // 3: get
        binary_request(0x09, &[], b"a", b"", 5),          // 4: get, quiet
        binary_request(0x09, &[], b"none", b"", 6),       // 5: get, quiet: miss
        binary_request(0x0d, &[], b"b", b"", 7),          // 6: get with key, quiet
        binary_request(0x0a, &[], b"", b"", 8),           // 7: noop
        binary_request(0x19, &[], b"a", b"!", 9),         // 8: append, quiet
        binary_request(0x10, &[], b"", b"", 10),          // 9: statistics
        binary_request(0x0b, &[], b"", b"", 11),          // 10: version
        binary_request(0x05, &count, b"n", b"", 12),      // 11: increment
        binary_request(0x15, &count, b"n", b"", 13),      // 12: increment, quiet
        binary_request(0x1d, &[0; 4], b"a", b"", 14),     // 13: get and touch
        binary_request(0x1e, &[0; 4], b"a", b"", 15),     // 14: get and touch, quiet
        binary_request(0x1e, &[0; 4], b"none", b"", 16),  // 15: get and touch, quiet: miss
        binary_request(0x1c, &[0; 4], b"a", b"", 17),     // 16: touch
        binary_request(0x14, &[], b"a", b"", 18),         // 17: delete, quiet
        binary_request(0x14, &[], b"a", b"", 19),         // 18: delete, quiet: not there
        binary_request(0x0c, &[], b"none", b"", 20),      // 19: get with key: miss
        binary_request(0x18, &[], b"", b"", 21),          // 20: flush, quiet
        binary_request(0x33, &[], b"", b"", 22),          // 21: no such command
        binary_request(0x07, &[], b"", b"", 23),          // 22: quit
    ];
    let watch = talk(&mut server, &said.concat());
    assert_eq!(complete(&watch), [0, 2, 3, 4, 6, 7, 9, 10, 11, 13, 14, 16, 18, 19, 21, 22]);
    let items =
        watch.events.iter().filter(|event| matches!(event, Event::Reply(reply, _) if reply.id == 9)).count();
    assert!(items > 20, "statistics come one by one");
}
