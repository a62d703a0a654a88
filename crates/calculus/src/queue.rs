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
//! Not covered: non-preemptive service (one job of a lower priority more per busy period), and what happens
//! before and after this queue.

use crate::{ArrivalCurve, Vertex};

/// Durations share a bucket when they agree in exponent and in this many bits of the mantissa.
const MANTISSA_BITS: u32 = 5;
/// From 2⁻³² s, below a nanosecond, ...
const EXPONENT_MIN: u64 = 1023 - 32;
/// ... to 2³² s, beyond a century.
const OCTAVES: u64 = 64;
/// Newton steps; each ends on another segment, and real curves need about ten.
const STEPS_MAX: usize = 10_000;

/// Levels of a strict-priority queue of capacity 1, from the highest down. Work is seconds of capacity.
#[derive(Debug, Clone)]
pub struct PriorityQueue {
    /// Where tangents change: their (burst, rate) added to those of everything before.
    buckets: Vec<Vec<Turn>>,
    /// Fenwick tree over the sums of the buckets.
    sums: Vec<Line>,
    /// Sum of the first lines of all curves.
    first: Line,
    /// Sum of the last lines.
    last: Line,
    /// Work that comes on top of the curves, once.
    extra: f64,
    /// Terms added so far, and the sums of their magnitudes: what rounding is bounded by.
    terms: f64,
    magnitude: Line,
}

/// burst + rate·t.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    burst: f64,
    rate: f64,
}

/// From `at` on the tangent is another one.
#[derive(Debug, Clone, Copy)]
struct Turn {
    at: f64,
    change: Line,
}

/// The end of a busy period, and the rate of the queue's own work there.
type Busy = (f64, f64);

impl Line {
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
    /// Nobody yet.
    pub fn new() -> Self {
        let count = usize::try_from(OCTAVES << MANTISSA_BITS).expect("a small constant");
        Self {
            buckets: vec![Vec::new(); count],
            sums: vec![Line::default(); count + 1],
            first: Line::default(),
            last: Line::default(),
            extra: 0.0,
            terms: 0.0,
            magnitude: Line::default(),
        }
    }

    /// Adds a curve to what is above all levels to come. Work beyond the curve, once, is `extra` seconds.
    pub fn add(&mut self, curve: &ArrivalCurve, extra: f64) {
        self.extra += extra;
        let mut before = Line::default();
        for (index, (at, line)) in tangents(curve).into_iter().enumerate() {
            let change = Line { burst: line.burst - before.burst, rate: line.rate - before.rate };
            before = line;
            self.terms += 1.0;
            self.magnitude.add(Line { burst: change.burst.abs(), rate: change.rate.abs() });
            if index == 0 {
                self.first.add(change);
            } else {
                self.insert(Turn { at, change });
            }
        }
        self.last.add(before);
    }

    fn insert(&mut self, turn: Turn) {
        let bucket = bucket_of(turn.at);
        self.buckets[bucket].push(turn);
        let mut node = bucket + 1;
        while node < self.sums.len() {
            self.sums[node].add(turn.change);
            node += node & node.wrapping_neg();
        }
    }

    /// The tangent of the sum at `x`, outward.
    fn tangent(&self, x: f64) -> Line {
        let mut sum = self.first;
        let bucket = bucket_of(x);
        let mut node = bucket;
        while node > 0 {
            sum.add(self.sums[node]);
            node &= node - 1;
        }
        self.buckets[bucket].iter().filter(|turn| turn.at <= x).for_each(|turn| sum.add(turn.change));
        self.outward(sum, x)
    }

    /// Raises the burst by what rounding may have lost at `x`.
    fn outward(&self, mut sum: Line, x: f64) -> Line {
        let slack = (self.terms + 16.0) * f64::EPSILON;
        sum.burst = (sum.burst + slack * (self.magnitude.burst + x * self.magnitude.rate)).max(0.0);
        sum.rate = sum.rate.max(0.0);
        sum
    }

    /// The end of the longest busy period that this queue makes of its own work and `work` more, and the rate
    /// of its own work there; infinite when its sustained rates leave nothing. `from` is such an end for as much
    /// work or more.
    fn busy(&self, work: f64, from: Busy) -> Busy {
        let clear = |line: Line| (line.burst + work + self.extra) / (1.0 - line.rate);
        if self.last.rate >= 1.0 {
            return (f64::INFINITY, self.last.rate);
        }
        let sustained = (clear(self.outward(self.last, 0.0)), self.last.rate);
        let (mut x, mut rate) = if from.0 < sustained.0 { from } else { sustained };
        for _ in 0..STEPS_MAX {
            let line = self.tangent(x);
            let next = clear(line);
            if line.rate >= 1.0 || next >= x {
                break;
            }
            (x, rate) = (next, line.rate);
        }
        (x * (1.0 + 8.0 * f64::EPSILON), rate)
    }

