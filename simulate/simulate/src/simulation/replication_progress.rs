//! Replications of simulations as progress, and their end before they are complete.

use model::OperationError;
use operation::TaskProgress;
use sim::engine::ReplicationWatch;

/// The error of a simulation that was interrupted before there was anything to show.
pub(super) fn nothing_complete() -> OperationError {
    OperationError::machine("interrupted before a replication was complete: there is nothing to show")
        .hint("fewer requests for each replication are sooner done: requests under [run]")
}

/// Which simulation of several that take equally long.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesPlace {
    /// Its number, from 0.
    pub(super) index: usize,
    /// How many there are.
    pub(super) count: usize,
}

/// Shows replications of one simulation of several as progress, and ends them.
pub(super) struct ReplicationProgress<'a> {
    pub(super) task: &'a dyn TaskProgress,
    pub(super) interrupted: &'a (dyn Fn() -> bool + Sync),
    pub(super) place: SeriesPlace,
}

impl ReplicationWatch for ReplicationProgress<'_> {
    fn replications_done(&self, done: usize, wanted: usize) {
        let SeriesPlace { index, count } = self.place;
        self.task.update((index * wanted + done) as u64, (count * wanted) as u64);
    }

    fn is_interrupted(&self) -> bool {
        (self.interrupted)()
    }
}
