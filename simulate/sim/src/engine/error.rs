//! Why a simulation has no result.

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

/// A run without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulationError {
    /// The input is not one that can be simulated.
    Invalid(InvalidSimulationError),
    /// More requests were inside than the window allows.
    Unbounded {
        /// How many requests were inside.
        inside: usize,
        /// How many requests had arrived by then.
        arrived: u64,
    },
    /// Whoever wanted the run has ended it.
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
