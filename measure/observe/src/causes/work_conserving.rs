//! The queues of workers again, with something taken out: a worker begins whenever it is free and a request is there.
//!
//! Requests that were together at a worker form a group: from one that finds the worker free until it is free again. A
//! group without what is taken out keeps its latencies to the nanosecond. The others are served again. What a request
//! takes of its worker has three parts: until its bytes are read, which is the wake-up for one that finds the worker
//! asleep; from there to its last write; and until the worker is free again.
//!
//! A request that waited before and finds the worker asleep now needs a wake-up of which its own times say nothing. It
//! gets that of a request which did find the worker asleep, each of them in turn. The same holds for those that were
//! answered together, whose own shares are not known, and for the time in the network of those that were sent together.
//!
//! A client whose server does not answer runs out of congestion window: what it sends from then on is kept at its end
//! and comes in one segment when the server is back. Without the cause these requests would have come one after the
//! other, so they do here: evenly between the segment before and the one that brought them.

use super::attribution::AttributedRequest;
use super::cause::Cause;
use super::occupancy::share;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// The order in which a worker takes the requests that wait for it; those of one connection stay in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceOrder {
    /// As they were answered.
    AsSeen,
    /// As they became ready.
    Arrival,
    /// One connection after the other, each with all that is there, as loops around `epoll_wait` do.
    ByConnection,
}

impl ServiceOrder {
    pub(super) const ALL: [Self; 3] = [Self::AsSeen, Self::Arrival, Self::ByConnection];
}

/// What the queues are without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removed {
    /// The time of a cause in which workers are held up.
    Cause(Cause),
    /// The time of [`Cause::OtherProcess`] in which this process had the CPU.
    Process(u32),
    /// All time of that cause in requests in which this process had the CPU: others that wait with it come sooner then, too.
    ProcessWithOthers(u32),
    /// The requests of a client.
    Client(IpAddr),
}

impl Removed {
    /// The cause whose time is removed, if it is that.
    fn cause(self) -> Option<Cause> {
        match self {
            Self::Cause(cause) => Some(cause),
            Self::Process(_) | Self::ProcessWithOthers(_) => Some(Cause::OtherProcess),
            Self::Client(_) => None,
        }
    }

    /// What is removed of a time of the cause. When in a request a process had the CPU is not kept: its share is the same
    /// in all parts.
    fn part_of(self, request: &AttributedRequest, time: u64) -> u64 {
        let (Self::Process(removed) | Self::ProcessWithOthers(removed)) = self else { return time };
        let of_process = request.interferers.iter().filter(|(thread, _)| thread.process == removed);
        let own: u64 = of_process.map(|(_, time)| time).sum();
        match self {
            Self::ProcessWithOthers(_) => {
                if own > 0 {
                    time
                } else {
                    0
                }
            }
            _ => share(own, time, request.time(Cause::OtherProcess)),
        }
    }
}

/// Whether requests that newly find a worker asleep get the wake-ups of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WakeUps {
    Drawn,
    /// They get none, which is the least that there can be.
    None,
}

/// Latencies with something taken out.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    /// By the place of the request: from T0 to T6; `None` where it is as measured.
    pub(super) served: Vec<Option<u64>>,
    /// How many requests have the wake-up or the processing of others.
    pub(super) drawn: usize,
    /// How many others these were drawn from.
    pub(super) drawn_from: usize,
}

/// A request at its worker.
#[derive(Debug, Clone, Copy)]
struct Visit {
    place: usize,
    ready: u64,
    /// From the device to the socket.
    coming: u64,
    peer: SocketAddr,
    /// Its place in the order of answers.
    rank: usize,
    /// The worker's time until the read returned, without the cause.
    reading: u64,
    /// From there to the last write, without the cause.
    processing: u64,
    /// From there until the worker was free.
    hold: u64,
    /// When it was free, with the cause.
    free: u64,
    /// Whether it found the worker free.
    finds_free: bool,
    /// Whether `reading` is that of a wake-up without the cause.
    is_clean: bool,
    /// From the last write to the device.
    sending: u64,
    /// Waiting for other processes than the one that is removed, which stays.
    for_others: u64,
    /// Whether it was answered alone.
    is_single: bool,
    /// Whether it has time of the cause, or is to be removed.
    is_touched: bool,
    is_removed: bool,
}

/// The requests of all workers, as they were served and with what is to be removed.
pub(super) struct ServedRequests {
    count: usize,
    /// By process, and in it by worker.
    visits: Vec<Vec<Vec<Visit>>>,
}

