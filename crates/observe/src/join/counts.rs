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
}
