//! Scores of windows as margins, and which blocks of scores a margin may rest on.
//!
//! The windows of one trace are exchangeable blocks when there are enough of them. Otherwise each window of each trace is a
//! block (of traces that depend on each other, the same window together), however many companies and alignments it was scored
//! in. That takes traces for independent, as replays do, but not for alike: the next window is one more of each trace, and the
//! pool has as many of each. Where a promise is about all members of a server, the score is the largest of them, and the blocks
//! are the companies of a window that have no workload in common; where it is about a whole plan, the score is the largest of
//! all companies of a round, and each window is a block.

use super::scores::{MemberScore, TrialScores};
use confidence::{TooFew, conformal_quantile, needed_for_conformal};
use std::collections::BTreeMap;

/// What the coverage of a promise counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CalibrationScope {
    /// Workloads: each keeps its promise in the next window with this probability.
    #[default]
    Workload,
    /// Servers: everybody on a server keeps the promise.
    Server,
    /// Plans: everybody on all servers does.
    Plan,
}

/// What multiplies the prediction for a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyMargin {
    /// The factor, at least 1; infinite where windows were not predicted at all.
    pub factor: f64,
    /// What the factor rests on.
    pub basis: MarginBasis,
    /// How many exchangeable blocks there are.
    pub blocks: usize,
}

/// Which scores a margin is a quantile of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarginBasis {
    /// Those of the windows of one trace; each window is a block.
    Windows,
    /// Those of the windows of all traces, or of companies in all windows; each is a block.
    Pool,
}

/// Why a workload has no margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFewWindows {
    /// The windows that its trace has, and how many would do without any other trace.
    pub windows: TooFew,
    /// The independent traces, companies or plans that have windows, and how many would do.
    pub pool: TooFew,
}

/// The margin of a workload, or why it has none.
pub type MarginAnswer = Result<LatencyMargin, TooFewWindows>;

/// How often margins held in the windows from which they come. That is no promise: the margins were chosen by these windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptShares {
    /// Of workloads: each kept its margin.
    pub workloads: f64,
    /// Of servers: everybody in a company kept the margin.
    pub servers: f64,
    /// Of plans: everybody in all companies of a round did.
    pub plans: f64,
    /// Of workloads: each was within the worst case by the burst curves of the rest of the traces.
    pub guaranteed_workloads: f64,
    /// Of servers: all members were.
    pub guaranteed_servers: f64,
    /// Of plans: all members of all companies of a round were.
    pub guaranteed_plans: f64,
}

/// The margins of all traces.
#[derive(Debug, Clone)]
pub(super) struct Margins {
    /// By trace, then percentile.
    pub(super) by_trace: Vec<Vec<MarginAnswer>>,
    /// Of a trace that was in no trial, by percentile.
    pub(super) unknown: Vec<MarginAnswer>,
    pub(super) kept: KeptShares,
}

/// What margins are computed from.
pub(super) struct ScoredWindows<'a> {
    pub(super) trials: &'a [TrialScores],
    /// How many windows each trace has.
    pub(super) windows: &'a [usize],
    /// How many percentiles are calibrated.
    pub(super) percentiles: usize,
    pub(super) coverage: f64,
}

