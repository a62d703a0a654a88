//! Simulations of scenarios and policies, and ideal latencies: files in, figures with intervals out.

pub mod ideal;
pub mod simulation;

operation::documents! {
    ideal::IdealDocument<'_>: "ideal", 2;
    simulation::PolicySimulationDocument<'_>: "policy-simulation", 1;
    simulation::VariantDocument<'_>: "simulation", 2;
    simulation::VariedDocument<'_>: "simulation-variants", 2;
}
