//! Exact burst curves against the sampled sweep of the thesis (Algorithm 2.1), in the same run.

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::Instant;
use tailwright_workload::burst::BurstCurve;

fn best_of(runs: usize, mut work: impl FnMut()) -> f64 {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let traces = support::real_traces().unwrap();
    let total: usize = traces.iter().map(|t| t.storage.len()).sum();
    for (name, pick) in [("storage", true), ("network", false)] {
        let secs = best_of(5, || {
            for t in &traces {
                black_box(BurstCurve::of(if pick { &t.storage } else { &t.network_in }).unwrap());
            }
        });
        println!(
            "{name}: {:.1} M/s, {:.1} ns per request",
            total as f64 / secs / 1e6,
            secs / total as f64 * 1e9
        );
    }
    let all = support::concatenated(traces.iter().map(|t| &t.storage[..]), 5);
    let secs = best_of(5, || {
        black_box(BurstCurve::of(&all).unwrap());
    });
    println!("all x5 {}: {:.1} M/s", all.len(), all.len() as f64 / secs / 1e6);
}
