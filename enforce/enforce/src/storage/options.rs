//! Options of a proxy.

use super::queue::BaselineQueue;
use super::recording::ProxiedRequest;
use crate::deployment::Deployment;
use model::Policy;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use units::Nanos;
use workload::device::StorageProfile;

#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Name of the storage server behind the proxy, in policy and deployment.
    pub server: String,
    /// Hosts and addresses of servers and clients.
    pub deployment: Deployment,
    /// Policy to enforce; without one all requests are best effort, in order of arrival.
    pub policy: Option<Policy>,
    /// Profile of the server's storage device, which gives the device time of each request.
    pub profile: StorageProfile,
    /// Queue to compare with, instead of the policy's priorities and limits.
    pub baseline: Option<Arc<dyn BaselineQueue>>,
    /// Maximum number of client connections; further ones are closed at once.
    pub connections_max: u64,
    /// Maximum time of polling for events before sleeping, which trades CPU time for latency. 0 disables
    /// polling.
    pub busy_poll_max: Nanos,
    /// Number of threads that move bytes for the one that decides; with 0 it moves them itself.
    pub loops: u8,
    /// Time for requests in flight after draining begins.
    pub drain: Nanos,
    /// Maximum number of requests recorded for
    /// [`ProxyReport::observations`](super::ProxyReport::observations), 72 bytes each.
    pub record: usize,
    /// Receiver of every completed request. The proxy drops requests while the channel is full.
    pub recording: Option<SyncSender<ProxiedRequest>>,
}

impl ProxyOptions {
    /// Default of [`Self::busy_poll_max`]: a few times the cost of a wake-up.
    pub const DEFAULT_BUSY_POLL: Nanos = Nanos(50_000);

    /// Returns the default options: 1024 connections, 50 µs of polling, one thread, ten seconds to drain, no recording.
    pub fn new(
        server: &str,
        deployment: Deployment,
        policy: Option<Policy>,
        profile: StorageProfile,
    ) -> Self {
        Self {
            server: server.to_owned(),
            deployment,
            policy,
            profile,
            baseline: None,
            connections_max: 1024,
            busy_poll_max: Self::DEFAULT_BUSY_POLL,
            loops: 0,
            drain: Nanos(10_000_000_000),
            record: 0,
            recording: None,
        }
    }
}
