//! Several rate limiters at once for a workload at a stage (thesis §3.2.1).
//!
//! A token bucket on the workload's r-b curve never delays it, however many there are; together they admit at
//! most the least of their lines. Each line is a tangent of the arrival curve, so the least of several is an
//! upper envelope, and the more there are the closer it is.
//!
//! Chosen greedily from the sustained rate up: each limiter holds as far towards short durations as the
//! tolerance allows, and the next one is the steepest that begins there. A limiter that begins earlier never
//! reaches further, so no choice needs fewer.

use crate::{ArrivalCurve, CurveVertex, round_up};

/// A token bucket: its rate as a fraction of the capacity, and its burst in seconds of it.
type RateAndBurst = (f64, f64);

/// The fewest limiters that never delay traffic of this curve and together admit, within any duration, at most
/// `1 + tolerance` times as much, as `(rate, burst)` by rising rate. A latency under them is at most that with a safety margin of
/// `1 + tolerance` on the workload.
///
/// # Panics
/// When the tolerance is negative or not a number.
pub fn limiters(curve: &ArrivalCurve, tolerance: f64) -> Vec<RateAndBurst> {
    assert!(tolerance >= 0.0, "a tolerance is not negative: {tolerance}");
    let vertices = curve.vertices();
    let end = vertices[vertices.len() - 1];
    let mut limit = through(curve, end, curve.sustained_rate());
    let mut chosen = vec![limit];
    let mut start = end;
    while let Some(point) = holds_from(curve, limit, start.duration, tolerance) {
        start = point;
        limit = through(curve, start, steepest(curve, start));
        chosen.push(limit);
    }
    chosen
}

/// Returns [`limiters`] for a stage of limited capacity: limiters faster than the stage are replaced by one
/// at the stage's rate. No latency depends on the faster ones: work that arrives faster than the stage serves
/// it waits longest when the burst ends.
///
/// # Panics
/// As [`limiters`].
pub fn enforceable_limiters(curve: &ArrivalCurve, tolerance: f64) -> Vec<RateAndBurst> {
    let mut limits = limiters(curve, tolerance);
    let faster = limits.len() - limits.iter().position(|limit| limit.0 > 1.0).unwrap_or(limits.len());
    limits.truncate(limits.len() - faster);
    let own = (1.0, round_up(curve.burst(1.0)));
    if faster > 0 && own.1.is_finite() && limits.last().is_none_or(|limit| own.1 < limit.1) {
        limits.push(own);
    }
    limits
}

/// A limiter of this rate through a point, raised to be nowhere below the curve.
fn through(curve: &ArrivalCurve, point: CurveVertex, rate: f64) -> RateAndBurst {
    let burst = (point.work - rate * point.duration).max(curve.burst(rate));
    (rate, round_up(burst))
}

/// The shortest duration from which up to `until` the limiter admits little enough, as a point at the top of
/// the tolerance; `None` when that is duration 0.
fn holds_from(curve: &ArrivalCurve, limit: RateAndBurst, until: f64, tolerance: f64) -> Option<CurveVertex> {
    let vertices = curve.vertices();
    let before = vertices.partition_point(|v| v.duration < until);
    let last = vertices[..before].iter().rposition(|v| {
        // Rounding of the limiter itself is no excess.
        excess(limit, v, tolerance) > 1e-12 * ((1.0 + tolerance) * v.work).max(limit.1)
    })?;
    let end = CurveVertex { duration: until, work: curve.work_within(until) };
    let next = vertices[last + 1..before].first().copied().unwrap_or(end);
    let above = excess(limit, &vertices[last], tolerance);
    let below = excess(limit, &next, tolerance).min(0.0);
    let share = above / (above - below);
    let duration = vertices[last].duration + share * (next.duration - vertices[last].duration);
    Some(CurveVertex { duration, work: (1.0 + tolerance) * curve.work_within(duration) })
}

