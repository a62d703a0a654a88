//! Observations of live servers, load, profiles of devices and verdicts on SLOs: settings in, answers out.

pub mod load;
pub mod observation;
pub mod profiling;
pub mod server_profiling;
pub mod verification;

operation::documents! {
    verification::FindingsDocument<'_>: "findings", 2;
}
