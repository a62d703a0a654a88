//! Figures 5.1, 5.4, 5.8 and 5.12: servers that each method needs, with one SLO for all workloads and with several.

use super::methods::{PackingMethod, STATE_OF_THE_ART};
use super::sources::{DrawnWorkload, SLOS_S, TraceSet};
use super::{draws, format_more, interrupted};
use crate::claim::{Claim, Expected, format_change, format_factor, format_time};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sim::engine::Estimate;

/// Difference from the thesis in all numbers of servers.
const FEWER: &str =
    "the 41 traces are a part of the thesis's collection, and the sizes of its sets are not given";
/// Workloads of a random set: the thesis does not say how many its cluster had.
const SET_SIZE: usize = 20;
/// Random sets for each SLO, and as many with random SLOs.
const SETS: usize = 20;

const METHODS: [PackingMethod; 7] = [
    PackingMethod::Compactor,
    PackingMethod::EffectiveBandwidth,
    PackingMethod::Knee,
    PackingMethod::OneAndAHalfTimesAverage,
    PackingMethod::TwiceAverage,
    PackingMethod::SeveralLimiters,
    PackingMethod::Tailwright,
];

/// Servers that each of [`METHODS`] needs for a set.
struct SetResult {
    workloads: usize,
    servers: [usize; METHODS.len()],
}

/// The random sets, and all workloads that can have an SLO.
struct CompactionResult {
    /// Random sets by SLO.
    same: Vec<Vec<SetResult>>,
    /// All workloads that can have each SLO.
    all: Vec<SetResult>,
    /// Random sets with random SLOs.
    mixed: Vec<SetResult>,
}

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let set = TraceSet::read(context, 1.0, |_, _| true)?;
    let sets = draws(SETS, context.effort);
    let steps = SLOS_S.len() + 1;
    let mut random = StdRng::seed_from_u64(context.seed);
    let mut result = CompactionResult { same: Vec::new(), all: Vec::new(), mixed: Vec::new() };
    for slo_index in 0..SLOS_S.len() {
        (context.progress)(slo_index, steps);
        let mut same = Vec::new();
        for _ in 0..sets {
            interrupted(context)?;
            same.push(SetResult::of(&set, &set.draw_with(slo_index, SET_SIZE, &mut random)));
        }
        result.same.push(same);
        result.all.push(SetResult::of(&set, &set.all_with(slo_index)));
    }
    (context.progress)(SLOS_S.len(), steps);
    for _ in 0..sets {
        interrupted(context)?;
        result.mixed.push(SetResult::of(&set, &set.draw_mixed(SET_SIZE, &mut random)));
    }
    Ok(ReproducedFigure {
        reading: result.reading(set.files.len()),
        plots: result.plots(),
        claims: result.claims(),
    })
}

impl SetResult {
    fn of(set: &TraceSet, drawn: &[DrawnWorkload]) -> Self {
        Self { workloads: drawn.len(), servers: METHODS.map(|method| method.servers(set, drawn)) }
    }

    fn servers(&self, method: PackingMethod) -> f64 {
        let position = METHODS.iter().position(|one| *one == method).expect("one of the methods");
        self.servers[position] as f64
    }

    /// Servers of a method ÷ those of another.
    fn ratio(&self, method: PackingMethod, other: PackingMethod) -> f64 {
        self.servers(method) / self.servers(other)
    }

    /// Servers of a method ÷ those of WorkloadCompactor.
    fn normalised(&self, method: PackingMethod) -> f64 {
        self.ratio(method, PackingMethod::Compactor)
    }

    fn density(&self) -> f64 {
        self.workloads as f64 / self.servers(PackingMethod::Compactor)
    }
}

/// The mean of values with its 95 % confidence interval.
fn mean(values: &[f64]) -> Estimate {
    Estimate::of(values, 0.95).expect("there is a set")
}

/// The mean ratio over sets.
fn mean_ratio(sets: &[SetResult], method: PackingMethod, other: PackingMethod) -> Estimate {
    mean(&sets.iter().map(|set| set.ratio(method, other)).collect::<Vec<_>>())
}