impl ServedRequests {
    pub(super) fn new(requests: &[&AttributedRequest], removed: Removed) -> Self {
        let arrivals = arrivals(requests, removed);
        let mut by_process: BTreeMap<u32, BTreeMap<u32, Vec<usize>>> = BTreeMap::new();
        for (place, request) in requests.iter().enumerate() {
            by_process.entry(request.process).or_default().entry(request.worker).or_default().push(place);
        }
        let of_process = |workers: BTreeMap<u32, Vec<usize>>| {
            workers.into_values().map(|places| visits(requests, places, &arrivals, removed)).collect()
        };
        Self { count: requests.len(), visits: by_process.into_values().map(of_process).collect() }
    }

    /// Serves them again.
    pub(super) fn resume(&self, order: ServiceOrder, wake_ups: WakeUps) -> Resumed {
        let mut resumed = Resumed { served: vec![None; self.count], ..Resumed::default() };
        for workers in &self.visits {
            let mut server = ServerAgain::new(workers, order, wake_ups);
            for visits in workers {
                server.serve_worker(visits, &mut resumed.served);
            }
            resumed.drawn += server.drawn;
            resumed.drawn_from += server.samples.len();
        }
        resumed
    }
}

/// For each request that a cause has put into one segment with others, its arrival without that.
///
/// Clients may also write many requests at once. The largest segment of the connection that found no earlier request
/// unanswered says how many; up to this number nothing is moved.
fn arrivals(requests: &[&AttributedRequest], removed: Removed) -> Vec<Option<u64>> {
    let mut arrivals = vec![None; requests.len()];
    let Some(cause) = removed.cause() else { return arrivals };
    let mut connections: BTreeMap<(u32, SocketAddr), Vec<usize>> = BTreeMap::new();
    for (place, request) in requests.iter().enumerate() {
        connections.entry((request.process, request.peer)).or_default().push(place);
    }
    for places in connections.values_mut() {
        places.sort_by_key(|place| (requests[*place].ready, requests[*place].done, *place));
        let mut segments = places.chunk_by(|a, b| requests[*a].ready == requests[*b].ready);
        let Some(mut before) = segments.next() else { continue };
        let mut usual = None;
        let mut held_back = Vec::new();
        for segment in segments {
            let since = requests[before[0]].ready;
            let time = requests[segment[0]].ready - since;
            let answered = before.iter().map(|place| requests[*place].done).max().unwrap_or(since);
            let is_held_up =
                |place: &usize| removed.part_of(requests[*place], requests[*place].time(cause)) > 0;
            if answered.saturating_sub(since) * 2 < time {
                usual = usual.max(Some(segment.len()));
            } else if before.iter().any(is_held_up) {
                held_back.push((segment, since, time));
            }
            before = segment;
        }
        let Some(usual) = usual else { continue };
        for (segment, since, time) in held_back.into_iter().filter(|(segment, ..)| segment.len() > usual) {
            let count = segment.len() as u64;
            for (number, place) in (1..).zip(segment) {
                arrivals[*place] = Some(since + time / count * number);
            }
        }
    }
    arrivals
}

/// The visits to a worker in the order in which requests became ready.
fn visits(
    requests: &[&AttributedRequest],
    mut places: Vec<usize>,
    arrivals: &[Option<u64>],
    removed: Removed,
) -> Vec<Visit> {
    places.sort_by_key(|place| {
        let request = requests[*place];
        (request.done, request.start, request.ready, *place)
    });
    let usual = usual_hold(requests, &places);
    let mut visits = Vec::with_capacity(places.len());
    let mut done_before = 0;
    for answered in places.chunk_by(|a, b| requests[*a].done == requests[*b].done) {
        let next = places.get(visits.len() + answered.len()).map(|place| requests[*place]);
        let shares = answered.len() as u64;
        let mut read_before = None;
        for place in answered {
            let request = requests[*place];
            let mut visit = visit(request, done_before, shares, removed);
            // One read for several requests is one wait and one call, which the first of them has.
            if read_before.replace(request.read) == Some(request.read) {
                visit.reading = 0;
            }
            if let Some(ready) = arrivals[*place] {
                visit.ready = ready;
                visit.is_touched = true;
            }
            let (hold, free) = hold(request, next, usual, removed);
            visits.push(Visit { place: *place, rank: visits.len(), hold: hold / shares, free, ..visit });
        }
        done_before = requests[answered[0]].done;
    }
    visits.sort_by_key(|visit| (visit.ready, visit.rank));
    visits
}

