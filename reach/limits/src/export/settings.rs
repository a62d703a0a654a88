//! Settings of an export, and the limits of a plan that it converts.

use super::formats::{DriverRow, ExportFormat};
use units::Bytes;
use workload::device::StorageProfile;

/// Settings of an export.
#[derive(Debug, Clone)]
pub struct ExportSettings {
    pub format: ExportFormat,
    /// Device, image or interface in the format.
    pub device: String,
    /// Server, if the policy has several.
    pub server: Option<String>,
    /// Device profile that the plan was made with.
    pub profile: StorageProfile,
    /// Size of requests for which limits are converted.
    pub request: Bytes,
    /// Share of reads, for formats whose ceilings are for one direction.
    pub read_share: f64,
    /// Driver of attribute classes.
    pub driver: DriverRow,
    /// Maximum number of attribute classes.
    pub classes: Option<usize>,
}

/// Limit of a workload at the stage of the format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedLimit {
    pub(crate) name: String,
    /// Name that the format has for the workload: letters of file names only.
    pub(crate) tenant: String,
    pub(crate) priority: u32,
    /// Fraction of the capacity.
    pub(crate) rate: f64,
    /// Burst of the workload, seconds of capacity.
    pub(crate) burst: f64,
    /// Rate in base units of the stage.
    pub(crate) rate_per_s: f64,
    /// Bucket of an enforcer in base units of the stage.
    pub(crate) bucket_work: f64,
}
