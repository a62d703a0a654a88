//! A policy in the formats of other enforcers, with what they cannot express and the bound that is left.
//!
//! A limit in device time becomes ceilings in requests and in bytes per second for one size of request: smaller requests
//! are held by the first, larger ones by the second. They are rounded up, so that a workload within its limit is
//! within the ceilings as well. The bound is recomputed from what the format really lets through: its own buckets, and
//! service in the order of arrival where it has no priorities.
//!
//! Not covered: stages that a format does not reach. Their part of the bound is that of the plan, and holds only if
//! something enforces them.

mod bound;
mod classes;
mod formats;
mod rows;
mod settings;
mod write;

pub use bound::ExportedBound;
pub use formats::{DRIVERS, EXPORT_FORMATS, ExportFormat};
pub use settings::ExportSettings;
pub use write::ExportedFile;

use crate::limit::FoundLimit;
use model::{OperationError, Policy};

/// Policy in another format.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// Server whose limits these are.
    pub server: String,
    /// Limits as the format enforces them.
    pub limits: Vec<FoundLimit>,
    pub files: Vec<ExportedFile>,
    /// Sentences about what is lost.
    pub lost: Vec<String>,
    /// Workloads with their bounds, in the order of the policy.
    pub bounds: Vec<ExportedBound>,
}

/// Writes the limits of one server in another format, and recomputes the bounds.
///
/// # Errors
///
/// When the policy counts client hosts, has several servers and none is named, or the server has no limits at the stage of the format.
pub fn export(policy: &Policy, settings: &ExportSettings) -> Result<Export, OperationError> {
    if !policy.hosts.is_empty() {
        return Err(OperationError::input(
            "the policy counts the links of client hosts, whose limits no other format here expresses",
        )
        .hint("`tailwright apply` enforces them; plan without [[host]] to export limits of servers"));
    }
    let server = rows::server_of(policy, settings)?;
    let planned = rows::planned(policy, server, settings.format.stage);
    if planned.is_empty() {
        let stage = settings.format.stage;
        return Err(OperationError::input(format_args!("server '{server}' has no limits at {stage}")).hint(
            "a format of the other stage may have some: network is `--enforcer tc`, storage all others",
        ));
    }
    let (limits, mut lost) = rows::rows(&planned, settings);
    lost.extend(settings.format.lost.iter().map(|sentence| (*sentence).to_owned()));
    let bounds = bound::bounds(policy, &planned, &limits, settings);
    let files = write::files(&limits, settings);
    Ok(Export { server: server.to_owned(), limits, files, lost, bounds })
}
