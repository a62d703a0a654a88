//! Guarantees of a workload, and the limits for its traffic in return.

use model::{Objective, Op, PerStage, Policy, PolicySlo, PolicyWorkload, Slo, Stage, StageLimit};

/// Relative tolerance for rounding when a request is compared with the largest that a bound covers.
const ROUNDING: f64 = 1e-6;

/// The terms that a workload is judged by. A workload with several SLOs has as many agreements, which have the same
/// limits.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceAgreement {
    /// The name of the workload.
    pub name: String,
    /// The name of the policy that guarantees the SLO; `None` when only the SLO is judged.
    pub policy: Option<String>,
    /// True if the SLO is guaranteed; otherwise observations are only compared with it.
    pub admitted: bool,
    /// The objective for the latency of the workload.
    pub slo: Slo,
    /// The direction of the requests that SLO and bound are about; `None` if they are about all.
    pub requests: Option<Op>,
    /// The guaranteed latency in seconds, which no request exceeds while the traffic is within its limits; `None` when
    /// nothing is guaranteed.
    pub bound_s: Option<f64>,
    /// True if the bound holds for every request on the machine with its enforcement, because the policy
    /// describes how the server is used. Otherwise it is a percentile, or ignores work that a server does
    /// not interrupt.
    pub covers_every_request: bool,
    /// The limits for the traffic of the workload, any number of them at each stage.
    pub limits: Vec<StageLimit>,
    /// Device time of the largest request that the bound is about, seconds.
    pub largest_request: Option<f64>,
    /// Maximum number of bytes at network-out, per second of device time, of a request that the bound
    /// covers.
    pub densest_answer: Option<f64>,
}

impl ServiceAgreement {
    /// An agreement about an SLO alone, without policy, bound and limits.
    pub fn slo_only(name: impl Into<String>, slo: Slo) -> Self {
        Self {
            name: name.into(),
            policy: None,
            admitted: true,
            slo,
            requests: None,
            bound_s: None,
            covers_every_request: false,
            limits: Vec::new(),
            largest_request: None,
            densest_answer: None,
        }
    }

    /// The SLO with the direction of its requests.
    pub(crate) fn objective(&self) -> Objective {
        Objective { slo: self.slo, requests: self.requests }
    }

    /// True if the bound covers a request with this work at the stages, as far as its work is known.
    pub(crate) fn is_about(&self, work: &PerStage<Option<f64>>) -> bool {
        let is_beyond = |found: f64, most: f64| found > most * (1.0 + ROUNDING);
        let Some(device) = work[Stage::Storage] else { return true };
        let is_too_large = self.largest_request.is_some_and(|largest| is_beyond(device, largest));
        let is_too_dense = self
            .densest_answer
            .zip(work[Stage::NetworkOut])
            .is_some_and(|(densest, answer)| is_beyond(answer, densest * device));
        !is_too_large && !is_too_dense
    }

    /// The agreements of all workloads of a policy, in its order: one for each SLO.
    pub fn from_policy(policy: &Policy) -> Vec<Self> {
        let mut agreements = Vec::with_capacity(policy.workloads.len());
        for workload in &policy.workloads {
            let of = |promised| Self::from_workload(workload, promised, policy);
            agreements.extend(workload.objectives().map(of));
        }
        agreements
    }

    fn from_workload(workload: &PolicyWorkload, promised: PolicySlo, policy: &Policy) -> Self {
        let of_host = workload.client.iter().flat_map(|client| &client.limits);
        Self {
            name: workload.name.clone(),
            policy: Some(policy.policy_name.clone()),
            admitted: workload.admitted,
            slo: promised.slo.slo,
            requests: promised.slo.requests,
            bound_s: promised.bound_s,
            covers_every_request: workload
                .server
                .as_deref()
                .is_some_and(|server| policy.covers_every_request(server)),
            limits: workload.limits.iter().chain(of_host).copied().collect(),
            largest_request: workload.largest_request,
            densest_answer: workload.densest_answer,
        }
    }
}
