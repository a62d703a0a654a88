//! The JSON documents of the program: those of all systems.

use operation::document::DocumentFormat;

/// Returns the formats of all documents, by name.
pub(crate) fn all() -> Vec<DocumentFormat> {
    let mut formats = [
        plan::documents(),
        plan_cli::documents(),
        vec![plan_cli::plan::document::policy_format()],
        simulate::documents(),
        enforce_cli::documents(),
        measure::documents(),
        measure_cli::documents(),
        experiment_cli::documents(),
        schedule_cli::documents(),
        reach_cli::documents(),
        evaluation_cli::documents(),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    formats.sort_by_key(|format| format.name);
    formats
}
