//! Context of all experiments, and the runner of scenarios.

use model::OperationError;
use scenario::{ScenarioDocument, ScenarioRun, SimulationCase};
use sim::engine::{ReplicationVerdict, ReplicationWatch};
use std::fmt;
use std::path::{Path, PathBuf};

/// The settings and data that all experiments are given.
pub struct Context<'a> {
    /// The seed of everything that is random.
    pub seed: u64,
    /// A factor on the number of requests of every run, above 0; 1 draws the figures with full precision.
    pub effort: f64,
    /// The folder that has the folders `traces` and `data`, which some experiments read.
    pub data: Option<PathBuf>,
    /// Called before each variant of a scenario with its number, from 0, and the number of variants.
    pub progress: &'a dyn Fn(usize, usize),
    /// Returns true if the experiment should end without a figure.
    pub is_interrupted: &'a (dyn Fn() -> bool + Sync),
}

/// Ends replications as the context says.
struct ContextWatch<'a>(&'a (dyn Fn() -> bool + Sync));

impl ReplicationWatch for ContextWatch<'_> {
    fn replications_done(&self, _: usize, _: usize) {}

    fn is_interrupted(&self) -> bool {
        (self.0)()
    }
}

/// Why an experiment has no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureError {
    /// The experiment needs this file or folder, relative to [`Context::data`], and it is not there.
    Missing(PathBuf),
    /// The experiment was ended early, as [`Context::is_interrupted`] said.
    Interrupted,
    /// A scenario or data file cannot be used.
    Operation(OperationError),
}

impl fmt::Display for FigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "{} is not there", path.display()),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Operation(error) => f.write_str(&error.message),
        }
    }
}

impl std::error::Error for FigureError {}

impl From<OperationError> for FigureError {
    fn from(error: OperationError) -> Self {
        Self::Operation(error)
    }
}

impl Context<'_> {
    /// The path of a file or folder of the data, such as `traces/trace0042.csv.gz`.
    pub(crate) fn file(&self, name: &str) -> Result<PathBuf, FigureError> {
        let path = self.data.as_ref().map(|data| data.join(name)).filter(|path| path.exists());
        path.ok_or_else(|| FigureError::Missing(name.into()))
    }

    /// Runs a case, whole.
    pub(crate) fn run_case(&self, case: SimulationCase) -> Result<ScenarioRun, FigureError> {
        let watch = ContextWatch(self.is_interrupted);
        let run = ScenarioRun::watched(case, Vec::new(), self.seed, &watch).map_err(OperationError::input)?;
        complete(run)
    }

    /// Runs all variants of a scenario, with numbers of requests by [`Self::effort`].
    pub(crate) fn run_variants(&self, document: &ScenarioDocument) -> Result<Vec<ScenarioRun>, FigureError> {
        let mut variants = document.variants()?;
        let count = variants.len();
        for variant in &mut variants {
            let measured = variant.document.case()?.plan.window.measured;
            // The product is not negative, and `as` saturates. The minimum leaves enough requests for
            // percentiles.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let requests = ((measured as f64 * self.effort).round() as u64).max(200);
            variant.document.set("run.requests", &requests.to_string())?;
        }
        let mut runs = Vec::with_capacity(count);
        for (index, variant) in variants.iter().enumerate() {
            (self.progress)(index, count);
            let run = variant.run_watched(self.seed, &ContextWatch(self.is_interrupted))?;
            runs.push(complete(run)?);
        }
        Ok(runs)
    }
}

/// The run, unless it was ended early.
fn complete(run: ScenarioRun) -> Result<ScenarioRun, FigureError> {
    match run.report.verdict {
        ReplicationVerdict::Interrupted => Err(FigureError::Interrupted),
        _ => Ok(run),
    }
}

/// A scenario that is part of the program: `name` is that of its file in `examples/scenarios`.
pub(crate) fn embedded_scenario(name: &str, text: &str) -> Result<ScenarioDocument, FigureError> {
    Ok(ScenarioDocument::parse(&Path::new("examples/scenarios").join(name), text)?)
}
