//! The probabilistic bound beside the published one and beside replays: how often and by how much it is looser where the
//! published one holds. `SIZES=2,8` chooses the numbers of workloads; rows of Poisson streams are always there, and `SIZES=poisson`
//! has no others.

use super::envelopes::Envelopes;
use super::support::Real;
use model::{CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, Stage, UndefinedLatency};
use predict::{Probabilistic, ProbabilisticSketch, SncByStage, StageSketch};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Alignment, Latencies, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use units::{Nanos, Percentile};

/// The number of alignments over which the percentile is taken.
const ALIGNMENTS: usize = 100;

/// The rules by which workloads get their priorities, as names.
const ORDERS: [&str; 4] = ["by SLO", "by SLO, reversed", "in order", "in order, reversed"];

/// Streams of Poisson arrivals, which share a link at these loads.
const POISSON_STREAMS: usize = 12;
const POISSON_LOADS: [f64; 3] = [0.3, 0.6, 0.8];
/// Requests of each Poisson stream.
const POISSON_REQUESTS: usize = 20_000;

/// Streams that may share a link, with what the models know of them.
struct Streams {
    ours: Probabilistic,
    theirs: SncByStage,
    slos: Vec<f64>,
    sketches: Vec<ProbabilisticSketch>,
    published: Vec<StageSketch>,
    replayed: Vec<ReplayTrace>,
    envelopes: Envelopes,
}

impl Streams {
    /// Streams of this traffic; the envelopes of the first `most` are known.
    fn new(traffic: &[CircularTrace<Job>], slos: Vec<f64>, most: usize) -> Self {
        let ours = Probabilistic::default();
        let theirs = SncByStage { client_link: true, ..SncByStage::default() };
        let trace = |traffic: &CircularTrace<Job>| ReplayTrace::new(traffic.clone()).expect("a trace");
        Self {
            sketches: traffic.iter().map(|traffic| ours.sketch(traffic)).collect(),
            published: traffic.iter().map(|traffic| theirs.sketch(traffic)).collect(),
            replayed: traffic.iter().map(trace).collect(),
            envelopes: Envelopes::new(&theirs, &traffic[..most.min(traffic.len())]),
            slos,
            ours,
            theirs,
        }
    }

    /// Prints the row of some of the streams on a link.
    fn compare(&self, kind: &str, which: &[usize], order: &str) {
        let priorities = priorities(which, &self.slos, order);
        let found = self.ours.predict(&members(&self.sketches, which, &priorities));
        let published = members(&self.published, which, &priorities);
        let beside = self.theirs.predict(&published);
        let truth = percentiles(&self.replayed, which, &priorities);
        let assumed = |member: usize| self.envelopes.hold(&self.theirs, &published, (which, member));
        let name = format!("{} {kind}, {order}", which.len());
        row(&name, &Bounds { found, published: beside, truth }, assumed);
    }
}

pub(super) fn print(real: &[Real]) {
    println!("p99.9 on one link; the published procedure with a client's and a server's link");
    println!(
        "looser: bounds above the published one, and the largest ratio; hold: published bounds that replay does not exceed; \
         assumed: looser ones where all streams keep the envelopes that the published bound assumes"
    );
    let sizes = std::env::var("SIZES").unwrap_or_else(|_| "2,4,8,16,32,41,62".to_owned());
    let sizes = sizes.split(',').filter(|size| *size != "poisson");
    let sizes: Vec<usize> = sizes.map(|size| size.parse().expect("a number")).collect();
    for load in POISSON_LOADS {
        let traffic = poisson(load, POISSON_STREAMS);
        let streams = Streams::new(&traffic, vec![0.1; POISSON_STREAMS], POISSON_STREAMS);
        let which: Vec<usize> = (0..POISSON_STREAMS).collect();
        for order in ["by SLO", "in order"] {
            streams.compare(&format!("Poisson, load {load}"), &which, order);
        }
    }
    let Some(&most) = sizes.iter().max() else { return };
    let halves: Vec<CircularTrace<Job>> =
        real.iter().flat_map(|real| real.traffic.halves().expect("ten minutes")).collect();
    let mut traffic: Vec<CircularTrace<Job>> = real.iter().map(|real| real.traffic.clone()).collect();
    traffic.extend(halves.into_iter().take(21));
    let slos: Vec<f64> = (0..traffic.len())
        .map(|k| real[if k < real.len() { k } else { (k - real.len()) / 2 }].slo.latency.0)
        .collect();
    let streams = Streams::new(&traffic, slos, most);
    for size in sizes {
        for copies in [false, true] {
            for order in &ORDERS[if copies { 2 } else { 0 }..] {
                let which: Vec<usize> = (0..size).map(|k| if copies { 2 } else { k }).collect();
                streams.compare(if copies { "copies" } else { "distinct" }, &which, order);
            }
        }
    }
}

/// Streams of requests that take 1 ms on the link and arrive independently of each other at this total load.
fn poisson(load: f64, streams: usize) -> Vec<CircularTrace<Job>> {
    let mut random = StdRng::seed_from_u64(1);
    let rate = load / streams as f64 * 1e3;
    let mut stream = || {
        let mut now = 0.0;
        let mut jobs = Vec::new();
        for _ in 0..POISSON_REQUESTS {
            now -= (1.0 - random.random::<f64>()).ln() / rate;
            let arrival = Nanos::from_secs(now).expect("minutes");
            let work =
                PerStage::from_fn(|stage| Nanos(if stage == Stage::NetworkIn { 1_000_000 } else { 0 }));
            jobs.push(Job { arrival, work });
        }
        CircularTrace::repeating(jobs).expect("in order")
    };
    (0..streams).map(|_| stream()).collect()
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
