//! Figure 3.6: a workload of high priority floods the disk.

use super::meister::Analysis;
use super::play::{POLICIES, play, ratio, set_slo, shown, slo, tail, worst};
use super::{C, D};
use crate::claim::{Claim, Expected};
use crate::context::{Context, FigureError, embedded};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};
use model::Slo;
use scenario::server::WorkloadOutcome;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/thesis-fig-3-6.toml");
const NAMES: [&str; 2] = ["D", "C"];
/// Percentiles at which all policies keep the SLOs while D behaves.
const PERCENTS: [f64; 3] = [95.0, 99.0, 99.9];

/// What a policy does while D behaves, and when it does not.
struct Found {
    policy: &'static str,
    behaved: Vec<WorkloadOutcome>,
    misbehaved: Vec<WorkloadOutcome>,
}

pub(crate) fn run(context: &Context) -> Result<Figure, FigureError> {
    let mut document = embedded("thesis-fig-3-6.toml", SCENARIO)?;
    for (name, trace) in NAMES.iter().zip([D, C]) {
        let path = context.file(trace)?.display().to_string();
        document.set(&format!("workload.{name}.trace"), &format!("{path:?}"))?;
    }
    let analysis = Analysis::of(&document.case()?);
    let slos = [1.1 * analysis.bound(0, &[]), 1.1 * analysis.bound(1, &[0])].map(|bound| slo(99.9, bound));
    NAMES.iter().zip(slos).try_for_each(|(name, slo)| set_slo(&mut document, name, slo))?;
    let mut flooded = document.clone();
    flooded.set("workload.D.load", "1.1")?;
    let mut found = Vec::new();
    for (index, (policy, discipline)) in POLICIES.iter().enumerate() {
        (context.progress)(index, POLICIES.len());
        let play = |document| play(context, document, *discipline, (&analysis, &slos));
        found.push(Found { policy, behaved: play(&document)?, misbehaved: play(&flooded)? });
    }
    Ok(Figure {
        reading: reading(&slos),
        plots: vec![
            plot("behaves", &found, slos[1], |found| &found.behaved),
            plot("misbehaves", &found, slos[1], |found| &found.misbehaved),
        ],
        claims: found.iter().flat_map(|found| claims(found, &slos)).collect(),
    })
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

fn plot(what: &str, found: &[Found], slo: Slo, of: impl Fn(&Found) -> &Vec<WorkloadOutcome>) -> Plot {
    let mut lines: Vec<Line> = found.iter().map(|at| Line::new(at.policy, tail(&of(at)[1]))).collect();
    lines.push(Line::new("SLO", [(slo.latency.0, 1.0), (slo.latency.0, 1e-4)]));
    Plot {
        title: format!("Workload C while D {what}"),
        x: Axis::log("latency", Quantity::Seconds),
        y: Axis::log("share of requests that take longer", Quantity::Share),
        lines,
    }
}

fn claims(found: &Found, slos: &[Slo; 2]) -> Vec<Claim> {
    let policy = found.policy;
    let normal = Claim::exact(
        &format!("{policy} keeps both SLOs while D behaves"),
        Expected::AtMost(1.0),
        worst(&found.behaved, slos, &PERCENTS),
        shown,
    )
    .remark(
        "the SLOs of the thesis are set so that all policies keep them; these are what the analysis admits",
    );
    let harm = ratio(&found.misbehaved[1], 99.9, slos[1]);
    let flooded = if policy == "PriorityMeister" {
        Claim::exact("PriorityMeister isolates C when D misbehaves", Expected::AtMost(1.0), harm, shown)
    } else {
        let said = format!("{policy} does not isolate C when D misbehaves");
        Claim::exact(&said, Expected::AtLeast(1.0), harm, shown)
    };
    vec![normal, flooded]
}
