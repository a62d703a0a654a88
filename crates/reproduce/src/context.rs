//! What all experiments are given, and how they run a scenario.

use model::OperationError;
use scenario::{ScenarioDocument, ScenarioRun};
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
}

/// Why an experiment has no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureError {
    /// The experiment needs this file or folder, relative to [`Context::data`], and it is not there.
    Missing(PathBuf),
    /// A scenario or data file cannot be used.
    Operation(OperationError),
}

impl fmt::Display for FigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "{} is not there", path.display()),
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

    /// Runs all variants of a scenario, with numbers of requests by [`Self::effort`].
    pub(crate) fn run_variants(&self, document: &ScenarioDocument) -> Result<Vec<ScenarioRun>, FigureError> {
        let mut variants = document.variants()?;
        let count = variants.len();
        for variant in &mut variants {
            let measured = variant.document.case()?.plan.window.measured;
            // The product is not negative, and `as` saturates. At least a few requests, so that there are percentiles.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let requests = ((measured as f64 * self.effort).round() as u64).max(200);
            variant.document.set("run.requests", &requests.to_string())?;
        }
        let mut runs = Vec::with_capacity(count);
        for (index, variant) in variants.iter().enumerate() {
            (self.progress)(index, count);
            runs.push(variant.run(self.seed)?);
        }
        Ok(runs)
    }
}

/// A scenario that is part of the program: `name` is that of its file in `examples/scenarios`.
pub(crate) fn embedded_scenario(name: &str, text: &str) -> Result<ScenarioDocument, FigureError> {
    Ok(ScenarioDocument::parse(&Path::new("examples/scenarios").join(name), text)?)
}
