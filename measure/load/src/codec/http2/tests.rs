use super::*;
use h2::server;
use http::{HeaderMap, Response};
use model::Op;
use proptest::prelude::*;

const GET: IoRequest = IoRequest { op: Op::Read, size: 5, address: 0 };

/// Reaction of a server to a request.
#[derive(Debug, Clone, Copy)]
enum Reaction {
    /// Answers with this status and as many bytes.
    Answer(u16, usize),
    /// Answers with a message of gRPC, and this status in trailers.
    Message(&'static [u8], Option<&'static str>),
    /// Resets the stream.
    Reset(Reason),
    /// Announces that it ends the connection, then answers this request, but none after it.
    Leave,
    /// Never answers.
    Nothing,
    /// Ends the connection with an error.
    Abort(Reason),
}

/// The server of crate h2, in memory.
struct MemoryServer {
    pipe: Pipe,
    connection: server::Connection<Pipe, Bytes>,
    /// Streams that stay open.
    kept: Vec<server::SendResponse<Bytes>>,
}

impl MemoryServer {
    fn start(from_client: &[u8]) -> Self {
        let pipe = Pipe::default();
        pipe.push_received(from_client);
        let mut handshake =
            Box::pin(server::Builder::new().max_concurrent_streams(50).handshake(pipe.clone()));
        let Poll::Ready(started) = handshake.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("the client's part of the handshake is there")
        };
        Self { pipe, connection: started.unwrap(), kept: Vec::new() }
    }

    /// Reacts to all requests that have arrived, and returns what the server sends.
    fn react(&mut self, reactions: &mut impl Iterator<Item = Reaction>) -> Vec<u8> {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok((_, mut respond)))) = self.connection.poll_accept(&mut context) {
            match reactions.next().expect("a reaction for each request") {
                Reaction::Answer(status, size) => {
                    let response = Response::builder().status(status).body(()).unwrap();
                    let mut body = respond.send_response(response, size == 0).unwrap();
                    if size > 0 {
                        body.send_data(vec![b'x'; size].into(), true).unwrap();
                    }
                }
                Reaction::Message(message, status) => {
                    let response = Response::builder().header("content-type", "application/grpc+proto");
                    let mut body = respond.send_response(response.body(()).unwrap(), false).unwrap();
                    body.send_data(message.into(), false).unwrap();
                    let mut trailers = HeaderMap::new();
                    status.map(|status| trailers.insert("grpc-status", status.parse().unwrap()));
                    body.send_trailers(trailers).unwrap();
                }
                Reaction::Reset(reason) => respond.send_reset(reason),
                Reaction::Leave => {
                    self.connection.graceful_shutdown();
                    let _ = respond.send_response(Response::new(()), true).unwrap();
                }
                Reaction::Nothing => self.kept.push(respond),
                Reaction::Abort(reason) => self.connection.abrupt_shutdown(reason),
            }
        }
        let mut out = Vec::new();
        self.pipe.take_to_send(&mut out);
        out
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.pipe.push_received(bytes);
    }
}

fn http() -> Exchange {
    Exchange::http("http", "h", "/p").unwrap()
}

/// A client that has sent `count` requests, and their bytes.
fn asked(exchange: Exchange, count: u64) -> (Http2Codec, Vec<u8>) {
    let mut codec = Http2Codec::new(exchange).unwrap();
    let mut out = Vec::new();
    codec.accept(&[], &mut Vec::new(), &mut out).unwrap();
    (0..count).for_each(|id| codec.encode(&mut out, id, GET, &[]).unwrap());
    (codec, out)
}

/// The replies in `input`: the number of each request, and why it failed.
fn replies(codec: &mut Http2Codec, mut input: &[u8]) -> Vec<(u32, Option<String>)> {
    let mut found = Vec::new();
    while !input.is_empty() {
        let Decoded::Reply { len, id, payload_start } = codec.decode(input).unwrap() else {
            panic!("cut off")
        };
        let status = match codec.interpret(GET, &input[..len], payload_start) {
            ReplyStatus::Done(_) => None,
            ReplyStatus::Failed(why) => Some(why),
            ReplyStatus::KeyMissing => panic!("HTTP has no keys"),
        };
        found.push((id, status));
        input = &input[len..];
    }
    found
}

/// Everything that a server sends for these reactions to as many requests, and the client that asked.
fn session(exchange: Exchange, reactions: &[Reaction]) -> (Http2Codec, Vec<u8>) {
    let (codec, sent) = asked(exchange, reactions.len() as u64);
    let sent_by_server = MemoryServer::start(&sent).react(&mut reactions.iter().copied());
    (codec, sent_by_server)
}

