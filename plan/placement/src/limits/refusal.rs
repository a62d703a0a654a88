//! Why workloads do not fit together on one server.

use calculus::round_up;
use model::{PerStage, Stage};

/// Why the limits of a method cannot guarantee the SLOs of workloads that would share a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FitRefusal {
    /// The rates that the workloads need exceed the capacity of a stage.
    Capacity {
        /// The stage that cannot carry the rates.
        stage: Stage,
        /// Σ r ÷ allowed rate, above 1.
        ratio: f64,
    },
    /// The best bounds that were found exceed an SLO.
    Latency {
        /// The SLO's latency that is exceeded most, seconds.
        slo: f64,
        /// Best bound found ÷ SLO budget, above 1.
        ratio: f64,
        /// The stage that contributes most to that bound.
        stage: Stage,
    },
    /// The linear program has no solution; it does not say which constraint is to blame.
    NoLimits,
    /// A server without other workloads is slower than the SLO allows.
    BaseLatency {
        /// The SLO's latency, seconds.
        slo: f64,
        /// Time of a request there.
        terms: IdleTerms,
    },
}

/// Time of a request on a server that serves no other, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleTerms {
    /// Latency of the idle storage stack.
    pub storage: f64,
    /// Delay on the links of its client host; 0 if the problem counts none.
    pub links: f64,
    /// Own service on one channel beyond its share of the device, and the time in the proxy.
    pub own: f64,
    /// Work that each stage may have begun: packets and the burst of the shaper on links, requests at the device.
    pub begun: PerStage<f64>,
}

impl IdleTerms {
    /// Returns the sum of all terms, rounded up.
    pub fn total(&self) -> f64 {
        round_up(self.storage + self.links + self.own + self.begun.iter().map(|(_, work)| work).sum::<f64>())
    }
}
