//! Odd requests of Redis.

use crate::conversation::{Choices, Dialect, compare, connect, hear};
use crate::proxy::{self, Running, Server, say};
use enforce::storage::ProxyOptions;
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

static DIALECT: Dialect = Dialect {
    clear: None,
    before:
        b"FLUSHALL\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\nxyz\r\nset n 5\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
    answer: b"+OK\r\n+OK\r\n+OK\r\n$3\r\nxyz\r\n",
    behind: b"*2\r\n$3\r\nGET\r\n$1\r\nn\r\nECHO end-of-it\r\n",
    end: b"$9\r\nend-of-it\r\n",
    last_words: Some(b"-ERR Protocol error: "),
};

fn array(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n", word.len()).as_bytes());
        out.extend(*word);
        out.extend(b"\r\n");
    }
    out
}

/// Heads of arrays and strings, in odd spellings.
const ODD: [&[u8]; 29] = [
    b"\r\n",
    b"\n",
    b" \r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*-7\r\n",
    b"*\r\n",
    b"*x\r\n",
    b"*01\r\n$4\r\nPING\r\n",
    b"*+1\r\n$4\r\nPING\r\n",
    b"*1\rx$4\r\nPING\r\n",
    b"*1\r\n$4\rxPINGxx",
    b"*1\n$4\r\nPING\r\n",
    b"*-0\r\n",
    b"*99999999999999999999\r\n",
    b"*1\r\n$0\r\n\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$-0\r\n",
    b"*1\r\n$04\r\nPING\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n:4\r\nPING\r\n",
    b"*1\r\nPING\r\n",
    b"*2\r\n$4\r\nPING\r\n+x\r\n",
    b"\xff\xfe\r\n",
    b"\"PING\" 'x y'\r\n",
    b"\"PI\\x4eG\" \"\\n\\q\"\r\n",
    b"PING \"x\r\n",
    b"PING 'x'y\r\n",
];

/// Commands as lines, several of them with results of RESP3 and with transactions.
const LINES: [&str; 44] = [
    "ping",
    "PING x",
    "ping x y",
    "GET",
    "GET a b",
    "get none",
    "MGET a none n",
    "SET a",
    "SET a b EX x",
    "SET a b GET",
    "INCR a",
    "INCR n",
    "LPUSH a x",
    "LPUSH l 1 2 3",
    "LRANGE l 0 -1",
    "EXISTS a n none",
    "no.such.command x",
    "DEL a none",
    "HSET h f 1 g 2",
    "HGETALL h",
    "ZADD z 1 x 2.5 y",
    "TYPE a",
    "SELECT 3",
    "SELECT 99",
    "AUTH x",
    "AUTH x y",
    "RESET",
    "COMMAND COUNT",
    "CLIENT SETNAME z",
    "CLIENT GETNAME",
    "CLIENT",
    "CLIENT NO.SUCH",
    "CONFIG GET maxmemory",
    "OBJECT ENCODING n",
    "DBSIZE",
    "STRLEN a",
    "APPEND a 1",
    "XADD s 1-1 f v",
    "XREAD COUNT 2 STREAMS s 0",
    "XREAD STREAMS s",
    "PUBLISH c m",
    "EVAL return 0",
    "WATCH a",
    "QUIT",
];

/// Several commands at once.
const TALKS: [&str; 9] = [
    "MULTI|INCR n|GET a|EXEC",
    "MULTI|INCR|GET a|EXEC",
    "MULTI|SET a 1|DISCARD",
    "MULTI|MULTI|EXEC|EXEC",
    "WATCH a|SET a 1|MULTI|GET a|EXEC",
    "HELLO 3|HSET h f 1|HGETALL h|GET none|SADD s x|SMEMBERS s|ZADD z 1.5 x|ZRANGE z 0 -1 WITHSCORES",
    "HELLO 3|DEBUG PROTOCOL attrib|DEBUG PROTOCOL bignum|DEBUG PROTOCOL verbatim|DEBUG PROTOCOL map|\
     DEBUG PROTOCOL set|DEBUG PROTOCOL double|DEBUG PROTOCOL true|DEBUG PROTOCOL null|DEBUG PROTOCOL push",
    "HELLO 3|CLIENT TRACKING ON|GET a|SET a 1|GET a|CLIENT TRACKING OFF",
    "DEBUG PROTOCOL attrib|DEBUG PROTOCOL verbatim|DEBUG PROTOCOL null|DEBUG PROTOCOL array|HELLO 4|HELLO 2",
];

