//! Random arrivals, in independent streams.

use super::figures::IdealOutcome;
use super::settings::{IdealAnswer, IdealSettings};
use super::utilisation::check_stable;
use arrivals::{ArrivalPattern, TimedRequestSource};
use model::OperationError;
use sim::ideal::{ReplicationSizes, replicate};
use std::time::Instant;

/// Plays so many requests of a process of arrivals.
pub(super) fn play(
    settings: &IdealSettings,
    arrivals: &ArrivalPattern,
    requests: u64,
) -> Result<IdealAnswer, OperationError> {
    if requests == 0 {
        return Err(OperationError::input("--requests: expected at least 1"));
    }
    let workers = settings.workers.get();
    let arrival = match settings.load {
        Some(load) => {
            arrivals.at_utilisation(load, workers, &settings.service).map_err(OperationError::input)?
        }
        None => arrivals.clone(),
    };
    let utilisation = match settings.service.mean().0 {
        // No work is no load, however fast it comes.
        0.0 => 0.0,
        mean => mean * arrival.mean_rate() / workers as f64,
    };
    check_stable(utilisation, settings)?;
    let name = arrival.to_string();
    let source = TimedRequestSource { arrivals: arrival, service: settings.service.clone() };
    let streams = ReplicationSizes::of_requests(requests);
    let mut outcomes = Vec::new();
    for &order in &settings.disciplines {
        let start = Instant::now();
        let summary = replicate(&source, settings.station(order), streams, settings.seed)
            .map_err(OperationError::input)?;
        outcomes.push(IdealOutcome::new(order, &summary, start.elapsed().as_secs_f64())?);
    }
    Ok(IdealAnswer { name, utilisation, outcomes })
}
