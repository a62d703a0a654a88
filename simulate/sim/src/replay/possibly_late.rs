//! Early decision on percentiles: if too few requests may be late for a percentile to exceed its budget,
//! nothing is replayed. A replay ends as soon as that holds for the remaining requests.

use super::run::ReplayedStretch;
use super::trace::ReplayTrace;

/// A stream some of whose requests may be late.
#[derive(Debug, Clone, Copy)]
pub(super) struct LateStream<'a> {
    pub(super) trace: &'a ReplayTrace,
    /// When its first period begins, nanoseconds.
    pub(super) offset: u64,
    /// The latency above which a request is late, nanoseconds.
    pub(super) budget: u64,
    /// Number of its requests that may be late while its percentile is within the budget.
    pub(super) allowed: usize,
}

/// The requests that are late, and those that still may be, while stretches of time are replayed one after the other.
#[derive(Debug)]
pub(super) struct PossiblyLate {
    streams: Vec<LateCount>,
}

/// The requests of a stream that are late.
#[derive(Debug, Default)]
struct LateCount {
    /// Arrivals in each stretch; empty for a stream without a question.
    arrivals: Vec<usize>,
    /// Arrivals in stretches to come.
    ahead: usize,
    late: usize,
    allowed: usize,
}

impl PossiblyLate {
    /// Prepares the streams before any stretch is replayed; `None` for a stream without a question.
    pub(super) fn new<'a>(
        streams: impl Iterator<Item = Option<LateStream<'a>>>,
        stretches: &[ReplayedStretch],
    ) -> Self {
        let streams = streams.map(|stream| {
            stream.map_or_else(LateCount::default, |stream| LateCount::before_any(stream, stretches))
        });
        Self { streams: streams.collect() }
    }

    /// Returns true if a percentile may depend on the next stretch, number `stretch`. `depends_on` returns
    /// true for streams whose latencies in it still count.
    pub(super) fn matters(&mut self, stretch: usize, mut depends_on: impl FnMut(usize) -> bool) -> bool {
        let mut matters = false;
        for (stream, LateCount { arrivals, ahead, late, allowed }) in self.streams.iter_mut().enumerate() {
            let Some(&arrivals) = arrivals.get(stretch) else { continue };
            matters = matters || (arrivals > 0 && *late + *ahead > *allowed && depends_on(stream));
            *ahead -= arrivals;
        }
        matters
    }

    /// Counts a request of this stream as late.
    pub(super) fn add_late(&mut self, stream: usize) {
        self.streams[stream].late += 1;
    }
}

impl LateCount {
    fn before_any(stream: LateStream<'_>, stretches: &[ReplayedStretch]) -> Self {
        let LateStream { trace, offset, budget, allowed } = stream;
        let mut arrivals = Vec::with_capacity(stretches.len());
        for &ReplayedStretch { first, end, longest, .. } in stretches {
            let is_late = longest > budget;
            let count =
                if is_late { trace.position(end - offset) - trace.position(first - offset) } else { 0 };
            arrivals.push(usize::try_from(count).expect("fits the address space"));
        }
        let ahead = arrivals.iter().sum();
        Self { arrivals, ahead, late: 0, allowed }
    }
}
