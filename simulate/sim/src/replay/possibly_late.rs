//! Whether the requests that may be late are enough for a percentile to exceed its budget. Where they are not, nothing has to be
//! replayed; and a replay can end as soon as those that are left are not.

use super::run::ReplayedStretch;
use super::trace::ReplayTrace;

/// A stream of which some requests may be late.
#[derive(Debug, Clone, Copy)]
pub(super) struct LateStream<'a> {
    pub(super) trace: &'a ReplayTrace,
    /// When its first period begins, nanoseconds.
    pub(super) offset: u64,
    /// The latency above which a request is late, nanoseconds.
    pub(super) budget: u64,
    /// How many of its requests may be late while its percentile is within the budget.
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
    /// How many arrive in each stretch; empty where nobody asks about the stream.
    arrivals: Vec<usize>,
    /// How many arrive in stretches to come.
    ahead: usize,
    late: usize,
    allowed: usize,
}

impl PossiblyLate {
    /// These streams in stretches of time, before any of these is replayed; `None` for a stream about which
    /// nobody asks.
    pub(super) fn new<'a>(
        streams: impl Iterator<Item = Option<LateStream<'a>>>,
        stretches: &[ReplayedStretch],
    ) -> Self {
        let streams = streams.map(|stream| {
            stream.map_or_else(LateCount::default, |stream| LateCount::before_any(stream, stretches))
        });
        Self { streams: streams.collect() }
    }

    /// Whether a percentile may depend on the next stretch, which has this number. Of which streams the latencies in it still
    /// count, `depends_on` says.
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
