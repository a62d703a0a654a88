//! Experiments of the papers on this machine: real clients, a proxy, an emulated SSD and namespaces between them.
//!
//! An experiment is data ([`Experiment`]). [`Planned::of`] scales its traces to the device, asks the analysis for
//! bounds, sets SLOs from them and makes the policy, all without touching the machine; [`run()`] plays one case under one
//! policy; [`Row`] is what it says of a workload.
//!
//! **SLOs.** The thesis does not print them. Here they follow from the bounds of the protected policy, before
//! anything is measured, by a rule that each case names ([`Slos`]). So the analysis admits them by construction; whether
//! the machine keeps them, and what other policies do to them, is what is measured.
//!
//! **Scale.** The disk of the thesis serves some hundred requests per second; the emulated SSD serves thousands, so that
//! a minute has enough requests for a 99.9th percentile. Traces are stretched or compressed in time until their work
//! is the load of Table 3.1 on this device; sizes, order and relative gaps stay.
//!
//! **Bottlenecks.** Either all share the device behind a proxy ([`Bottleneck::Device`]), or their servers share the link on
//! which answers leave ([`Bottleneck::Link`]), and the network enforcer is what is tried.
//!
//! Not covered: a bottleneck at clients (thesis §3.4.4, "similar").

mod alone;
mod analysis;
mod data;
mod demand;
mod ground;
mod link;
mod outcome;
mod play;

pub use alone::Alone;
pub use analysis::{Analysis, blocking};
pub use data::{
    Bottleneck, Case, Copy, EXPERIMENTS, Experiment, PolicyName, Server, Slos, Source, Tenant, find,
};
pub use demand::{Demand, Planned, PlannedCase};
pub use outcome::{Beside, Row, is_protected_met, rows};
pub use play::{Played, Settings, run};
