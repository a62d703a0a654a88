//! A burst curve over a moving window, by the two-stack queue: older segments are kept as merges up to a turning
//! point, newer ones as a list and their merge.

use super::{BurstCurve, BurstError};
use std::collections::VecDeque;
use units::Nanos;

/// The burst curve over a moving window of consecutive segments of a trace, without their arrivals.
///
/// Segments enter as curves, and whole segments leave. The oldest ones are stored as the merges of everything from
/// them to a turning point, so that dropping one is free and a segment is merged a constant number
/// of times on average, plus one merge for each answer.
#[derive(Debug, Clone)]
pub struct SlidingBurstCurve {
    extent: WindowExtent,
    /// The last arrival of each old segment, and the merge from that segment to the turning point; oldest first.
    old: VecDeque<(Nanos, BurstCurve)>,
    /// The segments since the turning point.
    new: Vec<BurstCurve>,
    /// The merge of `new`.
    merged: Option<BurstCurve>,
}

#[derive(Debug, Clone, Copy)]
enum WindowExtent {
    Segments(usize),
    Duration(Nanos),
}

impl SlidingBurstCurve {
    /// A window of the latest `count` segments (at least one).
    pub fn over_segments(count: usize) -> Self {
        Self::new(WindowExtent::Segments(count.max(1)))
    }

    /// A window of all segments that reach into the last `duration` before the latest arrival. The answer
    /// covers the window and at most one segment more, so it never understates.
    pub fn over_duration(duration: Nanos) -> Self {
        Self::new(WindowExtent::Duration(duration))
    }

    fn new(extent: WindowExtent) -> Self {
        Self { extent, old: VecDeque::new(), new: Vec::new(), merged: None }
    }

    /// Adds the next segment, and drops those that leave the window.
    ///
    /// # Errors
    /// [`BurstError::Overlap`], which leaves the window unchanged, and [`BurstError::Overflow`], which leaves the
    /// segment out.
    pub fn push(&mut self, segment: BurstCurve) -> Result<(), BurstError> {
        let newest = self.new.last().map(BurstCurve::last).or_else(|| self.old.back().map(|(last, _)| *last));
        if let Some(ends) = newest.filter(|&last| segment.first() < last) {
            return Err(BurstError::Overlap { ends, starts: segment.first() });
        }
        let latest = segment.last();
        while !self.is_empty() && self.expires(latest) {
            self.drop_oldest()?;
        }
        self.merged = Some(match &self.merged {
            Some(merged) => merged.merge(&segment)?,
            None => segment.clone(),
        });
        self.new.push(segment);
        Ok(())
    }

    /// The curve over the window; `None` before the first segment.
    ///
    /// # Errors
    /// [`BurstError::Overflow`] when the work in the window exceeds the range.
    pub fn curve(&self) -> Result<Option<BurstCurve>, BurstError> {
        match (self.old.front(), &self.merged) {
            (Some((_, old)), Some(new)) => old.merge(new).map(Some),
            (old, new) => Ok(old.map(|(_, old)| old).or(new.as_ref()).cloned()),
        }
    }

    /// The number of segments in the window.
    pub fn len(&self) -> usize {
        self.old.len() + self.new.len()
    }

    /// Returns true if no segment was added yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the oldest segment leaves when one that ends at `latest` arrives.
    fn expires(&self, latest: Nanos) -> bool {
        match self.extent {
            WindowExtent::Segments(count) => self.len() >= count,
            WindowExtent::Duration(duration) => {
                let oldest = self
                    .old
                    .front()
                    .map(|(last, _)| *last)
                    .or_else(|| self.new.first().map(BurstCurve::last));
                oldest.is_some_and(|last| last < latest.saturating_sub(duration))
            }
        }
    }

    fn drop_oldest(&mut self) -> Result<(), BurstError> {
        if self.old.is_empty() {
            self.move_turning_point()?;
        }
        self.old.pop_front();
        Ok(())
    }

    /// Makes the new segments old ones: the turning point moves to the end of the window.
    fn move_turning_point(&mut self) -> Result<(), BurstError> {
        let mut old: VecDeque<(Nanos, BurstCurve)> = VecDeque::with_capacity(self.new.len());
        for segment in self.new.iter().rev() {
            let merged = match old.front() {
                Some((_, rest)) => segment.merge(rest)?,
                None => segment.clone(),
            };
            old.push_front((segment.last(), merged));
        }
        self.old = old;
        self.new.clear();
        self.merged = None;
        Ok(())
    }
}
