//! What is promised to a workload, and what it promised in return.

use model::{Policy, PolicyWorkload, Slo, StageLimit};

/// Against what a workload is judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    /// Name of the workload.
    pub name: String,
    /// Who promises, e.g. the method that made the policy; none when somebody just asks.
    pub policy: Option<String>,
    /// Whether a guarantee was given; otherwise the SLO is only compared.
    pub admitted: bool,
    /// What was asked for.
    pub slo: Slo,
    /// No request takes longer, seconds, while the traffic is within its limits; none when nothing is guaranteed.
    pub bound_s: Option<f64>,
    /// Within which its traffic is to stay; any number of them at each stage.
    pub limits: Vec<StageLimit>,
}

impl Promise {
    /// Somebody asks whether a workload meets an SLO.
    pub fn asked(name: impl Into<String>, slo: Slo) -> Self {
        Self { name: name.into(), policy: None, admitted: true, slo, bound_s: None, limits: Vec::new() }
    }

    /// What a policy promises, in its order.
    pub fn of_policy(policy: &Policy) -> Vec<Self> {
        let promise = |workload: &PolicyWorkload| Self {
            name: workload.name.clone(),
            policy: Some(policy.policy_name.clone()),
            admitted: workload.admitted,
            slo: workload.slo,
            bound_s: workload.bound_s,
            limits: workload.limits.clone(),
        };
        policy.workloads.iter().map(promise).collect()
    }
}
