//! The document of verdicts on observations.

use schemars::JsonSchema;
use serde::Serialize;
use verify::{Findings, OverallVerdict};

/// Verdicts on observations, with what they rest on.
#[derive(Serialize, JsonSchema)]
pub struct FindingsDocument<'a> {
    policy: Option<&'a str>,
    /// Combined verdict on all workloads with a guarantee.
    verdict: OverallVerdict,
    /// Servers to which the bounds of the policy do not apply, and why: --without-bounds accepts that, or the policy is of version 1 and for several channels. No bound on them is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds_do_not_apply: Option<&'a str>,
    #[serde(flatten)]
    findings: &'a Findings,
}

impl<'a> FindingsDocument<'a> {
    /// Describes findings under the policy of this name; `broken_bounds` says which bounds do not apply, and why.
    pub fn new(policy: Option<&'a str>, findings: &'a Findings, broken_bounds: Option<&'a str>) -> Self {
        Self { policy, verdict: findings.overall(), bounds_do_not_apply: broken_bounds, findings }
    }
}
