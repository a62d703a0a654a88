//! Errors of simulations.

use std::fmt;

/// A network, an entry or a request that cannot be simulated; the message says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSimulationError(pub String);

impl fmt::Display for InvalidSimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSimulationError {}

/// Error of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulationError {
    /// The input cannot be simulated.
    Invalid(InvalidSimulationError),
    /// More requests were inside than the window allows.
    Unbounded {
        /// Requests that were inside.
        inside: usize,
        /// Requests that had arrived by then.
        arrived: u64,
    },
    /// The run was interrupted.
    Interrupted,
}

impl From<InvalidSimulationError> for SimulationError {
    fn from(error: InvalidSimulationError) -> Self {
        Self::Invalid(error)
    }
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::Unbounded { inside, arrived } => {
                write!(f, "unstable: grows without bound ({inside} of {arrived} requests are still inside)")
            }
            Self::Interrupted => f.write_str("interrupted before it was complete"),
        }
    }
}

impl std::error::Error for SimulationError {}
