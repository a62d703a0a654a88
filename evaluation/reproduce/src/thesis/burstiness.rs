//! Figure 3.5: one workload with an SLO beside a copy, at three levels of burstiness.

use super::policy_run::{
    ExpectedWorkloads, format_slo_ratio, percentile, run_policy, set_slo, slo, slo_line, slo_ratio,
    tail_plot, tail_points,
};
use super::priority_meister::PriorityMeisterAnalysis;
use crate::claim::{Claim, Expected, format_change};
use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::{FigureSeries, ReproducedFigure};
use model::Slo;
use scenario::server::WorkloadOutcome;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/thesis-fig-3-5.toml");

/// Why the claims of missed SLOs are open.
const OPEN: &str = "the SLO and the law of the gaps are not given, and C² does not say how dense bursts are: hyperexponential \
    gaps with balanced means are long pauses between stretches of Poisson arrivals at twice the rate";

/// The workload under both policies, at one level of burstiness.
struct BurstLevelResult {
    /// C² of the gaps.
    c2: String,
    feedback: WorkloadOutcome,
    priority_meister: WorkloadOutcome,
}

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let variants = embedded_scenario("thesis-fig-3-5.toml", SCENARIO)?.variants()?;
    let least_bursty = PriorityMeisterAnalysis::new(&variants[0].document.case()?);
    let slo = slo(99.0, 1.1 * least_bursty.bound(0, &[]));
    let mut results = Vec::new();
    let count = variants.len();
    for (index, mut variant) in variants.into_iter().enumerate() {
        (context.progress)(index, count);
        set_slo(&mut variant.document, "W", slo)?;
        let analysis = PriorityMeisterAnalysis::new(&variant.document.case()?);
        let expected = ExpectedWorkloads { analysis, slos: vec![slo] };
        results.push(BurstLevelResult {
            c2: variant.choices[0].value.clone(),
            feedback: run_policy(context, &variant.document, Some("feedback"), &expected)?.swap_remove(0),
            priority_meister: run_policy(context, &variant.document, None, &expected)?.swap_remove(0),
        });
    }
    let mut lines = Vec::new();
    let mut claims = Vec::new();
    for BurstLevelResult { c2, feedback, priority_meister } in &results {
        lines.push(FigureSeries::new(format!("feedback, C² = {c2}"), tail_points(feedback)));
        lines.push(FigureSeries::new(format!("PriorityMeister, C² = {c2}"), tail_points(priority_meister)));
    }
    lines.push(slo_line(slo));
    for result in &results {
        claims.extend(result.claims(slo));
    }
    Ok(ReproducedFigure {
        reading: format!(
            "A synthetic trace of 20000 random reads of 4 KiB at 25 % of a 7200 rpm disk, with hyperexponential gaps, \
             beside one client that reads 64 KiB at a time. The SLO of the thesis is not printed: here it is 1.1 times the \
             bound of PriorityMeister for the trace with C² = 1, {}, for all three.",
            slo.latency
        ),
        plots: vec![tail_plot("Latency of the workload with an SLO".to_owned(), lines)],
        claims,
    })
}

impl BurstLevelResult {
    fn claims(&self, slo: Slo) -> Vec<Claim> {
        let Self { c2, feedback, priority_meister } = self;
        let keeps = format!("PriorityMeister keeps the SLO at the 99th percentile with C² = {c2}");
        let mut claims = vec![Claim::exact(
            &keeps,
            Expected::AtMost(1.0),
            slo_ratio(priority_meister, 99.0, slo),
            format_slo_ratio,
        )];
        if c2 == "1" {
            let statement = "Cake keeps the SLO at the 99th percentile with C² = 1";
            let ratio = slo_ratio(feedback, 99.0, slo);
            claims.push(Claim::exact(statement, Expected::AtMost(1.0), ratio, format_slo_ratio));
            return claims;
        }
        let misses = format!("Cake misses the SLO at the 96th percentile with C² = {c2}");
        let ratio = slo_ratio(feedback, 96.0, slo);
        let claim = Claim::exact(&misses, Expected::AtLeast(1.0), ratio, format_slo_ratio);
        claims.push(claim.underspecified(OPEN));
        let lower =
            format!("the 99th percentile is lower under PriorityMeister than under Cake with C² = {c2}");
        let change = percentile(priority_meister, 99.0) / percentile(feedback, 99.0) - 1.0;
        claims.push(Claim::exact(&lower, Expected::Negative, change, format_change));
        claims
    }
}
