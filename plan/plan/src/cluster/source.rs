//! A cluster comes from a cluster file, or from a table of SLOs and one class of servers. Both become one
//! [`Cluster`] and go the same way from there.

use crate::cluster::hosts::{PACKET_MIN, check_hosts};
use crate::cluster::prices::check_prices;
use crate::cluster::rules::check_rules;
use crate::cluster::{file, slo_table};
use model::{CHANNELS_MAX, Cluster, NAME_EXPECTED, OperationError, ServerClass, is_usable_name};
use operation::files::check_apart;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use trace::{OpenOptions, TracePlace};
use units::{ByteRate, Bytes};

/// The name of the one class of servers beside a table of SLOs.
const ONLY_CLASS: &str = "server";

/// Description of a cluster, and options of reading its traces.
#[derive(Debug, Clone)]
pub struct ClusterSource {
    pub description: ClusterDescription,
    /// Factor on all work, at least 1, instead of the described one.
    pub safety_margin: Option<f64>,
    pub options: OpenOptions,
    /// True if cached footprints may be read and stored.
    pub cached: bool,
    /// Output files, which must differ from all input files.
    pub results: Vec<PathBuf>,
}

/// Description of servers and workloads.
#[derive(Debug, Clone)]
pub enum ClusterDescription {
    /// A file of TOML or JSON has everything; paths in it are relative to it.
    File(PathBuf),
    /// The same as JSON that is no file.
    Json(ClusterText),
    /// A CSV table has the workloads, and all servers are alike.
    SloTable(SloTableSource),
}

/// A description in JSON, from a program.
#[derive(Debug, Clone)]
pub struct ClusterText {
    /// Its name in messages.
    pub origin: PathBuf,
    /// The fields of a cluster file.
    pub text: String,
    /// The folder that its paths are relative to.
    pub folder: PathBuf,
}

/// A table of SLOs and the servers that go with it.
#[derive(Debug, Clone)]
pub struct SloTableSource {
    /// A CSV file with the columns workload, trace, slo_percentile, slo_latency_s and perhaps order.
    pub slos: PathBuf,
    /// The folder of the traces that the table names; beside the table by default.
    pub traces: Option<PathBuf>,
    /// The device profile of every server; `None` where requests pass no storage.
    pub storage: Option<PathBuf>,
    /// Link bandwidth of every server in each direction.
    pub network: ByteRate,
    pub servers: NonZeroUsize,
    /// Requests that a device serves at a time; overrides its profile.
    pub channels: Option<u32>,
    /// The largest best-effort request, instead of what is usual.
    pub best_effort_request: Option<Bytes>,
}

impl ClusterSource {
    /// A cluster that is read as it is described, with footprints reused.
    pub fn new(description: ClusterDescription) -> Self {
        Self {
            description,
            safety_margin: None,
            options: OpenOptions::default(),
            cached: true,
            results: Vec::new(),
        }
    }

    /// The cluster file, the name of a description that is no file, or the table of SLOs.
    pub fn origin(&self) -> &Path {
        match &self.description {
            ClusterDescription::File(path) => path,
            ClusterDescription::Json(text) => &text.origin,
            ClusterDescription::SloTable(table) => &table.slos,
        }
    }

    /// Reads servers and workloads and checks them; device profiles and traces are not opened.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or does not describe a cluster with servers and workloads of unique names, or a result
    /// would take the place of the description, a trace or a device profile.
    pub fn read(&self) -> Result<Cluster, OperationError> {
        let mut cluster = match &self.description {
            ClusterDescription::File(path) => file::read(path)?,
            ClusterDescription::Json(json) => file::read_json(&json.origin, &json.text, &json.folder)?,
            ClusterDescription::SloTable(table) => table.read()?,
        };
        if let Some(margin) = self.safety_margin {
            cluster.safety_margin = margin;
        }
        check(&cluster, self.origin())?;
        self.check_results(&cluster)?;
        Ok(cluster)
    }

    fn check_results(&self, cluster: &Cluster) -> Result<(), OperationError> {
        let mut inputs = vec![self.origin().to_owned()];
        inputs.extend(cluster.workloads.iter().map(|workload| TracePlace::of(&workload.trace).path));
        inputs.extend(cluster.servers.iter().map(|class| class.storage.clone()));
        let inputs = || inputs.iter().map(|input| Some(input.as_path()));
        self.results.iter().try_for_each(|result| check_apart(Some(result), inputs()))
    }
}

