//! What a user gives: a cluster file, or SLOs, traces and a device profile by flags. Both become one
//! [`Problem`] and go the same way from there.

mod cache;
mod cluster_file;
pub(crate) mod events;
mod footprints;
mod groups;
mod parallel;
mod scene;
mod slos;

pub(crate) use footprints::{Footprints, characterise};
pub(crate) use parallel::in_parallel;
pub(crate) use scene::{Scene, SceneArgs, Tenant};

use clap::Args;
use model::{Cluster, Op, OperationError, ServerClass};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use trace::{OpenOptions, TraceFormat};
use units::ByteRate;
use workload::device::StorageProfile;

/// The name of the one class of servers that flags describe.
const FLAG_CLASS: &str = "server";

/// Where servers, workloads and traces come from.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct InputArgs {
    /// Cluster description: servers, workloads, SLOs; paths in it are relative to it.
    #[arg(value_name = "CLUSTER.toml", conflicts_with_all = ["slos", "traces", "storage", "network", "max_servers"])]
    pub(crate) cluster: Option<PathBuf>,
    /// Workloads as CSV with the columns workload, trace, slo_percentile, slo_latency_s and, if it is
    /// there, order (of arrival); others are ignored.
    #[arg(long, value_name = "FILE.csv")]
    slos: Option<PathBuf>,
    /// Where the traces named in --slos are (default: beside that file).
    #[arg(long, value_name = "DIR", requires = "slos")]
    traces: Option<PathBuf>,
    /// Device profile of every server's storage (`tailwright profile` measures one).
    #[arg(long, value_name = "PROFILE.json", requires = "slos")]
    storage: Option<PathBuf>,
    /// Link bandwidth of every server in each direction, such as 125MB/s or 1Gbps.
    #[arg(long, value_name = "RATE", requires = "slos")]
    network: Option<ByteRate>,
    /// How many servers there are.
    #[arg(long, value_name = "N", requires = "slos")]
    max_servers: Option<NonZeroUsize>,
    /// Factor on all work for behaviour beyond the traces; 1.1 is a 10 % margin.
    #[arg(long, value_name = "FACTOR", value_parser = margin)]
    safety_margin: Option<f64>,
    /// Format of the traces (default: detected).
    #[arg(long, value_name = "FORMAT")]
    format: Option<TraceFormat>,
    /// Skip and count malformed and out-of-order requests of traces.
    #[arg(long)]
    lenient: bool,
    /// Restore the order of nearly sorted traces: a request may come this many requests late.
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    sort_window: usize,
    /// Neither use nor store results of reading traces.
    #[arg(long)]
    no_cache: bool,
}

fn margin(text: &str) -> Result<f64, String> {
    let expected = || format!("expected a factor of at least 1, such as 1.1, found '{text}'");
    text.parse().ok().filter(|m: &f64| m.is_finite() && *m >= 1.0).ok_or_else(expected)
}

/// A cluster whose files are found and whose device profiles are read.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    /// Paths are as they can be opened.
    pub(crate) cluster: Cluster,
    /// The storage of each server class.
    pub(crate) profiles: Vec<StorageProfile>,
    /// How traces are opened.
    pub(crate) options: OpenOptions,
    /// Whether results of reading traces may be reused and stored.
    pub(crate) cached: bool,
    /// The file that says what is asked, for reports.
    pub(crate) origin: PathBuf,
}

/// What flags may leave out.
#[derive(Debug, Clone, Copy)]
struct Lacking {
    /// The device profile.
    storage: bool,
    /// The number of servers, which then is this.
    servers: Option<NonZeroUsize>,
}

impl InputArgs {
    /// The same as giving this cluster file.
    pub(crate) fn of_cluster(path: PathBuf) -> Self {
        Self { cluster: Some(path), ..Self::default() }
    }

    /// The same as giving `--slos` and what belongs to it, for one server.
    pub(crate) fn of_slos(
        slos: PathBuf,
        traces: Option<PathBuf>,
        storage: Option<PathBuf>,
        network: ByteRate,
    ) -> Self {
        let max_servers = Some(NonZeroUsize::MIN);
        Self { slos: Some(slos), traces, storage, network: Some(network), max_servers, ..Self::default() }
    }

    /// Reads everything except the traces.
    pub(crate) fn load(&self) -> Result<Problem, OperationError> {
        let (cluster, origin) = self.cluster(Lacking { storage: false, servers: None })?;
        let profiles = cluster.servers.iter().map(profile).collect::<Result<Vec<_>, _>>()?;
        profiles.iter().for_each(|profile| warn_of_percentile(&cluster, profile));
        Ok(Problem { cluster, profiles, options: self.options(), cached: !self.no_cache, origin })
    }

    /// How traces are opened.
    fn options(&self) -> OpenOptions {
        OpenOptions { format: self.format, lenient: self.lenient, sort_window: self.sort_window }
    }

