//! An export as text and as JSON: the promises that are left, the losses, and the files.

use cli::terminal::TextTable;
use limits::{Export, ExportFormat, ExportedBound};
use operation::document::document;
use operation::text::time;
use schemars::JsonSchema;
use serde::Serialize;

/// A policy in another format.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExportDocument<'a> {
    /// Name of the format: cgroup, systemd, qemu, vac or tc.
    to: &'a str,
    server: &'a str,
    /// True if every promise of the policy is kept with the limits of the format.
    kept: bool,
    /// Sentences about what the format cannot express.
    lost: &'a [String],
    bounds: &'a [ExportedBound],
    files: Vec<FileView<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct FileView<'a> {
    /// Path below the folder of the export.
    name: &'a str,
    text: &'a str,
}

pub(crate) fn json(to: &str, export: &Export) -> String {
    document(&ExportDocument {
        to,
        server: &export.server,
        kept: export.bounds.iter().all(ExportedBound::is_kept),
        lost: &export.lost,
        bounds: &export.bounds,
        files: export.files.iter().map(|file| FileView { name: &file.name, text: &file.text }).collect(),
    })
}

pub(crate) fn answer(format: &ExportFormat, export: &Export) -> String {
    let promised = export.bounds.iter().filter(|bound| bound.planned_bound_s.is_some());
    let kept = promised.clone().filter(|bound| bound.is_kept()).count();
    let all = promised.count();
    let answer = if kept == all { "Yes" } else { "No" };
    let mut text =
        format!("{answer}: with {}, promises kept on {}: {kept} of {all}.\n", format.what, export.server);
    for sentence in &export.lost {
        text += &format!("{sentence}\n");
    }
    let seconds = |value: Option<f64>| value.map_or_else(|| "∞".to_owned(), time);
    let rows = export.bounds.iter().map(|bound| {
        vec![
            bound.workload.clone(),
            if bound.is_kept() { "kept" } else { "broken" }.to_owned(),
            seconds(bound.planned_wait_s),
            seconds(bound.limit_wait_s),
            seconds(bound.stage_wait_s),
            bound.planned_bound_s.map_or_else(|| "–".to_owned(), time),
            if bound.planned_bound_s.is_some() { seconds(bound.bound_s) } else { "–".to_owned() },
            time(bound.slo_s),
        ]
    });
    let headings = [
        "workload",
        "promise",
        "wait planned",
        "at the limit",
        "wait behind it",
        "bound planned",
        "bound",
        "SLO",
    ];
    text += &format!(
        "\n{}\n",
        TextTable::of_rows(&headings, 2, rows).answered_by(&["promise", "bound", "SLO"]).render()
    );
    text
}

/// Returns the files one after the other, each under a comment with its name.
pub(crate) fn files(export: &Export) -> String {
    let mut text = String::new();
    for file in &export.files {
        text += &format!("# {}\n{}", file.name, file.text);
    }
    text
}
