//! Logs of HdrHistogram, one per workload.

use ::load::{LoadReport, write_intervals};
use machine::whole_file;
use model::OperationError;
use operation::text::free_file_name;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use units::Nanos;

/// Time between two entries of a log.
const INTERVAL: Nanos = Nanos(1_000_000_000);

/// The paths of the logs of workloads with these names in a folder.
pub fn interval_log_paths<'a>(folder: &Path, names: impl IntoIterator<Item = &'a str>) -> Vec<PathBuf> {
    let mut taken = BTreeSet::new();
    let path = |name| folder.join(format!("{}.hlog", free_file_name(name, &mut taken)));
    names.into_iter().map(path).collect()
}

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
    let names = report.observations.workloads.iter().map(String::as_str);
    for (index, path) in (0..).zip(interval_log_paths(folder, names)) {
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
