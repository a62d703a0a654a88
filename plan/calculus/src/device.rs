//! Delay at a non-preemptive device that serves several requests at a time.
//!
//! **The queue.** An enforcer keeps requests in strict priority order, first come first served within a level, and lets at
//! most k of them be at a device, of which best effort has at most k − q. The device serves c ≤ k requests at a time, each at
//! 1/c of its capacity, in the order in which they come to it, and interrupts none. Work is seconds of the whole device,
//! so that a request of work w takes c·w once it is begun.
//!
//! **Theorem.** Let B be the most work that k requests may have, k − q of them best effort: [`DeviceQueue::blocking`]. A
//! request of level p and work w leaves within the delay of the *preemptive* queue with B more work at its level,
//! plus (c − 1)·w.
//!
//! **Proof.** A request m arrives at t, goes to the device at d and is begun at u. Let s ≤ t be the last instant before
//! which no request of the levels up to p waits. From s to d one waits, so that the device has at least c requests; from d
//! to u the channels serve requests that came before m. So all channels are busy from s to u, and do u − s of work. It
//! belongs to requests that are begun before m: those at the device at s, at most B, and those that went there since, which
//! are of the levels up to p and arrived since s. Hence `u − s ≤ B + α_H(u − s) + α_p(t − s) − w` with α_H for the levels
//! above p, and m leaves at u + c·w. Without B and c this is the inequality of the preemptive queue
//! (see [`crate::PriorityQueue`]); for token buckets it gives Eq. 5.1 with B among the bursts. With c = k = 1 it is the
//! classical bound of non-preemptive priorities (Le Boudec and Thiran, *Network Calculus*, Prop. 1.3.4).
//!
//! Limits in front of the enforcer's queue add nothing, nor does serving a request that is beyond its limits early, as
//! best effort: a request passes no later than it would through a greedy shaper (Le Boudec and Thiran, §1.5.3).

/// Limits of the requests at a device, and the number it serves at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceQueue {
    /// Requests that are served at a time, c; at least 1.
    pub channels: u32,
    /// The most requests at the device, k; at least `channels`.
    pub outstanding: u32,
    /// Places that best effort leaves free, q; fewer than `outstanding`.
    pub reserve: u32,
}

impl DeviceQueue {
    /// A device that has no more requests than it serves.
    pub fn shortest(channels: u32) -> Self {
        Self { channels, outstanding: channels, reserve: 0 }
    }

    /// The most work at the device when a request comes, seconds of its capacity: of requests with a level up to
    /// `largest`, and of best effort up to `best_effort` each, both in seconds.
    pub fn blocking(self, best_effort: f64, largest: f64) -> f64 {
        let shared = f64::from(self.outstanding - self.reserve) * best_effort.max(largest);
        crate::round_up(shared + f64::from(self.reserve) * largest)
    }

    /// Returns the number of lower-priority requests allowed at the device beside higher ones: half of all,
    /// and enough to keep the other channels busy. No bound depends on it.
    pub fn beside(self) -> u32 {
        (self.outstanding / 2).max(self.channels - 1)
    }

    /// Returns the additional service time of a request on one channel compared with the whole device,
    /// seconds.
    pub fn own_service(self, work: f64) -> f64 {
        crate::round_up(f64::from(self.channels - 1) * work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_waits_for_the_longest() {
        let queue = DeviceQueue::shortest(1);
        assert!((queue.blocking(0.01, 0.002) - 0.01).abs() < 1e-15);
        assert!((queue.blocking(0.0, 0.002) - 0.002).abs() < 1e-15);
        assert_eq!(queue.own_service(0.002), 0.0);
    }

    #[test]
    fn the_reserve_is_for_short_requests() {
        let queue = DeviceQueue { channels: 4, outstanding: 6, reserve: 1 };
        assert!((queue.blocking(0.01, 0.002) - 0.052).abs() < 1e-15);
        assert!((queue.own_service(0.002) - 0.006).abs() < 1e-15);
    }
}
