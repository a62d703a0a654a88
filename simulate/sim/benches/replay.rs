//! Cost of replay, and its results for the published workloads.
//!
//! `cargo bench -p sim`

#[path = "../../../plan/predict/tests/support/mod.rs"]
mod published;

use model::{CircularTrace, LatencyModel as _, PerStage, ServerMember, Stage};
use predict::{BudgetCheck, Replayed};
use published::{Real, Through};
use sim::{
    Alignment, Percentiles, PreemptionMode, Replay, ReplayOutcome, ReplayStream, ReplaySystem, ReplayTrace,
    alignment_percentiles,
};
use std::time::Instant;
use units::Percentile;

fn main() {
    let Some(real) = published::published(Through::Server) else { return };
    speed(&real);
    let everybody: Vec<usize> = (0..real.len()).collect();
    spread("equal SLOs share a level", &real, by_slo);
    spread("a level for each workload", &real, one_by_one);
    server("one server, whole path", &real, &everybody);
    let storage: Vec<Real> = real.iter().map(storage_alone).collect();
    server("one server, storage alone", &storage, &everybody);
    for parity in 0..2 {
        let half: Vec<usize> = everybody.iter().copied().filter(|i| i % 2 == parity).collect();
        server(&format!("two servers, number {}", parity + 1), &real, &half);
    }
}

fn storage_alone(real: &Real) -> Real {
    let keep = |job: &model::Job| {
        let mut job = *job;
        job.work[Stage::NetworkIn] = units::Nanos::ZERO;
        job.work[Stage::NetworkOut] = units::Nanos::ZERO;
        job
    };
    let traffic = CircularTrace::from_first_arrival(
        real.traffic.items().iter().map(keep).collect(),
        real.traffic.period(),
    );
    Real { name: real.name.clone(), traffic: traffic.expect("as it was"), ..*real }
}

type Sketched<'a> = ServerMember<'a, <Replayed as model::LatencyModel>::Sketch>;

/// Priorities by SLO: the shortest first.
fn by_slo(real: &[Real], members: &[usize]) -> Vec<u32> {
    let latency = |i: usize| real[i].slo.latency.0;
    let rank = |i: usize| members.iter().filter(|j| latency(**j) < latency(i)).count();
    members.iter().map(|i| u32::try_from(rank(*i)).expect("few")).collect()
}

/// By SLO, equal ones in the published order.
fn one_by_one(real: &[Real], members: &[usize]) -> Vec<u32> {
    let key = |i: usize| (real[i].slo.latency.0, i);
    let rank = |i: usize| members.iter().filter(|j| key(**j) < key(i)).count();
    members.iter().map(|i| u32::try_from(rank(*i)).expect("few")).collect()
}

/// The worst p99.9 ÷ SLO of any workload, alignment by alignment.
fn spread(title: &str, real: &[Real], order: impl Fn(&[Real], &[usize]) -> Vec<u32>) {
    let everybody: Vec<usize> = (0..real.len()).collect();
    let priorities = order(real, &everybody);
    let model = Replayed::default();
    let sketches: Vec<_> = real.iter().map(|r| model.sketch(&r.traffic)).collect();
    let member = |at: usize| ServerMember {
        sketch: &sketches[at],
        priority: PerStage::from_fn(|_| priorities[at]),
        group: at,
        percentile: real[at].slo.percentile,
    };
    let samples = model.samples(&everybody.iter().map(|at| member(*at)).collect::<Vec<_>>());
    let samples: Vec<_> = samples.into_iter().map(|s| s.expect("steady")).collect();
    let ratio = |at: usize, k: usize| samples[at][k].as_secs() / real[at].slo.latency.0;
    let mut worst: Vec<f64> =
        (0..samples[0].len()).map(|k| everybody.iter().map(|at| ratio(*at, k)).fold(0.0, f64::max)).collect();
    worst.sort_by(f64::total_cmp);
    let least = worst[0];
    let median = worst[worst.len() / 2];
    let most = worst[worst.len() - 1];
    println!("\nworst p99.9 / SLO by alignment, {title}: {least:.3} to {most:.3}, median {median:.3}");
}

