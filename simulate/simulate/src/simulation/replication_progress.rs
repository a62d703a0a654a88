//! Progress and interruption of replications.

use model::OperationError;
use operation::TaskProgress;
use sim::engine::ReplicationWatch;

/// Returns the error of a simulation that was interrupted before there was a result.
pub(super) fn nothing_complete() -> OperationError {
    OperationError::machine("interrupted before a replication was complete: there is nothing to show")
        .hint("fewer requests for each replication are sooner done: requests under [run]")
}

/// Position of a simulation in a series of equally long ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesPlace {
    /// Index, from 0.
    pub(super) index: usize,
    /// Length of the series.
    pub(super) count: usize,
}

/// Reports the replications of one simulation of a series as progress, and ends them when interrupted.
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
