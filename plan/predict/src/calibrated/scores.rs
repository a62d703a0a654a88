//! How far replays fell short of windows that they did not know, in company.
//!
//! One *trial* holds one window of each member of a company out, replays the rest as [`crate::Replayed`] does, and then
//! replays the windows together. The *score* of a member is the percentile that it saw in its window ÷ what the replays of the
//! rest predicted for the same percentile. Each alignment of the windows gives a score. It is infinite where the member saw
//! more than the worst case by the burst curves of the rest, which caps bounds: no margin would have covered it.

use super::windows::WindowCut;
use crate::WorstCase;
use machine::parallel;
use model::{CircularTrace, Job, LatencyModel as _, PerStage, ServerMember};
use sim::{Alignment, Latencies, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use units::{Nanos, Percentile};

/// Alignments of the rest that predict: the largest of their percentiles does. Fewer than a forecast replays, so that the
/// prediction falls short a little more often.
const PREDICTING: usize = 19;
/// Alignments of the windows.
const SEEN: usize = 5;
/// The seed of the alignments of the windows, which differ from those that predict.
const SEEN_SEED: u64 = 3;
const PREDICTING_SEED: u64 = 1;

/// A trace whose windows are held out.
#[derive(Debug, Clone, Copy)]
pub struct CalibrationTrace<'a> {
    /// The jobs of its requests.
    pub traffic: &'a CircularTrace<Job>,
    /// Traces that depend on each other have the same number; different blocks are exchangeable.
    pub block: usize,
}

/// A workload in a company.
#[derive(Debug, Clone, Copy)]
pub struct CompanyMember {
    /// The number of its trace.
    pub trace: usize,
    /// Priority at each stage; 0 is served first.
    pub priority: PerStage<u32>,
    /// Members of a group burst together.
    pub group: usize,
    /// The percentile of its SLO.
    pub percentile: Percentile,
}

/// Workloads that share a server in a trial.
#[derive(Debug, Clone)]
pub struct TrialCompany {
    /// Companies of one round have no workload in common.
    pub round: usize,
    /// The number of the window that is held out of each trace, round again for those that have fewer.
    pub window: usize,
    /// Who shares the server.
    pub members: Vec<CompanyMember>,
}

/// What a trial found.
#[derive(Debug, Clone)]
pub(super) struct TrialScores {
    pub(super) round: usize,
    /// The number of the company within its round.
    pub(super) company: usize,
    /// The number of the windows that were held out.
    pub(super) window: usize,
    /// The number of the alignment of the windows.
    pub(super) alignment: usize,
    pub(super) members: Vec<MemberScore>,
}

/// What a member of a company saw ÷ what was predicted.
#[derive(Debug, Clone)]
pub(super) struct MemberScore {
    pub(super) trace: usize,
    pub(super) block: usize,
    /// The number of the window in its trace; `None` for a trace that is too short to have windows.
    pub(super) window: Option<usize>,
    /// For each of the percentiles that are calibrated.
    pub(super) scores: Vec<f64>,
    /// Which of these percentiles is that of the SLO.
    pub(super) own: usize,
}

/// What is held out of which traces, in which companies.
pub(super) struct WindowTrials<'a> {
    pub(super) traces: &'a [CalibrationTrace<'a>],
    pub(super) companies: &'a [TrialCompany],
    pub(super) percentiles: &'a [Percentile],
    pub(super) cut: WindowCut,
}

