//! A storage server as people write it: `[server]` and `[[workload]]`.

use super::playback::{at_rate, repeated};
use super::rules::ServerRules;
use super::storage_server::StorageServer;
use super::workload::{SimulatedWorkload, WorkloadRequests};
use crate::named_files::{read_file, read_policy};
use crate::text_field::TextField;
use ::model::{CircularTrace, Job, Op, Request, Slo, Stage};
use ::workload::device::{PathWork, StorageProfile};
use arrivals::{ArrivalPattern, DistributionFamily, TimeDistribution};
use discipline::enforce::{DeviceAccess, DeviceOperation, OwnerBounds};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Value;
use units::{ByteRate, Bytes, Nanos, Seconds};

/// Most clients of a workload.
const CLIENTS_MAX: u32 = 1_000_000;
/// Most requests that are drawn from random arrivals.
const DRAWN_MAX: u32 = 10_000_000;

/// The section `[server]` of a scenario file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSpec {
    /// The name of a file, or the device profile itself.
    profile: Value,
    network: ByteRate,
    #[serde(default = "default_one")]
    channels: u32,
    outstanding: Option<u32>,
    beside: Option<u32>,
    reserve: Option<u32>,
    batch: Option<u32>,
    discipline: Option<Value>,
    policy: Option<PathBuf>,
}

/// A section `[[workload]]` of a scenario file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioWorkloadSpec {
    name: String,
    slo: Option<Slo>,
    best_effort: Option<bool>,
    #[serde(default = "default_one")]
    weight: u32,
    trace: Option<PathBuf>,
    arrivals: Option<TextField<ArrivalPattern>>,
    /// Number of requests that are drawn from `arrivals`.
    requests: Option<u32>,
    #[serde(default)]
    seed: u64,
    clients: Option<u32>,
    think: Option<TextField<TimeDistribution>>,
    size: Option<Bytes>,
    op: Option<Op>,
    rate: Option<f64>,
    load: Option<f64>,
    begin: Option<Nanos>,
}

fn default_one() -> u32 {
    1
}

impl ServerSpec {
    /// Makes paths relative to a folder.
    pub(crate) fn move_to(&mut self, folder: &Path) {
        if let Value::String(path) = &mut self.profile {
            *path = folder.join(&path).to_string_lossy().into_owned();
        }
        self.policy.iter_mut().for_each(|path| *path = folder.join(&path));
    }

    /// Reads the profile of the device.
    pub(crate) fn server(&self) -> Result<StorageServer, String> {
        let (origin, text) = match &self.profile {
            Value::String(path) => (path.as_str(), read_file(Path::new(path), "device profile")?),
            Value::Table(document) => ("server.profile", serde_json::to_string(document).unwrap_or_default()),
            _ => return Err("server.profile: expected a file, or a profile as a table".into()),
        };
        let profile = StorageProfile::from_json(&text).map_err(|error| format!("{origin}: {error}"))?;
        let ServerSpec { outstanding, beside, reserve, batch, .. } = *self;
        let bounds = OwnerBounds { outstanding, beside, reserve, batch, ..OwnerBounds::default() };
        if [outstanding, batch].contains(&Some(0)) {
            return Err("server.outstanding and batch: expected at least 1".into());
        }
        Ok(StorageServer::new(profile, self.network, self.channels)?.with_bounds(bounds))
    }

    /// The rules of its stages; reads the policy.
    pub(crate) fn rules(&self) -> Result<ServerRules, String> {
        match (&self.discipline, &self.policy) {
            (Some(_), Some(_)) => Err("server: expected a discipline or a policy, not both".into()),
            (None, None) => Ok(ServerRules::default()),
            (Some(discipline), None) => ServerRules::read(discipline),
            (None, Some(path)) => Ok(ServerRules::Policy(Box::new(read_policy(path)?))),
        }
    }
}

impl ScenarioWorkloadSpec {
    /// Makes paths relative to a folder.
    pub(crate) fn move_to(&mut self, folder: &Path) {
        self.trace.iter_mut().for_each(|path| *path = folder.join(&path));
    }

    /// Reads the workload, with its requests from a trace or drawn. An error names the workload.
    pub(crate) fn read(&self, server: &StorageServer) -> Result<SimulatedWorkload, String> {
        self.workload(server).map_err(|error| format!("workload '{}': {error}", self.name))
    }

    fn workload(&self, server: &StorageServer) -> Result<SimulatedWorkload, String> {
        let best_effort = self.best_effort.unwrap_or(self.slo.is_none());
        if self.slo.is_none() && !best_effort {
            return Err("expected an slo such as \"99.9% < 50ms\", or best_effort = true".into());
        }
        if self.weight == 0 {
            return Err("weight: expected at least 1".into());
        }
        let requests = match (&self.trace, &self.arrivals, self.clients) {
            (Some(path), None, None) => self.recorded(trace_on_server(path, server)?)?,
            (None, Some(arrivals), None) => self.recorded(self.drawn(&arrivals.0, server)?)?,
            (None, None, Some(clients)) if (1..=CLIENTS_MAX).contains(&clients) => {
                self.closed(clients, server)?
            }
            (None, None, Some(_)) => return Err(format!("clients: expected 1 to {CLIENTS_MAX}")),
            _ => {
                return Err(
                    "expected one of: trace; arrivals, requests, size and op; clients, size and op".into()
                );
            }
        };
        Ok(SimulatedWorkload {
            name: self.name.clone(),
            slo: self.slo,
            best_effort,
            weight: self.weight,
            requests,
        })
    }

