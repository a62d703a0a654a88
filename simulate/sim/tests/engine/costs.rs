//! Costs, delays and entries on schedules that can be computed by hand.

use crate::support::single;
use discipline::serve::{DisciplineSpec, LimitedSharingParameters};
use sim::engine::{
    Interference, MeasurementWindow, Measures, NetworkStation, NetworkStep, QueueingNetwork, RequestDraft,
    RequestEntry, SKIP, SimulationEngine,
};
use units::{Nanos, Percentile};

/// Every demand is the same.
fn equal(demand: u64) -> impl FnMut(&mut RequestDraft<'_>) {
    move |draft| draft.demands.fill(Nanos(demand))
}

fn at(instants: &[u64]) -> impl Iterator<Item = Nanos> + 'static {
    instants.iter().copied().map(Nanos).collect::<Vec<_>>().into_iter()
}

fn run(network: &QueueingNetwork, entries: Vec<RequestEntry>, measured: u64) -> Measures {
    let window = MeasurementWindow { warm_up: 0, ..MeasurementWindow::of_requests(measured) };
    SimulationEngine::new(network, entries, 5).unwrap().run(window).unwrap()
}

/// Response times in order of length; exact below 512.
fn responses(measures: &Measures) -> Vec<u64> {
    let count = measures.response.count();
    let value = |rank: u64| {
        let percent = Percentile::new(100.0 * (rank as f64 - 0.5) / count as f64).unwrap();
        measures.response.percentile(percent).unwrap().0
    };
    (1..=count).map(value).collect()
}

fn always() -> impl Iterator<Item = Nanos> {
    std::iter::repeat(Nanos::ZERO)
}

#[test]
fn each_slice_pays_for_its_switch() {
    let robin = DisciplineSpec::Limited(LimitedSharingParameters::round_robin(100));
    let mut network = single(1, robin);
    network.stations[0].switch = Nanos(25);
    // Two clients that always want 1000: slices of 100 in turn, each with a switch of 25 before it; the last slice
    // of a request ends it.
    let measures = run(&network, vec![RequestEntry::closed(2, always(), equal(1000))], 2000);
    let per_s = measures.throughput_per_s().unwrap();
    assert!((per_s * 1250e-9 - 1.0).abs() < 0.01, "{per_s}");
    assert!((measures.stations[0].overhead - 0.2).abs() < 0.002);
    // An item alone is switched to only once.
    let alone = run(&network, vec![RequestEntry::open(at(&[7]), equal(400))], 1);
    assert_eq!(responses(&alone), [425]);
}

#[test]
fn a_dispatcher_limits_what_many_workers_can_do() {
    let mut network = single(16, DisciplineSpec::Fifo);
    network.stations[0].dispatch = Nanos(50);
    let measures = run(&network, vec![RequestEntry::closed(64, always(), equal(200))], 4000);
    let per_s = measures.throughput_per_s().unwrap();
    assert!((per_s * 50e-9 - 1.0).abs() < 0.01, "{per_s}");
    // Three at once: the second and the third wait for the dispatcher.
    let three = run(&network, vec![RequestEntry::open(at(&[0, 0, 0]), equal(200))], 3);
    assert_eq!(responses(&three), [250, 300, 350]);
}

