//! A variant with what its simulation found.

use crate::{Case, Choice, Variant};
use model::OperationError;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{InvalidSimulationError, ReplicationVerdict, SimulationReport, replicate};

/// A variant that was run.
pub struct Run {
    /// What it has on the axes that are varied.
    pub choices: Vec<Choice>,
    /// What was run.
    pub case: Case,
    /// What was found.
    pub report: SimulationReport,
}

impl Variant {
    /// Runs it. Variants that are run with one seed get the same requests where they can, so that differences
    /// between them are not due to chance in what came in.
    ///
    /// # Errors
    /// As [`crate::Document::case`], and when the network cannot be simulated.
    pub fn run(&self, seed: u64) -> Result<Run, OperationError> {
        Run::of(self.document.case()?, self.choices.clone(), seed)
            .map_err(|invalid| self.document.fault(&invalid.to_string()))
    }
}

impl Run {
    /// Runs a case.
    ///
    /// # Errors
    /// When the network cannot be simulated.
    pub fn of(mut case: Case, choices: Vec<Choice>, seed: u64) -> Result<Self, InvalidSimulationError> {
        // Replications have consecutive seeds: these are far from those of another seed.
        case.plan.seed = StdRng::seed_from_u64(seed).random();
        let report = replicate(&case.network, |seed| case.entries(seed), &case.plan)?;
        Ok(Self { choices, case, report })
    }

    /// What it has on an axis.
    ///
    /// # Panics
    /// When there is no such axis.
    pub fn choice(&self, axis: &str) -> &str {
        let choice = self.choices.iter().find(|choice| choice.axis == axis);
        &choice.unwrap_or_else(|| panic!("nothing varies '{axis}'")).value
    }

    /// A station that gets more work than it can do, with its utilisation, whatever was measured; none when the plan is
    /// transient, where that is no fault.
    pub fn overloaded(&self) -> Option<(&str, f64)> {
        let (station, load) = self.case.busiest();
        (load >= 1.0 && !self.case.plan.transient)
            .then(|| (self.case.network.stations[station].name.as_str(), load))
    }

    /// Whether the number of requests inside stays within bounds, or the plan is transient: otherwise the figures mean
    /// nothing.
    pub fn is_stable(&self) -> bool {
        self.overloaded().is_none() && !matches!(self.report.verdict, ReplicationVerdict::Unbounded { .. })
    }
}
