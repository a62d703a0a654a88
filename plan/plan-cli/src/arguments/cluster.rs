//! Options that describe a cluster: a cluster file, or SLOs, traces and a device profile.

use clap::Args;
use cli::quantities::at_least_one;
use cli::terminal::{pasted, pasted_path};
use model::OperationError;
use plan::cluster::{ClusterDescription, ClusterSource, SloTableSource};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use trace::{OpenOptions, TraceFormat};
use units::{ByteRate, Bytes};

/// Sources of servers, workloads and traces.
#[derive(Debug, Clone, Default, Args)]
pub struct ClusterArgs {
    /// Cluster description: servers, workloads, SLOs; paths in it are relative to it.
    #[arg(value_name = "CLUSTER.toml", conflicts_with_all = ["slos", "traces", "storage", "network", "max_servers", "channels", "best_effort_request"])]
    cluster: Option<PathBuf>,
    /// Workloads as CSV with the columns workload, trace, slo_percentile, slo_latency_s and, if it is
    /// there, order (of arrival); others are ignored.
    #[arg(long, value_name = "FILE.csv")]
    slos: Option<PathBuf>,
    /// Folder of the traces named in --slos (default: beside that file).
    #[arg(long, value_name = "FOLDER", requires = "slos")]
    traces: Option<PathBuf>,
    /// Device profile of the storage of every server (`tailwright profile` measures one).
    #[arg(long, value_name = "PROFILE.json", requires = "slos")]
    storage: Option<PathBuf>,
    /// Link bandwidth of every server in each direction, such as 125MB/s or 1Gbps.
    #[arg(long, value_name = "RATE", requires = "slos")]
    network: Option<ByteRate>,
    /// Number of servers.
    #[arg(long, value_name = "N", requires = "slos", value_parser = at_least_one)]
    max_servers: Option<NonZeroUsize>,
    /// Number of requests that a device serves at a time (default: that of its profile, or 1).
    #[arg(long, value_name = "N", requires = "slos")]
    channels: Option<u32>,
    /// The largest request of clients without a guarantee; 0B without such clients (default: 1MiB).
    #[arg(long, value_name = "SIZE", requires = "slos")]
    best_effort_request: Option<Bytes>,
    /// Factor on all work for behaviour beyond the traces; 1.1 is a 10 % margin.
    #[arg(long, value_name = "FACTOR", value_parser = margin)]
    safety_margin: Option<f64>,
    /// Format of the traces that are read (default: detected).
    #[arg(long, value_name = "FORMAT")]
    format: Option<TraceFormat>,
    /// Skip and count malformed and out-of-order requests of traces.
    #[arg(long)]
    lenient: bool,
    /// Restore the order of nearly sorted traces: a request may come N requests late.
    #[arg(long, value_name = "N", default_value_t = 0)]
    sort_window: usize,
    /// Neither use nor store results of reading traces.
    #[arg(long)]
    no_cache: bool,
}

fn margin(text: &str) -> Result<f64, String> {
    let expected = || format!("expected a factor from 1 to 1000, such as 1.1, found '{text}'");
    text.parse().ok().filter(|m: &f64| (1.0..=1000.0).contains(m)).ok_or_else(expected)
}

/// Flags that may be missing beside `--slos`.
#[derive(Debug, Clone, Copy, Default)]
pub struct MayLack {
    /// The device profile, because requests pass no storage.
    pub storage: bool,
    /// The number of servers, which then is one.
    pub servers: bool,
}

impl ClusterArgs {
    /// Returns true if any flag describes a cluster.
    pub fn is_given(&self) -> bool {
        self.cluster.is_some() || self.slos.is_some()
    }

    /// The cluster file, where one is given.
    pub fn file(&self) -> Option<&Path> {
        self.cluster.as_deref()
    }

    /// The flags that name the cluster beside its file, as words of a command to paste.
    pub(crate) fn option_words(&self) -> Vec<String> {
        let path = |flag, value: &Option<PathBuf>| value.as_deref().map(|path| (flag, pasted_path(path)));
        let number = |flag, value: Option<String>| value.map(|value| (flag, pasted(value)));
        let named = [
            path("--slos", &self.slos),
            path("--traces", &self.traces),
            path("--storage", &self.storage),
            number("--network", self.network.map(|rate| rate.to_string())),
            number("--max-servers", self.max_servers.map(|count| count.to_string())),
            number("--channels", self.channels.map(|count| count.to_string())),
            number("--best-effort-request", self.best_effort_request.map(|size| size.to_string())),
            number("--safety-margin", self.safety_margin.map(|margin| margin.to_string())),
            number("--format", self.format.map(|format| format.to_string())),
            number("--sort-window", (self.sort_window > 0).then(|| self.sort_window.to_string())),
        ];
        let words = named.into_iter().flatten().flat_map(|(flag, value)| [flag.to_owned(), value]);
        words.chain(self.lenient.then(|| "--lenient".to_owned())).collect()
    }

    /// Returns the options of reading traces.
    pub fn options(&self) -> OpenOptions {
        OpenOptions { format: self.format, lenient: self.lenient, sort_window: self.sort_window }
    }

    /// The margin that the flag has.
    pub fn safety_margin(&self) -> Option<f64> {
        self.safety_margin
    }

    /// The source that these flags describe.
    pub fn source(&self, may_lack: MayLack) -> Result<ClusterSource, OperationError> {
        Ok(ClusterSource {
            description: self.description(may_lack)?,
            safety_margin: self.safety_margin,
            options: self.options(),
            cached: !self.no_cache,
            results: Vec::new(),
        })
    }

    fn description(&self, may_lack: MayLack) -> Result<ClusterDescription, OperationError> {
        if let Some(path) = &self.cluster {
            return Ok(ClusterDescription::File(path.clone()));
        }
        let Some(slos) = &self.slos else {
            return Err(OperationError::input("no cluster given: expected a cluster file or --slos").hint(
                "write a cluster.toml (see --help), or try `tailwright demo`, which makes one to start from",
            ));
        };
        let servers = self.max_servers.or(may_lack.servers.then_some(NonZeroUsize::MIN));
        let has_storage = self.storage.is_some() || may_lack.storage;
        let (Some(network), Some(servers), true) = (self.network, servers, has_storage) else {
            let needed = [
                ("--storage PROFILE.json", has_storage),
                ("--network RATE", self.network.is_some()),
                ("--max-servers N", servers.is_some()),
            ];
            let missing: Vec<&str> =
                needed.iter().filter(|(_, given)| !given).map(|(flag, _)| *flag).collect();
            return Err(OperationError::input(format_args!("--slos also needs {}", missing.join(", ")))
                .hint("a cluster file says all of it in one place; --help shows one"));
        };
        let slos = slos.clone();
        let traces = self.traces.clone();
        let storage = self.storage.clone();
        let channels = self.channels;
        let best_effort_request = self.best_effort_request;
        Ok(ClusterDescription::SloTable(SloTableSource {
            slos,
            traces,
            storage,
            network,
            servers,
            channels,
            best_effort_request,
        }))
    }
}