#[test]
fn other_work_stretches_service() {
    let mut network = single(1, DisciplineSpec::Fifo);
    let other = Interference { gap: Nanos(10_000), length: Nanos(2_000), requeue: false };
    network.stations[0].interference = Some(other);
    // A worker that always serves is stopped once in 10 µs of its own service: 1000 take 1200.
    let measures = run(&network, vec![RequestEntry::closed(1, always(), equal(1000))], 100_000);
    let mean = measures.response.mean().unwrap();
    assert!((mean / 1200.0 - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn delays_add_up_and_the_window_holds_back() {
    let mut network = QueueingNetwork::chain(vec![
        NetworkStation::new("front", 1, DisciplineSpec::Fifo),
        NetworkStation::new("back", 1, DisciplineSpec::Fifo),
    ]);
    network.steps[1].delay = Nanos(30);
    let entry =
        |window| RequestEntry { delay: Nanos(5), window, ..RequestEntry::open(at(&[0, 0]), equal(10)) };
    // 5 + 10 + 30 + 10; the second is ten later at the front, and nowhere else.
    assert_eq!(responses(&run(&network, vec![entry(None)], 2)), [55, 65]);
    assert_eq!(responses(&run(&network, vec![entry(Some(1))], 2)), [55, 110]);
}

/// A slow and a fast way into one station: the request that came first arrives there last.
fn fan_in(last: DisciplineSpec) -> QueueingNetwork {
    let step = |station, after: &[usize]| NetworkStep { station, after: after.to_vec(), delay: Nanos::ZERO };
    QueueingNetwork {
        stations: vec![
            NetworkStation::new("slow", 1, DisciplineSpec::Fifo),
            NetworkStation::new("shared", 1, last),
        ],
        steps: vec![step(0, &[]), step(1, &[0])],
        classes: 1,
    }
}

fn two_ways(skew_ns: i64) -> Vec<RequestEntry> {
    let slow = |draft: &mut RequestDraft<'_>| draft.demands.copy_from_slice(&[Nanos(100), Nanos(40)]);
    let fast = |draft: &mut RequestDraft<'_>| draft.demands.copy_from_slice(&[SKIP, Nanos(40)]);
    let fast = RequestEntry { skew_ns, ..RequestEntry::open(at(&[70, 71, 72]), fast) };
    vec![RequestEntry::open(at(&[0]), slow), fast]
}

#[test]
fn age_pays_where_paths_join_and_clocks_agree() {
    // Arrivals at the shared station: 70, 71, 72 and the old one at 100, which is second with age.
    let by_age = run(&fan_in(DisciplineSpec::OldestFirst), two_ways(0), 4);
    assert_eq!(responses(&by_age), [40, 119, 150, 158]);
    // Alone, the three would be complete at 110, 111, 112 and the old one at 140: by the measure of completion order,
    // age itself reorders: two are overtaken by the old one, and three are not where they would be.
    assert_eq!((by_age.overtaken, by_age.displaced), (2, 3));
    let local = run(&fan_in(DisciplineSpec::Fifo), two_ways(0), 4);
    assert_eq!(responses(&local), [40, 79, 118, 230]);
    assert_eq!((local.overtaken, local.displaced), (0, 0));
    // A clock that is 100 behind makes the others look older.
    let skewed = run(&fan_in(DisciplineSpec::OldestFirst), two_ways(-100), 4);
    assert_eq!(responses(&skewed), responses(&local));
}

#[test]
fn the_example_of_the_paper_is_reordered_as_it_says() {
    // TailClipper Figure 1a: a long request of 10 and ten short ones of 1 on two cores under FCFS. All
    // ten complete before the long one, as they would alone, so that no request is overtaken.
    let mut left = 11;
    let draw = move |draft: &mut RequestDraft<'_>| {
        draft.demands[0] = Nanos(if left == 11 { 100 } else { 10 });
        left -= 1;
    };
    let measures = run(&single(2, DisciplineSpec::Fifo), vec![RequestEntry::open(at(&[0; 11]), draw)], 11);
    assert_eq!(responses(&measures), [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 100]);
    assert_eq!(measures.longest_wait, Nanos(90));
    // The last short one completes together with the long one, whose worker has the lower number.
    assert_eq!((measures.overtaken, measures.displaced), (1, 2));
}

/// Two workers, each away for half of the time, for 1000 ns on end.
fn disturbed(kind: DisciplineSpec, requeue: bool) -> QueueingNetwork {
    let mut network = single(2, kind);
    network.stations[0].interference = Some(Interference { gap: Nanos(1000), length: Nanos(1000), requeue });
    network
}

#[test]
fn a_worker_that_is_away_gets_nothing_while_another_is_there() {
    // One short request at a time waits only when both are away, a quarter of the time: for the lesser of two times
    // that are even between 0 and 1000, 333.3 on average.
    let instants = (1..=40_000u64).map(|number| Nanos(10_007 * number));
    let robin = DisciplineSpec::Limited(LimitedSharingParameters::round_robin(100));
    for kind in [DisciplineSpec::Fifo, DisciplineSpec::PreemptiveOldestFirst, robin] {
        let measures = run(
            &disturbed(kind.clone(), false),
            vec![RequestEntry::open(instants.clone(), equal(1))],
            40_000,
        );
        let mean = measures.response.mean().unwrap();
        assert!((mean / (1000.0 / 12.0) - 1.0).abs() < 0.05, "{kind:?}: {mean}");
        // Half of the time of both workers, in either case.
        assert!((measures.stations[0].overhead - 0.5).abs() < 0.01, "{}", measures.stations[0].overhead);
    }
}

#[test]
fn what_is_displaced_goes_on_elsewhere_if_it_is_queued_again() {
    // Alone, with a worker available while one of the two is there: three quarters of the time. Otherwise
    // it waits for its own worker, half of the time.
    let robin = DisciplineSpec::Limited(LimitedSharingParameters::round_robin(1_000_000));
    for (requeue, share) in [(true, 0.75), (false, 0.5)] {
        let entries = vec![RequestEntry::closed(1, always(), equal(10_000))];
        let measures = run(&disturbed(robin.clone(), requeue), entries, 20_000);
        let mean = measures.response.mean().unwrap();
        assert!((mean * share / 10_000.0 - 1.0).abs() < 0.02, "{requeue}: {mean}");
    }
}
