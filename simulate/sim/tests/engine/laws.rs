//! Laws that hold for every network, load and discipline; and refused inputs.

use crate::forms::{blind, memoryless};
use crate::support::{SERVICE, entry, nanos, poisson, single};
use discipline::Limit;
use discipline::enforce::{EnforcementRules, FlowRules, OutstandingBounds, OverLimit};
use discipline::serve::{
    DisciplineSpec, FeedbackClass, FeedbackParameters, LimitedSharingParameters, QueueChoice,
};
use proptest::prelude::*;
use sim::engine::{
    EntryArrivals, Interference, LatencyStatistic, MeasurementWindow, Measures, NetworkStation, NetworkStep,
    PrecisionGoal, QueueingNetwork, ReplicationVerdict, ReplicationWatch, RequestDraft, RequestEntry, SKIP,
    SimulationEngine, SimulationError, SimulationPlan, replicate, replicate_watched,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use units::Nanos;

fn kinds() -> Vec<DisciplineSpec> {
    let more = [
        DisciplineSpec::Sharing { limit: None },
        DisciplineSpec::Sharing { limit: Some(2) },
        DisciplineSpec::Split(QueueChoice::TwoChoices),
        DisciplineSpec::Split(QueueChoice::Shortest),
        DisciplineSpec::Proportional { weights: vec![3] },
        DisciplineSpec::Deadline { allowed: vec![40] },
        DisciplineSpec::WeightedSharing { limit: Some(3), weights: vec![2] },
        DisciplineSpec::Feedback(FeedbackParameters::new(
            vec![FeedbackClass { weight: 1, slo: Some(30) }],
            50,
        )),
        enforced(OverLimit::Demote),
        enforced(OverLimit::Queue),
        DisciplineSpec::PreemptiveDeadline { allowed: vec![40] },
    ];
    blind().into_iter().map(|(_, kind)| kind).chain(more).collect()
}

/// A flow with two limits, at level 1, and bounds.
fn enforced(over: OverLimit) -> DisciplineSpec {
    let limits = vec![Limit { rate: 500_000_000, burst: 30 }, Limit { rate: 200_000_000, burst: 90 }];
    let flows =
        [(0, FlowRules { level: 1, limits, over_limit: over, largest: None, shares_limits_of: None })].into();
    DisciplineSpec::Enforced(EnforcementRules {
        flows,
        bounds: OutstandingBounds { requests: 3, bytes: 100 },
        ..EnforcementRules::none()
    })
}

/// A fork from tier 0 to tiers 1 and 2 that joins at tier 3, which steps may leave out, back to tier 0 at the end.
fn diamond(workers: [u32; 4], kind: &DisciplineSpec, switch: u64, delay: u64) -> QueueingNetwork {
    let costs = !matches!(kind, DisciplineSpec::Sharing { .. } | DisciplineSpec::WeightedSharing { .. });
    let station = |workers| {
        let mut station = NetworkStation::new("tier", workers, kind.clone());
        station.switch = Nanos(if costs { switch } else { 0 });
        station.interference = (costs && switch > 2).then_some(Interference {
            gap: Nanos(40),
            length: Nanos(3),
            requeue: matches!(kind, DisciplineSpec::Limited(_)),
        });
        station
    };
    let step =
        |station, after: &[usize], delay| NetworkStep { station, after: after.to_vec(), delay: Nanos(delay) };
    QueueingNetwork {
        stations: workers.map(station).to_vec(),
        steps: vec![
            step(0, &[], 0),
            step(1, &[0], delay),
            step(2, &[0], 0),
            step(3, &[1, 2], 1),
            step(0, &[3], delay),
        ],
        classes: 1,
    }
}

/// A gap and demands; a demand of 0 omits its step, and the first step is never omitted.
type Drawn = (u64, [u64; 5]);

fn load(drawn: &[Drawn], window: Option<u32>, skew_ns: i64) -> Vec<RequestEntry> {
    let mut now = 0;
    let instants: Vec<Nanos> = drawn
        .iter()
        .map(|(gap, _)| {
            now += gap;
            Nanos(now)
        })
        .collect();
    let drawn: Vec<Drawn> = drawn.to_vec();
    let mut demands = drawn.into_iter();
    let draw = move |draft: &mut RequestDraft<'_>| {
        let (_, drawn) = demands.next().unwrap();
        for (step, (demand, drawn)) in draft.demands.iter_mut().zip(drawn).enumerate() {
            *demand = if drawn == 0 && step > 0 { SKIP } else { Nanos(drawn) };
        }
    };
    vec![RequestEntry { window, skew_ns, ..RequestEntry::open(instants.into_iter(), draw) }]
}

