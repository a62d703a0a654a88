//! A count of requests at the hosts, against what the controller says.
//!
//! A request is one of a life of a proxy, and the reports that count say how many of each life there were. The controller
//! has to count each request once, except those that it was told of at first, and those that no report told it.

use super::host::SimulatedProxy;
use agent::ServerObservation;
use std::collections::BTreeMap;
use workload::burst::{BurstCurve, BurstEnvelope, StageArrival};

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

/// Burst curves of a server that one run of the controller was told of.
#[derive(Debug, Default)]
pub struct ToldCurves {
    /// Life of the proxy at the latest report, and its latest chunk.
    latest: (u64, u64),
    /// Requests by workload and life.
    told: BTreeMap<u64, BTreeMap<u64, Vec<StageArrival>>>,
}

impl ToldCurves {
    /// Notes a report that counts, of a proxy in this life: with its latest chunk the controller has to have all before.
    /// `id` is that of a workload with a place on the server.
    pub fn note(
        &mut self,
        life: u64,
        observation: &ServerObservation,
        proxy: &SimulatedProxy,
        id: impl Fn(&str) -> Option<u64>,
    ) {
        let Some(curves) = &observation.curves else { return };
        if self.latest.0 != life {
            self.latest = (life, 0);
        }
        let latest = curves.chunks.last().map_or(0, |last| last.number);
        for number in self.latest.1 + 1..=latest {
            let (workload, range) = &proxy.chunks[&(life, number)];
            if let Some(id) = id(workload) {
                let mut arrivals = proxy.arrivals[&life][workload].clone();
                arrivals.sort_by_key(|arrival| arrival.at);
                let told = self.told.entry(id).or_default().entry(life).or_default();
                told.extend(&arrivals[range.clone()]);
            }
        }
        self.latest.1 = self.latest.1.max(latest);
    }

    /// Returns the number of requests of a workload that the controller has curves of, and their curve, in which lives of
    /// a proxy are not joined.
    pub fn expected(&self, id: u64) -> Option<(u64, BurstEnvelope)> {
        let lives = self.told.get(&id)?;
        let curves = lives.values().map(|told| BurstCurve::from_arrivals(told).expect("some in order"));
        let vertices: Vec<_> = curves.flat_map(|curve| curve.envelope().vertices().to_vec()).collect();
        let requests = lives.values().map(|told| told.len() as u64).sum();
        Some((requests, BurstEnvelope::above(&vertices).expect("they begin at zero")))
    }
}
