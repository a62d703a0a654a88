//! Bytes that no read accounts for: the server takes them by calls that are not seen. Their requests are counted, and none
//! of them is joined with what is written later.

use crate::blank_event;
use observe::{EventKind, JoinCounts, KernelEvent, ObservedRequest, Protocol, RequestJoiner};

const REQUEST: u32 = 40;
const ANSWER: u32 = 60;
const FIRST: u32 = u32::MAX - 100;

/// A connection on which requests of one packet are sent, taken and answered, one after the other.
struct Connection {
    joiner: RequestJoiner,
    found: Vec<ObservedRequest>,
    time: u64,
    /// The next bytes of the client and of the server, and those that the server has not taken.
    client: u32,
    server: u32,
    taken: u32,
}

impl Connection {
    fn new(protocol: Option<Protocol>) -> Self {
        let joiner = RequestJoiner::of_protocol(protocol);
        Self { joiner, found: Vec::new(), time: 1_000, client: FIRST, server: 7, taken: FIRST }
    }

    fn report(&mut self, kind: EventKind, (begin, end): (u32, u32), is_mptcp: bool) {
        self.time += 1_000;
        let event = KernelEvent {
            flow: 9,
            begin,
            end,
            thread: 5,
            earlier: self.time - 500,
            push: true,
            is_mptcp,
            ..blank_event(self.time, kind)
        };
        self.joiner.handle(&event, &mut self.found);
    }

    fn arrive(&mut self, is_mptcp: bool) {
        let begin = self.client;
        self.client = begin.wrapping_add(REQUEST);
        self.report(EventKind::Arrival, (begin, self.client), false);
        self.report(EventKind::Ready, (self.taken, self.client), is_mptcp);
    }

    /// The server takes everything that is there, by a call that is seen or not, or one whose length is not known.
    fn take(&mut self, reported: Option<bool>) {
        let begin = self.taken;
        self.taken = self.client;
        match reported {
            Some(true) => self.report(EventKind::Receive, (begin, self.taken), false),
            Some(false) => self.report(EventKind::Receive, (self.taken, self.taken), false),
            None => {}
        }
    }

    fn answer(&mut self) {
        let begin = self.server;
        self.server = begin.wrapping_add(ANSWER);
        self.report(EventKind::Send, (begin, self.server), false);
        self.report(EventKind::Transmit, (begin, self.server), false);
    }

    fn close(mut self) -> (Vec<ObservedRequest>, JoinCounts) {
        self.report(EventKind::Close, (self.taken, 0), false);
        self.joiner.finish(&mut self.found);
        (self.found, self.joiner.counts())
    }
}

fn exchanged(reported: impl Fn(u32) -> Option<bool>) -> (Vec<ObservedRequest>, JoinCounts) {
    let mut connection = Connection::new(None);
    for number in 0..30 {
        connection.arrive(false);
        connection.take(reported(number));
        connection.answer();
    }
    connection.close()
}

#[test]
fn reads_without_a_length_are_reads() {
    let ways: [fn(u32) -> Option<bool>; 3] =
        [|_| Some(true), |_| Some(false), |number| Some(number % 3 == 0)];
    for reported in ways {
        let (found, counts) = exchanged(reported);
        assert_eq!((found.len(), counts), (30, JoinCounts::default()));
        let sizes = (u64::from(REQUEST), u64::from(ANSWER));
        assert!(found.iter().all(|request| (request.request_bytes, request.answer_bytes) == sizes));
    }
}

#[test]
fn requests_that_are_taken_unseen_are_counted_and_delay_no_other() {
    let (found, counts) = exchanged(|_| None);
    assert_eq!((found.len(), counts.unseen_reads), (0, 30), "{counts:?}");
    for every in [2, 3, 7] {
        let (found, counts) = exchanged(|number| (number % every != 0).then_some(true));
        let unseen = (0..30).filter(|number| number % every == 0).count() as u64;
        assert_eq!(counts.unseen_reads, unseen, "{counts:?}");
        // From T1 to T6 there are five events.
        assert!(found.iter().all(|request| request.latency_from_stack() <= 5_000), "{found:?}");
        assert!(found.len() as u64 + counts.discarded + unseen <= 30, "{counts:?}");
    }
}

/// What is still in the socket when a connection ends was not taken.
#[test]
fn what_nobody_takes_is_not_taken_unseen() {
    let mut connection = Connection::new(None);
    connection.arrive(false);
    connection.take(Some(true));
    connection.answer();
    connection.arrive(false);
    let (found, counts) = connection.close();
    assert_eq!((found.len(), counts.unseen_reads), (1, 0), "{counts:?}");
}

#[test]
fn subflows_of_mptcp_are_counted() {
    let mut connection = Connection::new(Some(Protocol::Http1));
    for _ in 0..5 {
        connection.arrive(true);
        connection.take(None);
    }
    let (found, counts) = connection.close();
    assert_eq!((found.len(), counts.multipath, counts.unseen_reads), (0, 5, 5), "{counts:?}");
}
