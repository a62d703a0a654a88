//! One kind of server with the traffic of every workload, for predictions.

use super::parallel::in_parallel;
use super::{InputArgs, Lacking, base_latency, groups, profile, warn_of_percentile};
use clap::Args;
use model::{CircularTrace, Job, OperationError, WorkloadSpec};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;
use trace::OpenOptions;
use units::{ByteRate, Seconds};
use workload::device::{NetworkModel, PathWork, StorageProfile};

/// Where servers, workloads and traces come from, and what requests pass.
#[derive(Debug, Clone, Args)]
pub(crate) struct SceneArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
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
}

/// A workload and its requests.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) spec: WorkloadSpec,
    /// Tenants of the same group may burst together.
    pub(crate) group: usize,
    pub(crate) traffic: CircularTrace<Job>,
}

/// A kind of server and who may share one.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) class: String,
    /// How many servers there are.
    pub(crate) count: usize,
    pub(crate) network: ByteRate,
    /// `None` for a link alone.
    pub(crate) profile: Option<StorageProfile>,
    pub(crate) safety_margin: f64,
    pub(crate) tenants: Vec<Tenant>,
    /// The file that says what is asked, for reports.
    pub(crate) origin: PathBuf,
}

impl SceneArgs {
    /// The servers and workloads of a plan.
    pub(crate) fn for_plan(input: &InputArgs, groups: Option<&std::path::Path>) -> Self {
        Self { input: input.clone(), class: None, link_only: false, groups: groups.map(Into::into) }
    }

    /// One server that all workloads share.
    pub(crate) fn for_explain(input: &InputArgs, groups: Option<&std::path::Path>, link_only: bool) -> Self {
        Self { link_only, ..Self::for_plan(input, groups) }
    }

    /// Reads everything, the traces in parallel. Flags that name no number of servers mean one.
    pub(crate) fn load(&self) -> Result<Scene, OperationError> {
        let start = Instant::now();
        let lacking = Lacking { storage: self.link_only, servers: Some(NonZeroUsize::MIN) };
        let (cluster, origin) = self.input.cluster(lacking)?;
        let class = match &self.class {
            None => cluster.servers.iter().find(|class| class.count > 0),
            Some(name) => cluster.servers.iter().find(|class| class.class == *name),
        };
        let class = class.ok_or_else(|| self.unknown_class(&cluster))?.clone();
        if self.class.is_none() && cluster.servers.iter().filter(|class| class.count > 0).count() > 1 {
            eprintln!("note: predictions are for class '{}'; other classes are left out", class.class);
        }
        let profile = if self.link_only { None } else { Some(profile(&class)?) };
        if let Some(profile) = &profile {
            warn_of_percentile(&cluster, profile);
        }
        let names: Vec<&str> = cluster.workloads.iter().map(|w| w.name.as_str()).collect();
        let group_of = match &self.groups {
            Some(path) => groups::read(path, &names)?,
            None => (0..names.len()).collect(),
        };
        let (network, margin) = (NetworkModel::default(), cluster.safety_margin);
        let path = PathWork::new(network, class.network, profile.as_ref(), margin);
        let options = self.input.options();
        let traffic =
            in_parallel("reading traces", &cluster.workloads, |spec| read(spec, path.clone(), &options))?;
        let requests: usize = traffic.iter().map(|(traffic, _)| traffic.items().len()).sum();
        let elapsed = Seconds(start.elapsed().as_secs_f64());
        eprintln!("traces: {} read, {requests} requests in {elapsed}", traffic.len());
        let tenants = cluster.workloads.into_iter().zip(traffic).zip(group_of);
        let tenants = tenants.map(|((spec, (traffic, skipped)), group)| {
            if skipped > 0 {
                eprintln!("warning: {}: {skipped} requests skipped", spec.trace.display());
            }
            Tenant { spec, group, traffic }
        });
        Ok(Scene {
            class: class.class,
            count: class.count,
            network: class.network,
            safety_margin: cluster.safety_margin,
            tenants: tenants.collect(),
            profile,
            origin,
        })
    }

    fn unknown_class(&self, cluster: &model::Cluster) -> OperationError {
        let names: Vec<&str> = cluster.servers.iter().map(|class| class.class.as_str()).collect();
        let class = self.class.as_deref().unwrap_or("with servers");
        OperationError::input(format_args!(
            "there is no server class '{class}': expected one of {}",
            names.join(", ")
        ))
    }
}

/// A workload's traffic on its path, and how many malformed requests were passed over.
fn read(
    spec: &WorkloadSpec,
    mut path: PathWork,
    options: &OpenOptions,
) -> Result<(CircularTrace<Job>, u64), OperationError> {
    let wrong = |error: trace::TraceError| OperationError::input(&error).hint(error.hint());
    let mut reader = trace::open(&spec.trace, options).map_err(wrong)?;
    let mut jobs = Vec::new();
    for request in reader.by_ref() {
        jobs.push(path.job(&request.map_err(wrong)?));
    }
    let traffic = CircularTrace::repeating(jobs);
    let traffic =
        traffic.map_err(|error| OperationError::input(format_args!("{}: {error}", spec.trace.display())))?;
    Ok((traffic, reader.skipped()))
}

impl Scene {
    /// Latency of a request on the idle storage stack, seconds; added to every prediction.
    pub(crate) fn base_latency(&self) -> f64 {
        self.profile.as_ref().map_or(0.0, base_latency)
    }
}
