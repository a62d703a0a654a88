//! Requests that a server refuses, directly and through the proxy: what the server answers and survives, the proxy
//! answers and survives, and whatever came before a broken request is answered.

mod proxy;

use enforce::storage::ProxyOptions;
use proxy::{Running, Server};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Time after which a server is taken to wait for more.
const PATIENCE: Duration = Duration::from_secs(3);

/// Choices by xorshift, the same in every run.
struct Choices(u64);

impl Choices {
    fn below(&mut self, of: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % of
    }

    fn of<'a>(&mut self, all: &[&'a [u8]]) -> &'a [u8] {
        all[self.below(all.len())]
    }
}

/// A conversation with a server: `before` is answered by `answer`, then the rest is sent.
struct Conversation {
    before: Vec<u8>,
    answer: &'static [u8],
    rest: Vec<u8>,
}

/// Reads until the answer ends with `end`, the server hangs up (`Err`), or it waits.
fn hear(stream: &mut TcpStream, heard: &mut Vec<u8>, end: &[u8]) -> Result<(), ()> {
    let mut piece = vec![0; 1 << 16];
    while !heard.ends_with(end) {
        match stream.read(&mut piece) {
            Ok(0) => return Err(()),
            Ok(count) => heard.extend_from_slice(&piece[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let heard = String::from_utf8_lossy(heard);
                panic!("silent behind {:?}", &heard[heard.len().saturating_sub(300)..]);
            }
            Err(_) => return Err(()),
        }
    }
    Ok(())
}

impl Conversation {
    /// Behind the request stands another one, whose answer ends the conversation.
    fn around(request: &[u8]) -> Self {
        Self {
            before: b"flush_all\r\nset a 7 0 3\r\nxyz\r\nset n 0 0 1\r\n5\r\nget a\r\n".to_vec(),
            answer: b"OK\r\nSTORED\r\nSTORED\r\nVALUE a 7 3\r\nxyz\r\nEND\r\n",
            rest: [request, b"get n\r\nmn\r\n"].concat(),
        }
    }

    fn end() -> &'static [u8] {
        b"MN\r\n"
    }

    /// Returns the answers of the server, and whether it survived. Memcached drops answers that it has not sent when it
    /// finds a key too long, so that it is asked step by step.
    fn directly(&self, server: &Server) -> (Vec<u8>, bool) {
        let mut stream = connect(TcpStream::connect(server.address).unwrap());
        let mut heard = Vec::new();
        stream.write_all(&self.before).unwrap();
        hear(&mut stream, &mut heard, self.answer).unwrap();
        let _ = stream.write_all(&self.rest);
        let survived = hear(&mut stream, &mut heard, Self::end()).is_ok();
        (heard, survived)
    }

    /// Returns the same through a proxy, with everything sent at once, in two pieces.
    fn through(&self, proxy: &Running, cut: usize) -> (Vec<u8>, bool) {
        let mut stream = connect(proxy.connect());
        let all = [&self.before[..], &self.rest].concat();
        let cut = cut.min(all.len());
        let mut heard = Vec::new();
        let mut writer = stream.try_clone().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A server that hangs up does not listen.
                let _ = writer.write_all(&all[..cut]).and_then(|()| writer.write_all(&all[cut..]));
            });
            let survived = hear(&mut stream, &mut heard, Self::end()).is_ok();
            (heard, survived)
        })
    }
}

