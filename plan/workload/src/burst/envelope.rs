//! The hull of (duration, work) over all intervals of a trace, which is b(r) in dual form.

use super::BurstError;
use super::hull::{self, HullPoint};
use units::{MILLI, Nanos, Work};

const NS_PER_S: f64 = 1e9;

/// A corner of a [`BurstEnvelope`]: the most work that arrives within some duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvelopeVertex {
    /// The time from the first to the last arrival of an interval.
    pub duration: Nanos,
    /// The work that arrives in the interval, including that of its first and last arrival.
    pub work: Work,
}

impl From<EnvelopeVertex> for HullPoint {
    fn from(v: EnvelopeVertex) -> Self {
        Self { x: v.duration.0, y: v.work.0 }
    }
}

impl From<HullPoint> for EnvelopeVertex {
    fn from(p: HullPoint) -> Self {
        Self { duration: Nanos(p.x), work: Work(p.y) }
    }
}

/// The burst (r-b) curve in dual form: the concave upper hull of (duration, work) over all intervals.
///
/// As an arrival curve it bounds the work in any closed interval; its support function is the r-b curve,
/// b(r) = max over vertices of work − r·duration. Vertices begin at duration zero (the largest batch) and
/// have strictly increasing durations and works and strictly decreasing slopes; the last one holds for
/// all longer durations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BurstEnvelope {
    vertices: Vec<EnvelopeVertex>,
}

impl BurstEnvelope {
    /// Requires `chain` to be a hull that begins at duration zero.
    pub(super) fn from_hull(chain: &[HullPoint]) -> Self {
        debug_assert!(hull::is_chain_from_zero(chain), "not an envelope: {chain:?}");
        Self { vertices: chain.iter().map(|&p| p.into()).collect() }
    }

    /// The smallest envelope above these vertices, in any order; `None` without a vertex at duration zero.
    pub fn above(vertices: &[EnvelopeVertex]) -> Option<Self> {
        let chain = hull::hull_of(vertices.iter().map(|&v| v.into()).collect());
        hull::is_chain_from_zero(&chain).then(|| Self::from_hull(&chain))
    }

    /// Returns the corners in ascending order of duration; at least one.
    pub fn vertices(&self) -> &[EnvelopeVertex] {
        &self.vertices
    }

    pub(super) fn chain(&self) -> Vec<HullPoint> {
        self.vertices.iter().map(|&v| v.into()).collect()
    }

    /// b(r), the smallest bucket in base units that never delays the workload at `rate` base units per
    /// second; rounded up, within a few parts in 10^16 of the terms. Constant above the largest slope.
    ///
    /// # Panics
    /// When `rate` is negative or not a number.
    pub fn burst(&self, rate: f64) -> f64 {
        assert!(rate >= 0.0, "a rate is never negative: {rate}");
        self.vertices.iter().map(|v| v.burst(rate)).fold(0.0, f64::max)
    }

    /// The smallest rate, in base units per second, at which a bucket of `burst` base units never delays the workload;
    /// `None` if the largest batch is larger. Rounded up, within a few parts in 10^16 of the terms.
    pub fn least_rate(&self, burst: f64) -> Option<f64> {
        let (batch, longer) = self.vertices.split_first()?;
        if batch.work.base_units() > burst {
            return None;
        }
        let rate = |vertex: &EnvelopeVertex| {
            let seconds = vertex.duration.0 as f64 / NS_PER_S;
            let work = vertex.work.base_units();
            round_up((work - burst) / seconds, (work + burst) / seconds).max(0.0)
        };
        Some(longer.iter().map(rate).fold(0.0, f64::max))
    }

    /// The most work that arrives in any interval from one arrival to another one at most `duration` later; between
    /// vertices it is interpolated, which a concave hull allows, and rounded up.
    pub fn work_within(&self, duration: Nanos) -> Work {
        let after = self.vertices.partition_point(|v| v.duration <= duration);
        let left = self.vertices[after - 1];
        let Some(right) = self.vertices.get(after) else { return left.work };
        let rise = u128::from((right.work - left.work).0) * u128::from((duration - left.duration).0);
        let rise = rise.div_ceil(u128::from((right.duration - left.duration).0));
        Work(left.work.0 + u64::try_from(rise).expect("below the rise of the whole edge"))
    }

    /// Multiplies all work by a safety margin and rounds up: headroom for behaviour that the trace does not show.
    ///
    /// # Errors
    /// [`BurstError::Margin`] unless the factor is positive and finite, [`BurstError::Overflow`] when the
    /// work no longer fits.
    pub fn scaled(&self, margin: f64) -> Result<Self, BurstError> {
        if !(margin.is_finite() && margin > 0.0) {
            return Err(BurstError::Margin);
        }
        let mut points = Vec::with_capacity(self.vertices.len());
        for vertex in &self.vertices {
            let work = scale_up(vertex.work.0, margin).ok_or(BurstError::Overflow)?;
            points.push(HullPoint { x: vertex.duration.0, y: work });
        }
        Ok(Self::from_hull(&hull::hull_of(points)))
    }

    /// Returns true if this envelope is nowhere below the other: b(r) is at least as large for every r ≥ 0.
    pub fn dominates(&self, other: &Self) -> bool {
        let chain = self.chain();
        let mut hint = 0;
        other.vertices.iter().all(|&v| hull::covers(&chain, &mut hint, v.into()))
    }
}

impl EnvelopeVertex {
    /// The burst that this vertex alone requires at `rate`, in base units, rounded up.
    fn burst(self, rate: f64) -> f64 {
        if self.duration == Nanos::ZERO {
            return round_up(self.work.base_units(), 1.0);
        }
        let gained = self.work.base_units();
        let drained = rate * (self.duration.0 as f64 / NS_PER_S);
        round_up(gained - drained, (gained + drained).max(0.0)).max(0.0)
    }
}

/// A value that is at least the exact result, if `value` was computed by a few operations on terms that add up to
/// `magnitude`.
fn round_up(value: f64, magnitude: f64) -> f64 {
    if magnitude.is_finite() { value + 4.0 * f64::EPSILON * magnitude.max(value) } else { value }
}

/// The smallest integer known to be at least `work · margin`; exact for margin 1.
fn scale_up(work: u64, margin: f64) -> Option<u64> {
    if margin == 1.0 {
        return Some(work);
    }
    // The conversion and the product each round by at most half a unit in the last place.
    let scaled = (work as f64 * margin * (1.0 + 2.0 * f64::EPSILON)).ceil();
    // 2^64 is exact as a float, and so is the comparison.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an integer in range")]
    (scaled < 18_446_744_073_709_551_616.0).then_some(scaled as u64)
}

/// Converts a rate from base units per second to thousandths of a base unit per nanosecond, the slopes of hulls.
pub(super) fn raw_slope(rate: f64) -> f64 {
    rate * (MILLI as f64 / NS_PER_S)
}
