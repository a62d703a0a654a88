//! The trace of a workload, repeated for ever, played from any instant on.

use ::model::{CircularTrace, CircularTraceError, Job, PerStage};
use discipline::enforce::DeviceAccess;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::sync::Arc;
use units::Nanos;

/// Repeats the jobs of a workload one mean gap after the last (a second, if all arrive at one instant),
/// as predictions do.
///
/// # Errors
/// When there are no jobs, or one arrives before its predecessor.
pub(crate) fn repeated(jobs: Vec<Job>) -> Result<CircularTrace<Job>, String> {
    CircularTrace::repeating(jobs).map_err(|error| match error {
        CircularTraceError::Empty => "there are no requests".to_owned(),
        CircularTraceError::Unsorted(_) => "a request arrives before the one before it".to_owned(),
        CircularTraceError::Period => error.to_string(),
    })
}

/// The same requests at a rate that is higher by a factor.
///
/// # Errors
/// When the factor is not positive and finite, or the period leaves its range.
pub(crate) fn at_rate(trace: &CircularTrace<Job>, factor: f64) -> Result<CircularTrace<Job>, String> {
    trace.faster(factor).map_err(|_| format!("a rate cannot be multiplied by {factor}"))
}

/// An instant of the period at which to begin, uniformly distributed.
pub(crate) fn random_beginning(trace: &CircularTrace<Job>, seed: u64) -> Nanos {
    Nanos(StdRng::seed_from_u64(seed).random_range(0..trace.period().0))
}

/// The instants at which requests arrive from `begin` on, which becomes 0 and counts modulo the period.
pub(crate) fn instants_from(trace: Arc<CircularTrace<Job>>, begin: Nanos) -> impl Iterator<Item = Nanos> {
    let begin = Nanos(begin.0 % trace.period().0);
    (trace.position(begin)..).map_while(move |position| Some(trace.item_at(position)?.arrival - begin))
}

/// Iterates over the work of the requests whose arrivals [`instants_from`] returns.
pub(crate) fn work_from(
    trace: Arc<CircularTrace<Job>>,
    begin: Nanos,
) -> impl Iterator<Item = PerStage<Nanos>> {
    let begin = Nanos(begin.0 % trace.period().0);
    (trace.position(begin)..).map_while(move |position| Some(trace.item_at(position)?.work))
}

/// Iterates over the device accesses of these requests, with `accesses` in the order of the trace; empty
/// without any.
pub(crate) fn accesses_from(
    trace: &CircularTrace<Job>,
    accesses: Arc<[DeviceAccess]>,
    begin: Nanos,
) -> impl Iterator<Item = DeviceAccess> + use<> {
    let first = trace.position(Nanos(begin.0 % trace.period().0));
    (first..).map_while(move |position| {
        let count = (accesses.len() as u64).max(1);
        accesses.get(usize::try_from(position % count).ok()?).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::model::Stage;

    fn trace() -> CircularTrace<Job> {
        let job = |arrival, work| Job { arrival: Nanos(arrival), work: PerStage::from_fn(|_| Nanos(work)) };
        repeated(vec![job(7, 1), job(9, 2), job(13, 3)]).unwrap()
    }

    #[test]
    fn it_repeats_from_any_instant_on() {
        // Arrivals 0, 2, 6 and again after 9.
        let from =
            |begin| instants_from(Arc::new(trace()), Nanos(begin)).map(|at| at.0).take(5).collect::<Vec<_>>();
        assert_eq!(from(0), [0, 2, 6, 9, 11]);
        assert_eq!(from(2), [0, 4, 7, 9, 13]);
        assert_eq!(from(7), [2, 4, 8, 11, 13]);
        assert_eq!(from(16), from(7));
        let work = |begin| {
            let works = work_from(Arc::new(trace()), Nanos(begin));
            works.map(|work| work[Stage::Storage].0).take(4).collect::<Vec<_>>()
        };
        assert_eq!((work(2), work(7)), (vec![2, 3, 1, 2], vec![1, 2, 3, 1]));
    }

    #[test]
    fn a_faster_one_has_the_same_work_in_less_time() {
        let twice = at_rate(&trace(), 2.0).unwrap();
        assert_eq!((twice.period(), twice.items()[2].arrival), (Nanos(4), Nanos(3)));
        assert!(at_rate(&trace(), 0.0).is_err() && at_rate(&trace(), f64::NAN).is_err());
        assert!(at_rate(&trace(), 1e12).is_err() && at_rate(&trace(), 1e-12).is_ok());
        assert!(repeated(Vec::new()).is_err());
        let at_once = repeated(vec![trace().items()[1]; 3]).unwrap();
        assert_eq!(instants_from(Arc::new(at_once), Nanos(0)).nth(3), Some(Nanos(1_000_000_000)));
    }
}
