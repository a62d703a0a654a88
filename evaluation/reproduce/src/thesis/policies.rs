//! Figures 3.3 and 3.4: three workloads and a copy under five policies.

use super::policy_run::{
    ExpectedWorkloads, POLICIES, format_slo_ratio, percentile, run_policy, set_slo, slo, slo_line, tail_plot,
    tail_points, worst_slo_ratio,
};
use super::priority_meister::PriorityMeisterAnalysis;
use super::traces::{TRACE_A, TRACE_B, TRACE_C};
use crate::claim::{Claim, Expected, format_time};
use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::{FigureSeries, ReproducedFigure};
use model::Slo;
use scenario::ScenarioDocument;
use scenario::server::WorkloadOutcome;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/thesis-fig-3-3.toml");
/// The percentiles of the SLOs in figure 3.3.
const PERCENTS: [f64; 3] = [95.0, 99.0, 99.9];
/// Why EDF cannot fail under this rule for SLOs.
pub(super) const EDF: &str = "; on a single resource EDF keeps all deadlines, but for a request that has begun, if any order of service \
    does, and the analysis says that PriorityMeister's does: it can only miss SLOs that the analysis does not admit";
/// The workloads with SLOs.
pub(super) const NAMES: [&str; 3] = ["A", "B", "C"];

/// Returns the scenario of figure 3.3 with the traces of the data folder.
pub(super) fn three_workloads(context: &Context) -> Result<ScenarioDocument, FigureError> {
    let mut document = embedded_scenario("thesis-fig-3-3.toml", SCENARIO)?;
    for (name, trace) in NAMES.iter().zip([TRACE_A, TRACE_B, TRACE_C]) {
        let path = context.file(trace)?.display().to_string();
        document.set(&format!("workload.{name}.trace"), &format!("{path:?}"))?;
    }
    Ok(document)
}

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let mut document = three_workloads(context)?;
    let analysis = PriorityMeisterAnalysis::new(&document.case()?);
    let slos = slos(&analysis);
    for (name, slo) in NAMES.iter().zip(slos) {
        set_slo(&mut document, name, slo)?;
    }
    let (_, admits_all) = analysis.policy(&slos);
    let expected = ExpectedWorkloads { analysis, slos: slos.to_vec() };
    let mut series: [Vec<FigureSeries>; 3] = Default::default();
    let mut claims = Vec::new();
    for (index, (policy, discipline)) in POLICIES.into_iter().enumerate() {
        (context.progress)(index, POLICIES.len());
        let outcomes = run_policy(context, &document, discipline, &expected)?;
        for (series, outcome) in series.iter_mut().zip(&outcomes) {
            series.push(FigureSeries::new(policy, tail_points(outcome)));
        }
        claims.push(slo_claim(policy, &outcomes, &slos));
    }
    let mut plots = Vec::new();
    for ((name, slo), mut series) in NAMES.into_iter().zip(slos).zip(series) {
        series.push(slo_line(slo));
        plots.push(tail_plot(format!("Workload {name}"), series));
    }
    Ok(ReproducedFigure { reading: reading(&slos, admits_all), plots, claims })
}

/// C has the lowest priority, and its SLO is 1.1 times its bound there; those of A and B are 1.1 times that of C.
fn slos(analysis: &PriorityMeisterAnalysis) -> [Slo; 3] {
    let tightest = 1.1 * analysis.bound(2, &[0, 1]);
    [1.1 * tightest, 1.1 * tightest, tightest].map(|seconds| slo(99.9, seconds))
}

fn reading(slos: &[Slo; 3], admits_all: bool) -> String {
    let verdict = if admits_all { "admits all three" } else { "does not admit all three" };
    format!(
        "The traces of the thesis are not public. A, B and C are traces whose gaps vary as Table 3.1 says (C² 1.35, \
         14.7 and 1.86 for 1.3, 14 and 2.2), with their rates scaled to its loads of 5, 5 and 55 % of a 7200 rpm disk, \
         all requests random. L is one client that reads 64 KiB at a time. The SLOs are not printed. The text says that C \
         has the tightest: here it is 1.1 times the bound of C at the lowest priority, {}; A and B ask for 1.1 times that, \
         {}. The analysis of PriorityMeister {verdict}. Policies act at the disk; PriorityMeister on the network, too. \
         Twenty minutes are measured after as many, eight times from random places in the traces. Figures are worst \
         percentile ÷ SLO over the workloads at the 95th, 99th and 99.9th percentiles.",
        slos[2].latency, slos[0].latency
    )
}

/// The claim that a policy keeps or misses SLOs.
fn slo_claim(policy: &str, outcomes: &[WorkloadOutcome], slos: &[Slo; 3]) -> Claim {
    let (statement, expected) = match policy {
        "PriorityMeister" => {
            ("PriorityMeister keeps all SLOs at all percentiles".to_owned(), Expected::AtMost(1.0))
        }
        _ => (format!("{policy} misses the SLO of some workload at some percentile"), Expected::AtLeast(1.0)),
    };
    let worst = worst_slo_ratio(&outcomes[..3], slos, &PERCENTS);
    let why = if policy == "EDF" { EDF } else { "" };
    let remark = format!("{}{why}", tail_remark(outcomes));
    Claim::exact(&statement, expected, worst, format_slo_ratio).remark(&remark)
}

/// Describes the 99.9th percentiles of the workloads, and the throughput of the copy.
fn tail_remark(outcomes: &[WorkloadOutcome]) -> String {
    let mut tails = Vec::new();
    for outcome in &outcomes[..3] {
        tails.push(format!("{} {}", outcome.name, format_time(percentile(outcome, 99.9))));
    }
    let copy = outcomes[3].throughput_per_s;
    format!("99.9th percentiles: {}; the copy {copy:.0} requests/s", tails.join(", "))
}
