//! Priorities for one server by PriorityMeister (thesis §3.2.2), lowest first.
//!
//! The latency of a workload at a stage is taken to depend on *which* workloads are above it there, not on their order. So
//! a workload that can meet its SLO at the lowest place may have it: taking it away from the rest only helps them, and
//! if any order works, one with this workload last does, too (move it there; all that were below it gain).
//! Hence orders that are the same at all stages are found whenever there is one (Audsley's argument).
//!
//! Where no workload can be last at all stages, the one that would miss its SLO by least becomes last at the one
//! stage where its latency is smallest, and may be higher at the others ([`PriorityRule::SmallestLatency`]). This is a
//! heuristic: on small hard instances it misses about a third of what orders per stage could do. Another
//! rule looks ahead ([`PriorityRule::MostRoom`]): of all (workload, stage) it takes the one that would leave most of its
//! SLO if the workload were last there and first wherever it is still open. [`prioritise`] asks for the second
//! when the first fails. Both are polynomial: every round of at most 4n questions places a workload at a stage
//! at least, so there are at most 3n rounds.
//!
//! When the answer does not meet every SLO, it says by how much each is missed. Ties go to the workload, then
//! the stage, that comes first.

use model::{PerStage, Stage};

/// Latencies as the search asks for them.
pub trait LatencyOracle {
    /// The latency of a workload at each stage, seconds, when the workloads `above[stage]` have higher priorities there;
    /// infinite on overload. Each list is ascending and does not contain `workload` itself.
    fn latency(&mut self, workload: usize, above: &PerStage<Vec<usize>>) -> PerStage<f64>;
}

impl<F: FnMut(usize, &PerStage<Vec<usize>>) -> PerStage<f64>> LatencyOracle for F {
    fn latency(&mut self, workload: usize, above: &PerStage<Vec<usize>>) -> PerStage<f64> {
        self(workload, above)
    }
}

/// An order at every stage, and what it achieves.
#[derive(Debug, Clone, PartialEq)]
pub struct Prioritisation {
    /// The priority of each workload at each stage; 0 is served first. No two workloads share a priority at a stage.
    pub priorities: Vec<PerStage<u32>>,
    /// The latency of each workload over all stages, seconds.
    pub latencies: Vec<f64>,
    /// The workload that misses its SLO by most and by how many seconds (infinite on overload); `None` when
    /// all are met.
    pub missed: Option<(usize, f64)>,
    /// The number of questions that the oracle was asked.
    pub questions: usize,
}

/// Which workload becomes last at which stage, where none can be last at all stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PriorityRule {
    /// The workload with the smallest violation, where its latency is smallest: the thesis.
    SmallestLatency,
    /// The workload and stage that could still leave most of the workload's SLO.
    MostRoom,
}

/// A search in progress: which workloads still have no place, and the places that are given.
struct PrioritySearch<'a, O> {
    oracle: &'a mut O,
    slos: &'a [f64],
    /// The workloads without a place at each stage, ascending.
    open: PerStage<Vec<usize>>,
    priorities: Vec<PerStage<u32>>,
    /// The other workloads that had no place when each workload took its own, by workload and stage.
    above: Vec<PerStage<Vec<usize>>>,
    questions: usize,
}

/// Gives priorities to workloads with these SLOs (seconds), from the lowest priority up, by the better of both rules.
pub fn prioritise(slos: &[f64], oracle: &mut impl LatencyOracle) -> Prioritisation {
    let first = prioritise_by(PriorityRule::SmallestLatency, slos, oracle);
    let Some((_, missed)) = first.missed else { return first };
    let second = prioritise_by(PriorityRule::MostRoom, slos, oracle);
    let questions = first.questions + second.questions;
    let better = second.missed.is_none_or(|(_, other)| other < missed);
    Prioritisation { questions, ..if better { second } else { first } }
}

/// Does the same as [`prioritise`] by one rule alone.
pub(crate) fn prioritise_by(
    rule: PriorityRule,
    slos: &[f64],
    oracle: &mut impl LatencyOracle,
) -> Prioritisation {
    let mut search = PrioritySearch::new(slos, oracle);
    while search.place_next(rule).is_some() {}
    search.finish()
}

/// Returns true if [`prioritise`] meets every SLO. Asks fewer questions if it does not: the search ends with
/// the first workload that misses its SLO even if it is first wherever it is still open.
pub(crate) fn meets_all(slos: &[f64], oracle: &mut impl LatencyOracle) -> bool {
    [PriorityRule::SmallestLatency, PriorityRule::MostRoom].into_iter().any(|rule| {
        let mut search = PrioritySearch::new(slos, oracle);
        while let Some(workload) = search.place_next(rule) {
            if search.is_lost(workload) {
                return false;
            }
        }
        search.finish().missed.is_none()
    })
}

/// The sum over the stages, rounded up.
fn total(latency: &PerStage<f64>) -> f64 {
    calculus::round_up(latency.iter().map(|(_, latency)| latency).sum())
}

