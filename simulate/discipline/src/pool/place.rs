//! Where requests of a pool can be.

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolPlace {
    /// It may not run yet, or not yet again.
    Waiting,
    /// It runs and counts towards the limit.
    Serving,
    /// It was displaced by an older one.
    Demoted,
    /// It waits for something other than a CPU.
    Blocked,
    /// It runs and does not count any more.
    Overdue,
    /// It was seen to sleep, and does not count until it is seen to be awake.
    Asleep,
}

/// How many places there are.
pub(super) const PLACES: usize = 6;

/// How many requests are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolCounts {
    /// Those that may not run yet, or not yet again.
    pub waiting: usize,
    /// Those that run and count towards the limit.
    pub serving: usize,
    /// Those that were displaced by older ones.
    pub demoted: usize,
    /// Those that wait for something other than a CPU.
    pub blocked: usize,
    /// Those that run and do not count any more.
    pub overdue: usize,
    /// Those that were seen to sleep and do not count until they are seen to be awake.
    pub asleep: usize,
}
