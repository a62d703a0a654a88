//! Whether load was sent when it was meant to be sent.
//!
//! Latency counts from the intended time, so that a late generator makes a system look slow. That is on the safe
//! side, but it is not the system that was measured: where the generator's own lag is not small against the latency
//! that is judged, the run says nothing.

use units::{Nanos, Percentile};

/// How late requests were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// Half of them at most so late.
    pub median: Nanos,
    /// At the percentile that is judged.
    pub at_percentile: Nanos,
    /// The latest.
    pub max: Nanos,
}

impl Lag {
    /// Whether it spoils a measurement of this latency: more than a tenth of it.
    pub fn spoils(&self, latency: Nanos) -> bool {
        self.at_percentile.0 > latency.0 / 10
    }
}

/// The lags of all requests, sent − intended; none without requests.
pub fn lag(lags: impl IntoIterator<Item = Nanos>, percentile: Percentile) -> Option<Lag> {
    let mut sorted: Vec<Nanos> = lags.into_iter().collect();
    sorted.sort_unstable();
    let max = *sorted.last()?;
    let at = |percent: f64| sorted[confidence::nearest_rank(percent, sorted.len()) - 1];
    Some(Lag { median: at(50.0), at_percentile: at(percentile.percent()), max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_spoils() {
        let found = lag((0..1000).map(Nanos), "99%".parse().unwrap()).unwrap();
        assert_eq!((found.median, found.at_percentile, found.max), (Nanos(499), Nanos(989), Nanos(999)));
        assert!(found.spoils(Nanos(9889)) && !found.spoils(Nanos(9890)));
        assert_eq!(lag([], "99%".parse().unwrap()), None);
    }
}
