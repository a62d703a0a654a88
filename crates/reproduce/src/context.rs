//! What all experiments are given, and how a scenario is run for one.

use model::OperationError;
use scenario::{ScenarioDocument, ScenarioRun};
use std::fmt;
use std::path::{Path, PathBuf};

/// What all experiments are given.
pub struct Context<'a> {
    /// Of everything that is random.
    pub seed: u64,
    /// Factor on the number of requests of every run, above 0; 1 for the figures as they should be.
    pub effort: f64,
    /// Where the folders `traces` and `data` are that some experiments read.
    pub data: Option<PathBuf>,
    /// Called before each variant of a scenario with its number, from 0, and how many there are.
    pub progress: &'a dyn Fn(usize, usize),
}

/// Why an experiment has no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureError {
    /// It needs this file or folder, relative to [`Context::data`].
    Missing(PathBuf),
    /// A scenario cannot be run.
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
    /// A file or folder of the data, such as `traces/trace0042.csv.gz`.
    pub(crate) fn file(&self, name: &str) -> Result<PathBuf, FigureError> {
        let path = self.data.as_ref().map(|data| data.join(name)).filter(|path| path.exists());
        path.ok_or_else(|| FigureError::Missing(name.into()))
    }

    /// All variants of a scenario.
    pub(crate) fn play(&self, document: &ScenarioDocument) -> Result<Vec<ScenarioRun>, FigureError> {
        let mut variants = document.variants()?;
        let count = variants.len();
        for variant in &mut variants {
            let measured = variant.document.case()?.plan.window.measured;
            // As many as a number of requests can be; at least a few, so that there are percentiles.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let fewer = ((measured as f64 * self.effort).round() as u64).max(200);
            variant.document.set("run.requests", &fewer.to_string())?;
        }
        let numbered = variants.iter().enumerate();
        let run = |(index, variant): (usize, &scenario::Variant)| {
            (self.progress)(index, count);
            Ok(variant.run(self.seed)?)
        };
        numbered.map(run).collect()
    }
}

/// A scenario that is part of the program: `name` is that of its file in `examples/scenarios`.
pub(crate) fn embedded(name: &str, text: &str) -> Result<ScenarioDocument, FigureError> {
    Ok(ScenarioDocument::parse(&Path::new("examples/scenarios").join(name), text)?)
}
