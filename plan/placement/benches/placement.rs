//! Planning on real traces: the thesis's figures beside ours, cost of one decision, growth, random draws,
//! arrivals and departures. All comparisons are made in one run; times are CPU-bound and single-threaded.
//!
//! `cargo bench -p placement` runs everything but the 10,000 workloads, which `-- all` adds.

use model::{Slo, Stage};
use placement::{
    Fleet, LimitMethod, Normalisation, Placement, PlacementOrder, PlanningClass, PlanningProblem,
    PlanningWorkload, SearchEffort, WorkloadOnClass, lower_bound, place, place_first_fit,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};
use units::Seconds;
use workload::burst::EnvelopeReduction;
use workload::device::{NetworkModel, StorageProfile};
use workload::{Footprint, FootprintBuilder};

/// SLOs of thesis §5.4.1, "Random SLO", seconds.
const SLOS: [f64; 5] = [0.1, 0.15, 0.25, 0.5, 1.0];
/// The published procedure reduces curves to this many segments and cuts them at this burst (seconds).
const SEGMENTS: usize = 12;
const CUT_S: f64 = 30.0;
const BASELINES: [LimitMethod; 5] = [
    LimitMethod::EffectiveBest,
    LimitMethod::EffectiveEven,
    LimitMethod::Knee,
    LimitMethod::Average(1.5),
    LimitMethod::Average(2.0),
];

/// A trace's footprint and the SLO that the published set gives it.
struct Source {
    name: String,
    slo: Slo,
    footprint: Footprint,
}

fn main() {
    let Some(folder) = testkit::shared("traces") else { return };
    let all = std::env::args().any(|arg| arg == "all");
    let start = Instant::now();
    let sources = read(&folder);
    let requests: u64 = sources.iter().map(|s| s.footprint.requests()).sum();
    let curves = start.elapsed();
    println!("{} traces, {requests} requests: parsed and characterised in {}\n", sources.len(), ms(curves));

    published_set(&sources);
    one_decision(&sources);
    growth(&sources, if all { &[100, 1000, 10_000] } else { &[100, 1000] });
    random_draws(&sources);
    arrivals_and_departures(&sources);
}

fn read(folder: &Path) -> Vec<Source> {
    let text =
        |name: &str| std::fs::read_to_string(folder.join(name)).expect("the shared folder is readable");
    let profile =
        StorageProfile::from_json(&text("ssd-profile.json")).expect("the published profile is valid");
    let source = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let mut builder = FootprintBuilder::new(NetworkModel::default(), &profile);
        for request in
            trace::open(&folder.join(fields[2]), &trace::OpenOptions::default()).expect("trace opens")
        {
            builder.push(&request.expect("trace is valid")).expect("trace is sorted");
        }
        let latency = Seconds(fields[4].parse().expect("SLO latency"));
        Source {
            name: fields[1].to_owned(),
            slo: Slo::new(fields[3].parse().expect("percentile"), latency).expect("SLO"),
            footprint: builder.finish().expect("trace has requests"),
        }
    };
    text("slos.csv").lines().skip(1).map(source).collect()
}

/// Returns the curves in the form that a method uses: exact and sustained for ours, reduced and as long as
/// the trace for the LP.
fn describe(source: &Source, method: LimitMethod) -> WorkloadOnClass {
    let network = "125MB/s".parse().expect("a rate");
    let normalisation = Normalisation {
        network,
        safety_margin: 1.0,
        sustained: method == LimitMethod::Exact,
        enforced: None,
    };
    if method != LimitMethod::Relaxed {
        return normalisation.apply(&source.footprint);
    }
    let segments = NonZeroUsize::new(SEGMENTS).expect("positive");
    normalisation.apply_reduced(&source.footprint, |stage, envelope| {
        let capacity = normalisation.base_units_per_s(stage);
        envelope.reduce_within(
            &EnvelopeReduction::to_segments(segments).up_to_rate(capacity).up_to_burst(CUT_S * capacity),
        )
    })
}

fn problem(workloads: Vec<(String, Slo, WorkloadOnClass)>, servers: usize) -> PlanningProblem {
    let workload = |(name, slo, on)| PlanningWorkload { name, slo, on_class: vec![on] };
    let class = PlanningClass { name: "ssd".into(), count: servers, enforced: None };
    let workloads = workloads.into_iter().map(workload).collect();
    PlanningProblem::new(vec![class], workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
        .expect("names are unique")
}

fn original(sources: &[Source], method: LimitMethod) -> PlanningProblem {
    problem(sources.iter().map(|s| (s.name.clone(), s.slo, describe(s, method))).collect(), 62)
}

/// `(source, SLO)` pairs drawn at random among those that meet their SLO alone.
fn draw(sources: &[Source], count: usize, seed: u64) -> Vec<(usize, Slo)> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut drawn = Vec::new();
    let exact: Vec<WorkloadOnClass> = sources.iter().map(|s| describe(s, LimitMethod::Exact)).collect();
    while drawn.len() < count {
        let source = random.random_range(0..sources.len());
        let mut slo = sources[source].slo;
        slo.latency = Seconds(SLOS[random.random_range(0..SLOS.len())]);
        let alone = problem(vec![("alone".into(), slo, exact[source].clone())], 1);
        if LimitMethod::Exact.fit(&alone, 0, vec![0]).is_ok() {
            drawn.push((source, slo));
        }
    }
    drawn
}

