//! The replay against queues with known latencies.

use model::{CircularTrace, Job, PerStage, Stage};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Latencies, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace, nearest_rank};
use units::{Nanos, Percentile};

/// Mean service time, nanoseconds: long, so that rounding to whole ones is of no consequence.
const SERVICE: f64 = 1e6;

fn nanos(value: f64) -> Nanos {
    Nanos::from_secs(value / 1e9).unwrap()
}

fn exponential(random: &mut StdRng, mean: f64) -> f64 {
    -mean * (1.0 - random.random_range(0.0f64..1.0)).ln()
}

/// Poisson arrivals at `rate` per mean service time; `work` at each stage.
fn poisson(
    random: &mut StdRng,
    count: usize,
    rate: f64,
    mut work: impl FnMut(&mut StdRng, Stage) -> f64,
) -> ReplayTrace {
    let mut now = 0.0;
    let mut job = |_| {
        now += exponential(random, SERVICE / rate);
        Job { arrival: nanos(now), work: PerStage::from_fn(|stage| nanos(work(random, stage))) }
    };
    let jobs: Vec<Job> = (0..count).map(&mut job).collect();
    replay_trace(&jobs, jobs[count - 1].arrival)
}

fn only(stage: Stage, work: f64) -> impl Fn(Stage) -> f64 {
    move |at| if at == stage { work } else { 0.0 }
}

/// Sorted latencies by stream, in mean service times; stream i has priority i.
fn replay_trace(jobs: &[Job], period: Nanos) -> ReplayTrace {
    ReplayTrace::new(CircularTrace::new(jobs.to_vec(), period).unwrap()).unwrap()
}