impl SloTableSource {
    fn read(&self) -> Result<Cluster, OperationError> {
        let beside = self.slos.parent().unwrap_or(Path::new(""));
        let traces = self.traces.as_deref().unwrap_or(beside);
        let storage = self.storage.clone().unwrap_or_default();
        let mut class = ServerClass::new(ONLY_CLASS, self.servers.get(), storage, self.network);
        class.channels = self.channels;
        if let Some(bytes) = self.best_effort_request {
            class.best_effort_request = bytes;
        }
        Ok(Cluster {
            safety_margin: model::DEFAULT_SAFETY_MARGIN,
            failure_domain: None,
            servers: vec![class],
            hosts: Vec::new(),
            workloads: slo_table::read(&self.slos, traces)?,
        })
    }
}

/// Servers of all classes together: more do not fit into memory.
const SERVERS_MAX: usize = 1_000_000;
/// More than this is no margin for behaviour beyond a trace.
const SAFETY_MARGIN_MAX: f64 = 1000.0;

/// Checks what the types do not rule out.
fn check(cluster: &Cluster, origin: &Path) -> Result<(), OperationError> {
    if let Some(message) = unusable_numbers(cluster).or_else(|| unusable_workload(cluster)) {
        return Err(OperationError::input(format_args!("{}: {message}", origin.display())));
    }
    let message = if cluster.servers.iter().all(|class| class.count == 0) {
        "there are no servers: expected at least one [[server]] with a count above 0".to_owned()
    } else if cluster.workloads.is_empty() {
        "there are no workloads: expected at least one: a line below the header of a table of SLOs, or a [[workload]] of a \
         cluster file"
            .to_owned()
    } else if let Some(class) = cluster.servers.iter().find(|class| class.packet.0 < PACKET_MIN) {
        let packet = class.packet;
        format!("server class '{}': packet is {packet}, expected at least {PACKET_MIN}B", class.class)
    } else if let Some(class) = cluster.servers.iter().find(|class| !has_possible_channels(class)) {
        let channels = class.channels.unwrap_or_default();
        format!("server class '{}': channels is {channels}, expected 1 to {CHANNELS_MAX}", class.class)
    } else if let Some(name) = repeated(cluster.servers.iter().map(|class| class.class.as_str())) {
        format!("server class '{name}' is given twice; expected unique names")
    } else if let Some(name) = repeated(cluster.workloads.iter().map(|workload| workload.name.as_str())) {
        format!("workload '{name}' is given twice; expected unique names")
    } else {
        let checked =
            check_prices(cluster).and_then(|()| check_hosts(cluster)).and_then(|()| check_rules(cluster));
        return checked.map_err(|(site, message)| {
            let line = file::line_of(origin, site).map_or_else(String::new, |line| format!(":{line}"));
            OperationError::input(format_args!("{}{line}: {message}", origin.display()))
        });
    };
    Err(OperationError::input(format_args!("{}: {message}", origin.display())))
}

/// Which number of the whole cluster makes no sense.
fn unusable_numbers(cluster: &Cluster) -> Option<String> {
    let margin = cluster.safety_margin;
    if !(1.0..=SAFETY_MARGIN_MAX).contains(&margin) {
        return Some(format!("safety_margin is {margin}, expected 1 to {SAFETY_MARGIN_MAX}, such as 1.1"));
    }
    let servers = cluster.servers.iter().fold(0_usize, |sum, class| sum.saturating_add(class.count));
    (servers > SERVERS_MAX).then(|| format!("there are {servers} servers, expected {SERVERS_MAX} at most"))
}

/// Which workload has a name that cannot be shown, or an SLO that cannot be meant.
fn unusable_workload(cluster: &Cluster) -> Option<String> {
    let names = cluster.workloads.iter().map(|workload| ("workload", workload.name.as_str()));
    let mut names = names.chain(cluster.servers.iter().map(|class| ("server class", class.class.as_str())));
    let unusable = names.find(|(_, name)| !is_usable_name(name));
    if let Some((what, name)) = unusable {
        return Some(format!("{what} {name:?}: {NAME_EXPECTED}"));
    }
    let objectives = cluster.workloads.iter().flat_map(|workload| {
        let further = workload.further_slos.iter().map(|objective| objective.slo);
        std::iter::once(workload.slo).chain(further).map(|slo| (&workload.name, slo.percentile))
    });
    let (name, percentile) = objectives.into_iter().find(|(_, percentile)| percentile.is_like_a_share())?;
    Some(format!(
        "workload '{name}': the percentile of its SLO is {percentile}, expected a percentage such as 99.9"
    ))
}

fn has_possible_channels(class: &ServerClass) -> bool {
    class.channels.is_none_or(|channels| (1..=CHANNELS_MAX).contains(&channels))
}

/// The first name in alphabetical order that occurs more than once.
fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
