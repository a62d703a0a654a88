//! Live servers: what was measured beside what the arrivals alone would have caused, and what else is made of the
//! requests that `observe` sees.
//!
//! The crate `observe` knows neither simulation nor traces; here they meet. Requests go to everybody who wants them as
//! they come, and nobody keeps more of them than a stated number.

mod clients;
mod counter_families;
mod files;
mod finding;
mod finding_families;
mod ideal;
mod latency_log;
mod live;
mod live_metrics;
mod mean_wait;
mod metrics;
mod moments;
mod near;
mod occupancy;
mod record;
mod run;
mod sample;
mod server_recording;
mod service;
mod slowest;
#[cfg(test)]
mod testing;

pub use clients::{ClientBehaviour, ClientLoop};
pub use files::ObservationFiles;
pub use finding::{Caveat, Culprit, DominatingCause, Finding, FindingVerdict, NextStep};
pub use ideal::{IdealAssumptions, IdealComparison, IdealServer};
pub use live::{LiveView, ServerWatcher};
pub use live_metrics::PublishedMetrics;
pub use mean_wait::{SingleWorkerQueue, VarianceCut, VarianceView};
pub use moments::TrafficMoments;
pub use near::StagesNear;
pub use record::RecordedTrace;
pub use run::{ServerObservation, ServerQuestion, watch_server};
pub use service::ServiceEstimate;
