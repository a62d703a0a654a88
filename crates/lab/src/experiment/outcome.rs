//! What a play says: per workload, against its SLO.

use super::data::PolicyName;
use super::demand::{Planned, PlannedCase};
use super::play::Played;
use model::Observation;
use serde::Serialize;
use units::Percentile;
use verify::{Conclusion, Finding, judge, lag};

/// Of each verdict.
const CONFIDENCE: f64 = 0.95;

/// A workload under a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The workload; behind the name of the case and `/` where there are several.
    pub name: String,
    /// The policy.
    pub policy: &'static str,
    /// What was promised, seconds.
    pub slo_s: f64,
    /// At this percentile, 0–100.
    pub percentile: f64,
    /// What was measured at it, seconds; none when that request got no answer.
    pub measured_s: Option<f64>,
    /// The true percentile is at least this, seconds.
    pub ci_low_s: Option<f64>,
    /// And at most this, seconds; none when there are too few requests.
    pub ci_high_s: Option<f64>,
    /// What may be said.
    pub verdict: Conclusion,
    /// Whether the policy promises it: not to a workload that sends more than was planned with or is not admitted.
    #[serde(skip)]
    pub is_promised: bool,
    /// All that was found, under the tenant's name.
    #[serde(skip)]
    pub finding: Finding,
}

/// What the copy got.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside {
    /// Requests per second that were answered.
    pub per_s: f64,
}

/// The tenants of a case against their SLOs, and what the copy got beside them.
pub fn rows(
    planned: &Planned,
    case: &PlannedCase,
    policy: PolicyName,
    played: &Played,
) -> (Vec<Row>, Option<Beside>) {
    let ran = &played.ran;
    let of = |workload: usize| {
        let requests = ran.observations.requests.iter();
        requests.filter(move |request| request.workload as usize == workload)
    };
    let row = |(at, slo): (usize, &model::Slo)| {
        let latencies = of(at).map(Observation::latency);
        let index = u32::try_from(at).expect("few workloads");
        let tenant = case.case.tenants[at].name;
        let found = Finding::of(tenant, Some(policy.name().to_owned()), &judge(latencies, *slo, CONFIDENCE));
        let found = found.with_lag(lag(ran.generator_lags(index), slo.percentile));
        Row {
            name: match case.case.name {
                "" => tenant.to_owned(),
                name => format!("{name}/{tenant}"),
            },
            policy: policy.name(),
            slo_s: found.slo_s,
            percentile: Percentile::percent(slo.percentile),
            measured_s: found.measured_s,
            ci_low_s: found.ci_low_s,
            ci_high_s: found.ci_high_s,
            verdict: found.verdict,
            is_promised: policy == PolicyName::Tailwright && case.counts(at),
            finding: found,
        }
    };
    let rows = case.slos.iter().enumerate().map(row).collect();
    let answered = of(case.slos.len()).filter(|request| request.latency().is_some()).count();
    let beside = planned
        .experiment
        .copy
        .map(|_| Beside { per_s: answered as f64 / ran.observed_duration.as_secs().max(1e-9) });
    (rows, beside)
}

/// Whether every SLO that the protected policy promises is met; not when it was not played.
pub fn is_protected_met<'a>(rows: impl IntoIterator<Item = &'a Row>) -> bool {
    let mut promised = rows.into_iter().filter(|row| row.is_promised).peekable();
    promised.peek().is_some() && promised.all(|row| row.verdict == Conclusion::Met)
}
