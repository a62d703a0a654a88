//! The models' bounds for the workloads of one server, as a table and as JSON.

use cli::terminal::{Align, TextTable};
use model::Stage;
use operation::document::document;
use operation::text::{by_stage, time};
use plan::prediction::{
    BoundsDocument, CalibrationReport, ModelName, PredictionProblem, TracedWorkload, WorkloadBound,
};
use units::plural;

/// Bounds with what they are about.
pub(crate) struct BoundsView<'a> {
    pub(crate) problem: &'a PredictionProblem,
    pub(crate) models: &'a [ModelName],
    /// The bounds by model, then workload.
    pub(crate) bounds: &'a [WorkloadBound],
    /// Evidence of the calibrated model, if it was asked for.
    pub(crate) calibration: Option<CalibrationReport>,
}

impl BoundsView<'_> {
    /// Workloads by priority, each with its bound by model.
    pub(crate) fn rows(&self) -> Vec<(&TracedWorkload, Vec<&WorkloadBound>)> {
        let Some(first) = self.models.first() else { return Vec::new() };
        let mut leaders: Vec<&WorkloadBound> = self.bounds.iter().filter(|b| b.model == *first).collect();
        leaders.sort_by_key(|bound| (bound.priority, bound.workload));
        let mut rows = Vec::new();
        for WorkloadBound { workload, .. } in leaders {
            let bounds = self.bounds.iter().filter(|bound| bound.workload == *workload);
            rows.push((&self.problem.cluster.workloads[*workload], bounds.collect()));
        }
        rows
    }

    /// Returns the number of workloads that a model keeps within their SLO.
    pub(crate) fn kept(&self, model: ModelName) -> usize {
        let bounds = self.bounds.iter().filter(|bound| bound.model == model);
        bounds.filter(|bound| bound.seconds() <= self.slo(bound)).count()
    }

    fn slo(&self, bound: &WorkloadBound) -> f64 {
        self.problem.spec(bound.workload).slo.latency.0
    }

    /// Describes the mean load of the stages.
    fn load(&self) -> String {
        let mut loads = Vec::new();
        for stage in Stage::ALL {
            if stage != Stage::Storage || self.problem.profile().is_some() {
                let workloads = self.problem.cluster.workloads.iter();
                loads.push((stage, workloads.map(|at| at.traffic.utilisation()[stage]).sum()));
            }
        }
        by_stage(loads.into_iter())
    }

    /// Describes the workloads, the shared server or link, and its load.
    pub(crate) fn lead(&self) -> String {
        let count = self.problem.cluster.workloads.len();
        let verb = if count == 1 { "has" } else { "share" };
        format!("{} {verb} {}; mean load {}.", plural(count, "workload"), self.place(), self.load())
    }

    /// Names the shared link or server.
    fn place(&self) -> String {
        match self.problem.profile() {
            None => format!("a network link of {} in each direction", self.problem.server().network),
            Some(profile) => {
                format!(
                    "a server of class '{}' ({}, {} links)",
                    self.problem.server().class,
                    profile.name(),
                    self.problem.server().network
                )
            }
        }
    }
}

/// A latency with, for estimates, its confidence interval.
pub(crate) fn latency(bound: &WorkloadBound) -> String {
    match bound.latency {
        Ok(prediction) => match prediction.estimate {
            Some(estimate) => format!("{} ≤ {}", time(estimate.latency), time(prediction.bound)),
            None => time(prediction.bound),
        },
        Err(_) => "none".to_owned(),
    }
}

/// The table for people, with what each column assumes.
pub(crate) fn text(view: &BoundsView) -> String {
    let mut columns =
        vec![("workload", Align::Left), ("prio", Align::Right), ("SLO", Align::Left), ("at", Align::Left)];
    columns.extend(view.models.iter().map(|model| (model.name(), Align::Right)));
    columns.push(("SLO kept by", Align::Left));
    let mut table = TextTable::new(&columns);
    for (workload, bounds) in view.rows() {
        let slo = workload.spec.slo;
        let mut cells = vec![
            workload.spec.name.clone(),
            bounds[0].priority.to_string(),
            slo.to_string(),
            bounds[0].percentile.to_string(),
        ];
        cells.extend(bounds.iter().map(|bound| latency(bound)));
        let keeps = bounds.iter().filter(|b| b.seconds() <= slo.latency.0).map(|b| b.model.name());
        cells.push(keeps.collect::<Vec<_>>().join(", "));
        table.row(cells);
    }
    let models: Vec<&str> = view.models.iter().map(|model| model.name()).collect();
    let table = table.without_first(&["at", "SLO kept by", "prio"]).answered_by(&models);
    let count = view.problem.cluster.workloads.len();
    let mut text = format!("{}\n\n", view.lead());
    text.push_str(&table.render());
    text.push('\n');
    for &model in view.models {
        text.push_str(&format!(
            "{}: {} of {count} within their SLO; {}\n",
            model.name(),
            view.kept(model),
            model.row().assumption
        ));
    }
    for sentence in view.calibration.iter().flat_map(CalibrationReport::sentences) {
        text.push_str(&format!("calibrated: {sentence}\n"));
    }
    if let Some(why) = why_none(view) {
        text.push_str(&format!("none: {why}\n"));
    }
    text
}

/// Returns the first reason for a missing bound.
fn why_none(view: &BoundsView) -> Option<String> {
    view.bounds.iter().find_map(|bound| bound.latency.err()).map(|why| why.to_string())
}

/// One entry per workload and model.
pub(crate) fn json(view: &BoundsView) -> String {
    document(&BoundsDocument::new(view.problem, view.bounds, view.calibration.as_ref()))
}
