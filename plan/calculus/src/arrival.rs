//! Concave arrival curves and their Legendre conjugates, the r-b tradeoff curves.

use crate::rounding::round_up;
use std::fmt;

/// A point of an arrival curve: the most work that may arrive within a duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurveVertex {
    /// The duration in seconds, not negative.
    pub duration: f64,
    /// The work in seconds of the stage's full capacity, not negative.
    pub work: f64,
}

/// A concave, non-decreasing, piecewise-linear arrival curve α(d), which rises at its sustained rate
/// after the last vertex.
///
/// It is the Legendre conjugate of the r-b curve of thesis §2.3.1: the smallest bucket that passes the
/// workload undelayed at rate r is `b(r) = max_k (work_k − r·duration_k)`, and
/// `α(d) = min_r (b(r) + r·d)`. Every vertex is therefore one linear constraint on feasible ⟨r, b⟩.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrivalCurve {
    vertices: Vec<CurveVertex>,
    /// The slope after the last vertex. No lower rate is feasible, and every segment is steeper.
    sustained_rate: f64,
}

/// Why vertices make no concave, non-decreasing curve.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveError {
    /// The index of the first offending vertex.
    pub index: usize,
    rule: &'static str,
}

impl fmt::Display for CurveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vertex {} of the arrival curve breaks the rule: {}", self.index, self.rule)
    }
}

impl std::error::Error for CurveError {}

/// The relative slack for concavity: vertices converted from integers carry rounding of this order.
const SLOPE_TOLERANCE: f64 = 1e-9;

impl ArrivalCurve {
    /// A curve through these vertices, which are finite, with durations strictly increasing from 0, work
    /// non-decreasing, and slopes non-increasing.
    ///
    /// `sustained_rate` (fraction of capacity, ≥ 0) is the least rate that a limit may have; 0 leaves
    /// the choice to the curve alone.
    ///
    /// # Errors
    /// When the vertices break one of these rules.
    pub fn new(vertices: Vec<CurveVertex>, sustained_rate: f64) -> Result<Self, CurveError> {
        check(&vertices)?;
        Ok(Self { vertices, sustained_rate: 0.0 }.with_sustained_rate(sustained_rate))
    }

    /// A curve of vertices that are one by construction, up to rounding.
    pub(crate) fn from_parts(vertices: Vec<CurveVertex>, sustained_rate: f64) -> Self {
        debug_assert!(vertices.first().is_some_and(|v| v.duration == 0.0), "begins at duration 0");
        Self { vertices, sustained_rate }
    }

    /// The curve of a workload that sends nothing.
    pub fn zero() -> Self {
        Self { vertices: vec![CurveVertex { duration: 0.0, work: 0.0 }], sustained_rate: 0.0 }
    }

    /// The vertices by increasing duration; the first is at duration 0.
    pub fn vertices(&self) -> &[CurveVertex] {
        &self.vertices
    }

    /// The least feasible rate, fraction of capacity.
    pub fn sustained_rate(&self) -> f64 {
        self.sustained_rate
    }

    /// The curve for limits of at least `rate` (≥ 0, may be infinite): segments that are not steeper are
    /// replaced by the sustained rate. A rate below the one in force changes nothing.
    pub fn with_sustained_rate(mut self, rate: f64) -> Self {
        assert!(rate >= 0.0, "rates are not negative");
        if rate > self.sustained_rate {
            let steeper = (1..self.vertices.len()).take_while(|&i| self.slope_into(i) > rate).count();
            self.vertices.truncate(steeper + 1);
            self.sustained_rate = rate;
        }
        self
    }

    /// The most work within `duration` seconds, α(d).
    pub fn work_within(&self, duration: f64) -> f64 {
        self.interpolate(self.vertices.partition_point(|v| v.duration <= duration), duration)
    }

    /// The value α at `duration`, where `next` is the index of the first vertex beyond it.
    fn interpolate(&self, next: usize, duration: f64) -> f64 {
        match (next.checked_sub(1).map(|i| self.vertices[i]), self.vertices.get(next)) {
            (Some(a), Some(b)) => {
                a.work + (b.work - a.work) * ((duration - a.duration) / (b.duration - a.duration))
            }
            (Some(last), None) if duration == last.duration => last.work,
            (Some(last), None) => last.work + self.sustained_rate * (duration - last.duration),
            (None, _) => 0.0,
        }
    }

