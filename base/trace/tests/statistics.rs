//! Generators and statistics judge each other, by closed forms where there are some.

use model::Request;
use proptest::prelude::*;
use std::convert::Infallible;
use trace::generate::{MmppState, RateProcess, SizeMix, Synthetic};
use trace::stats::{self, HurstError, TraceStatistics};
use units::{Bytes, Nanos};

fn synthetic(process: RateProcess, seconds: u64, seed: u64) -> Synthetic {
    let sizes = SizeMix::new(vec![(Bytes(4096), 3.0), (Bytes(65_536), 1.0)]).unwrap();
    Synthetic { process, sizes, read_share: 0.7, duration: Nanos(seconds * 1_000_000_000), seed }
}

fn summary(synthetic: &Synthetic) -> TraceStatistics {
    let requests = synthetic.requests().unwrap().map(Ok::<Request, Infallible>);
    let Ok(stats) = stats::collect(requests);
    stats.expect("not empty")
}

/// `value` within `share` of `expected`.
fn close(value: f64, expected: f64, share: f64) -> bool {
    (value - expected).abs() <= share * expected.abs()
}

#[test]
fn poisson_has_no_memory_at_any_scale() {
    let stats = summary(&synthetic(RateProcess::Poisson { rate: 1000.0 }, 600, 1));
    assert!(close(stats.requests_per_sec.unwrap(), 1000.0, 0.01));
    assert!(close(stats.interarrival_scv.unwrap(), 1.0, 0.02));
    for at in &stats.binned_counts {
        let dispersion = at.dispersion.unwrap();
        let error = 4.0 * (2.0 / at.bins as f64).sqrt();
        assert!((dispersion - 1.0).abs() < error, "{at:?}");
    }
    let hurst = stats.hurst.unwrap();
    assert!((hurst.h - 0.5).abs() < 4.0 * hurst.standard_error && hurst.standard_error < 0.02, "{hurst:?}");
    assert!(close(stats.read_share, 0.7, 0.01));
    assert_eq!((stats.sizes.quantile(0.5), stats.sizes.quantile(0.99)), (Bytes(4096), Bytes(65_536)));
    let common = stats.sizes.most_common(1)[0];
    assert!(common.size == Bytes(4096) && close(common.count as f64, 0.75 * stats.count as f64, 0.01));
}

#[test]
fn a_constant_stream_is_exact() {
    let stats = summary(&synthetic(RateProcess::Constant { rate: 1000.0 }, 60, 1));
    assert_eq!(stats.count, 60_000);
    assert_eq!(stats.requests_per_sec, Some(1000.0));
    assert!(stats.interarrival_scv.unwrap() < 1e-9);
    for at in &stats.binned_counts {
        assert_eq!((at.peak_to_mean, at.dispersion), (Some(1.0), Some(0.0)), "{at:?}");
    }
    assert!(stats.timeline.requests.iter().sum::<u64>() == 60_000);
}

#[test]
fn heavy_tails_give_the_hurst_parameter_of_theory() {
    let process = RateProcess::OnOff { sources: 50, rate_on: 40.0, on_s: 0.1, off_s: 0.1, shape: 1.4 };
    assert_eq!(process.mean_rate(), 1000.0);
    let stats = summary(&synthetic(process, 3000, 7));
    let hurst = stats.hurst.unwrap();
    // H = (3 − 1.4)/2 in the limit of large scales.
    assert!((hurst.h - 0.8).abs() < 0.1, "{hurst:?}");
    assert!(stats.binned_counts[2].dispersion.unwrap() > 3.0 * stats.binned_counts[0].dispersion.unwrap());
}

#[test]
fn a_heavier_tail_gives_a_larger_hurst_parameter() {
    for (shape, h) in [(1.2, 0.9), (1.6, 0.7)] {
        let process = RateProcess::OnOff { sources: 50, rate_on: 40.0, on_s: 0.1, off_s: 0.1, shape };
        let hurst = summary(&synthetic(process, 3000, 7)).hurst.unwrap();
        assert!((hurst.h - h).abs() < 0.1, "shape {shape}: {hurst:?}");
    }
}

#[test]
fn a_fair_b_model_is_smooth_and_a_biased_one_is_not() {
    let b_model = |bias| RateProcess::BModel { rate: 500.0, bias, interval_s: 600.0, levels: 20 };
    let fair = summary(&synthetic(b_model(0.5), 600, 3));
    let biased = summary(&synthetic(b_model(0.7), 600, 3));
    assert!(close(fair.requests_per_sec.unwrap(), 500.0, 0.02));
    assert!(fair.binned_counts.iter().all(|at| at.dispersion.unwrap() < 1.1));
    assert!(biased.binned_counts[2].dispersion.unwrap() > 100.0);
    assert!(biased.hurst.unwrap().h > 0.6, "{:?}", biased.hurst);
}

#[test]
fn mmpp_disperses_as_its_closed_form() {
    // Two states with equal stays s: IDC(t) = 1 + 2·v·s'/m·(1 − s'/t·(1 − e^(−t/s'))) with s' = s/2, v and m
    // the variance and mean of the rate (Heffes and Lucantoni 1986, for two states).
    let states = vec![MmppState { rate: 100.0, stay_s: 0.2 }, MmppState { rate: 900.0, stay_s: 0.2 }];
    let stats = summary(&synthetic(RateProcess::Mmpp { states }, 2000, 5));
    let mean = 500.0;
    let variance = 160_000.0;
    let relax = 0.1;
    assert!(close(stats.requests_per_sec.unwrap(), mean, 0.02));
    for at in &stats.binned_counts {
        let t = at.bin_length.as_secs();
        let expected = 1.0 + 2.0 * variance * relax / mean * (1.0 - relax / t * (1.0 - (-t / relax).exp()));
        assert!(close(at.dispersion.unwrap(), expected, 0.1), "{at:?} {expected}");
    }
}

