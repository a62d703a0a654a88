//! Work on several traces at once.

use crate::observer::ProgressObserver;
use model::OperationError;

/// Runs the jobs on all CPUs, as a task of the observer. Returns the error of the first failing job in
/// order, independent of timing.
pub fn in_parallel<J: Sync, T: Send>(
    observer: &dyn ProgressObserver,
    task: &str,
    jobs: &[J],
    run: impl Fn(&J) -> Result<T, OperationError> + Sync,
) -> Result<Vec<T>, OperationError> {
    let progress = observer.begin(task, jobs.len() as u64, "traces");
    machine::parallel::try_map(jobs, run, || progress.advance())
}
