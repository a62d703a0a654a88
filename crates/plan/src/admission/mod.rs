//! Deciding who may come: workloads arrive and depart one at a time or as groups, and are accepted only if
//! everybody on a server still meets its SLO.
//!
//! A [`Desk`] keeps one or several identical servers and takes an arrival to the first one where it fits.
//! What "fits" means is a [`Procedure`]: [`ByModel`] asks any [`model::LatencyModel`] (SNC-Meister and
//! PriorityMeister are this with their models and, for the latter, [`priority_meister`]; thesis §4.2 and §3.2), [`Silo`], [`SiloPlus`] and [`QJump`]
//! are the baselines of §4.3.1. [`largest_prefix`] finds the offline optimum of §4.4.2.
//!
//! Reading order: [`Applicant`], [`Procedure`], [`Desk`], [`Refusal`].
//!
//! Not covered: moving accepted workloads to other servers (see `placement` for that), and limits that
//! keep a workload to its trace.

mod applicant;
mod baseline;
mod by_model;
mod desk;
mod optimum;
mod priority_meister;
mod procedure;
mod refusal;
#[cfg(test)]
mod tests;

pub use applicant::{Applicant, Priority, ServerView};
pub use baseline::{Demand, Levels, QJump, Silo, SiloPlus, Trial};
pub use by_model::{ByModel, SearchPriorities, by_slo};
pub use desk::{Desk, Guaranteed, Host};
pub use optimum::{Prefix, largest_prefix};
pub use priority_meister::priority_meister;
pub use procedure::Procedure;
pub use refusal::{Breach, Cause, Refusal};
