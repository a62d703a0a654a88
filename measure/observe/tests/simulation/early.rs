//! Answers before all of a request is read, connections that end with them, and messages that begin where nobody knows.

use crate::{blank_event, is_told_surely};
use observe::{EventKind, JoinCounts, KernelEvent, ObservedRequest, Protocol, RequestJoiner, RequestQuality};

const READER: u32 = 7;

/// A connection whose packets, reads and writes a test says one by one.
struct Scene {
    joiner: RequestJoiner,
    found: Vec<ObservedRequest>,
    time: u64,
    arrived: u32,
    read: u32,
    written: u32,
}

impl Scene {
    fn of(protocol: Option<Protocol>) -> Self {
        let joiner = RequestJoiner::of_protocol(protocol);
        Self { joiner, found: Vec::new(), time: 1000, arrived: 0, read: 0, written: 0 }
    }

    fn new_connection(protocol: Option<Protocol>) -> Self {
        let mut scene = Self::of(protocol);
        scene.report(EventKind::Open, (0, 0), blank_event(0, EventKind::Open), &[]);
        scene
    }

    fn report(&mut self, kind: EventKind, (begin, end): (u32, u32), event: KernelEvent, bytes: &[u8]) {
        self.time += 10;
        let event = KernelEvent { time: self.time, kind, begin, end, push: true, ..event };
        self.joiner.handle_with_bytes(&event, bytes, &mut self.found);
    }

    /// A packet of this length, which ends with PSH.
    fn packet(&mut self, length: usize) -> &mut Self {
        let range = (self.arrived, self.arrived + number(length));
        self.arrived = range.1;
        let wire = KernelEvent { earlier: self.time + 5, ..blank_event(0, EventKind::Arrival) };
        self.report(EventKind::Arrival, range, wire, &[]);
        self.report(EventKind::Ready, (0, range.1), blank_event(0, EventKind::Ready), &[]);
        self
    }

    /// A read by the thread that reads, which has slept before.
    fn read(&mut self, bytes: &[u8]) -> &mut Self {
        let range = (self.read, self.read + number(bytes.len()));
        self.read = range.1;
        let earlier = self.time + 1;
        let event = KernelEvent { thread: READER, earlier, ..blank_event(0, EventKind::Receive) };
        self.report(EventKind::Bytes, range, event, bytes);
        self.report(EventKind::Receive, range, event, &[]);
        self
    }

    fn write(&mut self, thread: u32, bytes: &[u8]) -> &mut Self {
        let range = (self.written, self.written + number(bytes.len()));
        self.written = range.1;
        let event = KernelEvent { thread, answer: true, ..blank_event(0, EventKind::Send) };
        self.report(EventKind::Bytes, range, event, bytes);
        self.report(EventKind::Send, range, event, &[]);
        self.report(EventKind::Transmit, range, event, &[]);
        self
    }

    fn answer(&mut self, bytes: &[u8]) -> &mut Self {
        self.write(READER, bytes)
    }

    /// A packet that is read at once and answered.
    fn exchange(&mut self, request: &[u8], answer: &[u8]) -> &mut Self {
        self.packet(request.len()).read(request).answer(answer)
    }

    /// Ends the connection: of each request the bytes, those of its answer, and whether it is a guess.
    fn close(&mut self) -> (Vec<(u64, u64, bool)>, JoinCounts) {
        self.report(EventKind::Close, (0, 0), blank_event(0, EventKind::Close), &[]);
        let is_guess = |request: &ObservedRequest| request.quality.has(RequestQuality::GUESSED);
        let facts =
            |request: &ObservedRequest| (request.request_bytes, request.answer_bytes, is_guess(request));
        (self.found.iter().map(facts).collect(), self.joiner.counts())
    }
}

fn number(length: usize) -> u32 {
    u32::try_from(length).expect("lengths are small")
}

const ALL_JOINED: JoinCounts = JoinCounts {
    unanswered: 0,
    unrequested: 0,
    unseen_arrivals: 0,
    discarded: 0,
    gaps: 0,
    one_way: 0,
    silent: 0,
    untold: 0,
    unseen_reads: 0,
    multipath: 0,
};

