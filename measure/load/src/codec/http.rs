//! HTTP/1.1 (RFC 9112): GET and PUT of one path on a persistent connection, pipelined.

use super::client_codec::{ClientCodec, Decoded, IoRequest, ReplyStatus};
use super::reply_framer::ReplyFramer;
use model::Op;
use std::borrow::Cow;
use units::Bytes;
use wire::ParserLimits;
use wire::http1::HttpParser;

/// A response is kept in memory until it is complete.
const LIMITS: ParserLimits =
    ParserLimits { message: Bytes(1 << 30), in_flight: 1 << 16, ..ParserLimits::HTTP };

/// Requests one path of one host. Responses come in the order of requests.
#[derive(Debug)]
pub(crate) struct HttpCodec {
    host: String,
    path: String,
    framer: ReplyFramer<HttpParser>,
}

impl HttpCodec {
    pub(crate) fn new(host: String, path: String) -> Self {
        Self { host, path, framer: ReplyFramer::new(HttpParser::new(LIMITS)) }
    }
}

impl ClientCodec for HttpCodec {
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        _id: u64,
        request: IoRequest,
        payload: &[u8],
    ) -> Result<(), String> {
        let start = out.len();
        let path = &self.path;
        let host = &self.host;
        let head = match request.op {
            Op::Read => format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            Op::Write => {
                format!("PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n", payload.len())
            }
        };
        out.extend(head.as_bytes());
        out.extend(payload);
        self.framer.register_request(&out[start..])
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String> {
        match self.framer.next_reply(input)? {
            // Nothing tells an answer that is whole from one whose server died.
            Decoded::NeedMore(usize::MAX) => Err(
                "the server's answer ends with its connection; this client needs a Content-Length or chunks"
                    .to_owned(),
            ),
            decoded => Ok(decoded),
        }
    }

    /// A body may be in chunks. It is not compared with what was written, and so not handed on.
    fn interpret<'a>(&self, _request: IoRequest, reply: &'a [u8], _payload_start: usize) -> ReplyStatus<'a> {
        match parse_status(reply) {
            Some(200..400) => ReplyStatus::Done(Cow::Borrowed(&[])),
            Some(status) => ReplyStatus::Failed(format!("the server answered with status {status}")),
            None => ReplyStatus::Failed("the server's answer has no status".to_owned()),
        }
    }

    fn takes_requests(&self) -> bool {
        !self.framer.wire().is_closing()
    }

    /// The response that announces the end still has its body.
    fn is_closing(&self) -> bool {
        self.framer.wire().is_closing() && !self.framer.has_begun()
    }
}

/// Returns the status of a response whose first line was checked by the framer.
fn parse_status(reply: &[u8]) -> Option<u16> {
    let digits = reply.trim_ascii_start().split(|byte| *byte == b' ').nth(1)?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GET: IoRequest = IoRequest { op: Op::Read, size: 5, address: 0 };

    /// A codec that has sent `count` requests.
    fn asked(count: u64) -> HttpCodec {
        let mut http = HttpCodec::new("h".into(), "/p".into());
        (0..count).for_each(|id| http.encode(&mut Vec::new(), id, GET, &[]).unwrap());
        http
    }

    const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH: 5\r\n\r\nhello";
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n\
        2\r\nlo\r\n0\r\nX-Sum: 9\r\n\r\n";

    #[test]
    fn responses_end_where_their_bodies_end() {
        for response in [PLAIN, CHUNKED] {
            let mut pieces = asked(1);
            for cut in 0..response.len() {
                let decoded = pieces.decode(&response[..cut]).unwrap();
                assert!(matches!(decoded, Decoded::NeedMore(needed) if needed > cut), "{cut}");
            }
            let mut http = asked(2);
            for id in 0..2 {
                let twice = [response, response].concat();
                let decoded = http.decode(&twice[response.len() * id as usize..]).unwrap();
                let Decoded::Reply { len, id: found, .. } = decoded else { panic!("{decoded:?}") };
                assert_eq!((len, found), (response.len(), id));
                assert_eq!(http.interpret(GET, response, 0), ReplyStatus::Done(Cow::Borrowed(b"")));
            }
            assert!(!http.is_closing());
        }
    }

    #[test]
    fn unreadable_responses_are_errors() {
        for (response, part) in [
            (&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\n"[..], "chunk"),
            (b"HTTP/1.1 200 OK\r\n\r\n", "ends with its connection"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "body"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "Content-Length"),
            (b"HTTP/2 200\r\n\r\n", "response"),
            (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "response"),
        ] {
            let error = asked(1).decode(response).unwrap_err();
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(asked(1).decode(&vec![b'x'; LIMITS.head]).unwrap_err().contains("head"));
    }

    #[test]
    fn statuses_and_closing_are_noticed() {
        let mut http = asked(1);
        let responses =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(http.decode(responses), Ok(Decoded::Skip(25)));
        let decoded = http.decode(&responses[25..]).unwrap();
        assert!(matches!(decoded, Decoded::Reply { id: 0, .. }), "{decoded:?}");
        assert!(http.is_closing());
        let ReplyStatus::Failed(why) = http.interpret(GET, &responses[25..], 0) else { panic!("no failure") };
        assert!(why.contains("503"), "{why}");
        let mut old = asked(1);
        old.decode(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        assert!(old.is_closing());
    }

    /// A client that left at the head would ask again for what the server has answered.
    #[test]
    fn the_last_response_is_received_whole() {
        let last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
        let mut http = asked(2);
        for cut in 0..last.len() {
            let decoded = http.decode(&last[..cut]).unwrap();
            assert!(matches!(decoded, Decoded::NeedMore(_)) && !http.is_closing(), "{cut}: {decoded:?}");
        }
        assert!(!http.takes_requests());
        let decoded = http.decode(last).unwrap();
        assert!(matches!(decoded, Decoded::Reply { id: 0, .. }) && http.is_closing(), "{decoded:?}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), keep in 0..80usize) {
            for start in [PLAIN, CHUNKED] {
                let mixed = [&start[..keep.min(start.len())], &bytes].concat();
                for input in [&bytes, &mixed] {
                    if let Ok(Decoded::Reply { len, .. } | Decoded::Skip(len)) = asked(1).decode(input) {
                        prop_assert!(len > 0 && len <= input.len());
                    }
                }
            }
        }
    }
}
