//! A storage server: network in, a device, network out, and the workloads that share it.
//!
//! Requests of traces become time at each stage by the functions that planning uses (`PathWork`). A trace
//! repeats for ever; a replication begins anywhere in each, so that replications are independent
//! alignments. The latency of the idle device is added to every request, as bounds count it. It is that
//! of the slower operation, after the device and without keeping it busy.
//!
//! The device has `channels` channels, each slower by that factor than the profile's work: the throughput
//! is the profile's, and a request alone takes `channels` times as long. Priorities and limits apply
//! before a channel is free. Under a policy a proxy stands before the device. It admits to the device the
//! number of requests given by the scenario, else by the policy, else by the profile; the device serves
//! them first come, first served.
//!
//! Not covered: devices whose speed depends on their queue, and the proxy's own time.

mod build;
mod outcome;
mod playback;
mod rules;
mod spec;
mod storage_server;
mod workload;

pub use outcome::WorkloadOutcome;
pub use rules::{ServerRules, StageRule};
pub use spec::{RecordedRequests, trace_on_server};
pub(crate) use spec::{ScenarioWorkloadSpec, ServerSpec};
pub use storage_server::StorageServer;
pub use workload::{SimulatedWorkload, WorkloadRequests};
