//! The load: sends every request of a workload at its arrival time, independent of earlier answers, and
//! records the times of answers.
//!
//! One thread and one epoll instance. Each request in flight has a connection, which is reused. Latencies
//! count from the intended arrivals, so that they include delays of the sender, which are also reported
//! as its lag.

use crate::http::{self, RoutedHead};
use crate::workload::ChainWorkload;
use gat::RequestTag;
use machine::clock;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::Nanos;

/// Maximum number of requests in flight, each with a connection; others wait as before a window. The
/// usual limit of open files of a process is 1024, and a tier has up to two connections for each request.
const IN_FLIGHT_MAX: usize = 400;
/// Maximum time without any answer while requests are in flight.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Maximum time of sleep between checks for a stop request.
const NAP: Duration = Duration::from_millis(100);
const EVENTS_MAX: usize = 256;

/// Outcomes of the requests.
#[derive(Debug, Default)]
pub(crate) struct SentRequests {
    /// Time of the answer to each request since the beginning of the play; `None` for failed ones.
    pub(crate) answers: Vec<Option<Nanos>>,
    /// Sending delay of each request that did not wait before a window, in sending order, nanoseconds.
    pub(crate) lags_ns: Vec<u64>,
    /// Number of requests answered with an error.
    pub(crate) failed: usize,
    /// Time on the machine's monotonic clock at which the play began.
    pub(crate) origin_ns: u64,
    /// Maximum number of requests in flight at once.
    pub(crate) in_flight_max: usize,
}

/// Sends the requests to the tiers at these addresses; `None` if `stop` was set before all were answered.
/// The play begins at `origin_ns` on the monotonic clock, which corresponds to `real_time_ns` on the
/// clock of starts.
pub(crate) fn send(
    workload: &ChainWorkload,
    tiers: &[SocketAddr],
    (origin_ns, real_time_ns): (u64, u64),
    stop: &AtomicBool,
) -> io::Result<Option<SentRequests>> {
    let mut sender = RequestSender::new(workload, tiers, origin_ns, real_time_ns)?;
    while sender.is_busy() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        sender.send_due()?;
        sender.sleep()?;
        sender.receive()?;
    }
    Ok(Some(sender.sent))
}

/// A connection to a tier.
struct SenderConnection {
    stream: TcpStream,
    tier: usize,
    /// Request that the connection carries.
    request: Option<usize>,
    input: Vec<u8>,
}

struct RequestSender<'a> {
    workload: &'a ChainWorkload,
    tiers: &'a [SocketAddr],
    real_time_ns: u64,
    epoll: OwnedFd,
    connections: Vec<SenderConnection>,
    /// Idle connections to each tier.
    idle: Vec<Vec<usize>>,
    /// Index of the next request to arrive.
    next: usize,
    /// Requests that wait before the window of each entry.
    waiting: Vec<VecDeque<usize>>,
    /// Number of requests of each entry that are inside.
    inside: Vec<usize>,
    in_flight: usize,
    /// Time of the latest answer.
    heard_ns: u64,
    sent: SentRequests,
}

impl<'a> RequestSender<'a> {
    fn new(
        workload: &'a ChainWorkload,
        tiers: &'a [SocketAddr],
        origin_ns: u64,
        real_time_ns: u64,
    ) -> io::Result<Self> {
        let answers = vec![None; workload.requests.len()];
        Ok(Self {
            workload,
            tiers,
            real_time_ns,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            connections: Vec::new(),
            idle: vec![Vec::new(); tiers.len()],
            next: 0,
            waiting: vec![VecDeque::new(); workload.entries.len()],
            inside: vec![0; workload.entries.len()],
            in_flight: 0,
            heard_ns: origin_ns,
            sent: SentRequests { answers, origin_ns, ..SentRequests::default() },
        })
    }

    fn is_busy(&self) -> bool {
        let waits = self.waiting.iter().any(|waiting| !waiting.is_empty());
        self.next < self.workload.requests.len() || self.in_flight > 0 || waits
    }

    /// Returns the arrival time of the next request, on the monotonic clock.
    fn next_arrival_ns(&self) -> Option<u64> {
        self.workload.requests.get(self.next).map(|request| self.sent.origin_ns + request.arrival.0)
    }

