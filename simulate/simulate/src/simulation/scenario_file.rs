//! A scenario file with values that the caller overrides.

use model::OperationError;
use operation::files::{place_taken, read_text};
use scenario::ScenarioDocument;
use std::path::PathBuf;

/// A scenario file and its overrides.
#[derive(Debug, Clone)]
pub struct ScenarioSettings {
    /// Path of the scenario file.
    pub file: PathBuf,
    /// Settings `PATH=VALUE`, in the order in which they are applied.
    pub set: Vec<String>,
    /// Target utilisation of the busiest station; all arrivals are scaled to it.
    pub load: Option<f64>,
    /// Path of the report, which must differ from all files that are read.
    pub report: Option<PathBuf>,
}

/// Reads a scenario and applies the overrides.
///
/// # Errors
///
/// When the file cannot be read, a setting does not fit it, or the report would overwrite a file that it
/// names.
pub fn read_scenario(settings: &ScenarioSettings) -> Result<ScenarioDocument, OperationError> {
    let text = read_text(&settings.file, "scenario")?;
    if text.trim().is_empty() {
        return Err(OperationError::input(format_args!(
            "{}: the scenario is empty",
            settings.file.display()
        ))
        .hint("docs/reference/scenario.md describes one; `tailwright simulate --help` shows one"));
    }
    let mut document = ScenarioDocument::parse(&settings.file, &text)?;
    for setting in &settings.set {
        let (path, value) = setting.split_once('=').ok_or_else(|| {
            OperationError::input(format_args!("--set {setting}: expected PATH=VALUE"))
                .hint("such as --set station.web.workers=4 or --set 'station.*.discipline=fifo'")
        })?;
        document.set(path.trim(), value.trim())?;
    }
    if let Some(load) = settings.load {
        document.set("run.load", &format!("{load:?}"))?;
    }
    if let Some(report) = settings.report.as_deref().filter(|report| document.names_file(report)) {
        return Err(place_taken(report));
    }
    Ok(document)
}
