//! The clock that everything on this machine is timed with, and the one that machines share.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC: from an origin that all processes and namespaces of this machine share (time
/// namespaces apart), never backwards.
pub fn now() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    let positive = |value: i64| u64::try_from(value).expect("the monotonic clock begins at zero");
    positive(tv_sec) * 1_000_000_000 + positive(tv_nsec)
}

/// Returns CLOCK_REALTIME in nanoseconds since 1970, or 0 before; setting the clock makes it jump.
pub fn real_time() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Realtime);
    let seconds = u64::try_from(tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::now;

    #[test]
    fn goes_forward() {
        let instants: Vec<u64> = std::iter::repeat_with(now).take(1000).collect();
        assert!(instants.is_sorted() && instants[0] < instants[999]);
    }
}
