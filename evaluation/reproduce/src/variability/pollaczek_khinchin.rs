//! The formula that the paper's section 3 is about.

/// The mean latency of M/G/1 by Pollaczek and Khinchin (Eq. 3), seconds. The rate is per second, the mean service time in
/// seconds, its variance in seconds squared; the load must be below 1.
pub(super) fn mean_latency(rate: f64, mean: f64, variance: f64) -> f64 {
    let load = rate * mean;
    variance * rate / (2.0 * (1.0 - load)) + mean * (2.0 - load) / (2.0 * (1.0 - load))
}
