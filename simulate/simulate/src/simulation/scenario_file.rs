//! A scenario file with values that the caller replaces.

use model::OperationError;
use operation::files::{place_taken, read_text};
use scenario::ScenarioDocument;
use std::path::PathBuf;

/// A scenario file, and what replaces its values.
#[derive(Debug, Clone)]
pub struct ScenarioSettings {
    /// Where the scenario file is.
    pub file: PathBuf,
    /// Settings `PATH=VALUE`, in the order in which they are applied.
    pub set: Vec<String>,
    /// Scales all arrivals so that the busiest station is utilised to this degree.
    pub load: Option<f64>,
    /// Where the report goes, which is none of the files that are read.
    pub report: Option<PathBuf>,
}

/// Reads a scenario with the values that replace its own.
///
/// # Errors
///
/// When the file cannot be read, a setting does not fit it, or the report would take the place of a file that it names.
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
