//! The model and the least latency that it proves for one member.

use super::cross_traffic::{DependentGroups, MemberCrossTraffic};
use super::latencies::{ROUNDING, least_latency, share_within};
use super::one_burst::{OneBurst, OneBurstSum};
use super::shares::{FIRST_SHARE, SHARES};
use super::sketch::ProbabilisticSketch;
use crate::WorstCase;
use calculus::tail::{TailGrid, TailMethod};
use model::{LatencyModel as _, ServerMember, UndefinedLatency};
use std::cell::Cell;

/// The probabilistic model: bounds at a percentile for independent groups of workloads.
#[derive(Debug, Clone)]
pub struct Probabilistic {
    pub(super) grid: TailGrid,
    /// A factor on all work.
    pub(super) safety: f64,
    /// Whether members of a priority count as if they came before each other.
    pub(super) takes_turns: bool,
}

impl Default for Probabilistic {
    fn default() -> Self {
        Self::with_safety(1.0)
    }
}

impl Probabilistic {
    /// The model with a factor on all work of all traffic, for traffic that is worse than the trace.
    ///
    /// # Panics
    /// Unless the factor is finite and at least 1.
    pub fn with_safety(safety: f64) -> Self {
        assert!(safety.is_finite() && safety >= 1.0, "a factor of at least 1");
        // Windows from a microsecond to an hour, exponents from 1/32 s to 1/(0.5 µs).
        Self {
            grid: TailGrid::new(powers_of_two(-20, 12, 4), powers_of_two(-5, 21, 2)),
            safety,
            takes_turns: false,
        }
    }

    /// The same model of servers that serve members of a priority in any order, as links do by turns.
    #[must_use]
    pub fn in_any_order(self) -> Self {
        Self { takes_turns: true, ..self }
    }

    /// The least latency that the model proves for a member whose requests find `begun` seconds of work begun, and what
    /// proves it.
    pub(super) fn bound<'a>(
        &'a self,
        members: &[ServerMember<'a, ProbabilisticSketch>],
        (tagged, begun): (usize, f64),
        groups: &mut DependentGroups,
    ) -> Result<ProvenBound<'a>, UndefinedLatency> {
        let own = &members[tagged];
        let cross_traffic =
            MemberCrossTraffic::new((&self.grid, self.takes_turns), members, (tagged, false), groups)?;
        if !own.sketch.keeps_order() {
            return Err(UndefinedLatency::NoBound);
        }
        let allowed = 1.0 - own.percentile.fraction();
        // A share that proves one latency most often proves the next one, too: each search begins with the last success.
        let best = Cell::new(FIRST_SHARE);
        let one_burst = Cell::new(None);
        let fits = |latency| {
            let tails = cross_traffic.tails(latency, TailMethod::Convolution);
            let share =
                share_within(own.sketch, (latency, begun), allowed + ROUNDING, best.get(), |share, room| {
                    tails.exceedance(1.0 - SHARES[share], room)
                });
            best.set(share.unwrap_or(best.get()));
            let by_one_burst = || {
                let request = OneBurst::new(&cross_traffic, own.sketch, (latency, begun));
                request.proof(allowed + ROUNDING, &tails)
            };
            let proof = if share.is_some() { None } else { by_one_burst() };
            let fits = share.is_some() || proof.is_some();
            if fits {
                one_burst.set(proof);
            }
            fits
        };
        let latency = least_latency(begun + own.sketch.own_quantile(allowed + ROUNDING), fits)
            .ok_or(UndefinedLatency::NoBound)?;
        // The last success of the search is this latency's.
        Ok(ProvenBound { latency, share: best.get(), one_burst: one_burst.get(), cross_traffic })
    }
}

/// Powers of two from 2^`from` to 2^`to`, with this many points per octave.
fn powers_of_two(from: i32, to: i32, per_octave: i32) -> Vec<f64> {
    let points = from * per_octave..=to * per_octave;
    points.map(|point| (f64::from(point) / f64::from(per_octave)).exp2()).collect()
}

/// The latencies that no alignment exceeds, seconds.
pub(super) fn worst_case(
    members: &[ServerMember<'_, ProbabilisticSketch>],
) -> Vec<Result<f64, UndefinedLatency>> {
    let mut at_worst = Vec::with_capacity(members.len());
    for &ServerMember { sketch, priority, group, percentile } in members {
        at_worst.push(ServerMember { sketch: &sketch.worst, priority, group, percentile });
    }
    WorstCase::default().predict(&at_worst).into_iter().map(|p| p.map(|p| p.bound)).collect()
}

/// A latency that is proven to hold.
pub(super) struct ProvenBound<'a> {
    /// The latency in seconds.
    pub(super) latency: f64,
    /// The index of the share that the request's own stream gets.
    pub(super) share: usize,
    /// The proof by one burst, where there is none at that share.
    pub(super) one_burst: Option<OneBurstSum>,
    pub(super) cross_traffic: MemberCrossTraffic<'a>,
}
