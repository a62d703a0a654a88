//! Token buckets of enforcers that do not say what their buckets are: the kernel, and QEMU.
//!
//! blk-throttle counts in slices of at most a tenth of a second and rounds up, so what two slices allow may come at once
//! (`block/blk-throttle.c`, tg_within_bps_limit). Reads with pauses against Linux 6.18 needed 0.206 s of their rate.
//!
//! Buckets of QEMU's throttling, which libvirt sets as well:
//!
//! QEMU keeps a leaky bucket at the average rate. With a burst rate it holds what that rate brings in the burst's
//! length; without one, a tenth of a second of the average. A burst longer than a second has a second bucket at
//! the burst rate, which holds a tenth of a second of it (`util/throttle.c`, throttle_compute_wait).

/// A token bucket: rate and size, in the unit of the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ThrottleBucket {
    pub(crate) rate: f64,
    pub(crate) burst: f64,
}

/// Time whose tokens a group that blk-throttle holds may have saved, seconds: two slices of 0.1 s, and a tick of 10 ms
/// for each.
pub(crate) const SLICES_S: f64 = 0.22;

/// Length of a burst when none is given, seconds.
const LENGTH_DEFAULT: f64 = 1.0;
/// Time that a bucket without a burst rate holds, seconds.
const IDLE_TIME: f64 = 0.1;

/// Returns the buckets of an average rate, a burst rate and the length of a burst in seconds.
pub(crate) fn buckets(average: f64, peak: Option<f64>, length: Option<f64>) -> Vec<ThrottleBucket> {
    let Some(peak) = peak.filter(|peak| *peak > 0.0) else {
        return vec![ThrottleBucket { rate: average, burst: average * IDLE_TIME }];
    };
    let length = length.filter(|length| *length > 0.0).unwrap_or(LENGTH_DEFAULT);
    let mut buckets = vec![ThrottleBucket { rate: average, burst: peak * length }];
    if length > 1.0 {
        buckets.push(ThrottleBucket { rate: peak, burst: peak * IDLE_TIME });
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_burst_has_two_buckets() {
        assert_eq!(buckets(10.0, None, None), [ThrottleBucket { rate: 10.0, burst: 1.0 }]);
        assert_eq!(buckets(10.0, Some(50.0), None), [ThrottleBucket { rate: 10.0, burst: 50.0 }]);
        assert_eq!(
            buckets(10.0, Some(50.0), Some(4.0)),
            [ThrottleBucket { rate: 10.0, burst: 200.0 }, ThrottleBucket { rate: 50.0, burst: 5.0 }]
        );
    }
}
