//! Work on several traces at once.

use crate::observer::ProgressObserver;
use model::OperationError;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs the jobs on all cores, as a task of the observer. The error reported is that of the first job that
/// fails, whatever the timing: jobs start in order, so all before it have been started.
pub(crate) fn in_parallel<J: Sync, T: Send>(
    observer: &dyn ProgressObserver,
    task: &str,
    jobs: &[J],
    run: impl Fn(&J) -> Result<T, OperationError> + Sync,
) -> Result<Vec<T>, OperationError> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    let progress = observer.begin(task, jobs.len() as u64, "traces");
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    let result = run(job);
                    if result.is_err() {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    results.lock().expect("no job panics").insert(number, result);
                    progress.advance();
                }
            });
        }
    });
    drop(progress);
    results.into_inner().expect("no job panics").into_values().collect()
}
