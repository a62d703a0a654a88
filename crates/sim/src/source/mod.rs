//! What comes to a simulated system: when requests arrive and how much service they ask for.
//!
//! An [`Arrivals`] is an endless, seeded stream of instants, described by an [`Arrival`]; a [`Law`] describes
//! demands. [`Source`] joins the two, and [`Demand`] is one request of it. A measured stream is any iterator of
//! [`Demand`]; [`scale`] changes its utilisation. All of them have a short text form:
//! `poisson(500/s)`, `renewal(lognormal(mean=1ms, c2=4))`, `batch(4, poisson(10/s))`.
//!
//! Open loop: arrivals do not wait for departures. Demands are drawn independently of arrivals and of each
//! other; correlated demands come from a measured stream.

mod arrival;
mod law;
mod sampler;
pub mod scale;
mod text;

pub use arrival::{Arrival, Batch};
pub use arrivals::{Arrivals, MmppState, ParameterError, Process};
pub use law::{Law, Shape};
pub use sampler::Sampler;
pub use text::TextError;

use arrivals::split_seed;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use units::Nanos;

/// A request: when it arrives and the service that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Demand {
    /// Since the origin of the stream.
    pub arrival: Nanos,
    /// Time of one worker.
    pub service: Nanos,
}

/// Requests with independent demands.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// When they arrive.
    pub arrival: Arrival,
    /// What each needs.
    pub service: Law,
}

impl Source {
    /// The requests, without end; arrivals do not decrease.
    ///
    /// # Errors
    /// When a parameter of the arrivals is out of its range.
    pub fn demands(&self, seed: u64) -> Result<impl Iterator<Item = Demand> + Send + use<>, ParameterError> {
        let arrivals = self.arrival.instants(seed)?;
        // Demands have a generator of their own, so that they do not change the arrivals.
        let mut random = StdRng::seed_from_u64(split_seed(seed, u64::MAX));
        let sampler = self.service.sampler();
        Ok(arrivals.map(move |arrival| Demand { arrival, service: sampler.draw(&mut random) }))
    }
}
