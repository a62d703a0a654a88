//! What a request finds of its own stream.

use super::law::{Bins, Law};
use super::{Item, Stream};

/// Suprema over the windows that end at a request, by which straddling jobs they already allow for:
/// none, one at the first turning point, one at the second, both.
#[derive(Clone, Copy)]
struct Suprema {
    none: f64,
    first: f64,
    second: f64,
    both: f64,
}

impl Suprema {
    const IDLE: Self = Self { none: 0.0, first: 0.0, second: 0.0, both: 0.0 };

    /// Windows grow by `served`, or begin with `item`, and hold it.
    fn next(self, served: f64, item: &Item) -> Self {
        let [a, b] = item.straddle.map(|ns| ns as f64);
        let work = item.work as f64;
        let (none, first, second) =
            ((self.none - served).max(0.0), self.first - served, self.second - served);
        let both = self.both - served;
        Self {
            none: none + work,
            first: first.max(none + a) + work,
            second: second.max(none + b) + work,
            both: both.max(first + b).max(second + a).max(none + item.straddle_both as f64) + work,
        }
    }
}

/// The law of the supremum over requests: the second round of the trace begins in the state in which every
/// later one does, because the rate of service is at least that of the work.
pub(super) fn law(stream: &Stream, service: f64) -> Law {
    let mut bins = Bins::new();
    let mut state = Suprema::IDLE;
    let mut before = 0u64;
    for round in 0..2u64 {
        for item in &stream.items {
            let at = item.at + round * stream.period;
            state = state.next(service * (at - before) as f64, item);
            before = at;
            if round == 1 {
                bins.add(nanos_up(state.both), 1);
            }
        }
    }
    bins.law()
}

/// Up, and past what rounding in the recursion can have lost.
fn nanos_up(ns: f64) -> u64 {
    // `as` saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = (ns * (1.0 + 1e-9)).ceil() as u64;
    whole
}
