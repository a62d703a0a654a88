//! Order of requests by age or deadline: in a [`pool`](crate::pool), and at stations of the simulator.

/// Sort key of a request; smaller keys go first. It is a property of the request, the same at every tier: the
/// instant at which it entered the whole system (oldest first), or its deadline (earliest deadline first).
/// All requests of a queue have keys of one kind, in nanoseconds in Tailwright.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(pub u64);

impl RequestKey {
    /// Returns the deadline of a request that entered the system at `entered` and is to be answered within
    /// `allowed`; saturates at the last instant.
    #[inline]
    #[must_use]
    pub fn due(entered: u64, allowed: u64) -> Self {
        Self(entered.saturating_add(allowed))
    }
}