/// The work that a limiter admits beyond the tolerance at a vertex of the curve; negative where it admits less.
fn excess(limit: RateAndBurst, vertex: &CurveVertex, tolerance: f64) -> f64 {
    limit.1 + limit.0 * vertex.duration - (1.0 + tolerance) * vertex.work
}

/// The steepest line through a point on or above the curve that is nowhere below the curve before it.
fn steepest(curve: &ArrivalCurve, point: CurveVertex) -> f64 {
    let before = curve.vertices().iter().take_while(|v| v.duration < point.duration);
    before.map(|v| (point.work - v.work) / (point.duration - v.duration)).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(start: f64, mut steps: Vec<(f64, f64)>, rate: f64) -> ArrivalCurve {
        steps.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut vertices = vec![CurveVertex { duration: 0.0, work: start }];
        for (length, slope) in steps {
            let last = vertices[vertices.len() - 1];
            vertices.push(CurveVertex { duration: last.duration + length, work: last.work + length * slope });
        }
        ArrivalCurve::new(vertices, 0.0).unwrap().with_sustained_rate(rate)
    }

    fn admitted(limits: &[RateAndBurst], duration: f64) -> f64 {
        limits.iter().map(|l| l.1 + l.0 * duration).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn one_bucket_needs_one_limiter() {
        let bucket = curve(0.1, Vec::new(), 0.5);
        assert_eq!(limiters(&bucket, 0.0).len(), 1);
        assert_eq!(limiters(&ArrivalCurve::zero(), 0.0).len(), 1);
    }

    #[test]
    fn fewer_limiters_for_more_tolerance() {
        let steps: Vec<(f64, f64)> = (1..30).map(|i| (0.1, 1.0 / f64::from(i))).collect();
        let many = curve(0.01, steps, 0.01);
        let counts = [0.0, 0.01, 0.1, 1.0, 1e9].map(|tolerance| limiters(&many, tolerance).len());
        assert_eq!(counts[0], 30);
        assert!(counts.windows(2).all(|pair| pair[1] < pair[0]) && counts[4] == 1, "{counts:?}");
    }

    proptest! {
        /// No limiter is faster than the stage, and what waits at most at the stage is the same.
        #[test]
        fn what_a_stage_cannot_do_is_left_out(
            start in 1e-4..0.1f64, steps in prop::collection::vec((1e-3..1.0f64, 0.02..2.0f64), 0..12),
            rate in 0.0..0.02f64,
        ) {
            let curve = curve(start, steps, rate);
            let limits = enforceable_limiters(&curve, 0.0);
            prop_assert!(limits.iter().all(|limit| limit.0 <= 1.0), "{:?}", limits);
            let backlog = |limits: &[RateAndBurst]| {
                let from_start = admitted(limits, 0.0);
                let points = (0..4000).map(|n| f64::from(n) * 5e-3);
                points.map(|d| admitted(limits, d) - d).fold(from_start, f64::max)
            };
            let all = curve.burst(1.0);
            let kept = backlog(&limits);
            prop_assert!((kept - all).abs() <= 1e-9 + all * 1e-2, "{} {}", kept, all);
        }

        #[test]
        fn limiters_are_a_close_upper_envelope(
            start in 1e-4..0.1f64, steps in prop::collection::vec((1e-3..1.0f64, 0.02..2.0f64), 0..12),
            rate in 0.0..0.02f64, tolerance in 0.0..1.0f64, at in 0.0..20.0f64,
        ) {
            let curve = curve(start, steps, rate);
            let limits = limiters(&curve, tolerance);
            prop_assert!(limits.len() <= curve.vertices().len());
            prop_assert!(limits.windows(2).all(|pair| pair[0].0 < pair[1].0));
            for d in curve.vertices().iter().map(|v| v.duration).chain([at]) {
                let exact = curve.work_within(d);
                let limited = admitted(&limits, d);
                prop_assert!(limited >= exact * (1.0 - 1e-12), "{} {}", limited, exact);
                prop_assert!(limited <= exact * (1.0 + tolerance) * (1.0 + 1e-9), "{} {}", limited, exact);
            }
        }
    }
}
