//! RESP as a proxy reads it: the work of commands, refusals in their place among the replies, and the end of a
//! connection. A real server judges which commands read, write and wait.

mod common;

use common::{Side, Watch};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use units::Bytes;
use wire::RequestClass::{Control, Read as Reads, Write as Writes};
use wire::{ParseStep, ParserLimits, ProtocolParser, RequestClass, RequestRewrite, resp::RespParser};

const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;
const STAND_IN: &[u8] = b"*1\r\n$18\r\ntailwright.refused\r\n";

/// A command as an array of bulk strings.
fn array(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n", word.len()).as_bytes());
        out.extend(*word);
        out.extend(b"\r\n");
    }
    out
}

fn of_line(line: &str) -> Vec<u8> {
    array(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
}

/// Work of a command, and what is sent in its place.
fn read(command: &[u8]) -> (RequestClass, u32, Option<RequestRewrite>) {
    let mut watch = Watch::resp_of_a_proxy();
    watch.feed(CLIENT, command).expect("a command");
    assert!(watch.is_drained() && watch.requests().len() == 1, "{}", command.escape_ascii());
    let (class, keys) = watch.wire.work_at_end().expect("RESP knows more at the end");
    (class, keys, watch.wire.take_rewrite())
}

#[test]
fn work_is_known_at_the_end_of_a_command() {
    let many: String = (0..500).map(|number| format!(" key{number}")).collect();
    let big = "x".repeat(5000);
    let rows = [
        ("GET k", Reads(Bytes(0)), 1),
        ("gEt k", Reads(Bytes(0)), 1),
        ("SET k 12345", Writes(Bytes(5)), 1),
        ("SET k 12345 EX 10", Writes(Bytes(9)), 1),
        (&format!("MGET{many}"), Reads(Bytes(0)), 500),
        (&format!("DEL{many}"), Writes(Bytes(2886)), 500),
        ("MSET a 12 b 345", Writes(Bytes(6)), 2),
        ("HSET h f 12 g 345", Writes(Bytes(7)), 2),
        ("HMGET h f g i", Reads(Bytes(0)), 3),
        ("ZUNION 2 a b", Reads(Bytes(0)), 2),
        ("ZUNIONSTORE d 3 a b c", Writes(Bytes(4)), 3),
        ("EVAL return 2 a b x", Writes(Bytes(4)), 2),
        // As many as a server accepts: one for each word.
        ("EVAL return 4000000000 a", Writes(Bytes(11)), 4),
        ("EVAL return x", Writes(Bytes(1)), 1),
        ("XREAD COUNT 5 STREAMS a b c 0 0 0", Reads(Bytes(0)), 3),
        ("XREADGROUP GROUP block streams NOACK STREAMS a >", Writes(Bytes(26)), 1),
        ("PING", Control, 1),
        ("HELLO 3", Control, 1),
        ("no.such.command a b", Control, 1),
        // What has to be received is work, whatever the command is.
        (&format!("PING {big}"), Writes(Bytes(5000)), 1),
        (&format!("GET {big}"), Writes(Bytes(5000)), 1),
    ];
    for (line, class, keys) in rows {
        for said in [of_line(line), format!("{line}\r\n").into_bytes()] {
            let (found, count, rewrite) = read(&said);
            assert_eq!((found, count), (class, keys), "{}", &line[..line.len().min(60)]);
            if said[0] != b'*' {
                // A line of words is sent as an array.
                assert_eq!(rewrite, Some(RequestRewrite { skip: u64::MAX, bytes: of_line(line) }));
            } else {
                assert_eq!(rewrite, None);
            }
        }
    }
}

const REFUSED: [&str; 24] = [
    "SUBSCRIBE a b",
    "psubscribe *",
    "SSUBSCRIBE a",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE a",
    "SUNSUBSCRIBE",
    "MONITOR",
    "SYNC",
    "PSYNC ? -1",
    "REPLCONF ACK 0",
    "CLIENT REPLY OFF",
    "client reply skip",
    "CLIENT PAUSE 100",
    "BLPOP a 0",
    "BRPOP a 0",
    "BLMOVE a b LEFT RIGHT 0",
    "BRPOPLPUSH a b 0",
    "BLMPOP 0 1 a LEFT",
    "BZPOPMIN a 0",
    "BZPOPMAX a 0",
    "BZMPOP 0 1 a MIN",
    "WAIT 1 0",
    "XREAD COUNT 1 BLOCK 0 STREAMS a $",
    "XREADGROUP GROUP g c COUNT 1 block 0 STREAMS a >",
];

#[test]
fn refused_commands_are_answered_in_their_turn() {
    for line in REFUSED {
        for said in [of_line(line), format!("{line}\r\n").into_bytes()] {
            let mut watch = Watch::resp_of_a_proxy();
            watch.feed(CLIENT, b"PING\r\n").unwrap();
            watch.feed(CLIENT, &said).unwrap();
            let rewrite = watch.wire.take_rewrite().expect("something is sent in its place");
            assert_eq!((rewrite.skip, &rewrite.bytes[..]), (u64::MAX, STAND_IN), "{line}");
            watch.feed(CLIENT, b"PING\r\n").unwrap();
            watch.feed(SERVER, b"+PONG\r\n").unwrap();
            assert_eq!(watch.wire.take_own_reply(), None);
            watch.feed(SERVER, b"-ERR unknown command\r\n").unwrap();
            let answer = String::from_utf8(watch.wire.take_own_reply().expect("an answer")).unwrap();
            assert!(answer.contains(" is not passed on by this proxy: "), "{answer}");
            let name = line.split(' ').next().unwrap().to_ascii_uppercase();
            assert!(answer.starts_with("-ERR ") && answer.contains(&name), "{answer}");
            assert!(answer.ends_with("; connect to the server\r\n"), "{answer}");
            watch.feed(SERVER, b"+PONG\r\n").unwrap();
            assert_eq!((watch.wire.take_own_reply(), watch.wire.in_flight()), (None, 0));
            let injected: Vec<bool> = watch.replies().iter().map(|(reply, _)| reply.is_injected).collect();
            assert_eq!(injected, [false, true, false]);
        }
    }
    // Quotes and escapes hide no name.
    let (_, _, rewrite) = read(b"\"sub\\x73cribe\" a\r\n");
    assert_eq!(rewrite.expect("refused").bytes, STAND_IN);
    // Options so long that BLOCK might stand behind them.
    let long = "COUNT 1 ".repeat(400);
    assert_eq!(read(&of_line(&format!("XREAD {long}STREAMS a 0"))).2.expect("refused").bytes, STAND_IN);
    assert_eq!(read(&array(&[b"XREAD", &[b'x'; 5000], b"a"])).2.expect("refused").bytes, STAND_IN);
    for passed in ["CLIENT SETNAME reply", "CLIENT", "CLIENT ID", "XREAD STREAMS block 0", "GET subscribe"] {
        assert_eq!(read(&of_line(passed)).2, None, "{passed}");
    }
}

#[test]
fn unasked_words_of_the_server_reach_the_client() {
    let mut watch = Watch::resp_of_a_proxy();
    watch.feed(SERVER, b"-ERR max number of clients reached\r\n").unwrap();
    watch.feed(CLIENT, b"PING\r\n").unwrap();
    watch.feed(SERVER, b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+PONG\r\n>1\r\n+x\r\n").unwrap();
    let solicited: Vec<bool> = watch.replies().iter().map(|(reply, _)| reply.is_solicited).collect();
    assert_eq!(solicited, [false, false, true, false]);
    assert!(watch.feed(SERVER, b"+OK\r\n").is_err(), "only errors come unasked");
}

#[test]
fn nothing_is_read_behind_the_goodbye() {
    let mut watch = Watch::resp_of_a_proxy();
    watch.feed(CLIENT, b"GET a\r\n").unwrap();
    assert!(!watch.wire.is_blocked());
    watch.feed(CLIENT, b"quit now\r\n").unwrap();
    assert!(watch.wire.is_blocked());
}

/// A reply has as many elements as its server likes; a command more words than an observer reads.
#[test]
fn large_replies_and_commands_are_followed() {
    let mut watch = Watch::resp_of_a_proxy();
    let mut feed = |side, bytes: &[u8]| bytes.chunks(4000).for_each(|piece| watch.feed(side, piece).unwrap());
    feed(CLIENT, b"KEYS *\r\n");
    feed(SERVER, &[b"*1100000\r\n".to_vec(), b":1\r\n".repeat(1_100_000)].concat());
    feed(CLIENT, &[b"*1100001\r\n$4\r\nMGET\r\n".to_vec(), b"$1\r\nk\r\n".repeat(1_100_000)].concat());
    assert_eq!(watch.wire.work_at_end(), Some((Reads(Bytes(0)), 1_100_000)));
    assert_eq!((watch.requests().len(), watch.replies().len(), watch.wire.in_flight()), (2, 1, 1));
}

#[test]
fn a_broken_stream_is_told_why() {
    let rows: [(&[u8], &str); 6] = [
        (b"*x\r\n", "number in a RESP line: expected at most ten digits"),
        (b"*2\r\n$3\r\nGET\r\n:1\r\n", "word of a RESP command: expected a bulk string"),
        (b"get \"a\r\n", "quotes in a RESP line: expected an end and a space"),
        (b"\x16\x03\x01", "TLS is refused: connect without it"),
        (b"*1\r\n$536870913\r\n", "RESP string in bytes: at most 536870912, found 536870913"),
        (&[b'x'; 70_000], "RESP line in bytes: at most 65536, found 70001"),
    ];
    for (said, expected) in rows {
        let mut watch = Watch::resp_of_a_proxy();
        let error = watch.feed(CLIENT, said).expect_err("malformed");
        let farewell = String::from_utf8(watch.wire.farewell(&error)).unwrap();
        assert_eq!(farewell, format!("-ERR Protocol error: {expected}\r\n"));
    }
}

/// A server that is killed on drop.
struct Redis(Child, SocketAddr);

impl Redis {
    fn start() -> Option<Self> {
        let program = testkit::program("redis-server")?;
        let address = testkit::free_address();
        let args = format!("--bind 127.0.0.1 --port {} --save", address.port());
        let mut command = Command::new(program);
        command.args(args.split(' ')).arg("").stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().expect("redis starts");
        testkit::connect_when_ready(&mut child, || TcpStream::connect(address));
        Some(Self(child, address))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// A value of a reply, as far as COMMAND needs it.
#[derive(Debug)]
enum Value {
    Word(String),
    Number(i64),
    List(Vec<Value>),
}

fn value(text: &[u8], at: &mut usize) -> Value {
    let end = *at + text[*at..].iter().position(|&byte| byte == b'\n').expect("a line");
    let line = std::str::from_utf8(&text[*at..end - 1]).expect("plain text");
    *at = end + 1;
    match (&line[..1], &line[1..]) {
        ("*", count) => Value::List((0..count.parse().expect("a count")).map(|_| value(text, at)).collect()),
        (":", number) => Value::Number(number.parse().expect("a number")),
        ("$", len) => {
            let len: usize = len.parse().expect("a length");
            *at += len + 2;
            Value::Word(String::from_utf8_lossy(&text[*at - len - 2..*at - 2]).into_owned())
        }
        (_, word) => Value::Word(word.to_owned()),
    }
}

/// Every command that the server marks as reading, writing or waiting, with the places of its keys, is what the parser
/// says.
#[test]
fn commands_are_what_a_server_says_of_them() {
    let Some(server) = Redis::start() else { return };
    let mut stream = TcpStream::connect(server.1).unwrap();
    stream.write_all(b"COMMAND\r\nQUIT\r\n").unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    let Value::List(commands) = value(&said, &mut 0) else { panic!("a list of commands") };
    let mut compared = 0;
    for command in commands {
        let Value::List(fields) = command else { panic!("a list of fields") };
        let [
            Value::Word(name),
            Value::Number(arity),
            Value::List(flags),
            Value::Number(first),
            Value::Number(last),
            Value::Number(step),
            ..,
        ] = &fields[..]
        else {
            panic!("six fields: {fields:?}")
        };
        let has = |flag: &str| flags.iter().any(|found| matches!(found, Value::Word(word) if word == flag));
        // Words such that options come out even.
        let words: Vec<&[u8]> = [name.as_bytes()].into_iter().chain([&b"1"[..]; 12]).collect();
        let (class, keys, rewrite) = read(&array(&words));
        let is_refused = rewrite.is_some();
        let is_stream_read = name.starts_with("xread");
        assert_eq!(is_refused, refuses(name) || (has("blocking") && !is_stream_read), "{name}");
        if is_refused {
            continue;
        }
        // Scripts have neither flag, and publishing moves bytes.
        let is_script = ["eval", "evalsha", "fcall", "publish", "spublish"].contains(&name.as_str());
        match class {
            Writes(_) => assert!(has("write") || is_script, "{name} does not write"),
            Reads(_) => assert!(has("readonly"), "{name} does not read"),
            Control => assert!(!has("write") && !has("readonly") && !is_script, "{name} reads or writes"),
        }
        if *first > 0 && !has("movablekeys") {
            let last = if *last < 0 { 13 + last } else { *last };
            let count = (last - first) / step + 1;
            assert!(i64::from(keys) >= count, "{name} has {count} keys, not {keys} (arity {arity})");
        }
        compared += 1;
    }
    println!("{compared} commands have the work that the server says");
    assert!(compared > 150, "{compared}");
}

/// Refused for other reasons than that they wait.
fn refuses(name: &str) -> bool {
    let others = ["wait", "waitaof"];
    REFUSED.iter().any(|line| {
        let refused = line.split(' ').next().unwrap().to_ascii_lowercase();
        refused == name && !["client", "xread", "xreadgroup"].contains(&name)
    }) || others.contains(&name)
}

/// An observer is not affected by commands that only wait.
#[test]
fn observers_see_commands_that_wait() {
    let mut parser = RespParser::new(ParserLimits::RESP);
    let step = parser.next_request(&of_line("BLPOP a 0")).expect("it is followed");
    assert!(matches!(step, ParseStep::Message { .. }));
    assert_eq!(parser.take_rewrite(), None);
}
