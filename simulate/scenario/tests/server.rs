//! Storage servers: against the exact replay of circular traces, limits, channels, verdicts.

use discipline::enforce::OwnerBounds;
use model::{
    CircularTrace, Job, PerStage, Policy, PolicyPlacement, PolicyWorkload, Stage, StageLimit, Verdict,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use scenario::server::{ServerRules, SimulatedWorkload, StageRule, StorageServer, WorkloadRequests};
use scenario::{ScenarioRun, SimulationCase};
use sim::engine::{Histogram, Measures, SimulationEngine, SimulationPlan};
use sim::{Observer, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use std::ops::ControlFlow;
use std::sync::Arc;
use units::{ByteRate, Nanos, Percentile};
use workload::device::{NetworkModel, StorageProfile};

fn server(channels: u32) -> StorageServer {
    let profile =
        "{\"bandwidthTable\": [{\"requestSize\": 4096, \"readBandwidth\": 1e8, \"writeBandwidth\": 5e7}]}";
    let network = ByteRate::from_bytes_per_sec(1e8).unwrap();
    StorageServer::new(StorageProfile::from_json(profile).unwrap(), network, channels).unwrap()
}

fn workload(name: &str, slo: &str, jobs: Vec<Job>, begin: u64) -> SimulatedWorkload {
    let trace = Arc::new(CircularTrace::repeating(jobs).unwrap());
    let requests = WorkloadRequests::Recorded { trace, accesses: Arc::new([]), begin: Some(Nanos(begin)) };
    SimulatedWorkload {
        name: name.into(),
        slo: Some(slo.parse().unwrap()),
        best_effort: false,
        weight: 1,
        requests,
    }
}

/// Bursty jobs of one packet, which takes 15.14 us, some without work at some stages.
fn jobs(random: &mut StdRng, count: usize) -> Vec<Job> {
    let mut arrival = 0;
    let job = |_| {
        arrival += if random.random_bool(0.6) {
            random.random_range(1..2_000)
        } else {
            random.random_range(1..1_600_000)
        };
        let mut work = PerStage::from_fn(|_| {
            if random.random_bool(0.2) { Nanos(0) } else { Nanos(random.random_range(1..15_000)) }
        });
        work[Stage::NetworkOut].0 += 1;
        Job { arrival: Nanos(arrival), work }
    };
    (0..count).map(job).collect()
}

fn case(workloads: Vec<SimulatedWorkload>, rules: &ServerRules) -> SimulationCase {
    // One request at the device, which is the one that it serves.
    let bounds = OwnerBounds { outstanding: Some(1), ..OwnerBounds::default() };
    let server = server(1);
    let server = if matches!(rules, ServerRules::Policy(_)) { server.with_bounds(bounds) } else { server };
    SimulationCase::storage("s".into(), server, workloads, rules, SimulationPlan::of_requests(1, 0)).unwrap()
}

fn by_slo() -> ServerRules {
    ServerRules::Stages(Box::new(PerStage::from_fn(|_| StageRule::BySlo)))
}

fn measure(case: &SimulationCase) -> Measures {
    SimulationEngine::new(&case.network, case.entries(1), 1).unwrap().run(case.plan.window).unwrap()
}

#[derive(Default)]
struct Latencies(Vec<Histogram>);

impl Observer for Latencies {
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        self.0[stream].record(latency.0);
        ControlFlow::Continue(())
    }
}

/// The judge: the replay's latencies with the traces where the case has them when its window opens.
fn replayed(case: &SimulationCase) -> Vec<Histogram> {
    let (open, close) = case.plan.window.span.unwrap();
    let mut traces = Vec::new();
    let mut shifts = Vec::new();
    for workload in &case.workloads {
        let WorkloadRequests::Recorded { trace, begin: Some(begin), .. } = &workload.requests else {
            unreachable!()
        };
        let period = trace.period().0;
        shifts.push(Nanos((period - (begin.0 + open.0) % period) % period));
        traces.push(ReplayTrace::new((**trace).clone()).unwrap());
    }
    let stream = |(index, trace)| ReplayStream {
        trace,
        priority: PerStage::from_fn(|_| u32::try_from(index).unwrap()),
        group: index,
    };
    let system = ReplaySystem::new(traces.iter().enumerate().map(stream).collect()).unwrap();
    let system = system.with_horizon(close - open);
    let mut found = Latencies(vec![Histogram::default(); traces.len()]);
    let outcome = Replay::new(&system, PreemptionMode::NonPreemptive).run(&shifts, &mut found);
    assert!(outcome.steady, "the judge knows the steady state");
    found.0
}

#[test]
fn strict_priorities_agree_with_the_exact_replay() {
    let mut random = StdRng::seed_from_u64(7);
    for round in 0..40 {
        let slos = ["99% < 1ms", "99% < 2ms", "99% < 3ms"];
        let workloads = ["a", "b", "c"].iter().zip(slos).map(|(name, slo)| {
            let jobs = jobs(&mut random, 60);
            let begin = random.random_range(0..jobs[59].arrival.0);
            workload(name, slo, jobs, begin)
        });
        let mut case = case(workloads.collect(), &by_slo());
        // Three periods pass before the window opens.
        let (_, end) = case.plan.window.span.unwrap();
        case.plan.window.span = Some((Nanos(3 * end.0), Nanos(4 * end.0)));
        let found = measure(&case);
        assert_eq!(found.by_class, replayed(&case), "round {round}");
        // Limits that no workload reaches change nothing, and neither do packets if a request is one
        // packet.
        let span = case.plan.window.span;
        let mut policed =
            self::case(case.workloads.clone(), &ServerRules::Policy(Box::new(policy(1e6, 1e6))));
        policed.plan.window.span = span;
        assert!(measure(&policed).by_class == found.by_class, "round {round}");
    }
}

/// a, b, c from the top, each with this limit at every stage, as absolute values.
fn policy(rate_per_s: f64, burst_work: f64) -> Policy {
    let limit = |stage| {
        // No device is faster than itself.
        let rate_per_s = if stage == Stage::Storage { rate_per_s.min(1.0) } else { rate_per_s };
        let relative = model::RateLimit { rate: rate_per_s.min(1.0), burst: burst_work };
        StageLimit { rate_per_s, burst_work, ..StageLimit::new(stage, relative, 0.0) }
    };
    let workload = |(priority, name): (u32, &&str)| {
        let placement = PolicyPlacement {
            server: "s".into(),
            priority: PerStage::from_fn(|_| priority),
            bound_s: None,
            limits: Stage::ALL.map(limit).to_vec(),
        };
        PolicyWorkload::admitted(*name, "99% < 1ms".parse().unwrap(), placement)
    };
    Policy::new("by hand", Vec::new(), (0..).zip(&["a", "b", "c"]).map(workload).collect()).unwrap()
}

/// Requests every `gap` that need `work` at the device and hardly anything elsewhere.
fn steady(gap: u64, work: u64) -> Vec<Job> {
    let work = |stage| Nanos(if stage == Stage::Storage { work } else { 1 });
    (0..100).map(|i| Job { arrival: Nanos(i * gap), work: PerStage::from_fn(work) }).collect()
}

#[test]
fn limits_isolate_who_is_below() {
    // a alone asks for 90 % of the device at the highest priority, b for 50 %: without limits b starves.
    let workloads = || {
        vec![
            workload("a", "99% < 100us", steady(10_000, 9_000), 0),
            workload("b", "99% < 200us", steady(20_000, 10_000), 5_000),
        ]
    };
    let p99 = |rules: &ServerRules| {
        let case = case(workloads(), rules);
        measure(&case).by_class[1].percentile(Percentile::new(99.0).unwrap()).unwrap().0
    };
    let starved = p99(&by_slo());
    // 30 % of the device and 20 us at once, at the device only.
    let mut limited = policy(0.3, 20e-6);
    let is_device = |limit: &StageLimit| limit.stage == Stage::Storage;
    limited.workloads.iter_mut().for_each(|at| at.limits.retain(is_device));
    limited.workloads[1].limits.clear();
    let isolated = p99(&ServerRules::Policy(Box::new(limited)));
    // At worst one request of a has begun, two more are within its burst.
    assert!(isolated <= 60_000, "{isolated} ns");
    assert!(starved > 400_000, "{starved} ns");
}

#[test]
fn channels_keep_the_throughput() {
    let busiest = |channels| {
        let mut workloads = vec![workload("a", "99% < 1ms", steady(20_000, 10_000), 0)];
        workloads[0].name = "a".into();
        let case = SimulationCase::storage(
            "s".into(),
            server(channels),
            workloads,
            &ServerRules::default(),
            SimulationPlan::of_requests(1, 0),
        );
        let case = case.unwrap();
        (case.busiest().1, measure(&case).response.percentile(Percentile::new(50.0).unwrap()).unwrap().0)
    };
    let one = busiest(1);
    let four = busiest(4);
    assert!((one.0 - 0.5).abs() < 0.01 && (four.0 - 0.5).abs() < 0.01);
    // Alone in the device a request takes four times as long.
    assert!(one.1.abs_diff(10_002) <= 20 && four.1.abs_diff(40_002) <= 100, "{one:?} {four:?}");
}

#[test]
fn a_window_of_time_measures_who_arrives_within_it() {
    // A request every 20 us: all 50 that arrive from 1 ms until before 2 ms are measured, and no others.
    let mut case = case(vec![workload("a", "99% < 1ms", steady(20_000, 19_000), 0)], &ServerRules::default());
    for (begin, end, requests) in [(1_000_000, 2_000_000, 50), (0, 20_000, 1), (1, 20_000, 0), (1, 20_001, 1)]
    {
        case.plan.window.span = Some((Nanos(begin), Nanos(end)));
        let found = measure(&case);
        assert_eq!((found.response.count(), found.arrivals, found.unfinished), (requests, requests, 0));
    }
}

#[test]
fn verdicts_need_enough_requests() {
    let kept = |slo: &str, replications: usize| {
        let mut case = case(vec![workload("a", slo, steady(20_000, 10_000), 0)], &ServerRules::default());
        case.plan.replications = replications;
        let outcome = ScenarioRun::new(case, Vec::new(), 1).unwrap().workload_outcomes().swap_remove(0);
        ((outcome.verdict.unwrap(), outcome.needed_requests), outcome.requests, outcome.over_slo.unwrap())
    };
    // 1 − 0.99ⁿ ≥ 0.95 from n = 299; a replication has about 100 requests.
    assert_eq!(kept("99% < 1ms", 2).0, (Verdict::TooFew, Some(299)));
    let (verdict, requests, over) = kept("99% < 1ms", 4);
    assert!(verdict == (Verdict::Met, None) && requests >= 299 && over == 0.0);
    let (verdict, _, over) = kept("99% < 9us", 4);
    assert!(verdict == (Verdict::NotMet, None) && over == 1.0);
    // That no request is late is shown by no number of them, that one was by one.
    assert_eq!(kept("100% < 1ms", 4).0, (Verdict::TooFew, None));
    assert_eq!(kept("100% < 9us", 4).0, (Verdict::NotMet, None));
}

#[test]
fn work_is_that_of_planning() {
    let request = model::Request {
        arrival: Nanos(0),
        size: units::Bytes(4096),
        op: model::Op::Write,
        offset: None,
        response: None,
    };
    let work = server(1).path().work(&request);
    // 200 + 1.1·4096 bytes in, 4096 bytes at 50 MB/s, 200 + 0.025·4096 bytes out, at 100 MB/s.
    let network = NetworkModel::default();
    let ns = |stage| (network.work(stage, &request).base_units() * 10.0).ceil();
    // Rounded up, twice.
    assert!(work[Stage::Storage].0.abs_diff(81_920) <= 1, "{:?}", work[Stage::Storage]);
    assert!((work[Stage::NetworkIn].0 as f64 - ns(Stage::NetworkIn)).abs() <= 1.0);
    assert!(work[Stage::NetworkOut].0.abs_diff(3_024) <= 1, "{:?}", work[Stage::NetworkOut]);
}
