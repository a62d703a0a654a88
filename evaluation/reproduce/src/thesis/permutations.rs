//! Figure 3.9: the workloads of figure 3.3 with three SLOs in all six orders.

use super::policies::{EDF, NAMES, three_workloads};
use super::policy_run::{
    ExpectedWorkloads, POLICIES, format_slo_ratio, percentile, run_policy, set_slo, slo, worst_slo_ratio,
};
use super::priority_meister::PriorityMeisterAnalysis;
use crate::claim::{Claim, Expected};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};
use model::Slo;
use scenario::ScenarioDocument;

/// The three SLOs relative to the tightest.
const SPREAD: [f64; 3] = [1.0, 1.5, 2.0];
/// Orders in which A, B and C have them.
const PERMUTATIONS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
/// The percentile of the figure.
const PERCENTS: [f64; 1] = [99.9];
/// Step between the SLOs that are tried, as a factor.
const STEP: f64 = 1.05;
/// Why the numbers of kept orders are open.
const OPEN: &str = "the three SLOs are not printed, and they decide in which orders a policy keeps them";

/// A policy in all orders.
struct PolicyInOrders {
    policy: &'static str,
    /// The largest 99.9th percentile ÷ SLO of any workload, by order.
    worst: Vec<f64>,
    /// 99.9th percentiles of A, B and C, by order.
    tails: Vec<[f64; 3]>,
}

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let document = three_workloads(context)?;
    let analysis = PriorityMeisterAnalysis::new(&document.case()?);
    let tightest = tightest_admitted(&analysis);
    let mut expected = ExpectedWorkloads { analysis, slos: Vec::new() };
    let mut results: Vec<PolicyInOrders> = Vec::new();
    for (policy, _) in POLICIES {
        results.push(PolicyInOrders { policy, worst: Vec::new(), tails: Vec::new() });
    }
    for (order, permutation) in PERMUTATIONS.into_iter().enumerate() {
        let slos = slos_of(tightest, permutation);
        let document = with_slos(&document, &slos)?;
        expected.slos = slos.to_vec();
        for (index, (_, discipline)) in POLICIES.into_iter().enumerate() {
            (context.progress)(order * POLICIES.len() + index, PERMUTATIONS.len() * POLICIES.len());
            let outcomes = run_policy(context, &document, discipline, &expected)?;
            let result = &mut results[index];
            result.worst.push(worst_slo_ratio(&outcomes[..3], &slos, &PERCENTS));
            result.tails.push([0, 1, 2].map(|workload| percentile(&outcomes[workload], PERCENTS[0])));
        }
    }
    let claims = results.iter().flat_map(PolicyInOrders::claims).collect();
    Ok(ReproducedFigure { reading: reading(tightest), plots: plots(tightest, &results), claims })
}

/// The SLOs of A, B and C.
fn slos_of(tightest: f64, permutation: [usize; 3]) -> [Slo; 3] {
    permutation.map(|place| slo(99.9, tightest * SPREAD[place]))
}

fn with_slos(document: &ScenarioDocument, slos: &[Slo; 3]) -> Result<ScenarioDocument, FigureError> {
    let mut document = document.clone();
    for (name, slo) in NAMES.iter().zip(slos) {
        set_slo(&mut document, name, *slo)?;
    }
    Ok(document)
}

/// Returns the tightest SLO, in seconds, at which the analysis admits all orders; steps go up from the bound of the
/// workload that is quickest alone.
fn tightest_admitted(analysis: &PriorityMeisterAnalysis) -> f64 {
    let mut tightest =
        (0..NAMES.len()).map(|workload| analysis.bound(workload, &[])).fold(f64::INFINITY, f64::min);
    let admits = |tightest: f64| {
        PERMUTATIONS.iter().all(|permutation| analysis.policy(&slos_of(tightest, *permutation)).1)
    };
    while !admits(tightest) {
        tightest *= STEP;
    }
    tightest
}

fn reading(tightest: f64) -> String {
    let [first, second, third] = SPREAD.map(|factor| slo(99.9, tightest * factor).latency);
    format!(
        "The workloads, the disk and the copy of thesis-fig-3-3. The three SLOs of the thesis are not printed: here they are in \
         the ratio 1 : 1.5 : 2, as tight as the analysis of PriorityMeister admits in all six orders, {first}, {second} and \
         {third}. Figures are the 99.9th percentile ÷ SLO of the workload for which it is largest."
    )
}

fn plots(tightest: f64, results: &[PolicyInOrders]) -> Vec<FigurePlot> {
    let mut plots = Vec::new();
    for (workload, name) in NAMES.into_iter().enumerate() {
        let mut lines = Vec::new();
        for result in results {
            let points = result.tails.iter().enumerate();
            let points = points.map(|(order, tails)| (order as f64 + 1.0, tails[workload]));
            lines.push(FigureSeries::new(result.policy, points));
        }
        let slos =
            PERMUTATIONS.into_iter().map(|permutation| slos_of(tightest, permutation)[workload].latency.0);
        lines.push(FigureSeries::new("SLO", slos.enumerate().map(|(order, slo)| (order as f64 + 1.0, slo))));
        let x = FigureAxis::linear("order of the SLOs", AxisQuantity::Number);
        let y = FigureAxis::log("99.9th percentile of the latency", AxisQuantity::Seconds);
        plots.push(FigurePlot::new(format!("Workload {name}"), x, y, lines));
    }
    plots
}

impl PolicyInOrders {
    /// The number of orders in which all SLOs are kept.
    fn kept(&self) -> f64 {
        self.worst.iter().filter(|ratio| **ratio <= 1.0).count() as f64
    }

    fn claims(&self) -> Vec<Claim> {
        let worst = self.worst.iter().copied().fold(0.0, f64::max);
        let format_kept = |kept: f64| format!("{kept} of 6");
        let ratios: Vec<String> = self.worst.iter().map(|ratio| format!("{ratio:.2}")).collect();
        let why = if self.policy == "EDF" { EDF } else { "" };
        let remark = format!("by order: {}{why}", ratios.join(", "));
        match self.policy {
            "PriorityMeister" => {
                let statement = "PriorityMeister keeps all SLOs in all six orders";
                vec![Claim::exact(statement, Expected::AtMost(1.0), worst, format_slo_ratio).remark(&remark)]
            }
            policy => {
                let statement = format!("{policy} misses an SLO in some order");
                let misses =
                    Claim::exact(&statement, Expected::AtLeast(1.0), worst, format_slo_ratio).remark(&remark);
                if policy != "by SLO" {
                    return vec![misses];
                }
                let statement = "priority by SLO keeps all SLOs in five of the six orders";
                let five = Expected::About { value: 5.0, within: 0.0 };
                let kept = Claim::exact(statement, five, self.kept(), format_kept).underspecified(OPEN);
                vec![misses, kept]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Agreement;

    fn verdicts(policy: &'static str, worst: f64) -> Vec<Agreement> {
        let mut result = PolicyInOrders { policy, worst: vec![0.9; 6], tails: Vec::new() };
        result.worst[3] = worst;
        result.claims().iter().map(|claim| claim.agreement).collect()
    }

    #[test]
    fn one_order_decides() {
        use Agreement::{Agree, Differ, Underspecified};
        assert_eq!(verdicts("PriorityMeister", 0.95), [Agree]);
        assert_eq!(verdicts("PriorityMeister", 1.05), [Differ]);
        assert_eq!(verdicts("proportional share", 1.05), [Agree]);
        assert_eq!(verdicts("proportional share", 0.95), [Differ]);
        assert_eq!(verdicts("by SLO", 1.05), [Agree, Underspecified]);
    }
}
