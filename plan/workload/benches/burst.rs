//! Exact burst curves beside the sampled sweep of the thesis (Algorithm 2.1), on the same arrivals in the
//! same run, and how the cost grows. Ratios carry over to other machines, times do not.

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;
use support::sweep;
use units::{Nanos, Work};
use workload::burst::{BurstCurve, SlidingBurstCurve, StageArrival};

const RATES: usize = 1000;
/// Requests per second of one core that the exact curve must sustain.
const GOAL_PER_S: f64 = 5e6;

/// Shortest of a few runs, seconds.
fn secs(runs: usize, mut work: impl FnMut()) -> f64 {
    let run = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..runs).map(run).fold(f64::INFINITY, f64::min)
}

fn main() {
    let real = support::real_traces();
    let traces: Vec<Vec<StageArrival>> = match &real {
        Some(traces) => traces.iter().map(|t| t.storage.clone()).collect(),
        None => (0..41).map(|seed| support::synthetic(16_000, seed)).collect(),
    };
    let source =
        if real.is_some() { "real traces, storage work" } else { "synthetic traces (no real ones here)" };
    let count = requests(&traces);
    println!("{} {source}, {count} requests", traces.len());
    let exact = against_sweeps(&traces, count);
    if let Some(real) = &real {
        let network: Vec<_> = real.iter().map(|t| t.network_in.clone()).collect();
        row("exact, network work", curves(&network) / count as f64 * 1e9, exact);
    }
    on_cores(&traces);
    sketches(&traces);
    const MILLION: usize = 1 << 20;
    growth("the traces one after another, repeated", MILLION, |n| {
        let times = n / count + 1;
        let mut all = support::concatenated(&traces, times);
        all.truncate(n);
        all
    });
    growth("regular (every interval on the hull)", MILLION, |n| regular(n, |_| 1_000_000));
    growth("ever faster (every arrival changes the whole hull)", MILLION / 4, |n| {
        regular(n, |k| 2 * (n - k) as u64)
    });
}

fn requests(traces: &[Vec<StageArrival>]) -> usize {
    traces.iter().map(Vec::len).sum()
}

/// Seconds for one exact curve per trace.
fn curves(traces: &[Vec<StageArrival>]) -> f64 {
    secs(7, || {
        for trace in traces {
            black_box(BurstCurve::from_arrivals(black_box(trace)).unwrap());
        }
    })
}

fn row(name: &str, ns: f64, exact: f64) {
    println!("  {name:<44} {ns:>12.2} ns/request {:>9.2} M/s {:>9.2}x", 1e3 / ns, ns / exact);
}

/// Nanoseconds per request of the exact curve.
fn against_sweeps(traces: &[Vec<StageArrival>], count: usize) -> f64 {
    let rates: Vec<f64> = (1..=RATES).map(|k| k as f64 / RATES as f64 * 1e9).collect();
    let per_request = |secs: f64| secs / count as f64 * 1e9;
    let exact = per_request(curves(traces));
    row("exact, every rate", exact, exact);
    let sweep = |sweep: fn(&[StageArrival], &[f64]) -> Vec<f64>| {
        per_request(secs(1, || {
            for trace in traces {
                black_box(sweep(black_box(trace), &rates));
            }
        }))
    };
    let printed = sweep(sweep::algorithm_2_1);
    let lanes = sweep(sweep::vectorised);
    row("Algorithm 2.1, 1000 rates", printed, exact);
    row("Algorithm 2.1 in vector lanes, 1000 rates", lanes, exact);
    let per_rate = |ns: f64| ns / RATES as f64;
    println!(
        "  per request and rate: Algorithm 2.1 {:.3} ns, in lanes {:.3} ns; the exact curve costs as much as \
         {:.0} and {:.0} rates of them",
        per_rate(printed),
        per_rate(lanes),
        exact / per_rate(printed),
        exact / per_rate(lanes)
    );
    println!("  goal of {:.0} M/s: {:.1}x", GOAL_PER_S / 1e6, 1e9 / exact / GOAL_PER_S);
    exact
}

fn on_cores(traces: &[Vec<StageArrival>]) {
    let all = support::concatenated(traces, 5);
    let ns = |secs: f64| secs / all.len() as f64 * 1e9;
    println!("one long trace, {} requests", all.len());
    let alone = ns(secs(3, || drop(black_box(BurstCurve::from_arrivals(&all).unwrap()))));
    row("one core", alone, alone);
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    for threads in [2, 4].into_iter().filter(|&t| t <= cores) {
        let threads = NonZeroUsize::new(threads).unwrap();
        let time =
            ns(secs(3, || drop(black_box(BurstCurve::from_arrivals_parallel(&all, threads).unwrap()))));
        row(&format!("{threads} cores"), time, alone);
    }
}

/// Operations of a running system: merge sketches, move a window, reduce.
fn sketches(traces: &[Vec<StageArrival>]) {
    const PART: usize = 1000;
    const WINDOW: usize = 60;
    let all = support::concatenated(traces, 1);
    let parts: Vec<_> = all.chunks(PART).map(|part| BurstCurve::from_arrivals(part).unwrap()).collect();
    let merging = secs(5, || {
        drop(black_box(parts.iter().cloned().reduce(|sum, part| sum.merge(&part).unwrap())));
    });
    let sliding = secs(5, || {
        let mut window = SlidingBurstCurve::over_segments(WINDOW);
        for part in &parts {
            window.push(part.clone()).unwrap();
            black_box(window.curve().unwrap());
        }
    });
    let envelope = parts[0].envelope();
    let reducing = secs(5, || drop(black_box(envelope.reduce(NonZeroUsize::new(12).unwrap()))));
    let per_part = |secs: f64| secs / parts.len() as f64 * 1e6;
    println!(
        "sketches of {PART} requests: merge {:.1} us, window of {WINDOW} moved and read {:.1} us",
        per_part(merging),
        per_part(sliding)
    );
    println!("reduction of {} corners to 12: {:.1} us", envelope.vertices().len(), reducing * 1e6);
}

/// Cost per request as the trace grows: n log n shows as a slow rise.
fn growth(name: &str, most: usize, arrivals: impl Fn(usize) -> Vec<StageArrival>) {
    println!("growth, {name}");
    let mut first = None;
    for n in [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20].into_iter().filter(|&n| n <= most) {
        let arrivals = arrivals(n);
        let mut corners = 0;
        let time = secs(3, || {
            corners = BurstCurve::from_arrivals(black_box(&arrivals)).unwrap().envelope().vertices().len();
        });
        let ns = time / n as f64 * 1e9;
        println!(
            "  {n:>8} requests {corners:>8} corners {ns:>10.1} ns/request {:>6.2}x",
            ns / *first.get_or_insert(ns)
        );
    }
}

fn regular(n: usize, gap: impl Fn(usize) -> u64) -> Vec<StageArrival> {
    let mut at = 0;
    let mut arrival = |k| {
        at += gap(k);
        StageArrival { at: Nanos(at), work: Work(1_000_000) }
    };
    (0..n).map(&mut arrival).collect()
}
