//! The delay of each level of one strict-priority queue under full concave arrival curves, exactly and fast.
//!
//! Work of higher levels within `x` seconds is at most α_H(x), so work of a level that is served at the end of
//! a busy period of length x, and arrived u after its beginning, satisfies `x ≤ α_H(x) + α_p(u) + extra`: the
//! delay is the horizontal deviation between `α_p + extra` and the leftover service `[x − α_H(x)]⁺`
//! (Le Boudec and Thiran, §1.4 and §6.2). The last x is found by Newton's method from the right: every tangent
//! of α_H is a token bucket ⟨r, b⟩, so every iterate `(b + extra + α_p(u)) / (1 − r)` is Eq. 5.1 of the thesis
//! for one choice of limits, hence itself an upper bound, and the last one is the best choice.
//!
//! Levels enter from the highest to the lowest priority. Tangents of the sum come from prefix sums over buckets
//! of durations, so a level costs the logarithm of what is above it, not the whole of it.
//!
//! Segments steeper than the capacity are replaced by one of slope 1 that meets the curve where they end: no
//! maximum lies there, and slopes stay small enough to be added up without loss.
//!
//! What others have begun already at a queue that does not preempt is `extra` work of the level ([`crate::DeviceQueue`]).
//! Not covered: what happens before and after this queue.

use crate::arrival::{ArrivalCurve, CurveVertex, burst_through};

/// Durations share a bucket when they agree in exponent and in this many bits of the mantissa.
const MANTISSA_BITS: u32 = 5;
/// The biased exponent of the shortest durations that have a bucket of their own: 2⁻³² s, below a nanosecond.
const EXPONENT_MIN: u64 = 1023 - 32;
/// The number of octaves that have buckets: up to 2³² s, beyond a century.
const OCTAVES: u64 = 64;
/// The number of Newton steps after which a search ends; each ends on another segment, and real curves need about ten.
const STEPS_MAX: usize = 10_000;

/// The priority levels of a strict-priority queue of capacity 1, from the highest down. Work is seconds of capacity.
#[derive(Debug, Clone)]
pub struct PriorityQueue {
    /// Changes of the tangent of the sum of all curves, by bucket of the duration.
    buckets: Vec<Vec<TangentChange>>,
    /// A Fenwick tree over the sums of the buckets' changes.
    sums: Vec<TangentLine>,
    /// The sum of the first tangents of all curves.
    first: TangentLine,
    /// The sum of the last tangents of all curves.
    last: TangentLine,
    /// Work that comes on top of the curves, once.
    extra: f64,
    /// The number of terms added so far; with the sums of their magnitudes it bounds what rounding may have lost.
    terms: f64,
    magnitude: TangentLine,
}

/// The line `burst + rate·t`, a token bucket.
#[derive(Debug, Clone, Copy, Default)]
struct TangentLine {
    burst: f64,
    rate: f64,
}

/// A duration from which on the tangent is another one, and by how much it differs from the one before.
#[derive(Debug, Clone, Copy)]
struct TangentChange {
    duration: f64,
    change: TangentLine,
}

/// The end of a busy period.
#[derive(Debug, Clone, Copy)]
struct BusyPeriodEnd {
    /// The time since the beginning of the period, seconds.
    time: f64,
    /// The rate of the queue's own work at that time.
    rate: f64,
}

impl BusyPeriodEnd {
    const NEVER: Self = Self { time: f64::INFINITY, rate: 0.0 };
}

impl TangentLine {
    fn add(&mut self, other: Self) {
        self.burst += other.burst;
        self.rate += other.rate;
    }
}

impl Default for PriorityQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl PriorityQueue {
    /// A queue without levels.
    pub fn new() -> Self {
        let count = usize::try_from(OCTAVES << MANTISSA_BITS).expect("a small constant");
        Self {
            buckets: vec![Vec::new(); count],
            sums: vec![TangentLine::default(); count + 1],
            first: TangentLine::default(),
            last: TangentLine::default(),
            extra: 0.0,
            terms: 0.0,
            magnitude: TangentLine::default(),
        }
    }

    /// Adds a curve to the levels above all that are still to come, and `extra` seconds of work beyond it, once.
    pub fn add(&mut self, curve: &ArrivalCurve, extra: f64) {
        self.extra += extra;
        let mut before = TangentLine::default();
        for (index, (duration, line)) in tangents(curve).into_iter().enumerate() {
            let change = TangentLine { burst: line.burst - before.burst, rate: line.rate - before.rate };
            before = line;
            self.terms += 1.0;
            self.magnitude.add(TangentLine { burst: change.burst.abs(), rate: change.rate.abs() });
            if index == 0 {
                self.first.add(change);
            } else {
                self.insert(TangentChange { duration, change });
            }
        }
        self.last.add(before);
    }