/// An estimate of a ratio as one of the change.
fn change(ratio: Estimate) -> Estimate {
    Estimate { value: ratio.value - 1.0, ..ratio }
}

impl CompactionResult {
    /// The mean over all SLOs of the ratio of two methods in random sets of one SLO.
    fn same_ratio(&self, method: PackingMethod, other: PackingMethod) -> Estimate {
        let sets = self.same[0].len();
        let mut means = Vec::new();
        for number in 0..sets {
            let sum: f64 = self.same.iter().map(|of_slo| of_slo[number].ratio(method, other)).sum();
            means.push(sum / self.same.len() as f64);
        }
        mean(&means)
    }

    fn reading(&self, traces: usize) -> String {
        let available: Vec<String> = self.all.iter().map(|all| all.workloads.to_string()).collect();
        format!(
            "{traces} traces on servers with the published profile of the testbed's SSD and links of 1 Gbps; a workload is \
             taken only if it keeps its SLO alone on a server ({} traces for SLOs of 100, 150, 250, 500 and 1000 ms). All \
             methods are counted by the published bound, which has servers that preempt, and place by first fit in random \
             order; tailwright searches its own order. A set has {SET_SIZE} workloads: the thesis does not say how many its \
             cluster had. A workload that a method refuses counts as a server. WorkloadCompactor has curves of 12 segments.",
            available.join(", ")
        )
    }

    fn plots(&self) -> Vec<FigurePlot> {
        let ratio = || FigureAxis::linear("servers ÷ those of WorkloadCompactor", AxisQuantity::Number);
        let slo = || FigureAxis::log("SLO of all workloads", AxisQuantity::Seconds);
        let mut sets = Vec::new();
        let mut all = Vec::new();
        let mut mixed = Vec::new();
        for method in METHODS {
            let name = method.name();
            let of_sets =
                |of_slo: &Vec<SetResult>| mean_ratio(of_slo, method, PackingMethod::Compactor).value;
            sets.push(FigureSeries::new(name, SLOS_S.into_iter().zip(self.same.iter().map(of_sets))));
            let of_all = self.all.iter().map(|all| all.servers(method));
            all.push(FigureSeries::new(name, SLOS_S.into_iter().zip(of_all)));
            let of_mixed =
                self.mixed.iter().enumerate().map(|(set, one)| (set as f64 + 1.0, one.servers(method)));
            mixed.push(FigureSeries::new(name, of_mixed));
        }
        let servers = || FigureAxis::linear("servers", AxisQuantity::Number);
        let number = FigureAxis::linear("random set", AxisQuantity::Number);
        vec![
            FigurePlot::new(format!("{SET_SIZE} workloads with one SLO (figure 5.4)"), slo(), ratio(), sets),
            FigurePlot::new("All workloads that can have the SLO (figure 5.8)", slo(), servers(), all),
            FigurePlot::new(
                format!("{SET_SIZE} workloads with random SLOs (figure 5.4)"),
                number,
                servers(),
                mixed,
            ),
        ]
    }

    fn claims(&self) -> Vec<Claim> {
        let mut claims = self.claims_of_one_slo();
        claims.extend(self.claims_of_random_slos());
        claims.extend(self.claims_of_all_workloads());
        claims.extend(self.claims_of_all_settings());
        claims.extend(self.claims_of_several_limiters());
        claims
    }

    fn claims_of_one_slo(&self) -> Vec<Claim> {
        use PackingMethod::{Compactor, EffectiveBandwidth, Knee, OneAndAHalfTimesAverage, TwiceAverage};
        let ratio = self.same_ratio(EffectiveBandwidth, Compactor);
        let mut claims = vec![
            Claim::new(
                "one SLO for all: effective bandwidth uses 40 % more servers than WorkloadCompactor",
                MORE_40,
                change(ratio),
                format_more,
            )
            .because(FEWER),
        ];
        for other in [Knee, OneAndAHalfTimesAverage, TwiceAverage] {
            let statement =
                format!("one SLO for all: effective bandwidth uses fewer servers than {}", other.name());
            let ratio = self.same_ratio(EffectiveBandwidth, other);
            claims.push(Claim::new(&statement, Expected::Negative, change(ratio), format_change));
        }
        claims
    }

