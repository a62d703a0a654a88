//! Places of requests in a pool, and counts by place.

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
    /// A look found it sleeping; it does not count until a look finds it awake.
    Asleep,
}

/// Number of variants of [`PoolPlace`].
pub(super) const PLACES: usize = 6;

/// Number of requests in each place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolCounts {
    /// Requests that may not run yet, or not yet again.
    pub waiting: usize,
    /// Requests that run and count towards the limit.
    pub serving: usize,
    /// Requests that were displaced by older ones.
    pub demoted: usize,
    /// Requests that wait for something other than a CPU.
    pub blocked: usize,
    /// Requests that run and do not count any more.
    pub overdue: usize,
    /// Requests that were found sleeping and do not count until found awake.
    pub asleep: usize,
}
