//! Findings of servers whose disturbance is known, because it was put there.

use crate::observation::finding::*;
use crate::observation::ideal::{IdealAssumptions, compare};
use crate::observation::mean_wait::variance_view;
use crate::observation::sample::RequestRun;
use crate::observation::testing::request;
use machine::cpu_quota::CpuQuota;
use observe::{
    AttributedRequest, CauseObserver, CauseProfile, CauseReport, CounterReport, HeldUpTime, IntendedWaits,
    JoinCounts, ObservationEnd, ObservationReport, ObservedRequest, OccupyingThread, ProbeSettings,
    RequestPoint, RequestStatistics, ThrottledGroup,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeSet;
use std::time::Duration;

const MICROSECOND: u64 = 1000;
const MILLISECOND: u64 = 1_000_000;

/// The number of a thread of the kernel.
const KERNEL_THREAD: u32 = 26;

/// A server that takes 10 µs for a request and up to 60 µs to wake up, asked 3,000 times a second at random.
struct TestServer {
    random: StdRng,
    requests: Vec<(ObservedRequest, AttributedRequest)>,
    arrival: u64,
}

impl TestServer {
    fn new(seed: u64) -> Self {
        Self { random: StdRng::seed_from_u64(seed), requests: Vec::new(), arrival: 0 }
    }

    /// Serves so many requests. `injected` says by arrival which cause takes how long in addition.
    fn serve(mut self, count: usize, injected: impl Fn(u64) -> Option<(Cause, u64)>) -> Self {
        for _ in 0..count {
            let gap = -(1.0 - self.random.random::<f64>()).ln() * 333_000.0;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
            let gap = gap as u64;
            self.arrival += gap;
            let wake_up = self.random.random_range(5 * MICROSECOND..60 * MICROSECOND);
            let mut own = [0; CAUSES];
            own[Cause::IdleCpu as usize] = wake_up;
            own[Cause::Work as usize] = 10 * MICROSECOND;
            let mut interferers = Vec::new();
            if let Some((cause, time)) = injected(self.arrival) {
                own[cause as usize] += time;
                let mut comm = [0; 16];
                comm[..3].copy_from_slice(b"hog");
                interferers = vec![(OccupyingThread { process: 4711, comm }, time)];
            }
            self.push(own, interferers);
        }
        self
    }

    fn push(&mut self, own: [u64; CAUSES], interferers: Vec<(OccupyingThread, u64)>) {
        let work = own[Cause::Work as usize];
        let end = self.arrival + own.iter().sum::<u64>();
        let observed = request(self.arrival, end - work, work);
        let queued = [0; CAUSES];
        let ready = self.arrival;
        let start = self.arrival;
        let attributed = AttributedRequest {
            ready,
            start,
            begun: start,
            done: end,
            worker: 1,
            process: 1,
            peer: ([10, 0, 0, 1], 5).into(),
            read: start,
            own_after_read: [0; CAUSES],
            held_up: HeldUpTime::default(),
            own,
            queued,
            interferers,
        };
        self.requests.push((observed, attributed));
    }

    fn finding(&self) -> Finding {
        found(&self.report(), self.requests.iter().map(|(observed, _)| *observed).collect())
    }

    fn report(&self) -> ObservationReport {
        let mut statistics = RequestStatistics::default();
        let mut profile = CauseProfile::new(IntendedWaits::Included);
        for (observed, attributed) in &self.requests {
            statistics.add(observed);
            profile.add(attributed, observed.answer_bytes);
        }
        ObservationReport {
            statistics,
            counts: JoinCounts::default(),
            lost_events: 0,
            skipped_runs: 0,
            events: 0,
            duration: Duration::from_secs(10),
            end: ObservationEnd::Over,
            cost: None,
            may_measure_cost: false,
            readers: BTreeSet::from([1]),
            processes: BTreeSet::from([42]),
            causes: CauseReport { profile, ..CauseObserver::new(IntendedWaits::Included).report() },
            counters: CounterReport::default(),
            accept_queue: None,
            sampled: None,
        }
    }
}

fn found(report: &ObservationReport, requests: Vec<ObservedRequest>) -> Finding {
    let seen = requests.len() as u64;
    let runs = [RequestRun::new(requests, 0)];
    let ideal = compare(&runs, seen, IdealAssumptions::default());
    let variance = ideal.as_ref().and_then(|ideal| variance_view(&ideal.moments, ideal.workers));
    finding(&FindingInput {
        asked: &ProbeSettings::of_ports([11211]),
        report,
        runs: &runs,
        ideal: ideal.as_ref(),
        variance: variance.as_ref(),
        is_kernel_thread: |pid| pid == KERNEL_THREAD,
        is_listening: true,
    })
}

#[test]
fn no_thread_of_the_kernel_is_to_be_demoted() {
    let mut server = TestServer::new(1).serve(10_000, often(Cause::OtherProcess));
    assert!(server.finding().sentence.contains(" demote=4711 "), "{}", server.finding().sentence);
    for (_, attributed) in &mut server.requests {
        attributed.interferers.iter_mut().for_each(|(thread, _)| thread.process = KERNEL_THREAD);
    }
    let found = server.finding();
    assert_eq!(found.verdict, FindingVerdict::Unusual, "{found:?}");
    assert!(found.sentence.contains("tailwright experiment fifo "), "{}", found.sentence);
}

#[test]
fn the_group_of_a_quota_is_named() {
    let server = TestServer::new(1).serve(10_000, often(Cause::Throttled));
    let mut report = server.report();
    report.counters.throttled = vec![ThrottledGroup {
        group: "/services/cache".to_owned(),
        quota: Some(CpuQuota { quota_us: 20_000, period_us: 100_000 }),
        throttled: 50,
        throttled_ns: 1_000_000_000,
        command: None,
        processes: vec![42],
    }];
    let found = found(&report, server.requests.iter().map(|(observed, _)| *observed).collect());
    let words = "is held back by the CPU quota of /services/cache (20ms in 100ms); next: ";
    assert!(found.sentence.contains(words), "{}", found.sentence);
}

/// Takes 20 ms from a server five times a second: a tenth of the requests that arrive meet it.
fn often(cause: Cause) -> impl Fn(u64) -> Option<(Cause, u64)> {
    move |arrival| {
        let into = arrival % (200 * MILLISECOND);
        (into < 20 * MILLISECOND).then(|| (cause, 20 * MILLISECOND - into))
    }
}

#[test]
fn nothing_is_unusual_where_nothing_was_injected() {
    for seed in 0..10 {
        // Small noise of others: 20 µs in one request of a hundred.
        let noise =
            |arrival: u64| arrival.is_multiple_of(100).then_some((Cause::OtherProcess, 20 * MICROSECOND));
        let found = TestServer::new(seed).serve(20_000, noise).finding();
        assert_eq!(found.verdict, FindingVerdict::NothingUnusual, "seed {seed}: {found:?}");
        assert!(found.sentence.starts_with("nothing unusual: p99 ") && found.next.is_none(), "{found:?}");
        assert!(found.sentence.contains("other processes, "), "it says what was tested: {}", found.sentence);
    }
}

/// A server that answers in 6 µs: a timer interrupt or a migration is several times as long, and no reason to act.
#[test]
fn noise_of_an_idle_machine_is_usual_beside_short_service() {
    for (lost, verdict) in
        [(15 * MICROSECOND, FindingVerdict::NothingUnusual), (150 * MICROSECOND, FindingVerdict::Unusual)]
    {
        let mut server = TestServer::new(4);
        for n in 0..20_000u64 {
            server.arrival = n * 300 * MICROSECOND;
            let mut own = [0; CAUSES];
            own[Cause::Work as usize] = 6 * MICROSECOND;
            if n.is_multiple_of(50) {
                own[Cause::OtherProcess as usize] = lost;
            }
            server.push(own, Vec::new());
        }
        let found = server.finding();
        assert_eq!(found.verdict, verdict, "{lost} ns: {found:?}");
        assert!(found.p99_s > found.usual_p99_s.map(|usual| UNUSUAL_FACTOR * usual), "{found:?}");
    }
}

#[test]
fn whatever_takes_the_server_away_is_named() {
    for cause in Cause::ALL {
        let found = TestServer::new(7).serve(20_000, often(cause)).finding();
        assert_eq!(found.verdict, FindingVerdict::Unusual, "{cause:?}: {found:?}");
        let dominating = found.dominating.as_ref().expect("there are requests");
        assert_eq!(dominating.cause, cause.name(), "{found:?}");
        assert!(dominating.share > 0.95, "{found:?}");
        assert!(found.sentence.contains("; next: "), "{}", found.sentence);
        assert!(found.p99_low_s <= found.p99_s && found.p99_s <= found.p99_high_s, "{found:?}");
    }
}

#[test]
fn the_sentence_names_the_process_and_the_command() {
    let found = TestServer::new(7).serve(20_000, often(Cause::OtherProcess)).finding();
    let command = "tailwright experiment demote=4711 --pid 42 --port 11211";
    assert_eq!(found.sentence_and_command().1, Some(command));
    let sentence = &found.sentence;
    assert!(
        sentence.contains("of it waits behind hog (4711); next: ") && sentence.ends_with(command),
        "{sentence}"
    );
    let stopped = TestServer::new(7).serve(20_000, often(Cause::Stopped)).finding();
    assert!(stopped.sentence.ends_with("strace -p 42 shows the sender of each signal"), "{stopped:?}");
}

/// Delayed acknowledgements: nothing in the run is quick, so that no part of it shows what is usual.
#[test]
fn what_every_request_has_is_unusual_all_the_same() {
    let every = |_| Some((Cause::NetworkOut, 40 * MILLISECOND));
    let found = TestServer::new(3).serve(5_000, every).finding();
    assert_eq!(found.verdict, FindingVerdict::Unusual, "{found:?}");
    assert!(found.sentence.ends_with("tailwright experiment nodelay --pid 42 --port 11211"), "{found:?}");
}

#[test]
fn one_episode_is_not_the_tail_of_a_server() {
    let once = |arrival: u64| {
        let into = arrival.checked_sub(3_000 * MILLISECOND).filter(|into| *into < 100 * MILLISECOND)?;
        Some((Cause::Stopped, 100 * MILLISECOND - into))
    };
    let found = TestServer::new(5).serve(20_000, once).finding();
    assert_eq!(found.verdict, FindingVerdict::NotRepeated, "{found:?}");
    assert!(found.sentence.contains("100% of it passes while the server is stopped"), "{}", found.sentence);
}

#[test]
fn few_requests_say_how_many_it_takes() {
    let found = TestServer::new(1).serve(50, |_| None).finding();
    assert_eq!(found.verdict, FindingVerdict::TooFewRequests, "{found:?}");
    let needed = found.requests_needed.expect("it is said");
    assert!(found.sentence.contains(&format!("50 of some {needed}")), "{}", found.sentence);
    let enough = TestServer::new(1).serve(4 * needed, |_| None).finding();
    assert_eq!(enough.verdict, FindingVerdict::NothingUnusual, "{enough:?}");
    let none = TestServer::new(1).finding();
    assert_eq!(none.verdict, FindingVerdict::NoRequests);
    let next = "no request was seen; next: send requests to port 11211";
    assert!(none.sentence.starts_with(next), "{}", none.sentence);
}

#[test]
fn large_answers_are_named() {
    let mut server = TestServer::new(2);
    for round in 0..10_000u64 {
        server.arrival = round * MILLISECOND;
        let is_large = round % 25 == 0;
        let mut own = [0; CAUSES];
        own[Cause::Work as usize] = if is_large { 600 * MICROSECOND } else { 10 * MICROSECOND };
        own[Cause::IdleCpu as usize] = 20 * MICROSECOND;
        server.push(own, Vec::new());
        if is_large {
            server.requests.last_mut().expect("it was pushed").0.answer_bytes = 1 << 20;
        }
    }
    let found = server.finding();
    assert_eq!(found.verdict, FindingVerdict::Unusual, "{found:?}");
    assert!(found.sentence.contains("own work on large answers (1MiB where 100B is usual)"), "{found:?}");
}

/// A queue at 50 % is not unusual, and neither is one at 75 %: random arrivals make it.
#[test]
fn queues_of_random_arrivals_are_usual_and_a_flood_is_not() {
    for gap in [20_000.0, 13_300.0] {
        let (report, requests) = queueing(1, gap, None);
        let found = found(&report, requests);
        assert_eq!(found.verdict, FindingVerdict::NothingUnusual, "gap {gap}: {found:?}");
    }
    let (report, requests) = queueing(1, 40_000.0, Some(200));
    let found = found(&report, requests);
    assert_eq!(found.verdict, FindingVerdict::Unusual, "{found:?}");
    assert!(found.sentence.contains("waits behind requests of 10.0.0.2"), "{}", found.sentence);
}

/// A worker that takes 10 µs for a request. Clients come at random; another one sends `burst` requests at once, every 20 ms.
fn queueing(seed: u64, gap: f64, burst: Option<u64>) -> (ObservationReport, Vec<ObservedRequest>) {
    let mut server = TestServer::new(seed);
    let mut arrivals: Vec<(u64, u8)> = Vec::new();
    let mut at = 0.0;
    for _ in 0..20_000 {
        at += -(1.0 - server.random.random::<f64>()).ln() * gap;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
        arrivals.push((at as u64, 1));
    }
    let end = arrivals.last().map_or(0, |(at, _)| *at);
    for burst_at in (0..end).step_by(20_000_000) {
        arrivals.extend((0..burst.unwrap_or(0)).map(|_| (burst_at, 2)));
    }
    arrivals.sort_unstable();
    let mut free = 0;
    for (arrival, client) in arrivals {
        server.arrival = arrival;
        let start = free.max(arrival);
        free = start + 10 * MICROSECOND;
        let mut own = [0; CAUSES];
        own[Cause::AllBusy as usize] = start - arrival;
        own[Cause::Work as usize] = 10 * MICROSECOND;
        server.push(own, Vec::new());
        server.requests.last_mut().expect("it was pushed").0.peer = ([10, 0, 0, client], 5).into();
    }
    let requests: Vec<ObservedRequest> = server.requests.iter().map(|(observed, _)| *observed).collect();
    assert!(requests.iter().all(|request| request.at(RequestPoint::Stack) <= end));
    (server.report(), requests)
}
