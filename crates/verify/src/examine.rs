//! All workloads of a run against what was promised to them.
//!
//! Memory: beside the observations a few bytes for each, and of one workload at a time up to about fifty for each
//! of its requests.

use crate::limits::{Traffic, Work, traffic};
use crate::{BoundFinding, Finding, Findings, Promise, Unjudged, judge, lag, stages};
use confidence::nearest_rank;
use model::{Observation, Observations, Request, RequestOutcome};
use units::Nanos;

/// Judges every promise, with this confidence for each verdict. `work` says what the requests of a workload need at
/// its limits. A promise to a workload that was not observed is one without requests.
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1.
pub fn examine<'a>(
    observations: &Observations,
    promises: &[Promise],
    confidence: f64,
    work: &dyn Fn(&Promise) -> Work<'a>,
) -> Findings {
    let mut rows = by_workload(observations);
    let place = |name: &str| observations.workloads.iter().position(|other| other == name);
    let mut workloads = Vec::new();
    for promise in promises {
        let rows = place(&promise.name).map(|index| std::mem::take(&mut rows[index])).unwrap_or_default();
        workloads.push(Seen { observations, rows: &rows }.finding(promise, confidence, work));
    }
    let is_promised = |name: &String| promises.iter().any(|promise| promise.name == *name);
    let others = observations.workloads.iter().zip(&rows).filter(|(name, _)| !is_promised(name));
    let unjudged = others.map(|(name, rows)| Seen { observations, rows }.unjudged(name)).collect();
    Findings { confidence, workloads, unjudged }
}

/// Positions of the requests of each workload, in order.
fn by_workload(observations: &Observations) -> Vec<Vec<u32>> {
    let mut rows = vec![Vec::new(); observations.workloads.len()];
    for (row, request) in (0u32..).zip(&observations.requests) {
        rows[request.workload as usize].push(row);
    }
    rows
}

/// The requests of one workload.
struct Seen<'o, 'r> {
    observations: &'o Observations,
    rows: &'r [u32],
}

impl<'o> Seen<'o, '_> {
    fn requests(&self) -> impl DoubleEndedIterator<Item = &'o Observation> + ExactSizeIterator + Clone {
        let all = &self.observations.requests;
        self.rows.iter().map(move |row| &all[*row as usize])
    }

    fn finding<'w>(
        &self,
        promise: &Promise,
        confidence: f64,
        work: &dyn Fn(&Promise) -> Work<'w>,
    ) -> Finding {
        let judged = judge(self.requests().map(Observation::latency), promise.slo, confidence);
        let mut found = Finding::of(&promise.name, promise.policy.clone(), &judged);
        found.admitted = promise.admitted;
        (found.failed, found.lost) = (self.failed(), self.lost());
        found.per_s = self.per_s();
        found.max_s = self.requests().filter_map(Observation::latency).max().map(Nanos::as_secs);
        found.needed_s = found.needed_requests.zip(found.per_s).map(|(needed, rate)| needed as f64 / rate);
        let late = self.requests().map(|request| request.sent.saturating_sub(request.intended));
        found = found.with_lag(lag(late, promise.slo.percentile));
        found.stages = self.stages(promise);
        self.limits(promise, work, &mut found);
        found
    }

    fn unjudged(&self, name: &str) -> Unjudged {
        let mut latencies: Vec<Nanos> = self.requests().filter_map(Observation::latency).collect();
        latencies.sort_unstable();
        let at = |percent: f64| {
            (!latencies.is_empty()).then(|| latencies[nearest_rank(percent, latencies.len()) - 1].as_secs())
        };
        Unjudged {
            name: name.to_owned(),
            requests: self.rows.len() as u64,
            failed: self.failed(),
            lost: self.lost(),
            per_s: self.per_s(),
            p50_s: at(50.0),
            p99_s: at(99.0),
            max_s: at(100.0),
        }
    }

    fn failed(&self) -> u64 {
        self.requests().filter(|request| matches!(request.outcome, RequestOutcome::Failed(_))).count() as u64
    }

    fn lost(&self) -> u64 {
        self.requests().filter(|request| request.outcome == RequestOutcome::Lost).count() as u64
    }

    /// Gaps per second between the first and the last request.
    fn per_s(&self) -> Option<f64> {
        let (first, last) = (self.requests().next()?, self.requests().next_back()?);
        let span = (last.intended - first.intended).as_secs();
        (span > 0.0).then(|| (self.rows.len() - 1) as f64 / span)
    }

    fn stages(&self, promise: &Promise) -> Vec<crate::StageFinding> {
        let (names, times) = (&self.observations.stages, &self.observations.stage_times);
        let timed = |row: &u32| {
            let row = *row as usize;
            let latency = self.observations.requests[row].latency()?;
            Some((latency, &times[row * names.len()..(row + 1) * names.len()]))
        };
        stages(names, &self.rows.iter().filter_map(timed), promise.slo.percentile)
    }

    /// Limits and the bound, which holds within them.
    fn limits<'w>(&self, promise: &Promise, work: &dyn Fn(&Promise) -> Work<'w>, found: &mut Finding) {
        let intended =
            traffic(self.requests().map(|at| request(at, at.intended)), &promise.limits, work(promise));
        let beyond = |row: &&Observation, bound: f64| row.latency().is_none_or(|at| at.as_secs() > bound);
        found.bound = promise.bound_s.map(|bound_s| {
            let each = || self.requests().zip(&intended.over).filter(|(row, _)| beyond(row, bound_s));
            BoundFinding {
                bound_s,
                beyond: each().count() as u64,
                beyond_within_limits: each().filter(|(_, is_over)| !**is_over).count() as u64,
            }
        });
        found.kept_limits = kept(&intended, promise);
        found.limits = intended.limits;
        if promise.limits.is_empty() {
            return;
        }
        let mut sent: Vec<&Observation> = self.requests().collect();
        sent.sort_by_key(|at| at.sent);
        let sent = sent.into_iter().map(|at| request(at, at.sent));
        found.sent_limits = traffic(sent, &promise.limits, work(promise)).limits;
    }
}

fn kept(traffic: &Traffic, promise: &Promise) -> Option<bool> {
    if traffic.over.contains(&true) {
        return Some(false);
    }
    (!promise.limits.is_empty() && !traffic.is_partial).then_some(true)
}

/// What was asked for, as if it came at this instant. Observations do not say where on a device.
fn request(observed: &Observation, arrival: Nanos) -> Request {
    Request { arrival, size: observed.size, op: observed.op, offset: None, response: None }
}
