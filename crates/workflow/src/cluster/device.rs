//! Device profiles of a cluster's servers.

use crate::files::read_text;
use crate::observer::{Notice, ProgressObserver};
use model::{Cluster, Op, OperationError};
use std::path::Path;
use workload::device::StorageProfile;

/// Reads a device profile.
///
/// # Errors
///
/// When the file cannot be read or is no device profile.
pub fn read_profile(path: &Path) -> Result<StorageProfile, OperationError> {
    let text = read_text(path, "device profile")?;
    StorageProfile::from_json(&text).map_err(|error| {
        OperationError::input(format_args!("{}: {error}", path.display()))
            .hint("`tailwright profile` measures a device and writes its profile")
    })
}

/// Latency of a request on the idle storage stack, seconds: that of the slower operation.
pub fn base_latency(profile: &StorageProfile) -> f64 {
    [Op::Read, Op::Write].map(|op| profile.base_latency(op).0).into_iter().fold(0.0, f64::max)
}

/// Warns when an SLO is about a percentile beyond the one that the base latency is known at. Queueing bounds
/// hold for every request; the idle device's latency is known at one percentile only.
pub(crate) fn warn_of_percentile(
    cluster: &Cluster,
    profile: &StorageProfile,
    observer: &dyn ProgressObserver,
) {
    let Some(known) = profile.base_latency_percentile() else { return };
    if let Some(workload) = cluster.workloads.iter().find(|w| w.slo.percentile > known) {
        observer.notice(Notice::Warning(format!(
            "workload '{}' asks for {}, but the base latency of profile '{}' is known at {known} only",
            workload.name,
            workload.slo,
            profile.name()
        )));
    }
}
