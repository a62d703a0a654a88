//! Metrics of a running program: counters as text in the format of OpenMetrics, and an endpoint that Prometheus scrapes.
//!
//! - [`ExponentialCounts`] counts times in buckets whose ends grow by a constant factor, so that the error of a percentile
//!   is known.
//! - [`MetricFamily`] encodes values of one kind with their labels.
//! - [`exposition`] writes what a [`prometheus_client::collector::Collector`] encodes.
//! - [`MetricsEndpoint`] serves such a text by HTTP from a thread of its own, whatever clients do.
//!
//! Nothing here depends on the meaning of the values: requests, servers and policies are the caller's.

mod buckets;
mod endpoint;
mod families;
mod text;

pub use buckets::{BucketScale, ExponentialCounts};
pub use endpoint::{EndpointLimits, MetricsEndpoint};
pub use families::{MetricFamily, encode_version};
pub use prometheus_client;
pub use text::{CONTENT_TYPE, exposition};