const MIXED: [Reaction; 5] = [
    Reaction::Answer(200, 40_000),
    Reaction::Answer(404, 3),
    Reaction::Reset(Reason::REFUSED_STREAM),
    Reaction::Answer(204, 0),
    Reaction::Answer(200, 1),
];

fn sorted(mut found: Vec<(u32, Option<String>)>) -> Vec<(u32, Option<String>)> {
    found.sort();
    found
}

#[test]
fn statuses_and_resets_are_told_apart() {
    let (mut codec, bytes) = session(http(), &MIXED);
    let mut input = Vec::new();
    codec.accept(&bytes, &mut input, &mut Vec::new()).unwrap();
    assert!(codec.is_ready() && codec.takes_requests() && !codec.is_closing());
    assert_eq!(codec.in_flight_max(), 50);
    let failed = |why: &str| Some(why.to_owned());
    let expected = [
        (0, None),
        (1, failed("the server answered with status 404")),
        (2, failed("the server reset the stream: REFUSED_STREAM")),
        (3, None),
        (4, None),
    ];
    assert_eq!(sorted(replies(&mut codec, &input)), expected);
    assert!(codec.streams.is_empty());
}

/// For every cut of the server's bytes, the replies are the same, and the first of them waits for its last byte.
#[test]
fn replies_that_are_cut_anywhere_are_the_same() {
    let (_, bytes) = session(http(), &MIXED);
    let (mut whole, _) = asked(http(), 5);
    let mut expected = Vec::new();
    whole.accept(&bytes, &mut expected, &mut Vec::new()).unwrap();
    let expected = sorted(replies(&mut whole, &expected));
    for cut in 0..=bytes.len() {
        let (mut codec, _) = asked(http(), 5);
        let mut input = Vec::new();
        codec.accept(&bytes[..cut], &mut input, &mut Vec::new()).unwrap();
        assert!(cut == bytes.len() || replies(&mut codec, &input).len() < 5, "{cut}");
        codec.accept(&bytes[cut..], &mut input, &mut Vec::new()).unwrap();
        assert_eq!(sorted(replies(&mut codec, &input)), expected, "{cut}");
    }
}

#[test]
fn calls_of_grpc_succeed_by_their_status_and_one_whole_message() {
    let exchange = || Exchange::grpc("http", "h", "/a.B/C", b"hello").unwrap();
    for (reaction, expected) in [
        (Reaction::Message(b"\0\0\0\0\x03abc", Some("0")), None),
        (Reaction::Message(b"\0\0\0\0\0", Some("0")), None),
        (Reaction::Message(b"\0\0\0\0\x03abc", Some("14")), Some("grpc-status 14 (UNAVAILABLE)")),
        (Reaction::Message(b"\0\0\0\0\x03abc", Some("99")), Some("grpc-status 99")),
        (Reaction::Message(b"\0\0\0\0\x03abc", None), Some("without a grpc-status")),
        (Reaction::Message(b"\0\0\0\0\x03ab", Some("0")), Some("expected one message")),
        (Reaction::Message(b"\0\0\0\0\x03abc\0\0\0\0\0", Some("0")), Some("expected one message")),
        (Reaction::Message(b"\0\0", Some("0")), Some("expected one message")),
        (Reaction::Message(b"\x01\0\0\0\x03abc", Some("0")), Some("compressed")),
        (Reaction::Answer(200, 8), Some("not of the type application/grpc")),
        (Reaction::Answer(503, 8), Some("HTTP status 503")),
    ] {
        let (mut codec, bytes) = session(exchange(), &[reaction]);
        let mut input = Vec::new();
        codec.accept(&bytes, &mut input, &mut Vec::new()).unwrap();
        let found = replies(&mut codec, &input);
        let [(0, why)] = &found[..] else { panic!("{reaction:?}: {found:?}") };
        let is_expected = match (why, expected) {
            (Some(why), Some(part)) => why.contains(part),
            (why, part) => why.is_none() && part.is_none(),
        };
        assert!(is_expected, "{reaction:?}: {why:?}, not {expected:?}");
    }
}