    fn insert(&mut self, change: TangentChange) {
        let bucket = bucket_of(change.duration);
        self.buckets[bucket].push(change);
        let mut node = bucket + 1;
        while node < self.sums.len() {
            self.sums[node].add(change.change);
            node += node & node.wrapping_neg();
        }
    }

    /// The tangent of the sum of all curves at `x`, rounded outward.
    fn tangent(&self, x: f64) -> TangentLine {
        let mut sum = self.first;
        let bucket = bucket_of(x);
        let mut node = bucket;
        while node > 0 {
            sum.add(self.sums[node]);
            node &= node - 1;
        }
        for change in self.buckets[bucket].iter().filter(|change| change.duration <= x) {
            sum.add(change.change);
        }
        self.rounded_outward(sum, x)
    }

    /// Raises the burst by what rounding may have lost at `x`.
    fn rounded_outward(&self, mut sum: TangentLine, x: f64) -> TangentLine {
        let slack = (self.terms + 16.0) * f64::EPSILON;
        sum.burst = (sum.burst + slack * (self.magnitude.burst + x * self.magnitude.rate)).max(0.0);
        sum.rate = sum.rate.max(0.0);
        sum
    }

    /// The end of the longest busy period that this queue makes of its own work and `work` more, and the rate
    /// of its own work there; infinite when its sustained rates leave nothing. `from` is such an end for as much
    /// work or more, from which the search begins.
    fn busy_period_end(&self, work: f64, from: BusyPeriodEnd) -> BusyPeriodEnd {
        if self.last.rate >= 1.0 {
            return BusyPeriodEnd { time: f64::INFINITY, rate: self.last.rate };
        }
        let clear_time = |line: TangentLine| (line.burst + work + self.extra) / (1.0 - line.rate);
        let sustained =
            BusyPeriodEnd { time: clear_time(self.rounded_outward(self.last, 0.0)), rate: self.last.rate };
        let mut end = if from.time < sustained.time { from } else { sustained };
        for _ in 0..STEPS_MAX {
            let line = self.tangent(end.time);
            let time = clear_time(line);
            if line.rate >= 1.0 || time >= end.time {
                break;
            }
            end = BusyPeriodEnd { time, rate: line.rate };
        }
        BusyPeriodEnd { time: end.time * (1.0 + 8.0 * f64::EPSILON), rate: end.rate }
    }

    /// The longest delay of the next level when all its traffic together has this curve, and `extra` seconds of
    /// work come on top of it, once; infinite on overload.
    pub fn delay(&self, level: &ArrivalCurve, extra: f64) -> f64 {
        if self.last.rate + level.sustained_rate() > 1.0 {
            return f64::INFINITY;
        }
        let (level, slope) = (within_capacity(level), level.sustained_rate());
        let vertices = level.vertices();
        let slope_after =
            |i: usize| vertices.get(i + 1).map_or(slope, |next| slope_between(vertices[i], *next));
        // The delay is concave in u: it rises while both slopes together exceed the capacity.
        let mut low = 0;
        let mut high = vertices.len() - 1;
        let mut from = BusyPeriodEnd::NEVER;
        while low < high {
            let middle = low.midpoint(high);
            let end = self.busy_period_end(extra + vertices[middle].work, from);
            if end.rate + slope_after(middle) > 1.0 {
                low = middle + 1;
            } else {
                (high, from) = (middle, end);
            }
        }
        // If slopes tie up to rounding, a neighbour may be higher.
        let mut longest = 0.0f64;
        let mut from = BusyPeriodEnd::NEVER;
        for i in (low.saturating_sub(1)..=(low + 1).min(vertices.len() - 1)).rev() {
            from = self.busy_period_end(extra + vertices[i].work, from);
            longest = longest.max(from.time - vertices[i].duration + 8.0 * f64::EPSILON * from.time);
        }
        longest
    }

    /// The sum of the sustained rates of all levels so far, fraction of capacity.
    pub fn sustained_rate(&self) -> f64 {
        self.last.rate
    }
}

/// The bucket of a duration. Durations beyond the last bucket share it, and those below the first share that one.
fn bucket_of(duration: f64) -> usize {
    let key = duration.max(0.0).to_bits() >> (52 - MANTISSA_BITS);
    let key = key.saturating_sub(EXPONENT_MIN << MANTISSA_BITS).min((OCTAVES << MANTISSA_BITS) - 1);
    usize::try_from(key).expect("at most the number of buckets")
}

/// The slope of the segment between two vertices.
fn slope_between(a: CurveVertex, b: CurveVertex) -> f64 {
    (b.work - a.work) / (b.duration - a.duration)
}

