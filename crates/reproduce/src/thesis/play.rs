//! A storage server under each policy, with the same requests.

use super::meister::Analysis;
use crate::context::{Context, FigureError};
use model::{OperationError, Slo};
use scenario::server::WorkloadOutcome;
use scenario::{ScenarioDocument, ScenarioRun};
use units::{Nanos, Percentile, Seconds};

/// The policies of §3.3.1 with the names of the disciplines that stand for them; PriorityMeister has none.
pub(crate) const POLICIES: [(&str, Option<&str>); 5] = [
    ("proportional share", Some("proportional")),
    ("Cake-like feedback", Some("feedback")),
    ("EDF", Some("edf")),
    ("by SLO", Some("by-slo")),
    ("PriorityMeister", None),
];

/// Sets a workload's SLO.
pub(crate) fn set_slo(document: &mut ScenarioDocument, workload: &str, slo: Slo) -> Result<(), FigureError> {
    let text = format!("{}% < {}s", slo.percentile.percent(), slo.latency.0);
    Ok(document.set(&format!("workload.{workload}.slo"), &format!("\"{text}\""))?)
}

/// An SLO of a latency, rounded up to whole milliseconds.
pub(crate) fn slo(percent: f64, seconds: f64) -> Slo {
    let percentile = Percentile::new(percent).expect("a percentile");
    Slo::new(percentile, Seconds((seconds * 1e3).ceil() / 1e3)).expect("a positive latency")
}

/// Plays a document under a policy; under PriorityMeister, configured for what `expected` says of the requests,
/// whatever they become.
pub(crate) fn play(
    context: &Context,
    document: &ScenarioDocument,
    discipline: Option<&str>,
    expected: (&Analysis, &[Slo]),
) -> Result<Vec<WorkloadOutcome>, FigureError> {
    let mut document = document.clone();
    if let Some(discipline) = discipline {
        document.set("server.discipline.storage", discipline)?;
    }
    let mut case = document.case()?;
    let fault = |message: String| FigureError::Operation(OperationError::input(message));
    if discipline.is_none() {
        case.enforce_policy(&expected.0.policy(expected.1).0).map_err(fault)?;
    }
    shorten(&mut case.plan.window.span, context.effort);
    let run =
        ScenarioRun::new(case, Vec::new(), context.seed).map_err(|invalid| fault(invalid.to_string()))?;
    Ok(run.workload_outcomes())
}

/// Warm-up and window by a factor.
fn shorten(span: &mut Option<(Nanos, Nanos)>, effort: f64) {
    // Not negative, and below what it was unless the effort is above 1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let shorter = |time: Nanos| Nanos((time.0 as f64 * effort) as u64);
    *span = span.map(|(begin, end)| (shorter(begin), shorter(end)));
}

/// A percentile of an outcome, seconds.
pub(crate) fn percentile(outcome: &WorkloadOutcome, percent: f64) -> f64 {
    let at = Percentile::new(percent).and_then(|percentile| outcome.response.percentile(percentile));
    at.map_or(f64::NAN, Nanos::as_secs)
}

/// Percentile ÷ SLO: above 1 is missed.
pub(crate) fn ratio(outcome: &WorkloadOutcome, percent: f64, slo: Slo) -> f64 {
    percentile(outcome, percent) / slo.latency.0
}

/// The workload that is closest to its SLO or misses it by most, at the worst of these percentiles.
pub(crate) fn worst(outcomes: &[WorkloadOutcome], slos: &[Slo], percents: &[f64]) -> f64 {
    let all = outcomes
        .iter()
        .zip(slos)
        .flat_map(|(outcome, slo)| percents.iter().map(|percent| ratio(outcome, *percent, *slo)));
    all.fold(0.0, f64::max)
}

/// A ratio to an SLO as people read it.
pub(crate) fn shown(ratio: f64) -> String {
    format!("{ratio:.2} of the SLO")
}

/// Latency by the share of requests that takes longer: the percentiles of figure 3.4.
pub(crate) fn tail(outcome: &WorkloadOutcome) -> Vec<(f64, f64)> {
    let shares = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001];
    let enough = shares.into_iter().filter(|share| share * outcome.requests as f64 >= 1.0);
    enough.map(|share| (percentile(outcome, 100.0 * (1.0 - share)), share)).collect()
}