fn connect(stream: TcpStream) -> TcpStream {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

const KEYS: [&[u8]; 7] = [b"a", b"n", b"none", b"a\tb", b"a\0b", &[b'k'; 250], &[b'k'; 251]];
const FLAGS: [&[u8]; 10] = [
    b"0",
    b"5",
    b"4294967295",
    b"4294967296",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-1",
    b"0\t1",
    b"x",
    b"00000000000000000000000000007",
];
const EXPIRIES: [&[u8]; 8] =
    [b"0", b"-1", b"1.5", b"x", b"+0", b"\t0", b"99999999999999999999", b"00000000000000000000000"];
/// Lengths that memcached refuses or takes for 5. One of more than 32 bits is not among them: memcached 1.6.18 takes
/// 4294967301 for 5, and the proxy refuses it.
const LENGTHS: [&[u8]; 13] = [
    b"5",
    b"05",
    b"+5",
    b"5\t",
    b"\x0b5",
    b"5\tx",
    b"5\0",
    b"5x",
    b"0x5",
    b"-5",
    b"2147483646",
    b"99999999999999999999",
    b"000000000000000000000000005",
];
const UNIQUES: [&[u8]; 6] = [b"1", b"+1", b"-1", b"x", b"18446744073709551616", b"1\tx"];
const TAILS: [&[u8]; 6] = [b"", b" noreply", b" x", b" noreply x", b" x noreply", b" x y z"];
const META_TAILS: [&[u8]; 7] = [
    b"",
    b" q",
    b" T0",
    b" Fx",
    b" b",
    b" A B C D E F G H I J K L M N O P",
    b" A B C D E F G H I J K L M N O P Q",
];
const ENDS: [&[u8]; 4] = [b"\r\n", b"\n", b" \r\n", b"\r\r\n"];
/// Commands that are a line alone.
const LINES: [&[u8]; 40] = [
    b"",
    b" ",
    b"get",
    b"get a",
    b"gets",
    b"get  a  n",
    b"gat",
    b"gat 0",
    b"gat 0 a",
    b"gat x a",
    b"bget a",
    b"GET a",
    b"\0",
    b"get \0a",
    b"get a\0 noreply",
    b"\x16\x03\x01\x02",
    b"\xff\xfe a",
    b"set",
    b"set a",
    b"set a 0 0",
    b"cas a 0 0 5",
    b"ms",
    b"ms a",
    b"mg",
    b"mg a v\0 q",
    b"mg a M M M M M M M M M M M M M M M M M M",
    b"md none q",
    b"ma n N0",
    b"me a",
    b"delete a 1 2",
    b"delete a noreply",
    b"incr n x",
    b"incr n 18446744073709551616",
    b"touch a x",
    b"verbosity",
    b"shutdown",
    b"lru_crawler metadump x",
    b"stats reset",
    b"delete a\0 noreply",
    b"no such command",
];

/// A line, with data behind it that would be another request.
fn odd_request(choices: &mut Choices) -> Vec<u8> {
    let mut request = Vec::new();
    let long = choices.below(60);
    match choices.below(10) {
        0..=3 => {
            let names: [&[u8]; 6] = [b"set", b"add", b"replace", b"append", b"prepend", b"cas"];
            let name = choices.of(&names);
            request.extend(name);
            // Mostly one word is odd: two would hide each other.
            let odd = choices.below(5);
            for (index, words) in [&KEYS[..], &FLAGS, &EXPIRIES, &LENGTHS].into_iter().enumerate() {
                request.push(b' ');
                request.extend(if index == odd || long == 0 { choices.of(words) } else { words[0] });
            }
            if name == b"cas" {
                request.push(b' ');
                request.extend(choices.of(&UNIQUES));
            }
            if odd == 4 {
                request.extend(choices.of(&TAILS));
            }
            request.extend(choices.of(&ENDS));
            request.extend(b"get a\r\n");
        }
        4 | 5 => {
            request.extend(b"ms ");
            request.extend(choices.of(&KEYS));
            request.push(b' ');
            request.extend(choices.of(&LENGTHS));
            request.extend(choices.of(&META_TAILS));
            request.extend(choices.of(&ENDS));
            request.extend(b"get a\r\n");
        }
        6 => {
            let names: [&[u8]; 9] =
                [b"get", b"gets", b"gat 0", b"mg", b"md", b"me", b"touch", b"delete", b"incr"];
            request.extend(choices.of(&names));
            let keys: Vec<&[u8]> = KEYS.iter().copied().filter(|key| !key.contains(&0)).collect();
            for _ in 0..choices.below(4) {
                request.push(b' ');
                request.extend(choices.of(&keys));
            }
            request.extend(choices.of(&ENDS));
        }
        7 => {
            let names: [&[u8]; 4] = [b"get", b"gets", b"gat 0", b"   get"];
            request.extend(choices.of(&names));
            for _ in 0..choices.below(300) {
                request.push(b' ');
                request.extend(choices.of(&[b"a", b"n", b"none", &[b'k'; 250], b"a\r"]));
            }
            let last: [&[u8]; 6] = [b"", b" ", b" a", b" \0 a", b" k\r", &[b'k'; 251]];
            request.extend(choices.of(&last));
            request.extend(choices.of(&ENDS));
        }
        _ => {
            request.extend(choices.of(&LINES));
            request.extend(choices.of(&ENDS));
        }
    }
    request
}

/// Two servers with the same history give the same unique numbers.
fn compare(choices: &mut Choices, servers: [&Server; 2], proxy: &Running, request: &[u8]) -> bool {
    let shown = || String::from_utf8_lossy(&request[..request.len().min(400)]).into_owned();
    let conversation = Conversation::around(request);
    let (direct, survived) = conversation.directly(servers[0]);
    let cut = choices.below(conversation.before.len() + conversation.rest.len() + 1);
    let (through, through_survived) = conversation.through(proxy, cut);
    if survived {
        let text = |heard: &[u8]| String::from_utf8_lossy(heard).into_owned();
        assert_eq!(text(&through), text(&direct), "{:?}", shown());
        assert!(through_survived);
    } else {
        assert!(through.starts_with(conversation.answer), "earlier requests are answered: {:?}", shown());
    }
    survived
}

#[test]
fn memcached_commands_have_the_answers_of_the_server() {
    let (Some(direct), Some(behind)) = (Server::memcached(), Server::memcached()) else { return };
    let proxy = Running::plain("memcached", behind.address);
    let seed = std::env::var("TAILWRIGHT_SURVIVAL_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut choices = Choices(seed.unwrap_or(0x5eed_0001));
    let mut survived = 0;
    for line in LINES {
        for end in ENDS {
            survived += usize::from(compare(&mut choices, [&direct, &behind], &proxy, &[line, end].concat()));
        }
    }
    for _ in 0..1500 {
        let request = odd_request(&mut choices);
        survived += usize::from(compare(&mut choices, [&direct, &behind], &proxy, &request));
    }
    println!("{survived} of 1660 odd requests were answered and survived");
    assert!(survived > 1600, "memcached survives nearly all of them: {survived}");
    let report = proxy.drain();
    assert_eq!((report.snapshot.buffered_bytes, report.snapshot.outstanding), (0, 0));
}

/// A list of keys of 64 KiB and more.
#[test]
fn long_lists_of_keys_are_answered() {
    let (Some(direct), Some(behind)) = (Server::memcached(), Server::memcached()) else { return };
    let proxy = Running::plain("memcached", behind.address);
    let mut choices = Choices(3);
    for count in [63, 64, 65, 3000, 20_000, 200_000] {
        for command in ["get", "gets"] {
            let mut request = command.as_bytes().to_vec();
            for number in 0..count {
                let key = if number % 1000 == 7 { "a".into() } else { format!("user:{number:05}:profile") };
                request.extend(format!(" {key}").as_bytes());
            }
            request.extend(b"\r\n");
            assert!(
                compare(&mut choices, [&direct, &behind], &proxy, &request),
                "memcached reads {count} keys"
            );
        }
    }
    let report = proxy.drain();
    assert_eq!((report.snapshot.cut, report.snapshot.buffered_bytes, report.snapshot.outstanding), (0, 0, 0));
    // Each part is a request, so that others come in between.
    assert!(report.snapshot.workloads[0].requests > 2 * 200_000 / 64);
}

/// Lines at which memcached hangs up: earlier requests are answered, and the client is told why it was cut off.
#[test]
fn memcached_is_left_with_a_reason() {
    let Some(server) = Server::memcached() else { return };
    let proxy = Running::plain("memcached", server.address);
    let farewell = |request: &[u8]| {
        let mut stream = connect(proxy.connect());
        let mut writer = stream.try_clone().unwrap();
        let said = [b"set a 0 0 1\r\n1\r\nget a\r\nget a\r\n", request].concat();
        std::thread::scope(|scope| {
            scope.spawn(move || drop(writer.write_all(&said)));
            let mut heard = Vec::new();
            let _ = hear(&mut stream, &mut heard, b"MN\r\n");
            let before = b"STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\nVALUE a 0 1\r\n1\r\nEND\r\n";
            let said = heard.strip_prefix(before).expect("earlier requests are answered");
            String::from_utf8_lossy(said).into_owned()
        })
    };
    let line = [&b"mg a "[..], &[b'x'; 70_000], b"\r\nmn\r\n"].concat();
    assert_eq!(
        farewell(&line),
        "CLIENT_ERROR memcached line in bytes: at most 65536, found 65537\r\n",
        "a line that memcached does not read either"
    );
    let line = [&b"mg a "[..], &[b'x'; 7000], b"\r\nmn\r\n"].concat();
    assert_eq!(farewell(&line), "CLIENT_ERROR line too long\r\nMN\r\n", "the session goes on");
    let spaces = [b"get", &[b' '; 70_000][..], b"a\r\nmn\r\n"].concat();
    assert!(farewell(&spaces).starts_with("CLIENT_ERROR memcached line in bytes"));
    assert_eq!(
        farewell(b"watch\r\nmn\r\n"),
        "CLIENT_ERROR watch is refused: connect without the proxy\r\nMN\r\n"
    );
    // memcached 1.6.18 takes the length for 5, later ones refuse it.
    assert_eq!(
        farewell(b"set a 0 0 4294967301\r\nget b\r\nmn\r\n"),
        "CLIENT_ERROR bad command line format\r\nEND\r\nMN\r\n"
    );
    // Requests behind a list of all keys wait for its end.
    assert!(farewell(b"lru_crawler metadump all\r\nmn\r\n").ends_with("END\r\nMN\r\n"));
}

/// An unknown command with a body, of which memcached 1.6 skips a part of the next message, too.
#[test]
fn unknown_binary_commands_are_answered() {
    let Some(server) = Server::memcached() else { return };
    let proxy = Running::plain("memcached", server.address);
    let message = |opcode: u8, body: &[u8], opaque: u8| {
        let len = u8::try_from(body.len()).unwrap();
        let head = [0x80, opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0, len, 0, 0, 0, opaque, 0, 0, 0, 0, 0, 0, 0, 0];
        [&head[..], body].concat()
    };
    let mut stream = connect(proxy.connect());
    let said = [message(0x0b, b"", 1), message(0x1b, b"body", 2), message(0x0a, b"", 3)].concat();
    stream.write_all(&said).unwrap();
    let mut heard = Vec::new();
    let noop = [0x81, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0];
    hear(&mut stream, &mut heard, &noop).unwrap();
    let unknown =
        [&[0x81, 0x1b, 0, 0, 0, 0, 0, 0x81, 0, 0, 0, 15, 0, 0, 0, 2][..], &[0; 8], b"Unknown command"];
    let unknown = unknown.concat();
    assert!(heard.windows(unknown.len()).any(|window| window == unknown), "{heard:?}");
    assert_eq!(heard[1], 0x0b, "the version comes first");
}

/// Keys that are not there cost as much as others: by the profile of the tests a millisecond for each, of which half a
/// second is allowed per second. The machine can only make it slower.
#[test]
fn lookups_of_missing_keys_keep_the_limit() {
    let Some(server) = Server::memcached() else { return };
    let clients = "[[client]]\nworkload = \"w\"\nhost = \"here\"";
    let deployment = proxy::deployment("memcached", server.address, "over = \"queue\"", clients);
    let policy = proxy::policy(&[("w", 0, &[(0.5, 0.1)])]);
    let proxy = Running::start(ProxyOptions::new("ssd", deployment, Some(policy), proxy::profile()));
    let mut stream = connect(proxy.connect());
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let keys: String = (0..800).map(|number| format!(" none{number}")).collect();
    let begin = std::time::Instant::now();
    stream.write_all(format!("get{keys}\r\nmn\r\n").as_bytes()).unwrap();
    let mut heard = Vec::new();
    hear(&mut stream, &mut heard, b"MN\r\n").unwrap();
    assert_eq!(heard, b"END\r\nMN\r\n");
    // 800 keys in parts of 64, whose first key costs an eighth of a millisecond; the last may begin on credit.
    let least = (0.8 - 13.0 * 0.9 / 1000.0 - 0.1 - 0.064) / 0.5;
    assert!(begin.elapsed().as_secs_f64() >= least, "{:?} for {least} s", begin.elapsed());
}

/// Requests of NBD in front of garbage are answered, and so is a read that is larger than the usual 32 MiB.
#[test]
fn nbd_requests_before_garbage_are_answered() {
    let Some(server) = Server::nbdkit("memory 128M") else { return };
    let proxy = Running::plain("nbd", server.address);
    let mut stream = proxy::nbd(proxy.address, "");
    let mut request = Vec::new();
    (0..100).for_each(|cookie| wire::nbd::client::read(&mut request, cookie, 0, 512));
    wire::nbd::client::read(&mut request, 100, 0, 48 << 20);
    request.extend([0; 28]);
    stream.write_all(&request).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert_eq!(heard.len(), 101 * 16 + 100 * 512 + (48 << 20), "every read is answered before the end");
}
