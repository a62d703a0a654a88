//! A storage server as people write it: `[server]` and `[[workload]]`.

use super::StorageServer;
use super::playback::{at_rate, repeated};
use super::rule::Rules;
use super::tenant::{Demand, Tenant};
use crate::text::Text;
use ::model::{CircularTrace, Job, Op, Policy, Request, Slo, Stage};
use arrivals::{ArrivalPattern, DistributionFamily, TimeDistribution};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Value;
use units::{ByteRate, Bytes, Nanos, Seconds};
use workload::device::{PathWork, StorageProfile};

const CLIENTS_MAX: u32 = 1_000_000;
const DRAWN_MAX: u32 = 10_000_000;

type Result<T> = std::result::Result<T, String>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSpec {
    /// A file, or the document itself.
    profile: Value,
    network: ByteRate,
    #[serde(default = "one")]
    channels: u32,
    discipline: Option<Value>,
    policy: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkloadSpec {
    name: String,
    slo: Option<Slo>,
    best_effort: Option<bool>,
    #[serde(default = "one")]
    weight: u32,
    trace: Option<PathBuf>,
    arrivals: Option<Text<ArrivalPattern>>,
    /// How many are drawn from `arrivals`.
    requests: Option<u32>,
    #[serde(default)]
    seed: u64,
    clients: Option<u32>,
    think: Option<Text<TimeDistribution>>,
    size: Option<Bytes>,
    op: Option<Op>,
    rate: Option<f64>,
    load: Option<f64>,
    begin: Option<Nanos>,
}

fn one() -> u32 {
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
    pub(crate) fn server(&self) -> Result<StorageServer> {
        let (origin, text) = match &self.profile {
            Value::String(path) => (path.as_str(), read(Path::new(path), "device profile")?),
            Value::Table(document) => ("server.profile", serde_json::to_string(document).unwrap_or_default()),
            _ => return Err("server.profile: expected a file, or a profile as a table".into()),
        };
        let profile = StorageProfile::from_json(&text).map_err(|error| format!("{origin}: {error}"))?;
        StorageServer::new(profile, self.network, self.channels)
    }

    /// What its stages do; reads the policy.
    pub(crate) fn rules(&self) -> Result<Rules> {
        match (&self.discipline, &self.policy) {
            (Some(_), Some(_)) => Err("server: expected a discipline or a policy, not both".into()),
            (None, None) => Ok(Rules::default()),
            (Some(discipline), None) => Rules::read(discipline),
            (None, Some(path)) => {
                let text = read(path, "policy")?;
                let policy =
                    Policy::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(Rules::Policy(Box::new(policy)))
            }
        }
    }
}

fn read(path: &Path, what: &str) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("{}: cannot read the {what}: {error}", path.display()))
}

impl WorkloadSpec {
    /// Makes paths relative to a folder.
    pub(crate) fn move_to(&mut self, folder: &Path) {
        self.trace.iter_mut().for_each(|path| *path = folder.join(&path));
    }

    /// Reads or draws its requests.
    pub(crate) fn tenant(&self, server: &StorageServer) -> Result<Tenant> {
        let tenant = self.described(server);
        tenant.map_err(|fault| format!("workload '{}': {fault}", self.name))
    }

    fn described(&self, server: &StorageServer) -> Result<Tenant> {
        let best_effort = self.best_effort.unwrap_or(self.slo.is_none());
        if self.slo.is_none() && !best_effort {
            return Err("expected an slo such as \"99.9% < 50ms\", or best_effort = true".into());
        }
        if self.weight == 0 {
            return Err("weight: expected at least 1".into());
        }
        let demand = match (&self.trace, &self.arrivals, self.clients) {
            (Some(path), None, None) => self.recorded(of_trace(path, server)?)?,
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
        Ok(Tenant { name: self.name.clone(), slo: self.slo, best_effort, weight: self.weight, demand })
    }

    fn recorded(&self, trace: CircularTrace<Job>) -> Result<Demand> {
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
        Ok(Demand::Recorded { trace: Arc::new(trace), begin: self.begin })
    }

    /// One drawing of random arrivals, to be repeated as a trace.
    fn drawn(&self, arrivals: &ArrivalPattern, server: &StorageServer) -> Result<CircularTrace<Job>> {
        let count = self.requests.filter(|count| (2..=DRAWN_MAX).contains(count));
        let count = count.ok_or_else(|| format!("requests: expected 2 to {DRAWN_MAX} to be drawn"))?;
        let (mut request, mut path) = (self.request()?, server.path());
        let instants = arrivals.instants(self.seed).map_err(|error| error.to_string())?;
        let jobs = instants.take(count as usize).map(|arrival| {
            request.arrival = arrival;
            Job { arrival, work: path.work(&request) }
        });
        repeated(jobs.collect())
    }

    fn closed(&self, clients: u32, server: &StorageServer) -> Result<Demand> {
        if self.rate.is_some() || self.load.is_some() || self.begin.is_some() {
            return Err("rate, load and begin are for requests that arrive by themselves".into());
        }
        let work = server.path().work(&self.request()?);
        let at_once = || {
            TimeDistribution::new(DistributionFamily::Constant(Seconds(0.0)))
                .map_err(|error| error.to_string())
        };
        let think = self.think.as_ref().map_or_else(at_once, |think| Ok(think.0.clone()))?;
        Ok(Demand::Clients { clients, think, work })
    }

    fn request(&self) -> Result<Request> {
        match (self.size, self.op) {
            (Some(size), Some(op)) if size.0 > 0 => {
                Ok(Request { arrival: Nanos::ZERO, size, op, offset: None, response: None })
            }
            _ => Err("expected a size above 0, such as \"64KiB\", and an op, \"read\" or \"write\"".into()),
        }
    }
}

/// The requests of a trace on a server, to be repeated.
///
/// # Errors
/// When the trace cannot be read or has requests at fewer than two instants.
pub fn of_trace(path: &Path, server: &StorageServer) -> Result<CircularTrace<Job>> {
    let reader = trace::open(path, &trace::OpenOptions::default()).map_err(|error| error.to_string())?;
    let mut work: PathWork = server.path();
    let jobs = reader.map(|request| {
        let request = request.map_err(|error| error.to_string())?;
        Ok(Job { arrival: request.arrival, work: work.work(&request) })
    });
    let jobs = jobs.collect::<Result<Vec<_>>>()?;
    repeated(jobs).map_err(|error| format!("{}: {error}", path.display()))
}