    /// The smallest bucket b(r), in seconds of capacity, that delays nothing at `rate`; infinite below
    /// the sustained rate.
    pub fn burst(&self, rate: f64) -> f64 {
        if rate < self.sustained_rate {
            return f64::INFINITY;
        }
        self.vertices.iter().map(|v| v.work - rate * v.duration).fold(0.0, f64::max)
    }

    /// The least rate at which a bucket of `burst` seconds delays nothing; infinite when even a burst
    /// within no time at all exceeds the bucket.
    pub(crate) fn rate_for_burst(&self, burst: f64) -> f64 {
        self.largest_rate(|v| if v.work <= burst { 0.0 } else { (v.work - burst) / v.duration })
    }

    /// The least constant rate that delays nothing by more than `delay` seconds: the effective bandwidth
    /// (thesis §5.3.1), `max_k work_k / (duration_k + delay)`.
    pub fn rate_for_delay(&self, delay: f64) -> f64 {
        self.largest_rate(|v| if v.work == 0.0 { 0.0 } else { v.work / (v.duration + delay) })
    }

    /// The largest rate that a vertex asks for, at least the sustained rate.
    fn largest_rate(&self, rate: impl Fn(&CurveVertex) -> f64) -> f64 {
        self.vertices.iter().map(rate).fold(self.sustained_rate, f64::max)
    }

    /// The rates at which α touches the line through duration `d`: (right slope, left slope). A limit that
    /// minimises `b + r·d` has its rate between them.
    pub fn slopes_at(&self, duration: f64) -> (f64, f64) {
        let next = self.vertices.partition_point(|v| v.duration <= duration);
        let right = self.slope_into(next);
        let on_vertex = next > 0 && self.vertices[next - 1].duration == duration;
        let left = match (on_vertex, next) {
            (false, _) => right,
            (true, 1) => f64::INFINITY,
            (true, _) => self.slope_into(next - 1),
        };
        (right.max(self.sustained_rate), left.max(self.sustained_rate))
    }

    /// The slope of the segment that ends at vertex `index`; 0 past the end.
    fn slope_into(&self, index: usize) -> f64 {
        match (index.checked_sub(1), self.vertices.get(index)) {
            (Some(before), Some(v)) => {
                let u = self.vertices[before];
                (v.work - u.work) / (v.duration - u.duration)
            }
            _ => 0.0,
        }
    }

    /// The curve for a workload that may use no burst above `burst` seconds: the sustained rate rises to what
    /// keeps the burst within it (infinite when no rate does).
    pub fn within_burst(&self, burst: f64) -> Self {
        self.clone().with_sustained_rate(self.rate_for_burst(burst))
    }