    fn claims_of_random_slos(&self) -> [Claim; 2] {
        use PackingMethod::{Compactor, EffectiveBandwidth, Knee};
        let more = change(mean_ratio(&self.mixed, Knee, Compactor));
        let fewer = change(mean_ratio(&self.mixed, Knee, EffectiveBandwidth));
        [
            Claim::new(
                "random SLOs: the knee uses 50 % more servers than WorkloadCompactor",
                MORE_50,
                more,
                format_more,
            ),
            Claim::new(
                "random SLOs: the knee uses fewer servers than effective bandwidth",
                Expected::Negative,
                fewer,
                format_change,
            )
            .because(FEWER),
        ]
    }

    /// Claims of figure 5.8, about all workloads that can have an SLO: there is no chance in them.
    fn claims_of_all_workloads(&self) -> [Claim; 3] {
        let mut least = f64::INFINITY;
        let mut densities = Vec::new();
        for (all, sets) in self.all.iter().zip(&self.same) {
            for method in STATE_OF_THE_ART {
                least = least.min(all.normalised(method));
            }
            let of_sets: f64 = sets.iter().map(SetResult::density).sum();
            densities.push(all.density() * sets.len() as f64 / of_sets);
        }
        let density = densities.iter().sum::<f64>() / densities.len() as f64;
        let first = self.all.first().map_or(0, |all| all.workloads) as f64;
        let last = self.all.last().map_or(0, |all| all.workloads) as f64;
        [
            Claim::exact(
                "all workloads that can have an SLO: each method needs more servers than WorkloadCompactor at each SLO",
                Expected::Positive,
                least - 1.0,
                format_change,
            )
            .remark("the smallest difference of all methods and SLOs"),
            Claim::exact(
                "the size of the cluster does not significantly affect the workloads on a server (within 10 %)",
                Expected::About { value: 1.0, within: 0.1 },
                density,
                format_factor,
            )
            .because("with few servers the last, which is not full, counts for more"),
            Claim::exact(
                "more workloads can have an SLO of 1 s than one of 100 ms",
                Expected::Positive,
                last - first,
                |more| format!("{more:.0} more"),
            ),
        ]
    }

    /// Claims of figure 5.1, about the mean ratio of each method with one SLO and with random ones.
    fn claims_of_all_settings(&self) -> [Claim; 3] {
        let mut means = Vec::new();
        let mut most = 0.0;
        for method in STATE_OF_THE_ART {
            means.push((self.same_ratio(method, PackingMethod::Compactor).value, method, "one SLO"));
            let mixed = mean_ratio(&self.mixed, method, PackingMethod::Compactor).value;
            means.push((mixed, method, "random SLOs"));
            for set in self.same.iter().flatten().chain(&self.mixed) {
                most = f64::max(most, set.ratio(PackingMethod::Compactor, method));
            }
        }
        means.sort_by(|a, b| a.0.total_cmp(&b.0));
        let words =
            |(_, method, setting): (f64, PackingMethod, &str)| format!("{}, {setting}", method.name());
        let least = means[0];
        let largest = means[means.len() - 1];
        [
            Claim::exact(
                "the state of the art requires at least 40 % more servers",
                Expected::AtLeast(0.35),
                least.0 - 1.0,
                format_more,
            )
            .remark(&format!("{}; {FEWER}", words(least))),
            Claim::exact(
                "the state of the art requires at most 150 % more servers",
                Expected::AtMost(1.55),
                largest.0 - 1.0,
                format_more,
            )
            .remark(&words(largest)),
            Claim::exact(
                "WorkloadCompactor never needs more servers than another method",
                Expected::AtMost(1.0),
                most,
                format_factor,
            )
            .remark("the largest ratio of any set and method"),
        ]
    }

