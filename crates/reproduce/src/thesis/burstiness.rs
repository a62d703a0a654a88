//! Figure 3.5: one workload with an SLO beside a copy, with more and more bursts.

use super::meister::Analysis;
use super::play::{percentile, play, set_slo, shown, slo, tail};
use crate::claim::{Claim, Expected};
use crate::context::{Context, FigureError, embedded};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};
use model::Slo;
use scenario::server::WorkloadOutcome;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/thesis-fig-3-5.toml");

/// What decides the claims of missed SLOs.
const OPEN: &str = "the SLO and the law of the gaps are not given, and C² does not say how dense bursts are: hyperexponential \
    gaps with balanced means are long pauses between stretches of Poisson arrivals at twice the rate";

/// What both policies do to a level of bursts.
struct Found {
    /// C² of the gaps.
    bursts: String,
    feedback: WorkloadOutcome,
    meister: WorkloadOutcome,
}

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let variants = embedded("thesis-fig-3-5.toml", SCENARIO)?.variants()?;
    let lowest = Analysis::of(&variants[0].document.case()?);
    let slo = slo(99.0, 1.1 * lowest.bound(0, &[]));
    let mut found = Vec::new();
    let count = variants.len();
    for (index, mut variant) in variants.into_iter().enumerate() {
        (context.progress)(index, count);
        set_slo(&mut variant.document, "W", slo)?;
        let analysis = Analysis::of(&variant.document.case()?);
        let one = |discipline| -> Result<WorkloadOutcome, FigureError> {
            Ok(play(context, &variant.document, discipline, (&analysis, &[slo]))?.swap_remove(0))
        };
        let bursts = variant.choices[0].value.clone();
        found.push(Found { bursts, feedback: one(Some("feedback"))?, meister: one(None)? });
    }
    Ok(Figure {
        reading: format!(
            "A synthetic trace of 20000 random reads of 4 KiB at 25 % of a 7200 rpm disk, with hyperexponential gaps, \
             beside one client that reads 64 KiB at a time. The SLO of the thesis is not printed: here it is 1.1 times the \
             bound of PriorityMeister for the trace with C² = 1, {}, for all three.",
            slo.latency
        ),
        plots: vec![plot(&found, slo)],
        claims: found.iter().flat_map(|found| claims(found, slo)).collect(),
    })
}

fn plot(found: &[Found], slo: Slo) -> Plot {
    let both = |found: &Found| {
        let line = |policy: &str, outcome: &WorkloadOutcome| {
            Line::new(format!("{policy}, C² = {}", found.bursts), tail(outcome))
        };
        [line("feedback", &found.feedback), line("PriorityMeister", &found.meister)]
    };
    let mut lines: Vec<Line> = found.iter().flat_map(both).collect();
    lines.push(Line::new("SLO", [(slo.latency.0, 1.0), (slo.latency.0, 1e-4)]));
    Plot {
        title: "Latency of the workload with an SLO".to_owned(),
        x: Axis::log("latency", Quantity::Seconds),
        y: Axis::log("share of requests that take longer", Quantity::Share),
        lines,
    }
}

fn claims(found: &Found, slo: Slo) -> Vec<Claim> {
    let Found { bursts, feedback, meister } = found;
    let ratio = |outcome: &WorkloadOutcome, percent: f64| percentile(outcome, percent) / slo.latency.0;
    let claim = |said: String, expected, value| Claim::exact(&said, expected, value, shown);
    let mut claims = vec![claim(
        format!("PriorityMeister keeps the SLO at the 99th percentile with C² = {bursts}"),
        Expected::AtMost(1.0),
        ratio(meister, 99.0),
    )];
    if bursts == "1" {
        let said = "Cake keeps the SLO at the 99th percentile with C² = 1".to_owned();
        claims.push(claim(said, Expected::AtMost(1.0), ratio(feedback, 99.0)));
    } else {
        let said = format!("Cake misses the SLO at the 96th percentile with C² = {bursts}");
        let misses = claim(said, Expected::AtLeast(1.0), ratio(feedback, 96.0));
        claims.push(misses.underspecified(OPEN));
        let change = percentile(meister, 99.0) / percentile(feedback, 99.0) - 1.0;
        let said =
            format!("the 99th percentile is lower under PriorityMeister than under Cake with C² = {bursts}");
        claims.push(Claim::exact(&said, Expected::Negative, change, |x| format!("{:+.1} %", 100.0 * x)));
    }
    claims
}
