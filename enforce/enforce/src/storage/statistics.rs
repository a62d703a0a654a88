//! Counters of a proxy, and its record of requests for verification.

use super::flows::{UNKNOWN_FLOW, UNKNOWN_WORKLOAD, WorkloadNames, data_flow};
use super::recording::{ProxiedRequest, RequestSink};
use super::request::ProxyRequest;
use metrics::{BucketScale, ExponentialCounts};
use model::{Observation, Observations, Op, RequestOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::mpsc::SyncSender;
use units::Nanos;
use wire::RequestClass;

/// Nanoseconds of a second.
const NS_PER_S: u128 = 1_000_000_000;

/// Requests of one workload that a proxy has completed since its start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxiedWorkload {
    /// Name of the workload, or [`UNKNOWN_WORKLOAD`].
    pub workload: String,
    /// Number of reads and writes.
    pub requests: u64,
    /// Bytes read and written: none for refused requests, and what was returned of shorter reads.
    pub bytes: u64,
    /// Number of control requests, such as metadata and handshakes.
    pub control: u64,
    /// Number of best-effort requests that took longer than the policy's `best_effort_request_s`, counted at
    /// dispatch. No bound accounts for them; they were dispatched while no other request was at the device.
    #[serde(default)]
    pub unexpected: u64,
    /// Number of reads and writes that took longer in the proxy and the server than the whole SLO of the policy allows.
    #[serde(default)]
    pub late: u64,
    /// Number of reads and writes that the limits of the policy did not cover: the token buckets were empty, or the
    /// request was larger than the largest with a level.
    #[serde(default)]
    pub beyond_limits: u64,
    /// Total time that reads and writes beyond the limits waited in the proxy, seconds.
    #[serde(default)]
    pub beyond_limits_waited_s: f64,
    /// Total time that reads and writes waited in the proxy, seconds.
    pub waited_s: f64,
    /// Longest time that a read or write waited in the proxy, seconds.
    pub waited_max_s: f64,
    /// Total time from forwarding reads and writes to their replies, seconds.
    pub served_s: f64,
}

/// Counters of a proxy at one instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProxySnapshot {
    /// Workloads that have sent requests, in the order of their flows.
    pub workloads: Vec<ProxiedWorkload>,
    /// Number of open client connections.
    pub connections: u64,
    /// Maximum number of client connections at present: the configured one, or fewer if the process may open
    /// too few files.
    #[serde(default)]
    pub places: u64,
    /// Number of connections closed because of a protocol error, an early end or a stall.
    pub cut: u64,
    /// Number of connections refused because too many were open.
    #[serde(default)]
    pub turned_away: u64,
    /// Number of requests in the queue.
    pub waiting: u64,
    /// Number of requests outstanding at the server's device.
    pub outstanding: u64,
    /// Bytes of requests and replies that the proxy buffers.
    #[serde(rename = "held_bytes")]
    pub buffered_bytes: u64,
    /// Number of requests that stopped counting as outstanding before their reply arrived.
    pub released: u64,
    /// Number of policy changes.
    pub changes: u64,
    /// Number of times that a new process took over from the one before without a restart in between.
    #[serde(default)]
    pub take_overs: u64,
    /// Process from which this one took over, if it did.
    #[serde(default)]
    pub taken_over_from: Option<u32>,
}

/// Distributions of the times of a workload's reads and writes at a proxy.
#[derive(Debug, Clone)]
pub struct WorkloadTimes {
    /// Name of the workload, or [`UNKNOWN_WORKLOAD`].
    pub workload: String,
    /// Time from the arrival of a request to its reply, nanoseconds.
    pub answered: ExponentialCounts,
    /// Time from the arrival of a request to its dispatch, nanoseconds.
    pub waited: ExponentialCounts,
}

/// Counters of a proxy at one instant, with distributions.
#[derive(Debug, Clone)]
pub struct ProxyMetrics {
    /// Identity of the counters, which only rise. A process that takes over continues them under the same identity;
    /// one that starts anew has another.
    pub counters: String,
    pub snapshot: ProxySnapshot,
    /// Workloads that have sent reads or writes, in the order of their flows.
    pub times: Vec<WorkloadTimes>,
}

