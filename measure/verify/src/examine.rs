//! Judges all workloads of a run by their agreements.
//!
//! Memory: a few bytes for each observation, beside the observations themselves, and up to about fifty bytes for each
//! request of the one workload that is being judged.

use crate::agreement::ServiceAgreement;
use crate::finding::{BoundFinding, Finding, Findings, UnjudgedWorkload};
use crate::judge::judge;
use crate::lag::summarize_lags;
use crate::limit_check::{LimitCheck, WorkFunction, check_limits};
use crate::percentile::percentile_s;
use crate::stage_breakdown::{StageFinding, stage_breakdown};
use model::{Observation, Observations, Request, RequestOutcome};
use std::borrow::Cow;
use units::Nanos;

/// Judges the observations by every agreement, with this confidence for each verdict. `work` returns what computes the
/// work of a workload's requests at its limits. A workload that was not observed is judged as one without requests.
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1.
pub fn examine<'a>(
    observations: &Observations,
    agreements: &[ServiceAgreement],
    confidence: f64,
    work: &dyn Fn(&ServiceAgreement) -> WorkFunction<'a>,
) -> Findings {
    let positions = positions_by_workload(observations);
    let mut workloads: Vec<Finding> = Vec::with_capacity(agreements.len());
    for agreement in agreements {
        let index = observations.workloads.iter().position(|name| *name == agreement.name);
        let own = index.map_or(&[][..], |index| &positions[index]);
        let observed = WorkloadObservations { observations, positions: own };
        let mut finding = observed.finding(agreement, confidence, work);
        // Limits are about all traffic of a workload: its first SLO has them.
        if workloads.iter().any(|earlier| earlier.name == agreement.name) {
            finding.limits.clear();
            finding.sent_limits.clear();
        }
        workloads.push(finding);
    }
    let mut unjudged = Vec::new();
    for (name, own) in observations.workloads.iter().zip(&positions) {
        if agreements.iter().all(|agreement| agreement.name != *name) {
            unjudged.push(WorkloadObservations { observations, positions: own }.unjudged(name));
        }
    }
    Findings { confidence, window_s: None, workloads, unjudged }
}

/// The positions of the requests of each workload, in order.
fn positions_by_workload(observations: &Observations) -> Vec<Vec<u32>> {
    let mut positions = vec![Vec::new(); observations.workloads.len()];
    for (position, request) in (0u32..).zip(&observations.requests) {
        positions[request.workload as usize].push(position);
    }
    positions
}

/// The requests of one workload.
struct WorkloadObservations<'o, 'p> {
    observations: &'o Observations,
    /// Their positions among all requests, in ascending order.
    positions: &'p [u32],
}

