//! Effort of the searches of [`placement`](crate::placement) and [`packing`](crate::packing).

/// Effort of a search for few servers after a first assignment was found.
///
/// Effort is counted in evaluations of one server, not in time, so that the same effort gives the same answer on
/// every machine. An evaluation chooses limits (placement) or asks the admission procedure (packing).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchEffort {
    /// The first assignment is the answer.
    FirstFound,
    /// The search improves on the first assignment until it has spent this many evaluations.
    Evaluations(u64),
    /// The search goes on until it has nothing left to try.
    Exhaustive,
}

impl SearchEffort {
    /// The usual effort of a placement: a fraction of a second for dozens of workloads, seconds for a thousand.
    pub fn for_workloads(count: usize) -> Self {
        Self::Evaluations(300 + 10 * count as u64)
    }

    /// The number of evaluations after which the search has to end.
    pub fn evaluations_max(self) -> u64 {
        match self {
            Self::FirstFound => 0,
            Self::Evaluations(evaluations) => evaluations,
            Self::Exhaustive => u64::MAX,
        }
    }
}
