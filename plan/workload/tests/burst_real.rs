//! Burst curves of the real traces against the sampled sweep of the thesis, and reductions of them.

mod support;

use proptest::prelude::*;
use std::num::NonZeroUsize;
use support::definition::is_the_hull_of_all_intervals;
use support::sweep;
use workload::burst::{BurstCurve, BurstEnvelope, EnvelopeReduction, StageArrival};

fn curves() -> Option<Vec<(String, BurstCurve)>> {
    let traces = support::real_traces()?;
    let both =
        traces.iter().flat_map(|t| [(&t.name, "storage", &t.storage), (&t.name, "network", &t.network_in)]);
    Some(
        both.map(|(name, stage, a)| (format!("{name} {stage}"), BurstCurve::from_arrivals(a).unwrap()))
            .collect(),
    )
}

/// Rates from idle to beyond the steepest burst, in base units per second, breakpoints included.
fn rates(envelopes: &[&BurstEnvelope]) -> Vec<f64> {
    let breaks = envelopes.iter().flat_map(|e| {
        e.vertices()
            .windows(2)
            .map(|v| (v[1].work - v[0].work).base_units() / (v[1].duration - v[0].duration).as_secs())
    });
    let mut rates: Vec<_> = breaks.flat_map(|r| [r, r * 0.9, r * 1.1]).collect();
    rates.extend((0..=60).map(|k| 10_f64.powf(f64::from(k) / 4.0)));
    rates.push(0.0);
    rates
}

#[test]
fn agrees_with_the_sweep_of_the_thesis() {
    let Some(traces) = support::real_traces() else { return };
    let capacity_ns_per_s = 1e9;
    let rates: Vec<_> = (0..=100).map(|k| f64::from(k) / 100.0 * capacity_ns_per_s).collect();
    for trace in &traces {
        for arrivals in [&trace.storage, &trace.network_in] {
            let envelope = BurstCurve::from_arrivals(arrivals).unwrap().envelope().clone();
            for (rate, swept) in rates.iter().zip(sweep::algorithm_2_1(arrivals, &rates)) {
                let exact = envelope.burst(*rate);
                // The sweep adds up rounding errors over the whole trace.
                assert!((exact - swept).abs() <= 1e-9 * (exact + 1e3), "{}: {exact} {swept}", trace.name);
            }
        }
    }
}

#[test]
fn equals_the_definition_on_short_real_traces() {
    let Some(traces) = support::real_traces() else { return };
    for trace in traces.iter().filter(|t| t.storage.len() < 5000) {
        for arrivals in [&trace.storage, &trace.network_in] {
            is_the_hull_of_all_intervals(BurstCurve::from_arrivals(arrivals).unwrap().envelope(), arrivals);
        }
    }
}

#[test]
fn real_curves_have_few_corners() {
    let Some(curves) = curves() else { return };
    for stage in ["storage", "network"] {
        let sizes: Vec<_> = curves
            .iter()
            .filter(|(name, _)| name.ends_with(stage))
            .map(|(_, c)| c.envelope().vertices().len())
            .collect();
        eprintln!("{stage}: corners {sizes:?}");
        assert!(sizes.iter().all(|n| (8..=64).contains(n)), "{stage}: {sizes:?}");
    }
}

#[test]
fn real_traces_merge_from_any_parts() {
    let Some(traces) = support::real_traces() else { return };
    for trace in traces.iter().step_by(5) {
        let whole = BurstCurve::from_arrivals(&trace.storage).unwrap();
        for size in [1, 63, 1000] {
            let parts = trace.storage[..].chunks(size).map(|part| BurstCurve::from_arrivals(part).unwrap());
            let merged = parts.reduce(|sum, part| sum.merge(&part).unwrap()).unwrap();
            assert_eq!(merged, whole, "{} in parts of {size}", trace.name);
        }
    }
}

/// Never below, at most `segments`, and the worst relative excess over all rates.
fn excess(envelope: &BurstEnvelope, reduced: &BurstEnvelope, segments: usize) -> f64 {
    assert!(reduced.vertices().len() <= segments.max(1));
    assert!(reduced.dominates(envelope), "{reduced:?} below {envelope:?}");
    let ratio = |r: f64| {
        let exact = envelope.burst(r);
        let reduced = reduced.burst(r);
        assert!(reduced >= exact * (1.0 - 1e-14), "at {r}: {reduced} below {exact}");
        if exact > 0.0 { reduced / exact - 1.0 } else { 0.0 }
    };
    rates(&[envelope, reduced]).into_iter().map(ratio).fold(0.0, f64::max)
}

#[test]
fn reduction_of_real_curves() {
    let Some(curves) = curves() else { return };
    let mut worst_of_12 = 0.0_f64;
    for (name, curve) in &curves {
        let envelope = curve.envelope();
        let mut previous = f64::INFINITY;
        for segments in 1..=envelope.vertices().len() {
            let reduced = envelope.reduce(NonZeroUsize::new(segments).unwrap());
            let excess = excess(envelope, &reduced, segments);
            // Durations are rounded to whole nanoseconds, which shows in the shortest bursts.
            assert!(
                excess <= previous * (1.0 + 1e-6) + 1e-6,
                "{name}: {segments} segments {excess} > {previous}"
            );
            previous = excess;
            if segments == 12 {
                worst_of_12 = worst_of_12.max(excess);
            }
        }
        assert_eq!(&envelope.reduce(NonZeroUsize::new(envelope.vertices().len()).unwrap()), envelope);
    }
    eprintln!("worst relative excess with 12 segments: {worst_of_12}");
}