fn run(network: &QueueingNetwork, entries: Vec<RequestEntry>, measured: u64) -> Measures {
    let window = MeasurementWindow { warm_up: 0, ..MeasurementWindow::of_requests(measured) };
    SimulationEngine::new(network, entries, 9).unwrap().run(window).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No request is lost, none is faster than alone, and equal inputs give equal measures.
    #[test]
    fn all_that_enter_leave(
        workers in [1u32..3, 1u32..3, 1u32..3, 1u32..4],
        switch in 0u64..5, delay in 0u64..30,
        window in proptest::option::of(1u32..6), skew_ns in -50i64..50,
        drawn in proptest::collection::vec((0u64..30, [0u64..20, 0u64..20, 0u64..20, 0u64..20, 0u64..20]), 1..60),
    ) {
        let count = drawn.len() as u64;
        for kind in kinds() {
            let network = diamond(workers, &kind, switch, delay);
            let measures = run(&network, load(&drawn, window, skew_ns), count);
            prop_assert_eq!((measures.response.count(), measures.unfinished), (count, 0), "{:?}", kind);
            prop_assert_eq!(&measures, &run(&network, load(&drawn, window, skew_ns), count));
            let visits: u64 = measures.stations.iter().map(|station| station.time.count()).sum();
            let drawn_visits = drawn.iter().map(|(_, demands)| 1 + demands[1..].iter().filter(|d| **d > 0).count());
            prop_assert_eq!(visits, drawn_visits.sum::<usize>() as u64);
            // No request completes before its ideal time: the engine's subtraction would overflow.
        }
    }

    /// Without costs and with one worker, the last request completes at the same time under any
    /// discipline: the end of Lindley's recursion.
    #[test]
    fn work_is_conserved(drawn in proptest::collection::vec((0u64..12, 1u64..20), 1..60)) {
        let drawn: Vec<Drawn> = drawn.iter().map(|(gap, demand)| (*gap, [*demand, 0, 0, 0, 0])).collect();
        let mut now = 0;
        let mut end = 0;
        for (gap, demands) in &drawn {
            now += gap;
            end = now.max(end) + demands[0];
        }
        for kind in blind().into_iter().map(|(_, kind)| kind) {
            let measures = run(&single(1, kind.clone()), load(&drawn, None, 0), drawn.len() as u64);
            prop_assert_eq!(measures.duration.0, end - drawn[0].0, "{:?}", kind);
        }
    }

    /// First come, first served on one worker after the other keeps the order of arrival.
    #[test]
    fn a_chain_of_single_workers_keeps_the_order(
        drawn in proptest::collection::vec((0u64..12, [1u64..20, 1u64..20, 1u64..20, 1u64..2, 1u64..2]), 1..60),
    ) {
        let station = || NetworkStation::new("tier", 1, DisciplineSpec::Fifo);
        let network = QueueingNetwork::chain((0..5).map(|_| station()).collect());
        let measures = run(&network, load(&drawn, None, 0), drawn.len() as u64);
        // Lindley: D(i, k) = max(D(i, k − 1), D(i − 1, k)) + S.
        let mut now = 0;
        let mut total = 0;
        let mut before = [0; 5];
        for (gap, demands) in &drawn {
            now += gap;
            let mut end = now;
            for (before, demand) in before.iter_mut().zip(demands) {
                end = end.max(*before) + demand;
                *before = end;
            }
            total += end - now;
        }
        prop_assert_eq!(measures.response.mean().unwrap(), total as f64 / drawn.len() as f64);
    }
}