/// What is read after the answer is the rest of that request, and no other one.
#[test]
fn an_answer_before_all_of_a_packet_is_read() {
    let mut scene = Scene::new_connection(None);
    scene.packet(20_000).read(&[0; 4096]).answer(&[0; 80]).read(&[0; 10_000]).read(&[0; 5904]);
    let (found, counts) = scene.exchange(&[0; 30], &[0; 10]).close();
    assert_eq!((found, counts), (vec![(4096, 80, false), (30, 10, false)], ALL_JOINED));
    let mut scene = Scene::new_connection(None);
    scene.packet(29).read(&[0; 10]).answer(&[0; 49]).packet(30).read(&[0; 49]).answer(&[0; 5]);
    assert_eq!(scene.close(), (vec![(10, 49, false), (30, 5, false)], ALL_JOINED));
    let first = &scene.found[0];
    assert!(first.points[0] < first.points[4] && first.points[4] < first.points[6], "{first:?}");
}

/// A connection may end with the answer.
#[test]
fn an_answer_before_all_of_a_packet_is_read_and_the_end() {
    let mut scene = Scene::new_connection(None);
    let (found, counts) = scene.packet(29).read(&[0; 10]).answer(&[0; 540]).close();
    assert_eq!((found, counts), (vec![(10, 540, false)], ALL_JOINED));
}

/// The server may owe an answer to something before: then an answer is not to a first packet that is read in part.
#[test]
fn an_answer_before_all_of_the_first_packet_of_an_old_connection_is_read() {
    let mut scene = Scene::of(None);
    scene.packet(29).read(&[0; 10]).answer(&[0; 49]).read(&[0; 19]).answer(&[0; 5]);
    let (found, counts) = scene.packet(29).read(&[0; 10]).answer(&[0; 49]).close();
    let expected = (vec![(29, 5, false), (10, 49, false)], JoinCounts { unrequested: 1, ..ALL_JOINED });
    assert_eq!((found, counts), expected);
}

/// Whether further answers are to requests of their own cannot be known.
#[test]
fn answers_to_parts_of_a_packet_are_guesses_after_the_first() {
    let mut scene = Scene::new_connection(None);
    scene.packet(84);
    for _ in 0..3 {
        scene.read(&[0; 28]).answer(&[0; 16]);
    }
    let (found, counts) = scene.exchange(&[0; 5], &[0; 6]).close();
    let expected = vec![(28, 16, false), (28, 16, true), (28, 16, true), (5, 6, false)];
    assert_eq!((found, counts), (expected, ALL_JOINED));
}

/// What another thread writes meanwhile is no answer to what is read in part.
#[test]
fn another_thread_writes_before_all_of_a_packet_is_read() {
    let mut scene = Scene::new_connection(None);
    let (found, counts) =
        scene.packet(29).read(&[0; 10]).write(8, &[0; 5]).read(&[0; 19]).write(8, &[0; 6]).close();
    assert_eq!((found, counts), (vec![(29, 6, false)], JoinCounts { unrequested: 1, ..ALL_JOINED }));
}

const HALF_HEAD: &[u8] = b"GET / HTTP";
const REST: &[u8] = b"/1.1\r\nHost: a\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nabc";

/// The server closes the connection before all of its answer is sent.
#[test]
fn http_answers_to_half_a_head() {
    let mut scene = Scene::new_connection(Some(Protocol::Http1));
    let length = HALF_HEAD.len() + REST.len();
    let (found, counts) = scene.packet(length).read(HALF_HEAD).answer(&ANSWER[..ANSWER.len() - 1]).close();
    assert_eq!((found, counts), (vec![(10, ANSWER.len() as u64 - 1, false)], ALL_JOINED));
}

/// Which answer belongs to which request after that is not known: it is told apart by packets again.
#[test]
fn http_goes_on_after_an_answer_to_half_a_head() {
    let mut scene = Scene::new_connection(Some(Protocol::Http1));
    let all = [HALF_HEAD, REST].concat();
    scene.packet(all.len()).read(HALF_HEAD).answer(ANSWER).read(REST);
    assert_eq!((scene.found.len(), scene.joiner.open_between(&(0..u64::MAX))), (1, 0));
    let (found, counts) = scene.exchange(&all, ANSWER).exchange(&all, ANSWER).close();
    let bytes: Vec<u64> = found.iter().map(|(asked, ..)| *asked).collect();
    assert_eq!(bytes, [10, all.len() as u64, all.len() as u64]);
    assert_eq!(counts, JoinCounts { untold: 1, ..ALL_JOINED });
    assert!(!is_told_surely(&&scene.found[1]));
}

