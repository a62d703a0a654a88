//! Reduces an envelope to fewer segments without ever understating the burst.
//!
//! b(r) is convex, so chords between points on it lie above it, and a polygon of chords is an upper bound
//! for every r. The chords are chosen to minimise the worst *relative* excess: a latency bound is linear
//! in the bursts, so bursts too large by at most ε make no bound larger than 1 + ε times, at every stage
//! and scale alike, as a safety margin of 1 + ε would. An absolute excess would spend all segments on the
//! low rates, where b is large.
//!
//! For a given ε the fewest chords come from taking each as long as (1 + ε)·b allows, from the highest
//! rate down: a chord from a lower start, or a longer one before, never shortens the reach. Bisection on ε
//! then gives the least. This is floating-point; a final exact pass lifts the result where rounding left
//! it below a vertex.

use super::envelope::raw_slope;
use super::hull;
use super::{BurstEnvelope, EnvelopeVertex};
use std::num::NonZeroUsize;

/// Parameters of reducing a [`BurstEnvelope`]: number of segments, and the range in which the excess matters.
/// The result never understates b(r), whatever the parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnvelopeReduction {
    /// The largest number of segments of the reduced b(r); each is a vertex of the envelope.
    pub segments: NonZeroUsize,
    /// The highest rate of interest in base units per second, such as the capacity of the stage: above it, the
    /// reduced curve may stay at its value for this rate.
    pub rate_max: Option<f64>,
    /// The largest burst of interest in base units, such as 30 s of work when every SLO is shorter: where b
    /// is larger, a single segment covers all rates and its excess does not count.
    pub burst_max: Option<f64>,
}

impl EnvelopeReduction {
    /// Reduces to at most this many segments, with all rates and bursts of interest.
    pub fn to_segments(segments: NonZeroUsize) -> Self {
        Self { segments, rate_max: None, burst_max: None }
    }

    /// Ignores the excess above this rate, in base units per second.
    pub fn up_to_rate(self, rate_max: f64) -> Self {
        Self { rate_max: Some(rate_max), ..self }
    }

    /// Ignores the excess above this burst, in base units.
    pub fn up_to_burst(self, burst_max: f64) -> Self {
        Self { burst_max: Some(burst_max), ..self }
    }
}

/// Maximum steps of the bisection on ε: enough from a factor of 2^64 to the precision of a float.
const STEPS: usize = 120;

impl BurstEnvelope {
    /// An envelope of at most `segments` vertices that dominates this one, with the least worst relative
    /// excess of b(r) over all r ≥ 0. Unchanged when it has no more vertices.
    pub fn reduce(&self, segments: NonZeroUsize) -> Self {
        self.reduce_within(&EnvelopeReduction::to_segments(segments))
    }

    /// Like [`Self::reduce`], but counts the excess only where `reduction` says that it matters.
    pub fn reduce_within(&self, reduction: &EnvelopeReduction) -> Self {
        let limit = reduction.segments.get();
        if self.vertices().len() <= limit {
            return self.clone();
        }
        let curve = RateBurstCurve::new(self, reduction);
        let mut low = 0.0_f64;
        let mut high = curve.sufficient_excess();
        for _ in 0..STEPS {
            // Geometric mean above rounding noise, because the relative precision of ε matters.
            let middle = (low.max(1e-15) * high).sqrt();
            match curve.chords(middle, limit) {
                Some(_) => high = middle,
                None => low = middle,
            }
            if high <= low.max(1e-15) * (1.0 + 1e-9) {
                break;
            }
        }
        let chords = curve.chords(high, limit).unwrap_or_else(|| vec![curve.flat_segment()]);
        self.lifted(&chords)
    }

    /// The envelope of these vertices, lifted as far as rounding made them miss this envelope.
    fn lifted(&self, vertices: &[EnvelopeVertex]) -> Self {
        let rounded = Self::above(vertices).expect("the first chord is flat");
        let mut lift = 0;
        for vertex in self.vertices() {
            lift = lift.max(vertex.work.0.saturating_sub(rounded.work_below(vertex.duration)));
        }
        let mut points = rounded.chain();
        for point in &mut points {
            point.y = point.y.saturating_add(lift);
        }
        Self::from_hull(&hull::hull_of(points))
    }

    /// Like [`Self::work_within`], but rounded down.
    fn work_below(&self, duration: units::Nanos) -> u64 {
        let up = self.work_within(duration).0;
        let exact = self.vertices().iter().any(|v| v.duration == duration);
        if exact { up } else { up.saturating_sub(1) }
    }
}

/// b(r) as a polygon in raw units: thousandths of a base unit, and thousandths per nanosecond.
struct RateBurstCurve {
    /// The corners (r, b) from the highest rate of interest down; b ascends.
    corners: Vec<(f64, f64)>,
    /// The total work, which is b(0).
    total: f64,
}

impl RateBurstCurve {
    fn new(envelope: &BurstEnvelope, reduction: &EnvelopeReduction) -> Self {
        let vertices = envelope.vertices();
        let breaks = vertices
            .windows(2)
            .map(|v| (v[1].work - v[0].work).0 as f64 / (v[1].duration - v[0].duration).0 as f64);
        let rate_max = reduction.rate_max.map_or(f64::INFINITY, raw_slope);
        let burst_max = reduction.burst_max.map_or(f64::INFINITY, |b| b * units::MILLI as f64);
        let total = vertices[vertices.len() - 1].work.0 as f64;
        let top = breaks.clone().next().map_or(0.0, |r| r.min(rate_max)).max(0.0);
        let mut corners = vec![(top, raw_burst(vertices, top))];
        let below = breaks.filter(|&r| r < top).chain([0.0]);
        corners.extend(below.map(|r| (r, raw_burst(vertices, r))));
        truncate_above(&mut corners, burst_max);
        Self { corners, total }
    }

