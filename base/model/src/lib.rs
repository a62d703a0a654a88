//! Plain data shared by Tailwright's systems: requests, stages, SLOs, the cluster that a user describes,
//! the [`Policy`] that is enforced, and the [`Observations`] that it is judged by.
//!
//! Nothing here computes. A type belongs here if two systems that must not depend on each other both use
//! it.

mod circular_trace;
mod cluster;
mod error;
mod job;
mod latency_model;
mod name;
mod observations;
mod policy;
mod request;
mod slo;
mod stage;
mod verdict;

pub use circular_trace::{Arrives, CircularTrace, CircularTraceError};
pub use cluster::{ClientHost, Cluster, DEFAULT_SAFETY_MARGIN, FRAME, ServerClass, WorkloadSpec};
pub use error::{Blame, OperationError};
pub use job::Job;
pub use latency_model::{
    LatencyEstimate, LatencyModel, Prediction, ServerMember, UndefinedLatency, predicted_above,
};
pub use name::{NAME_EXPECTED, is_usable_name};
pub use observations::{Observation, Observations, RequestOutcome};
pub use policy::{
    CHANNELS_MAX, Condition, ConditionDifference, ConditionRow, ConditionUnit, ConditionValue, LINK_BURST_S,
    PRIORITY_LEVELS, Policy, PolicyClient, PolicyError, PolicyHost, PolicyPlacement, PolicyServer, PolicySlo,
    PolicyWorkload, RateLimit, Safety, ServerConditions, ServerEnforcement, StageLimit, UnsafeDirection,
};
pub use request::{Op, Request};
pub use slo::{Objective, Slo};
pub use stage::{PerStage, Stage};
pub use verdict::Verdict;