impl<'a, O: LatencyOracle> PrioritySearch<'a, O> {
    fn new(slos: &'a [f64], oracle: &'a mut O) -> Self {
        let all: Vec<usize> = (0..slos.len()).collect();
        Self {
            oracle,
            slos,
            open: PerStage::from_fn(|_| all.clone()),
            priorities: vec![PerStage::default(); slos.len()],
            above: vec![PerStage::from_fn(|_| Vec::new()); slos.len()],
            questions: 0,
        }
    }

    /// Makes a workload the last at a stage at least, and gives it; `None` when no workload is open.
    fn place_next(&mut self, rule: PriorityRule) -> Option<usize> {
        let (workload, latency) = self.least_violation()?;
        if total(&latency) <= self.slos[workload] {
            Stage::ALL.into_iter().for_each(|stage| self.place(workload, stage));
            return Some(workload);
        }
        let (workload, stage) = match rule {
            PriorityRule::SmallestLatency => (workload, self.stage_of_smallest_latency(workload, &latency)),
            PriorityRule::MostRoom => self.most_room(),
        };
        self.place(workload, stage);
        Some(workload)
    }

    /// Returns true if a workload misses its SLO even if it is first wherever it is open.
    fn is_lost(&mut self, workload: usize) -> bool {
        let above = PerStage::from_fn(|stage| {
            let is_open = self.open[stage].contains(&workload);
            if is_open { Vec::new() } else { self.above(workload, stage) }
        });
        self.questions += 1;
        violation(total(&self.oracle.latency(workload, &above)), self.slos[workload]) > 0.0
    }

    /// The open workload that misses its SLO by least (or meets it best) when last wherever it is open;
    /// the first one that meets it is good enough. `None` when no workload is open.
    fn least_violation(&mut self) -> Option<(usize, PerStage<f64>)> {
        let mut least: Option<(usize, PerStage<f64>, f64)> = None;
        for workload in 0..self.slos.len() {
            if !Stage::ALL.iter().any(|&stage| self.open[stage].contains(&workload)) {
                continue;
            }
            let latency = self.ask(workload);
            let violation = violation(total(&latency), self.slos[workload]);
            if least.as_ref().is_none_or(|(_, _, best)| violation < *best) {
                least = Some((workload, latency, violation));
            }
            if violation <= 0.0 {
                break;
            }
        }
        least.map(|(workload, latency, _)| (workload, latency))
    }

    /// The latency of a workload if it were last wherever it is open.
    fn ask(&mut self, workload: usize) -> PerStage<f64> {
        let above = PerStage::from_fn(|stage| self.above(workload, stage));
        self.questions += 1;
        self.oracle.latency(workload, &above)
    }

    /// All other workloads that are open, or were when it took its place.
    fn above(&self, workload: usize, stage: Stage) -> Vec<usize> {
        if self.open[stage].contains(&workload) {
            self.open[stage].iter().copied().filter(|&w| w != workload).collect()
        } else {
            self.above[workload][stage].clone()
        }
    }

    /// The stage where it is open and its latency is smallest.
    fn stage_of_smallest_latency(&self, workload: usize, latency: &PerStage<f64>) -> Stage {
        let open = Stage::ALL.into_iter().filter(|&stage| self.open[stage].contains(&workload));
        open.min_by(|&a, &b| latency[a].total_cmp(&latency[b])).expect("it is open somewhere")
    }

    /// The open workload and stage with the smallest violation if it were first at its other open stages.
    fn most_room(&mut self) -> (usize, Stage) {
        let mut best: Option<(f64, usize, Stage)> = None;
        for stage in Stage::ALL {
            for workload in self.open[stage].clone() {
                let above = PerStage::from_fn(|other| {
                    let free = other != stage && self.open[other].contains(&workload);
                    if free { Vec::new() } else { self.above(workload, other) }
                });
                self.questions += 1;
                let latency = total(&self.oracle.latency(workload, &above));
                let violation = violation(latency, self.slos[workload]);
                if best.is_none_or(|(least, ..)| violation < least) {
                    best = Some((violation, workload, stage));
                }
            }
        }
        let (_, workload, stage) = best.expect("a workload is open somewhere");
        (workload, stage)
    }

    /// Makes the workload the last of those that are open at a stage. Does nothing where it has a place.
    fn place(&mut self, workload: usize, stage: Stage) {
        let above = self.above(workload, stage);
        if let Ok(position) = self.open[stage].binary_search(&workload) {
            self.open[stage].remove(position);
            self.priorities[workload][stage] = u32::try_from(above.len()).expect("below 2^32 workloads");
            self.above[workload][stage] = above;
        }
    }

    fn finish(mut self) -> Prioritisation {
        let latencies: Vec<f64> = (0..self.slos.len()).map(|w| total(&self.ask(w))).collect();
        let missed = latencies
            .iter()
            .zip(self.slos)
            .map(|(&latency, &slo)| violation(latency, slo))
            .enumerate()
            .filter(|(_, violation)| *violation > 0.0)
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        Prioritisation { priorities: self.priorities, latencies, missed, questions: self.questions }
    }
}

/// Returns the excess of a latency over the SLO, seconds; NaN counts as infinite.
fn violation(latency: f64, slo: f64) -> f64 {
    if latency.is_nan() { f64::INFINITY } else { latency - slo }
}

#[cfg(test)]
mod tests;
