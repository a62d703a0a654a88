//! Odd requests of memcached.

use crate::conversation::{Choices, Dialect, beside_bystanders, compare, connect, hear};
use crate::proxy::{Running, Server};
use std::io::Write;

static DIALECT: Dialect = Dialect {
    // The proxy gives clients that send this a connection of their own; the others share some.
    clear: Some((b"flush_all\r\n", b"OK\r\n")),
    before: b"set a 7 0 3\r\nxyz\r\nset n 0 0 1\r\n5\r\nget a\r\n",
    answer: b"STORED\r\nSTORED\r\nVALUE a 7 3\r\nxyz\r\nEND\r\n",
    behind: b"get n\r\nmn\r\n",
    end: b"MN\r\n",
    last_words: None,
};

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

#[test]
fn memcached_commands_have_the_answers_of_the_server() {
    let (Some(direct), Some(behind)) = (Server::memcached(), Server::memcached()) else { return };
    let proxy = Running::plain("memcached", behind.address);
    let seed = std::env::var("TAILWRIGHT_SURVIVAL_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut choices = Choices(seed.unwrap_or(0x5eed_0001));
    let mut survived = 0;
    let mut try_request = |choices: &mut Choices, request: &[u8]| {
        survived += usize::from(compare(&DIALECT, choices, [&direct, &behind], &proxy, request));
    };
    let bystander = |number| {
        let request = format!("mg bystander O{number}\r\nget bystander\r\nmn\r\n");
        (request, format!("EN O{number}\r\nEND\r\nMN\r\n"))
    };
    beside_bystanders(&proxy, bystander, || {
        for line in LINES {
            for end in ENDS {
                try_request(&mut choices, &[line, end].concat());
            }
        }
        for _ in 0..1500 {
            let request = odd_request(&mut choices);
            try_request(&mut choices, &request);
        }
    });
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
                compare(&DIALECT, &mut choices, [&direct, &behind], &proxy, &request),
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
