//! Outcome of a request, in the same form for services and for the simulator.

use units::Nanos;

/// Outcome of a request, live or simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedRequest {
    /// Completion time, on the clock of its arrival; `None` if it was not answered.
    pub done: Option<Nanos>,
    /// Time spent at each tier, from arrival there to the end of its work, summed over its visits.
    pub at_tiers: Vec<Nanos>,
}
