//! What a proxy is asked to do.

use super::queue::BaselineDiscipline;
use super::recording::ProxiedRequest;
use crate::deployment::Deployment;
use model::Policy;
use std::sync::mpsc::SyncSender;
use units::Nanos;
use workload::device::StorageProfile;

/// What a proxy is asked to do.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// The name that policy and deployment have for the storage server behind the proxy.
    pub server: String,
    /// Where servers and clients are.
    pub deployment: Deployment,
    /// The policy to enforce; without one everybody is best effort, in order of arrival.
    pub policy: Option<Policy>,
    /// The profile of the server's storage device, which says how much device time a request takes.
    pub profile: StorageProfile,
    /// A discipline to compare with, in the place of the policy's priorities and limits.
    pub baseline: Option<BaselineDiscipline>,
    /// The most client connections at a time; others are closed at once.
    pub connections_max: u64,
    /// How long to poll for events before sleeping, while that finds some: shorter latency for CPU time. 0 never polls.
    pub busy_poll_max: Nanos,
    /// How long requests in flight may take after the proxy was told to drain.
    pub drain: Nanos,
    /// How many requests are recorded for [`ProxyReport::observations`](super::ProxyReport::observations), 72 bytes each.
    pub record: usize,
    /// Who takes every request that is finished, to record it; it does not wait for whoever is slow.
    pub recording: Option<SyncSender<ProxiedRequest>>,
}

impl ProxyOptions {
    /// The usual [`Self::busy_poll_max`]: a few times what a wake-up takes.
    pub const DEFAULT_BUSY_POLL: Nanos = Nanos(50_000);

    /// The usual options: 1024 connections, 50 µs of polling, ten seconds to drain, nothing recorded.
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
            drain: Nanos(10_000_000_000),
            record: 0,
            recording: None,
        }
    }
}
