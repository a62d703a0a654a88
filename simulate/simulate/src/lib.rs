//! Simulations of scenarios and policies, and ideal latencies: files in, figures with intervals out.

pub mod ideal;
pub mod simulation;
