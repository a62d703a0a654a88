//! Several independent streams of one random source, through one station each.

use super::station::IdealStation;
use super::station_run::StationRun;
use super::summary::Summary;
use arrivals::{ParameterError, TimedRequestSource, split_seed};
use machine::parallel;

/// Number and length of the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationSizes {
    /// Number of independent streams, at least 1.
    pub count: u64,
    /// Requests that are summarised, in all streams together; streams differ by one at most.
    pub requests: u64,
    /// Requests of each stream before the first that is summarised, because it begins with an empty station.
    pub warm_up: u64,
}

impl ReplicationSizes {
    /// Sizes for a total of `requests`: eight streams, fewer when there are fewer than a hundred requests for each; a
    /// tenth of each as warm-up.
    pub fn of_requests(requests: u64) -> Self {
        let count = (requests / 100).clamp(1, 8);
        Self { count, requests, warm_up: requests / count / 10 }
    }
}

/// Requests between two calls of `goes_on`.
const CHUNK: usize = 1 << 16;

/// Simulates complete streams on all processors. The result does not depend on the number of processors.
///
/// # Errors
/// When a parameter of the arrivals is out of its range.
pub fn replicate(
    source: &TimedRequestSource,
    station: IdealStation,
    streams: ReplicationSizes,
    seed: u64,
) -> Result<Summary, ParameterError> {
    let summary = replicate_while(source, station, streams, seed, &|_| true)?;
    Ok(summary.expect("nobody ends it"))
}

/// Like [`replicate`], until `goes_on` returns false; then returns `None`. `goes_on` is called from several
/// threads at once, with the number of requests simulated since its last call.
///
/// # Errors
/// When a parameter of the arrivals is out of its range.
pub fn replicate_while(
    source: &TimedRequestSource,
    station: IdealStation,
    streams: ReplicationSizes,
    seed: u64,
    goes_on: &(dyn Fn(usize) -> bool + Sync),
) -> Result<Option<Summary>, ParameterError> {
    let count = streams.count.max(1);
    let play = |(): &mut (), index: usize| {
        let index = index as u64;
        let seed = split_seed(seed, index);
        let requests = streams.requests / count + u64::from(index < streams.requests % count);
        // The random choices of the station have a generator of their own, apart from arrivals and service times.
        let mut run = StationRun::new(station, split_seed(seed, 2), streams.warm_up, Summary::whole());
        let length = usize::try_from(requests + streams.warm_up).unwrap_or(usize::MAX);
        for (number, request) in source.requests(seed)?.take(length).enumerate() {
            if number % CHUNK == CHUNK - 1 && !goes_on(CHUNK) {
                return Ok(None);
            }
            run.arrive(request).expect("arrivals of a source do not decrease");
        }
        Ok(Some(run.finish()))
    };
    let summaries = parallel::map_with(usize::try_from(count).unwrap_or(usize::MAX), || (), play);
    let summaries = summaries.into_iter().collect::<Result<Option<Vec<_>>, _>>()?;
    Ok(summaries.map(Summary::independent))
}
