//! What percentiles would be without a cause: the requests again, with the time of the cause taken out.
//!
//! Requests come when they came, and workers serve them again as [`super::work_conserving`] does. The order among
//! requests that wait together is not known for what did not happen, so several orders are played. Where they agree, a
//! percentile has a value, otherwise an interval. With nothing taken out, each request has exactly the latency that it
//! had. What the replay does not know: requests would have come at other times if their clients wait for answers, and
//! time that is saved on one CPU may help others.

use super::attribution::AttributedRequest;
use super::cause::Cause;
use super::occupancy::{InterferingProcess, OccupyingThread};
use super::profile::{EXPLAINED_PERCENTILES, IntendedWaits};
use super::work_conserving::{Removed, ServedRequests, ServiceOrder, WakeUps, is_only_waiting};
use confidence::nearest_rank;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;

/// How far the largest value of a percentile may be above the smallest, as a factor, before it is an interval only.
const ACCURACY: f64 = 1.2;

/// The most processes that are taken out, each alone.
const PROCESSES_MAX: usize = 3;

/// The most clients that are taken out, each alone.
const CLIENTS_MAX: usize = 3;

/// The most requests beyond a percentile for which one sampled wake-up may stand, as a share of all beyond it.
const SAMPLE_SHARE: f64 = 0.1;

/// What is taken out of the time of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenOut {
    /// Nothing: requests are as they were.
    Nothing,
    /// A cause. One that requests have only while they wait, [`Cause::AllBusy`], [`Cause::OtherIdle`] and
    /// [`Cause::ReadTogether`], is taken out of each request's own waiting alone.
    Cause(Cause),
    /// The time of [`Cause::OtherProcess`] in which this process had the CPU of a worker.
    Process(u32),
    /// The requests of a client: percentiles are those of the others.
    Client(IpAddr),
    /// Queues of workers, and any order but that of arrival: as many workers as there were take the oldest request of
    /// all.
    QueuesOfWorkers,
}

/// A percentile with something taken out, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayedPercentile {
    /// The smallest value under any order of service.
    pub least: u64,
    /// The largest one.
    pub most: u64,
    /// Why there is no single value, if there is none.
    pub doubt: Option<ReplayDoubt>,
}

/// Why a percentile is an interval only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayDoubt {
    /// It depends on the order in which requests that wait together are served.
    Order,
    /// Other processes had the CPU in the same waits, and would have had it at other times.
    Others,
    /// Too few requests were seen to wake a worker without the cause: what that takes is not known.
    WakeUps,
}

impl ReplayedPercentile {
    fn exact(value: u64) -> Self {
        Self { least: value, most: value, doubt: None }
    }

    /// The value, where there is one.
    pub fn known(self) -> Option<u64> {
        self.doubt.is_none().then(|| u64::midpoint(self.least, self.most))
    }
}

/// What percentiles would be without something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counterfactual {
    /// What is taken out.
    pub taken_out: TakenOut,
    /// The percentiles of [`EXPLAINED_PERCENTILES`].
    pub percentiles: [ReplayedPercentile; 3],
    /// The measured percentiles of the same requests, in nanoseconds.
    pub measured: [u64; 3],
}

/// What percentiles would be; `None` if no requests are left.
pub fn counterfactual(
    requests: &[AttributedRequest],
    taken_out: TakenOut,
    intended: IntendedWaits,
) -> Option<Counterfactual> {
    let stays = |request: &&AttributedRequest| match taken_out {
        TakenOut::Client(client) => request.peer.ip() != client,
        _ => true,
    };
    let left: Vec<&AttributedRequest> = requests.iter().filter(stays).collect();
    let measured = sorted(left.iter().map(|request| latency(request, intended)).collect());
    if measured.is_empty() {
        return None;
    }
    let exact = |latencies: Vec<u64>| percentiles(&sorted(latencies)).map(ReplayedPercentile::exact);
    let percentiles_without = match taken_out {
        TakenOut::Nothing => percentiles(&measured).map(ReplayedPercentile::exact),
        TakenOut::QueuesOfWorkers => exact(one_queue(&left, intended)),
        TakenOut::Cause(cause) if is_only_waiting(cause) || is_of_network(cause) => {
            exact(left.iter().map(|request| latency_without(request, cause, intended)).collect())
        }
        TakenOut::Cause(cause) => served_again(requests, Removed::Cause(cause), intended, &measured),
        TakenOut::Process(process) => served_again(requests, Removed::Process(process), intended, &measured),
        TakenOut::Client(client) => served_again(requests, Removed::Client(client), intended, &measured),
    };
    Some(Counterfactual { taken_out, percentiles: percentiles_without, measured: percentiles(&measured) })
}