/// After GOAWAY, what the server has begun is answered, what it has not begun is left for another connection, and the
/// connection is closed only then.
#[test]
fn a_server_that_leaves_loses_no_request() {
    let (mut codec, sent) = asked(http(), 2);
    let mut server = MemoryServer::start(&sent);
    let mut bytes = server.react(&mut [Reaction::Nothing, Reaction::Leave].into_iter());
    let mut input = Vec::new();
    let mut found = Vec::new();
    for round in 0..4 {
        let mut out = Vec::new();
        codec.accept(&bytes, &mut input, &mut out).unwrap();
        found.extend(replies(&mut codec, &std::mem::take(&mut input)));
        assert!(!codec.is_closing(), "request 0 is not answered yet");
        if round == 0 {
            assert!(!codec.takes_requests() && codec.in_flight_max() == 0);
            assert!(codec.encode(&mut Vec::new(), 2, GET, &[]).is_err());
        }
        // The server waits for the answer to a ping before it says which request is its last.
        server.receive(&out);
        bytes = server.react(&mut std::iter::empty());
    }
    assert_eq!(found, [(1, None)]);
    let mut kept = server.kept.remove(0);
    let _ = kept.send_response(Response::new(()), true).unwrap();
    let bytes = server.react(&mut std::iter::empty());
    codec.accept(&bytes, &mut input, &mut Vec::new()).unwrap();
    assert_eq!(replies(&mut codec, &input), [(0, None)]);
    assert!(codec.is_closing());
}

/// GOAWAY whose last request is `last`, with an error code.
fn goaway(last: u8, code: u8) -> Vec<u8> {
    vec![0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, code]
}

#[test]
fn requests_that_a_leaving_server_has_not_begun_are_left_over() {
    let settings = [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];
    let (mut codec, _) = asked(http(), 3);
    let mut input = Vec::new();
    // Streams have the numbers 1, 3 and 5.
    codec.accept(&[&settings[..], &goaway(1, 0)].concat(), &mut input, &mut Vec::new()).unwrap();
    assert!(input.is_empty() && codec.streams.len() == 1 && !codec.is_closing());
    let (mut codec, _) = asked(http(), 3);
    codec.accept(&[&settings[..], &goaway(0, 0)].concat(), &mut input, &mut Vec::new()).unwrap();
    assert!(input.is_empty() && codec.is_closing());
}

/// An end with an error is a lost connection: requests in flight are neither answered nor sent again.
#[test]
fn a_connection_that_ends_with_an_error_is_lost() {
    let (mut codec, bytes) =
        session(http(), &[Reaction::Answer(200, 3), Reaction::Abort(Reason::ENHANCE_YOUR_CALM)]);
    let mut input = Vec::new();
    let error = codec.accept(&bytes, &mut input, &mut Vec::new()).unwrap_err();
    assert!(error.contains("ENHANCE_YOUR_CALM"), "{error}");
    assert!(!codec.is_closing());
    assert_eq!(replies(&mut codec, &input), [(0, None)], "what was answered before is answered");
}

#[test]
fn other_protocols_are_recognised() {
    let (mut codec, _) = asked(http(), 0);
    let answer = b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n";
    let error = codec.accept(answer, &mut Vec::new(), &mut Vec::new()).unwrap_err();
    assert!(error.contains("\"HTTP/1.1 400 Bad Request\""), "{error}");
    let (mut codec, _) = asked(http(), 0);
    codec.accept(&[0, 0, 6, SETTINGS], &mut Vec::new(), &mut Vec::new()).unwrap();
    assert!(!codec.is_ready());
    codec.accept(&[0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 7], &mut Vec::new(), &mut Vec::new()).unwrap();
    assert!(codec.is_ready());
    assert_eq!(codec.in_flight_max(), 7);
}

proptest! {
    /// Damaged bytes end in replies or an error, and never answer a request twice.
    #[test]
    fn damaged_bytes_are_survived(
        at in 0..45_000usize,
        damage in any::<u8>(),
        pieces in proptest::collection::vec(1..3000usize, 0..40),
    ) {
        let (mut codec, mut bytes) = session(http(), &MIXED);
        let at = at % bytes.len();
        bytes[at] ^= damage;
        let mut input = Vec::new();
        let mut rest = &bytes[..];
        for piece in pieces.into_iter().chain([usize::MAX]) {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            rest = later;
            if codec.accept(now, &mut input, &mut Vec::new()).is_err() {
                break;
            }
        }
        let mut ids: Vec<u32> = replies(&mut codec, &input).into_iter().map(|(id, _)| id).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert!(ids.len() == count && ids.iter().all(|id| *id < 5));
    }
}
