//! Non-preemptible work of a class's servers, and its contribution to bounds.

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

    /// The work that a link may have begun when a request comes, for so many workloads, seconds. A packet is on its way,
    /// each class, those of best effort and of the link's own traffic included, may send one before its turn, and each
    /// bucket of a workload may go into debt by one.
    pub fn begun_on_link(&self, members: usize) -> f64 {
        (2 * members + 2) as f64 * self.packet
    }
}
