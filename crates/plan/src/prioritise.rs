//! Priorities for one server by PriorityMeister (thesis §3.2.2), lowest first.
//!
//! The latency of a workload at a stage is taken to depend on *who* is above it there, not on their order. So
//! whoever can meet its SLO at the lowest place may have it: taking it away from the rest only helps them, and
//! if any order works, one with this workload last does, too (move it there; everybody who was below it gains).
//! Hence orders that are the same at all stages are found whenever there is one (Audsley's argument).
//!
//! Where nobody can be last at all stages, the workload that would miss its SLO by least becomes last at the one
//! stage where its latency is smallest, and may stand higher at the others ([`Rule::SmallestLatency`]). This is a
//! heuristic: on small hard instances it misses about a third of what orders per stage could do. Another
//! rule looks ahead ([`Rule::MostRoom`]): of all (workload, stage) it takes the one that would leave most of its
//! SLO if the workload were last there and first wherever it is still open. [`prioritise`] asks for the second
//! when the first fails. Both are polynomial: every round of at most 4n questions places a workload at a stage
//! at least, so there are at most 3n rounds.
//!
//! When the answer does not meet every SLO, it says by how much each is missed. Ties go to the workload, then
//! the stage, that comes first.

use model::{PerStage, Stage};

/// The latency of a workload at each stage, seconds, when these others are above it there.
pub trait LatencyOracle {
    /// `above[stage]` lists workloads in ascending order, without `workload` itself. Infinite on overload.
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
    /// By workload; 0 is served first. No two workloads share a priority at a stage.
    pub priorities: Vec<PerStage<u32>>,
    /// By workload, over all stages, seconds.
    pub latencies: Vec<f64>,
    /// The workload that misses its SLO by most and by how many seconds (infinite on overload); `None` when
    /// all are met.
    pub missed: Option<(usize, f64)>,
    /// Questions that the oracle was asked.
    pub questions: usize,
}

/// What becomes last where nobody can be last at all stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The workload with the smallest violation, where its latency is smallest: the thesis.
    SmallestLatency,
    /// The workload and stage that could still leave most of the workload's SLO.
    MostRoom,
}

/// Who still has no place, and the places given.
struct Search<'a, O> {
    oracle: &'a mut O,
    slos: &'a [f64],
    /// By stage, ascending.
    open: PerStage<Vec<usize>>,
    priorities: Vec<PerStage<u32>>,
    /// By stage and workload: who was open when it took its place, without itself.
    above: Vec<PerStage<Vec<usize>>>,
    questions: usize,
}

/// Places workloads with these SLOs (seconds) from the lowest priority up; by the better of both rules.
pub fn prioritise(slos: &[f64], oracle: &mut impl LatencyOracle) -> Prioritisation {
    let first = prioritise_by(Rule::SmallestLatency, slos, oracle);
    let Some((_, missed)) = first.missed else { return first };
    let second = prioritise_by(Rule::MostRoom, slos, oracle);
    let questions = first.questions + second.questions;
    let better = second.missed.is_none_or(|(_, other)| other < missed);
    Prioritisation { questions, ..if better { second } else { first } }
}

/// As [`prioritise`], by one rule.
pub fn prioritise_by(rule: Rule, slos: &[f64], oracle: &mut impl LatencyOracle) -> Prioritisation {
    let everybody: Vec<usize> = (0..slos.len()).collect();
    let mut search = Search {
        oracle,
        slos,
        open: PerStage::from_fn(|_| everybody.clone()),
        priorities: vec![PerStage::default(); slos.len()],
        above: vec![PerStage::from_fn(|_| Vec::new()); slos.len()],
        questions: 0,
    };
    while let Some((workload, latency)) = search.least_violation() {
        if total(&latency) <= slos[workload] {
            Stage::ALL.into_iter().for_each(|stage| search.place(workload, stage));
        } else {
            let (workload, stage) = match rule {
                Rule::SmallestLatency => (workload, search.easiest(workload, &latency)),
                Rule::MostRoom => search.most_room(),
            };
            search.place(workload, stage);
        }
    }
    search.finish()
}

fn total(latency: &PerStage<f64>) -> f64 {
    calculus::round_up(latency.iter().map(|(_, latency)| latency).sum())
}

impl<O: LatencyOracle> Search<'_, O> {
    /// The open workload that misses its SLO by least (or meets it best) when last wherever it is open;
    /// the first one that meets it is good enough.
    fn least_violation(&mut self) -> Option<(usize, PerStage<f64>)> {
        let is_open = |w: &usize| Stage::ALL.iter().any(|&stage| self.open[stage].contains(w));
        let open: Vec<usize> = (0..self.slos.len()).filter(is_open).collect();
        let mut least: Option<(usize, PerStage<f64>, f64)> = None;
        for workload in open {
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

    fn ask(&mut self, workload: usize) -> PerStage<f64> {
        let above = PerStage::from_fn(|stage| self.above(workload, stage));
        self.questions += 1;
        self.oracle.latency(workload, &above)
    }

    /// All that are open beside it, or were when it took its place.
    fn above(&self, workload: usize, stage: Stage) -> Vec<usize> {
        if self.open[stage].contains(&workload) {
            self.open[stage].iter().copied().filter(|&w| w != workload).collect()
        } else {
            self.above[workload][stage].clone()
        }
    }

    /// Where it is open and its latency is smallest.
    fn easiest(&self, workload: usize, latency: &PerStage<f64>) -> Stage {
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
        let (_, workload, stage) = best.expect("somebody is open somewhere");
        (workload, stage)
    }

    /// Last of those that are open there; nothing where it has a place.
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

/// Seconds above the SLO; what is not a number counts as infinite.
fn violation(latency: f64, slo: f64) -> f64 {
    if latency.is_nan() { f64::INFINITY } else { latency - slo }
}

#[cfg(test)]
mod tests;