impl ScoredWindows<'_> {
    pub(super) fn margins(&self, scope: CalibrationScope) -> Margins {
        let percentiles = 0..self.percentiles;
        let pool: Vec<_> = match scope {
            CalibrationScope::Workload => percentiles.map(|p| self.of_trace_windows(p)).collect(),
            CalibrationScope::Server => vec![self.of_companies(); self.percentiles],
            CalibrationScope::Plan => vec![self.of_plans(); self.percentiles],
        };
        let unknown: Vec<_> = pool.iter().map(|blocks| self.margin(&[], blocks)).collect();
        let mut by_trace = Vec::new();
        for (trace, &windows) in self.windows.iter().enumerate() {
            let answer = |percentile: usize| {
                if windows == 0 {
                    return Err(self.too_few(0, scored(&pool[percentile])));
                }
                let own = match scope {
                    CalibrationScope::Workload => self.of_windows(trace, percentile),
                    // With servers as independent as traces, a window is as many blocks as it has servers.
                    CalibrationScope::Server => Vec::new(),
                    CalibrationScope::Plan => self.plan_windows(),
                };
                self.margin(&own, &pool[percentile])
            };
            by_trace.push((0..self.percentiles).map(answer).collect());
        }
        let kept = self.kept(&by_trace);
        Margins { by_trace, unknown, kept }
    }

    /// By the windows of one trace where there are enough, else by the pool.
    fn margin(&self, windows: &[Vec<f64>], pool: &[Vec<f64>]) -> MarginAnswer {
        for (basis, blocks) in [(MarginBasis::Windows, windows), (MarginBasis::Pool, pool)] {
            if let Ok(factor) = conformal_quantile(blocks, self.coverage) {
                return Ok(LatencyMargin { factor: factor.max(1.0), basis, blocks: scored(blocks) });
            }
        }
        Err(self.too_few(scored(windows), scored(pool)))
    }

    fn too_few(&self, windows: usize, pool: usize) -> TooFewWindows {
        let needed = needed_for_conformal(self.coverage);
        let too_few = |given| TooFew { given, needed };
        TooFewWindows { windows: too_few(windows), pool: too_few(pool) }
    }

    fn members(&self) -> impl Iterator<Item = (usize, &MemberScore)> {
        let members = self.trials.iter().flat_map(|trial| &trial.members);
        members.filter_map(|member| Some((member.window?, member)))
    }

    /// A block for each window of traces that depend on each other.
    fn of_trace_windows(&self, percentile: usize) -> Vec<Vec<f64>> {
        blocks(self.members().map(|(window, member)| ((member.block, window), member.scores[percentile])))
    }

    /// The exchangeable blocks of scores at the percentiles of the SLOs.
    pub(super) fn own_blocks(&self, scope: CalibrationScope) -> Vec<Vec<f64>> {
        match scope {
            CalibrationScope::Workload => {
                let own = |(window, member): (usize, &MemberScore)| {
                    ((member.block, window), member.scores[member.own])
                };
                blocks(self.members().map(own))
            }
            CalibrationScope::Server => self.of_companies(),
            CalibrationScope::Plan => self.plan_windows(),
        }
    }

    /// A block for each window of a trace.
    fn of_windows(&self, trace: usize, percentile: usize) -> Vec<Vec<f64>> {
        let own = self.members().filter(|(_, member)| member.trace == trace);
        blocks(own.map(|(window, member)| (window, member.scores[percentile])))
    }

    /// A block for each company of each window; as many as the round of the window with the fewest has.
    fn of_companies(&self) -> Vec<Vec<f64>> {
        let windows = self.fewest_windows();
        let mut by_round: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for trial in self.trials {
            let companies = by_round.entry((trial.window % windows, trial.round)).or_default();
            *companies = (*companies).max(trial.company + 1);
        }
        let mut fewest: BTreeMap<usize, usize> = BTreeMap::new();
        for ((window, _), companies) in by_round {
            let fewest = fewest.entry(window).or_insert(companies);
            *fewest = companies.min(*fewest);
        }
        let block = |trial: &TrialScores| {
            let window = trial.window % windows;
            (window, trial.company % fewest[&window])
        };
        blocks(self.trials.iter().map(|trial| (block(trial), largest(trial))))
    }

    /// One block: all rounds are of the same workloads.
    fn of_plans(&self) -> Vec<Vec<f64>> {
        blocks(self.plans().into_iter().map(|(_, score)| (0, score)))
    }

    /// A block for each window, with the largest scores of rounds.
    fn plan_windows(&self) -> Vec<Vec<f64>> {
        let fewest = self.fewest_windows();
        blocks(self.plans().into_iter().map(|(window, score)| (window % fewest, score)))
    }

    /// The window and the largest score of all companies, for each round, window and alignment.
    fn plans(&self) -> Vec<(usize, f64)> {
        let mut plans: BTreeMap<(usize, usize, usize), f64> = BTreeMap::new();
        for trial in self.trials {
            let plan = plans.entry((trial.round, trial.window, trial.alignment)).or_default();
            *plan = plan.max(largest(trial));
        }
        plans.into_iter().map(|((_, window, _), score)| (window, score)).collect()
    }

    /// How many windows the trace with the fewest has, of those that have some.
    fn fewest_windows(&self) -> usize {
        self.windows.iter().copied().filter(|windows| *windows > 0).min().unwrap_or(1)
    }

    /// How often these margins, and the guarantee, were kept in all trials.
    fn kept(&self, by_trace: &[Vec<MarginAnswer>]) -> KeptShares {
        let is_guaranteed = |member: &MemberScore| member.scores[member.own].is_finite();
        let is_kept = |member: &MemberScore| {
            let margin = by_trace[member.trace][member.own];
            let factor = margin.map_or(f64::INFINITY, |margin| margin.factor);
            is_guaranteed(member) && member.scores[member.own] <= factor
        };
        let [workloads, servers, plans] = self.shares(is_kept);
        let [guaranteed_workloads, guaranteed_servers, guaranteed_plans] = self.shares(is_guaranteed);
        KeptShares { workloads, servers, plans, guaranteed_workloads, guaranteed_servers, guaranteed_plans }
    }

    /// The shares of members, companies and plans that are kept in all trials.
    pub(super) fn shares(&self, is_kept: impl Fn(&MemberScore) -> bool) -> [f64; 3] {
        let mut workloads = Vec::new();
        let mut servers = Vec::new();
        let mut plans: BTreeMap<(usize, usize, usize), bool> = BTreeMap::new();
        for trial in self.trials {
            workloads.extend(trial.members.iter().map(&is_kept));
            let all_members = trial.members.iter().all(&is_kept);
            servers.push(all_members);
            *plans.entry((trial.round, trial.window, trial.alignment)).or_insert(true) &= all_members;
        }
        let plans: Vec<bool> = plans.into_values().collect();
        [share(&workloads), share(&servers), share(&plans)]
    }
}

/// How many blocks have scores.
pub(super) fn scored(blocks: &[Vec<f64>]) -> usize {
    blocks.iter().filter(|block| !block.is_empty()).count()
}

/// Scores by the number of their block.
fn blocks<K: Ord>(scores: impl Iterator<Item = (K, f64)>) -> Vec<Vec<f64>> {
    let mut blocks: BTreeMap<K, Vec<f64>> = BTreeMap::new();
    for (block, score) in scores {
        blocks.entry(block).or_default().push(score);
    }
    blocks.into_values().collect()
}

/// The largest score of a company, each member at the percentile of its SLO.
fn largest(trial: &TrialScores) -> f64 {
    let members = trial.members.iter().filter(|member| member.window.is_some());
    members.map(|member| member.scores[member.own]).fold(0.0, f64::max)
}

/// The part that is true; all of nothing.
fn share(kept: &[bool]) -> f64 {
    if kept.is_empty() {
        return 1.0;
    }
    kept.iter().filter(|kept| **kept).count() as f64 / kept.len() as f64
}
