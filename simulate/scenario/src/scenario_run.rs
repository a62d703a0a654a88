//! Runs of a scenario's variants, with the report of each simulation.

use crate::document::Variant;
use crate::simulation_case::SimulationCase;
use crate::vary::AxisChoice;
use model::OperationError;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{
    InvalidSimulationError, ReplicationVerdict, ReplicationWatch, SimulationReport, Unwatched,
    replicate_watched,
};

/// Rounding of a utilisation that is a product of decimal numbers.
const ROUNDING: f64 = 1e-9;

/// A variant that was run.
pub struct ScenarioRun {
    /// Its choice on each axis that is varied.
    pub choices: Vec<AxisChoice>,
    /// The case that was simulated.
    pub case: SimulationCase,
    /// The report of the simulation.
    pub report: SimulationReport,
}

impl Variant {
    /// Runs the variant. Variants that are run with one seed get the same requests where they can, so that differences
    /// between them are not due to chance in their requests.
    ///
    /// # Errors
    /// As [`crate::ScenarioDocument::case`], and when the network cannot be simulated.
    pub fn run(&self, seed: u64) -> Result<ScenarioRun, OperationError> {
        self.run_watched(seed, &Unwatched)
    }

    /// As [`Self::run`], with an observer that may end it early.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_watched(
        &self,
        seed: u64,
        watch: &dyn ReplicationWatch,
    ) -> Result<ScenarioRun, OperationError> {
        self.run_case(self.document.case()?, seed, watch)
    }

    /// As [`Self::run_watched`], of the case of the document.
    ///
    /// # Errors
    /// When the network cannot be simulated.
    pub fn run_case(
        &self,
        case: SimulationCase,
        seed: u64,
        watch: &dyn ReplicationWatch,
    ) -> Result<ScenarioRun, OperationError> {
        ScenarioRun::watched(case, self.choices.clone(), seed, watch)
            .map_err(|error| self.document.error(&error.to_string()))
    }
}

impl ScenarioRun {
    /// Runs a case that is the variant with these choices.
    ///
    /// # Errors
    /// When the network cannot be simulated.
    pub fn new(
        case: SimulationCase,
        choices: Vec<AxisChoice>,
        seed: u64,
    ) -> Result<Self, InvalidSimulationError> {
        Self::watched(case, choices, seed, &Unwatched)
    }

    /// As [`Self::new`], with an observer that may end it early.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn watched(
        mut case: SimulationCase,
        choices: Vec<AxisChoice>,
        seed: u64,
        watch: &dyn ReplicationWatch,
    ) -> Result<Self, InvalidSimulationError> {
        // Replications have consecutive seeds; drawing the first keeps them far from those of another
        // seed.
        case.plan.seed = StdRng::seed_from_u64(seed).random();
        let report = replicate_watched(&case.network, |seed| case.entries(seed), &case.plan, watch)?;
        Ok(Self { choices, case, report })
    }

    /// Returns the choice on an axis, as text.
    ///
    /// # Panics
    /// When there is no such axis.
    pub fn choice(&self, axis: &str) -> &str {
        let choice = self.choices.iter().find(|choice| choice.axis == axis);
        &choice.unwrap_or_else(|| panic!("nothing varies '{axis}'")).value
    }

    /// Returns a station with more work than it can do, and its utilisation, independent of the measurement;
    /// `None` if the plan is transient, where that is no error. A station can do as much as its capacity
    /// only if nothing is random.
    pub fn overloaded(&self) -> Option<(&str, f64)> {
        let (station, load) = self.case.busiest();
        let is_single = self.case.network.stations[station].workers == 1;
        let is_full = (load - 1.0).abs() <= ROUNDING && is_single && self.case.is_deterministic();
        (load >= 1.0 && !is_full && !self.case.plan.transient)
            .then(|| (self.case.network.stations[station].name.as_str(), load))
    }

    /// Returns true if the number of requests inside stays bounded, or the plan is transient: otherwise
    /// the figures are meaningless.
    pub fn is_stable(&self) -> bool {
        self.overloaded().is_none() && !matches!(self.report.verdict, ReplicationVerdict::Unbounded { .. })
    }
}