    fn claims_of_several_limiters(&self) -> Vec<Claim> {
        use PackingMethod::{Compactor, SeveralLimiters, Tailwright};
        let mut claims = Vec::new();
        for (setting, several, ours) in [
            (
                "one SLO for all",
                self.same_ratio(SeveralLimiters, Compactor),
                self.same_ratio(Tailwright, Compactor),
            ),
            (
                "random SLOs",
                mean_ratio(&self.mixed, SeveralLimiters, Compactor),
                mean_ratio(&self.mixed, Tailwright, Compactor),
            ),
        ] {
            let statement =
                format!("{setting}: several limiters at once use more servers than WorkloadCompactor");
            claims.push(Claim::new(&statement, Expected::Positive, change(several), format_change));
            let statement = format!("{setting}: tailwright uses no more servers than WorkloadCompactor");
            claims.push(Claim::new(&statement, Expected::AtMost(1.0), ours, format_factor).ours());
        }
        for (slo, all) in SLOS_S.into_iter().zip(&self.all) {
            let statement =
                format!("all {} at {}: tailwright uses no more servers", all.workloads, format_time(slo));
            let ratio = all.normalised(Tailwright);
            claims.push(Claim::exact(&statement, Expected::AtMost(1.0), ratio, format_factor).ours());
        }
        claims
    }
}

/// "40 % more" is 35 to 45 %.
const MORE_40: Expected = Expected::About { value: 0.4, within: 0.125 };
/// "50 % more" is 45 to 55 %.
const MORE_50: Expected = Expected::About { value: 0.5, within: 0.1 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Agreement;

    /// Sets in which the methods need these servers, in the order of [`METHODS`].
    fn sets(servers: [usize; METHODS.len()]) -> Vec<SetResult> {
        (0..2).map(|_| SetResult { workloads: SET_SIZE, servers }).collect()
    }

    fn result(same: [usize; METHODS.len()], mixed: [usize; METHODS.len()]) -> CompactionResult {
        let mut result = CompactionResult { same: Vec::new(), all: Vec::new(), mixed: sets(mixed) };
        for number in 0..SLOS_S.len() {
            result.same.push(sets(same));
            result.all.push(SetResult { workloads: SET_SIZE + usize::from(number > 3), servers: same });
        }
        result
    }

    fn verdict(result: &CompactionResult, statement: &str) -> Agreement {
        let claims = result.claims();
        let claim = claims.iter().find(|claim| claim.statement.contains(statement));
        claim.unwrap_or_else(|| panic!("no claim says '{statement}'")).agreement
    }

    /// The numbers of the thesis agree with all of its claims, and others do not.
    #[test]
    fn claims_are_judged_by_the_servers() {
        let as_published = result([10, 14, 18, 20, 22, 12, 9], [10, 16, 15, 19, 21, 12, 10]);
        for claim in as_published.claims() {
            assert_eq!(claim.agreement, Agreement::Agree, "{}: {}", claim.statement, claim.found_text);
        }
        let reversed = result([10, 20, 18, 19, 9, 8, 11], [10, 12, 13, 30, 28, 10, 11]);
        for statement in [
            "effective bandwidth uses 40 %",
            "one SLO for all: effective bandwidth uses fewer servers than knee",
            "effective bandwidth uses fewer servers than 1.5",
            "effective bandwidth uses fewer servers than 2",
            "the knee uses 50 %",
            "random SLOs: the knee uses fewer",
            "each method needs more servers than WorkloadCompactor at each SLO",
            "at least 40 % more",
            "at most 150 % more",
            "never needs more servers",
            "one SLO for all: several limiters",
            "random SLOs: several limiters",
            "one SLO for all: tailwright",
            "random SLOs: tailwright",
        ] {
            assert_eq!(verdict(&reversed, statement), Agreement::Differ, "{statement}");
        }
        let mut crowded = result([10, 14, 18, 20, 22, 12, 9], [10, 16, 15, 19, 21, 12, 10]);
        crowded.all.iter_mut().for_each(|all| all.workloads = 2 * SET_SIZE);
        assert_eq!(verdict(&crowded, "the size of the cluster"), Agreement::Differ);
        assert_eq!(verdict(&crowded, "more workloads can have an SLO of 1 s"), Agreement::Differ);
    }
}