    /// Sends the requests that have arrived, as far as windows admit them.
    fn send_due(&mut self) -> io::Result<()> {
        while let Some(arrival) = self.next_arrival_ns()
            && arrival <= clock::now()
        {
            let index = self.next;
            self.next += 1;
            let entry = self.workload.requests[index].entry;
            self.waiting[entry].push_back(index);
            if self.may_enter(entry) && self.waiting[entry].len() == 1 {
                self.sent.lags_ns.push(clock::now() - arrival);
            }
            self.enter(entry)?;
        }
        Ok(())
    }

    fn may_enter(&self, entry: usize) -> bool {
        let window = self.workload.entries[entry].window.map_or(usize::MAX, |window| window as usize);
        self.inside[entry] < window && self.in_flight < IN_FLIGHT_MAX
    }

    /// Admits requests that wait at an entry.
    fn enter(&mut self, entry: usize) -> io::Result<()> {
        while self.may_enter(entry)
            && let Some(index) = self.waiting[entry].pop_front()
        {
            self.inside[entry] += 1;
            self.in_flight += 1;
            self.sent.in_flight_max = self.sent.in_flight_max.max(self.in_flight);
            self.send_request(index)?;
        }
        Ok(())
    }

    fn send_request(&mut self, index: usize) -> io::Result<()> {
        let request = &self.workload.requests[index];
        let skew = self.workload.entries[request.entry].skew_ns;
        let start = self.real_time_ns.saturating_add(request.arrival.0).saturating_add_signed(skew);
        let mut bytes = Vec::new();
        let head = RoutedHead {
            number: index as u64,
            route: request.route.clone(),
            sent_ns: Some(clock::now()),
            baggage: Vec::new(),
        };
        let slo = self.workload.classes[request.class].slo;
        let entered = RequestTag::starting_at(start);
        let tag = slo.map_or(entered, |slo| entered.with_slo(slo));
        http::write_request(&mut bytes, &head, tag);
        let connection = self.idle_connection(request.route[0].tier)?;
        let connection = &mut self.connections[connection];
        connection.request = Some(index);
        // A request is far smaller than the empty buffer of a socket, so this does not block.
        connection.stream.write_all(&bytes)
    }

    /// Returns an idle connection to a tier, opening one if necessary.
    fn idle_connection(&mut self, tier: usize) -> io::Result<usize> {
        if let Some(idle) = self.idle[tier].pop() {
            return Ok(idle);
        }
        let stream = TcpStream::connect(self.tiers[tier])?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let index = self.connections.len();
        epoll::add(&self.epoll, &stream, EventData::new_u64(index as u64), EventFlags::IN)?;
        self.connections.push(SenderConnection { stream, tier, request: None, input: Vec::new() });
        Ok(index)
    }