#[test]
fn a_range_of_interest_makes_reduction_tighter_there() {
    let Some(curves) = curves() else { return };
    let segments = NonZeroUsize::new(12).unwrap();
    for (name, curve) in curves.iter().filter(|(name, _)| name.ends_with("storage")) {
        let envelope = curve.envelope();
        let rate_max = 1e9;
        let burst_max = 30e9;
        let plain = envelope.reduce(segments);
        let focused = envelope.reduce_within(
            &EnvelopeReduction::to_segments(segments).up_to_rate(rate_max).up_to_burst(burst_max),
        );
        excess(envelope, &focused, 12);
        let worst = |reduced: &BurstEnvelope| {
            rates(&[envelope, reduced])
                .into_iter()
                .filter(|&r| r <= rate_max && envelope.burst(r) <= burst_max)
                .map(|r| reduced.burst(r) / envelope.burst(r))
                .fold(0.0, f64::max)
        };
        let whole = rates(&[envelope, &plain]).into_iter().map(|r| plain.burst(r) / envelope.burst(r));
        let inside = worst(&focused);
        let anywhere = whole.fold(0.0, f64::max);
        eprintln!("{name}: {:.4} in the range, {:.4} for all rates", inside - 1.0, anywhere - 1.0);
        assert!(inside <= anywhere * (1.0 + 1e-6), "{name}: {inside} {anywhere}");
    }
}

/// The least worst excess of chords between corners of b(r), by dynamic programming.
fn best_between_corners(envelope: &BurstEnvelope, segments: usize) -> f64 {
    let v = envelope.vertices();
    let slope =
        |k: usize| (v[k + 1].work - v[k].work).0 as f64 / (v[k + 1].duration - v[k].duration).0 as f64;
    let b = |k: usize, r: f64| v[k].work.0 as f64 - r * v[k].duration.0 as f64;
    let mut corners: Vec<_> = (0..v.len() - 1).map(|k| (slope(k), b(k, slope(k)))).collect();
    corners.push((0.0, v[v.len() - 1].work.0 as f64));
    let chord = |from: usize, to: usize| {
        let ((r0, b0), (r1, b1)) = (corners[from], corners[to]);
        let over = |&(r, b): &(f64, f64)| (b0 + (b1 - b0) * (r0 - r) / (r0 - r1)) / b - 1.0;
        corners[from + 1..to].iter().map(over).fold(0.0, f64::max)
    };
    // The flat first segment costs its height at the highest rates.
    let mut best: Vec<f64> = corners.iter().map(|c| c.1 / corners[0].1 - 1.0).collect();
    for _ in 1..segments {
        best = (0..corners.len())
            .map(|to| (0..to).map(|from| best[from].max(chord(from, to))).fold(best[to], f64::min))
            .collect();
    }
    best[corners.len() - 1]
}

/// Returns the burst that one nanosecond of the steepest segment adds, relative to the burst there: the
/// judge's durations are real numbers, the reduction's are whole nanoseconds.
fn nanosecond_at_the_steepest(envelope: &BurstEnvelope) -> f64 {
    let [first, second, ..] = envelope.vertices() else { return 0.0 };
    let slope = (second.work - first.work).0 as f64 / (second.duration - first.duration).0 as f64;
    slope / first.work.0 as f64
}

fn random_arrivals() -> impl Strategy<Value = Vec<StageArrival>> {
    (any::<u64>(), 20..400_usize).prop_map(|(seed, count)| support::synthetic(count, seed))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reduction_beats_the_best_between_corners(arrivals in random_arrivals(), segments in 1..12_usize) {
        let envelope = BurstCurve::from_arrivals(&arrivals).unwrap().envelope().clone();
        let reduced = envelope.reduce(NonZeroUsize::new(segments).unwrap());
        let worst = excess(&envelope, &reduced, segments);
        let judge = best_between_corners(&envelope, segments);
        let slack = nanosecond_at_the_steepest(&envelope).max(1e-4);
        prop_assert!(worst <= judge * (1.0 + 1e-6) + slack, "{worst} with a judge of {judge}, slack {slack}");
    }

    #[test]
    fn reduction_in_a_range_never_understates(
        arrivals in random_arrivals(), segments in 1..12_usize, rate in 0.0..4e9_f64, burst in 0.0..1e9_f64,
    ) {
        let envelope = BurstCurve::from_arrivals(&arrivals).unwrap().envelope().clone();
        let segments = NonZeroUsize::new(segments).unwrap();
        let reduction = EnvelopeReduction::to_segments(segments).up_to_rate(rate).up_to_burst(burst);
        excess(&envelope, &envelope.reduce_within(&reduction), segments.get());
    }
}