impl<'o> WorkloadObservations<'o, '_> {
    fn requests(&self) -> impl DoubleEndedIterator<Item = &'o Observation> + ExactSizeIterator + Clone {
        let all = &self.observations.requests;
        self.positions.iter().map(move |position| &all[*position as usize])
    }

    fn finding<'w>(
        &self,
        agreement: &ServiceAgreement,
        confidence: f64,
        work: &dyn Fn(&ServiceAgreement) -> WorkFunction<'w>,
    ) -> Finding {
        let judged = self.positions_of(agreement);
        let judged = WorkloadObservations { observations: self.observations, positions: &judged };
        let judgement = judge(judged.requests().map(Observation::latency), agreement.slo, confidence);
        let mut finding = Finding::from_judgement(&agreement.name, agreement.policy.clone(), judgement);
        finding.direction = agreement.requests;
        finding.admitted = agreement.admitted;
        finding.failed = judged.failed();
        finding.lost = judged.lost();
        finding.per_s = judged.rate();
        finding.max_s = judged.requests().filter_map(Observation::latency).max().map(Nanos::as_secs);
        finding.needed_s =
            judgement.needed_requests.zip(finding.per_s).map(|(needed, rate)| needed as f64 / rate);
        let lags = judged.requests().map(|request| request.sent.saturating_sub(request.intended));
        finding = finding.with_lag(summarize_lags(lags, agreement.slo.percentile));
        finding.stages = judged.stages(agreement);
        self.add_limits(agreement, work, &mut finding);
        finding
    }

    /// Positions of the requests that the SLO of the agreement is about.
    fn positions_of(&self, agreement: &ServiceAgreement) -> Cow<'_, [u32]> {
        if agreement.requests.is_none() {
            return Cow::Borrowed(self.positions);
        }
        let all = self.positions.iter().zip(self.requests());
        let own = all.filter(|(_, request)| agreement.objective().is_about(request.op));
        own.map(|(position, _)| *position).collect()
    }

    fn unjudged(&self, name: &str) -> UnjudgedWorkload {
        let mut latencies: Vec<Nanos> = self.requests().filter_map(Observation::latency).collect();
        latencies.sort_unstable();
        UnjudgedWorkload {
            name: name.to_owned(),
            requests: self.positions.len() as u64,
            failed: self.failed(),
            lost: self.lost(),
            per_s: self.rate(),
            p50_s: percentile_s(&latencies, 50.0),
            p99_s: percentile_s(&latencies, 99.0),
            max_s: percentile_s(&latencies, 100.0),
        }
    }

    fn failed(&self) -> u64 {
        self.requests().filter(|request| matches!(request.outcome, RequestOutcome::Failed(_))).count() as u64
    }

    fn lost(&self) -> u64 {
        self.requests().filter(|request| request.outcome == RequestOutcome::Lost).count() as u64
    }

    /// Requests per second: the gaps between the first and the last request, over the time between them.
    fn rate(&self) -> Option<f64> {
        let first = self.requests().next()?;
        let last = self.requests().next_back()?;
        let span = (last.intended - first.intended).as_secs();
        (span > 0.0).then(|| (self.positions.len() - 1) as f64 / span)
    }

    fn stages(&self, agreement: &ServiceAgreement) -> Vec<StageFinding> {
        let names = &self.observations.stages;
        let times = &self.observations.stage_times;
        let answered = self.positions.iter().filter_map(|position| {
            let position = *position as usize;
            let latency = self.observations.requests[position].latency()?;
            // The times of all requests are in one vector, as many for each as there are stages.
            Some((latency, &times[position * names.len()..(position + 1) * names.len()]))
        });
        stage_breakdown(names, &answered, agreement.slo.percentile)
    }

    /// Adds the findings about the limits of all requests, and about the bound of those that the agreement is about, which
    /// holds only within the limits.
    fn add_limits<'w>(
        &self,
        agreement: &ServiceAgreement,
        work: &dyn Fn(&ServiceAgreement) -> WorkFunction<'w>,
        finding: &mut Finding,
    ) {
        let intended = self.requests().map(|observed| request(observed, observed.intended));
        let intended = check_limits(intended, agreement, work(agreement));
        finding.bound =
            agreement.bound_s.map(|bound_s| self.compare_with_bound(bound_s, agreement, &intended));
        finding.kept_limits = kept_limits(&intended, agreement);
        finding.limits = intended.limits;
        if agreement.limits.is_empty() {
            return;
        }
        let mut by_sending: Vec<&Observation> = self.requests().collect();
        by_sending.sort_by_key(|observed| observed.sent);
        let sent = by_sending.into_iter().map(|observed| request(observed, observed.sent));
        let sent = check_limits(sent, agreement, work(agreement));
        finding.kept_limits_sent = kept_limits(&sent, agreement);
        let has_kept = [finding.kept_limits, finding.kept_limits_sent] == [Some(true); 2];
        if let Some(bound) = finding.bound.as_mut().filter(|_| has_kept && agreement.covers_every_request) {
            let own = self.requests().filter(|observed| agreement.objective().is_about(observed.op));
            let taken = own.filter_map(|observed| match observed.outcome {
                RequestOutcome::Done(done) => Some(done.saturating_sub(observed.sent).as_secs()),
                _ => None,
            });
            bound.broken =
                taken.filter(|taken| BoundFinding::is_beyond(bound.bound_s, *taken)).count() as u64;
        }
        finding.sent_limits = sent.limits;
    }

    fn compare_with_bound(
        &self,
        bound_s: f64,
        agreement: &ServiceAgreement,
        intended: &LimitCheck,
    ) -> BoundFinding {
        let covers_every_request = agreement.covers_every_request;
        let mut finding =
            BoundFinding { bound_s, beyond: 0, beyond_within_limits: 0, broken: 0, covers_every_request };
        let is_beyond = |latency: Nanos| BoundFinding::is_beyond(bound_s, latency.as_secs());
        let all = self.requests().zip(&intended.over);
        for (observed, is_over_limits) in all.filter(|(it, _)| agreement.objective().is_about(it.op)) {
            if observed.latency().is_none_or(is_beyond) {
                finding.beyond += 1;
                finding.beyond_within_limits += u64::from(!is_over_limits);
            }
        }
        finding
    }
}

/// True if the traffic conformed to all limits, false if not to some; `None` if that is unknown.
fn kept_limits(check: &LimitCheck, agreement: &ServiceAgreement) -> Option<bool> {
    if check.over.contains(&true) {
        return Some(false);
    }
    (!agreement.limits.is_empty() && !check.is_partial).then_some(true)
}

/// The observed request as if it arrived at `arrival`. Observations do not say where on a device it went.
fn request(observed: &Observation, arrival: Nanos) -> Request {
    Request { arrival, size: observed.size, op: observed.op, offset: None, response: None }
}
