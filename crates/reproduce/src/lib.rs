//! The papers' figures drawn again by simulation, beside what the papers claim.
//!
//! An [`Experiment`] runs a scenario of `examples/scenarios` and gives a [`Figure`]: lines to draw, and [`Claim`]s,
//! each with what the paper says, what was found here, and a verdict by a rule that was fixed before. Where a paper
//! leaves something open, [`Figure::reading`] says how it was read; where that decides, the verdict is
//! [`Verdict::Underspecified`] and nobody is said to be wrong.
//!
//! Not covered: the papers' measurements of real machines. One experiment has no paper: it holds the model against a disk
//! that was measured.

mod calibration;
mod claim;
mod context;
mod figure;
mod tailclipper;
mod tales;
mod thesis;
mod variability;

pub use claim::{Claim, Expected, Verdict};
pub use context::{Context, FigureError};
pub use figure::{Axis, Figure, Line, Paper, Plot, Quantity};

/// A figure, or numbers of a section, that can be drawn again.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// Such as `tales-fig-1`: also the beginning of the names of its scenario files.
    pub name: &'static str,
    /// Where the claims come from.
    pub paper: Paper,
    /// One line.
    pub title: &'static str,
    run: fn(&Context) -> Result<Figure, FigureError>,
}

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    /// When data that it needs is not there, or a scenario cannot be run.
    pub fn run(&self, context: &Context) -> Result<Figure, FigureError> {
        (self.run)(context)
    }
}

/// All experiments, by paper, in the order of the papers' figures.
pub fn all() -> Vec<Experiment> {
    [
        tales::EXPERIMENTS,
        variability::EXPERIMENTS,
        tailclipper::EXPERIMENTS,
        thesis::EXPERIMENTS,
        calibration::EXPERIMENTS,
    ]
    .concat()
}
