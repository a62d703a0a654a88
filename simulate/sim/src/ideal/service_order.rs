//! Orders of service by name.

use std::fmt;
use std::str::FromStr;
use units::ParseError;

/// Choice of the next request by a worker (Tales of the Tail §2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServiceOrder {
    /// The request that has waited longest.
    Fifo,
    /// The request that arrived last.
    Lifo,
    /// Any of the waiting requests, equally likely.
    RandomRequest,
    /// Every worker has a FIFO queue, and a request joins one of them at random.
    RandomWorker,
}

impl ServiceOrder {
    /// All orders, in the sequence of the paper.
    pub const ALL: [Self; 4] = [Self::Fifo, Self::Lifo, Self::RandomWorker, Self::RandomRequest];

    fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lifo => "lifo",
            Self::RandomRequest => "random-request",
            Self::RandomWorker => "random-worker",
        }
    }
}

impl fmt::Display for ServiceOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ServiceOrder {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let order = Self::ALL.into_iter().find(|order| order.name() == text.trim());
        order.ok_or_else(|| ParseError::new(text, "fifo, lifo, random-request or random-worker"))
    }
}
