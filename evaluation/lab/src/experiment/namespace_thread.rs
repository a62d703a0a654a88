//! Threads inside a host's network namespace.

use model::OperationError;
use std::thread::JoinHandle;

/// A thread whose start may fail: entering the namespace or becoming real-time.
pub(crate) type NamespaceThread<T> = JoinHandle<Result<T, OperationError>>;

/// Runs `work` on a thread that has entered the namespace and has this priority under SCHED_FIFO, if one is given.
pub(crate) fn spawn_in<T: Send + 'static>(
    netns: &str,
    priority: Option<u32>,
    work: impl FnOnce() -> T + Send + 'static,
) -> NamespaceThread<T> {
    let netns = netns.to_owned();
    std::thread::spawn(move || {
        machine::netns::enter(&netns).map_err(|error| {
            OperationError::machine(error).hint("it is made by `ip netns add`; entering it takes root")
        })?;
        if let Some(priority) = priority {
            machine::realtime::fifo(priority).map_err(|error| {
                OperationError::machine(error)
                    .hint("--no-realtime runs without real-time priority; verdicts are then often invalid")
            })?;
        }
        Ok(work())
    })
}

/// Waits for the end of a thread. A panic of the thread continues in this one.
pub(crate) fn join<T>(thread: NamespaceThread<T>) -> Result<T, OperationError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