    /// The longest delay of the next level when all its traffic together has this curve, and `extra` seconds of
    /// work come on top of it, once; infinite on overload.
    pub fn delay(&self, level: &ArrivalCurve, extra: f64) -> f64 {
        if self.last.rate + level.sustained_rate() > 1.0 {
            return f64::INFINITY;
        }
        let (level, slope) = (within_capacity(level), level.sustained_rate());
        let vertices = level.vertices();
        let right = |i: usize| vertices.get(i + 1).map_or(slope, |next| slope_between(vertices[i], *next));
        let busy = |i: usize, from: Busy| self.busy(extra + vertices[i].work, from);
        // The delay is concave in u: it rises while both slopes together exceed the capacity.
        let (mut low, mut high) = (0, vertices.len() - 1);
        let mut from = (f64::INFINITY, 0.0);
        while low < high {
            let middle = low.midpoint(high);
            let end = busy(middle, from);
            if end.1 + right(middle) > 1.0 {
                low = middle + 1;
            } else {
                (high, from) = (middle, end);
            }
        }
        // Where slopes tie up to rounding, a neighbour may be the higher one.
        let (mut longest, mut from) = (0.0f64, (f64::INFINITY, 0.0));
        for i in (low.saturating_sub(1)..=(low + 1).min(vertices.len() - 1)).rev() {
            from = busy(i, from);
            longest = longest.max(from.0 - vertices[i].duration + 8.0 * f64::EPSILON * from.0);
        }
        longest
    }

    /// Σ of the sustained rates of all levels so far.
    pub fn sustained_rate(&self) -> f64 {
        self.last.rate
    }
}

/// Longer durations than the last bucket holds share it, as do shorter ones the first.
fn bucket_of(duration: f64) -> usize {
    let key = duration.max(0.0).to_bits() >> (52 - MANTISSA_BITS);
    let key = key.saturating_sub(EXPONENT_MIN << MANTISSA_BITS).min((OCTAVES << MANTISSA_BITS) - 1);
    usize::try_from(key).expect("at most the number of buckets")
}

fn slope_between(a: Vertex, b: Vertex) -> f64 {
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
    let mut kept = vec![Vertex { duration: 0.0, work: (end.work - end.duration).max(0.0) }];
    kept.extend_from_slice(&vertices[steep..]);
    ArrivalCurve::of_parts(kept, curve.sustained_rate())
}

/// Lines of which the curve is the minimum, each with where it begins to be the least, none below the curve.
fn tangents(curve: &ArrivalCurve) -> Vec<(f64, Line)> {
    let curve = within_capacity(curve);
    let vertices = curve.vertices();
    let through = |v: Vertex, rate: f64| {
        let drained = rate * v.duration;
        v.work - drained + 8.0 * f64::EPSILON * (v.work + drained)
    };
    let mut lines: Vec<(f64, Line)> = Vec::with_capacity(vertices.len());
    for pair in vertices.windows(2) {
        let rate = slope_between(pair[0], pair[1]);
        lines.push((
            pair[0].duration,
            Line { burst: through(pair[0], rate).max(through(pair[1], rate)), rate },
        ));
    }
    let end = vertices[vertices.len() - 1];
    let rate = curve.sustained_rate();
    lines.push((end.duration, Line { burst: through(end, rate), rate }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage_delay;
    use proptest::prelude::*;

    fn curve(points: &[(f64, f64)], rate: f64) -> ArrivalCurve {
        let vertices = points.iter().map(|&(duration, work)| Vertex { duration, work }).collect();
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
            let (mut low, mut high) = (0.0, 1e6);
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
        assert!((queue.delay(&high, 0.0) - stage_delay(0.1, 0.0)).abs() < 1e-12);
        queue.add(&high, 0.0);
        assert!((queue.delay(&low, 0.0) - stage_delay(0.3, 0.5)).abs() < 1e-12);
        assert!((queue.delay(&low, 0.05) - stage_delay(0.35, 0.5)).abs() < 1e-12);
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
