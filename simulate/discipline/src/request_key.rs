//! What orders requests wherever age or a deadline decides: in a [`pool`](crate::pool), and at stations of the simulator.

/// What orders requests: smaller ones go first. It is a property of the request, the same at every tier: the instant at
/// which it entered the system as a whole (oldest first), or the one at which its answer is due (earliest deadline first). All
/// requests of a queue have keys of one kind, in nanoseconds in Tailwright.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(pub u64);

impl RequestKey {
    /// The deadline of a request that entered the system at `entered` and is to be answered within `allowed`, or the last
    /// instant that there is.
    #[inline]
    #[must_use]
    pub fn due(entered: u64, allowed: u64) -> Self {
        Self(entered.saturating_add(allowed))
    }
}
