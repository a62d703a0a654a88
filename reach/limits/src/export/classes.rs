//! At most k classes for all workloads: each class has the largest limits of its members.
//!
//! Classes of volumes are few and cannot be changed, so limits are quantised. Workloads are sorted by rate; a class
//! is a run of them, and the runs are chosen by dynamic programming so that the rates given beyond those that were
//! planned are the least. Rows of one workload keep their order, so members of a class can be merged row by row.

use super::settings::PlannedLimit;
use crate::limit::FoundLimit;
use operation::text::percent;

/// Raises the rows of each workload to those of its class and gives them its name. Returns a sentence about the cost.
pub(crate) fn quantise(rows: &mut [FoundLimit], planned: &[PlannedLimit], count: usize) -> Option<String> {
    let mut order: Vec<usize> = (0..planned.len()).collect();
    order.sort_by(|a, b| planned[*a].rate.total_cmp(&planned[*b].rate).then(a.cmp(b)));
    let rates: Vec<f64> = order.iter().map(|at| planned[*at].rate).collect();
    let runs = runs(&rates, count);
    let per_workload = rows.len() / planned.len().max(1);
    let mut given = 0.0;
    for (number, run) in runs.iter().enumerate() {
        let members = &order[run.clone()];
        given += rates[run.end - 1] * run.len() as f64;
        for at in 0..per_workload {
            let row = |member: &usize| member * per_workload + at;
            let largest = |field: fn(&FoundLimit) -> f64| {
                members.iter().map(|m| field(&rows[row(m)])).fold(0.0, f64::max)
            };
            let value = largest(|limit| limit.value);
            let burst = largest(|limit| limit.burst.unwrap_or(0.0));
            for member in members {
                rows[row(member)].value = value;
                rows[row(member)].burst = Some(burst);
                rows[row(member)].key = format!("class-{}", number + 1);
            }
        }
    }
    let planned: f64 = rates.iter().sum();
    let beyond = percent((given - planned) / planned);
    (runs.len() < rates.len()).then(|| {
        format!(
            "{} workloads share {} classes, which give them {beyond} more than was planned.",
            rates.len(),
            runs.len()
        )
    })
}

/// Divides ascending rates into at most `count` runs, so that Σ (largest of the run − rate) is the least.
fn runs(rates: &[f64], count: usize) -> Vec<std::ops::Range<usize>> {
    let length = rates.len();
    let count = count.clamp(1, length.max(1));
    let mut sums = vec![0.0];
    rates.iter().for_each(|rate| sums.push(sums[sums.len() - 1] + rate));
    // Cost of the first n rates in k runs, and the beginning of the last run.
    let mut costs = vec![vec![f64::INFINITY; length + 1]; count + 1];
    let mut begins = vec![vec![0; length + 1]; count + 1];
    costs[0][0] = 0.0;
    for k in 1..=count {
        for end in 1..=length {
            for begin in (k - 1)..end {
                let run = rates[end - 1] * (end - begin) as f64 - (sums[end] - sums[begin]);
                let cost = costs[k - 1][begin] + run;
                if cost < costs[k][end] {
                    costs[k][end] = cost;
                    begins[k][end] = begin;
                }
            }
        }
    }
    let mut runs = Vec::new();
    let mut end = length;
    let best = (1..=count).min_by(|a, b| costs[*a][length].total_cmp(&costs[*b][length])).unwrap_or(count);
    for k in (1..=best).rev() {
        let begin = begins[k][end];
        runs.push(begin..end);
        end = begin;
    }
    runs.reverse();
    runs.retain(|run| !run.is_empty());
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cost(rates: &[f64], runs: &[std::ops::Range<usize>]) -> f64 {
        runs.iter()
            .map(|run| rates[run.clone()].iter().map(|rate| rates[run.end - 1] - rate).sum::<f64>())
            .sum()
    }

    /// The least cost by trying every set of boundaries.
    fn slow(rates: &[f64], count: usize) -> f64 {
        let mut least = f64::INFINITY;
        for marks in 0..1_u32 << (rates.len() - 1) {
            if marks.count_ones() as usize >= count {
                continue;
            }
            let mut runs = Vec::new();
            let mut begin = 0;
            for end in 1..=rates.len() {
                if end == rates.len() || marks & (1 << (end - 1)) != 0 {
                    runs.push(begin..end);
                    begin = end;
                }
            }
            least = least.min(cost(rates, &runs));
        }
        least
    }

    proptest! {
        #[test]
        fn no_other_runs_cost_less(mut rates in prop::collection::vec(0.0..1.0f64, 1..9), count in 1_usize..5) {
            rates.sort_by(f64::total_cmp);
            let found = runs(&rates, count);
            prop_assert!(found.len() <= count);
            prop_assert!((cost(&rates, &found) - slow(&rates, count)).abs() < 1e-9);
        }
    }
}
