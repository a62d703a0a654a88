//! Logs of HdrHistogram, one per workload.

use crate::text::free_file_name;
use ::load::{LoadReport, write_intervals};
use machine::whole_file;
use model::OperationError;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};
use units::Nanos;

/// Time between two entries of a log.
const INTERVAL: Nanos = Nanos(1_000_000_000);

/// Writes a log per workload to a folder, which is there. Its absolute times are those of a run that ended at
/// `end`.
///
/// # Errors
///
/// When a log cannot be written.
pub fn write_interval_logs(
    folder: &Path,
    report: &LoadReport,
    end: SystemTime,
) -> Result<(), OperationError> {
    let start = end - Duration::from_nanos(report.observed_duration.0);
    let mut taken = BTreeSet::new();
    for (index, name) in (0..).zip(&report.observations.workloads) {
        let path = folder.join(format!("{}.hlog", free_file_name(name, &mut taken)));
        let mut text = Vec::new();
        write_intervals(&mut text, &report.observations, index, INTERVAL, start)
            .and_then(|()| whole_file::write(&path, &text))
            .map_err(|error| {
                OperationError::machine(format_args!("cannot write {}: {error}", path.display()))
                    .hint("choose another place")
            })?;
    }
    Ok(())
}
