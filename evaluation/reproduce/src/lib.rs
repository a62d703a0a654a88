//! The papers' figures drawn again by simulation, beside what the papers claim.
//!
//! A [`PaperExperiment`] runs a scenario of `examples/scenarios` and gives a [`ReproducedFigure`]: plots,
//! and [`Claim`]s. Each claim has the statement of the paper, the value found here, and their agreement
//! by a rule that was fixed before. Where a paper is ambiguous, [`ReproducedFigure::reading`] names the
//! interpretation; if the result depends on it, it is [`Agreement::Underspecified`] and neither side
//! counts as wrong.
//!
//! Not covered: the papers' measurements of real machines. One experiment has no paper: it compares the model with a disk
//! that was measured.

mod calibration;
mod claim;
mod context;
mod data_file;
mod experiment;
mod figure;
mod tailclipper;
mod tales;
mod thesis;
mod variability;

pub use claim::{Agreement, Claim, ClaimSource, Expected};
pub use context::{Context, FigureError};
pub use experiment::{Paper, PaperExperiment};
pub use figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};

/// All experiments, by paper, in the order of the papers' figures.
pub fn all() -> Vec<PaperExperiment> {
    [
        tales::EXPERIMENTS,
        variability::EXPERIMENTS,
        tailclipper::EXPERIMENTS,
        thesis::EXPERIMENTS,
        calibration::EXPERIMENTS,
    ]
    .concat()
}