    /// An ε for which a single flat segment suffices.
    fn sufficient_excess(&self) -> f64 {
        let least = self.corners[0].1;
        if least > 0.0 { self.total / least } else { 1.0 }
    }

    /// The flat segment that lies above the whole curve.
    fn flat_segment(&self) -> EnvelopeVertex {
        vertex(0.0, self.total)
    }

    /// The fewest chords, from high to low rates, that exceed b by at most a factor 1 + ε; `None` when
    /// that takes more than `limit`.
    fn chords(&self, excess: f64, limit: usize) -> Option<Vec<EnvelopeVertex>> {
        let factor = 1.0 + excess;
        let end = self.corners[self.corners.len() - 1];
        let (mut next, mut at) = self.flat_reach(factor);
        let mut chords = vec![vertex(0.0, at.1)];
        while at.0 > end.0 && next < self.corners.len() {
            if chords.len() == limit {
                return None;
            }
            let (after, reached) = self.reach(next, at, factor);
            // A corner met exactly may leave a chord of no length.
            if reached.0 < at.0 {
                chords.push(chord(at, reached));
            }
            (next, at) = (after, reached);
        }
        if end.0 > 0.0 {
            chords.push(chord(end, (0.0, self.total)));
        }
        (chords.len() <= limit).then_some(chords)
    }

    /// Returns the reach of the flat segment that begins at the highest rate: the next corner, and the end.
    fn flat_reach(&self, factor: f64) -> (usize, (f64, f64)) {
        let roof = self.corners[0].1 * factor;
        let next = self.corners.partition_point(|c| c.1 <= roof);
        if next == self.corners.len() {
            return (next, self.corners[next - 1]);
        }
        if next == 0 {
            return (1, self.corners[0]);
        }
        let high = self.corners[next - 1];
        let low = self.corners[next];
        let share = ((roof - high.1) / (low.1 - high.1)).clamp(0.0, 1.0);
        (next, (high.0 + share * (low.0 - high.0), roof))
    }

    /// The longest chord from the point `at` on b, just above corner `next`: the corner after its end, and its end.
    fn reach(&self, next: usize, at: (f64, f64), factor: f64) -> (usize, (f64, f64)) {
        let mut steepness = f64::INFINITY;
        let mut above = at;
        for (k, &(r, b)) in self.corners.iter().enumerate().skip(next) {
            let run = at.0 - r;
            if at.1 + steepness * run < b {
                return (k, crossing(above, (r, b), at, steepness));
            }
            if run > 0.0 {
                steepness = steepness.min((factor * b - at.1) / run);
            }
            above = (r, b);
        }
        (self.corners.len(), self.corners[self.corners.len() - 1])
    }
}

/// b(r) in raw units.
fn raw_burst(vertices: &[EnvelopeVertex], rate: f64) -> f64 {
    vertices.iter().map(|v| v.work.0 as f64 - rate * v.duration.0 as f64).fold(0.0, f64::max)
}

/// The point at which the line from `at` meets b between two corners; at the one called `above`, which has the higher
/// rate, the line lies above b.
fn crossing(above: (f64, f64), below: (f64, f64), at: (f64, f64), steepness: f64) -> (f64, f64) {
    let over = (at.1 + steepness * (at.0 - above.0) - above.1).max(0.0);
    let under = (below.1 - (at.1 + steepness * (at.0 - below.0))).max(0.0);
    let share = if over + under > 0.0 { over / (over + under) } else { 1.0 };
    let r = above.0 + share * (below.0 - above.0);
    (r, above.1 + share * (below.1 - above.1))
}

/// Drops the corners above `burst_max`, ending exactly there.
fn truncate_above(corners: &mut Vec<(f64, f64)>, burst_max: f64) {
    let keep = corners.partition_point(|c| c.1 <= burst_max);
    if keep == corners.len() {
        return;
    }
    let low = corners[keep];
    corners.truncate(keep.max(1));
    if keep > 0 {
        let high = corners[keep - 1];
        let share = (burst_max - high.1) / (low.1 - high.1);
        corners.push((high.0 + share * (low.0 - high.0), burst_max));
    }
}

/// The line b = work − r·duration through two points as a vertex; rates between the two matter. Rounding the duration
/// to whole nanoseconds turns the line: flatter about its lower end or steeper about its upper, whichever exceeds less.
fn chord(high: (f64, f64), low: (f64, f64)) -> EnvelopeVertex {
    let duration = (low.1 - high.1) / (high.0 - low.0);
    let flatter = duration.floor();
    let steeper = duration.ceil();
    if (duration - flatter) * low.1 <= (steeper - duration) * high.1 {
        vertex(flatter, low.1 + low.0 * flatter)
    } else {
        vertex(steeper, high.1 + high.0 * steeper)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and durations and works come from 64-bit integers"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

/// A vertex of a whole duration, with its work rounded up.
fn vertex(duration: f64, work: f64) -> EnvelopeVertex {
    EnvelopeVertex { duration: units::Nanos(whole(duration)), work: units::Work(whole(work.ceil())) }
}
