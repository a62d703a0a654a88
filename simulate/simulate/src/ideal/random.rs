//! Random arrivals, in independent streams.

use crate::ideal::figures::IdealOutcome;
use crate::ideal::interruption::nothing_complete;
use crate::ideal::settings::{IdealAnswer, IdealSettings};
use crate::ideal::utilisation::check_stable;
use arrivals::{ArrivalPattern, TimedRequestSource};
use model::OperationError;
use operation::ProgressObserver;
use sim::ideal::{ReplicationSizes, replicate_while};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Simulates `requests` requests of an arrival process.
pub(super) fn play(
    settings: &IdealSettings,
    arrivals: &ArrivalPattern,
    requests: u64,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
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
        // Service times of zero: no load at any rate.
        0.0 => 0.0,
        mean => mean * arrival.mean_rate() / workers as f64,
    };
    check_stable(utilisation, settings)?;
    let name = arrival.to_string();
    let source = TimedRequestSource { arrivals: arrival, service: settings.service.clone() };
    let streams = ReplicationSizes::of_requests(requests);
    let of_one_order = streams.requests + streams.count * streams.warm_up;
    let all = of_one_order * settings.disciplines.len() as u64;
    let task = observer.begin("simulating", all, "requests");
    let played = AtomicU64::new(0);
    let goes_on = |requests: usize| {
        let before = played.fetch_add(requests as u64, Ordering::Relaxed);
        task.update(before + requests as u64, all);
        !interrupted()
    };
    let mut outcomes = Vec::new();
    for &order in &settings.disciplines {
        let start = Instant::now();
        let summary = replicate_while(&source, settings.station(order), streams, settings.seed, &goes_on)
            .map_err(OperationError::input)?;
        let Some(summary) = summary else { break };
        outcomes.push(IdealOutcome::new(order, &summary, of_one_order, start.elapsed().as_secs_f64())?);
    }
    if outcomes.is_empty() {
        return Err(nothing_complete());
    }
    Ok(IdealAnswer { name, utilisation, outcomes })
}