/// The processes that had CPUs of workers for the longest time while requests waited for that, the first one longest.
pub(super) fn interfering_processes(requests: &[AttributedRequest]) -> Vec<InterferingProcess> {
    let mut times: BTreeMap<u32, (u64, OccupyingThread)> = BTreeMap::new();
    for (thread, time) in requests.iter().flat_map(|request| &request.interferers) {
        times.entry(thread.process).or_insert((0, *thread)).0 += time;
    }
    let mut found: Vec<(u64, OccupyingThread)> = times.into_values().collect();
    found.sort_by_key(|(time, thread)| (Reverse(*time), *thread));
    found.into_iter().take(PROCESSES_MAX).map(|(_, thread)| thread.into()).collect()
}

/// The client without which p99 of the others would be shortest relative to what it is, of those that keep workers busy
/// for the longest time, and the percentiles without it. `None` with a single client.
pub(super) fn without_client(
    requests: &[AttributedRequest],
    intended: IntendedWaits,
) -> Option<Counterfactual> {
    let mut busy: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for request in requests {
        let time = request.own.iter().sum::<u64>() - request.own[Cause::NetworkOut as usize];
        *busy.entry(request.peer.ip()).or_default() += time;
    }
    let mut clients: Vec<(u64, IpAddr)> = busy.into_iter().map(|(client, time)| (time, client)).collect();
    if clients.len() < 2 {
        return None;
    }
    clients.sort_unstable_by_key(|(time, client)| (Reverse(*time), *client));
    let candidates = clients.into_iter().take(CLIENTS_MAX);
    let played =
        candidates.filter_map(|(_, client)| counterfactual(requests, TakenOut::Client(client), intended));
    let gain =
        |found: &Counterfactual| found.measured[1] as f64 / (found.percentiles[1].most as f64).max(1.0);
    played.max_by(|a, b| gain(a).total_cmp(&gain(b)))
}

fn sorted(mut latencies: Vec<u64>) -> Vec<u64> {
    latencies.sort_unstable();
    latencies
}

/// Of sorted latencies, at least one.
fn percentiles(sorted: &[u64]) -> [u64; 3] {
    EXPLAINED_PERCENTILES.map(|(_, rank, _)| sorted[nearest_rank(rank * 100.0, sorted.len()) - 1])
}

fn latency(request: &AttributedRequest, intended: IntendedWaits) -> u64 {
    let (own, queued) = intended.apply(request);
    own.iter().chain(&queued).sum()
}

/// Without a cause that holds no worker up.
fn latency_without(request: &AttributedRequest, cause: Cause, intended: IntendedWaits) -> u64 {
    let (own, queued) = intended.apply(request);
    let taken = if is_of_network(cause) { own[cause as usize] } else { queued[cause as usize] };
    own.iter().chain(&queued).sum::<u64>() - taken
}

/// These times pass while no worker is busy with the request.
fn is_of_network(cause: Cause) -> bool {
    matches!(cause, Cause::NetworkIn | Cause::NetworkOut)
}

