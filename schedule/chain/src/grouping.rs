//! Grouping of a scenario's stations into tiers: one each, or several that share a CPU.

use crate::workload::{ChainTier, ChainWorkload, push_hop};
use scenario::SimulationCase;
use sim::pool_tiers::RouteHop;

/// The tiers of a scenario, and the tier of each station.
#[derive(Debug, Clone, PartialEq)]
pub struct TierGrouping {
    tiers: Vec<ChainTier>,
    /// Tier of each station.
    tier_of: Vec<usize>,
    /// Arriving work ÷ CPU capacity of each tier.
    utilisation: Vec<f64>,
}

impl TierGrouping {
    /// Creates a tier for each station, with its workers.
    pub(crate) fn one_by_one(case: &SimulationCase) -> Self {
        let stations = &case.network.stations;
        let tier = |station: &sim::engine::NetworkStation| ChainTier {
            name: station.name.clone(),
            workers: station.workers,
        };
        Self {
            tiers: stations.iter().map(tier).collect(),
            tier_of: (0..stations.len()).collect(),
            utilisation: (0..stations.len()).map(|station| case.utilisation(station)).collect(),
        }
    }

    /// Creates at most this many tiers of one CPU each, with about equal work: stations in descending
    /// order of work go to the tier with the least so far.
    ///
    /// # Panics
    /// When `cpus` is 0.
    pub fn on_cpus(case: &SimulationCase, cpus: usize) -> Self {
        let stations = &case.network.stations;
        let work = |station: usize| case.utilisation(station) * f64::from(stations[station].workers);
        let works: Vec<f64> = (0..stations.len()).map(work).collect();
        let (tier_of, utilisation) = balanced(&works, cpus);
        let tier = |tier: usize| {
            let members = tier_of.iter().zip(stations).filter(|(of, _)| **of == tier);
            let names: Vec<&str> = members.map(|(_, station)| station.name.as_str()).collect();
            ChainTier { name: joined(&names), workers: 1 }
        };
        Self { tiers: (0..utilisation.len()).map(tier).collect(), tier_of, utilisation }
    }

    /// Returns the tiers in their order.
    pub fn tiers(&self) -> &[ChainTier] {
        &self.tiers
    }

    /// Returns the arriving work ÷ CPU capacity, by tier.
    pub fn utilisation(&self) -> &[f64] {
        &self.utilisation
    }

    /// Converts a workload by station into one by tier; neighbouring visits to one tier become one.
    pub(crate) fn apply(&self, by_station: ChainWorkload) -> ChainWorkload {
        let mut workload = ChainWorkload { tiers: self.tiers.clone(), ..by_station };
        for request in &mut workload.requests {
            let mut route: Vec<RouteHop> = Vec::with_capacity(request.route.len());
            for hop in &request.route {
                push_hop(&mut route, RouteHop { tier: self.tier_of[hop.tier], ..*hop });
            }
            request.route = route;
        }
        workload
    }
}

/// Returns the group of each work, and the sum of each group; at most `groups` groups.
fn balanced(works: &[f64], groups: usize) -> (Vec<usize>, Vec<f64>) {
    assert!(groups > 0, "at least one CPU");
    let mut sums: Vec<f64> = vec![0.0; groups.min(works.len())];
    let mut group_of = vec![0; works.len()];
    let mut largest_first: Vec<usize> = (0..works.len()).collect();
    largest_first.sort_by(|a, b| works[*b].total_cmp(&works[*a]));
    for (position, index) in largest_first.into_iter().enumerate() {
        // The first ones get a group each, so that none stays empty when there is no work.
        let least = (0..sums.len()).min_by(|a, b| sums[*a].total_cmp(&sums[*b])).unwrap_or(0);
        let group = if position < sums.len() { position } else { least };
        group_of[index] = group;
        sums[group] += works[index];
    }
    (group_of, sums)
}

/// Returns the first name, and the number of others.
fn joined(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, second] => format!("{first}+{second}"),
        [first, others @ ..] => format!("{first}+{}", others.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::draw_workload;
    use proptest::prelude::*;
    use scenario::ScenarioDocument;
    use std::path::Path;
    use units::Nanos;

    const THREE: &str = "[[station]]\nname = \"a\"\nworkers = 1\ndiscipline = \"fifo\"\n\
        [[station]]\nname = \"b\"\nworkers = 2\ndiscipline = \"fifo\"\n\
        [[station]]\nname = \"c\"\nworkers = 1\ndiscipline = \"fifo\"\n\
        [[entry]]\narrivals = \"constant(100/s)\"\nservice = { a = \"1ms\", b = \"2ms\", c = \"4ms\" }\n";

    #[test]
    fn stations_that_share_a_cpu_are_one_tier() {
        let case =
            ScenarioDocument::parse(Path::new("x.toml"), THREE).and_then(|three| three.case()).unwrap();
        let drawn = draw_workload(&case, 1, Nanos(100_000_000)).unwrap();
        let apart = TierGrouping::one_by_one(&case);
        assert_eq!(apart.apply(drawn.clone()), drawn);
        assert_eq!(apart.tiers()[1].workers, 2);
        let grouping = TierGrouping::on_cpus(&case, 2);
        let names: Vec<&str> = grouping.tiers().iter().map(|tier| tier.name.as_str()).collect();
        assert_eq!(names, ["c", "a+b"]);
        assert!(
            (grouping.utilisation()[0] - 0.4).abs() < 1e-9 && (grouping.utilisation()[1] - 0.3).abs() < 1e-9
        );
        let grouped = grouping.apply(drawn);
        let hop = |tier, milliseconds: u64| RouteHop {
            tier,
            wait: Nanos::ZERO,
            work: Nanos(1_000_000 * milliseconds),
        };
        assert!(grouped.requests.iter().all(|request| request.route == [hop(1, 3), hop(0, 4)]));
        assert_eq!(TierGrouping::on_cpus(&case, 9).tiers().len(), 3);
    }

    proptest! {
        #[test]
        fn no_group_is_empty_or_has_much_more_than_another(
            works in proptest::collection::vec(0.0f64..1.0, 1..30), groups in 1usize..6,
        ) {
            let (group_of, sums) = balanced(&works, groups);
            for (group, sum) in sums.iter().enumerate() {
                let members = group_of.iter().zip(&works).filter(|(of, _)| **of == group);
                prop_assert!(members.clone().count() > 0);
                prop_assert!((members.map(|(_, work)| work).sum::<f64>() - sum).abs() < 1e-9);
            }
            let largest = works.iter().copied().fold(0.0, f64::max);
            let spread = sums.iter().copied().fold(0.0, f64::max) - sums.iter().copied().fold(f64::MAX, f64::min);
            prop_assert!(spread <= largest + 1e-9, "{spread} {largest}");
        }
    }
}
