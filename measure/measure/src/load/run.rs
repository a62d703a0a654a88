//! Workloads of a load file, played.

use crate::load::summary::doubts;
use ::load::{LoadOptions, LoadProgress, LoadReport, LoadWorkload};
use model::OperationError;
use operation::{Notice, ProgressObserver};
use std::sync::atomic::AtomicBool;

/// Sends the requests of these workloads to their servers, and tells the observer what the reader of the figures
/// should know. When `stop` becomes true, the run ends with what there is.
///
/// # Errors
///
/// When a server, a namespace or a permission is missing.
pub fn play_load(
    workloads: Vec<LoadWorkload>,
    options: &LoadOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(LoadProgress),
    observer: &dyn ProgressObserver,
) -> Result<LoadReport, OperationError> {
    let report = ::load::run(workloads, options, progress, stop)?;
    for warning in report.warnings.iter().cloned().chain(doubts(&report)) {
        observer.notice(Notice::Warning(warning));
    }
    Ok(report)
}
