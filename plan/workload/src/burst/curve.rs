//! The burst curve of a stretch of a trace, and its form in files.

use super::coarsen::coarsened;
use super::hull::{self, HullPoint};
use super::{BurstEnvelope, BurstError};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use units::{Nanos, Work};

/// The burst curve of a stretch of a trace, in a form that merges exactly: the curve of the whole is the
/// merge of the curves of its consecutive parts, bit for bit, and merging is associative.
///
/// It takes typically 1–4 kB, whatever the length of the stretch. It serialises as integers and is checked when read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredBurstCurve", into = "StoredBurstCurve")]
pub struct BurstCurve {
    first: Nanos,
    last: Nanos,
    total: Work,
    count: u64,
    envelope: BurstEnvelope,
    /// The hull of the intervals that begin with the first arrival.
    prefix: Vec<HullPoint>,
    /// The hull of the intervals that end with the last arrival.
    suffix: Vec<HullPoint>,
}

impl BurstCurve {
    pub(super) fn from_parts(
        first: u64,
        last: u64,
        total: u64,
        count: u64,
        [intervals, prefix, suffix]: [Vec<HullPoint>; 3],
    ) -> Self {
        let envelope = BurstEnvelope::from_hull(&intervals);
        Self { first: Nanos(first), last: Nanos(last), total: Work(total), count, envelope, prefix, suffix }
    }

    /// A curve of `count` arrivals with this envelope, of which it is only known that they lie within `span` of each other
    /// and are `total` work, at least that of any interval. The curve dominates theirs.
    pub fn within(envelope: &BurstEnvelope, span: Nanos, total: Work, count: u64) -> Self {
        let mut points = envelope.chain();
        points.push(HullPoint { x: span.0, y: total.0 });
        let chain = hull::hull_of(points);
        let top = chain[chain.len() - 1];
        let intervals = [chain.clone(), chain.clone(), chain];
        Self::from_parts(0, span.0.max(top.x), top.y, count.max(1), intervals)
    }

    /// Returns first arrival, span, total work and number of arrivals, and the three hulls.
    pub(super) fn plain(&self) -> ([u64; 4], [Vec<HullPoint>; 3]) {
        let scalars = [self.first.0, (self.last - self.first).0, self.total.0, self.count];
        (scalars, [self.envelope.chain(), self.prefix.clone(), self.suffix.clone()])
    }

    /// The curve of this stretch followed by `later`. The two may touch: a batch of simultaneous arrivals may be
    /// divided between them.
    ///
    /// # Errors
    /// [`BurstError::Overlap`] when `later` starts before this stretch ends, and [`BurstError::Overflow`].
    pub fn merge(&self, later: &Self) -> Result<Self, BurstError> {
        if later.first < self.last {
            return Err(BurstError::Overlap { ends: self.last, starts: later.first });
        }
        let total = self.total.checked_add(later.total).ok_or(BurstError::Overflow)?;
        let prefix = join_shifted(&self.prefix, &later.prefix, (later.first - self.first).0, self.total.0);
        let suffix = join_shifted(&later.suffix, &self.suffix, (later.last - self.last).0, later.total.0);
        Ok(Self {
            first: self.first,
            last: later.last,
            total,
            count: self.count.saturating_add(later.count),
            envelope: BurstEnvelope::from_hull(&self.joined_intervals(later)),
            prefix,
            suffix,
        })
    }

    /// The curve of the same arrivals, each delayed by `by`.
    ///
    /// # Errors
    /// [`BurstError::Overflow`] when the last arrival would be beyond the range of time.
    pub fn shifted(&self, by: Nanos) -> Result<Self, BurstError> {
        let last = self.last.0.checked_add(by.0).ok_or(BurstError::Overflow)?;
        Ok(Self { first: Nanos(last - (self.last - self.first).0), last: Nanos(last), ..self.clone() })
    }

    /// The hull of the intervals of both stretches and of those across the seam.
    fn joined_intervals(&self, later: &Self) -> Vec<HullPoint> {
        let gap = (later.first - self.last).0;
        let mut points = self.envelope.chain();
        points.extend(later.envelope.chain());
        let suffix = &self.suffix;
        let prefix = &later.prefix;
        hull::minkowski((|k: usize| suffix[k], suffix.len()), (|k: usize| prefix[k], prefix.len()), |p| {
            points.push(HullPoint { x: p.x + gap, y: p.y });
        });
        hull::hull_of(points)
    }