fn odd_request(choices: &mut Choices) -> Vec<u8> {
    let ends: [&[u8]; 3] = [b"\r\n", b"\n", b" \r\n"];
    match choices.below(8) {
        0 | 1 => choices.of(&ODD).to_vec(),
        2 | 3 => {
            let line = LINES[choices.below(LINES.len())];
            [line.as_bytes(), choices.of(&ends)].concat()
        }
        4 => {
            let line = LINES[choices.below(LINES.len())];
            array(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
        }
        5 => {
            let talk = TALKS[choices.below(TALKS.len())];
            talk.split('|').flat_map(|line| [line.as_bytes(), b"\r\n"].concat()).collect()
        }
        6 => {
            // Words that look like requests, of any length.
            let words: [&[u8]; 7] =
                [b"a", b"", b"\r\n*1\r\n$4\r\nPING\r\n", b"none", &[b'w'; 70_000], b"\0\xff", b"n"];
            let names: [&[u8]; 7] = [b"MGET", b"SET", b"DEL", b"ECHO", b"LPUSH", b"HSET", b"EXISTS"];
            let mut command = vec![choices.of(&names)];
            (0..choices.below(6)).for_each(|_| command.push(choices.of(&words)));
            array(&command)
        }
        _ => {
            // A command whose head is damaged in one place.
            let mut command = array(&[b"SET", b"a", b"x"]);
            let place = choices.below(command.len() - 6);
            command[place] = choices.of(&[b"0", b"x", b"$", b"*", b"\n", b" ", b"-"])[0];
            command
        }
    }
}

#[test]
fn redis_commands_have_the_answers_of_the_server() {
    let (Some(direct), Some(behind)) = (Server::redis(), Server::redis()) else { return };
    let proxy = Running::plain("resp", behind.address);
    let seed = std::env::var("TAILWRIGHT_SURVIVAL_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut choices = Choices(seed.unwrap_or(0x5eed_0002));
    let mut survived = 0;
    let lines = LINES.iter().map(|line| format!("{line}\r\n").into_bytes());
    let talks = TALKS.iter().map(|talk| format!("{}\r\n", talk.replace('|', "\r\n")).into_bytes());
    let fixed: Vec<Vec<u8>> = ODD.iter().map(|odd| odd.to_vec()).chain(lines).chain(talks).collect();
    let odd: Vec<Vec<u8>> = (0..1000).map(|_| odd_request(&mut choices)).collect();
    let count = fixed.len() + odd.len();
    for request in fixed.into_iter().chain(odd) {
        survived += usize::from(compare(&DIALECT, &mut choices, [&direct, &behind], &proxy, &request));
    }
    println!("{survived} of {count} odd requests were answered and survived");
    assert!(survived > count / 2, "redis survives most of them: {survived}");
    let report = proxy.drain();
    assert_eq!((report.snapshot.buffered_bytes, report.snapshot.outstanding), (0, 0));
}

/// Commands that wait, or after which replies are none, are answered in words and in their turn, and a transaction cannot
/// be executed without them.
#[test]
fn refused_commands_are_answered_in_words() {
    let Some(server) = Server::redis() else { return };
    let proxy = Running::plain("resp", server.address);
    let mut stream = connect(proxy.connect());
    let said = "SET a 1\r\nBLPOP l 0\r\nGET a\r\nsubscribe x\r\nCLIENT REPLY OFF\r\nMONITOR\r\nGET a\r\nMULTI\r\nSET a 2\r\n\
                XREAD BLOCK 0 STREAMS s $\r\nEXEC\r\nGET a\r\n";
    let heard = say(&mut stream, said.as_bytes(), b"errors.\r\n$1\r\n1\r\n");
    let heard = String::from_utf8(heard).unwrap();
    let starts = [
        "+OK",
        "-ERR BLPOP is not passed on by this proxy: it may wait without end",
        "$1",
        "1",
        "-ERR SUBSCRIBE is not passed on by this proxy: its messages answer no request",
        "-ERR CLIENT REPLY is not passed on by this proxy: without replies",
        "-ERR MONITOR is not passed on by this proxy: its messages",
        "$1",
        "1",
        "+OK",
        "+QUEUED",
        "-ERR XREAD or XREADGROUP with BLOCK is not passed on by this proxy: it may wait",
        "-EXECABORT",
        "$1",
        "1",
    ];
    let lines: Vec<&str> = heard.lines().collect();
    assert_eq!(lines.len(), starts.len(), "{heard}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line} instead of {start}");
    }
    // A refusal whose arguments are larger than all buffers.
    let big = [&array(&[b"SUBSCRIBE", &vec![b'x'; 3_000_000]])[..], b"PING\r\n"].concat();
    let heard = say(&mut stream, &big, b"+PONG\r\n");
    assert!(heard.starts_with(b"-ERR SUBSCRIBE is"), "{}", String::from_utf8_lossy(&heard));
}

/// Requests before a broken one are answered, and the client is told why it was cut off.
#[test]
fn redis_is_left_with_a_reason() {
    let Some(server) = Server::redis() else { return };
    let proxy = Running::plain("resp", server.address);
    // The server has its beginning before its end is read.
    let large =
        [b"*4\r\n$3\r\nSET\r\n$1\r\na\r\n$3000000\r\n", &vec![b'x'; 3_000_000][..], b"\r\nno\r\n"].concat();
    for (broken, words) in [
        (&b"*2\r\n$3\r\nGET\r\nno\r\n"[..], "RESP line in bytes"),
        (b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$900000000\r\n", "RESP string in bytes: at most 536870912"),
        (b"\x16\x03\x01\x02\0", "TLS is refused"),
        (&[b'x'; 70_000], "RESP line in bytes: at most 65536"),
        (&large, "word of a RESP command"),
    ] {
        let mut stream = connect(proxy.connect());
        let said = [b"SET a 1\r\nGET a\r\n", broken].concat();
        let _ = stream.write_all(&said);
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        let heard = String::from_utf8_lossy(&heard).into_owned();
        let farewell =
            heard.strip_prefix("+OK\r\n$1\r\n1\r\n-ERR Protocol error: ").expect("answers come first");
        let words = if words == "RESP line in bytes" { "word of a RESP command" } else { words };
        assert!(farewell.starts_with(words) && farewell.ends_with("\r\n"), "{farewell}");
    }
    // Too many clients: the server says so to nothing.
    let full = connect(std::net::TcpStream::connect(server.address).unwrap());
    let mut direct = full;
    say(&mut direct, b"CONFIG SET maxclients 1\r\n", b"\r\n");
    let mut stream = connect(proxy.connect());
    let mut heard = Vec::new();
    hear(&mut stream, &mut heard, b"reached\r\n").unwrap();
    assert_eq!(heard, b"-ERR max number of clients reached\r\n");
}

fn calls(server: &Server) -> Vec<(String, u64)> {
    let mut stream = connect(std::net::TcpStream::connect(server.address).unwrap());
    let said = say(&mut stream, b"INFO commandstats\r\nECHO end-of-it\r\n", DIALECT.end);
    let text = String::from_utf8(said).unwrap();
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some((name, rest)) = line.strip_prefix("cmdstat_").and_then(|line| line.split_once(":calls="))
        else {
            continue;
        };
        calls.push((name.to_owned(), rest.split(',').next().unwrap().parse().unwrap()));
    }
    calls
}

/// Unmodified clients: the server counts what they asked for, and the proxy counts as many.
#[test]
fn the_proxy_counts_what_the_server_counts() {
    let Some(server) = Server::redis() else { return };
    let (Some(benchmark), Some(cli)) = (testkit::program("redis-benchmark"), testkit::program("redis-cli"))
    else {
        return;
    };
    let proxy = Running::plain("resp", server.address);
    let port = proxy.address.port().to_string();
    let run = |program: &std::path::Path, args: &str| {
        let mut command = Command::new(program);
        command.args(["-h", "127.0.0.1", "-p", &port]).args(args.split(' '));
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&benchmark, "-q -n 2000 -c 8 -P 16 -d 100 -t set,get,incr,lpush,mset");
    assert_eq!(run(&cli, "-3 HSET h f v"), "1\n");
    assert_eq!(run(&cli, "-3 HGETALL h"), "f v\n");
    let report = proxy.drain();
    let calls = calls(&server);
    for name in ["set", "get", "incr", "lpush", "mset"] {
        let count = calls.iter().find(|(found, _)| found == name).map(|(_, count)| *count);
        assert_eq!(count, Some(2000), "{name}: {calls:?}");
    }
    let sum: u64 = calls.iter().map(|(_, count)| count).sum();
    let seen = &report.snapshot.workloads[0];
    println!("{sum} calls at the server; at the proxy {} and {} others", seen.requests, seen.control);
    assert_eq!((seen.requests + seen.control, report.snapshot.cut), (sum, 0), "{calls:?}");
}

/// Reads of 4 KiB have a millisecond each by the profile of the tests, of which a fifth is allowed: 200 a second. The
/// machine can only make it slower.
#[test]
fn reads_keep_the_limit() {
    let Some(server) = Server::redis() else { return };
    let clients = "[[client]]\nworkload = \"w\"\nhost = \"here\"";
    let deployment = proxy::deployment("resp", server.address, "over = \"queue\"", clients);
    let policy = proxy::policy(&[("w", 0, &[(0.2, 0.1)])]);
    let mut direct = connect(std::net::TcpStream::connect(server.address).unwrap());
    say(&mut direct, &array(&[b"SET", b"k", &[b'v'; 4096]]), b"+OK\r\n");
    let proxy = Running::start(ProxyOptions::new("ssd", deployment, Some(policy), proxy::profile()));
    let mut stream = connect(proxy.connect());
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    const READS: usize = 500;
    let begin = Instant::now();
    let said = [b"GET k\r\n".repeat(READS), b"PING\r\n".to_vec()].concat();
    let heard = say(&mut stream, &said, b"+PONG\r\n");
    let elapsed = begin.elapsed().as_secs_f64();
    assert_eq!(heard.len(), READS * 4105 + 7, "every read is answered");
    // The burst and one read go ahead.
    let least = (READS as f64 * 0.001 - 0.1 - 0.002) / 0.2;
    println!(
        "{READS} reads in {elapsed:.2} s, {:.0} a second beyond the burst",
        (READS as f64 - 100.0) / elapsed
    );
    assert!(elapsed >= least, "{elapsed} s for at least {least} s");
}