impl ProxyMetrics {
    /// Adds zero counters for those of `names` that have sent no requests.
    #[must_use]
    pub(crate) fn with_workloads<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
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

/// Counters of a workload, for the next proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct WorkloadRecord {
    pub(super) counted: ProxiedWorkload,
    pub(super) answered: TimesRecord,
    pub(super) waited: TimesRecord,
}

/// Counts of times by bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TimesRecord {
    pub(super) buckets: Vec<u64>,
    pub(super) sum_s: u64,
    pub(super) sum_rest_ns: u64,
}

/// Counters of one flow.
#[derive(Debug)]
struct FlowTraffic {
    counted: ProxiedWorkload,
    answered: ExponentialCounts,
    waited: ExponentialCounts,
}

/// Counters of all flows.
#[derive(Debug)]
struct TrafficCounts {
    flows: BTreeMap<u32, FlowTraffic>,
    answered: BucketScale,
    waited: BucketScale,
}

/// Counters that the sessions and the engine advance, and the record of requests.
#[derive(Debug)]
pub(super) struct ProxyStatistics {
    /// Identity of the counters.
    pub(super) identity: String,
    traffic: TrafficCounts,
    pub(super) cut: u64,
    pub(super) turned_away: u64,
    pub(super) released: u64,
    pub(super) changes: u64,
    record: ObservationRecord,
    sink: RequestSink,
}

/// Recorded requests with their flows.
#[derive(Debug, Default)]
struct ObservationRecord {
    most: usize,
    observations: Vec<(u32, Observation)>,
    left_out: u64,
}

impl ProxyStatistics {
    /// Creates zero counters and a record of at most `record` requests; `recording` receives all of them.
    pub(super) fn new(record: usize, recording: Option<SyncSender<ProxiedRequest>>) -> Self {
        Self {
            identity: new_identity(),
            traffic: TrafficCounts::new(),
            cut: 0,
            turned_away: 0,
            released: 0,
            changes: 0,
            record: ObservationRecord { most: record, ..ObservationRecord::default() },
            sink: RequestSink::new(recording),
        }
    }

    /// Counts a request that was answered at `now`, or that has no reply and was forwarded. `allowed` is the latency of
    /// its workload's SLO, nanoseconds.
    pub(super) fn observe(
        &mut self,
        request: &ProxyRequest,
        is_error: bool,
        allowed: Option<u64>,
        now: u64,
        names: &WorkloadNames,
    ) {
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
        traffic.bytes = traffic.bytes.saturating_add(request.transferred(is_error).0);
        traffic.waited_s += waited_s;
        traffic.waited_max_s = traffic.waited_max_s.max(waited_s);
        traffic.served_s += (end - sent).as_secs();
        traffic.late += u64::from(allowed.is_some_and(|allowed| (end - intended).0 > allowed));
        if request.is_beyond_limits {
            traffic.beyond_limits += 1;
            traffic.beyond_limits_waited_s += waited_s;
        }
        answered.add((end - intended).0);
        waited.add((sent - intended).0);
        // `take_observations` assigns the workload's index, when all workloads are known.
        let outcome = RequestOutcome::Done(end);
        let observation = Observation { workload: 0, op, size: request.size(), intended, sent, outcome };
        self.record.add(flow, observation);
        self.sink.send(flow, request, observation, names);
    }

    /// Returns the number of requests that the channel of recorded requests did not accept.
    pub(super) fn unrecorded(&self) -> u64 {
        self.sink.refused()
    }

    /// Counts a dispatched request of a flow that no bound accounts for.
    pub(super) fn count_unexpected(&mut self, flow: u32) {
        self.traffic.of(data_flow(flow)).counted.unexpected += 1;
    }

    /// Returns all counters for the next proxy.
    pub(super) fn records(&self, names: &WorkloadNames) -> (Vec<WorkloadRecord>, [u64; 4]) {
        let record = |(flow, traffic): (&u32, &FlowTraffic)| WorkloadRecord {
            counted: ProxiedWorkload { workload: workload_name(names, *flow), ..traffic.counted.clone() },
            answered: times_record(&traffic.answered),
            waited: times_record(&traffic.waited),
        };
        let counters = [self.cut, self.turned_away, self.released, self.changes];
        (self.traffic.flows.iter().map(record).collect(), counters)
    }

