//! What could not be joined, as numbers that stand beside the percentiles.

/// How often something could not be joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JoinCounts {
    /// Requests that were read and for which no answer was seen.
    pub unanswered: u64,
    /// Answers to nothing that was seen: of requests before the observation began, or that nobody asked for.
    pub unrequested: u64,
    /// Reads of bytes whose arrival was not seen.
    pub unseen_arrivals: u64,
    /// Requests that were open when the kernel could not report events, or read together with bytes whose arrival was
    /// not seen.
    pub discarded: u64,
    /// How often the kernel could not report events, each time one or more.
    pub gaps: u64,
    /// Requests whose protocol leaves them without an answer.
    pub one_way: u64,
    /// Requests that said nothing but bad news was to be answered, and had none.
    pub silent: u64,
    /// How often the messages of a connection could not be told apart any more: bytes that were not seen, or that are
    /// not of the protocol.
    pub untold: u64,
    /// Requests whose bytes the server has taken by calls that are not seen, as far as clients end them with PSH.
    pub unseen_reads: u64,
    /// Of these, those that came by MPTCP.
    pub multipath: u64,
}

impl JoinCounts {
    /// The sum of each of the two counts.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        self.with_each(other, |a, b| a + b)
    }

    /// What was added since these counts.
    #[must_use]
    pub(crate) fn since(self, before: Self) -> Self {
        self.with_each(before, |a, b| a - b)
    }

    fn with_each(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            unanswered: combine(self.unanswered, other.unanswered),
            unrequested: combine(self.unrequested, other.unrequested),
            unseen_arrivals: combine(self.unseen_arrivals, other.unseen_arrivals),
            discarded: combine(self.discarded, other.discarded),
            gaps: combine(self.gaps, other.gaps),
            one_way: combine(self.one_way, other.one_way),
            silent: combine(self.silent, other.silent),
            untold: combine(self.untold, other.untold),
            unseen_reads: combine(self.unseen_reads, other.unseen_reads),
            multipath: combine(self.multipath, other.multipath),
        }
    }
}
