//! Summaries of played streams: against lists of all requests, and intervals against the truth.

mod support;

use arrivals::{TimedRequest, TimedRequestSource};
use proptest::prelude::*;
use sim::engine::Histogram;
use sim::ideal::{
    IdealStation, LatencyDistribution, ReplicationSizes, ServiceOrder, StationRun, Summary, replicate,
};
use std::num::NonZeroUsize;
use support::demands;
use units::{Nanos, Percentile};

fn station(workers: usize, order: ServiceOrder) -> IdealStation {
    IdealStation { workers: NonZeroUsize::new(workers).unwrap(), order }
}

fn play(station: IdealStation, demands: &[TimedRequest], seed: u64) -> Summary {
    let mut play = StationRun::new(station, seed, 0, Summary::of_one_stream());
    demands.iter().for_each(|demand| play.arrive(*demand).unwrap());
    play.finish()
}

fn percentile(percent: f64) -> Percentile {
    Percentile::new(percent).unwrap()
}

/// Returns the number of requests whose position among completions differs from that with a worker each,
/// from two sorted lists.
fn displaced(demands: &[TimedRequest], latencies: &[Nanos]) -> usize {
    let order = |done: &dyn Fn(usize) -> Nanos| {
        let mut order: Vec<usize> = (0..demands.len()).collect();
        order.sort_by_key(|index| (done(*index), *index));
        order
    };
    let real = order(&|index| demands[index].arrival + latencies[index]);
    let ideal = order(&|index| demands[index].arrival + demands[index].service);
    real.iter().zip(&ideal).filter(|(real, ideal)| real != ideal).count()
}

proptest! {
    #[test]
    fn a_summary_is_that_of_all_latencies(
        demands in demands(1..200), workers in 1usize..5, seed in 0u64..99, percent in 0.1f64..99.99,
    ) {
        for order in ServiceOrder::ALL {
            let station = station(workers, order);
            let latencies = station.latencies(demands.iter().copied(), seed).unwrap();
            let summary = play(station, &demands, seed);
            let pct = 100.0 * displaced(&demands, &latencies) as f64 / demands.len() as f64;
            prop_assert!((summary.displaced_pct().unwrap().value - pct).abs() < 1e-9, "{}", order);
            let ends = demands.iter().zip(&latencies).map(|(demand, latency)| demand.arrival + *latency);
            let span = (ends.max().unwrap() - demands[0].arrival).as_secs();
            if span > 0.0 {
                let rate = demands.len() as f64 / span;
                prop_assert!((summary.throughput_per_s().unwrap().value / rate - 1.0).abs() < 1e-9);
            }
            let mut slowdowns: Vec<f64> = demands.iter().zip(&latencies)
                .filter(|(demand, _)| demand.service.0 > 0)
                .map(|(demand, latency)| latency.0 as f64 / demand.service.0 as f64)
                .collect();
            slowdowns.sort_by(f64::total_cmp);
            let rank = |n: usize| sim::nearest_rank(percentile(percent), n) - 1;
            let expected = (!slowdowns.is_empty()).then(|| slowdowns[rank(slowdowns.len())]);
            prop_assert_eq!(summary.slowdown(percentile(percent)).map(|found| found.value), expected);
            let of = LatencyDistribution::new(latencies).unwrap();
            prop_assert_eq!(summary.count(), of.count() as u64);
            prop_assert!((summary.mean().unwrap().value - of.mean().0 * 1e9).abs() < 1e-6);
            let found = summary.percentile(percentile(percent)).unwrap().value;
            prop_assert_eq!(found, of.percentile(percentile(percent)).0 as f64);
        }
    }
}

fn mm1(load: f64, c2: &str) -> TimedRequestSource {
    let service = format!("hyperexp(mean=1ms, c2={c2})");
    let service = if c2 == "1" { "exp(1ms)".to_owned() } else { service };
    TimedRequestSource {
        arrivals: format!("poisson({}/s)", 1000.0 * load).parse().unwrap(),
        service: service.parse().unwrap(),
    }
}

#[test]
fn long_streams_keep_their_percentiles() {
    let demands: Vec<TimedRequest> = mm1(0.7, "4").requests(3).unwrap().take(150_000).collect();
    for order in [ServiceOrder::Fifo, ServiceOrder::RandomRequest] {
        let summary = play(station(2, order), &demands, 1);
        let of = station(2, order).distribution(demands.iter().copied(), 1).unwrap().unwrap();
        for percent in [1.0, 50.0, 99.0, 99.9] {
            let exact = of.percentile(percentile(percent)).0 as f64;
            let found = summary.percentile(percentile(percent)).unwrap();
            assert!(
                (found.value / exact - 1.0).abs() <= Histogram::RELATIVE_ERROR,
                "{percent} {found:?} {exact}"
            );
        }
        assert_eq!(summary.latencies().count(), 150_000);
    }
}

