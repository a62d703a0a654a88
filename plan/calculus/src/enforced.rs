//! Non-preemptible work of a class's servers, and its contribution to bounds.
//!
//! **What a link has begun.** HTB's root is a token bucket ⟨R, B⟩ that may be in debt by a packet L, in front of a
//! wire that sends at R or faster, first come, first served. `apply` gives each class a rate of its own so small
//! that one packet in a wait passes regardless of the root's tokens. *With m workloads, a request of one of them
//! waits as if a link that interrupts had begun (m + 3)·L + B before it, and every other workload kept its bucket
//! without debt.*
//!
//! *Proof.* Let T be the root's tokens and Q the bytes queued at the wire. A packet that passes moves its length from
//! T to Q; while Q > 0 the wire takes at least what T earns; T never exceeds B. So T + Q ≤ B at all times. A packet
//! of the level p arrives. Let s be the last instant until then at which T ≥ 0 and HTB holds nothing of level p or
//! above that its buckets let pass. From s until the packet passes at u, either T < 0 or such packets wait, so that
//! below p there passes at most one packet at s, which takes T below 0, and one of each class at its own rate. Let P
//! be all that passes from s to u. The timer that ends a debt is late by at most B/R. Later than the first packet no
//! tokens are lost, because T rises from below 0 to B at most. If none are lost before it, `T(u) = T(s) + R·(u − s) − P`
//! and T(s) ≥ 0, so the wire has sent the packet by `u + Q(u)/R ≤ u + (B − T(u))/R ≤ s + (P + B)/R`. Otherwise T = B and
//! Q = 0 when the first packet passes, at s + B/R at the latest, and the wire needs P/R from there.
//! P contains: the packet at s, L; one of each workload below p and of best effort, L each; of each workload at or
//! above p its bucket and a debt of L; of address resolution a bucket of L and a debt of L. These are
//! `(m − 1) + 1 + 1 + 2 = m + 3` packets. ∎ The burst counts once, for the lateness of the timer and the queue at the
//! wire together.
//!
//! *Assumptions*: the wire is not slower than the rate given for it; the timer of the shaping host is late by at most
//! B/R; no wait is as long as a packet takes at a class's own rate (12 s); address resolution sends no more than two
//! packets in a wait.

use crate::{DeviceQueue, round_up};

/// Servers whose network sends packets and whose device serves requests, each to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnforcedClass {
    /// Requests that the device serves at a time.
    pub channels: u32,
    /// The device time of the largest best-effort request, seconds.
    pub best_effort_request: f64,
    /// The time that the largest packet takes on a link, seconds.
    pub packet: f64,
    /// Time of a link that its shaper may send at once after it was idle, seconds.
    pub link_burst: f64,
    /// Time of a request in the proxy besides waiting for its turn, seconds.
    pub proxy: f64,
    /// The most work at network-out that a request brings per work at the storage, both in seconds of capacity.
    pub densest_answer: f64,
    /// Maximum number of priority levels of a server, at least 1.
    pub levels_max: usize,
}

impl EnforcedClass {
    /// The queue at the device that makes requests wait least.
    pub fn shortest_queue(&self) -> DeviceQueue {
        DeviceQueue::shortest(self.channels)
    }

    /// Queues at the device, the best for its throughput first. While answers are on their way to the enforcer the
    /// device has the requests beyond its channels to do; the reserve lets a request of a workload in at once.
    pub fn queues(&self) -> [DeviceQueue; 3] {
        let channels = self.channels;
        [(channels + 2, 1), (channels + 1, 1), (channels, 0)].map(|(outstanding, reserve)| DeviceQueue {
            channels,
            outstanding,
            reserve,
        })
    }

    /// Returns the time that a request with device time `work` takes besides that and its waiting, seconds.
    pub fn own_time(&self, work: f64) -> f64 {
        round_up(self.proxy + self.shortest_queue().own_service(work))
    }

    /// The work at network-out that may overtake a request of `largest` at the device among those of its own workload, none of
    /// which brings more than `densest` there per work at the device, in seconds.
    ///
    /// Requests of a workload are begun in the order in which they came. While one is served on a channel, the others do at
    /// most (c − 1) times its work; so much of what came later may be answered before it.
    pub fn overtaking(&self, largest: f64, densest: f64) -> f64 {
        round_up(self.shortest_queue().own_service(largest) * densest.max(self.densest_answer))
    }

    /// The work that a link may have begun when a request comes, for so many workloads, seconds: see the module's proof.
    pub fn begun_on_link(&self, members: usize) -> f64 {
        round_up((members + 3) as f64 * self.packet + self.link_burst)
    }
}
