//! How a probabilistic bound comes about, to be printed.

use super::field::Groups;
use super::sketch::{SHARES, Sketch};
use super::{Probabilistic, worst_case};
use calculus::tail::TailMethod;
use model::{ServerMember, UndefinedLatency};

/// What shows a bound.
#[derive(Debug, Clone, PartialEq)]
pub enum Derivation {
    /// Few enough requests are late.
    FewAreLate(Lateness),
    /// No alignment exceeds it, seconds: the worst case is smaller.
    WorstCase(f64),
}

/// The sum that shows a bound: requests are late with probability Σ `probability · late`.
#[derive(Debug, Clone, PartialEq)]
pub struct Lateness {
    /// The bound, seconds.
    pub latency: f64,
    /// The share of the queue that the request's own stream is given.
    pub share: f64,
    /// The share of requests that may be late.
    pub allowed: f64,
    /// By falling own work.
    pub terms: Vec<Term>,
}

/// Requests that find about as much of their own stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// Share of the requests.
    pub probability: f64,
    /// Work of their own stream that they find, at its share of the queue, and their own, seconds.
    pub own: f64,
    /// What the latency leaves for everybody else, seconds; negative when nothing does.
    pub room: f64,
    /// How likely the others are to exceed the room, at most.
    pub late: f64,
}

impl Probabilistic {
    /// The derivation of the bound that `predict` gives member `tagged`.
    pub fn derivation(
        &self,
        members: &[ServerMember<'_, Sketch>],
        tagged: usize,
    ) -> Result<Derivation, UndefinedLatency> {
        let (shown, worst) = (self.bound(members, tagged, &mut Groups::new()), worst_case(members)[tagged]);
        let shown = match (shown, worst) {
            (Ok(shown), Ok(worst)) if worst < shown.latency => return Ok(Derivation::WorstCase(worst)),
            (Err(_), Ok(worst)) => return Ok(Derivation::WorstCase(worst)),
            (shown, _) => shown?,
        };
        let tails = shown.field.tails(shown.latency, TailMethod::Convolution);
        let law = members[tagged].sketch.own[shown.share].as_ref().expect("the share shows the bound");
        let term = |atom: &calculus::tail::WorkAtom| {
            let room = shown.latency - atom.work;
            let late = if room < 0.0 { 1.0 } else { tails.exceedance(1.0 - SHARES[shown.share], room) };
            Term { probability: atom.probability, own: atom.work, room, late }
        };
        Ok(Derivation::FewAreLate(Lateness {
            latency: shown.latency,
            share: SHARES[shown.share],
            allowed: 1.0 - members[tagged].percentile.fraction(),
            terms: law.iter().rev().map(term).collect(),
        }))
    }
}