    /// Returns a curve that dominates this one, with at most `corners` corners in each of its hulls; this one if it has no
    /// more.
    #[must_use]
    pub fn coarsened(self, corners: NonZeroUsize) -> Self {
        if self.corners() <= corners.get() {
            return self;
        }
        let [prefix, suffix] = [self.prefix, self.suffix].map(|hull| coarsened(hull, corners.get()));
        let mut points = self.envelope.chain();
        // Intervals at either end may have become longer than all others.
        points.extend(&prefix);
        points.extend(&suffix);
        let intervals = coarsened(hull::hull_of(points), corners.get());
        Self { envelope: BurstEnvelope::from_hull(&intervals), prefix, suffix, ..self }
    }

    /// The number of corners of its largest hull.
    pub fn corners(&self) -> usize {
        self.envelope.vertices().len().max(self.prefix.len()).max(self.suffix.len())
    }

    /// b(r) for every r, as the hull of (duration, work) of all intervals.
    pub fn envelope(&self) -> &BurstEnvelope {
        &self.envelope
    }

    /// When the first request arrives.
    pub fn first(&self) -> Nanos {
        self.first
    }

    /// When the last request arrives.
    pub fn last(&self) -> Nanos {
        self.last
    }

    /// The sum of the work of all arrivals.
    pub fn total(&self) -> Work {
        self.total
    }

    /// The number of arrivals, at least one.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// The hull of `near`, and of `far` shifted by the given duration and work.
fn join_shifted(near: &[HullPoint], far: &[HullPoint], duration: u64, work: u64) -> Vec<HullPoint> {
    let mut points = near.to_vec();
    points.extend(far.iter().map(|p| HullPoint { x: p.x + duration, y: p.y + work }));
    hull::join(&mut points, 0, near.len());
    points
}

/// A burst curve in files: plain integers, hulls as (ns, thousandths of a base unit).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredBurstCurve {
    first_ns: u64,
    last_ns: u64,
    total: u64,
    count: u64,
    intervals: Vec<(u64, u64)>,
    prefix: Vec<(u64, u64)>,
    suffix: Vec<(u64, u64)>,
}

impl From<BurstCurve> for StoredBurstCurve {
    fn from(curve: BurstCurve) -> Self {
        Self {
            first_ns: curve.first.0,
            last_ns: curve.last.0,
            total: curve.total.0,
            count: curve.count,
            intervals: to_pairs(&curve.envelope.chain()),
            prefix: to_pairs(&curve.prefix),
            suffix: to_pairs(&curve.suffix),
        }
    }
}

fn to_pairs(chain: &[HullPoint]) -> Vec<(u64, u64)> {
    chain.iter().map(|p| (p.x, p.y)).collect()
}

fn from_pairs(pairs: Vec<(u64, u64)>) -> Vec<HullPoint> {
    pairs.into_iter().map(|(x, y)| HullPoint { x, y }).collect()
}

impl TryFrom<StoredBurstCurve> for BurstCurve {
    type Error = String;

    fn try_from(stored: StoredBurstCurve) -> Result<Self, String> {
        let chains = [stored.intervals, stored.prefix, stored.suffix].map(from_pairs);
        checked(stored.first_ns, stored.last_ns, stored.total, stored.count, chains)
    }
}

/// Refuses what no arrivals can have: chains that are not hulls, that do not reach the total work or are longer
/// than the stretch, or that lie above the hull of all intervals.
pub(super) fn checked(
    first: u64,
    last: u64,
    total: u64,
    count: u64,
    chains: [Vec<HullPoint>; 3],
) -> Result<BurstCurve, String> {
    let span = last.checked_sub(first).ok_or("burst curve ends before it starts")?;
    if count == 0 {
        return Err("burst curve of no arrivals".to_owned());
    }
    for (chain, name) in chains.iter().zip(["intervals", "prefix", "suffix"]) {
        check_hull(chain, span, total).map_err(|what| format!("burst curve, {name}: {what}"))?;
    }
    for part in &chains[1..] {
        let mut hint = 0;
        if !part.iter().all(|&p| hull::covers(&chains[0], &mut hint, p)) {
            return Err("burst curve: an interval lies above the hull of all intervals".to_owned());
        }
    }
    Ok(BurstCurve::from_parts(first, last, total, count, chains))
}

/// Checks that `chain` can be a hull of intervals of a stretch of this duration and total work.
fn check_hull(chain: &[HullPoint], span: u64, total: u64) -> Result<(), &'static str> {
    if !hull::is_chain_from_zero(chain) {
        return Err("expected a concave chain of (ns, work) that begins at 0 ns");
    }
    let top = chain[chain.len() - 1];
    match top {
        HullPoint { x, .. } if x > span => Err("an interval is longer than the stretch of arrivals"),
        HullPoint { y, .. } if y != total => Err("the longest interval does not hold the total work"),
        _ => Ok(()),
    }
}