#[test]
fn littles_law_holds_at_every_station() {
    let station = |workers, kind| NetworkStation::new("tier", workers, kind);
    let robin = DisciplineSpec::Limited(LimitedSharingParameters::oldest_first(4, nanos(0.3 * SERVICE).0));
    let network = QueueingNetwork::chain(vec![station(1, DisciplineSpec::Fifo), station(2, robin)]);
    let run = SimulationEngine::new(&network, vec![entry(3, 0.8, memoryless)], 0)
        .unwrap()
        .run(MeasurementWindow::of_requests(100_000))
        .unwrap();
    let rate = run.arrivals as f64 / run.duration.0 as f64;
    for station in &run.stations {
        let visits = rate * station.time.mean().unwrap();
        assert!((visits / station.present_mean - 1.0).abs() < 0.01, "{visits} {}", station.present_mean);
    }
    assert!((run.stations[0].offered - 0.8).abs() < 0.02 && (run.stations[1].offered - 0.4).abs() < 0.01);
    assert!(run.fairness().unwrap() > 0.0 && run.fairness().unwrap() <= 1.0);
}

#[test]
fn the_shortest_are_measured_apart() {
    let mut count = 0u64;
    let draw = move |draft: &mut RequestDraft<'_>| {
        count += 1;
        draft.demands[0] = Nanos(if count.is_multiple_of(50) { 10 } else { 100 });
    };
    let load = vec![RequestEntry::open(poisson(4, 200.0), draw)];
    let window = MeasurementWindow { short_share: 0.02, ..MeasurementWindow::of_requests(50_000) };
    let measures =
        SimulationEngine::new(&single(1, DisciplineSpec::Fifo), load, 0).unwrap().run(window).unwrap();
    assert_eq!(measures.shortest.count(), 1000);
}

proptest! {
    /// Few different totals, in any buckets of the histogram.
    #[test]
    fn equal_totals_are_all_among_the_shortest(short in 600u64..1_000_000_000) {
        let mut count = 0u64;
        let draw = move |draft: &mut RequestDraft<'_>| {
            count += 1;
            draft.demands[0] = Nanos(if count.is_multiple_of(50) { short } else { 2 * short });
        };
        let load = vec![RequestEntry::open(poisson(4, 5.0 * short as f64), draw)];
        let window = MeasurementWindow { short_share: 0.01, ..MeasurementWindow::of_requests(500) };
        let measures = SimulationEngine::new(&single(1, DisciplineSpec::Fifo), load, 0).unwrap().run(window).unwrap();
        prop_assert_eq!(measures.shortest.count(), 10);
    }
}

#[test]
fn overload_is_said_to_be_one() {
    let overload = |rate| {
        let plan = SimulationPlan { replications: 5, ..SimulationPlan::of_requests(20_000, 1) };
        replicate(&single(1, DisciplineSpec::Fifo), |seed| vec![entry(seed, rate, memoryless)], &plan)
            .unwrap()
            .verdict
    };
    let ReplicationVerdict::Unbounded { per_arrival: Some(share) } = overload(1.1) else {
        panic!("{:?}", overload(1.1))
    };
    // 1 − 1/ρ of the arrivals stay.
    assert!((share - 0.1 / 1.1).abs() < 0.01, "{share}");
    assert_eq!(
        overload(1.1).to_string(),
        format!("unstable: grows without bound ({:.1} of 100 arrivals stay inside)", 100.0 * share)
    );
    assert_eq!((overload(0.5), overload(0.9)), (ReplicationVerdict::Done, ReplicationVerdict::Done));
    // Costs count as well: 0.8 of demand, and half as much again for switching.
    let mut network =
        single(1, DisciplineSpec::Limited(LimitedSharingParameters::round_robin(nanos(0.2 * SERVICE).0)));
    network.stations[0].switch = nanos(0.1 * SERVICE);
    let plan = SimulationPlan { replications: 5, ..SimulationPlan::of_requests(20_000, 1) };
    let report = replicate(&network, |seed| vec![entry(seed, 0.8, memoryless)], &plan).unwrap();
    assert!(matches!(report.verdict, ReplicationVerdict::Unbounded { .. }), "{:?}", report.verdict);
}

