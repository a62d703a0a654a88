use super::hull::{self, Point};
use super::{BurstError, Envelope};
use serde::{Deserialize, Serialize};
use units::{Nanos, Work};

/// The burst curve of a stretch of arrivals, as a sketch that merges exactly: the curve of a whole is the
/// merge of the curves of its consecutive parts, bit for bit, and merging is associative.
///
/// Typically 1–4 kB, whatever the length of the stretch. Serialises as integers and is checked on reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct BurstCurve {
    first: Nanos,
    last: Nanos,
    total: Work,
    count: u64,
    envelope: Envelope,
    /// Hull over the intervals that begin with the first arrival.
    prefix: Vec<Point>,
    /// Hull over the intervals that end with the last arrival.
    suffix: Vec<Point>,
}

impl BurstCurve {
    pub(super) fn of_parts(
        first: u64,
        last: u64,
        total: u64,
        count: u64,
        [intervals, prefix, suffix]: [Vec<Point>; 3],
    ) -> Self {
        let envelope = Envelope::of_chain(&intervals);
        Self { first: Nanos(first), last: Nanos(last), total: Work(total), count, envelope, prefix, suffix }
    }

    /// The curve of this stretch followed by a later one. They may touch: a batch of simultaneous arrivals
    /// may be divided between them.
    ///
    /// # Errors
    /// [`BurstError::Overlap`] when `later` starts before this ends; [`BurstError::Overflow`].
    pub fn merge(&self, later: &Self) -> Result<Self, BurstError> {
        if later.first < self.last {
            return Err(BurstError::Overlap { ends: self.last, starts: later.first });
        }
        let total = self.total.checked_add(later.total).ok_or(BurstError::Overflow)?;
        let prefix = joined(&self.prefix, &later.prefix, (later.first - self.first).0, self.total.0);
        let suffix = joined(&later.suffix, &self.suffix, (later.last - self.last).0, later.total.0);
        Ok(Self {
            first: self.first,
            last: later.last,
            total,
            count: self.count.saturating_add(later.count),
            envelope: Envelope::of_chain(&self.intervals_with(later)),
            prefix,
            suffix,
        })
    }

    /// The curve of the same arrivals, each `by` later.
    ///
    /// # Errors
    /// [`BurstError::Overflow`] when the last one would be beyond the range of time.
    pub fn shifted(&self, by: Nanos) -> Result<Self, BurstError> {
        let last = self.last.0.checked_add(by.0).ok_or(BurstError::Overflow)?;
        Ok(Self { first: Nanos(last - (self.last - self.first).0), last: Nanos(last), ..self.clone() })
    }

    /// Hull over the intervals of both and across the seam.
    fn intervals_with(&self, later: &Self) -> Vec<Point> {
        let gap = (later.first - self.last).0;
        let mut points = self.envelope.chain();
        points.extend(later.envelope.chain());
        let (suffix, prefix) = (&self.suffix, &later.prefix);
        hull::minkowski((|k: usize| suffix[k], suffix.len()), (|k: usize| prefix[k], prefix.len()), |p| {
            points.push(Point { x: p.x + gap, y: p.y });
        });
        hull::of_points(points)
    }

    /// b(r) for every r, as the hull of (duration, work) over all intervals.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The first arrival.
    pub fn first(&self) -> Nanos {
        self.first
    }

    /// The last arrival.
    pub fn last(&self) -> Nanos {
        self.last
    }

    /// The work of all arrivals.
    pub fn total(&self) -> Work {
        self.total
    }

    /// How many arrivals there are, at least one.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// The hull of `near` and of `far` shifted by the given duration and work.
fn joined(near: &[Point], far: &[Point], duration: u64, work: u64) -> Vec<Point> {
    let mut points = near.to_vec();
    points.extend(far.iter().map(|p| Point { x: p.x + duration, y: p.y + work }));
    hull::join(&mut points, 0, near.len());
    points
}

/// What is written: plain integers, hulls as (ns, thousandths of a base unit).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    first_ns: u64,
    last_ns: u64,
    total: u64,
    count: u64,
    intervals: Vec<(u64, u64)>,
    prefix: Vec<(u64, u64)>,
    suffix: Vec<(u64, u64)>,
}

impl From<BurstCurve> for Stored {
    fn from(curve: BurstCurve) -> Self {
        let pairs = |chain: &[Point]| chain.iter().map(|p| (p.x, p.y)).collect();
        Self {
            first_ns: curve.first.0,
            last_ns: curve.last.0,
            total: curve.total.0,
            count: curve.count,
            intervals: pairs(&curve.envelope.chain()),
            prefix: pairs(&curve.prefix),
            suffix: pairs(&curve.suffix),
        }
    }
}

impl TryFrom<Stored> for BurstCurve {
    type Error = String;

    /// Refuses what no arrivals have: hulls that are not hulls, that do not reach the total or outlast the
    /// stretch, that lie above the hull of all intervals.
    fn try_from(stored: Stored) -> Result<Self, String> {
        let span = stored.last_ns.checked_sub(stored.first_ns).ok_or("burst curve ends before it starts")?;
        if stored.count == 0 {
            return Err("burst curve of no arrivals".to_owned());
        }
        let chain = |pairs: Vec<(u64, u64)>| pairs.into_iter().map(|(x, y)| Point { x, y }).collect();
        let chains: [Vec<Point>; 3] = [stored.intervals, stored.prefix, stored.suffix].map(chain);
        for (chain, name) in chains.iter().zip(["intervals", "prefix", "suffix"]) {
            check(chain, span, stored.total).map_err(|what| format!("burst curve, {name}: {what}"))?;
        }
        for part in &chains[1..] {
            let mut hint = 0;
            if !part.iter().all(|&p| hull::covers(&chains[0], &mut hint, p)) {
                return Err("burst curve: an interval lies above the hull of all intervals".to_owned());
            }
        }
        Ok(Self::of_parts(stored.first_ns, stored.last_ns, stored.total, stored.count, chains))
    }
}

fn check(chain: &[Point], span: u64, total: u64) -> Result<(), &'static str> {
    if !hull::is_chain_from_zero(chain) {
        return Err("expected a concave chain of (ns, work) that begins at 0 ns");
    }
    let top = chain[chain.len() - 1];
    match top {
        Point { x, .. } if x > span => Err("an interval is longer than the stretch of arrivals"),
        Point { y, .. } if y != total => Err("the longest interval does not hold the total work"),
        _ => Ok(()),
    }
}