fn visit(request: &AttributedRequest, done_before: u64, shares: u64, removed: Removed) -> Visit {
    let start = request.start.max(done_before).min(request.done);
    let read = request.read.clamp(start, request.done);
    let (before_read, after_read, is_touched) = match removed.cause() {
        Some(cause) => {
            let after = request.own_after_read[cause as usize];
            let before = request.own[cause as usize] - after;
            let part = |time| removed.part_of(request, time);
            (part(before), part(after), part(request.time(cause)) > 0)
        }
        None => (0, 0, false),
    };
    let is_removed = matches!(removed, Removed::Client(client) if request.peer.ip() == client);
    let displaces = removed.cause().is_some_and(leaves_cpu_idle);
    Visit {
        place: 0,
        ready: request.ready,
        coming: request.own[Cause::NetworkIn as usize],
        peer: request.peer,
        rank: 0,
        reading: (read - start).saturating_sub(before_read),
        processing: (request.done - read).saturating_sub(after_read) / shares,
        hold: 0,
        free: 0,
        finds_free: request.start <= request.ready,
        is_clean: !displaces || before_read == 0,
        for_others: match removed {
            Removed::Process(_) => {
                let other = Cause::OtherProcess as usize;
                request.own[other] - request.own_after_read[other] - before_read
            }
            _ => 0,
        },
        sending: request.own[Cause::NetworkOut as usize],
        is_single: shares == 1,
        is_touched: is_touched || is_removed,
        is_removed,
    }
}

/// Without these, the CPU would have been idle and the worker asleep: what woke the worker is no longer what would.
fn leaves_cpu_idle(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::OtherProcess
            | Cause::SameServer
            | Cause::Throttled
            | Cause::HeldBack
            | Cause::Stopped
            | Cause::UnseenOccupant
    )
}

/// The time after the last write of a request until its worker is free, without what is removed, and when it is free.
fn hold(
    request: &AttributedRequest,
    next: Option<&AttributedRequest>,
    usual: u64,
    removed: Removed,
) -> (u64, u64) {
    let Some(next) = next else { return (usual, request.done + usual) };
    let gap = next.start.saturating_sub(request.done);
    if next.start <= next.ready {
        // The worker was free by then, since when is not seen.
        return (usual.min(gap), request.done + usual.min(gap));
    }
    let queued = removed.cause().map_or(0, |cause| removed.part_of(next, next.queued[cause as usize]));
    let taken = queued.min(gap.saturating_sub(usual));
    (gap - taken, request.done + gap)
}

/// The median time from a last write until the worker began with a request that was waiting.
fn usual_hold(requests: &[&AttributedRequest], places: &[usize]) -> u64 {
    let gap = |pair: &[usize]| {
        let request = requests[pair[0]];
        let next = requests[pair[1]];
        (next.start > next.ready && next.done > request.done).then(|| next.start.saturating_sub(request.done))
    };
    median(places.windows(2).filter_map(gap).collect())
}

fn median(mut values: Vec<u64>) -> u64 {
    let middle = values.len() / 2;
    if values.is_empty() { 0 } else { *values.select_nth_unstable(middle).1 }
}

/// What a request takes: until it is in the socket, until its read returns, until its last write, and from there to the
/// device.
#[derive(Debug, Clone, Copy)]
struct Service {
    coming: u64,
    reading: u64,
    processing: u64,
    sending: u64,
}

impl Visit {
    fn own_service(&self) -> Service {
        Service {
            coming: self.coming,
            reading: self.reading,
            processing: self.processing,
            sending: self.sending,
        }
    }
}

/// The workers of a process, serving again.
struct ServerAgain {
    order: ServiceOrder,
    wake_ups: WakeUps,
    /// Requests that found a worker asleep.
    samples: Vec<Service>,
    /// The usual time from one request to the read of the next one that waits.
    turn: u64,
    drawn: usize,
}

impl ServerAgain {
    fn new(workers: &[Vec<Visit>], order: ServiceOrder, wake_ups: WakeUps) -> Self {
        let mut samples = Vec::new();
        let mut turns = Vec::new();
        for visit in workers.iter().flatten().filter(|visit| visit.is_single && !visit.is_removed) {
            if visit.finds_free && visit.is_clean {
                samples.push(visit.own_service());
            } else if !visit.finds_free && visit.reading > 0 {
                turns.push(visit.reading);
            }
        }
        Self { order, wake_ups, samples, turn: median(turns), drawn: 0 }
    }

    /// Serves the groups of a worker that are concerned.
    fn serve_worker(&mut self, visits: &[Visit], served: &mut [Option<u64>]) {
        let mut begin = 0;
        while begin < visits.len() {
            let mut free = visits[begin].free;
            let mut end = begin + 1;
            while end < visits.len() && visits[end].ready < free {
                free = free.max(visits[end].free);
                end += 1;
            }
            let group = &visits[begin..end];
            if group.iter().any(|visit| visit.is_touched) {
                let stay: Vec<Visit> = group.iter().copied().filter(|visit| !visit.is_removed).collect();
                self.serve_group(&stay, served);
            }
            begin = end;
        }
    }

