//! Results of a case's run: each workload against its SLO.

use super::case_plan::CasePlan;
use super::definition::PolicyName;
use super::plan::ExperimentPlan;
use super::run::CaseRun;
use model::{Observation, Slo};
use schemars::JsonSchema;
use serde::Serialize;
use verify::{Finding, Judgement, Verdict, judge, summarize_lags};

/// The confidence of each verdict.
pub(super) const CONFIDENCE: f64 = 0.95;

/// A workload under a policy: its guarantee and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkloadResult {
    /// Name of the workload, prefixed with the case's name and `/` if there are several cases.
    pub name: String,
    /// The name of the policy.
    pub policy: &'static str,
    /// Comparison of the observations with the SLO.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// True if the policy guarantees the SLO. False for a workload that is not admitted, or sends more than
    /// planned.
    #[serde(skip)]
    pub is_promised: bool,
    /// The finding in full, under the name of the tenant.
    #[serde(skip)]
    pub finding: Finding,
}

/// Throughput of the copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyThroughput {
    /// Requests per second that were answered.
    pub per_s: f64,
}

/// Returns the results of the tenants of a case, and the throughput of the copy if there is one.
pub fn workload_results(
    plan: &ExperimentPlan,
    case: &CasePlan,
    policy: PolicyName,
    run: &CaseRun,
) -> (Vec<WorkloadResult>, Option<CopyThroughput>) {
    let mut results = Vec::new();
    for (tenant, &slo) in case.slos.iter().enumerate() {
        results.push(workload_result(case, tenant, slo, policy, run));
    }
    let copy = plan.experiment.copy.map(|_| {
        let answered = observations_of(run, case.slos.len()).filter(|request| request.latency().is_some());
        let seconds = run.report.observed_duration.as_secs().max(1e-9);
        CopyThroughput { per_s: answered.count() as f64 / seconds }
    });
    (results, copy)
}

fn workload_result(
    case: &CasePlan,
    tenant: usize,
    slo: Slo,
    policy: PolicyName,
    run: &CaseRun,
) -> WorkloadResult {
    let name = case.case.tenants[tenant].name;
    let latencies = observations_of(run, tenant).map(Observation::latency);
    let index = u32::try_from(tenant).expect("few workloads");
    let finding =
        Finding::from_judgement(name, Some(policy.name().to_owned()), judge(latencies, slo, CONFIDENCE))
            .with_lag(summarize_lags(run.report.generator_lags(index), slo.percentile));
    WorkloadResult {
        name: match case.case.name {
            "" => name.to_owned(),
            case => format!("{case}/{name}"),
        },
        policy: policy.name(),
        judgement: finding.judgement,
        is_promised: policy == PolicyName::Tailwright && case.promises(tenant),
        finding,
    }
}

/// The requests of the workload with this index.
fn observations_of(run: &CaseRun, workload: usize) -> impl Iterator<Item = &Observation> {
    let requests = run.report.observations.requests.iter();
    requests.filter(move |request| request.workload as usize == workload)
}

/// Returns true if all SLOs that the protecting policy promises are met; false if it promises none, as when
/// it was not run.
pub fn are_promises_kept<'a>(results: impl IntoIterator<Item = &'a WorkloadResult>) -> bool {
    let mut promised = results.into_iter().filter(|result| result.is_promised).peekable();
    promised.peek().is_some() && promised.all(|result| result.judgement.verdict == Verdict::Met)
}
