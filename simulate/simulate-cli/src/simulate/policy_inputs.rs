//! Sources of the traces and devices of a policy.

use clap::Args;
use model::{OperationError, Policy};
use plan::cluster::{ClusterDescription, ClusterSource, SloTableSource};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use units::ByteRate;

/// Sources of the traces and devices of a policy.
#[derive(Debug, Args)]
pub(crate) struct PolicyInputArgs {
    /// For a policy: the cluster that it was planned for.
    #[arg(long, value_name = "CLUSTER.toml", conflicts_with_all = ["slos", "traces", "storage", "network", "channels"])]
    cluster: Option<PathBuf>,
    /// Workloads as CSV, as `plan` takes them: those of a policy, with their traces.
    #[arg(long, value_name = "FILE.csv", requires = "storage")]
    slos: Option<PathBuf>,
    /// Folder of the traces named in --slos (default: beside that file).
    #[arg(long, value_name = "FOLDER", requires = "slos")]
    traces: Option<PathBuf>,
    /// Device profile of the storage of every server.
    #[arg(long, value_name = "PROFILE.json", requires = "slos")]
    storage: Option<PathBuf>,
    /// Link bandwidth of every server (default: that of the policy).
    #[arg(long, value_name = "RATE", requires = "slos")]
    network: Option<ByteRate>,
    /// Number of requests that a device serves at a time (default: what its profile says, or what the policy assumes).
    #[arg(long, value_name = "N", requires = "slos")]
    channels: Option<u32>,
}

impl PolicyInputArgs {
    /// Returns true if any source is given.
    pub(crate) fn is_given(&self) -> bool {
        self.cluster.is_some() || self.slos.is_some()
    }

    /// Returns true if a cluster file describes the servers of a class, best effort included.
    pub(crate) fn has_class(&self) -> bool {
        self.cluster.is_some()
    }

    /// The cluster that the policy was planned for.
    pub(crate) fn source(&self, policy: &Policy) -> Result<ClusterSource, OperationError> {
        if let Some(cluster) = &self.cluster {
            return Ok(ClusterSource::new(ClusterDescription::File(cluster.clone())));
        }
        let Some(slos) = &self.slos else {
            return Err(OperationError::input("a policy does not say where its traces are")
                .hint("add --cluster CLUSTER.toml, or --slos FILE.csv and --storage PROFILE.json"));
        };
        let planned = policy.servers.first();
        let planned = planned.and_then(|server| ByteRate::from_bytes_per_sec(server.network_bytes_per_s));
        let network = self.network.or(planned).ok_or_else(|| {
            OperationError::input("the policy has no server with a network").hint("add --network RATE")
        })?;
        Ok(ClusterSource::new(ClusterDescription::SloTable(SloTableSource {
            slos: slos.clone(),
            traces: self.traces.clone(),
            storage: self.storage.clone(),
            network,
            servers: NonZeroUsize::MIN,
            channels: self.channels,
            best_effort_request: None,
        })))
    }
}
