//! Definition of an experiment: a figure of a paper, and the function that reproduces it.

use crate::claim::{Agreement, ClaimSource};
use crate::context::{Context, FigureError};
use crate::figure::ReproducedFigure;
use schemars::JsonSchema;
use serde::Serialize;

/// The papers, and what else claims are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Li, Sharma, Ports, Gribble: Tales of the Tail, SoCC '14.
    Tales,
    /// Gandhi, Suresh: Leveraging Queueing Theory and OS Profiling, Middleware '19.
    Variability,
    /// Ng et al.: TailClipper, SoCC '24.
    TailClipper,
    /// Zhu: Meeting tail latency SLOs in shared networked storage, CMU 2017.
    Thesis,
    /// No paper: measurements of a real device.
    Measured,
}

impl Paper {
    /// A short title, as a heading over its experiments.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tales => "Tales of the Tail",
            Self::Variability => "Queueing theory and OS profiling",
            Self::TailClipper => "TailClipper",
            Self::Thesis => "Meeting tail latency SLOs in shared networked storage",
            Self::Measured => "Against a measured disk",
        }
    }
}

/// Text for an unexplained difference.
const NO_REASON: &str = "no reason is known";

/// A figure, or the numbers of a section, that can be drawn again.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct PaperExperiment {
    /// The name in commands, such as `tales-fig-1`: also the beginning of the names of its scenario files.
    pub name: &'static str,
    /// The paper that the claims come from.
    pub paper: Paper,
    /// Title of the figure.
    pub title: &'static str,
    #[serde(skip)]
    pub(crate) run: fn(&Context) -> Result<ReproducedFigure, FigureError>,
}

impl PaperExperiment {
    /// Runs the simulations and compares what they give with the claims.
    ///
    /// # Errors
    /// When data that the experiment needs is not there, or a scenario cannot be run.
    pub fn run(&self, context: &Context) -> Result<ReproducedFigure, FigureError> {
        let mut figure = (self.run)(context)?;
        for claim in &mut figure.claims {
            if self.paper == Paper::Measured {
                claim.source = ClaimSource::Ours;
            }
            if claim.agreement == Agreement::Differ && claim.remark.is_empty() {
                NO_REASON.clone_into(&mut claim.remark);
            }
        }
        Ok(figure)
    }
}
