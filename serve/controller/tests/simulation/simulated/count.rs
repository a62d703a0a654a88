//! A count of requests at the hosts, against what the controller says.
//!
//! A request is one of a life of a proxy, and the reports that count say how many of each life there were. The controller
//! has to count each request once, except those that it was told of at first, and those that no report told it.

use agent::ServerObservation;
use std::collections::BTreeMap;

/// Requests of a server that one run of the controller was told of.
#[derive(Debug, Default)]
pub struct ToldRequests {
    /// Life of the proxy at the first report, with its requests then, by workload.
    first: Option<(u64, BTreeMap<String, u64>)>,
    /// Most requests of each workload, by life.
    most: BTreeMap<String, BTreeMap<u64, u64>>,
}

impl ToldRequests {
    /// Notes a report that counts, of a proxy in this life.
    pub fn note(&mut self, life: u64, observation: &ServerObservation) {
        let now: BTreeMap<String, u64> =
            observation.workloads.iter().map(|it| (it.workload.clone(), it.requests)).collect();
        for (workload, requests) in &now {
            let most = self.most.entry(workload.clone()).or_default().entry(life).or_default();
            *most = (*most).max(*requests);
        }
        self.first.get_or_insert((life, now));
    }

    /// Returns the number of requests of a workload that the controller has to count.
    pub fn expected(&self, workload: &str) -> u64 {
        let all: u64 = self.most.get(workload).into_iter().flat_map(BTreeMap::values).sum();
        let first = self.first.as_ref().and_then(|(_, first)| first.get(workload));
        all - first.copied().unwrap_or(0)
    }
}