    /// The least concave curve that is nowhere below this one or `other`.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let mut points: Vec<CurveVertex> = self.vertices.iter().chain(&other.vertices).copied().collect();
        points.sort_by(|a, b| a.duration.total_cmp(&b.duration).then(b.work.total_cmp(&a.work)));
        points.dedup_by(|later, kept| later.duration == kept.duration);
        let slope = |a: CurveVertex, b: CurveVertex| (b.work - a.work) / (b.duration - a.duration);
        let mut hull: Vec<CurveVertex> = Vec::new();
        for point in points {
            while let [.., before, last] = hull[..]
                && slope(before, last) <= slope(last, point)
            {
                hull.pop();
            }
            hull.push(point);
        }
        // Beyond it nothing rises faster than both do for ever.
        let sustained_rate = self.sustained_rate.max(other.sustained_rate);
        let steeper = hull.windows(2).take_while(|pair| slope(pair[0], pair[1]) > sustained_rate).count();
        hull.truncate(steeper + 1);
        Self::from_parts(hull, sustained_rate)
    }

    /// Returns true if this curve is nowhere below `other`, up to rounding.
    pub fn dominates(&self, other: &Self) -> bool {
        // Between two vertices of the other one, which is concave, this one can only be below if it is at one of its own.
        let durations = self.vertices.iter().chain(&other.vertices).map(|vertex| vertex.duration);
        let is_above = |duration: f64| {
            self.work_within(duration) * (1.0 + SLOPE_TOLERANCE) >= other.work_within(duration)
        };
        self.sustained_rate >= other.sustained_rate && durations.into_iter().all(is_above)
    }

    /// The curve with every amount of work multiplied by `factor` (a safety margin, a slower device).
    pub fn scaled(&self, factor: f64) -> Self {
        assert!(factor.is_finite() && factor >= 0.0, "factors are finite and not negative");
        let scale = |v: &CurveVertex| CurveVertex { duration: v.duration, work: v.work * factor };
        Self {
            vertices: self.vertices.iter().map(scale).collect(),
            sustained_rate: self.sustained_rate * factor,
        }
    }

    /// The curve α(d + jitter) after a passage whose longest and shortest times differ by `jitter` seconds
    /// (finite, ≥ 0), whatever work means before and after it.
    pub fn delayed(&self, jitter: f64) -> Self {
        assert!(jitter.is_finite() && jitter >= 0.0, "a jitter is finite and not negative");
        let mut vertices = vec![CurveVertex { duration: 0.0, work: round_up(self.work_within(jitter)) }];
        for v in self.vertices.iter().filter(|v| v.duration > jitter) {
            let last = vertices[vertices.len() - 1];
            let duration = v.duration - jitter;
            if duration > last.duration {
                vertices.push(CurveVertex { duration, work: v.work.max(last.work) });
            }
        }
        Self { vertices, sustained_rate: self.sustained_rate }
    }

    /// The least of token buckets `(rate, burst)` that hold at once, at least one (thesis §3.2.3).
    pub fn from_limits(limits: &[(f64, f64)]) -> Self {
        let buckets = limits.iter().map(|&(rate, burst)| {
            assert!(rate >= 0.0 && burst >= 0.0 && burst.is_finite(), "limits are not negative");
            Self { vertices: vec![CurveVertex { duration: 0.0, work: burst }], sustained_rate: rate }
        });
        buckets.reduce(|a, b| a.minimum(&b)).expect("at least one limit")
    }

    /// The token buckets `(rate, burst)` of which the curve is the least, by falling rate, rounded up.
    pub fn limits(&self) -> Vec<(f64, f64)> {
        let mut limits = Vec::with_capacity(self.vertices.len());
        for pair in self.vertices.windows(2) {
            let rate = (pair[1].work - pair[0].work) / (pair[1].duration - pair[0].duration);
            let burst = burst_through(pair[0], rate).max(burst_through(pair[1], rate));
            limits.push((rate, burst.max(0.0)));
        }
        let last = self.vertices[self.vertices.len() - 1];
        limits.push((self.sustained_rate, burst_through(last, self.sustained_rate).max(0.0)));
        limits
    }

    /// The curve of what may arrive at once, with nothing after it.
    pub(crate) fn burst_only(&self) -> Self {
        Self::from_parts(vec![self.vertices[0]], 0.0)
    }

    /// The smaller of two curves everywhere: the curve of traffic that satisfies both.
    pub(crate) fn minimum(&self, other: &Self) -> Self {
        let mut durations: Vec<f64> =
            self.vertices.iter().chain(&other.vertices).map(|v| v.duration).collect();
        durations.sort_unstable_by(f64::total_cmp);
        durations.dedup();
        let mut vertices: Vec<CurveVertex> = Vec::with_capacity(durations.len() + 2);
        let mut push = |duration: f64| {
            let work = self.work_within(duration).min(other.work_within(duration));
            vertices.push(CurveVertex { duration, work });
        };
        for (i, &start) in durations.iter().enumerate() {
            push(start);
            let end = durations.get(i + 1).copied().unwrap_or(f64::INFINITY);
            let gap = other.work_within(start) - self.work_within(start);
            let closing = self.slopes_at(start).0 - other.slopes_at(start).0;
            let crossing = start + gap / closing;
            if gap * closing > 0.0 && crossing > start && crossing < end {
                push(crossing);
            }
        }
        Self { vertices, sustained_rate: self.sustained_rate.min(other.sustained_rate) }
    }

    /// The curve of several workloads together: their sum, with a vertex wherever one of them has one.
    pub fn sum<'a>(curves: impl IntoIterator<Item = &'a Self>) -> Self {
        let curves: Vec<&Self> = curves.into_iter().collect();
        if let [only] = curves[..] {
            return only.clone();
        }
        let mut durations: Vec<f64> =
            curves.iter().flat_map(|c| c.vertices.iter().map(|v| v.duration)).collect();
        durations.sort_unstable_by(f64::total_cmp);
        durations.dedup();
        let mut work = vec![0.0; durations.len()];
        for curve in &curves {
            curve.add_to(&durations, &mut work);
        }
        let vertices =
            durations.into_iter().zip(work).map(|(duration, work)| CurveVertex { duration, work }).collect();
        Self { vertices, sustained_rate: curves.iter().map(|c| c.sustained_rate).sum() }
    }

    /// Adds α at each of the ascending `durations` to `work`, in one pass.
    fn add_to(&self, durations: &[f64], work: &mut [f64]) {
        let mut next = 0;
        for (&duration, work) in durations.iter().zip(work) {
            while next < self.vertices.len() && self.vertices[next].duration <= duration {
                next += 1;
            }
            *work += self.interpolate(next, duration);
        }
    }
}