    /// The requests of a trace at the rate that the scenario asks for.
    fn recorded(&self, requests: RecordedRequests) -> Result<WorkloadRequests, String> {
        let RecordedRequests { trace, accesses } = requests;
        if self.think.is_some() {
            return Err("think: only clients think".into());
        }
        let factor = match (self.rate, self.load) {
            (Some(_), Some(_)) => return Err("expected rate or load, not both".into()),
            (Some(rate), None) => rate,
            (None, Some(load)) => load / trace.utilisation()[Stage::Storage],
            (None, None) => 1.0,
        };
        let trace = if factor == 1.0 { trace } else { at_rate(&trace, factor)? };
        Ok(WorkloadRequests::Recorded { trace: Arc::new(trace), accesses, begin: self.begin })
    }

    /// One sample of random arrivals, to be repeated as a trace.
    fn drawn(&self, arrivals: &ArrivalPattern, server: &StorageServer) -> Result<RecordedRequests, String> {
        let count = self.requests.filter(|count| (2..=DRAWN_MAX).contains(count));
        let count = count.ok_or_else(|| format!("requests: expected 2 to {DRAWN_MAX} to be drawn"))?;
        let mut request = self.request()?;
        let mut path = server.path();
        let instants = arrivals.instants(self.seed).map_err(|error| error.to_string())?;
        let jobs = instants.take(count as usize).map(|arrival| {
            request.arrival = arrival;
            Job { arrival, work: path.work(&request) }
        });
        let trace = repeated(jobs.collect())?;
        let accesses = vec![device_access(&request); trace.items().len()];
        Ok(RecordedRequests { trace, accesses: accesses.into() })
    }

    /// Requests of clients that wait for answers.
    fn closed(&self, clients: u32, server: &StorageServer) -> Result<WorkloadRequests, String> {
        if self.rate.is_some() || self.load.is_some() || self.begin.is_some() {
            return Err("rate, load and begin are for requests that arrive by themselves".into());
        }
        let request = self.request()?;
        let work = server.path().work(&request);
        let access = device_access(&request);
        let think = match &self.think {
            Some(think) => think.0.clone(),
            None => TimeDistribution::new(DistributionFamily::Constant(Seconds(0.0)))
                .map_err(|error| error.to_string())?,
        };
        Ok(WorkloadRequests::Clients { clients, think, work, access })
    }

    /// The request that all of this workload are equal to.
    fn request(&self) -> Result<Request, String> {
        match (self.size, self.op) {
            (Some(size), Some(op)) if size.0 > 0 => {
                Ok(Request { arrival: Nanos::ZERO, size, op, offset: None, response: None })
            }
            _ => Err("expected a size above 0, such as \"64KiB\", and an op, \"read\" or \"write\"".into()),
        }
    }
}

/// Converts the requests of a trace into work at the stages of a server, repeated for ever.
///
/// # Errors
/// When the trace cannot be read or has no requests.
pub fn trace_on_server(path: &Path, server: &StorageServer) -> Result<RecordedRequests, String> {
    let reader = trace::open(path, &trace::OpenOptions::default()).map_err(|error| error.to_string())?;
    let mut work: PathWork = server.path();
    let mut jobs = Vec::new();
    let mut accesses = Vec::new();
    for request in reader {
        let request = request.map_err(|error| error.to_string())?;
        jobs.push(work.job(&request));
        accesses.push(device_access(&request));
    }
    let trace = repeated(jobs).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(RecordedRequests { trace, accesses: accesses.into() })
}

/// Requests of a workload, as played on a server.
#[derive(Debug, Clone)]
pub struct RecordedRequests {
    /// The requests as work at each stage, repeated for ever.
    pub trace: CircularTrace<Job>,
    /// Device access of each request, in the same order.
    pub accesses: Arc<[DeviceAccess]>,
}

impl WorkloadRequests {
    /// Clients that send a request of this size as soon as their last one is answered.
    ///
    /// # Panics
    /// Never: a constant time of zero is a distribution.
    pub fn flood(server: &StorageServer, clients: u32, size: Bytes, op: Op) -> Self {
        let request = Request { arrival: Nanos::ZERO, size, op, offset: None, response: None };
        let think = TimeDistribution::new(DistributionFamily::Constant(Seconds(0.0)));
        let work = server.path().work(&request);
        let access = device_access(&request);
        Self::Clients { clients, think: think.expect("zero is a time"), work, access }
    }
}

fn device_access(request: &Request) -> DeviceAccess {
    let operation = match request.op {
        Op::Read => DeviceOperation::Read,
        Op::Write => DeviceOperation::Write,
    };
    DeviceAccess { operation, bytes: request.size.0, offset: request.offset }
}
