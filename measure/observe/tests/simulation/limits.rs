//! Each limit of the joiner's tables alone: it is kept, nothing is counted below it, and what is beyond it is counted.

use crate::days::{Client, Days, LIMITS, Pieces};
use observe::{JoinCounts, ObservedRequest, RequestQuality};

/// A request of a segment, read and answered at once.
const PLAIN: Pieces = Pieces { segments: 1, reads: 1, writes: 1 };

fn small(limit: usize) -> u32 {
    u32::try_from(limit).expect("limits of tests are small")
}

/// What is found of a request in so many pieces and of a plain one after it on the same connection, and what is counted.
fn exchange_and_another(pieces: Pieces) -> (Vec<ObservedRequest>, JoinCounts, Days) {
    let mut days = Days::new(None, 1);
    let mut client = days.connect();
    days.exchange(&mut client, pieces);
    days.exchange(&mut client, PLAIN);
    days.close(&client);
    let counts = days.joiner.counts();
    (days.found.clone(), counts, days)
}

#[test]
fn segments_of_a_request_are_limited_and_counted() {
    let limit = small(LIMITS.segments);
    let (found, counts, mut days) = exchange_and_another(Pieces { segments: limit, ..PLAIN });
    assert_eq!((found.len(), counts), (2, JoinCounts::default()));
    assert_eq!(days.check_found(), 2);
    for reads in [1, 5] {
        let (found, counts, mut days) = exchange_and_another(Pieces { segments: limit + 1, reads, ..PLAIN });
        // A whole read of it discards it; otherwise the rest of it is found, as a guess.
        let rest = u64::from(reads > 1);
        assert_eq!((counts.unseen_arrivals, counts.discarded), (1, 1 - rest), "{counts:?}");
        let guesses = found.iter().filter(|request| request.quality.has(RequestQuality::GUESSED));
        assert_eq!((found.len() as u64, guesses.count() as u64), (1 + rest, rest));
        assert_eq!(days.check_found(), 1, "the plain one after it");
        assert_eq!(days.largest.segments, LIMITS.segments);
    }
}

#[test]
fn writes_of_an_answer_are_limited_and_its_end_is_not() {
    for writes in [small(LIMITS.writes), 3 * small(LIMITS.writes)] {
        let (found, counts, mut days) = exchange_and_another(Pieces { writes, ..PLAIN });
        assert_eq!((found.len(), counts), (2, JoinCounts::default()));
        assert_eq!(days.check_found(), 2);
        assert_eq!(days.largest.writes, LIMITS.writes);
    }
}

#[test]
fn datagrams_without_an_answer_are_limited_and_counted() {
    let mut days = Days::new(None, 1);
    for number in 1..=3 * LIMITS.datagrams {
        days.send_datagram(number % 2 == 0, false);
        let given_up = (number - 1) / LIMITS.datagrams * LIMITS.datagrams;
        let counts = days.joiner.counts();
        assert_eq!(counts, JoinCounts { unanswered: given_up as u64, ..JoinCounts::default() });
    }
    days.send_datagram(true, true);
    days.joiner.finish(&mut days.found);
    assert_eq!(days.check_found(), 1);
    assert_eq!(days.joiner.counts().unanswered, 3 * LIMITS.datagrams as u64);
}

#[test]
fn answered_datagrams_that_are_never_seen_to_be_ready_leave_nothing() {
    let mut days = Days::new(None, 1);
    (0..3 * LIMITS.datagrams).for_each(|_| days.send_datagram(false, true));
    days.joiner.finish(&mut days.found);
    assert_eq!(days.check_found(), 3 * LIMITS.datagrams);
    assert_eq!(days.joiner.counts(), JoinCounts::default());
}

#[test]
fn calls_of_threads_that_end_are_limited_and_counted() {
    let mut days = Days::new(None, 1);
    let mut client = days.connect();
    for thread in 1..=2 * small(LIMITS.open_requests) {
        days.call_kernel(&mut client, thread, false);
        let given_up = (thread - 1) / small(LIMITS.open_requests) * small(LIMITS.open_requests);
        assert_eq!(days.joiner.counts().unanswered, u64::from(given_up));
    }
    days.call_kernel(&mut client, 1000, true);
    days.close(&client);
    assert_eq!(days.check_found(), 1);
}

#[test]
fn requests_without_an_answer_are_limited_and_counted() {
    let mut days = Days::new(None, 1);
    let mut client = days.connect();
    for _ in 0..LIMITS.open_requests {
        days.ask(&mut client, Pieces { writes: 0, ..PLAIN }, 7);
    }
    assert_eq!(days.joiner.counts().unanswered, 0);
    days.ask(&mut client, Pieces { writes: 0, ..PLAIN }, 7);
    assert_eq!(days.joiner.counts().unanswered, LIMITS.open_requests as u64 + 1);
}

#[test]
fn connections_are_limited_and_the_quiet_ones_forgotten() {
    let mut days = Days::new(None, 1);
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..=LIMITS.connections {
        let mut client = days.connect();
        days.ask(&mut client, PLAIN, 7);
        clients.push(client);
    }
    let forgotten = days.joiner.counts().unanswered;
    assert_eq!(days.joiner.sizes().connections as u64, LIMITS.connections as u64 + 1 - forgotten);
    assert!(forgotten.abs_diff(LIMITS.connections as u64 / 2) <= 1, "about half: {forgotten}");
    // The last ones are still known, with what they asked.
    let mut last = *clients.last().expect("there are some");
    days.answer(&mut last, 1, 7);
    days.close(&last);
    assert_eq!(days.found.len(), 1);
}
