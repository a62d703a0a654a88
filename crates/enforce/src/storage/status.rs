//! What a proxy has seen: counts for people who ask, and every request for those who judge.

use super::request::Request;
use super::rules::{CONTROL, Names};
use model::{Observation, Observations, Op, RequestOutcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::Nanos;
use wire::RequestClass;

/// What unknown clients are called.
pub const UNKNOWN_NAME: &str = "(unknown)";

/// A workload, as a proxy has seen it since it began. Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its name; [`UNKNOWN_NAME`] for clients that no entry names.
    pub workload: String,
    /// Reads and writes that are over.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Metadata, handshakes and other requests that are over.
    pub control: u64,
    /// Sum of the times that reads and writes waited in the proxy.
    pub waited_s: f64,
    /// The longest.
    pub waited_max_s: f64,
    /// Sum of their times from being sent on to being answered.
    pub served_s: f64,
}

/// A proxy, as it says itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// By name.
    pub workloads: Vec<Seen>,
    /// Connections that are open.
    pub connections: u64,
    /// Connections that were cut off because somebody broke the protocol, hung up in the middle or stood still.
    pub cut: u64,
    /// Requests that wait.
    pub waiting: u64,
    /// Requests at the server.
    pub outstanding: u64,
    /// Bytes of requests that wait or come in.
    pub held_bytes: u64,
    /// Requests that stopped counting as outstanding because their client did not take the answer.
    pub released: u64,
    /// Times that a policy was changed.
    pub changes: u64,
}

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Status {
    seen: BTreeMap<u32, Seen>,
    pub(super) connections: u64,
    pub(super) cut: u64,
    pub(super) released: u64,
    pub(super) changes: u64,
    record: Record,
}

/// Requests that are kept.
#[derive(Debug, Default)]
struct Record {
    most: usize,
    kept: Vec<(u32, Observation)>,
    left_out: u64,
}

impl Status {
    /// From now on keeps as many requests.
    pub(super) fn keep(&mut self, most: usize) {
        self.record.most = most;
    }

    pub(super) fn observe(&mut self, request: &Request, now: u64) {
        let seen = self.seen.entry(request.flow & !CONTROL).or_default();
        let op = match request.class {
            RequestClass::Control => {
                seen.control += 1;
                return;
            }
            RequestClass::Read(_) => Op::Read,
            RequestClass::Write(_) => Op::Write,
        };
        let seconds = |ns: u64| Nanos(ns).as_secs();
        let waited = seconds(request.sent - request.arrived);
        seen.requests += 1;
        seen.bytes += request.size().0;
        seen.waited_s += waited;
        seen.waited_max_s = seen.waited_max_s.max(waited);
        seen.served_s += seconds(now - request.sent);
        if self.record.most == 0 {
            return;
        }
        if self.record.kept.len() == self.record.most {
            self.record.left_out += 1;
            return;
        }
        let (intended, sent) = (Nanos(request.arrived), Nanos(request.sent));
        let outcome = RequestOutcome::Done(Nanos(now));
        let observation = Observation { workload: 0, op, size: request.size(), intended, sent, outcome };
        self.record.kept.push((request.flow & !CONTROL, observation));
    }

    pub(super) fn workloads(&self, names: &Names) -> Vec<Seen> {
        let named = |(flow, seen): (&u32, &Seen)| Seen { workload: name(names, *flow), ..seen.clone() };
        self.seen.iter().map(named).collect()
    }

    /// What was kept, as observations with the stages `proxy` and `server`; and how many were not.
    pub(super) fn observations(&mut self, names: &Names) -> (Observations, u64) {
        let record = std::mem::take(&mut self.record);
        let mut kept = record.kept;
        kept.sort_by_key(|(_, observation)| observation.intended);
        let mut found =
            Observations { stages: vec!["proxy".into(), "server".into()], ..Observations::default() };
        let mut places = BTreeMap::new();
        for (flow, observation) in kept {
            let place = *places.entry(flow).or_insert_with(|| {
                found.workloads.push(name(names, flow));
                u32::try_from(found.workloads.len() - 1).expect("fewer workloads than 2³¹")
            });
            let RequestOutcome::Done(end) = observation.outcome else {
                unreachable!("kept when it was answered")
            };
            found.stage_times.extend([observation.sent - observation.intended, end - observation.sent]);
            found.requests.push(Observation { workload: place, ..observation });
        }
        (found, record.left_out)
    }
}

fn name(names: &Names, flow: u32) -> String {
    names.name(flow).unwrap_or(UNKNOWN_NAME).to_owned()
}
