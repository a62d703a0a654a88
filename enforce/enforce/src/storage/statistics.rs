//! What a proxy counts for people who ask, and the requests that it records for those who judge.

use super::flows::{UNKNOWN_WORKLOAD, WorkloadNames, data_flow};
use super::recording::{ProxiedRequest, RequestSink};
use super::request::ProxyRequest;
use metrics::{BucketScale, ExponentialCounts};
use model::{Observation, Observations, Op, RequestOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use units::Nanos;
use wire::RequestClass;

/// The requests of a workload that a proxy has finished since it began. Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxiedWorkload {
    /// The name of the workload, or [`UNKNOWN_WORKLOAD`].
    pub workload: String,
    /// The number of reads and writes.
    pub requests: u64,
    /// The number of bytes that they read and wrote.
    pub bytes: u64,
    /// The number of control requests: metadata, handshakes and others.
    pub control: u64,
    /// How many of its requests were best effort and took longer than the policy's `best_effort_request_s`, so that no bound
    /// counts them: they went to the device when nothing else was there. Counted when they go.
    #[serde(default)]
    pub unexpected: u64,
    /// The sum of the times that reads and writes waited in the proxy.
    pub waited_s: f64,
    /// The longest of these times.
    pub waited_max_s: f64,
    /// The sum of the times from sending reads and writes to the server to its replies.
    pub served_s: f64,
}

/// The counters of a proxy at an instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxySnapshot {
    /// The workloads that have had requests, in the order of their flows.
    pub workloads: Vec<ProxiedWorkload>,
    /// The number of client connections that are open.
    pub connections: u64,
    /// How many connections were cut off because somebody broke the protocol, hung up in the middle or stood still.
    pub cut: u64,
    /// How many connections were turned away because there were too many.
    #[serde(default)]
    pub turned_away: u64,
    /// The number of requests that wait in the queue.
    pub waiting: u64,
    /// The number of requests outstanding at the server's device.
    pub outstanding: u64,
    /// The bytes of requests and replies that the proxy holds.
    #[serde(rename = "held_bytes")]
    pub buffered_bytes: u64,
    /// How many requests stopped counting as outstanding before their reply came.
    pub released: u64,
    /// How many times the policy was changed.
    pub changes: u64,
}

/// How long the reads and writes of a workload took at a proxy.
#[derive(Debug, Clone)]
pub struct WorkloadTimes {
    /// The name of the workload, or [`UNKNOWN_WORKLOAD`].
    pub workload: String,
    /// From the arrival of a request to its answer.
    pub answered: ExponentialCounts,
    /// From the arrival of a request to its way to the server.
    pub waited: ExponentialCounts,
}

/// The counters of a proxy at an instant, with distributions.
#[derive(Debug, Clone)]
pub struct ProxyMetrics {
    /// What people are told who ask.
    pub snapshot: ProxySnapshot,
    /// The workloads that have had reads or writes, in the order of their flows.
    pub times: Vec<WorkloadTimes>,
}

impl ProxyMetrics {
    /// The same with zeros for those of these workloads that have had no requests.
    #[must_use]
    pub fn with_workloads<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let zeros = TrafficCounts::new();
        for name in names {
            let workload = || name.to_owned();
            if self.snapshot.workloads.iter().all(|seen| seen.workload != name) {
                let seen = ProxiedWorkload { workload: workload(), ..ProxiedWorkload::default() };
                self.snapshot.workloads.push(seen);
            }
            if self.times.iter().all(|times| times.workload != name) {
                self.times.push(WorkloadTimes {
                    workload: workload(),
                    answered: ExponentialCounts::new(&zeros.answered),
                    waited: ExponentialCounts::new(&zeros.waited),
                });
            }
        }
        self
    }
}

/// What is counted of a flow.
#[derive(Debug)]
struct FlowTraffic {
    counted: ProxiedWorkload,
    answered: ExponentialCounts,
    waited: ExponentialCounts,
}

/// The traffic of all flows.
#[derive(Debug)]
struct TrafficCounts {
    flows: BTreeMap<u32, FlowTraffic>,
    answered: BucketScale,
    waited: BucketScale,
}

/// The counters that sessions and engine advance, and the record of requests.
#[derive(Debug)]
pub(super) struct ProxyStatistics {
    traffic: TrafficCounts,
    pub(super) cut: u64,
    pub(super) turned_away: u64,
    pub(super) released: u64,
    pub(super) changes: u64,
    record: ObservationRecord,
    sink: RequestSink,
}

/// The requests that were recorded, with their flows.
#[derive(Debug, Default)]
struct ObservationRecord {
    most: usize,
    observations: Vec<(u32, Observation)>,
    left_out: u64,
}

impl ProxyStatistics {
    /// Counters of zero, a record of at most `record` requests, and who takes all of them.
    pub(super) fn new(record: usize, recording: Option<SyncSender<ProxiedRequest>>) -> Self {
        Self {
            traffic: TrafficCounts::new(),
            cut: 0,
            turned_away: 0,
            released: 0,
            changes: 0,
            record: ObservationRecord { most: record, ..ObservationRecord::default() },
            sink: RequestSink::new(recording),
        }
    }

