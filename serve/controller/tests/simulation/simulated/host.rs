//! A simulated host: a disk that survives, enforcers that survive, and an agent that may not.

use agent::{AgentMachine, AgentMemory, AgentStep, Assignment, WorkloadCounters};
use model::PerStage;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use units::{Nanos, Work};
use workload::burst::StageArrival;
use workload::live::{CurveMark, CurveReport, LiveArrival, LiveCurves};

#[derive(Debug)]
pub struct SimulatedHost {
    pub name: String,
    /// Servers on it.
    pub servers: BTreeSet<String>,
    /// The running agent; none while it is down.
    pub agent: Option<AgentMachine>,
    /// The step under way.
    pub step: Option<AgentStep>,
    /// Saved memory.
    pub disk: AgentMemory,
    /// Assignment that the host's proxies have, whatever its agent does.
    pub enforced: Option<Assignment>,
    /// Assignment that its links have, where agents limit them. It changes before that of the proxies.
    pub links: Option<Assignment>,
    /// Changes when the agent is restarted, so that events of an earlier life are void.
    pub life: u64,
    /// Number of the request under way.
    pub round: u64,
    /// Until when nothing passes between it and the controller, nanoseconds.
    pub cut_off_until: u64,
    /// Proxies by server.
    pub proxies: BTreeMap<String, SimulatedProxy>,
}

/// Requests of a life of a proxy, by workload.
pub type Arrivals = BTreeMap<String, Vec<StageArrival>>;

/// Counters and burst curves of the proxy before a server.
#[derive(Debug, Default)]
pub struct SimulatedProxy {
    /// Number of restarts.
    pub life: u64,
    /// Counters of this life.
    pub workloads: BTreeMap<String, WorkloadCounters>,
    /// Requests of all lives, by workload.
    pub served: BTreeMap<String, u64>,
    /// Burst curves of this life, before its first request `None`.
    live: Option<LiveCurves>,
    /// Names of workloads, by their number in the curves.
    names: Vec<String>,
    /// Requests of all lives.
    pub arrivals: BTreeMap<u64, Arrivals>,
    /// Workloads of chunks, by life and number, and the positions of their requests in order of arrival.
    pub chunks: BTreeMap<(u64, u64), (String, Range<usize>)>,
}

impl SimulatedProxy {
    /// Begins another life.
    pub fn restart(&mut self) {
        self.life += 1;
        self.workloads.clear();
        self.live = None;
    }

    /// Serves requests of a workload that have arrived until now. `scale` enlarges their work.
    pub fn serve(&mut self, workload: &str, requests: u64, scale: u64, now: u64) {
        for number in 0..requests {
            let at = Nanos(now.saturating_sub(number * number * 20_000));
            let work = Work(scale * (1_000 + (now / 1_000 + number * 7_919) % 5_000));
            self.note(workload, StageArrival { at, work }, now);
        }
        *self.served.entry(workload.to_owned()).or_default() += requests;
        let counters = self.workloads.entry(workload.to_owned()).or_default();
        counters.workload = workload.to_owned();
        counters.requests += requests;
        counters.latencies = vec![(Some(2_000_000), counters.requests)];
    }

    fn note(&mut self, workload: &str, arrival: StageArrival, now: u64) {
        let StageArrival { at, work } = arrival;
        let arrivals = self.arrivals.entry(self.life).or_default();
        arrivals.entry(workload.to_owned()).or_default().push(arrival);
        let number = self.names.iter().position(|name| name == workload).unwrap_or_else(|| {
            self.names.push(workload.to_owned());
            self.names.len() - 1
        });
        let number = u32::try_from(number).expect("few workloads");
        let live = self.live.get_or_insert_with(|| LiveCurves::new(format!("life {}", self.life)));
        live.add(number, LiveArrival { at, work: PerStage::from_fn(|_| work) }, now);
    }

    /// Returns the chunks of this life after `mark`.
    pub fn curves(&mut self, now: u64, mark: Option<&CurveMark>) -> Option<CurveReport> {
        let name = |number: u32| Some(self.names[number as usize].clone());
        let report = self.live.as_mut()?.report(now, mark, name);
        for chunk in &report.chunks {
            if self.chunks.contains_key(&(self.life, chunk.number)) {
                continue;
            }
            let of_life = self.chunks.range((self.life, 0)..=(self.life, u64::MAX));
            let before = of_life.filter(|(_, (workload, _))| *workload == chunk.workload);
            let begin = before.map(|(_, (_, range))| range.end).max().unwrap_or(0);
            let end = begin + usize::try_from(chunk.curves.requests()).expect("few requests");
            self.chunks.insert((self.life, chunk.number), (chunk.workload.clone(), begin..end));
        }
        Some(report)
    }
}

impl SimulatedHost {
    /// Gives links and proxies an assignment.
    pub fn take(&mut self, assignment: &Assignment) {
        self.links = Some(assignment.clone());
        self.enforced = Some(assignment.clone());
    }
}
