//! The published set of workloads as traffic.
#![allow(dead_code, reason = "each test uses a part")]

use model::{CircularTrace, Job, Slo};
use units::{Nanos, Seconds};
use workload::device::{NetworkModel, PathWork, StorageProfile};

/// A workload of the published set.
pub(crate) struct Real {
    /// Such as `C3`.
    pub(crate) name: String,
    /// Its published SLO.
    pub(crate) slo: Slo,
    /// On a server with a link of 125 MB/s in each direction.
    pub(crate) traffic: CircularTrace<Job>,
    /// From the recording's origin to the first request.
    pub(crate) silence: Nanos,
}

/// What the requests pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Through {
    /// One client-server link, both directions.
    Link,
    /// Network in, the published SSD, network out.
    Server,
}

/// All workloads in the published order; `None`, loudly, where the traces are absent.
pub(crate) fn published(through: Through) -> Option<Vec<Real>> {
    let folder = testkit::shared("traces")?;
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("part of the set");
    let profile = StorageProfile::from_json(&text("ssd-profile.json")).expect("part of the set");
    let bandwidth = "125MB/s".parse().expect("a rate");
    let storage = (through == Through::Server).then_some(&profile);
    let path = PathWork::new(NetworkModel::default(), bandwidth, storage, 1.0);
    let read = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let mut path = path.clone();
        let mut jobs = Vec::new();
        let requests = trace::open(&folder.join(fields[2]), &trace::OpenOptions::default());
        let mut silence = None;
        for request in requests.expect("part of the set") {
            let request = request.expect("well formed");
            silence.get_or_insert(request.arrival);
            jobs.push(path.job(&request));
        }
        let slo =
            Slo::new(fields[3].parse().expect("a percentile"), Seconds(fields[4].parse().expect("seconds")));
        Real {
            name: fields[1].to_owned(),
            slo: slo.expect("a positive latency"),
            traffic: CircularTrace::repeating(jobs).expect("requests in order"),
            silence: silence.expect("at least one request"),
        }
    };
    Some(text("slos.csv").lines().skip(1).map(read).collect())
}

/// The mean less 3.3 standard errors.
pub(crate) fn lower_limit(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    mean - 3.3 * (variance / count).sqrt()
}
