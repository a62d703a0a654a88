//! Work on several traces at once.

use crate::terminal;
use model::OperationError;

/// Runs the jobs on all CPUs with a progress bar. The error is that of the first job that fails, whatever the timing.
pub(crate) fn in_parallel<J: Sync, T: Send>(
    what: &str,
    jobs: &[J],
    run: impl Fn(&J) -> Result<T, OperationError> + Sync,
) -> Result<Vec<T>, OperationError> {
    let bar = terminal::progress(jobs.len() as u64, what, "traces");
    let results = machine::parallel::try_map(jobs, run, || bar.inc(1));
    bar.finish_and_clear();
    results
}