fn drawn_instance(sources: &[Source], drawn: &[(usize, Slo)], method: LimitMethod) -> PlanningProblem {
    let on: Vec<WorkloadOnClass> = sources.iter().map(|s| describe(s, method)).collect();
    let workload = |(i, &(source, slo)): (usize, &(usize, Slo))| (format!("w{i}"), slo, on[source].clone());
    problem(drawn.iter().enumerate().map(workload).collect(), drawn.len())
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Servers, with what could not be placed.
fn servers(problem: &PlanningProblem, placement: &Placement) -> String {
    for server in &placement.servers {
        server.verify(problem).expect("every plan keeps its promises");
    }
    match placement.refused.len() {
        0 => placement.servers.len().to_string(),
        refused => format!("{} ({refused} refused)", placement.servers.len()),
    }
}

fn plan(problem: &PlanningProblem, method: LimitMethod, order: PlacementOrder) -> Placement {
    let goal = lower_bound(problem, method).servers;
    place(problem, method, order, SearchEffort::for_workloads(problem.workloads.len()), goal, &mut |_| true)
}

fn published_set(sources: &[Source]) {
    println!(
        "The 41 workloads of slos.csv (r ≤ 0.999, SLO × 0.999); published: servers and CPU s of the thesis's code"
    );
    println!(
        "{:42} {:>8} {:>12} {:>10} {:>10} {:>14}",
        "method", "servers", "lower bound", "CPU", "published", "published CPU"
    );
    let rows = [
        ("tailwright, best order", LimitMethod::Exact, PlacementOrder::Best, "–", "–"),
        ("tailwright, first fit in the given order", LimitMethod::Exact, PlacementOrder::Given, "–", "–"),
        ("workload-compactor (LP), best order", LimitMethod::Relaxed, PlacementOrder::Best, "–", "–"),
        ("workload-compactor (LP), first fit", LimitMethod::Relaxed, PlacementOrder::Given, "6", "1.24 s"),
        (
            "workload-compactor (LP), fast-first-fit",
            LimitMethod::Relaxed,
            PlacementOrder::GivenFast,
            "7",
            "0.38 s",
        ),
        (
            "effective bandwidth, best split",
            LimitMethod::EffectiveBest,
            PlacementOrder::Given,
            "12",
            "0.50 s",
        ),
        ("effective bandwidth, even split", LimitMethod::EffectiveEven, PlacementOrder::Given, "–", "–"),
        ("knee of the curve", LimitMethod::Knee, PlacementOrder::Given, "10", "0.11 s"),
        ("1.5 × average rate", LimitMethod::Average(1.5), PlacementOrder::Given, "–", "–"),
        ("2 × average rate", LimitMethod::Average(2.0), PlacementOrder::Given, "–", "–"),
    ];
    for (name, method, order, published, cpu) in rows {
        let problem = original(sources, method);
        let (placement, time) = timed(|| plan(&problem, method, order));
        let bound = lower_bound(&problem, method).fractional;
        let used = servers(&problem, &placement);
        println!("{name:42} {used:>8} {bound:>12.2} {:>10} {published:>10} {cpu:>14}", ms(time));
    }
    println!();
}

/// One server with more and more workloads: can they live together? Both solvers see the same curves.
fn one_decision(sources: &[Source]) {
    println!("One decision (limits for n workloads on one server; SLOs loose enough to fit)");
    println!("{:>4} {:>12} {:>12} {:>8}", "n", "tailwright", "general LP", "ratio");
    for count in [2, 4, 8, 16, 32] {
        let describe = |(i, source): (usize, &Source)| {
            let mut slo = source.slo;
            slo.latency = Seconds(SLOS[i % SLOS.len()] * 20.0);
            (format!("w{i}"), slo, describe(source, LimitMethod::Relaxed))
        };
        let problem = problem(sources.iter().cycle().take(count).enumerate().map(describe).collect(), 1);
        let time = |method: LimitMethod, repeats: u32| {
            let members: Vec<usize> = (0..count).collect();
            let fit = || (0..repeats).all(|_| method.fit(&problem, 0, members.clone()).is_ok());
            let (fits, time) = timed(fit);
            assert!(fits, "the SLOs are loose");
            time / repeats
        };
        let ours = time(LimitMethod::Exact, 200);
        let theirs = time(LimitMethod::Relaxed, 10);
        let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{count:>4} {:>9.0} us {:>9.0} us {ratio:>7.1}x",
            ours.as_secs_f64() * 1e6,
            theirs.as_secs_f64() * 1e6
        );
    }
    println!();
}

