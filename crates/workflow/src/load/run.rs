//! Workloads of a load file, played.

use super::summary::doubts;
use crate::observer::{Notice, ProgressObserver};
use ::load::{Options, Progress, Ran, Workload};
use model::OperationError;
use std::sync::atomic::AtomicBool;

/// Sends the requests of these workloads to their servers, and tells the observer what the reader of the figures
/// should know. When `stop` becomes true, the run ends with what there is.
///
/// # Errors
///
/// When a server, a namespace or a permission is missing.
pub fn play_load(
    workloads: Vec<Workload>,
    options: &Options,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
    observer: &dyn ProgressObserver,
) -> Result<Ran, OperationError> {
    let ran = ::load::run(workloads, options, progress, stop)?;
    for warning in ran.warnings.iter().cloned().chain(doubts(&ran)) {
        observer.notice(Notice::Warning(warning));
    }
    Ok(ran)
}