    fn serve_group(&mut self, group: &[Visit], served: &mut [Option<u64>]) {
        let mut line = WaitingLine::new(self.order);
        let mut coming = group.iter().peekable();
        let mut now = 0;
        for _ in 0..group.len() {
            while let Some(visit) = coming.next_if(|visit| visit.ready <= now) {
                line.push(visit);
            }
            let is_free = line.waiting.is_empty();
            if is_free && let Some(visit) = coming.next() {
                now = visit.ready;
                line.push(visit);
            }
            let Some(visit) = line.pop() else { return };
            let service = self.service_of(visit, is_free);
            now += service.reading + service.processing;
            served[visit.place] = Some(service.coming + now - visit.ready + service.sending);
            now += visit.hold;
        }
    }

    fn service_of(&mut self, visit: &Visit, finds_free: bool) -> Service {
        let own = visit.own_service();
        if !finds_free {
            let reading = if visit.finds_free { own.reading.min(self.turn) } else { own.reading };
            return Service { reading, ..own };
        }
        let has_own_wake_up = visit.finds_free && visit.is_clean;
        if has_own_wake_up && visit.is_single {
            return own;
        }
        let Some(drawn) = self.draw() else { return own };
        if has_own_wake_up {
            return Service { reading: own.reading, ..drawn };
        }
        let reading = drawn.reading + visit.for_others;
        let processing = if visit.is_single { own.processing } else { drawn.processing };
        // It was on its way, and so was its answer, together with others that would have gone before.
        let (coming, sending) =
            if visit.finds_free { (own.coming, own.sending) } else { (drawn.coming, drawn.sending) };
        Service { coming, reading, processing, sending }
    }

    fn draw(&mut self) -> Option<Service> {
        if self.wake_ups == WakeUps::None {
            return None;
        }
        let number = self.drawn as u64;
        self.drawn += 1;
        // Multiples of the golden ratio are spread evenly over the samples, however many there are.
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let place = (spread * self.samples.len() as u64) >> 32;
        self.samples.get(usize::try_from(place).unwrap_or(0)).copied()
    }
}

/// Causes that requests have only while they wait: these are the work of others, and no worker is held up by them.
pub(super) fn is_only_waiting(cause: Cause) -> bool {
    matches!(cause, Cause::AllBusy | Cause::OtherIdle | Cause::ReadTogether)
}

/// Requests that wait for a worker.
struct WaitingLine<'a> {
    order: ServiceOrder,
    /// By what decides, and the rank.
    waiting: BTreeSet<(u64, usize)>,
    visits: BTreeMap<usize, &'a Visit>,
    /// Ranks of those that the worker has set out to serve next.
    round: VecDeque<usize>,
}

impl<'a> WaitingLine<'a> {
    fn new(order: ServiceOrder) -> Self {
        Self { order, waiting: BTreeSet::new(), visits: BTreeMap::new(), round: VecDeque::new() }
    }

    fn push(&mut self, visit: &'a Visit) {
        let key = if self.order == ServiceOrder::AsSeen { visit.rank as u64 } else { visit.ready };
        self.waiting.insert((key, visit.rank));
        self.visits.insert(visit.rank, visit);
    }

    fn pop(&mut self) -> Option<&'a Visit> {
        let rank = match self.order {
            ServiceOrder::AsSeen | ServiceOrder::Arrival => self.waiting.first()?.1,
            ServiceOrder::ByConnection => self.next_of_round()?,
        };
        let visit = self.visits.remove(&rank)?;
        let key = if self.order == ServiceOrder::AsSeen { visit.rank as u64 } else { visit.ready };
        self.waiting.remove(&(key, rank));
        Some(visit)
    }

    /// The connections of a round are those that are ready when it begins, the one that was ready first before the others.
    fn next_of_round(&mut self) -> Option<usize> {
        if self.round.is_empty() {
            let mut by_connection: Vec<(SocketAddr, Vec<usize>)> = Vec::new();
            let mut known: BTreeMap<SocketAddr, usize> = BTreeMap::new();
            for (_, rank) in &self.waiting {
                let peer = self.visits.get(rank)?.peer;
                let place = *known.entry(peer).or_insert(by_connection.len());
                if place == by_connection.len() {
                    by_connection.push((peer, Vec::new()));
                }
                by_connection[place].1.push(*rank);
            }
            self.round.extend(by_connection.into_iter().flat_map(|(_, ranks)| ranks));
        }
        self.round.pop_front()
    }
}