fn growth(sources: &[Source], counts: &[usize]) {
    println!("Growth (the 41 traces drawn at random, SLOs from {SLOS:?} s)");
    println!(
        "{:>6} {:>10} {:>12} {:>14} {:>10} {:>12} {:>14} {:>22}",
        "n", "first fit", "time", "per workload", "best", "time", "per workload", "lower bound 5.5 / 5.7"
    );
    for &count in counts {
        let problem = drawn_instance(sources, &draw(sources, count, 1), LimitMethod::Exact);
        let (first, first_time) = timed(|| plan(&problem, LimitMethod::Exact, PlacementOrder::Given));
        let (best, best_time) = timed(|| plan(&problem, LimitMethod::Exact, PlacementOrder::Best));
        let each = |time: Duration| format!("{:.0} us", time.as_secs_f64() * 1e6 / count as f64);
        let bounds = [LimitMethod::Exact, LimitMethod::Relaxed].map(|m| lower_bound(&problem, m).servers);
        println!(
            "{count:>6} {:>10} {:>12} {:>14} {:>10} {:>12} {:>14} {:>22}",
            servers(&problem, &first),
            ms(first_time),
            each(first_time),
            servers(&problem, &best),
            ms(best_time),
            each(best_time),
            format!("{} / {}", bounds[0], bounds[1])
        );
    }
    println!();
}

/// Thesis Fig. 5.9, scaled: random sets in random order.
fn random_draws(sources: &[Source]) {
    const SETS: u64 = 5;
    const COUNT: usize = 200;
    println!(
        "{SETS} random sets of {COUNT} workloads: servers by method (tailwright places best, the others first fit)"
    );
    let methods = [LimitMethod::Exact, LimitMethod::Relaxed].into_iter().chain(BASELINES);
    let mut ours = 0;
    for method in methods {
        let order = if method == LimitMethod::Exact { PlacementOrder::Best } else { PlacementOrder::Given };
        let mut counts = Vec::new();
        let mut refused = 0;
        for seed in 0..SETS {
            let problem = drawn_instance(sources, &draw(sources, COUNT, 100 + seed), method);
            let placement = plan(&problem, method, order);
            counts.push(placement.servers.len());
            refused += placement.refused.len();
        }
        let needed = counts.iter().sum::<usize>() + refused;
        if method == LimitMethod::Exact {
            ours = needed;
        }
        let ratio = needed as f64 / ours as f64;
        println!("{:26} {counts:?}  {ratio:.2} x tailwright, {refused} refused", method.name());
    }
    println!();
}

/// Thesis Fig. 5.10, scaled: workloads come and go at random; the largest number of servers in use counts.
fn arrivals_and_departures(sources: &[Source]) {
    const COUNT: usize = 200;
    println!(
        "Arrivals and departures of {COUNT} workloads, first fit: most servers in use at any time; the ratio gives"
    );
    println!("every refused workload a server of its own");
    let drawn = draw(sources, COUNT, 7);
    let mut ours = 0;
    for method in [LimitMethod::Exact, LimitMethod::Relaxed].into_iter().chain(BASELINES) {
        let problem = drawn_instance(sources, &drawn, method);
        let mut fleet = Fleet::new(&problem, method);
        let mut random = StdRng::seed_from_u64(11);
        let mut present = Vec::new();
        let mut most = 0;
        let mut refused = 0;
        for workload in 0..COUNT {
            match fleet.arrive(workload) {
                Ok(_) => present.push(workload),
                Err(_) => refused += 1,
            }
            // Once half have come, one leaves for every two that arrive.
            if workload > COUNT / 2 && workload % 2 == 0 && !present.is_empty() {
                let leaving = present.swap_remove(random.random_range(0..present.len()));
                fleet.depart(leaving).expect("who is present has a place");
            }
            most = most.max(fleet.servers_in_use());
        }
        let servers = fleet.into_servers();
        assert!(servers.iter().all(|s| s.verify(&problem).is_ok()), "every promise holds in the end");
        let storage: f64 =
            servers.iter().map(|s| s.reserved_rate()[Stage::Storage]).sum::<f64>() / servers.len() as f64;
        ours = if method == LimitMethod::Exact { most + refused } else { ours };
        let ratio = (most + refused) as f64 / ours as f64;
        println!(
            "{:26} {most:>4}, {refused:>3} refused  {ratio:.2} x tailwright; mean storage rate reserved {storage:.2}",
            method.name()
        );
    }
    let first = drawn_instance(sources, &drawn, LimitMethod::Exact);
    let order: Vec<usize> = (0..COUNT).collect();
    let arrivals_only = place_first_fit(&first, LimitMethod::Exact, &order, false).servers.len();
    println!("(all {COUNT} at once, tailwright first fit: {arrivals_only})");
}