/// The percentiles under every order. `measured` are the sorted latencies of the requests that stay: taking something
/// out makes no percentile longer, so what is drawn for others may not either.
fn served_again(
    requests: &[AttributedRequest],
    removed: Removed,
    intended: IntendedWaits,
    measured: &[u64],
) -> [ReplayedPercentile; 3] {
    let all: Vec<&AttributedRequest> = requests.iter().collect();
    let measured = percentiles(measured);
    let as_served = ServedRequests::new(&all, removed);
    let play_of = |as_served: &ServedRequests, order, wake_ups| {
        let resumed = as_served.resume(order, wake_ups);
        let latencies = all.iter().zip(&resumed.served).filter_map(|(request, served)| {
            let stays = !matches!(removed, Removed::Client(client) if request.peer.ip() == client);
            stays.then(|| latency_again(request, *served, removed, intended))
        });
        let mut found = percentiles(&sorted(latencies.collect()));
        found.iter_mut().zip(measured).for_each(|(found, measured)| *found = measured.min(*found));
        (found, resumed)
    };
    let play = |order, wake_ups| play_of(&as_served, order, wake_ups);
    let with_others = match removed {
        Removed::Process(process) => {
            let as_served = ServedRequests::new(&all, Removed::ProcessWithOthers(process));
            play_of(&as_served, ServiceOrder::AsSeen, WakeUps::Drawn).0
        }
        _ => measured,
    };
    let (first, resumed) = play(ServiceOrder::AsSeen, WakeUps::Drawn);
    let mut played = vec![first];
    for order in ServiceOrder::ALL.into_iter().skip(1) {
        played.push(play(order, WakeUps::Drawn).0);
    }
    std::array::from_fn(|place| {
        let values = || played.iter().map(|found| found[place]);
        let least = values().min().unwrap_or(measured[place]);
        let most = values().max().unwrap_or(measured[place]);
        let beyond = (1.0 - EXPLAINED_PERCENTILES[place].1) * all.len() as f64;
        let stands_for = resumed.drawn as f64 / resumed.drawn_from as f64;
        if resumed.drawn > 0 && (resumed.drawn_from == 0 || stands_for > SAMPLE_SHARE * beyond) {
            let (without_wake_ups, _) = play(ServiceOrder::AsSeen, WakeUps::None);
            let least = least.min(without_wake_ups[place]);
            let doubt = (most_differs(least, measured[place])).then_some(ReplayDoubt::WakeUps);
            return ReplayedPercentile { least, most: measured[place], doubt };
        }
        let doubt = if most_differs(least, most) {
            Some(ReplayDoubt::Order)
        } else {
            most_differs(with_others[place], most).then_some(ReplayDoubt::Others)
        };
        ReplayedPercentile { least: least.min(with_others[place]), most, doubt }
    })
}

fn most_differs(least: u64, most: u64) -> bool {
    most as f64 > least as f64 * ACCURACY
}

fn latency_again(
    request: &AttributedRequest,
    served: Option<u64>,
    removed: Removed,
    intended: IntendedWaits,
) -> u64 {
    let Some(served) = served else { return latency(request, intended) };
    let slept = match intended {
        // Already taken out of what was served.
        _ if removed == Removed::Cause(Cause::Asleep) => 0,
        IntendedWaits::Included => 0,
        IntendedWaits::Excluded => request.own[Cause::Asleep as usize],
    };
    served.saturating_sub(slept)
}

/// For each process: its workers, each free from some moment on, take requests in the order of arrival.
fn one_queue(requests: &[&AttributedRequest], intended: IntendedWaits) -> Vec<u64> {
    let mut of_process: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, request) in requests.iter().enumerate() {
        of_process.entry(request.process).or_default().push(place);
    }
    let mut latencies = vec![0; requests.len()];
    for places in of_process.values_mut() {
        places.sort_by_key(|place| requests[*place].ready);
        let mut workers: Vec<u32> = places.iter().map(|place| requests[*place].worker).collect();
        workers.sort_unstable();
        workers.dedup();
        let mut free: BinaryHeap<Reverse<u64>> = workers.iter().map(|_| Reverse(0)).collect();
        for place in places {
            let request = requests[*place];
            let Reverse(since) = free.pop().expect("a process has a worker");
            let start = since.max(request.ready);
            free.push(Reverse(start + request.done.saturating_sub(request.start)));
            let before = request.start.saturating_sub(request.ready);
            latencies[*place] = latency(request, intended) + (start - request.ready) - before;
        }
    }
    latencies
}

/// How requests overtook each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OvertakenRequests {
    /// Requests that were still waiting when a worker of the same server began with one that came later.
    pub overtaken: u64,
    /// The longest that one of them waited after that, in nanoseconds.
    pub longest_ns: u64,
}