    /// Servers and workloads as they are described, checked.
    fn cluster(&self, lacking: Lacking) -> Result<(Cluster, PathBuf), OperationError> {
        let (mut cluster, origin) = self.described(lacking)?;
        if let Some(margin) = self.safety_margin {
            cluster.safety_margin = margin;
        }
        check(&cluster, &origin)?;
        Ok((cluster, origin))
    }

    fn described(&self, lacking: Lacking) -> Result<(Cluster, PathBuf), OperationError> {
        if let Some(path) = &self.cluster {
            return Ok((cluster_file::read(path)?, path.clone()));
        }
        let Some(slos) = &self.slos else {
            return Err(OperationError::input("no cluster given: expected a cluster file or --slos").hint(
                "write a cluster.toml (see --help), or try `tailwright demo`, which makes one to start from",
            ));
        };
        let count = self.max_servers.or(lacking.servers);
        let (Some(network), Some(count), true) =
            (self.network, count, self.storage.is_some() || lacking.storage)
        else {
            return Err(self.incomplete(lacking));
        };
        let storage = self.storage.clone().unwrap_or_default();
        let beside = || slos.parent().unwrap_or(Path::new("")).to_owned();
        let traces = self.traces.clone().unwrap_or_else(beside);
        let class = ServerClass { class: FLAG_CLASS.into(), count: count.get(), storage, network };
        let cluster = Cluster {
            safety_margin: model::DEFAULT_SAFETY_MARGIN,
            servers: vec![class],
            workloads: slos::read(slos, &traces)?,
        };
        Ok((cluster, slos.clone()))
    }
}

impl InputArgs {
    /// What --slos lacks.
    fn incomplete(&self, lacking: Lacking) -> OperationError {
        let needed = [
            ("--storage PROFILE.json", self.storage.is_some() || lacking.storage),
            ("--network RATE", self.network.is_some()),
            ("--max-servers N", self.max_servers.is_some() || lacking.servers.is_some()),
        ];
        let missing: Vec<&str> = needed.iter().filter(|(_, given)| !given).map(|(flag, _)| *flag).collect();
        OperationError::input(format_args!("--slos also needs {}", missing.join(", ")))
            .hint("a cluster file says all of it in one place; --help shows one")
    }
}

/// What the types do not rule out.
fn check(cluster: &Cluster, origin: &Path) -> Result<(), OperationError> {
    let bad = |message: String| Err(OperationError::input(format_args!("{}: {message}", origin.display())));
    if cluster.servers.iter().all(|s| s.count == 0) {
        return bad("there are no servers: expected at least one [[server]] with a count above 0".into());
    }
    if cluster.workloads.is_empty() {
        return bad("there are no workloads: expected at least one".into());
    }
    if !(cluster.safety_margin.is_finite() && cluster.safety_margin >= 1.0) {
        return bad(format!("safety_margin is {}, expected at least 1", cluster.safety_margin));
    }
    let names = |names: Vec<&str>, what: &str| {
        let mut sorted = names;
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => bad(format!("{what} '{}' is given twice; expected unique names", pair[0])),
            None => Ok(()),
        }
    };
    names(cluster.servers.iter().map(|s| s.class.as_str()).collect(), "server class")?;
    names(cluster.workloads.iter().map(|w| w.name.as_str()).collect(), "workload")
}

fn profile(class: &ServerClass) -> Result<StorageProfile, OperationError> {
    let path = &class.storage;
    let text = read_text(path, "device profile")?;
    StorageProfile::from_json(&text).map_err(|error| {
        OperationError::input(format_args!("{}: {error}", path.display()))
            .hint("`tailwright profile` measures a device and writes its profile")
    })
}

/// Latency of a request on the idle storage stack, seconds: that of the slower operation.
pub(crate) fn base_latency(profile: &StorageProfile) -> f64 {
    [Op::Read, Op::Write].map(|op| profile.base_latency(op).0).into_iter().fold(0.0, f64::max)
}

/// Queueing bounds hold for every request; the idle device's latency is known at one percentile only.
fn warn_of_percentile(cluster: &Cluster, profile: &StorageProfile) {
    let Some(known) = profile.base_latency_percentile() else { return };
    if let Some(workload) = cluster.workloads.iter().find(|w| w.slo.percentile > known) {
        eprintln!(
            "warning: workload '{}' asks for {}, but the base latency of profile '{}' is known at {known} only",
            workload.name,
            workload.slo,
            profile.name()
        );
    }
}

/// A file of text that the user named.
pub(crate) fn read_text(path: &Path, what: &str) -> Result<String, OperationError> {
    std::fs::read_to_string(path).map_err(|error| {
        OperationError::input(format_args!("{}: cannot read the {what}: {error}", path.display()))
            .hint("check the path and its permissions")
    })
}
