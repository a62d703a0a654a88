//! Countss of the counters of one server's proxy.

use super::counts::Counts;
use super::latencies::LatencyCounts;
use agent::{ServerObservation, WorkloadCounters};
use std::collections::BTreeMap;

/// The counters of a proxy at its latest report.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerLedger {
    /// Identity of the counters; `None` before the first report.
    counters: Option<String>,
    latest: BTreeMap<String, WorkloadCounters>,
    pub(super) waiting: u64,
    pub(super) outstanding: u64,
    /// Instant of the latest report, nanoseconds.
    pub(super) read_at: Option<u64>,
}

impl ServerLedger {
    /// Takes over higher counters, and returns what each workload has more. Counters of one identity never fall; from
    /// lower ones nothing follows, and nothing is counted until they exceed those before.
    pub(super) fn read(&mut self, observation: &ServerObservation, now: u64) -> Vec<(String, Counts)> {
        let ServerObservation { counters, waiting, outstanding, workloads, .. } = observation;
        let is_first = self.counters.is_none();
        if self.counters.as_ref() != Some(counters) {
            self.counters = Some(counters.clone());
            self.latest.clear();
        }
        (self.waiting, self.outstanding, self.read_at) = (*waiting, *outstanding, Some(now));
        let zero = WorkloadCounters::default();
        let mut increments = Vec::new();
        let mut latest = BTreeMap::new();
        for counted in workloads {
            let before = self.latest.get(&counted.workload).unwrap_or(&zero);
            // Requests before this run of the controller belong to no known time.
            let before = if is_first { counted } else { before };
            let increment = difference(before, counted);
            let known = if increment.is_some() { counted } else { before };
            latest.insert(counted.workload.clone(), known.clone());
            increments.push((counted.workload.clone(), increment.unwrap_or_default()));
        }
        self.latest = latest;
        increments
    }
}

/// Returns what `after` counts more than `before`; `None` if it counts less anywhere, or contradicts itself.
fn difference(before: &WorkloadCounters, after: &WorkloadCounters) -> Option<Counts> {
    let requests = after.requests.checked_sub(before.requests)?;
    let known: BTreeMap<Option<u64>, u64> = before.latencies.iter().copied().collect();
    let mut latencies = LatencyCounts::default();
    let mut counted = 0u64;
    for (end, count) in &after.latencies {
        let more = count.checked_sub(known.get(end).copied().unwrap_or(0))?;
        counted = counted.checked_add(more)?;
        if more > 0 {
            latencies.add(*end, more);
        }
    }
    let late = after.late.checked_sub(before.late)?;
    let beyond_limits = after.beyond_limits.checked_sub(before.beyond_limits)?;
    let is_consistent = counted == requests && late <= requests && beyond_limits <= requests;
    is_consistent.then(|| Counts {
        requests,
        bytes: after.bytes.saturating_sub(before.bytes),
        late,
        beyond_limits,
        beyond_limits_waited_s: more_time(before.beyond_limits_waited_s, after.beyond_limits_waited_s),
        latency_s: more_time(before.latency_s, after.latency_s),
        latencies,
    })
}

fn more_time(before: f64, after: f64) -> f64 {
    // An agent is not believed a time that is no number.
    let more = after - before;
    if more.is_finite() { more.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counters: &str, requests: u64) -> ServerObservation {
        let workload = WorkloadCounters {
            workload: "t/a".into(),
            requests,
            latencies: vec![(Some(1_000), requests)],
            ..WorkloadCounters::default()
        };
        let counters = counters.to_owned();
        ServerObservation { counters, workloads: vec![workload], ..ServerObservation::default() }
    }

    fn requests(ledger: &mut ServerLedger, observation: &ServerObservation) -> u64 {
        ledger.read(observation, 0)[0].1.requests
    }

    #[test]
    fn nothing_is_counted_twice_or_backwards() {
        let mut ledger = ServerLedger::default();
        assert_eq!(requests(&mut ledger, &counted("first", 10)), 0, "it was before this run");
        assert_eq!(requests(&mut ledger, &counted("first", 25)), 15);
        assert_eq!(requests(&mut ledger, &counted("first", 25)), 0, "a report that comes twice");
        assert_eq!(requests(&mut ledger, &counted("second", 7)), 7, "a proxy that started anew");
        assert_eq!(requests(&mut ledger, &counted("second", 3)), 0, "counters that fall");
        assert_eq!(requests(&mut ledger, &counted("second", 9)), 2);
    }

    #[test]
    fn a_workload_that_appears_later_is_counted_from_zero() {
        let mut ledger = ServerLedger::default();
        let none = ServerObservation { counters: "first".into(), ..ServerObservation::default() };
        assert!(ledger.read(&none, 0).is_empty());
        assert_eq!(requests(&mut ledger, &counted("first", 4)), 4);
    }

    #[test]
    fn counters_that_contradict_themselves_are_not_believed() {
        let mut ledger = ServerLedger::default();
        requests(&mut ledger, &counted("first", 1));
        for change in [
            |counted: &mut WorkloadCounters| counted.late = 100,
            |counted: &mut WorkloadCounters| counted.beyond_limits = 100,
            |counted: &mut WorkloadCounters| counted.latencies = Vec::new(),
            |counted: &mut WorkloadCounters| {
                counted.latencies = vec![(None, u64::MAX), (Some(1), u64::MAX)];
            },
        ] {
            let mut bad = counted("first", 9);
            change(&mut bad.workloads[0]);
            assert_eq!(requests(&mut ledger.clone(), &bad), 0);
        }
        assert_eq!(more_time(1.0, f64::NAN), 0.0);
    }
}