/// Counts the requests that were overtaken.
pub fn overtaken(requests: &[AttributedRequest]) -> OvertakenRequests {
    let mut by_process: BTreeMap<u32, Vec<&AttributedRequest>> = BTreeMap::new();
    for request in requests {
        by_process.entry(request.process).or_default().push(request);
    }
    let mut found = OvertakenRequests::default();
    for of_process in by_process.values_mut() {
        of_process.sort_by_key(|request| (request.ready, request.begun));
        // When the first of those that came later was begun.
        let mut first_later = u64::MAX;
        for request in of_process.iter().rev() {
            if first_later < request.begun {
                found.overtaken += 1;
                found.longest_ns = found.longest_ns.max(request.begun - first_later);
            }
            first_later = first_later.min(request.begun);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{request, served};
    use super::*;
    use proptest::prelude::*;

    fn without(requests: &[AttributedRequest], taken_out: TakenOut) -> Counterfactual {
        counterfactual(requests, taken_out, IntendedWaits::Included).expect("requests are left")
    }

    /// Every latency with something taken out, in the order in which requests became ready.
    fn latencies(requests: &[AttributedRequest], cause: Cause, order: ServiceOrder) -> Vec<u64> {
        let all: Vec<&AttributedRequest> = requests.iter().collect();
        let removed = Removed::Cause(cause);
        let resumed = ServedRequests::new(&all, removed).resume(order, WakeUps::Drawn);
        let pairs = all.iter().zip(resumed.served);
        pairs
            .map(|(request, served)| latency_again(request, served, removed, IntendedWaits::Included))
            .collect()
    }

    #[test]
    fn what_a_hog_knocked_on_goes_with_it() {
        // The first is held up for 100, and the next two wait for it.
        let requests = served(&[(0, 10, 100), (5, 10, 0), (10, 10, 0), (500, 10, 0)], 1);
        let cause = Cause::OtherProcess;
        assert_eq!(latencies(&requests, cause, ServiceOrder::Arrival), [10, 15, 20, 10]);
        let nothing = without(&requests, TakenOut::Nothing);
        assert_eq!(nothing.percentiles[2].known(), Some(120));
        // The waiting of each alone.
        let arrivals = without(&requests, TakenOut::Cause(Cause::AllBusy));
        assert_eq!(arrivals.percentiles.map(ReplayedPercentile::known), [Some(10), Some(110), Some(110)]);
    }

    /// Stopped for 1000 with four requests, each on a connection of its own, which come every 100 and are answered in
    /// the opposite order.
    #[test]
    fn who_came_late_and_was_answered_early_passes_everything_on() {
        let mut free = 1_000;
        let mut requests: Vec<AttributedRequest> = Vec::new();
        for number in (0..4).rev() {
            let mut late = request(1, number * 100, free, 10, 0);
            late.queued[Cause::AllBusy as usize] -= 1_000 - number * 100;
            late.queued[Cause::Stopped as usize] = 1_000 - number * 100;
            late.peer.set_port(u16::try_from(number).expect("one of four") + 1);
            free = late.done;
            requests.push(late);
        }
        // Enough others to know what waking up takes.
        requests.extend((0..1_000).map(|number| request(1, 10_000 + 100 * number, 0, 10, 0)));
        for order in ServiceOrder::ALL {
            assert!(latencies(&requests, Cause::Stopped, order).iter().all(|latency| *latency == 10));
        }
        let found = without(&requests, TakenOut::Cause(Cause::Stopped));
        assert_eq!(found.percentiles.map(ReplayedPercentile::known), [Some(10); 3]);
    }

    #[test]
    fn a_client_that_floods_is_taken_out_with_its_requests() {
        let mut requests = served(&[(0, 10, 0), (1, 100, 0), (2, 100, 0), (3, 10, 0), (500, 10, 0)], 1);
        for flood in &mut requests[1..3] {
            flood.peer = ([127, 0, 0, 2], 7).into();
        }
        let found = without_client(&requests, IntendedWaits::Included).expect("there are two clients");
        assert_eq!(found.taken_out, TakenOut::Client([127, 0, 0, 2].into()));
        assert_eq!((found.percentiles[2].least, found.measured[2]), (17, 217));
        assert_eq!(without_client(&served(&[(0, 1, 0), (5, 1, 0)], 1), IntendedWaits::Included), None);
    }

    /// Many small requests at once, which together take less time than the requests of another client.
    #[test]
    fn the_client_that_is_taken_out_is_the_one_that_others_wait_for() {
        let mut jobs: Vec<(u64, u64, u64)> = (0..400).map(|number| (number * 1_000, 100, 0)).collect();
        for burst in (0..400).step_by(40) {
            jobs.extend((0..300).map(|number| (burst * 1_000 - burst.min(1) + number % 2, 10, 0)));
        }
        jobs.sort_unstable();
        let mut requests = served(&jobs, 1);
        let is_small = |request: &AttributedRequest| request.own[Cause::Work as usize] == 10;
        for flood in requests.iter_mut().filter(|request| is_small(request)) {
            flood.peer = ([127, 0, 0, 2], 7).into();
        }
        let busy = |small: bool| -> u64 {
            let own = requests.iter().filter(|request| is_small(request) == small);
            own.map(|request| request.own[Cause::Work as usize]).sum()
        };
        assert!(busy(true) < busy(false));
        let found = without_client(&requests, IntendedWaits::Included).expect("there are two clients");
        assert_eq!(found.taken_out, TakenOut::Client([127, 0, 0, 2].into()));
        assert_eq!(found.percentiles[1].known(), Some(100));
        assert!(found.measured[1] > 2_000, "{found:?}");
    }

    /// While the server stands still, requests and answers of a connection are put together: what the network takes for
    /// all of them is not what it takes for one.
    #[test]
    fn what_was_sent_together_is_not_sent_together_without_the_cause() {
        let mut free = 10_000;
        let mut requests: Vec<AttributedRequest> = (1..=50)
            .map(|number| {
                let mut late = request(1, number * 100, free, 10, 0);
                let ready = late.ready;
                let start = late.start;
                late.queued[Cause::AllBusy as usize] = start - 10_000;
                late.queued[Cause::Stopped as usize] = 10_000 - ready;
                late.own[Cause::NetworkOut as usize] = 700;
                free = late.done;
                late
            })
            .collect();
        requests.extend((0..2_000).map(|number| {
            let mut usual = request(1, 20_000 + 100 * number, 0, 10, 0);
            usual.own[Cause::NetworkOut as usize] = 2;
            usual
        }));
        let found = without(&requests, TakenOut::Cause(Cause::Stopped));
        assert_eq!(found.percentiles.map(ReplayedPercentile::known), [Some(12); 3]);
    }

    /// Two connections, one with long requests and one with short ones, that come while the worker is busy for long.
    #[test]
    fn no_value_where_the_order_decides() {
        let job = |number: u64| match number {
            0 => (0, 2_000, 0),
            _ => (number, 1 + (number + 1) % 2 * 40, 5),
        };
        let mut requests = served(&(0..100).map(job).collect::<Vec<_>>(), 1);
        for (number, request) in requests.iter_mut().enumerate() {
            request.peer.set_port(1 + u16::from(number % 2 == 1));
        }
        let median = without(&requests, TakenOut::Cause(Cause::OtherProcess)).percentiles[0];
        assert_eq!((median.doubt, median.known()), (Some(ReplayDoubt::Order), None));
    }

    #[test]
    fn no_value_where_no_wake_up_was_seen() {
        // A hog before each of them.
        let jobs: Vec<(u64, u64, u64)> = (0..200).map(|number| (number * 1_000, 10, 500)).collect();
        let found = without(&served(&jobs, 1), TakenOut::Cause(Cause::OtherProcess));
        let expected = ReplayedPercentile { least: 10, most: 510, doubt: Some(ReplayDoubt::WakeUps) };
        assert_eq!(found.percentiles, [expected; 3]);
    }

    /// Two hogs, of which one is taken out: the wait for the other stays, and a request without either has the wake-up.
    #[test]
    fn one_process_of_two() {
        let mut jobs: Vec<(u64, u64, u64)> = (0..2_000).map(|number| (number * 1_000, 10, 0)).collect();
        jobs.iter_mut().step_by(20).for_each(|job| job.2 = 300);
        let mut requests = served(&jobs, 1);
        let hog = |process| OccupyingThread { process, comm: [b'h'; 16] };
        requests
            .iter_mut()
            .step_by(20)
            .for_each(|request| request.interferers = vec![(hog(7), 200), (hog(8), 100)]);
        let named: Vec<u32> = interfering_processes(&requests).iter().map(|found| found.process).collect();
        assert_eq!(named, [7, 8]);
        let found = without(&requests, TakenOut::Process(7));
        // The other hog may have been done before, if the first had not been there.
        let expected = ReplayedPercentile { least: 10, most: 110, doubt: Some(ReplayDoubt::Others) };
        assert_eq!((found.measured[1], found.percentiles[1]), (310, expected));
        requests.iter_mut().step_by(20).for_each(|request| request.interferers = vec![(hog(7), 300)]);
        assert_eq!(without(&requests, TakenOut::Process(7)).percentiles[1].known(), Some(10));
        assert_eq!(without(&requests, TakenOut::Process(9)).percentiles[1].known(), Some(310));
    }

    #[test]
    fn one_queue_for_two_workers() {
        let mut requests = served(&[(0, 100, 0), (1, 100, 0)], 1);
        requests.extend(served(&[(300, 5, 0)], 2));
        let all: Vec<&AttributedRequest> = requests.iter().collect();
        assert_eq!(one_queue(&all, IntendedWaits::Included), [100, 100, 5]);
    }

    #[test]
    fn overtaking_is_counted() {
        let first = AttributedRequest { begun: 80, ..request(1, 0, 0, 10, 0) };
        let second = AttributedRequest { begun: 20, ..request(2, 10, 0, 10, 0) };
        let third = AttributedRequest { begun: 90, ..request(2, 15, 0, 10, 0) };
        let found = overtaken(&[first, second, third]);
        assert_eq!(found, OvertakenRequests { overtaken: 1, longest_ns: 60 });
        assert_eq!(overtaken(&served(&[(0, 5, 0), (1, 5, 0)], 1)).overtaken, 0);
    }

    proptest! {
        /// Taking a cause out of a queue gives what the queue without it gives; taking out what nothing has, the queue.
        #[test]
        fn the_replay_is_the_queue_without_the_cause(jobs in prop::collection::vec((0u64..1000, 1u64..50, 0u64..50), 1..100)) {
            let mut jobs = jobs;
            jobs.sort_by_key(|job| job.0);
            // Requests that come at the same moment are one segment, which a client may have had to put together.
            jobs.dedup_by_key(|job| job.0);
            let requests = served(&jobs, 1);
            let own: Vec<u64> = requests.iter().map(AttributedRequest::latency).collect();
            for order in ServiceOrder::ALL {
                prop_assert_eq!(&latencies(&requests, Cause::Softirq, order), &own);
            }
            let clean: Vec<_> = jobs.iter().map(|&(ready, work, _)| (ready, work, 0)).collect();
            let expected: Vec<u64> = served(&clean, 1).iter().map(AttributedRequest::latency).collect();
            prop_assert_eq!(latencies(&requests, Cause::OtherProcess, ServiceOrder::Arrival), expected);
            let all: Vec<&AttributedRequest> = requests.iter().collect();
            prop_assert_eq!(one_queue(&all, IntendedWaits::Included), own);
        }

        /// Nothing that is taken out makes a percentile longer, or shorter than a request's own work.
        #[test]
        fn between_own_work_and_what_was_measured(jobs in prop::collection::vec((0u64..3000, 1u64..50, 0u64..200, 0u16..5, 1u32..4), 1..200)) {
            let mut requests = Vec::new();
            for worker in 1..4 {
                let mut own: Vec<_> = jobs.iter().filter(|job| job.4 == worker).collect();
                own.sort_by_key(|job| job.0);
                let plain: Vec<_> = own.iter().map(|job| (job.0, job.1, job.2)).collect();
                requests.extend(served(&plain, worker).into_iter().zip(own).map(|(request, job)| {
                    AttributedRequest { peer: ([127, 0, 0, 1], job.3).into(), ..request }
                }));
            }
            let mut work: Vec<u64> = requests.iter().map(|request| request.own[Cause::Work as usize]).collect();
            work.sort_unstable();
            let nothing = without(&requests, TakenOut::Nothing);
            for cause in Cause::ALL.into_iter().filter(|cause| *cause != Cause::Work) {
                let found = without(&requests, TakenOut::Cause(cause));
                for ((found, measured), least) in found.percentiles.iter().zip(nothing.measured).zip(percentiles(&work)) {
                    prop_assert!(found.least <= found.most && found.most <= measured, "{found:?} {measured}");
                    prop_assert!(found.least >= least, "{found:?}: {least}");
                }
            }
        }
    }
}
