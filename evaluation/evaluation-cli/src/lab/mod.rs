//! `tailwright lab`: hosts, servers and an emulated SSD on one machine, and experiments with them.

mod cluster;
pub(crate) mod cluster_text;
mod device;
mod experiment;
pub(crate) mod experiment_page;
pub(crate) mod experiment_text;
mod stand;

use clap::{Args, Subcommand};
use cli::exit::VerbAnswer;
pub(crate) use experiment::LabRunDocument;
use model::OperationError;
pub(crate) use stand::{LabDocument, RemovedLabDocument};

const HELP: &str = "\
Examples:
  tailwright lab run                 the experiments that there are
  tailwright lab up memcached ssd
  tailwright lab status
  tailwright lab run policies
  tailwright lab cluster --dry-run
  tailwright lab down

Exit codes: 0 done, or yes; 1 the answer is no; 2 bad input; 3 without root or a program, or after a signal ended it.";

/// Hosts, servers and an emulated SSD on one machine, and experiments with them
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct LabArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Up(stand::UpArgs),
    Status(stand::StatusArgs),
    Down(stand::DownArgs),
    Device(device::DeviceArgs),
    Cluster(cluster::ClusterRunArgs),
    Run(experiment::RunArgs),
}

impl LabArgs {
    /// Returns true if the verb runs until it is stopped.
    pub fn is_service(&self) -> bool {
        matches!(self.what, What::Device(_))
    }
}

pub fn run(args: &LabArgs) -> Result<VerbAnswer, OperationError> {
    match &args.what {
        What::Up(args) => stand::up(args),
        What::Status(args) => stand::status(args),
        What::Down(args) => stand::down(args),
        What::Run(args) => experiment::run(args),
        What::Device(args) => device::run(args),
        What::Cluster(args) => cluster::run(args),
    }
}
