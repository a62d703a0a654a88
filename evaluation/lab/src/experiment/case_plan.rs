//! A case of an experiment with everything that is decided before it runs.

use super::definition::ExperimentCase;
use super::scaled_trace::ScaledTrace;
use model::{Policy, Slo};

/// A case, ready to run.
#[derive(Debug, Clone)]
pub struct CasePlan {
    /// The case that is planned.
    pub case: ExperimentCase,
    /// The SLOs, by tenant.
    pub slos: Vec<Slo>,
    /// The requests that are sent, by tenant.
    pub sent: Vec<ScaledTrace>,
    /// The protecting policy, with its limits and the bounds that it promises.
    pub policy: Policy,
    /// True if the analysis shows that the protecting policy keeps all SLOs.
    pub admits_all: bool,
    /// The policy of strict priority by SLO.
    pub by_slo: Policy,
}

impl CasePlan {
    /// Returns true if the protecting policy promises a tenant its SLO: the tenant is admitted, and sends the
    /// planned load.
    pub fn promises(&self, tenant: usize) -> bool {
        let behaves = self.case.misbehaves.is_none_or(|(index, _)| index != tenant);
        behaves && self.policy.workloads[tenant].admitted
    }
}
