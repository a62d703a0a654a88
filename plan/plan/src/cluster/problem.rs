//! A planning problem: a cluster whose files are found and whose device profiles are read.

use crate::cluster::device::{warn_of_channels, warn_of_namesakes, warn_of_percentile};
use crate::cluster::source::ClusterSource;
use model::{Cluster, OperationError};
use operation::ProgressObserver;
use std::path::PathBuf;
use trace::OpenOptions;
use workload::device::StorageProfile;
use workload::profile_file::read_profile;

/// A cluster whose files are found and whose device profiles are read.
#[derive(Debug, Clone)]
pub struct ClusterProblem {
    /// Servers and workloads, with paths as they can be opened.
    pub cluster: Cluster,
    /// The storage of each server class.
    pub profiles: Vec<StorageProfile>,
    pub options: OpenOptions,
    /// True if cached footprints may be read and stored.
    pub cached: bool,
    /// The file that says what is asked, for reports.
    pub origin: PathBuf,
}

impl ClusterProblem {
    /// Reads everything except the traces.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or is not what it should be.
    pub fn read(source: &ClusterSource, observer: &dyn ProgressObserver) -> Result<Self, OperationError> {
        let cluster = source.read()?;
        let profiles = cluster.servers.iter().map(|class| read_profile(&class.storage));
        let profiles = profiles.collect::<Result<Vec<_>, _>>()?;
        warn_of_namesakes(&profiles, observer);
        for profile in &profiles {
            warn_of_percentile(&cluster, profile, observer);
        }
        warn_of_channels(&cluster, &profiles, observer);
        let origin = source.origin().to_owned();
        Ok(Self { cluster, profiles, options: source.options.clone(), cached: source.cached, origin })
    }
}
