//! Figures 3.3 and 3.4: three workloads and a copy under five policies.

use super::meister::Analysis;
use super::play::{POLICIES, play, set_slo, shown, slo, tail, worst};
use super::{A, B, C};
use crate::claim::{Claim, Expected};
use crate::context::{Context, FigureError, embedded};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};
use model::Slo;
use scenario::server::WorkloadOutcome;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/thesis-fig-3-3.toml");
/// The percentiles of figure 3.3 that SLOs are asked for at.
const PERCENTS: [f64; 3] = [95.0, 99.0, 99.9];
/// Why EDF cannot fail under this rule for SLOs.
const EDF: &str = "; on a single resource EDF keeps all deadlines, but for a request that has begun, if any order of service \
    does, and the analysis says that PriorityMeister's does: it can only miss SLOs that the analysis does not admit";
const NAMES: [&str; 3] = ["A", "B", "C"];

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let mut document = embedded("thesis-fig-3-3.toml", SCENARIO)?;
    for (name, trace) in NAMES.iter().zip([A, B, C]) {
        let path = context.file(trace)?.display().to_string();
        document.set(&format!("workload.{name}.trace"), &format!("{path:?}"))?;
    }
    let analysis = Analysis::of(&document.case()?);
    let slos = slos(&analysis);
    NAMES.iter().zip(slos).try_for_each(|(name, slo)| set_slo(&mut document, name, slo))?;
    let mut found = Vec::new();
    for (index, (name, discipline)) in POLICIES.iter().enumerate() {
        (context.progress)(index, POLICIES.len());
        found.push((*name, play(context, &document, *discipline, (&analysis, &slos))?));
    }
    let admitted = analysis.policy(&slos).1;
    Ok(Figure {
        reading: reading(&slos, admitted),
        plots: NAMES
            .iter()
            .zip(slos)
            .enumerate()
            .map(|(at, (name, slo))| plot(name, slo, at, &found))
            .collect(),
        claims: found.iter().flat_map(|(name, outcomes)| claims(name, outcomes, &slos)).collect(),
    })
}

/// C is last and its SLO a tenth above its bound there; A and B ask for a tenth more latency than C.
fn slos(analysis: &Analysis) -> [Slo; 3] {
    let tightest = 1.1 * analysis.bound(2, &[0, 1]);
    [1.1 * tightest, 1.1 * tightest, tightest].map(|seconds| slo(99.9, seconds))
}

fn reading(slos: &[Slo; 3], admitted: bool) -> String {
    let verdict = if admitted { "admits all three" } else { "does not admit all three" };
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

fn plot(name: &str, slo: Slo, at: usize, found: &[(&str, Vec<WorkloadOutcome>)]) -> Plot {
    let mut lines: Vec<Line> =
        found.iter().map(|(policy, outcomes)| Line::new(*policy, tail(&outcomes[at]))).collect();
    lines.push(Line::new("SLO", [(slo.latency.0, 1.0), (slo.latency.0, 1e-4)]));
    Plot {
        title: format!("Workload {name}"),
        x: Axis::log("latency", Quantity::Seconds),
        y: Axis::log("share of requests that take longer", Quantity::Share),
        lines,
    }
}

fn claims(policy: &str, outcomes: &[WorkloadOutcome], slos: &[Slo; 3]) -> Vec<Claim> {
    let found = worst(&outcomes[..3], slos, &PERCENTS);
    let meister = policy == "PriorityMeister";
    let claim = if meister {
        Claim::exact("PriorityMeister keeps all SLOs at all percentiles", Expected::AtMost(1.0), found, shown)
    } else {
        let said = format!("{policy} misses the SLO of some workload at some percentile");
        Claim::exact(&said, Expected::AtLeast(1.0), found, shown)
    };
    let why = if policy == "EDF" { EDF } else { "" };
    vec![claim.remark(&format!("{}{why}", detail(outcomes)))]
}

/// The 99.9th percentiles, and what the copy gets.
fn detail(outcomes: &[WorkloadOutcome]) -> String {
    let of = |outcome: &WorkloadOutcome| {
        format!("{} {}", outcome.name, crate::claim::time(super::play::percentile(outcome, 99.9)))
    };
    let all: Vec<String> = outcomes[..3].iter().map(of).collect();
    format!("99.9th percentiles: {}; the copy {:.0} requests/s", all.join(", "), outcomes[3].per_second)
}