/// The burst of the line of this rate through a vertex, rounded up by what the operations may have lost.
pub(crate) fn burst_through(vertex: CurveVertex, rate: f64) -> f64 {
    let drained = rate * vertex.duration;
    vertex.work - drained + 8.0 * f64::EPSILON * (vertex.work + drained)
}

/// Checks that vertices form a concave, non-decreasing curve that begins at duration 0.
fn check(vertices: &[CurveVertex]) -> Result<(), CurveError> {
    let broken = |index, rule| Err(CurveError { index, rule });
    match vertices.first() {
        Some(first) if first.duration == 0.0 => {}
        _ => return broken(0, "the first vertex is at duration 0"),
    }
    let mut slope_before = f64::INFINITY;
    for (index, v) in vertices.iter().enumerate() {
        if !(v.duration.is_finite() && v.work.is_finite() && v.work >= 0.0) {
            return broken(index, "durations and work are finite and not negative");
        }
        let Some(u) = index.checked_sub(1).map(|i| vertices[i]) else { continue };
        if v.duration <= u.duration {
            return broken(index, "durations increase");
        }
        let slope = (v.work - u.work) / (v.duration - u.duration);
        if slope < 0.0 {
            return broken(index, "work does not decrease");
        }
        if slope > slope_before * (1.0 + SLOPE_TOLERANCE) {
            return broken(index, "slopes do not increase");
        }
        slope_before = slope;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(points: &[(f64, f64)]) -> ArrivalCurve {
        let vertices = points.iter().map(|&(duration, work)| CurveVertex { duration, work }).collect();
        ArrivalCurve::new(vertices, 0.0).unwrap()
    }

    /// A random concave curve from step lengths and falling slopes.
    fn any_curve() -> impl Strategy<Value = ArrivalCurve> {
        (0.0..0.1f64, prop::collection::vec((1e-4..1.0f64, 0.01..1.0f64), 0..12)).prop_map(
            |(start, mut steps)| {
                steps.sort_by(|a, b| b.1.total_cmp(&a.1));
                let mut vertices = vec![CurveVertex { duration: 0.0, work: start }];
                for (length, slope) in steps {
                    let last = vertices[vertices.len() - 1];
                    vertices.push(CurveVertex {
                        duration: last.duration + length,
                        work: last.work + length * slope,
                    });
                }
                ArrivalCurve::new(vertices, 0.0).unwrap()
            },
        )
    }

    fn curves() -> impl Strategy<Value = ArrivalCurve> {
        let buckets = prop::collection::vec((0.0..0.9f64, 0.0..2.0f64), 1..5);
        buckets.prop_map(|limits| ArrivalCurve::from_limits(&limits))
    }

    proptest! {
        /// The bucket that a join needs at a rate is the larger of both.
        #[test]
        fn a_join_asks_for_no_more_than_both(a in curves(), b in curves(), rates in prop::collection::vec(0.0..1.5f64, 8)) {
            let join = a.join(&b);
            prop_assert!(join.dominates(&a) && join.dominates(&b) && a.dominates(&a));
            for rate in rates {
                let expected = a.burst(rate).max(b.burst(rate));
                let own = join.burst(rate);
                prop_assert!(own == expected || (own - expected).abs() < 1e-12, "{rate}: {own}, {expected}");
                let both = [a.work_within(rate), b.work_within(rate)].into_iter().fold(0.0, f64::max);
                prop_assert!(join.work_within(rate) >= both - 1e-12);
            }
        }
    }

    #[test]
    fn a_curve_dominates_what_is_nowhere_above_it() {
        let bucket = |rate, burst| ArrivalCurve::from_limits(&[(rate, burst)]);
        assert!(bucket(0.2, 1.0).dominates(&bucket(0.2, 1.0)));
        assert!(!bucket(0.2, 1.0).dominates(&bucket(0.1, 1.1)), "its burst is larger");
        assert!(!bucket(0.2, 1.0).dominates(&bucket(0.3, 0.1)), "it is larger in the long run");
        let cut = ArrivalCurve::from_limits(&[(0.9, 0.1), (0.2, 1.0)]);
        assert!(bucket(0.2, 1.0).dominates(&cut) && !cut.dominates(&bucket(0.1, 0.2)));
    }

    #[test]
    fn a_token_bucket_has_its_own_burst_and_rate() {
        let c = curve(&[(0.0, 0.1), (10.0, 5.1)]);
        assert!((c.burst(0.5) - 0.1).abs() < 1e-12);
        assert!((c.rate_for_burst(0.1) - 0.5).abs() < 1e-12);
        assert_eq!(c.rate_for_burst(0.05), f64::INFINITY);
        assert_eq!(c.work_within(-1.0), 0.0);
        assert_eq!(c.work_within(1e9), 5.1);
        assert_eq!(c.slopes_at(0.0), (0.5, f64::INFINITY));
        assert_eq!(c.slopes_at(10.0).0, 0.0);
    }

    #[test]
    fn rejects_what_is_not_a_curve() {
        for points in [
            &[(1.0, 0.0)][..],
            &[],
            &[(0.0, 0.1), (0.0, 0.2)],
            &[(0.0, 0.2), (1.0, 0.1)],
            &[(0.0, 0.0), (1.0, 0.1), (2.0, 0.9)],
            &[(0.0, f64::NAN)],
        ] {
            let vertices = points.iter().map(|&(duration, work)| CurveVertex { duration, work }).collect();
            assert!(ArrivalCurve::new(vertices, 0.0).is_err(), "{points:?}");
        }
    }

    proptest! {
        #[test]
        fn conjugates_agree(c in any_curve(), d in 0.0..10.0f64, r in 0.0..1.2f64) {
            // Fenchel's inequality, with equality at the slope of the curve.
            prop_assert!(c.burst(r) + r * d >= c.work_within(d) - 1e-9);
            let slope = c.slopes_at(d).0;
            prop_assert!((c.burst(slope) + slope * d - c.work_within(d)).abs() < 1e-9);
        }

        #[test]
        fn burst_and_rate_invert_each_other(c in any_curve(), r in 0.0..1.2f64) {
            let back = c.rate_for_burst(c.burst(r));
            prop_assert!(back <= r + 1e-9 && c.burst(back) <= c.burst(r) + 1e-9);
        }

        #[test]
        fn the_relevant_part_is_the_curve_where_it_is_feasible(c in any_curve(), cap in 0.11..2.0f64, r in 0.0..1.2f64) {
            let part = c.within_burst(cap);
            prop_assert!(part.vertices().len() <= c.vertices().len());
            if c.burst(r) <= cap * (1.0 - 1e-9) {
                prop_assert!((part.burst(r) - c.burst(r)).abs() < 1e-12);
            } else if c.burst(r) > cap * (1.0 + 1e-9) {
                prop_assert_eq!(part.burst(r), f64::INFINITY);
            }
        }

        #[test]
        fn effective_bandwidth_delays_no_longer_than_asked(c in any_curve(), delay in 1e-3..1.0f64) {
            let rate = c.rate_for_delay(delay);
            prop_assert!(c.burst(rate) <= rate * delay + 1e-9);
        }

        #[test]
        fn a_sum_is_the_sum_everywhere(curves in prop::collection::vec(any_curve(), 1..5), d in 0.0..12.0f64) {
            let total = ArrivalCurve::sum(&curves);
            let expected: f64 = curves.iter().map(|c| c.work_within(d)).sum();
            prop_assert!((total.work_within(d) - expected).abs() < 1e-9);
        }
    }
}