    /// Continues the counters of another proxy.
    pub(super) fn inherit(
        &mut self,
        workloads: Vec<WorkloadRecord>,
        counters: [u64; 4],
        names: &mut WorkloadNames,
    ) {
        let own = [&mut self.cut, &mut self.turned_away, &mut self.released, &mut self.changes];
        for (own, other) in own.into_iter().zip(counters) {
            *own += other;
        }
        for WorkloadRecord { counted, answered, waited } in workloads {
            let is_unknown = counted.workload == UNKNOWN_WORKLOAD;
            let flow = if is_unknown { UNKNOWN_FLOW } else { names.flow(&counted.workload) };
            let traffic = self.traffic.of(flow);
            let has_buckets = add_times(&mut traffic.answered, &answered);
            add_times(&mut traffic.waited, &waited);
            if !has_buckets {
                // Counters of one identity never fall.
                self.identity = new_identity();
            }
            traffic.counted = ProxiedWorkload { workload: String::new(), ..counted };
        }
    }

    /// Returns the counters of all workloads.
    pub(super) fn traffic(&self, names: &WorkloadNames) -> Vec<ProxiedWorkload> {
        let named = |(flow, traffic): (&u32, &FlowTraffic)| ProxiedWorkload {
            workload: workload_name(names, *flow),
            ..traffic.counted.clone()
        };
        self.traffic.flows.iter().map(named).collect()
    }

    /// Returns the time distributions of all workloads.
    pub(super) fn times(&self, names: &WorkloadNames) -> Vec<WorkloadTimes> {
        let read_or_wrote = self.traffic.flows.iter().filter(|(_, traffic)| traffic.counted.requests > 0);
        let times = |(flow, traffic): (&u32, &FlowTraffic)| WorkloadTimes {
            workload: workload_name(names, *flow),
            answered: traffic.answered.clone(),
            waited: traffic.waited.clone(),
        };
        read_or_wrote.map(times).collect()
    }

    /// Takes the recorded requests, with the stages `proxy` and `server`, and the number of requests left
    /// out.
    pub(super) fn take_observations(&mut self, names: &WorkloadNames) -> (Observations, u64) {
        let ObservationRecord { observations: mut recorded, left_out, .. } = std::mem::take(&mut self.record);
        recorded.sort_by_key(|(_, observation)| observation.intended);
        let mut observations =
            Observations { stages: vec!["proxy".into(), "server".into()], ..Observations::default() };
        // Indices of workloads, in the order of their first requests.
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
            // The client is assumed to have sent it on arrival; its time in the proxy is a stage of its own.
            observations.requests.push(Observation { workload, sent: observation.intended, ..observation });
        }
        (observations, left_out)
    }
}

impl TrafficCounts {
    /// Creates empty counters. Bucket bounds of `answered`, whose percentiles are verified, are 19 % apart;
    /// those of `waited` a factor of 2.
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

/// Returns a random identity. The keys of hash maps come from the system's source of randomness.
pub(super) fn new_identity() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

fn workload_name(names: &WorkloadNames, flow: u32) -> String {
    names.name(flow).unwrap_or(UNKNOWN_WORKLOAD).to_owned()
}

fn times_record(counts: &ExponentialCounts) -> TimesRecord {
    let (buckets, sum_ns) = counts.parts();
    let parts = [sum_ns / NS_PER_S, sum_ns % NS_PER_S].map(|part| u64::try_from(part).unwrap_or(u64::MAX));
    let [sum_s, sum_rest_ns] = parts;
    TimesRecord { buckets: buckets.to_vec(), sum_s, sum_rest_ns }
}

/// Adds times of another proxy. Another version may have other buckets: then nothing is added, and the answer is false.
fn add_times(counts: &mut ExponentialCounts, record: &TimesRecord) -> bool {
    let sum_ns = u128::from(record.sum_s) * NS_PER_S + u128::from(record.sum_rest_ns);
    counts.add_parts(&record.buckets, sum_ns)
}
