//! What is no message of HTTP/1 and of RESP, and what is said about it.

mod common;
#[path = "common/defects.rs"]
mod defects;

use common::{Side, Watch};
use defects::{CLIENT, SERVER, table};

#[test]
fn http() {
    let long = [b"GET /", &b"x".repeat(70_000)[..]].concat();
    let request = "HTTP request: expected a line of HTTP/1 and fields";
    let get = (CLIENT, &b"GET / HTTP/1.1\r\n\r\n"[..]);
    table(
        Watch::http,
        &[
            (&[(CLIENT, &long)], "HTTP head in bytes: at most 65536, found 70006"),
            (&[(CLIENT, b"PRI * HTTP/2.0\r\n\r\n")], request),
            (&[(CLIENT, b"get key\r\n")], request),
            (&[get, (SERVER, b"END\r\n")], "HTTP response: expected a line of HTTP/1 and fields"),
            (&[(CLIENT, b"\x16\x03\x01\n\n")], request),
            (
                &[(CLIENT, b"CONNECT x:1 HTTP/1.1\r\n\r\n")],
                "an HTTP tunnel is refused: observe what it leads to",
            ),
            (
                &[(CLIENT, b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")],
                "Content-Length: expected one length",
            ),
            (
                &[(CLIENT, b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n")],
                "Content-Length: expected a number",
            ),
            (
                &[(CLIENT, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n")],
                "size of an HTTP chunk: expected a hexadecimal number",
            ),
            (
                &[get, (SERVER, b"HTTP/1.1 101 Switching\r\n\r\n")],
                "another protocol after HTTP's 101 is refused: observe it without a protocol",
            ),
            (&[get, (SERVER, b"220 ftp\r\n\r\n")], "HTTP response: expected a line of HTTP/1 and fields"),
        ],
    );
}

#[test]
fn resp() {
    let refused = "a RESP command without one reply is refused: observe such connections without a protocol";
    let line = [b"*", &b"1".repeat(5000)[..]].concat();
    table(
        Watch::resp,
        &[
            (&[(CLIENT, &line)], "RESP line in bytes: at most 32, found 5002"),
            (&[(CLIENT, b"*x\r\n")], "number in a RESP line: expected at most ten digits"),
            (&[(CLIENT, b"*01\r\n")], "number in a RESP line: expected no zeros in front"),
            (&[(CLIENT, b"*1\r\n+GET\r\n")], "word of a RESP command: expected a bulk string"),
            (&[(CLIENT, b"*1\r\n$-1\r\n")], "word of a RESP command: expected a length"),
            (&[(CLIENT, b"*2000000\r\n")], "words of a RESP command: at most 1048576, found 2000000"),
            (
                &[(CLIENT, b"*1\r\n$999999999\r\n")],
                "RESP string in bytes: at most 536870912, found 999999999",
            ),
            (&[(CLIENT, b"\x00\x00\n")], "RESP command: expected an array or a word"),
            (&[(CLIENT, b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nx\r\n")], refused),
            (&[(CLIENT, b"*3\r\n$6\r\nclient\r\n$5\r\nReply\r\n$3\r\nOFF\r\n")], refused),
            (&[(CLIENT, b"monitor\r\n")], refused),
            (&[(SERVER, b"+OK\r\n")], "RESP reply 0: no outstanding request that it could answer"),
            (&[(CLIENT, b"PING\r\n"), (SERVER, b"HTTP")], "RESP reply: expected one of +-:$*_#,(!=%~>|"),
        ],
    );
}

/// Without a length a body ends with its connection, and nothing behind it is a response.
#[test]
fn a_body_until_the_connection_closes() {
    let mut watch = Watch::http();
    watch.feed(Side::Client, b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n").expect("two requests");
    watch.feed(Side::Server, b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").expect("one response");
    let replies = watch.replies();
    assert_eq!((replies.len(), replies[0].1.len.0), (1, u64::MAX));
}
