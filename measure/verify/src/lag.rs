//! Lag of a load generator behind its intended times.
//!
//! Latency counts from the intended time, so a late generator makes a system look slow. That errs on the
//! safe side, but it does not measure the system: a run is worthless unless the generator's own lag is
//! small compared with the latency to be judged.

use crate::percentile::percentile;
use units::{Nanos, Percentile};

/// Delay between the intended times and the sending of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LagSummary {
    /// The lag that half of the requests do not exceed.
    pub median: Nanos,
    /// The lag at the percentile that is judged.
    pub at_percentile: Nanos,
    /// The largest lag of all requests.
    pub max: Nanos,
}

impl LagSummary {
    /// True if the lag is more than a tenth of this latency: too much to measure it.
    pub fn spoils(&self, latency: Nanos) -> bool {
        self.at_percentile.0 > latency.0 / 10
    }
}

/// Summarises the lags of requests, sent − intended, in any order, for a verdict about the percentile `judged`; `None`
/// without requests.
pub fn summarize_lags(lags: impl IntoIterator<Item = Nanos>, judged: Percentile) -> Option<LagSummary> {
    let mut sorted: Vec<Nanos> = lags.into_iter().collect();
    sorted.sort_unstable();
    Some(LagSummary {
        median: percentile(&sorted, 50.0)?,
        at_percentile: percentile(&sorted, judged.percent())?,
        max: *sorted.last()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_spoils() {
        let summary = summarize_lags((0..1000).map(Nanos), "99%".parse().unwrap()).unwrap();
        assert_eq!(
            (summary.median, summary.at_percentile, summary.max),
            (Nanos(499), Nanos(989), Nanos(999))
        );
        assert!(summary.spoils(Nanos(9889)) && !summary.spoils(Nanos(9890)));
        assert_eq!(summarize_lags([], "99%".parse().unwrap()), None);
    }
}
