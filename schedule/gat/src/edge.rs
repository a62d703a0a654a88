//! Entry of requests into the system: each gets a start, and its own claims are ignored.
//!
//! Starts of one edge increase strictly, even while its clock is set back, so within an edge their order is
//! the order of entry. Between edges the order is as good as their clocks. Let the error of a stamp be its
//! difference from a common clock, and let the errors of two edges differ by at most s. A request that
//! entered at t₁ is ordered behind one that entered later, at t₂, only if t₂ − t₁ ≤ s: its stamp t₁ + e₁ is
//! above t₂ + e₂ only if t₂ − t₁ < e₁ − e₂ ≤ s. So a request is overtaken only by requests that entered at
//! most s later. `tests/skew.rs` checks this in a simulation.
//!
//! An edge whose clock was set back by b stamps up to b ahead until the clock has caught up: b adds to s.

use crate::slo::RequestSlo;
use crate::tag::RequestTag;

/// Source of an edge's starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EdgeClock {
    /// Nanoseconds of the clock that the caller reads.
    #[default]
    Real,
    /// A counter independent of the clock. Edges that exchange the largest start that they have seen
    /// ([`Edge::observe`]) never stamp an effect before its cause (Lamport's clock). Such tags have an order
    /// but no age.
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
    /// Creates an edge with this kind of clock.
    pub fn new(clock: EdgeClock) -> Self {
        Self { clock, slo: None, last_ns: 0 }
    }

    /// Gives each request a deadline `slo` after its start; logical clocks have none.
    #[must_use]
    pub fn with_slo(self, slo: RequestSlo) -> Self {
        Self { slo: Some(slo), ..self }
    }

    /// Returns the source of this edge's starts.
    pub fn clock(&self) -> EdgeClock {
        self.clock
    }

    /// Returns the tag of a request that enters now, with a start above all earlier ones until the counter
    /// saturates.
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

    /// Notes a start that another edge stamped: later starts of this one are above it. Only for values
    /// stamped by this system, since a hostile one would advance the edge's clock permanently.
    pub fn observe(&mut self, start_ns: u64) {
        self.last_ns = self.last_ns.max(start_ns);
    }
}