/// The curve with one segment of slope 1 in place of the steeper ones.
fn within_capacity(curve: &ArrivalCurve) -> ArrivalCurve {
    let vertices = curve.vertices();
    let steep = vertices.windows(2).take_while(|v| slope_between(v[0], v[1]) > 1.0).count();
    if steep == 0 {
        return curve.clone();
    }
    let end = vertices[steep];
    let mut kept = vec![CurveVertex { duration: 0.0, work: (end.work - end.duration).max(0.0) }];
    kept.extend_from_slice(&vertices[steep..]);
    ArrivalCurve::from_parts(kept, curve.sustained_rate())
}

/// The lines of which the curve is the minimum, each with the duration at which it begins to be the least; none is below
/// the curve.
fn tangents(curve: &ArrivalCurve) -> Vec<(f64, TangentLine)> {
    let curve = within_capacity(curve);
    let vertices = curve.vertices();
    let mut lines: Vec<(f64, TangentLine)> = Vec::with_capacity(vertices.len());
    for pair in vertices.windows(2) {
        let rate = slope_between(pair[0], pair[1]);
        lines.push((
            pair[0].duration,
            TangentLine { burst: burst_through(pair[0], rate).max(burst_through(pair[1], rate)), rate },
        ));
    }
    let end = vertices[vertices.len() - 1];
    let rate = curve.sustained_rate();
    lines.push((end.duration, TangentLine { burst: burst_through(end, rate), rate }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StageLoad, stage_delay};
    use proptest::prelude::*;

    fn curve(points: &[(f64, f64)], rate: f64) -> ArrivalCurve {
        let vertices = points.iter().map(|&(duration, work)| CurveVertex { duration, work }).collect();
        ArrivalCurve::new(vertices, rate).unwrap()
    }

    fn any_curve() -> impl Strategy<Value = ArrivalCurve> {
        (0.0..0.1f64, prop::collection::vec((1e-4..1.0f64, 0.01..1.6f64), 0..8), 0.0..0.2f64).prop_map(
            |(start, mut steps, rate)| {
                steps.sort_by(|a, b| b.1.total_cmp(&a.1));
                let mut points = vec![(0.0, start)];
                for (length, slope) in steps {
                    let (duration, work) = points[points.len() - 1];
                    points.push((duration + length, work + length * slope));
                }
                curve(&points, rate)
            },
        )
    }

    /// The definition, by brute force over u and bisection over x.
    fn slow(above: &ArrivalCurve, level: &ArrivalCurve, extra: f64) -> f64 {
        let leftover = |x: f64| x - above.work_within(x);
        let last = |y: f64| {
            let mut low = 0.0;
            let mut high = 1e6;
            for _ in 0..200 {
                let middle = 0.5 * (low + high);
                // Concave beyond its first zero: the last x is to the right of the least leftover.
                if leftover(middle) < y { low = middle } else { high = middle }
            }
            high
        };
        level.vertices().iter().map(|v| last(v.work + extra) - v.duration).fold(0.0, f64::max)
    }

    #[test]
    fn token_buckets_have_the_delay_of_equation_5_1() {
        let high = curve(&[(0.0, 0.1)], 0.5);
        let low = curve(&[(0.0, 0.2)], 0.3);
        let mut queue = PriorityQueue::new();
        assert!((queue.delay(&high, 0.0) - stage_delay(StageLoad::preemptive(0.1, 0.0))).abs() < 1e-12);
        queue.add(&high, 0.0);
        assert!((queue.delay(&low, 0.0) - stage_delay(StageLoad::preemptive(0.3, 0.5))).abs() < 1e-12);
        assert!((queue.delay(&low, 0.05) - stage_delay(StageLoad::preemptive(0.35, 0.5))).abs() < 1e-12);
        queue.add(&low, 0.0);
        assert_eq!(queue.delay(&curve(&[(0.0, 0.0)], 0.3), 0.0), f64::INFINITY);
        assert!((queue.delay(&ArrivalCurve::zero(), 0.0) - 0.3 / 0.2).abs() < 1e-12);
    }

    #[test]
    fn nobody_waits_for_nothing() {
        let mut queue = PriorityQueue::new();
        queue.add(&ArrivalCurve::zero(), 0.0);
        assert_eq!(queue.delay(&ArrivalCurve::zero(), 0.0), 0.0);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            curves in prop::collection::vec(any_curve(), 0..5), level in any_curve(), extra in 0.0..0.1f64,
        ) {
            let above = ArrivalCurve::sum(&curves);
            let mut queue = PriorityQueue::new();
            curves.iter().for_each(|c| queue.add(c, 0.0));
            let fast = queue.delay(&level, extra);
            if above.sustained_rate() + level.sustained_rate() > 1.0 {
                prop_assert_eq!(fast, f64::INFINITY);
            } else if above.sustained_rate() + level.sustained_rate() < 0.99 {
                let slow = slow(&above, &level, extra);
                prop_assert!((fast - slow).abs() < 1e-9 * (1.0 + slow), "{} {}", fast, slow);
            }
        }
    }
}
