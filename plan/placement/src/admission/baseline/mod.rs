//! The systems that the thesis compares SNC-Meister with (§4.3.1), as admission procedures on one
//! client-server link: every workload has a limiter for each direction at the end of the link, so bursts do
//! not grow on the way.
//!
//! PriorityMeister is not here: it is [`super::ByModel`] with a worst-case model. Storage is not defined for
//! these systems; a workload that has work there is given no guarantee.

mod qjump;
mod silo;
mod silo_plus;
mod stage_curves;
#[cfg(test)]
mod tests;

pub use qjump::{QJump, QJumpLevels};
pub use silo::{Silo, TrialBandwidth};
pub use silo_plus::SiloPlus;
pub use stage_curves::StageCurves;

use super::applicant::{Priority, SharedServer};
use model::{PerStage, Stage, UndefinedLatency};

/// The stages of a network link.
const LINKS: [Stage; 2] = [Stage::NetworkIn, Stage::NetworkOut];

/// The sum of rates on a link never exceeds this fraction of it.
const MAX_RATE: f64 = crate::PlanningProblem::MAX_RATE;

/// The relative slack for rates that were computed from the delay that is checked afterwards.
const ROUNDING: f64 = 1.0 + 1e-12;

/// One priority for all members.
fn no_priorities<S>(server: &SharedServer<'_, S>) -> Vec<Priority> {
    vec![PerStage::from_fn(|_| 0); server.members.len()]
}

/// The first link whose rates add up to more than it can carry.
fn overload(rates: impl Fn(Stage) -> f64) -> Option<UndefinedLatency> {
    for stage in LINKS {
        let utilisation = rates(stage);
        if utilisation.is_nan() || utilisation > MAX_RATE * ROUNDING {
            return Some(UndefinedLatency::Overload { stage, utilisation });
        }
    }
    None
}