/// What is read and not answered is counted, wherever it ends; so is an answer to nothing.
#[test]
fn http_connections_that_end_in_the_middle() {
    let post = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab";
    for part in [HALF_HEAD, post] {
        let mut scene = Scene::new_connection(Some(Protocol::Http1));
        let (found, counts) = scene.packet(part.len()).read(part).close();
        assert_eq!((found.len(), counts), (0, JoinCounts { unanswered: 1, ..ALL_JOINED }));
    }
    let mut scene = Scene::new_connection(Some(Protocol::Http1));
    let all = [HALF_HEAD, REST].concat();
    let (found, counts) = scene.exchange(&all, ANSWER).answer(ANSWER).close();
    assert_eq!((found.len(), counts), (1, JoinCounts { unrequested: 1, ..ALL_JOINED }));
}

/// Messages begin to be told apart inside of a value: what is read in part is not the beginning of a request that is sure.
#[test]
fn a_request_that_began_where_nobody_knows_is_a_guess() {
    let mut scene = Scene::of(Some(Protocol::Memcached));
    scene.exchange(b"get a\r\n", b"END\r\n");
    scene.packet(2).read(b"xx").packet(2).read(b"\r\n").answer(b"STORED\r\n");
    let (found, counts) = scene.exchange(b"get b\r\n", b"END\r\n").exchange(b"get c\r\n", b"END\r\n").close();
    assert_eq!(counts, ALL_JOINED);
    assert_eq!(found[1..], [(4, 8, true), (7, 5, false), (7, 5, false)]);
}

/// The first request that is told apart is a guess, though the reader has slept.
#[test]
fn the_first_request_is_a_guess_after_a_sleep() {
    let mut scene = Scene::of(Some(Protocol::Memcached));
    scene.exchange(b"get a\r\n", b"END\r\n").exchange(b"\r\n", b"STORED\r\n");
    let (found, _) = scene.exchange(b"get b\r\n", b"END\r\n").close();
    assert_eq!(found[1..], [(2, 8, true), (7, 5, false)]);
}

fn nbd_read(cookie: u8) -> Vec<u8> {
    let head = [0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0];
    [&head[..], &[0, 0, 0, 0, 0, 0, 0, cookie], &[0; 8], &[0, 0, 0, 9]].concat()
}

fn nbd_reply(cookie: u8) -> Vec<u8> {
    [&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0][..], &[0, 0, 0, 0, 0, 0, 0, cookie], &[0x25; 9]].concat()
}

/// A server that reads requests one by one, and answers by other threads while it reads further ones of a packet.
#[test]
fn nbd_that_was_there_before_begins_with_a_packet() {
    let mut scene = Scene::of(Some(Protocol::Nbd));
    for burst in 0..3 {
        let cookies = [burst * 4, burst * 4 + 1, burst * 4 + 2, burst * 4 + 3];
        scene.packet(4 * 28);
        for cookie in cookies {
            scene.read(&nbd_read(cookie));
            if cookie > cookies[1] {
                scene.write(8, &nbd_reply(cookie - 2));
            }
        }
        scene.write(9, &nbd_reply(cookies[2])).write(8, &nbd_reply(cookies[3]));
    }
    let (found, counts) = scene.close();
    let told: Vec<_> = found.iter().filter(|(bytes, ..)| *bytes == 28).copied().collect();
    assert_eq!((told.len(), counts.untold), (8, 0), "{found:?}");
    assert_eq!(told[0], (28, 25, true));
    assert!(told[1..].iter().all(|facts| *facts == (28, 25, false)), "{told:?}");
}

/// A read in the middle of the data of a write is no beginning, and is not tried as one.
#[test]
fn nbd_does_not_begin_with_data() {
    let mut scene = Scene::of(Some(Protocol::Nbd));
    for _ in 0..5 {
        scene.exchange(&[7; 20], &nbd_reply(0));
    }
    scene.exchange(&nbd_read(1), &nbd_reply(1)).exchange(&nbd_read(2), &nbd_reply(2));
    let (found, counts) = scene.close();
    assert_eq!(counts, ALL_JOINED);
    assert_eq!(found[5..], [(28, 25, true), (28, 25, false)]);
}
