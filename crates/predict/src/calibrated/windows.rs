//! How a trace is cut into windows, each of which is predicted from the rest of the trace.
//!
//! Windows of one trace are taken for exchangeable, so that each one is to the others as the next one is to all of them. That
//! uses a trace better than to predict later windows from earlier ones alone: the rest is nearly as long as the
//! trace from which the next window is predicted, and a busy beginning counts as much as a busy end.

use model::{CircularTrace, Job};
use sim::ReplayTrace;
use units::Nanos;

/// Windows of a trace when nothing is said of their length. Fewer would predict from much less than there is, and with more the
/// percentiles of short windows rest on few requests.
pub(super) const WINDOWS: u64 = 4;

/// How long windows are, and how many of a trace are looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowCut {
    /// The length of a window; a quarter of each trace when it is not said.
    pub(super) length: Option<Nanos>,
    /// No more windows of a trace than this are predicted, evenly spaced.
    pub(super) most: usize,
}

/// A window of a trace and what it is predicted from; `None` where nothing arrives.
pub(super) struct HeldOutWindow {
    pub(super) rest: Option<ReplayTrace>,
    pub(super) window: Option<ReplayTrace>,
}

impl WindowCut {
    /// The length of the windows of a trace.
    pub(super) fn length(self, trace: &CircularTrace<Job>) -> Nanos {
        self.length.unwrap_or(Nanos(trace.period().0 / WINDOWS)).max(Nanos(1))
    }

    /// How many whole windows a trace has.
    pub(super) fn whole(self, trace: &CircularTrace<Job>) -> usize {
        usize::try_from(trace.period().0 / self.length(trace).0).unwrap_or(usize::MAX)
    }

    /// How many windows of a trace are predicted: none when there is no rest to predict one from.
    pub(super) fn count(self, trace: &CircularTrace<Job>) -> usize {
        let whole = self.whole(trace);
        if whole < 2 { 0 } else { whole.min(self.most) }
    }

    /// The window of this number, counted from 0, and the rest. A trace without windows is its own rest, and nothing is held out.
    pub(super) fn hold_out(self, trace: &CircularTrace<Job>, number: usize) -> HeldOutWindow {
        let replayable = |part: Option<CircularTrace<Job>>| part.and_then(|part| ReplayTrace::new(part).ok());
        let count = self.count(trace);
        if count == 0 {
            let all = replayable(Some(trace.clone()));
            return HeldOutWindow { rest: all.clone(), window: all };
        }
        let length = self.length(trace).0;
        // Evenly spaced among the whole windows; both numbers are below 2^64 ÷ the length.
        let position = (number % count * self.whole(trace) / count) as u64;
        let (begin, end) = (Nanos(position * length), Nanos((position + 1) * length));
        HeldOutWindow {
            rest: replayable(trace.without(begin, end)),
            window: replayable(trace.window(begin, end)),
        }
    }
}
