//! How a probabilistic bound comes about, to be printed.

use super::bound::{Probabilistic, worst_case};
use super::cross_traffic::DependentGroups;
use super::one_burst::OneBurstSum;
use super::shares::SHARES;
use super::sketch::ProbabilisticSketch;
use calculus::tail::TailMethod;
use model::{ServerMember, UndefinedLatency};

/// What proves a bound.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbabilisticDerivation {
    /// Few enough requests are late.
    FewAreLate(LatenessSum),
    /// Few enough requests are late by one burst.
    OneBurst(OneBurstSum),
    /// No alignment exceeds this latency in seconds: the worst case is smaller.
    WorstCase(f64),
}

/// The sum that proves a bound: requests are late with probability Σ `probability · late`.
#[derive(Debug, Clone, PartialEq)]
pub struct LatenessSum {
    /// The bound in seconds.
    pub latency: f64,
    /// The share of the queue that the request's own stream is given.
    pub share: f64,
    /// The share of requests that may be late.
    pub allowed: f64,
    /// The terms of the sum, by falling own work.
    pub terms: Vec<ProbabilisticTerm>,
}

/// The requests that find about as much work of their own stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbabilisticTerm {
    /// The share of these requests among all of the workload.
    pub probability: f64,
    /// The work of their own stream that they find, at its share of the queue, and their own, seconds.
    pub own: f64,
    /// The time that the latency leaves for all other traffic, seconds; negative when it leaves none.
    pub room: f64,
    /// A bound on the probability that the other traffic exceeds the room.
    pub late: f64,
}

impl Probabilistic {
    /// The derivation of the bound that `predict` gives the member with the index `tagged`.
    ///
    /// # Errors
    /// When the member has no bound.
    pub fn derivation(
        &self,
        members: &[ServerMember<'_, ProbabilisticSketch>],
        tagged: usize,
    ) -> Result<ProbabilisticDerivation, UndefinedLatency> {
        self.derivation_behind(members, (tagged, 0.0), worst_case(members)[tagged])
    }

    /// As [`Self::derivation`], where `begun` seconds of work come before everything else, with the worst case of such
    /// servers in seconds.
    ///
    /// # Errors
    /// When the member has no bound.
    pub fn derivation_behind(
        &self,
        members: &[ServerMember<'_, ProbabilisticSketch>],
        (tagged, begun): (usize, f64),
        worst: Result<f64, UndefinedLatency>,
    ) -> Result<ProbabilisticDerivation, UndefinedLatency> {
        let proven = match (self.bound(members, (tagged, begun), &mut DependentGroups::new()), worst) {
            (Ok(proven), Ok(worst)) if worst < proven.latency => {
                return Ok(ProbabilisticDerivation::WorstCase(worst));
            }
            (Err(_), Ok(worst)) => return Ok(ProbabilisticDerivation::WorstCase(worst)),
            (proven, _) => proven?,
        };
        if let Some(sum) = proven.one_burst {
            return Ok(ProbabilisticDerivation::OneBurst(sum));
        }
        let tails = proven.cross_traffic.tails(proven.latency, TailMethod::Convolution);
        let law = members[tagged].sketch.own[proven.share].as_ref().expect("the share proves the bound");
        let mut terms = Vec::with_capacity(law.len());
        for atom in law.iter().rev() {
            let room = proven.latency - begun - atom.work;
            let late = if room < 0.0 { 1.0 } else { tails.exceedance(1.0 - SHARES[proven.share], room) };
            terms.push(ProbabilisticTerm { probability: atom.probability, own: atom.work, room, late });
        }
        Ok(ProbabilisticDerivation::FewAreLate(LatenessSum {
            latency: proven.latency,
            share: SHARES[proven.share],
            allowed: 1.0 - members[tagged].percentile.fraction(),
            terms,
        }))
    }
}