    /// Sleeps until an answer or the next arrival.
    fn sleep(&self) -> io::Result<()> {
        let now = clock::now();
        let until_next =
            self.next_arrival_ns().map_or(NAP, |next| Duration::from_nanos(next.saturating_sub(now)));
        let timeout = Timespec::try_from(until_next.min(NAP)).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let silence = Duration::from_nanos(clock::now().saturating_sub(self.heard_ns));
        if self.in_flight > 0 && silence > SILENCE_MAX && self.next > 0 {
            let message =
                format!("{} got no answer for {SILENCE_MAX:?}", units::plural(self.in_flight, "request"));
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        Ok(())
    }

    /// Processes available answers.
    fn receive(&mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&Timespec::default())) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events {
            let connection = usize::try_from(event.data.u64()).map_err(io::Error::other)?;
            self.receive_from(connection)?;
        }
        Ok(())
    }

    fn receive_from(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        match http::read_more(&mut connection.stream, &mut connection.input) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a tier hung up")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        let answer = http::parse_answer(&connection.input);
        let answer = answer.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let Some((status, length)) = answer else { return Ok(()) };
        connection.input.drain(..length);
        let request = connection.request.take();
        let request = request.ok_or_else(|| io::Error::other("a tier answered twice"))?;
        self.idle[connection.tier].push(index);
        self.answered(request, status)
    }

    fn answered(&mut self, request: usize, status: u16) -> io::Result<()> {
        self.heard_ns = clock::now();
        if status == 200 {
            self.sent.answers[request] = Some(Nanos(self.heard_ns - self.sent.origin_ns));
        } else {
            self.sent.failed += 1;
        }
        let entry = self.workload.requests[request].entry;
        self.inside[entry] -= 1;
        self.in_flight -= 1;
        // Others may wait for the connection that is now free.
        (0..self.waiting.len()).try_for_each(|entry| self.enter(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{ChainClass, ChainEntry, ChainRequest, ChainTier};
    use sim::pool_tiers::RouteHop;
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::{Arc, Mutex};

    /// Observations of a service: maximum number of concurrent requests, and numbers and starts in order
    /// of arrival.
    #[derive(Default)]
    struct Seen {
        inside: usize,
        inside_max: usize,
        requests: Vec<(u64, gat::ReceivedTag)>,
    }

    /// Starts a service that answers every request after a millisecond, one thread for each connection.
    fn service(seen: &Arc<Mutex<Seen>>, status: u16) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::clone(seen);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || {
                    let mut input = Vec::new();
                    while let Ok(Some(head)) = http::read_request(&mut stream, &mut input) {
                        let values = head.baggage.iter().map(Vec::as_slice);
                        let tag = gat::TagCodec::baggage().read(values);
                        let mut now = seen.lock().unwrap();
                        now.inside += 1;
                        now.inside_max = now.inside_max.max(now.inside);
                        now.requests.push((head.number, tag));
                        drop(now);
                        std::thread::park_timeout(Duration::from_millis(1));
                        seen.lock().unwrap().inside -= 1;
                        let mut answer = Vec::new();
                        http::write_answer(&mut answer, status);
                        stream.write_all(&answer).unwrap();
                    }
                });
            }
        });
        address
    }

    fn burst(requests: u64, window: Option<u32>) -> ChainWorkload {
        let request = |number| ChainRequest {
            arrival: Nanos(1000 * number),
            entry: 0,
            class: 0,
            route: vec![RouteHop { tier: 0, wait: Nanos::ZERO, work: Nanos(1) }],
        };
        ChainWorkload {
            tiers: vec![ChainTier { name: "a".into(), workers: 1 }],
            entries: vec![ChainEntry { window, skew_ns: -500 }],
            classes: vec![ChainClass { name: "all".into(), slo: None }],
            requests: (0..requests).map(request).collect(),
            serialised: 0,
        }
    }

    fn play(workload: &ChainWorkload, status: u16, stop: bool) -> (Option<SentRequests>, Seen) {
        let seen = Arc::default();
        let address = service(&seen, status);
        let sent = send(workload, &[address], (clock::now(), 1_000_000), &AtomicBool::new(stop)).unwrap();
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        (sent, seen)
    }

    #[test]
    fn every_request_is_sent_and_answered_once_with_its_start() {
        let workload = burst(100, None);
        let (sent, mut seen) = play(&workload, 200, false);
        let sent = sent.unwrap();
        let is_after_arrival =
            |(answer, request): (&Option<Nanos>, &ChainRequest)| *answer > Some(request.arrival);
        assert!(sent.answers.iter().zip(&workload.requests).all(is_after_arrival));
        assert_eq!((sent.failed, sent.lags_ns.len()), (0, 100));
        seen.requests.sort_by_key(|(number, _)| *number);
        // The real-time clock at the beginning, plus the arrival, minus the lag of the entry's clock.
        let expected = |number| {
            let tag = RequestTag::starting_at(1_000_000 + 1000 * number - 500);
            (number, gat::ReceivedTag::Tagged(tag))
        };
        assert_eq!(seen.requests, (0..100).map(expected).collect::<Vec<_>>());
    }

    #[test]
    fn no_more_are_inside_than_the_window_lets_in() {
        let (sent, seen) = play(&burst(30, Some(2)), 200, false);
        assert!(sent.unwrap().answers.iter().all(Option::is_some));
        assert!((1..=2).contains(&seen.inside_max), "{}", seen.inside_max);
        assert!(seen.requests.iter().take(1).all(|(number, _)| *number < 2));
    }

    #[test]
    fn errors_are_counted_and_a_stop_ends_it() {
        let (sent, _) = play(&burst(10, None), 502, false);
        let sent = sent.unwrap();
        assert!(sent.failed == 10 && sent.answers.iter().all(Option::is_none));
        assert!(play(&burst(10, None), 200, true).0.is_none());
    }
}