impl WindowTrials<'_> {
    /// The scores of all trials; those are left out before which `go_on` says no.
    pub(super) fn run(&self, go_on: &(dyn Fn() -> bool + Sync)) -> Vec<TrialScores> {
        let numbers: Vec<usize> = (0..self.companies.len()).collect();
        let scores =
            parallel::map(&numbers, |&company| if go_on() { self.trial(company) } else { Vec::new() });
        scores.into_iter().flatten().collect()
    }

    /// What one trial found, by alignment; nothing where the rest has no steady state: nobody would be promised anything then.
    fn trial(&self, company: usize) -> Vec<TrialScores> {
        let TrialCompany { members, window, .. } = &self.companies[company];
        let mut rests = Vec::new();
        let mut windows = Vec::new();
        for member in members {
            let traffic = self.traces[member.trace].traffic;
            rests.push(replayable(self.cut.rest(traffic, *window)));
            windows.push(replayable(self.cut.window(traffic, *window)));
        }
        let Some(predicted) = self.percentiles_of(members, &rests, PREDICTING_SEED, PREDICTING) else {
            return Vec::new();
        };
        let predicted = largest(&predicted);
        let seen = self.percentiles_of(members, &windows, SEEN_SEED, SEEN);
        // The worst case of the rests is no less than their replays: what is within these is within it.
        let exceeds_replays = seen.iter().flatten().any(|alignment| exceeds(alignment, &predicted));
        let guarantees = if exceeds_replays {
            self.guarantees(members, *window)
        } else {
            vec![f64::INFINITY; members.len()]
        };
        let mut found = Vec::new();
        for alignment in 0..SEEN {
            let mut scores = Vec::new();
            for (number, member) in members.iter().enumerate() {
                let overloaded = vec![f64::INFINITY; self.percentiles.len()];
                let seen = seen.as_ref().map_or(&overloaded, |seen| &seen[alignment][number]);
                let ratios = seen.iter().zip(&predicted[number]).map(|(&seen, &predicted)| {
                    if seen > guarantees[number] { f64::INFINITY } else { score(seen, predicted) }
                });
                scores.push(self.member_score(member, *window, ratios.collect()));
            }
            found.push(self.scores_of(company, alignment, scores));
        }
        found
    }

    /// Scores of the members of a company in their windows, by alignment: 0 if the limit is kept, infinite otherwise.
    pub(super) fn kept(&self, company: usize, limits: &[f64]) -> Vec<TrialScores> {
        let TrialCompany { members, window, .. } = &self.companies[company];
        let part = |member: &CompanyMember| self.cut.window(self.traces[member.trace].traffic, *window);
        let windows: Vec<_> = members.iter().map(|member| replayable(part(member))).collect();
        let seen = self.percentiles_of(members, &windows, SEEN_SEED, SEEN);
        let mut found = Vec::new();
        for alignment in 0..SEEN {
            let mut scores = Vec::new();
            for (number, member) in members.iter().enumerate() {
                let overloaded = vec![f64::INFINITY; self.percentiles.len()];
                let seen = seen.as_ref().map_or(&overloaded, |seen| &seen[alignment][number]);
                let kept = seen.iter().map(|seen| if *seen <= limits[number] { 0.0 } else { f64::INFINITY });
                scores.push(self.member_score(member, *window, kept.collect()));
            }
            found.push(self.scores_of(company, alignment, scores));
        }
        found
    }

    /// The worst case of each member by the burst curves of the rests, seconds; infinite where there is none.
    fn guarantees(&self, members: &[CompanyMember], window: usize) -> Vec<f64> {
        let model = WorstCase::default();
        let rest = |member: &CompanyMember| self.cut.rest(self.traces[member.trace].traffic, window);
        let sketches: Vec<_> = members.iter().map(|member| Some(model.sketch(&rest(member)?))).collect();
        let mut sketched = Vec::new();
        for (member, sketch) in members.iter().zip(&sketches) {
            let CompanyMember { priority, group, percentile, .. } = *member;
            sketched.extend(sketch.as_ref().map(|sketch| ServerMember {
                sketch,
                priority,
                group,
                percentile,
            }));
        }
        let mut bounds = model.predict(&sketched).into_iter();
        let of_sketch = |sketch: &Option<_>| match sketch {
            Some(_) => {
                let bound = bounds.next().expect("one bound per sketch");
                bound.map_or(f64::INFINITY, |prediction| prediction.bound)
            }
            // Nothing is guaranteed of traffic that the rest does not have.
            None => 0.0,
        };
        sketches.iter().map(of_sketch).collect()
    }

    fn scores_of(&self, company: usize, alignment: usize, members: Vec<MemberScore>) -> TrialScores {
        let TrialCompany { round, window, .. } = self.companies[company];
        let earlier = self.companies[..company].iter().filter(|other| other.round == round).count();
        TrialScores { round, company: earlier, window, alignment, members }
    }

    fn member_score(&self, member: &CompanyMember, window: usize, scores: Vec<f64>) -> MemberScore {
        let count = self.cut.count(self.traces[member.trace].traffic);
        let own = self.percentiles.iter().position(|percentile| *percentile == member.percentile);
        MemberScore {
            trace: member.trace,
            block: self.traces[member.trace].block,
            window: (count > 0).then(|| window % count),
            scores,
            own: own.expect("the percentiles of all members are calibrated"),
        }
    }

    /// Each percentile of each member in each alignment, seconds; 0 for a member without requests. `None` when the members have
    /// no steady state.
    fn percentiles_of(
        &self,
        members: &[CompanyMember],
        traces: &[Option<ReplayTrace>],
        seed: u64,
        alignments: usize,
    ) -> Option<Vec<Vec<Vec<f64>>>> {
        let present: Vec<usize> = (0..members.len()).filter(|&number| traces[number].is_some()).collect();
        let mut streams = Vec::new();
        for &number in &present {
            let CompanyMember { priority, group, .. } = members[number];
            streams.push(ReplayStream { trace: traces[number].as_ref()?, priority, group });
        }
        let none = vec![vec![0.0; self.percentiles.len()]; members.len()];
        if streams.is_empty() {
            return Some(vec![none; alignments]);
        }
        let system = ReplaySystem::new(streams).ok()?;
        let mut replay = Replay::new(&system, PreemptionMode::Preemptive);
        let mut found = Vec::new();
        for alignment in Alignment::random(seed, alignments) {
            let mut latencies = Latencies::new(present.len());
            replay.run(&alignment.shifts(&system), &mut latencies);
            let mut values = none.clone();
            for (&number, latencies) in present.iter().zip(&mut latencies.streams) {
                values[number] =
                    self.percentiles.iter().map(|&wanted| seconds_at(latencies, wanted)).collect();
            }
            found.push(values);
        }
        Some(found)
    }
}

