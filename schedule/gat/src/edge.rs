//! Where requests enter the system: each gets a start, and nothing that it claims itself counts.
//!
//! Starts of one edge increase strictly, also while its clock is set back, so that within an edge their order is the order of
//! entry. Between edges the order is as good as their clocks. Let a stamp err by its difference from a clock that all share, and
//! let the errors of two edges differ by at most s. A request that entered at t₁ is ordered behind one that entered later, at t₂, only
//! if t₂ − t₁ ≤ s, because its stamp t₁ + e₁ is above t₂ + e₂ only if t₂ − t₁ < e₁ − e₂ ≤ s. So whoever is overtaken, is overtaken
//! by requests that entered at most s later. `tests/skew.rs` holds this against a simulation.
//!
//! An edge whose clock was set back by b stamps up to b ahead until the clock has caught up: b counts into s.

use crate::slo::RequestSlo;
use crate::tag::RequestTag;

/// What the starts of an edge are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EdgeClock {
    /// Nanoseconds of the clock that the caller reads.
    #[default]
    Real,
    /// A counter that the clock does not touch: edges that tell each other the largest start that they have seen
    /// ([`Edge::observe`]) never stamp an effect before its cause (Lamport's clock). Such tags have an order and no age.
    Logical,
}

/// Stamps requests; one per process that takes requests from outside.
#[derive(Debug, Clone, Default)]
pub struct Edge {
    clock: EdgeClock,
    slo: Option<RequestSlo>,
    last_ns: u64,
}

impl Edge {
    /// An edge with this kind of clock.
    pub fn new(clock: EdgeClock) -> Self {
        Self { clock, slo: None, last_ns: 0 }
    }

    /// The same edge, which gives each request a deadline so long after its start; logical clocks have none.
    #[must_use]
    pub fn with_slo(self, slo: RequestSlo) -> Self {
        Self { slo: Some(slo), ..self }
    }

    /// What the starts of this edge are.
    pub fn clock(&self) -> EdgeClock {
        self.clock
    }

    /// The tag of a request that enters now: a start above all former ones, as long as there are larger numbers.
    pub fn enter(&mut self, now_ns: u64) -> RequestTag {
        let after_last = self.last_ns.saturating_add(1);
        match self.clock {
            EdgeClock::Logical => {
                self.last_ns = after_last;
                RequestTag::starting_at(after_last)
            }
            EdgeClock::Real => {
                self.last_ns = after_last.max(now_ns);
                let tag = RequestTag::starting_at(self.last_ns);
                self.slo.map_or(tag, |slo| tag.with_slo(slo))
            }
        }
    }

    /// Takes note of a start that another edge stamped: later starts of this one are above it. Only for values that this
    /// system has stamped, since a hostile one would move the edge's clock for good.
    pub fn observe(&mut self, start_ns: u64) {
        self.last_ns = self.last_ns.max(start_ns);
    }
}