#[test]
fn diurnal_modulation_moves_requests_within_the_cycle_only() {
    let of = Box::new(RateProcess::Constant { rate: 1000.0 });
    let process = RateProcess::Diurnal { of, period_s: 100.0, amplitude: 0.5, phase: 0.0 };
    let arrivals: Vec<f64> =
        process.arrivals(1).unwrap().map(Nanos::as_secs).take_while(|t| *t < 100.0).collect();
    assert!(arrivals.len().abs_diff(100_000) <= 1, "{}", arrivals.len());
    let first_half = arrivals.iter().filter(|t| **t < 50.0).count() as f64;
    // ∫ 1 + 0.5·sin over half a cycle is 50 + 50/π.
    assert!(close(first_half, 1000.0 * (50.0 + 50.0 / std::f64::consts::PI), 1e-3), "{first_half}");
}

#[test]
fn short_and_still_traces_say_so() {
    let short = summary(&synthetic(RateProcess::Poisson { rate: 10.0 }, 2, 1));
    assert_eq!(short.hurst, Err(HurstError::TooShort));
    assert!(short.binned_counts[2].bins <= 2);
    let stats = summary(&synthetic(RateProcess::Constant { rate: 1.0 }, 1, 1));
    assert_eq!((stats.count, stats.requests_per_sec, stats.interarrival_scv), (1, None, None));
    let Ok(none) = stats::collect(std::iter::empty::<Result<Request, Infallible>>());
    assert!(none.is_none());
}

#[test]
fn many_different_sizes_stay_bounded_and_nearly_exact() {
    let mut collector = stats::StatisticsCollector::default();
    let mut sizes: Vec<u64> = (0..200_000u64).map(|n| n * n % 1_000_003 + 1).collect();
    for (n, &size) in sizes.iter().enumerate() {
        let op = model::Op::Read;
        collector.add(&Request {
            arrival: Nanos(n as u64),
            size: Bytes(size),
            op,
            offset: None,
            response: None,
        });
    }
    let stats = collector.finish().unwrap();
    sizes.sort_unstable();
    assert!(!stats.sizes.exact && stats.sizes.counts.len() < 40_000);
    for (q, index) in [(0.01, 1999), (0.5, 99_999), (0.99, 197_999)] {
        let value = stats.sizes.quantile(q).0 as f64;
        let exact = sizes[index] as f64;
        assert!(value <= exact && value >= exact * 0.998, "{q}: {value} for {exact}");
    }
}

fn any_process() -> impl Strategy<Value = RateProcess> {
    let rate = 1.0..2000.0f64;
    let leaf = prop_oneof![
        rate.clone().prop_map(|rate| RateProcess::Constant { rate }),
        rate.clone().prop_map(|rate| RateProcess::Poisson { rate }),
        (rate.clone(), 0.01..2.0f64).prop_map(|(rate, stay_s)| RateProcess::Mmpp {
            states: vec![MmppState { rate, stay_s }, MmppState { rate: 0.0, stay_s: 0.5 }],
        }),
        (1u32..10, rate.clone(), 1.05..3.0f64).prop_map(|(sources, rate_on, shape)| RateProcess::OnOff {
            sources,
            rate_on,
            on_s: 0.1,
            off_s: 0.2,
            shape
        }),
        (rate, 0.5..0.95f64, 1u32..20).prop_map(|(rate, bias, levels)| RateProcess::BModel {
            rate,
            bias,
            interval_s: 2.0,
            levels
        }),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            (inner.clone(), 0.1..10.0f64, 0.0..0.99f64, 0.0..1.0f64).prop_map(
                |(of, period_s, amplitude, phase)| RateProcess::Diurnal {
                    of: Box::new(of),
                    period_s,
                    amplitude,
                    phase
                }
            ),
            proptest::collection::vec(inner, 1..3).prop_map(RateProcess::Sum),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_process_is_sorted_and_repeats_with_its_seed(process in any_process(), seed: u64) {
        let arrivals: Vec<Nanos> = process.arrivals(seed).unwrap().take(500).collect();
        prop_assert!(arrivals.is_sorted());
        let again: Vec<Nanos> = process.arrivals(seed).unwrap().take(500).collect();
        prop_assert_eq!(arrivals, again);
    }
}

#[test]
fn parameters_out_of_range_are_named() {
    let cases = [
        (RateProcess::Poisson { rate: 0.0 }, "positive rate"),
        (RateProcess::BModel { rate: 1.0, bias: 1.0, interval_s: 1.0, levels: 3 }, "bias"),
        (RateProcess::OnOff { sources: 1, rate_on: 1.0, on_s: 1.0, off_s: 1.0, shape: 1.0 }, "shape"),
        (RateProcess::Mmpp { states: vec![] }, "states"),
        (RateProcess::Sum(vec![]), "at least one"),
    ];
    for (process, word) in cases {
        let Err(error) = process.arrivals(1) else { panic!("{process:?} was accepted") };
        assert!(error.to_string().contains(word), "{error}");
    }
}