/// A part of a trace, ready to be replayed.
fn replayable(part: Option<CircularTrace<Job>>) -> Option<ReplayTrace> {
    part.and_then(|part| ReplayTrace::new(part).ok())
}

/// A percentile of latencies, seconds; 0 without latencies.
fn seconds_at(latencies: &mut [Nanos], percentile: Percentile) -> f64 {
    if latencies.is_empty() {
        return 0.0;
    }
    let rank = sim::nearest_rank(percentile, latencies.len());
    latencies.select_nth_unstable(rank - 1).1.as_secs()
}

/// The largest value of each member and percentile over all alignments.
fn largest(alignments: &[Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
    let mut largest = alignments[0].clone();
    for values in &alignments[1..] {
        for (largest, values) in largest.iter_mut().flatten().zip(values.iter().flatten()) {
            *largest = largest.max(*values);
        }
    }
    largest
}

/// Whether some value of some member is above what was predicted.
fn exceeds(seen: &[Vec<f64>], predicted: &[Vec<f64>]) -> bool {
    seen.iter().flatten().zip(predicted.iter().flatten()).any(|(seen, predicted)| seen > predicted)
}

/// What was seen ÷ what was predicted; nothing seen is never too much, and something where nothing was predicted always is.
fn score(seen: f64, predicted: f64) -> f64 {
    if seen == 0.0 { 0.0 } else { seen / predicted }
}
