//! The systems that the thesis compares SNC-Meister with (§4.3.1), as admission procedures on one
//! client-server link: every workload has a limiter for each direction at the end of the link, so bursts do
//! not grow on the way.
//!
//! PriorityMeister is not here: it is [`super::ByModel`] with a worst-case model. Storage is not defined for
//! these systems; a workload that has work there is given no guarantee.

mod demand;
mod qjump;
mod silo;
mod silo_plus;
#[cfg(test)]
mod tests;

pub use demand::Demand;
pub use qjump::{Levels, QJump};
pub use silo::{Silo, Trial};
pub use silo_plus::SiloPlus;

use super::applicant::{Priority, ServerView};
use model::{PerStage, Stage, UndefinedLatency};

/// The stages of a network link.
const LINKS: [Stage; 2] = [Stage::NetworkIn, Stage::NetworkOut];

/// Σ r on a link never exceeds this fraction of it.
const MAX_RATE: f64 = crate::Instance::MAX_RATE;

/// Relative slack for rates that were computed from the delay that is checked afterwards.
const ROUNDING: f64 = 1.0 + 1e-12;

/// One priority for everybody.
fn no_priorities<S>(server: &ServerView<'_, S>) -> Vec<Priority> {
    vec![PerStage::from_fn(|_| 0); server.members.len()]
}

/// The first link that is asked for more than it has.
fn overload(rates: impl Fn(Stage) -> f64) -> Option<UndefinedLatency> {
    let over = |stage: &Stage| rates(*stage).is_nan() || rates(*stage) > MAX_RATE * ROUNDING;
    LINKS.into_iter().find(over).map(|stage| UndefinedLatency::Overload { stage, utilisation: rates(stage) })
}
