//! What became of a request, in the same form for services and for the simulator.

use units::Nanos;

/// What became of a request, live or simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedRequest {
    /// When it was complete, on the clock of its arrival; none when it was not answered.
    pub done: Option<Nanos>,
    /// The time that it spent at each tier, from arrival there to the end of its work, of all its visits together.
    pub at_tiers: Vec<Nanos>,
}
