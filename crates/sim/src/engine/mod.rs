//! Discrete-event simulation of stations, chains and feed-forward graphs under any queueing discipline.
//!
//! A [`QueueingNetwork`] says what is simulated, [`RequestEntry`]s bring requests with demands that are drawn before they enter,
//! [`SimulationEngine::run`] plays them and returns [`Measures`]. Times are integer nanoseconds. Equal inputs give equal
//! measures, bit by bit. [`replicate`] runs several and says how sure the figures are.
//!
//! **Order of simultaneous events**, by which every run is repeatable: first departures and ends of slices, the
//! station with the highest index first and its workers in order; then what becomes able to be served by time alone
//! (tokens that are due), the station with the highest index first; then other work that takes workers away or gives
//! them back; then deliveries after network delays, by station and then as they were sent; then requests that reach the
//! first steps and new arrivals, by entry.
//! Within one event, the worker that became free takes the next item first; then the request moves on, and if
//! that is without delay, arrives at the next station within the same event.
//!
//! Memory is that of the requests inside; what is measured goes into [`Histogram`]s. Nothing is allocated per
//! event unless more requests are inside than ever before. [`SimulationEngine::run_logged`] keeps every request of the window.
//!
//! Not covered: networks in which requests return to an earlier step, losses and retries.

mod experiment;
mod gate;
mod histogram;
mod line;
mod load;
mod measure;
mod meter;
mod network;
mod order;
mod passage;
mod requests;
mod run;
mod station;
mod timers;

use std::fmt;

pub use confidence::{Estimate, t_quantile};
pub use experiment::{
    LatencyStatistic, PrecisionGoal, ReplicationVerdict, SimulationPlan, SimulationReport, replicate,
};
pub use histogram::Histogram;
pub use load::{DELAY_ONLY, DrawRequest, EntryArrivals, RequestDraft, RequestEntry, SKIP};
pub use measure::{MeasurementWindow, Measures, SLOWDOWN_UNIT, StationMeasures};
pub use network::{Interference, NetworkStation, NetworkStep, QueueingNetwork};
pub(crate) use order::OrderTracker;
pub use passage::LoggedRequest;
pub use run::SimulationEngine;

/// What cannot be simulated, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSimulationError(pub String);

impl fmt::Display for InvalidSimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSimulationError {}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulationError {
    /// The input is not one that can be simulated.
    InvalidSimulationError(InvalidSimulationError),
    /// More requests were inside than allowed.
    Unbounded {
        /// How many.
        inside: usize,
        /// How many had arrived by then.
        arrived: u64,
    },
}

impl From<InvalidSimulationError> for SimulationError {
    fn from(invalid: InvalidSimulationError) -> Self {
        Self::InvalidSimulationError(invalid)
    }
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidSimulationError(invalid) => invalid.fmt(f),
            Self::Unbounded { inside, arrived } => {
                write!(f, "unstable: grows without bound ({inside} of {arrived} requests are still inside)")
            }
        }
    }
}

impl std::error::Error for SimulationError {}
