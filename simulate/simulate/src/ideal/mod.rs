//! Latencies due to queueing alone, for a stream, a service time and a number of workers.

mod document;
mod figures;
mod interruption;
mod measured;
mod random;
mod settings;
mod utilisation;

pub use document::IdealDocument;
pub use figures::IdealOutcome;
pub use settings::{IdealAnswer, IdealSettings, IdealStream};

use measured::MeasuredStream;
use model::OperationError;
use operation::ProgressObserver;

/// Simulates a stream of requests under each discipline. Once `interrupted` returns true, the answer covers
/// the disciplines of random requests that were complete, or the requests of a trace that were simulated.
///
/// # Errors
///
/// When a trace cannot be read, the work exceeds the capacity of the workers, or nothing was complete at the
/// interruption.
pub fn ideal_latency(
    settings: &IdealSettings,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
) -> Result<IdealAnswer, OperationError> {
    match &settings.stream {
        IdealStream::Trace(path) => {
            measured::play(settings, MeasuredStream::File(path), interrupted, observer)
        }
        IdealStream::Recorded { name, arrivals } => {
            measured::play(settings, MeasuredStream::Memory { name, arrivals }, interrupted, observer)
        }
        IdealStream::Random { arrivals, requests } => {
            random::play(settings, arrivals, *requests, interrupted, observer)
        }
    }
}
