//! The place of a workload on the links of the host from which its requests come.

use crate::limits::FitRefusal;
use calculus::PathBound;
use model::{PerStage, RateLimit, Stage};

/// A workload's place on the links of its host.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientLinks {
    /// The name of the host.
    pub host: String,
    /// Its priority on the links of the host; 0 is served first.
    pub priority: usize,
    /// Limit of its requests, as a fraction of the link out of the host.
    pub requests: RateLimit,
    /// Limit of its answers, as a fraction of the link into the host.
    pub answers: RateLimit,
    /// Part of the burst of answers for what overtakes one of them at the device, seconds of the link.
    pub overtaking: f64,
    /// Mean rate of its requests and answers, fractions of the links.
    pub mean_rate: PerStage<f64>,
    /// The terms of the delay at both links: those of network-in and network-out.
    pub queueing: PathBound,
    /// Longest time for which others keep the link out of the host from its requests, seconds.
    pub held_up: f64,
    /// Longest time for which others may keep the server's link from its answers, seconds.
    pub hold_up_max: f64,
}

/// The answer of a host's links to a workload.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientPlace {
    /// It is served within the delay of these limits.
    Served(ClientLinks),
    /// The links of its host cannot serve it beside the others.
    Refused {
        /// The name of the host.
        host: String,
        /// True if they cannot serve it without the others, either.
        alone: bool,
        /// Why not.
        why: FitRefusal,
        /// A factor on the links' capacity with which they would; `None` if none was found or looked for.
        sufficient: Option<f64>,
    },
}

impl ClientLinks {
    /// Returns the longest delay on both links together, seconds.
    pub fn delay(&self) -> f64 {
        self.queueing.total
    }

    /// Returns the longest delay at one of the links, seconds.
    pub fn delay_at(&self, stage: Stage) -> f64 {
        self.queueing.terms[stage as usize].delay
    }
}

impl ClientPlace {
    /// Returns the links that serve the workload.
    pub fn served(&self) -> Option<&ClientLinks> {
        match self {
            Self::Served(links) => Some(links),
            Self::Refused { .. } => None,
        }
    }

    /// Returns the longest delay on the links, seconds; infinite if they do not serve it.
    pub(crate) fn delay(&self) -> f64 {
        self.served().map_or(f64::INFINITY, ClientLinks::delay)
    }
}
