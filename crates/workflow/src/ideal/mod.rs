//! The latencies that queueing alone causes, for a stream, a service time and a number of workers.

mod figures;
mod measured;
mod random;
mod settings;
mod utilisation;

pub use figures::IdealOutcome;
pub use settings::{IdealAnswer, IdealSettings, IdealStream};

use model::OperationError;

/// Plays a stream of requests under each discipline.
///
/// # Errors
///
/// When a trace cannot be read, or the work is more than the workers can do.
pub fn ideal_latency(settings: &IdealSettings) -> Result<IdealAnswer, OperationError> {
    match &settings.stream {
        IdealStream::Trace(path) => measured::play(settings, path),
        IdealStream::Random { arrivals, requests } => random::play(settings, arrivals, *requests),
    }
}
