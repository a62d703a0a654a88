//! Options of a prediction: cluster, class of servers, and groups that may burst together.

use crate::arguments::calibration::CalibrationArgs;
use crate::arguments::cluster::{ClusterArgs, MayLack};
use clap::Args;
use model::OperationError;
use plan::prediction::{PredictionSource, ProcedureName};
use std::path::{Path, PathBuf};

/// Sources of servers, workloads and traces, and the stages of requests.
#[derive(Debug, Clone, Args)]
pub(crate) struct PredictionArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// The class of server (default: the first in the cluster file).
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Requests pass a network link alone, in both directions, and no storage.
    #[arg(long)]
    link_only: bool,
    /// Workloads that may burst together: a table with the columns workload and group, or one group per
    /// line, or JSON arrays of names. All others are independent.
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// For servers that interrupt what they have begun: predictions as published formulas have them. No real server does:
    /// such predictions are for comparison.
    #[arg(long)]
    preemptive: bool,
    #[command(flatten)]
    calibration: CalibrationArgs,
}

impl PredictionArgs {
    /// The source that these flags describe, for these procedures.
    pub(crate) fn source(&self, procedures: &[ProcedureName]) -> Result<PredictionSource, OperationError> {
        let source = prediction_source(&self.cluster, self.groups.as_deref(), self.link_only)?;
        let calibration = self.calibration.goal_for(procedures)?;
        let preemptive = self.preemptive;
        Ok(PredictionSource { class: self.class.clone(), preemptive, calibration, ..source })
    }
}

/// The source of a prediction for the first class of servers. Flags that name no number of servers mean one.
pub(crate) fn prediction_source(
    cluster: &ClusterArgs,
    groups: Option<&Path>,
    link_only: bool,
) -> Result<PredictionSource, OperationError> {
    let cluster = cluster.source(MayLack { storage: link_only, servers: true })?;
    let groups = groups.map(Path::to_owned);
    Ok(PredictionSource { link_only, groups, ..PredictionSource::new(cluster) })
}