    /// Counts a request that was answered at `now`, or that has no reply and was forwarded.
    pub(super) fn observe(&mut self, request: &ProxyRequest, now: u64, names: &WorkloadNames) {
        let flow = data_flow(request.flow);
        let FlowTraffic { counted: traffic, answered, waited } = self.traffic.of(flow);
        let op = match request.class {
            RequestClass::Control => {
                traffic.control += 1;
                return;
            }
            RequestClass::Read(_) => Op::Read,
            RequestClass::Write(_) => Op::Write,
        };
        let intended = Nanos(request.arrived);
        let sent = Nanos(request.sent);
        let end = Nanos(now);
        let waited_s = (sent - intended).as_secs();
        traffic.requests += 1;
        traffic.bytes += request.size().0;
        traffic.waited_s += waited_s;
        traffic.waited_max_s = traffic.waited_max_s.max(waited_s);
        traffic.served_s += (end - sent).as_secs();
        answered.add((end - intended).0);
        waited.add((sent - intended).0);
        // The position of the workload among those observed is known in the end.
        let outcome = RequestOutcome::Done(end);
        let observation = Observation { workload: 0, op, size: request.size(), intended, sent, outcome };
        self.record.add(flow, observation);
        self.sink.send(flow, request, observation, names);
    }

    /// How many requests whoever records them did not take.
    pub(super) fn unrecorded(&self) -> u64 {
        self.sink.refused()
    }

    /// Counts a request of a flow that goes to the device although no bound counts it.
    pub(super) fn count_unexpected(&mut self, flow: u32) {
        self.traffic.of(data_flow(flow)).counted.unexpected += 1;
    }

    /// The traffic of all workloads, with their names.
    pub(super) fn traffic(&self, names: &WorkloadNames) -> Vec<ProxiedWorkload> {
        let named = |(flow, traffic): (&u32, &FlowTraffic)| ProxiedWorkload {
            workload: workload_name(names, *flow),
            ..traffic.counted.clone()
        };
        self.traffic.flows.iter().map(named).collect()
    }

    /// How long the reads and writes of all workloads took, with their names.
    pub(super) fn times(&self, names: &WorkloadNames) -> Vec<WorkloadTimes> {
        let read_or_wrote = self.traffic.flows.iter().filter(|(_, traffic)| traffic.counted.requests > 0);
        let times = |(flow, traffic): (&u32, &FlowTraffic)| WorkloadTimes {
            workload: workload_name(names, *flow),
            answered: traffic.answered.clone(),
            waited: traffic.waited.clone(),
        };
        read_or_wrote.map(times).collect()
    }

    /// Takes the recorded requests, with the stages `proxy` and `server`, and the number of those that were left out.
    pub(super) fn take_observations(&mut self, names: &WorkloadNames) -> (Observations, u64) {
        let ObservationRecord { observations: mut recorded, left_out, .. } = std::mem::take(&mut self.record);
        recorded.sort_by_key(|(_, observation)| observation.intended);
        let mut observations =
            Observations { stages: vec!["proxy".into(), "server".into()], ..Observations::default() };
        // The positions of workloads, in the order of their first requests.
        let mut positions = BTreeMap::new();
        for (flow, observation) in recorded {
            let workload = *positions.entry(flow).or_insert_with(|| {
                observations.workloads.push(workload_name(names, flow));
                u32::try_from(observations.workloads.len() - 1).expect("fewer workloads than 2³¹")
            });
            let RequestOutcome::Done(end) = observation.outcome else {
                unreachable!("it was recorded as done")
            };
            let stage_times = [observation.sent - observation.intended, end - observation.sent];
            observations.stage_times.extend(stage_times);
            // Its client sent it when it arrived; the time in the proxy is a stage.
            observations.requests.push(Observation { workload, sent: observation.intended, ..observation });
        }
        (observations, left_out)
    }
}

impl TrafficCounts {
    /// Nothing yet. Ends of buckets are 19 % apart where percentiles are judged, and a factor of 2 elsewhere.
    fn new() -> Self {
        Self { flows: BTreeMap::new(), answered: BucketScale::new(4), waited: BucketScale::new(1) }
    }

    fn of(&mut self, flow: u32) -> &mut FlowTraffic {
        let Self { flows, answered, waited } = self;
        flows.entry(flow).or_insert_with(|| FlowTraffic {
            counted: ProxiedWorkload::default(),
            answered: ExponentialCounts::new(answered),
            waited: ExponentialCounts::new(waited),
        })
    }
}

impl ObservationRecord {
    fn add(&mut self, flow: u32, observation: Observation) {
        if self.most == 0 {
            return;
        }
        if self.observations.len() < self.most {
            self.observations.push((flow, observation));
        } else {
            self.left_out += 1;
        }
    }
}

fn workload_name(names: &WorkloadNames, flow: u32) -> String {
    names.name(flow).unwrap_or(UNKNOWN_WORKLOAD).to_owned()
}
