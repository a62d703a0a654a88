//! Policies and scenarios, simulated, with figures and their confidence intervals.

mod figures;
mod observed;
mod policy;
mod policy_document;
mod replication_progress;
mod scenario_file;
mod variant;
mod variant_document;

pub use figures::{LatencyFigures, PERCENTILES, SimulatedFigure, intervals};
pub use observed::observe_policy;
pub use policy::{
    PolicySimulation, PolicySimulationSettings, SimulatedBound, SimulatedServer, simulate_policy,
};
pub use policy_document::PolicySimulationDocument;
pub use scenario_file::{ScenarioSettings, read_scenario};
pub use variant::{
    ClassFigures, RequestEvenness, SimulatedVariant, StationOccupancy, VariantFigures, change,
    simulate_variants,
};
pub use variant_document::{VariantDocument, VariedDocument};