/// Ends replications after some of them.
struct EndsAfter {
    most: usize,
    done: AtomicUsize,
}

impl ReplicationWatch for EndsAfter {
    fn replications_done(&self, done: usize, wanted: usize) {
        assert!(done <= wanted);
        self.done.fetch_max(done, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.most
    }
}

#[test]
fn interrupted_replications_are_some_of_those_that_would_have_been() {
    let load = |seed| vec![entry(seed, 0.5, memoryless)];
    let network = single(1, DisciplineSpec::Fifo);
    let plan = SimulationPlan { replications: 40, ..SimulationPlan::of_requests(200, 1) };
    let whole = replicate(&network, load, &plan).unwrap();
    for most in [0, 1, 7] {
        let watch = EndsAfter { most, done: AtomicUsize::new(0) };
        let report = replicate_watched(&network, load, &plan, &watch).unwrap();
        assert_eq!(report.verdict, ReplicationVerdict::Interrupted);
        assert!(report.runs.len() >= most && report.runs.len() < 40, "{}", report.runs.len());
        assert!(report.runs.iter().all(|run| whole.runs.contains(run)));
    }
}

/// A replication that would take an hour ends as soon as it is interrupted.
#[test]
fn a_long_replication_ends_before_it_is_complete() {
    let network = single(1, DisciplineSpec::Fifo);
    let window = MeasurementWindow::of_requests(u64::MAX / 2);
    let looks = std::cell::Cell::new(0);
    let interrupted = || looks.replace(looks.get() + 1) == 3;
    let engine = SimulationEngine::new(&network, vec![entry(1, 0.5, memoryless)], 1).unwrap();
    let result = engine.ended_by(&interrupted).run(window);
    assert_eq!((result.err(), looks.get()), (Some(SimulationError::Interrupted), 4));
}

#[test]
fn a_transient_overload_is_measured() {
    let load = |seed| vec![entry(seed, 2.0, memoryless)];
    let plan = SimulationPlan { replications: 5, ..SimulationPlan::of_requests(20_000, 1) };
    let window = MeasurementWindow { warm_up: 0, ..plan.window };
    let network = single(1, DisciplineSpec::Fifo);
    let steady = replicate(&network, load, &SimulationPlan { window, ..plan.clone() }).unwrap();
    let transient = replicate(&network, load, &SimulationPlan { window, transient: true, ..plan }).unwrap();
    assert!(matches!(steady.verdict, ReplicationVerdict::Unbounded { .. }));
    assert_eq!((transient.verdict, &transient.runs), (ReplicationVerdict::Transient, &steady.runs));
    // Half of the arrivals are served while they arrive: the last one waits for the rest, the mean is
    // half of that.
    let mean = transient.mean().unwrap().value;
    assert!((mean / (20_000.0 * SERVICE / 4.0) - 1.0).abs() < 0.05, "{mean}");
    // A missed precision goal is still reported.
    let goal = Some(PrecisionGoal { statistic: LatencyStatistic::Mean, relative: 1e-6 });
    let plan =
        SimulationPlan { goal, replications_max: 5, transient: true, ..SimulationPlan::of_requests(2000, 1) };
    assert!(matches!(
        replicate(&network, load, &plan).unwrap().verdict,
        ReplicationVerdict::Imprecise { .. }
    ));
}

#[test]
fn a_run_that_outgrows_its_limit_ends() {
    let window = MeasurementWindow { inside_max: 500, ..MeasurementWindow::of_requests(u64::MAX / 2) };
    let network = single(1, DisciplineSpec::Lifo);
    let load = |seed| vec![entry(seed, 1.5, memoryless)];
    let failure = SimulationEngine::new(&network, load(1), 0).unwrap().run(window).unwrap_err();
    assert!(matches!(failure, SimulationError::Unbounded { inside: 501, .. }), "{failure}");
    let report =
        replicate(&network, load, &SimulationPlan { window, ..SimulationPlan::of_requests(1, 1) }).unwrap();
    assert_eq!(report.verdict, ReplicationVerdict::Unbounded { per_arrival: None });
}

#[test]
fn without_arrivals_nothing_is_measured() {
    let measures = run(
        &single(1, DisciplineSpec::Fifo),
        vec![RequestEntry::open(std::iter::empty(), memoryless_draw)],
        10,
    );
    assert_eq!((measures.arrivals, measures.response.count(), measures.response.mean()), (0, 0, None));
    assert_eq!(
        (measures.throughput_per_s(), measures.fairness(), measures.displaced_pct()),
        (None, None, None)
    );
}

fn memoryless_draw(draft: &mut RequestDraft<'_>) {
    draft.demands.fill(Nanos(1));
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let fault = |network: &QueueingNetwork, entries: Vec<RequestEntry>| match SimulationEngine::new(
        network, entries, 0,
    ) {
        Err(invalid) => invalid.0,
        Ok(engine) => engine
            .run(MeasurementWindow { warm_up: 0, ..MeasurementWindow::of_requests(9) })
            .unwrap_err()
            .to_string(),
    };
    let one = || vec![RequestEntry::open([Nanos(5), Nanos(4)].into_iter(), memoryless_draw)];
    let good = single(1, DisciplineSpec::Fifo);
    assert_eq!(fault(&good, one()), "arrivals go back in time, from 5 ns to 4 ns");
    assert_eq!(fault(&good, vec![]), "at least one entry is needed");
    let none = RequestEntry { window: Some(0), ..one().remove(0) };
    assert_eq!(fault(&good, vec![none]), "a window admits at least one request");
    let skip = |draft: &mut RequestDraft<'_>| draft.demands.fill(SKIP);
    let entry = RequestEntry {
        arrivals: EntryArrivals::Open(Box::new(std::iter::once(Nanos(1)))),
        ..RequestEntry::open(std::iter::empty(), skip)
    };
    assert_eq!(fault(&good, vec![entry]), "a request leaves out all steps");
    let class = |draft: &mut RequestDraft<'_>| draft.class = 1;
    let entry = RequestEntry::open(std::iter::once(Nanos(1)), class);
    assert_eq!(fault(&good, vec![entry]), "a request has class 1; there are 1, from 0");
    assert_eq!(
        fault(&single(0, DisciplineSpec::Fifo), one()),
        "station 'server': at least one worker is needed"
    );
    let mut loops = good.clone();
    loops.steps[0].after = vec![0];
    assert_eq!(fault(&loops, one()), "step 0 cannot wait for step 0: only for earlier ones");
    let mut nowhere = good.clone();
    nowhere.steps[0].station = 3;
    assert_eq!(fault(&nowhere, one()), "step 0: no station 3; there are 1");
    let none = QueueingNetwork { steps: vec![], ..good.clone() };
    assert_eq!(fault(&none, one()), "a network needs at least one step and one class");
    let classes = QueueingNetwork { classes: 3, ..single(1, DisciplineSpec::Priority { levels: 2 }) };
    assert_eq!(fault(&classes, one()), "station 'server': the discipline knows 2 classes; requests have 3");
    let limit = single(1, DisciplineSpec::Limited(LimitedSharingParameters::oldest_first(0, 5)));
    assert_eq!(fault(&limit, one()), "station 'server': the limit of processor sharing is at least 1");
    let mut shared = single(1, DisciplineSpec::Sharing { limit: None });
    shared.stations[0].switch = Nanos(1);
    let costs =
        "station 'server': ideal processor sharing has no switches, no dispatcher and no interference";
    assert_eq!(fault(&shared, one()), costs);
    let mut idle = good;
    idle.stations[0].interference = Some(Interference { gap: Nanos::ZERO, length: Nanos(1), requeue: false });
    assert_eq!(fault(&idle, one()), "station 'server': the gap between interferences is at least 1 ns");
}
