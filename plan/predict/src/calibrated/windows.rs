//! How a trace is cut into windows, each of which is predicted from the rest of the trace.
//!
//! Windows of one trace are taken for exchangeable, so that each one is to the others as the next one is to all of them. That
//! uses a trace better than to predict later windows from earlier ones alone: a busy beginning counts as much as a busy end.

use model::{CircularTrace, Job};
use units::Nanos;

/// Windows of a trace when nothing is said of their length: the longest ones that leave a rest as long as they are.
pub(super) const WINDOWS: u64 = 2;

/// How long windows are, and how many of a trace are looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowCut {
    /// The length of a window; half of each trace when it is not said.
    pub(super) length: Option<Nanos>,
    /// No more windows of a trace than this are predicted, evenly spaced.
    pub(super) most: usize,
}

impl WindowCut {
    /// The length of the windows of a trace.
    pub(super) fn length(self, trace: &CircularTrace<Job>) -> Nanos {
        self.length.unwrap_or(Nanos(trace.period().0 / WINDOWS)).max(Nanos(1))
    }

    /// How many whole windows a trace has.
    fn whole(self, trace: &CircularTrace<Job>) -> usize {
        usize::try_from(trace.period().0 / self.length(trace).0).unwrap_or(usize::MAX)
    }

    /// How many windows of a trace are predicted: none when there is no rest to predict one from.
    pub(super) fn count(self, trace: &CircularTrace<Job>) -> usize {
        let whole = self.whole(trace);
        if whole < 2 { 0 } else { whole.min(self.most) }
    }

    /// What is left of a trace without the window of this number, counted from 0 and round again; all of a trace that has no
    /// windows. `None` where nothing arrives.
    pub(super) fn rest(self, trace: &CircularTrace<Job>, number: usize) -> Option<CircularTrace<Job>> {
        match self.part(trace, number) {
            Some((begin, end)) => trace.without(begin, end),
            None => Some(trace.clone()),
        }
    }

    /// The window of this number; all of a trace that has no windows. `None` where nothing arrives.
    pub(super) fn window(self, trace: &CircularTrace<Job>, number: usize) -> Option<CircularTrace<Job>> {
        match self.part(trace, number) {
            Some((begin, end)) => trace.window(begin, end),
            None => Some(trace.clone()),
        }
    }

    /// Where the window of this number begins and ends.
    fn part(self, trace: &CircularTrace<Job>, number: usize) -> Option<(Nanos, Nanos)> {
        let length = self.length(trace).0;
        // Evenly spaced among the whole windows.
        let position =
            (number.checked_rem(self.count(trace))? * self.whole(trace) / self.count(trace)) as u64;
        Some((Nanos(position * length), Nanos((position + 1) * length)))
    }
}
