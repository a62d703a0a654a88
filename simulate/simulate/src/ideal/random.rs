//! Random arrivals, in independent streams.

use crate::ideal::figures::IdealOutcome;
use crate::ideal::interruption::nothing_complete;
use crate::ideal::settings::{IdealAnswer, IdealSettings};
use crate::ideal::utilisation::check_stable;
use arrivals::{ArrivalPattern, TimedRequestSource};
use model::OperationError;
use operation::ProgressObserver;
use sim::ideal::{ReplicationSizes, ServiceOrder, replicate_while};
use sim::{settling_arrivals, settling_window};
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
    if settings.service.mean().0.is_infinite() {
        return Err(OperationError::input("the mean service time is infinite: no load is stable")
            .hint("use a shape above 1, or a largest value: pareto(min=1ms, max=1s, shape=1)"));
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
    let is_deterministic =
        arrival.is_periodic() && settings.service.c2() == 0.0 && !splits_at_random(settings);
    check_stable(utilisation, is_deterministic, settings)?;
    let name = arrival.to_string();
    let variability = f64::midpoint(arrival_c2(&arrival), settings.service.c2().min(C2_MAX));
    let source = TimedRequestSource { arrivals: arrival, service: settings.service.clone() };
    let settling = if is_deterministic { 0.0 } else { settling_arrivals(utilisation, variability) };
    let streams = settled_streams(requests, settling);
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
        let mut outcome = IdealOutcome::new(order, &summary, of_one_order, start.elapsed().as_secs_f64())?;
        if mean_is_infinite(settings, order, utilisation) {
            outcome.has_infinite_mean();
        }
        outcomes.push(outcome);
    }
    if outcomes.is_empty() {
        return Err(nothing_complete());
    }
    Ok(IdealAnswer { name, utilisation, outcomes, requests_needed: requests_needed(streams, settling) })
}

/// Largest C² of service times that lengthens the warm-up: with more, a mean has no useful sample anyway.
const C2_MAX: f64 = 100.0;
/// Longest warm-up of a stream, in arrivals; some seconds of wall time for all.
const WARM_UP_MAX: u64 = 5_000_000;

/// Returns the squared coefficient of variation of the gaps between arrivals, 1 where it is not known.
fn arrival_c2(arrivals: &ArrivalPattern) -> f64 {
    match arrivals {
        ArrivalPattern::Renewal(gap) => gap.c2().min(C2_MAX),
        _ => 1.0,
    }
}

/// Returns streams whose warm-up lets the station settle.
fn settled_streams(requests: u64, settling: f64) -> ReplicationSizes {
    let streams = ReplicationSizes::of_requests(requests);
    ReplicationSizes { warm_up: settling_window(streams.warm_up, settling, WARM_UP_MAX), ..streams }
}

/// Returns the number of requests with which each stream is as long as the station takes to settle, if it is
/// shorter: the latencies of a shorter one depend on each other as if they were one sample.
fn requests_needed(streams: ReplicationSizes, settling: f64) -> Option<u64> {
    let is_too_short =
        (streams.requests / streams.count) as f64 <= settling || streams.warm_up as f64 <= settling - 1.0;
    // The cast saturates, and is not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let needed = (settling * 8.0).ceil() as u64;
    is_too_short.then_some(needed)
}

/// Returns true if a discipline sends requests to workers at random.
fn splits_at_random(settings: &IdealSettings) -> bool {
    settings.workers.get() > 1 && settings.disciplines.contains(&ServiceOrder::RandomWorker)
}

/// Returns true if the mean latency of a stable station is infinite, so that no average of a sample estimates it.
///
/// With s workers more than the work needs, all of them have to be held up by long requests: for service
/// times whose tail falls as x^−α the mean wait is finite if s (α − 1) > 1, where s is the number of
/// workers less the whole part of the load (Scheller-Wolf and Sigman, "New bounds for expected delay in
/// FIFO GI/GI/c queues", Queueing Systems 26, 1997). No order of service without preemption changes the mean.
fn mean_is_infinite(settings: &IdealSettings, order: ServiceOrder, utilisation: f64) -> bool {
    let exponent = settings.service.tail_exponent();
    let spare = match order {
        ServiceOrder::RandomWorker => 1.0,
        _ => {
            let workers = settings.workers.get() as f64;
            workers - (utilisation * workers).floor()
        }
    };
    spare * (exponent - 1.0) <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    #[test]
    fn the_mean_exists_with_enough_spare_workers() {
        for (service, workers, order, utilisation, infinite) in [
            ("pareto(min=1ms, shape=1.5)", 1, ServiceOrder::Fifo, 0.9, true),
            ("pareto(min=1ms, shape=2)", 1, ServiceOrder::Lifo, 0.1, true),
            ("pareto(min=1ms, shape=2.1)", 1, ServiceOrder::Fifo, 0.9, false),
            ("pareto(min=1ms, shape=1.5)", 4, ServiceOrder::Fifo, 0.2, false),
            ("pareto(min=1ms, shape=1.5)", 4, ServiceOrder::Fifo, 0.7, true),
            ("pareto(min=1ms, shape=1.5)", 4, ServiceOrder::RandomWorker, 0.2, true),
            ("exp(1ms)", 1, ServiceOrder::Fifo, 0.99, false),
        ] {
            let settings = IdealSettings {
                stream: crate::ideal::IdealStream::Random {
                    arrivals: "poisson(1/s)".parse().unwrap(),
                    requests: 1,
                },
                service: service.parse().unwrap(),
                workers: NonZeroUsize::new(workers).unwrap(),
                disciplines: vec![order],
                load: None,
                seed: 1,
            };
            assert_eq!(mean_is_infinite(&settings, order, utilisation), infinite, "{service} {workers}");
        }
    }
}
