//! What is promised to a workload, and what the workload keeps to in return.

use model::{Policy, PolicyWorkload, Slo, StageLimit};

/// The terms that a workload is judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceAgreement {
    /// The name of the workload.
    pub name: String,
    /// The name of the policy that makes the promise; `None` when the SLO was only asked about.
    pub policy: Option<String>,
    /// Whether the SLO is guaranteed; otherwise observations are only compared with it.
    pub admitted: bool,
    /// The objective for the latency of the workload.
    pub slo: Slo,
    /// The guaranteed latency in seconds, which no request exceeds while the traffic is within its limits; `None` when
    /// nothing is guaranteed.
    pub bound_s: Option<f64>,
    /// The limits for the traffic of the workload, any number of them at each stage.
    pub limits: Vec<StageLimit>,
}

impl ServiceAgreement {
    /// An agreement about an SLO alone, without policy, bound and limits.
    pub fn slo_only(name: impl Into<String>, slo: Slo) -> Self {
        Self { name: name.into(), policy: None, admitted: true, slo, bound_s: None, limits: Vec::new() }
    }

    /// The agreements of all workloads of a policy, in its order.
    pub fn from_policy(policy: &Policy) -> Vec<Self> {
        policy.workloads.iter().map(|workload| Self::from_workload(workload, &policy.policy_name)).collect()
    }

    fn from_workload(workload: &PolicyWorkload, policy_name: &str) -> Self {
        Self {
            name: workload.name.clone(),
            policy: Some(policy_name.to_owned()),
            admitted: workload.admitted,
            slo: workload.slo,
            bound_s: workload.bound_s,
            limits: workload.limits.clone(),
        }
    }
}