fn speed(real: &[Real]) {
    let traces: Vec<ReplayTrace> =
        real.iter().map(|r| ReplayTrace::new(r.traffic.clone()).expect("as traffic")).collect();
    let everybody: Vec<usize> = (0..real.len()).collect();
    let priorities = by_slo(real, &everybody);
    let stream =
        |(i, trace)| ReplayStream { trace, priority: PerStage::from_fn(|_| priorities[i]), group: i };
    let system = ReplaySystem::new(traces.iter().enumerate().map(stream).collect()).expect("not overloaded");
    let utilisation = system.utilisation();
    println!("utilisation of one server with all {}:", real.len());
    utilisation.iter().for_each(|(stage, u)| println!("  {stage:12} {u:.3}"));
    let p999 = vec![Percentile::new(99.9).expect("a percentile"); real.len()];
    println!("\none replay after the other, one thread:");
    println!(
        "{:16} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "service", "requests", "ms", "M req/s", "ns/event", "warm-up"
    );
    for service in [PreemptionMode::Preemptive, PreemptionMode::NonPreemptive] {
        let mut replay = Replay::new(&system, service);
        let mut tails = Percentiles::default();
        let begin = Instant::now();
        let mut run = |alignment: Alignment| {
            let shifts = alignment.shifts(&system);
            tails.reset(&replay.counts(&shifts), &p999);
            replay.run(&shifts, &mut tails)
        };
        let outcomes: Vec<ReplayOutcome> = Alignment::random(1, 20).map(&mut run).collect();
        let elapsed = begin.elapsed().as_secs_f64();
        let requests: u64 = outcomes.iter().map(|o| o.requests).sum();
        let warm = outcomes.iter().map(|o| o.warm_up.as_secs()).sum::<f64>() / 20.0;
        println!(
            "{:16} {requests:>10} {:>10.1} {:>10.2} {:>9.1} {warm:>8.2}s {} of 20 steady",
            format!("{service:?}"),
            elapsed * 1e3,
            requests as f64 / elapsed / 1e6,
            elapsed * 1e9 / requests as f64 / 3.0,
            outcomes.iter().filter(|o| o.steady).count(),
        );
    }
    let alignments: Vec<Alignment> = Alignment::random(1, 59).collect();
    let begin = Instant::now();
    alignment_percentiles(&system, PreemptionMode::Preemptive, &alignments, &p999);
    println!(
        "59 alignments of {} workloads, all threads: {:.2} s",
        real.len(),
        begin.elapsed().as_secs_f64()
    );
}

fn server(title: &str, real: &[Real], members: &[usize]) {
    let model = Replayed::default();
    let sketches: Vec<_> = members.iter().map(|i| model.sketch(&real[*i].traffic)).collect();
    let priorities = by_slo(real, members);
    let member = |at: usize| ServerMember {
        sketch: &sketches[at],
        priority: PerStage::from_fn(|_| priorities[at]),
        group: members[at],
        percentile: real[members[at]].slo.percentile,
    };
    let all: Vec<_> = (0..members.len()).map(member).collect();
    let begin = Instant::now();
    let predictions = model.predict(&all);
    let seconds = begin.elapsed().as_secs_f64();
    let correlated = model.correlated(&all);
    println!("\n{title}: {} workloads, p99.9 / SLO (predicted in {seconds:.2} s)", members.len());
    println!(
        "{:5} {:>7} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "", "SLO s", "low", "median", "bound", "recorded", "together"
    );
    let mut worst = [0.0f64; 5];
    for (at, &i) in members.iter().enumerate() {
        let (Ok(prediction), Ok(correlated)) = (&predictions[at], &correlated[at]) else {
            println!("{:5} {:?}", real[i].name, predictions[at]);
            continue;
        };
        let estimate = prediction.estimate.expect("an estimate");
        let slo = real[i].slo.latency.0;
        let row = [
            estimate.low,
            estimate.latency,
            prediction.bound,
            correlated.recorded,
            correlated.bursts_together,
        ]
        .map(|latency| latency / slo);
        worst.iter_mut().zip(row).for_each(|(worst, value)| *worst = worst.max(value));
        let [low, median, bound, recorded, together] = row;
        println!(
            "{:5} {slo:>7.3} {low:>8.3} {median:>8.3} {bound:>8.3} {recorded:>9.3} {together:>9.3}",
            real[i].name
        );
    }
    let [low, median, bound, recorded, together] = worst;
    println!("{:5} {:>7} {low:>8.3} {median:>8.3} {bound:>8.3} {recorded:>9.3} {together:>9.3}", "worst", "");
    decide(&model, &all, real, members, seconds);
}

/// Prints the time of a decision, for budgets that are the SLOs times a factor.
fn decide(model: &Replayed, all: &[Sketched<'_>], real: &[Real], members: &[usize], seconds: f64) {
    for factor in [1.0, 0.8, 0.7, 0.5] {
        let budgets: Vec<f64> = members.iter().map(|i| real[*i].slo.latency.0 * factor).collect();
        let begin = Instant::now();
        let verdict = model.check_budgets(all, &budgets);
        let elapsed = begin.elapsed().as_secs_f64();
        let verdict = match verdict {
            BudgetCheck::Exceeds { member, alignments } => {
                format!("{} exceeds, known after {alignments} alignments", real[members[member]].name)
            }
            other => format!("{other:?}"),
        };
        println!(
            "fits {factor} of the SLOs: {:.1} ms, {:.0} x faster: {verdict}",
            elapsed * 1e3,
            seconds / elapsed
        );
    }
}
