//! The probabilistic bound beside the published one and beside replays: how often and by how much it is looser where the
//! published one holds. `SIZES=2,8` chooses the numbers of workloads.

use super::envelopes::Envelopes;
use super::support::Real;
use model::{CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, UndefinedLatency};
use predict::{Probabilistic, ProbabilisticSketch, PublishedSketch, PublishedSnc};
use sim::{Alignment, Latencies, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use units::Percentile;

/// The number of alignments over which the percentile is taken.
const ALIGNMENTS: usize = 100;

/// The rules by which workloads get their priorities, as names.
const ORDERS: [&str; 4] = ["by SLO", "by SLO, reversed", "in order", "in order, reversed"];

pub(super) fn print(real: &[Real]) {
    let ours = Probabilistic::default();
    let theirs = PublishedSnc { client_link: true, ..PublishedSnc::default() };
    let halves: Vec<CircularTrace<Job>> =
        real.iter().flat_map(|real| real.traffic.halves().expect("ten minutes")).collect();
    let mut traffic: Vec<CircularTrace<Job>> = real.iter().map(|real| real.traffic.clone()).collect();
    traffic.extend(halves.into_iter().take(21));
    let slos: Vec<f64> = (0..traffic.len())
        .map(|k| real[if k < real.len() { k } else { (k - real.len()) / 2 }].slo.latency.0)
        .collect();
    let sketches: Vec<ProbabilisticSketch> = traffic.iter().map(|traffic| ours.sketch(traffic)).collect();
    let published: Vec<PublishedSketch> = traffic.iter().map(|traffic| theirs.sketch(traffic)).collect();
    let replayed: Vec<ReplayTrace> =
        traffic.iter().map(|traffic| ReplayTrace::new(traffic.clone()).expect("a trace")).collect();
    let sizes = std::env::var("SIZES").unwrap_or_else(|_| "2,4,8,16,32,41,62".to_owned());
    println!("p99.9 on one link; the published procedure with a client's and a server's link");
    println!(
        "looser: bounds above the published one, and the largest ratio; hold: published bounds that replay does not exceed; \
         assumed: looser ones where all streams keep the envelopes that the published bound assumes"
    );
    let most = sizes.split(',').map(|size| size.parse::<usize>().expect("a number")).max().unwrap_or(0);
    let envelopes = Envelopes::new(&theirs, &traffic[..most.min(traffic.len())]);
    for size in sizes.split(',').map(|size| size.parse::<usize>().expect("a number")) {
        for copies in [false, true] {
            for order in &ORDERS[if copies { 2 } else { 0 }..] {
                let which: Vec<usize> = (0..size).map(|k| if copies { 2 } else { k }).collect();
                let priorities = priorities(&which, &slos, order);
                let found = ours.predict(&members(&sketches, &which, &priorities));
                let beside = theirs.predict(&members(&published, &which, &priorities));
                let truth = percentiles(&replayed, &which, &priorities);
                let kind = if copies { "copies" } else { "distinct" };
                let published = members(&published, &which, &priorities);
                let assumed = |member: usize| envelopes.hold(&theirs, &published, (&which, member));
                row(&format!("{size} {kind}, {order}"), &Bounds { found, published: beside, truth }, assumed);
            }
        }
    }
}

fn priorities(which: &[usize], slos: &[f64], order: &str) -> Vec<u32> {
    let count = |test: &dyn Fn(f64) -> bool| {
        u32::try_from(which.iter().filter(|&&w| test(slos[w])).count()).expect("few")
    };
    let priority = |(k, &w): (usize, &usize)| match order {
        "by SLO" => count(&|slo| slo < slos[w]),
        "by SLO, reversed" => count(&|slo| slo > slos[w]),
        "in order" => u32::try_from(k).expect("few"),
        _ => u32::try_from(which.len() - k).expect("few"),
    };
    which.iter().enumerate().map(priority).collect()
}

fn members<'a, S>(sketches: &'a [S], which: &[usize], priorities: &[u32]) -> Vec<ServerMember<'a, S>> {
    let member = |(group, &w): (usize, &usize)| ServerMember {
        sketch: &sketches[w],
        priority: PerStage::from_fn(|_| priorities[group]),
        group,
        percentile: Percentile::new(99.9).expect("in range"),
    };
    which.iter().enumerate().map(member).collect()
}

/// The percentile of each workload over the requests of all alignments, seconds.
fn percentiles(traces: &[ReplayTrace], which: &[usize], priorities: &[u32]) -> Vec<f64> {
    let stream = |(group, &w): (usize, &usize)| ReplayStream {
        trace: &traces[w],
        priority: PerStage::from_fn(|_| priorities[group]),
        group,
    };
    let system = ReplaySystem::new(which.iter().enumerate().map(stream).collect()).expect("not overloaded");
    let mut latencies = Latencies::new(which.len());
    let mut replay = Replay::new(&system, PreemptionMode::Preemptive);
    for alignment in Alignment::random(9, ALIGNMENTS) {
        replay.run(&alignment.shifts(&system), &mut latencies);
    }
    let percentile = Percentile::new(99.9).expect("in range");
    let sorted = latencies.sorted();
    let at =
        sorted.streams.iter().map(|sorted| sorted[sim::nearest_rank(percentile, sorted.len()) - 1].as_secs());
    at.collect()
}

/// Bounds of all members, and the percentiles that replays show, seconds.
struct Bounds {
    found: Vec<Result<Prediction, UndefinedLatency>>,
    published: Vec<Result<Prediction, UndefinedLatency>>,
    truth: Vec<f64>,
}

fn row(name: &str, Bounds { found, published, truth }: &Bounds, assumed: impl Fn(usize) -> bool) {
    let bound =
        |found: &Result<Prediction, UndefinedLatency>| found.map_or(f64::INFINITY, |found| found.bound);
    let mut holds = 0;
    let mut looser = 0;
    let mut as_assumed = 0;
    let mut most = 0.0f64;
    let mut exceeded = 0;
    let mut over_truth = Vec::new();
    for (member, ((found, published), truth)) in found.iter().zip(published).zip(truth).enumerate() {
        let found = bound(found);
        let published = bound(published);
        exceeded += usize::from(found < *truth);
        over_truth.push(found / truth);
        if published >= *truth {
            holds += 1;
            if found > published {
                looser += 1;
                as_assumed += usize::from(assumed(member));
            }
            most = most.max(found / published);
        }
    }
    over_truth.sort_by(f64::total_cmp);
    let median = over_truth[over_truth.len() / 2];
    println!(
        "{name:<32} looser {looser:>2} of {holds:>2} that hold, at most {most:4.2}, assumed {as_assumed}; ours ÷ replay {median:5.2} in the median; \
         exceeded: ours {exceeded}, published {}",
        truth.len() - holds
    );
}
