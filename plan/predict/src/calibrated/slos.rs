//! Share of held-out windows that kept the SLOs of servers that were filled from the rest of the traces.
//!
//! The way to fill servers is what is tested, not a bound: a window may be far from what was predicted and still be within the
//! SLO. This is conformal risk control (Angelopoulos, Bates, Fisch, Lei and Schuster 2022) with the miss of an SLO as the loss:
//! among n exchangeable blocks and the next one, which counts as a miss, the share of misses is at most (misses + 1) ÷ (n + 1).
//! It assumes that the loss does not grow with the load that servers are filled by, which servers with fewer members make likely
//! and nothing proves.

use super::margins::{ScoredWindows, scored};
use super::scores::{MemberScore, WindowTrials};
use super::{CalibrationGoal, CalibrationTrace, TrialCompany};
use confidence::{conformal_coverage, needed_for_conformal};
use machine::parallel;
use units::Percentile;

/// Sums of shares may come out a little below.
const ROUNDING: f64 = 1e-9;

/// Workloads that share a server in a trial, and their SLOs.
#[derive(Debug, Clone)]
pub struct SloTrial {
    /// The workloads, and the window that is held out.
    pub company: TrialCompany,
    /// The longest latency that each SLO leaves for queueing, seconds.
    pub limits: Vec<f64>,
}

/// Result of trials of a way to fill servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SloCoverage {
    /// Share of blocks that kept the SLOs, where one block to come counts as a miss.
    pub coverage: f64,
    /// Number of exchangeable blocks.
    pub blocks: usize,
    /// Number of blocks that the coverage needs at least.
    pub needed: usize,
    /// Share of workloads, servers and plans that kept their SLOs in the held-out windows.
    pub kept: [f64; 3],
}

/// Load by which servers are filled for the next window, and the evidence.
#[derive(Debug, Clone, Copy)]
pub struct SloCalibration {
    /// Multiple of the work of the traces that has to fit; `None` if the worst case decides.
    pub load: Option<f64>,
    /// Result of the trials with this load.
    pub trials: SloCoverage,
    /// Result of the trials without more work; the same if that suffices.
    pub unloaded: SloCoverage,
}

impl SloCoverage {
    /// Returns true if the SLOs are kept in the next window as often as the goal says.
    pub fn suffices(&self, goal: &CalibrationGoal) -> bool {
        self.has_enough_blocks() && self.coverage >= goal.coverage - ROUNDING
    }

    /// Returns true if there are as many blocks as the coverage needs.
    pub fn has_enough_blocks(&self) -> bool {
        self.blocks >= self.needed
    }
}

/// Replays the held-out window of every trial. `go_on` is called before each trial; once it says no, trials are left out,
/// and the result is of no use.
///
/// # Panics
/// Unless the coverage is strictly between 0 and 1, and every member has a limit.
pub fn slo_coverage(
    goal: &CalibrationGoal,
    traces: &[CalibrationTrace<'_>],
    trials: &[SloTrial],
    go_on: &(dyn Fn() -> bool + Sync),
) -> SloCoverage {
    let companies: Vec<TrialCompany> = trials.iter().map(|trial| trial.company.clone()).collect();
    let mut percentiles: Vec<Percentile> = Vec::new();
    for (company, trial) in companies.iter().zip(trials) {
        assert_eq!(company.members.len(), trial.limits.len(), "one limit per member");
        for member in &company.members {
            if !percentiles.contains(&member.percentile) {
                percentiles.push(member.percentile);
            }
        }
    }
    let windowed = WindowTrials { traces, companies: &companies, percentiles: &percentiles, cut: goal.cut() };
    let numbers: Vec<usize> = (0..trials.len()).collect();
    let found = parallel::map(&numbers, |&number| {
        if go_on() { windowed.kept(number, &trials[number].limits) } else { Vec::new() }
    });
    let found: Vec<_> = found.into_iter().flatten().collect();
    let windows: Vec<usize> = traces.iter().map(|trace| goal.windows(trace.traffic)).collect();
    let scored_windows = ScoredWindows {
        trials: &found,
        windows: &windows,
        percentiles: percentiles.len(),
        coverage: goal.coverage,
    };
    let blocks = scored_windows.own_blocks(goal.scope);
    let is_kept = |member: &MemberScore| member.window.is_none() || member.scores[member.own] == 0.0;
    SloCoverage {
        coverage: conformal_coverage(&blocks, 0.0),
        blocks: scored(&blocks),
        needed: needed_for_conformal(goal.coverage),
        kept: scored_windows.shares(is_kept),
    }
}
