//! Admission: decides for each arriving workload if it may join, and on which server, so that every member
//! still meets its SLO.
//!
//! It takes arrivals and departures one at a time or as groups, each workload with what an [`AdmissionProcedure`] keeps
//! of it, and answers each arrival with a server or an [`AdmissionRefusal`] that says which SLO would break. Those that
//! were accepted are never moved. Use it where workloads come and go and have to be answered at once: `tailwright
//! admit`. Where all workloads are known beforehand, [`crate::packing`] finds fewer servers by the same procedures, and
//! [`crate::placement`] gives guarantees by rate limits.
//!
//! An [`AdmissionController`] keeps one or several identical servers and takes an arrival to the first one where it fits.
//! What "fits" means is an [`AdmissionProcedure`]: [`ByModel`] asks any [`model::LatencyModel`] (SNC-Meister and
//! PriorityMeister are this with their models and, for the latter, [`priority_meister()`]; thesis §4.2 and §3.2);
//! [`Silo`], [`SiloPlus`] and [`QJump`] are the baselines of §4.3.1. [`largest_prefix`] finds the offline optimum of
//! §4.4.2.
//!
//! Reading order: [`Applicant`], [`AdmissionProcedure`], [`AdmissionController`], [`AdmissionRefusal`].
//!
//! Not covered: limits that keep a workload to its trace.

mod applicant;
mod baseline;
mod by_model;
mod controller;
mod optimum;
mod priority_meister;
mod procedure;
mod refusal;
#[cfg(test)]
mod tests;

pub use applicant::{Applicant, Priority, SharedServer};
pub use baseline::{QJump, QJumpLevels, Silo, SiloPlus, StageCurves, TrialBandwidth};
pub use by_model::{ByModel, SearchPriorities, by_slo};
pub use controller::{AdmissionController, AdmissionGuarantee, IdenticalServers};
pub use optimum::{AdmissiblePrefix, largest_prefix};
pub use priority_meister::priority_meister;
pub use procedure::AdmissionProcedure;
pub use refusal::{AdmissionRefusal, Breach, BreachCause};
