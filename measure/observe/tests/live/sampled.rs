//! An observation whose cost is limited: in its windows it sees every request, and in between nothing is attached.

use super::*;
use observe::CostLimit;
use std::time::Instant;

/// Longer times without an observed request are between windows.
const GAP_NS: u64 = 150_000_000;

/// Of each client. At this limit the server is not observed all the time, and windows that cost up to a quarter of a second
/// are two while clients send: with this seed the second one is early in its period. Beside other load a window may
/// cost more; then clients send for longer.
const PACE: Duration = Duration::from_millis(1);
const REQUESTS: [usize; 2] = [20_000, 80_000];
const LIMIT: CostLimit = CostLimit { share: 0.015, seed: 10 };

/// Requests that arrived one after the other, in the order of T0, divided by the pauses.
fn windows(requests: &[ObservedRequest]) -> Vec<Vec<ObservedRequest>> {
    let mut sorted = requests.to_vec();
    sorted.sort_by_key(|request| request.points[0]);
    sorted.chunk_by(|a, b| b.points[0] - a.points[0] < GAP_NS).map(<[ObservedRequest]>::to_vec).collect()
}

/// Clients that send `count` requests each, and what is observed meanwhile.
fn observe_clients(
    server: &RunningServer,
    count: usize,
) -> (ObservationReport, Vec<ClientRequest>, Vec<ObservedRequest>) {
    let settings = ObservationSettings {
        probes: probes(server.port()),
        duration: Duration::from_secs(120),
        cost_duration: Duration::ZERO,
        intended_waits: IntendedWaits::Included,
        cost_limit: Some(LIMIT),
    };
    let stop = AtomicBool::new(false);
    let mut requests = Vec::new();
    let address = addresses(server)[0];
    let exchange = Exchange::new(Dialogue::Memcached, count).every(PACE);
    let (report, sent) = std::thread::scope(|scope| {
        let clients = scope.spawn(|| {
            let sent = clients::run(address, &exchange, CLIENTS);
            stop.store(true, Ordering::Relaxed);
            sent
        });
        let report = observe(&settings, &stop, || (), &mut |request| requests.push(*request));
        (report.unwrap_or_else(|error| panic!("{error}")), clients.join().expect("clients do not fail"))
    });
    (report, sent, requests)
}

#[test]
fn windows_have_every_request() {
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    let began = Instant::now();
    let windows_of =
        |report: &ObservationReport| report.sampled.as_ref().map_or(0, |sampled| sampled.windows);
    let mut observed = observe_clients(&server, REQUESTS[0]);
    if windows_of(&observed.0) < 2 {
        observed = observe_clients(&server, REQUESTS[1]);
    }
    let (report, sent, requests) = observed;
    let sampled = report.sampled.expect("the cost is limited");
    assert_eq!(report.statistics.count(), requests.len() as u64);
    assert!(
        sampled.windows >= 2 && sampled.counted < report.duration,
        "{sampled:?} of {:?}",
        report.duration
    );
    assert!(report.counted() == sampled.counted && report.duration <= began.elapsed());
    assert_eq!(sampled.limit, LIMIT);
    assert!(sampled.cost_ns > 0 && report.counts.gaps == 0, "{:?}", report.counts);
    let seen = windows(&requests);
    assert!(seen.len() as u64 >= 2, "{sampled:?}");
    let mut certain = 0;
    for window in &seen {
        let first = window[0].points[0];
        let last = window[window.len() - 1].points[0];
        // Those that were certainly in the window, by the clocks of their clients.
        let inside: Vec<ClientRequest> =
            sent.iter().filter(|client| client.sent >= first && client.received <= last).copied().collect();
        let found = nesting(window, &sent);
        let of_inside = nesting(window, &inside);
        let said = format!(
            "{found:?}, {of_inside:?} of {} from {first} to {last}, {:?}",
            inside.len(),
            report.counts
        );
        if report.skipped_runs == 0 {
            assert_eq!((found.outside, of_inside.missing), (0, 0), "{said}");
        }
        certain += inside.len();
        assert!(
            window.iter().all(|request| request.stages().iter().sum::<u64>() == request.latency_from_wire())
        );
    }
    assert!(certain > requests.len() / 2, "{certain} of {}", requests.len());
}
