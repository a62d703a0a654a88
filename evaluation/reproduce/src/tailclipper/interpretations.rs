//! Two ambiguities between Algorithm 1 and the text of section 4: the quantity counted by c, and the place of
//! an arrival older than the requests in service.

use super::scenario_runs::{Measure, ScenarioRuns, mean, p99};
use super::setting::SETTING;
use crate::claim::{Claim, Expected, format_number};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};
use sim::engine::Estimate;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/tailclipper-readings.toml");
const READING: &str = "450 requests/s. The limit counts the requests of the pool, on workers and in the queue (text of \
    section 4), or those of the queue only (Algorithm 1 to the letter); an old arrival goes to the back of the queue \
    (section 4), to its front (Figure 3), or onto the worker of the youngest at once.";
/// Remark: the result depends on the quantity that the limit counts.
const MORE_SHARE: &str = "with a limit on the queue alone three more requests share the workers, as with c = 9 of the pool: \
    this reading does matter";
/// The interpretation that all other experiments have.
const USUAL: &str = "pool, back";

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-readings.toml", SCENARIO)?;
    let plots = vec![plot(&runs, "99th percentile", p99), plot(&runs, "Mean", mean)];
    let mut claims = Vec::new();
    for law in runs.values("law") {
        claims.extend(indifference_claims(&runs, law));
    }
    Ok(ReproducedFigure { reading: format!("{SETTING} {READING}"), plots, claims })
}

/// The change against round-robin for each law of demands, over the number of the interpretation.
fn plot(runs: &ScenarioRuns, title: &str, measure: Measure) -> FigurePlot {
    let interpretations = runs.values("reading");
    let mut lines = Vec::new();
    for law in runs.values("law") {
        let mut points = Vec::new();
        for (number, interpretation) in interpretations.iter().enumerate() {
            let pair = [interpretation, "round-robin"];
            let change = runs.change(&[("law", law)], "reading", pair, measure);
            points.extend(change.map(|change| (number as f64, change.value)));
        }
        lines.push(FigureSeries::new(law, points));
    }
    let x = FigureAxis::linear(&numbered(&interpretations), AxisQuantity::Number);
    let y = FigureAxis::linear("change against round-robin", AxisQuantity::Share);
    FigurePlot::new(title, x, y, lines)
}

fn numbered(interpretations: &[&str]) -> String {
    let numbers = interpretations.iter().enumerate();
    let labels: Vec<String> = numbers.map(|(number, name)| format!("{number}: {name}")).collect();
    labels.join("; ")
}

/// Claims that the interpretation does not matter.
fn indifference_claims(runs: &ScenarioRuns, law: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    for interpretation in runs.values("reading") {
        // The scenario also has round-robin on this axis, whose name has no comma.
        if !interpretation.contains(", ") || interpretation == USUAL {
            continue;
        }
        let change = runs.change(&[("law", law)], "reading", [interpretation, USUAL], p99);
        let Some(change) = change else { continue };
        let ratio = Estimate { value: change.value + 1.0, ..change };
        let statement = format!("{law}: P99 with '{interpretation}' ÷ with '{USUAL}' is 1, to 5 %");
        let why = if interpretation.starts_with("queue") { MORE_SHARE } else { "" };
        let one = Expected::About { value: 1.0, within: 0.05 };
        claims.push(Claim::new(&statement, one, ratio, format_number).ours().because(why));
    }
    claims
}
