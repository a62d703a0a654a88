//! Experiments of the papers on this machine: real clients, a proxy, an emulated SSD and namespaces between them.
//!
//! An experiment is data ([`LabExperiment`]). [`ExperimentPlan::new`] scales its traces to the device,
//! computes bounds, sets SLOs from them and makes the policy, all without touching the machine;
//! [`run_case`] runs one case under one policy; [`workload_results`] compares the observations with the
//! SLOs.
//!
//! **SLOs.** The thesis does not print them. Here they follow from the bounds of the protecting policy, before anything
//! is measured, by a rule that each case names ([`SloRule`]). So the analysis admits them by construction; whether the
//! machine keeps them, and what other policies do to them, is measured.
//!
//! **Scale.** The disk of the thesis serves some hundred requests per second; the emulated SSD serves thousands, so that a
//! minute has enough requests for a 99.9th percentile. Traces are stretched or compressed in time until their work is the
//! load of Table 3.1 on this device; sizes, order and relative gaps stay.
//!
//! **Bottlenecks.** Either all tenants share the device behind a proxy ([`Bottleneck::Device`]), or their servers share
//! the link on which answers leave ([`Bottleneck::Link`]), where the network enforcer is tried.
//!
//! Not covered: a bottleneck at clients (thesis §3.4.4, "similar").

mod baseline_queue;
mod case_plan;
mod catalog;
mod definition;
mod device_analysis;
pub(crate) mod device_host;
pub(crate) mod device_simulation;
mod device_testbed;
pub(crate) mod disciplines;
mod experiment_lock;
mod forecast;
mod link;
mod namespace_thread;
mod plan;
mod requests;
mod result;
mod run;
mod scaled_trace;
mod slo_assignment;

pub use case_plan::CasePlan;
pub use catalog::{EXPERIMENTS, find_experiment};
pub use definition::{
    BackgroundCopy, Bottleneck, ExperimentCase, ExperimentTenant, LabExperiment, PolicyName, SloRule,
    TenantServer, TenantSource,
};
pub use experiment_lock::ExperimentLock;
pub use forecast::{TenantForecast, forecast};
pub use plan::ExperimentPlan;
pub use result::{CopyThroughput, WorkloadResult, are_promises_kept, workload_results};
pub use run::{CaseRun, RunSettings, run_case};
pub use scaled_trace::ScaledTrace;
