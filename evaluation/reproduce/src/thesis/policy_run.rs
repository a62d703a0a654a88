//! Runs of a storage server under each policy with the same requests, and their comparison with SLOs.

use super::priority_meister::PriorityMeisterAnalysis;
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries};
use model::{OperationError, Slo};
use scenario::ScenarioDocument;
use scenario::server::WorkloadOutcome;
use units::{Nanos, Percentile, Seconds};

/// The policies of §3.3.1, each with the discipline of scenario files that stands for it. PriorityMeister has none: it is
/// priorities and limits.
pub(crate) const POLICIES: [(&str, Option<&str>); 5] = [
    ("proportional share", Some("proportional")),
    ("Cake-like feedback", Some("feedback")),
    ("EDF", Some("edf")),
    ("by SLO", Some("by-slo")),
    ("PriorityMeister", None),
];

/// Sets the SLO of a workload in a scenario.
pub(crate) fn set_slo(document: &mut ScenarioDocument, workload: &str, slo: Slo) -> Result<(), FigureError> {
    let text = format!("{}% < {}s", slo.percentile.percent(), slo.latency.0);
    Ok(document.set(&format!("workload.{workload}.slo"), &format!("\"{text}\""))?)
}

/// An SLO with this latency, rounded up to whole milliseconds.
pub(crate) fn slo(percent: f64, seconds: f64) -> Slo {
    let percentile = Percentile::new(percent).expect("a percentile");
    Slo::new(percentile, Seconds((seconds * 1e3).ceil() / 1e3)).expect("a positive latency")
}

/// PriorityMeister's prior knowledge of the workloads.
pub(crate) struct ExpectedWorkloads {
    pub(crate) analysis: PriorityMeisterAnalysis,
    /// The SLOs in the order of the analysis.
    pub(crate) slos: Vec<Slo>,
}

/// An SLO in a plot of tails: a vertical line at its latency.
pub(crate) fn slo_line(slo: Slo) -> FigureSeries {
    FigureSeries::new("SLO", [(slo.latency.0, 1.0), (slo.latency.0, 1e-4)])
}

/// A plot of [`tail_points`].
pub(crate) fn tail_plot(title: String, lines: Vec<FigureSeries>) -> FigurePlot {
    let x = FigureAxis::log("latency", AxisQuantity::Seconds);
    let y = FigureAxis::log("share of requests that take longer", AxisQuantity::Share);
    FigurePlot::new(title, x, y, lines)
}

/// Runs a scenario under a policy. The configuration of PriorityMeister follows from the expected
/// requests, even if the scenario sends others.
pub(crate) fn run_policy(
    context: &Context,
    document: &ScenarioDocument,
    discipline: Option<&str>,
    expected: &ExpectedWorkloads,
) -> Result<Vec<WorkloadOutcome>, FigureError> {
    let mut document = document.clone();
    if let Some(discipline) = discipline {
        document.set("server.discipline.storage", discipline)?;
    }
    let mut case = document.case()?;
    if discipline.is_none() {
        let (policy, _) = expected.analysis.policy(&expected.slos);
        case.enforce_policy(&policy).map_err(OperationError::input)?;
    }
    shorten(&mut case.plan.window.span, context.effort);
    Ok(context.run_case(case)?.workload_outcomes())
}

/// Multiplies warm-up and measured time by the effort.
fn shorten(span: &mut Option<(Nanos, Nanos)>, effort: f64) {
    // The product is not negative, and `as` saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let scaled = |time: Nanos| Nanos((time.0 as f64 * effort) as u64);
    *span = span.map(|(begin, end)| (scaled(begin), scaled(end)));
}

/// Returns a percentile of a workload's latencies, seconds; NaN without any.
pub(crate) fn percentile(outcome: &WorkloadOutcome, percent: f64) -> f64 {
    let latency = Percentile::new(percent).and_then(|percentile| outcome.response.percentile(percentile));
    latency.map_or(f64::NAN, Nanos::as_secs)
}

/// A percentile divided by the SLO: the SLO is missed where this is above 1.
pub(crate) fn slo_ratio(outcome: &WorkloadOutcome, percent: f64, slo: Slo) -> f64 {
    percentile(outcome, percent) / slo.latency.0
}

/// The largest [`slo_ratio`] of all workloads at these percentiles.
pub(crate) fn worst_slo_ratio(outcomes: &[WorkloadOutcome], slos: &[Slo], percents: &[f64]) -> f64 {
    let mut worst = 0.0;
    for (outcome, slo) in outcomes.iter().zip(slos) {
        for &percent in percents {
            worst = f64::max(worst, slo_ratio(outcome, percent, *slo));
        }
    }
    worst
}

/// A [`slo_ratio`] as text.
pub(crate) fn format_slo_ratio(ratio: f64) -> String {
    format!("{ratio:.2} of the SLO")
}

/// Returns latencies with the share of requests that take longer, at the percentiles of figure 3.4 beyond
/// which there are requests.
pub(crate) fn tail_points(outcome: &WorkloadOutcome) -> Vec<(f64, f64)> {
    let shares = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001];
    let enough = shares.into_iter().filter(|share| share * outcome.requests as f64 >= 1.0);
    enough.map(|share| (percentile(outcome, 100.0 * (1.0 - share)), share)).collect()
}
