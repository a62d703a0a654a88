//! Several independent streams of one random source.

use super::{IdealStation, StationRun, Summary};
use arrivals::{ParameterError, RequestSource, split_seed};
use machine::parallel;

/// How many streams, and how long they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationSizes {
    /// Independent of each other, at least 1.
    pub count: u64,
    /// Requests that are summarised, in all streams together; streams differ by one at most.
    pub requests: u64,
    /// Requests of each stream before those: it begins with an empty station.
    pub warm_up: u64,
}

impl ReplicationSizes {
    /// Eight streams, fewer when there are fewer than a hundred requests for each; a tenth of each as warm-up.
    pub fn of(requests: u64) -> Self {
        let count = (requests / 100).clamp(1, 8);
        Self { count, requests, warm_up: requests / count / 10 }
    }
}

/// Plays the streams on all processors. The result does not depend on their number.
///
/// # Errors
/// When a parameter of the arrivals is out of its range.
pub fn replicate(
    source: &RequestSource,
    station: IdealStation,
    streams: ReplicationSizes,
    seed: u64,
) -> Result<Summary, ParameterError> {
    let count = streams.count.max(1);
    let run = |(): &mut (), index: usize| {
        let index = index as u64;
        let seed = split_seed(seed, index);
        let requests = streams.requests / count + u64::from(index < streams.requests % count);
        // Lots are drawn apart from arrivals and service times.
        let mut play = StationRun::new(station, split_seed(seed, 2), streams.warm_up, Summary::whole());
        let length = usize::try_from(requests + streams.warm_up).unwrap_or(usize::MAX);
        for request in source.requests(seed)?.take(length) {
            play.arrive(request).expect("sources are in order");
        }
        Ok(play.finish())
    };
    let summaries = parallel::map_with(usize::try_from(count).unwrap_or(usize::MAX), || (), run);
    let summaries = summaries.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Summary::independent(summaries))
}