/// Returns the shares of intervals of mean, median and p99 that contain the true value, and the shares of
/// runs with an interval.
fn coverage(load: f64, runs: u64, make: impl Fn(u64) -> Summary) -> [(f64, f64); 3] {
    // Response times of M/M/1 are exponential.
    let mean = 1e6 / (1.0 - load);
    let truth = [mean, mean * 2f64.ln(), mean * 100f64.ln()];
    let mut hits = [(0.0, 0.0); 3];
    for seed in 0..runs {
        let summary = make(seed);
        let found =
            [summary.mean(), summary.percentile(percentile(50.0)), summary.percentile(percentile(99.0))];
        for ((estimate, truth), (hit, there)) in found.into_iter().zip(truth).zip(&mut hits) {
            let estimate = estimate.unwrap();
            if estimate.half_width.is_finite() {
                *there += 1.0 / runs as f64;
                // A bucket of the histogram is as wide as that.
                *hit += f64::from((estimate.value - truth).abs() <= estimate.half_width + 0.002 * truth);
            }
        }
    }
    hits.map(|(hit, there)| (hit / (there * runs as f64), there))
}

/// Of 100 intervals of 95 %, 95 ± 7 (three standard deviations) have the truth. Batches that resemble each other are left
/// out, not too narrow.
#[test]
fn intervals_of_one_stream_have_the_truth_as_often_as_they_say() {
    let found = coverage(0.8, 100, |seed| {
        let mut play = StationRun::new(station(1, ServiceOrder::Fifo), 0, 0, Summary::of_one_stream());
        let demands = mm1(0.8, "1").requests(seed).unwrap().take(100_000);
        demands.for_each(|demand| play.arrive(demand).unwrap());
        play.finish()
    });
    eprintln!("one stream: {found:?}");
    assert!(found.iter().all(|(hit, there)| *hit > 0.88 && *there > 0.85), "{found:?}");
}

#[test]
fn intervals_of_independent_streams_have_the_truth_as_often_as_they_say() {
    let found = coverage(0.8, 100, |seed| {
        replicate(
            &mm1(0.8, "1"),
            station(1, ServiceOrder::Fifo),
            ReplicationSizes::of_requests(100_000),
            seed,
        )
        .unwrap()
    });
    eprintln!("eight streams: {found:?}");
    assert!(found.iter().all(|(hit, there)| *hit > 0.88 && *there > 0.85), "{found:?}");
}

/// A stream whose load changes over times longer than a batch: an interval over batches would be far too
/// narrow.
#[test]
fn batches_that_resemble_each_other_give_no_interval() {
    let source = TimedRequestSource {
        arrivals: "mmpp(100/s 100s, 900/s 100s)".parse().unwrap(),
        service: "exp(1ms)".parse().unwrap(),
    };
    let without = (0..20).filter(|seed| {
        let demands: Vec<TimedRequest> = source.requests(*seed).unwrap().take(200_000).collect();
        let summary = play(station(1, ServiceOrder::Fifo), &demands, 0);
        !summary.percentile(percentile(50.0)).unwrap().half_width.is_finite()
    });
    let without = without.count();
    eprintln!("without: {without} of 20");
    assert!(without >= 10, "{without} of 20");
}

#[test]
fn few_requests_have_figures_without_intervals() {
    let demands: Vec<TimedRequest> = mm1(0.5, "1").requests(1).unwrap().take(100).collect();
    let summary = play(station(1, ServiceOrder::Fifo), &demands, 0);
    assert!(!summary.mean().unwrap().half_width.is_finite());
    assert!(
        Summary::of_one_stream().mean().is_none() && Summary::of_one_stream().throughput_per_s().is_none()
    );
    // A thousand have a mean with an interval, and too few beyond the 99.9th percentile for one.
    let streams = |requests| {
        replicate(&mm1(0.5, "1"), station(1, ServiceOrder::Fifo), ReplicationSizes::of_requests(requests), 1)
            .unwrap()
    };
    assert!(streams(1000).mean().unwrap().half_width.is_finite());
    assert!(!streams(1000).percentile(percentile(99.9)).unwrap().half_width.is_finite());
    assert_eq!(streams(1003).count(), 1003);
    assert_eq!(streams(1).count(), 1);
}
