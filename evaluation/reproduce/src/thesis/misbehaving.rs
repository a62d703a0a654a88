//! Figure 3.6: a workload of high priority floods the disk.

use super::policy_run::{
    ExpectedWorkloads, POLICIES, format_slo_ratio, run_policy, set_slo, slo, slo_line, slo_ratio, tail_plot,
    tail_points, worst_slo_ratio,
};
use super::priority_meister::PriorityMeisterAnalysis;
use super::traces::{TRACE_C, TRACE_D};
use crate::claim::{Claim, Expected};
use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::{FigureSeries, ReproducedFigure};
use model::Slo;
use scenario::server::WorkloadOutcome;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/thesis-fig-3-6.toml");
const NAMES: [&str; 2] = ["D", "C"];
/// Percentiles at which all policies keep the SLOs while D behaves.
const PERCENTS: [f64; 3] = [95.0, 99.0, 99.9];

/// Both workloads under a policy, while D behaves and when it does not.
struct FloodResult {
    policy: &'static str,
    behaved: Vec<WorkloadOutcome>,
    misbehaved: Vec<WorkloadOutcome>,
}

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let mut document = embedded_scenario("thesis-fig-3-6.toml", SCENARIO)?;
    for (name, trace) in NAMES.iter().zip([TRACE_D, TRACE_C]) {
        let path = context.file(trace)?.display().to_string();
        document.set(&format!("workload.{name}.trace"), &format!("{path:?}"))?;
    }
    let analysis = PriorityMeisterAnalysis::new(&document.case()?);
    let slos = [1.1 * analysis.bound(0, &[]), 1.1 * analysis.bound(1, &[0])].map(|bound| slo(99.9, bound));
    for (name, slo) in NAMES.iter().zip(slos) {
        set_slo(&mut document, name, slo)?;
    }
    let mut flooded = document.clone();
    flooded.set("workload.D.load", "1.1")?;
    let expected = ExpectedWorkloads { analysis, slos: slos.to_vec() };
    let mut results = Vec::new();
    for (index, (policy, discipline)) in POLICIES.into_iter().enumerate() {
        (context.progress)(index, POLICIES.len());
        let behaved = run_policy(context, &document, discipline, &expected)?;
        let misbehaved = run_policy(context, &flooded, discipline, &expected)?;
        results.push(FloodResult { policy, behaved, misbehaved });
    }
    let mut behaved = Vec::new();
    let mut misbehaved = Vec::new();
    let mut claims = Vec::new();
    for result in &results {
        behaved.push(FigureSeries::new(result.policy, tail_points(&result.behaved[1])));
        misbehaved.push(FigureSeries::new(result.policy, tail_points(&result.misbehaved[1])));
        claims.extend(result.claims(&slos));
    }
    behaved.push(slo_line(slos[1]));
    misbehaved.push(slo_line(slos[1]));
    let plots = vec![
        tail_plot("Workload C while D behaves".to_owned(), behaved),
        tail_plot("Workload C while D misbehaves".to_owned(), misbehaved),
    ];
    Ok(ReproducedFigure { reading: reading(&slos), plots, claims })
}

fn reading(slos: &[Slo; 2]) -> String {
    format!(
        "D is a trace whose gaps vary as Table 3.1 says (C² 22.8 for 23) at a load of 10 % of a 7200 rpm disk, C is that of \
         figure 3.3 at 55 %. E, the same workload misbehaving, is another part of a trace that is not public: here D \
         comes eleven times as fast, a load of 110 %. The SLOs are 1.1 times the bounds of PriorityMeister with D first: \
         {} for D and {} for C. Limits are those for D as it behaves.",
        slos[0].latency, slos[1].latency
    )
}

impl FloodResult {
    fn claims(&self, slos: &[Slo; 2]) -> [Claim; 2] {
        let policy = self.policy;
        let keeps = format!("{policy} keeps both SLOs while D behaves");
        let worst = worst_slo_ratio(&self.behaved, slos, &PERCENTS);
        let normal = Claim::exact(&keeps, Expected::AtMost(1.0), worst, format_slo_ratio).remark(
            "the SLOs of the thesis are set so that all policies keep them; these are what the analysis admits",
        );
        let (statement, expected) = match policy {
            "PriorityMeister" => {
                ("PriorityMeister isolates C when D misbehaves".to_owned(), Expected::AtMost(1.0))
            }
            _ => (format!("{policy} does not isolate C when D misbehaves"), Expected::AtLeast(1.0)),
        };
        let harm = slo_ratio(&self.misbehaved[1], 99.9, slos[1]);
        [normal, Claim::exact(&statement, expected, harm, format_slo_ratio)]
    }
}
