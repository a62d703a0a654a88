//! Latencies that a share of a workload's requests does not exceed when groups of workloads are independent.
//!
//! # What is promised
//! Every workload repeats its trace for ever. Independent groups stand at independent, uniformly distributed
//! places of their traces; members of one group may be aligned in any way. The bound at percentile q is a latency
//! that at least the share q of a workload's *requests* (not of time: a burst holds many requests in little
//! time) does not exceed in the long run. No law is fitted, so nothing is promised for traffic that is unlike
//! the trace; `safety` is a factor on all work for that.
//!
//! # Why it holds
//! 1. *One queue.* A request of priority p arrives at t. Fix the jobs that can delay it: all of priorities before p,
//!    and those of p that are ahead of it. Suppose it is not done at t + d, and at the last stage that it
//!    reached let s₃ be the start of the busy period with such jobs that holds t + d. Whoever begins that period
//!    leaves the stage before at s₃; let s₂ begin the busy period there that holds the moment before s₃, and s₁
//!    likewise. A tagged request that waits at a stage keeps it busy, so s₁ ≤ t. Through [s₁, t + d] one of
//!    the stages worked on such jobs all the time, on the first until s₂, on the second until s₃, and a job
//!    that it worked on arrived after s₁. A job that leaves the first stage before s₂ leaves the second one before
//!    s₂, too, because that is empty then; so a job is worked on in one of the three intervals only, for at most
//!    `max w` in all, unless it is partly served at s₂ or s₃ or is the one that begins the next period. Within
//!    a priority service is in order, so there is at most one of these for each priority and turning point, and
//!    it adds `min(w₁, w₂)`, `min(w₂, w₃)`, or `w₁ + w₂ + w₃ − max w` if it straddles both. So t + d − s₁ is at most
//!    the work `max w` of the jobs since s₁ plus, for each stream, the allowance of
//!    [`workload::windows`]. (That `min(w₁, w₂) + min(w₂, w₃)` suffices is not true: a job with works 5, 1, 5
//!    alone takes 11.)
//! 2. *Own and others.* With u = t − s₁: own(u) + same(u) + higher(u + d) ≥ u + d. For any share c of the queue,
//!    own(u) ≤ X + c·u, where X is what the request finds of its own stream at service rate c; its law over
//!    requests is exact. What is left is an event of the others alone, who are independent of the request:
//!    same(u) + higher(u + d) ≥ (1 − c)·u + d − X for some u. [`calculus::tail`] bounds its probability for each
//!    value of X; the best of several c counts.
//! 3. *Its own group* may burst whenever it does: others of the group count with the most work that they
//!    ever ask for in a window.
//!
//! 4. *No alignment at all* exceeds the worst case of the same circular traces ([`crate::WorstCase`]); the smaller
//!    of the two counts, for few members or high percentiles often that one.
//!
//! # Conditions
//! Where the following does not hold, only the worst case counts. Priorities order a member and each other
//! member alike at all stages. Requests without work at a stage pass it at once and may overtake others of their
//! priority: where members of a priority differ in that, they count as if they came before each other; a
//! workload's requests all pass a stage or none does.
//!
//! # Looseness
//! A union over time scales counts a burst at every scale at which it shows. That costs more the lower the
//! percentile and the more members there are. Directions of a link that do not compete count as one queue.

mod derivation;
mod field;
mod queue;
mod sketch;

pub use derivation::{Derivation as ProbabilisticDerivation, Lateness, Term as ProbabilisticTerm};
use model::{CircularTrace, Job, LatencyModel, Prediction, ServerMember, UndefinedLatency};
pub use queue::Refusal as ProbabilisticRefusal;
pub use sketch::Sketch as ProbabilisticSketch;
use sketch::Sketch;

use crate::{WorstCase, WorstCaseSketch};
use calculus::tail::{TailGrid, TailMethod};
use field::{Field, Groups};
use sketch::{FIRST_SHARE, SHARES};
use std::cell::Cell;

/// Latencies per octave among which the bound is found.
const STEPS_PER_OCTAVE: i32 = 32;
/// Steps of the ladders, from coarse to fine, in rungs; each divides the one before it.
const LADDERS: [i32; 3] = [16, 4, 1];
/// Octaves of latency, of seconds.
const OCTAVES: (i32, i32) = (-20, 10);
/// Of a probability; more than sums of it are off, less than any percentile asks for.
const ROUNDING: f64 = 1e-12;

/// The model.
#[derive(Debug, Clone)]
pub struct Probabilistic {
    grid: TailGrid,
    safety: f64,
}

impl Default for Probabilistic {
    fn default() -> Self {
        Self::with_safety(1.0)
    }
}

impl Probabilistic {
    /// With a factor on all work of all traffic, for traffic that is worse than the trace.
    ///
    /// # Panics
    /// Unless the factor is finite and at least 1.
    pub fn with_safety(safety: f64) -> Self {
        assert!(safety.is_finite() && safety >= 1.0, "a factor of at least 1");
        let points = |from: i32, to: i32, per: i32| {
            (from * per..=to * per).map(|i| (f64::from(i) / f64::from(per)).exp2()).collect()
        };
        // Windows from a microsecond to an hour, exponents from 1/32 s to 1/(0.5 µs).
        Self { grid: TailGrid::new(points(-20, 12, 4), points(-5, 21, 2)), safety }
    }

