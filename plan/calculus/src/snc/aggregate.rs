//! Merging many arrival processes, some of them dependent (thesis Appendix A.4).
//!
//! The published algorithm puts dependent processes into different groups, adds within a group as
//! independent and across groups as dependent. It needs the least number of dependent operations, one less
//! than the largest clique (Theorem 6), but that number is not what a bound costs: Hölder's inequality
//! across groups charges every process, also those that depend on no other. [`aggregate_by_clique`] applies
//! it within each clique and adds the cliques as independent. Its bound is never above the published one:
//! give each member of a clique the weight of its group, and what is missing to 1 only lowers θ.

use super::expression::ArrivalProcess;

/// The groups of steps 1 and 2 of A.4: each process, by its index, is in the first group of which it depends on no member.
pub fn independent_groups(processes: &[ArrivalProcess]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (position, process) in processes.iter().enumerate() {
        let is_independent = |group: &&mut Vec<usize>| {
            group.iter().all(|&other| process.is_independent_of(processes[other].sources()))
        };
        match groups.iter_mut().find(is_independent) {
            Some(group) => group.push(position),
            None => groups.push(vec![position]),
        }
    }
    groups
}

/// The sum by the aggregation algorithm of A.4: independent within groups, dependent across them.
pub fn aggregate_in_groups(processes: &[ArrivalProcess]) -> ArrivalProcess {
    sum_of_sums(processes, &independent_groups(processes))
}

/// The sum that is dependent within cliques and independent across them.
pub fn aggregate_by_clique(processes: &[ArrivalProcess]) -> ArrivalProcess {
    let mut cliques: Vec<Vec<usize>> = Vec::new();
    for (position, process) in processes.iter().enumerate() {
        // A process that depends on several cliques makes one of them.
        let (mut merged, others): (Vec<_>, Vec<_>) = cliques.into_iter().partition(|clique: &Vec<usize>| {
            clique.iter().any(|&other| !process.is_independent_of(processes[other].sources()))
        });
        merged.push(vec![position]);
        cliques = others;
        cliques.push(merged.concat());
    }
    sum_of_sums(processes, &cliques)
}

/// The sum of the groups' sums.
fn sum_of_sums(processes: &[ArrivalProcess], groups: &[Vec<usize>]) -> ArrivalProcess {
    let mut sums = Vec::with_capacity(groups.len());
    for group in groups {
        let members = group.iter().map(|&position| processes[position].clone());
        sums.push(ArrivalProcess::sum(members.collect()));
    }
    ArrivalProcess::sum(sums)
}
