//! Shares of a queue that a request's own stream may be given, and rounding to whole nanoseconds.

use units::Nanos;

/// The shares of the queue that a request's own stream may be given.
pub(super) const SHARES: [f64; 10] = [1.0, 0.95, 0.85, 0.7, 0.5, 0.3, 0.15, 0.06, 0.02, 0.005];
/// The index of the share that is most often the best one in large queues.
pub(super) const FIRST_SHARE: usize = 5;

/// The next whole nanosecond; saturates.
pub(super) fn nanos_up(ns: f64) -> Nanos {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    Nanos(ns.ceil() as u64)
}