    /// The least latency that is shown to hold, with what shows it.
    fn bound<'a>(
        &'a self,
        members: &[ServerMember<'a, Sketch>],
        tagged: usize,
        groups: &mut Groups,
    ) -> Result<Shown<'a>, UndefinedLatency> {
        let own = &members[tagged];
        let field = Field::new(&self.grid, members, tagged, false, groups)?;
        if !own.sketch.keeps_order() {
            return Err(UndefinedLatency::NoBound);
        }
        let allowed = 1.0 - own.percentile.fraction();
        let best = Cell::new(FIRST_SHARE);
        let fits = |latency| {
            let tails = field.tails(latency, TailMethod::Convolution);
            let found = share_within(own.sketch, latency, allowed + ROUNDING, best.get(), |share, room| {
                tails.exceedance(1.0 - SHARES[share], room)
            });
            best.set(found.unwrap_or(best.get()));
            found.is_some()
        };
        let latency = least_latency(own.sketch.own_quantile(allowed + ROUNDING), fits)
            .ok_or(UndefinedLatency::NoBound)?;
        // The last success of the search is this latency's.
        Ok(Shown { latency, share: best.get(), field })
    }
}

/// What no alignment exceeds, seconds.
fn worst_case(members: &[ServerMember<'_, Sketch>]) -> Vec<Result<f64, UndefinedLatency>> {
    fn at_worst<'a>(member: &ServerMember<'a, Sketch>) -> ServerMember<'a, WorstCaseSketch> {
        let ServerMember { sketch, priority, group, percentile } = *member;
        ServerMember { sketch: &sketch.worst, priority, group, percentile }
    }
    let members: Vec<_> = members.iter().map(at_worst).collect();
    WorstCase::default().predict(&members).into_iter().map(|p| p.map(|p| p.bound)).collect()
}

/// A latency that holds.
struct Shown<'a> {
    /// Seconds.
    latency: f64,
    /// Index of the share that the request's own stream gets.
    share: usize,
    field: Field<'a>,
}

impl LatencyModel for Probabilistic {
    type Sketch = Sketch;

    fn name(&self) -> &'static str {
        "probabilistic"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> Sketch {
        Sketch::new(&self.grid, self.safety, traffic)
    }

    fn all_within(&self, members: &[ServerMember<'_, Sketch>], limits: &[f64]) -> bool {
        self.accepts(members, limits).is_ok()
    }

    fn predict(&self, members: &[ServerMember<'_, Sketch>]) -> Vec<Result<Prediction, UndefinedLatency>> {
        let mut groups = Groups::new();
        let worst = worst_case(members);
        let mut bound = |tagged: usize| match (self.bound(members, tagged, &mut groups), worst[tagged]) {
            (Ok(shown), Ok(worst)) => Ok(shown.latency.min(worst)),
            (Ok(shown), Err(_)) => Ok(shown.latency),
            (Err(_), Ok(worst)) => Ok(worst),
            (Err(why), Err(_)) => Err(why),
        };
        let prediction = |bound| Prediction { bound, estimate: None };
        (0..members.len()).map(|tagged| bound(tagged).map(prediction)).collect()
    }
}

/// Whether P(latency > d) ≤ `allowed`, where `exceedance(share, room)` bounds what the others do. Begins with
/// the share number `first`; gives the one that shows it.
fn share_within(
    own: &Sketch,
    latency: f64,
    allowed: f64,
    first: usize,
    mut exceedance: impl FnMut(usize, f64) -> f64,
) -> Option<usize> {
    let mut shows = |share: usize| {
        let Some(law) = &own.own[share] else { return false };
        let mut sum = 0.0;
        // The worst first: what is certain to be late decides early.
        law.iter().rev().all(|atom| {
            let room = latency - atom.work;
            sum += atom.probability * if room < 0.0 { 1.0 } else { exceedance(share, room) };
            sum <= allowed
        })
    };
    (first..SHARES.len()).chain((0..first).rev()).find(|share| shows(*share))
}

/// The first latency from `from` on that fits, in seconds: the first on a coarse ladder, then the first on a
/// finer one below it, and again. Going up, and not by bisection, because the bound of a probability need
/// not fall with the latency; so whoever asks for less never gets more.
fn least_latency(from: f64, fits: impl Fn(f64) -> bool) -> Option<f64> {
    let at = |rung: i32| (f64::from(rung) / f64::from(STEPS_PER_OCTAVE)).exp2();
    let last = OCTAVES.1 * STEPS_PER_OCTAVE;
    let mut first = rung_above(from);
    let mut found = None;
    for step in LADDERS {
        // Multiples of the step, whatever `from` is.
        let begin = first.div_euclid(step) * step;
        let end = found.unwrap_or(last);
        let rung = (begin..=end)
            .step_by(step as usize)
            .filter(|rung| *rung >= first)
            .find(|rung| found == Some(*rung) || fits(at(*rung)))?;
        found = Some(rung);
        first = first.max(rung - step + 1);
    }
    found.map(at)
}

/// The first rung at or above a latency in seconds.
fn rung_above(latency: f64) -> i32 {
    let rung = (latency.max(0.0).log2() * f64::from(STEPS_PER_OCTAVE) - 1e-9).ceil();
    #[allow(clippy::cast_possible_truncation)] // Clamped, and −∞ becomes the first.
    let rung =
        rung.clamp(f64::from(OCTAVES.0 * STEPS_PER_OCTAVE), f64::from(OCTAVES.1 * STEPS_PER_OCTAVE)) as i32;
    rung
}

/// The last rung at or below a latency, in seconds; 0 when there is none.
fn rung_below(latency: f64) -> f64 {
    // A rung itself is not to be lost to the rounding of its logarithm.
    let rung = (latency.log2() * f64::from(STEPS_PER_OCTAVE) + 1e-9).floor();
    if rung < f64::from(OCTAVES.0 * STEPS_PER_OCTAVE) {
        0.0
    } else {
        (rung / f64::from(STEPS_PER_OCTAVE)).exp2()
    }
}
