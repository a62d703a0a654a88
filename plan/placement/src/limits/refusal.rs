//! Why workloads do not fit together on one server.

use model::Stage;

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
        /// The latency of the idle server, and of the work that it may have begun, seconds.
        base: f64,
    },
}
