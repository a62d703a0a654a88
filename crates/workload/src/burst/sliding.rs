use super::{BurstCurve, BurstError};
use std::collections::VecDeque;
use units::Nanos;

/// The burst curve over a moving window of consecutive segments, without their arrivals.
///
/// Segments enter as sketches; whole segments leave. The oldest ones are kept as merges of everything from
/// them to a turning point, so that dropping one costs nothing and a segment is merged a constant number
/// of times on average, plus one merge per answer.
#[derive(Debug, Clone)]
pub struct SlidingBurst {
    window: Window,
    /// For each old segment its last arrival and the merge from it to the turning point; oldest first.
    old: VecDeque<(Nanos, BurstCurve)>,
    /// Segments since the turning point.
    new: Vec<BurstCurve>,
    /// The merge of `new`.
    merged: Option<BurstCurve>,
}

#[derive(Debug, Clone, Copy)]
enum Window {
    Segments(usize),
    Time(Nanos),
}

impl SlidingBurst {
    /// A window of the latest `count` segments (at least one).
    pub fn of_segments(count: usize) -> Self {
        Self::new(Window::Segments(count.max(1)))
    }

    /// A window of all segments that reach into the last `time` before the latest arrival. The answer
    /// covers the window and at most one segment more: it never understates.
    pub fn of_time(time: Nanos) -> Self {
        Self::new(Window::Time(time))
    }

    fn new(window: Window) -> Self {
        Self { window, old: VecDeque::new(), new: Vec::new(), merged: None }
    }

    /// Adds the segment that follows, and drops what leaves the window.
    ///
    /// # Errors
    /// [`BurstError::Overlap`], and the window stays as it was; [`BurstError::Overflow`], and the segment is
    /// left out.
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
    /// [`BurstError::Overflow`].
    pub fn curve(&self) -> Result<Option<BurstCurve>, BurstError> {
        match (self.old.front(), &self.merged) {
            (Some((_, old)), Some(new)) => old.merge(new).map(Some),
            (old, new) => Ok(old.map(|(_, old)| old).or(new.as_ref()).cloned()),
        }
    }

    /// Segments in the window.
    pub fn len(&self) -> usize {
        self.old.len() + self.new.len()
    }

    /// Whether no segment has come yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the oldest segment leaves when one arrives that ends at `latest`.
    fn expires(&self, latest: Nanos) -> bool {
        match self.window {
            Window::Segments(count) => self.len() >= count,
            Window::Time(time) => {
                let oldest = self
                    .old
                    .front()
                    .map(|(last, _)| *last)
                    .or_else(|| self.new.first().map(BurstCurve::last));
                oldest.is_some_and(|last| last < latest.saturating_sub(time))
            }
        }
    }

    fn drop_oldest(&mut self) -> Result<(), BurstError> {
        if self.old.is_empty() {
            self.turn()?;
        }
        self.old.pop_front();
        Ok(())
    }

    /// Turns the new segments into old ones.
    fn turn(&mut self) -> Result<(), BurstError> {
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