fn latencies(traces: &[ReplayTrace], service: PreemptionMode) -> Vec<Vec<f64>> {
    let stream = |(group, trace)| ReplayStream {
        trace,
        priority: PerStage::from_fn(|_| u32::try_from(group).unwrap()),
        group,
    };
    let system = ReplaySystem::new(traces.iter().enumerate().map(stream).collect()).unwrap();
    let mut latencies = Latencies::new(traces.len());
    Replay::new(&system, service).run(&vec![Nanos::ZERO; traces.len()], &mut latencies);
    let scaled = |stream: Vec<Nanos>| stream.into_iter().map(|ns| ns.0 as f64 / SERVICE).collect();
    latencies.sorted().streams.into_iter().map(scaled).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn at(values: &[f64], percent: f64) -> f64 {
    values[nearest_rank(Percentile::new(percent).unwrap(), values.len()) - 1]
}

fn close(what: &str, got: f64, expected: f64, relative: f64) {
    assert!((got / expected - 1.0).abs() <= relative, "{what}: {got}, expected {expected}");
}

#[test]
fn exponential_service_has_exponential_latency() {
    // M/M/1: the sojourn is exponential with rate μ − λ.
    let mut random = StdRng::seed_from_u64(1);
    for load in [0.3, 0.7] {
        let trace =
            poisson(&mut random, 300_000, load, |r, s| only(Stage::Storage, exponential(r, SERVICE))(s));
        let got = &latencies(&[trace], PreemptionMode::Preemptive)[0];
        close("mean", mean(got), 1.0 / (1.0 - load), 0.04);
        for percent in [50.0, 90.0, 99.0] {
            close("quantile", at(got, percent), -f64::ln(1.0 - percent / 100.0) / (1.0 - load), 0.06);
        }
    }
}

#[test]
fn constant_service_waits_half_as_long() {
    // M/D/1: mean wait ρ/(2(1 − ρ)); P(W ≤ x) = (1 − ρ) Σ_{k ≤ x} (ρ(k − x))^k/k! e^{−ρ(k − x)} (Erlang).
    let load = 0.6;
    let distribution = |x: f64| {
        let mut sum = 0.0;
        let mut factorial = 1.0;
        let mut k = 0.0;
        while k <= x {
            sum += f64::powf(-1.0, k) * f64::powf(load * (x - k), k) / factorial * f64::exp(load * (x - k));
            k += 1.0;
            factorial *= k;
        }
        (1.0 - load) * sum
    };
    let mut random = StdRng::seed_from_u64(2);
    let trace = poisson(&mut random, 300_000, load, |_, s| only(Stage::NetworkIn, SERVICE)(s));
    let got = &latencies(&[trace], PreemptionMode::Preemptive)[0];
    close("mean", mean(got), 1.0 + load / (2.0 * (1.0 - load)), 0.02);
    for percent in [60.0, 90.0, 99.0] {
        close("distribution", distribution(at(got, percent) - 1.0), percent / 100.0, 0.01);
    }
}

#[test]
fn regular_arrivals_do_not_wait() {
    // D/D/1, three stages: each request takes the sum of its work.
    let work = PerStage::from_fn(|stage| Nanos(3 + stage as u64));
    let jobs: Vec<Job> = (0..50u64).map(|i| Job { arrival: Nanos(6 * i), work }).collect();
    let trace = replay_trace(&jobs, Nanos(300));
    let got = latencies(&[trace], PreemptionMode::NonPreemptive);
    assert!(got[0].len() == 50 && got[0].iter().all(|latency| (latency * SERVICE).round() == 12.0));
}

#[test]
fn two_priorities_by_hand() {
    let on = |arrival, work| Job {
        arrival: Nanos(arrival),
        work: PerStage::from_fn(|s| Nanos(if s == Stage::Storage { work } else { 0 })),
    };
    let high = replay_trace(&[on(1, 2), on(6, 1), on(9, 4)], Nanos(100));
    let low = replay_trace(&[on(0, 5), on(2, 2)], Nanos(100));
    // Preemptive: low 0–1, high 1–3, low 3–6, high 6–7, low 7–8, next low 8–9, high 9–13, low 13–14.
    // Otherwise: low 0–5, high 5–7, 7–8, low 8–10, high 10–14.
    for (service, expected) in [
        (PreemptionMode::Preemptive, [vec![2, 1, 4], vec![8, 12]]),
        (PreemptionMode::NonPreemptive, [vec![6, 2, 5], vec![5, 8]]),
    ] {
        let traces = [&high, &low];
        let streams = traces.iter().enumerate().map(|(group, trace)| ReplayStream {
            trace,
            priority: PerStage::from_fn(|_| u32::try_from(group).unwrap()),
            group,
        });
        let system = ReplaySystem::new(streams.collect()).unwrap();
        let mut got = Latencies::new(2);
        let outcome = Replay::new(&system, service).run(&[Nanos::ZERO; 2], &mut got);
        assert_eq!(got.streams, expected.map(|stream| stream.into_iter().map(Nanos).collect::<Vec<_>>()));
        assert!(outcome.steady && !outcome.stopped);
    }
}

#[test]
fn priorities_share_the_mean_wait_as_known() {
    // M/M/1 with priorities, σ_k = ρ_1 + … + ρ_k, R the mean residual work of the classes that matter.
    let first = 0.3;
    let second = 0.4;
    let mut random = StdRng::seed_from_u64(3);
    let mut make =
        |load| poisson(&mut random, 250_000, load, |r, s| only(Stage::Storage, exponential(r, SERVICE))(s));
    // Of about the same length, so that every request meets the other class.
    let traces = [make(first), make(second)];
    let all = first + second;
    let got = latencies(&traces, PreemptionMode::Preemptive);
    close("preemptive, first", mean(&got[0]), 1.0 / (1.0 - first), 0.04);
    close(
        "preemptive, second",
        mean(&got[1]),
        1.0 / (1.0 - first) + all / ((1.0 - first) * (1.0 - all)),
        0.05,
    );
    let got = latencies(&traces, PreemptionMode::NonPreemptive);
    close("non-preemptive, first", mean(&got[0]), 1.0 + all / (1.0 - first), 0.04);
    close("non-preemptive, second", mean(&got[1]), 1.0 + all / ((1.0 - first) * (1.0 - all)), 0.05);
}

#[test]
fn stages_in_a_row_are_as_if_alone() {
    // Exponential service, independent at each stage: departures are Poisson again (Burke), latencies add up.
    let mut random = StdRng::seed_from_u64(4);
    let speed = PerStage::from_fn(|stage| [0.5, 1.0, 0.8][stage as usize]);
    let trace = poisson(&mut random, 300_000, 0.6, |r, s| exponential(r, SERVICE * speed[s]));
    let got = &latencies(&[trace], PreemptionMode::Preemptive)[0];
    let expected: f64 = Stage::ALL.iter().map(|s| speed[*s] / (1.0 - 0.6 * speed[*s])).sum();
    close("mean", mean(got), expected, 0.04);
}

#[test]
fn one_level_follows_lindley() {
    // Wait of the next = max(0, wait + work − gap), from a gap that is longer than everything before.
    let mut random = StdRng::seed_from_u64(5);
    let mut now = 0u64;
    let mut job = |_| {
        now += random.random_range(0..180);
        let work = Nanos(random.random_range(1..150));
        Job {
            arrival: Nanos(now),
            work: PerStage::from_fn(|s| if s == Stage::NetworkOut { work } else { Nanos(0) }),
        }
    };
    let jobs: Vec<Job> = (0..20_000).map(&mut job).collect();
    let trace = replay_trace(&jobs, Nanos(now + 1_000_000));
    let stream = ReplayStream { trace: &trace, priority: PerStage::from_fn(|_| 7), group: 0 };
    let system = ReplaySystem::new(vec![stream]).unwrap();
    for service in [PreemptionMode::Preemptive, PreemptionMode::NonPreemptive] {
        let mut got = Latencies::new(1);
        Replay::new(&system, service).run(&[Nanos::ZERO], &mut got);
        let mut free = 0;
        let mut expected = Vec::new();
        for job in &jobs {
            free = job.arrival.0.max(free) + job.work[Stage::NetworkOut].0;
            expected.push(Nanos(free) - job.arrival);
        }
        assert_eq!(got.streams[0], expected);
    }
}
