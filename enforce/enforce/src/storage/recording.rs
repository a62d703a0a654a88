//! Finished requests on their way to a recorder on a separate thread: the proxy never waits for a disk.

use super::flows::{UNKNOWN_WORKLOAD, WorkloadNames};
use super::request::ProxyRequest;
use model::{Observation, Op, RequestOutcome};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use units::{Bytes, Nanos};

/// A read or write that a proxy has finished, or the part of a lookup of several keys that is about one. Times
/// count from the start of the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedRequest {
    /// Name of the client's workload in the hosts file, or [`UNKNOWN_WORKLOAD`].
    pub workload: Arc<str>,
    /// The address of the client.
    pub client: IpAddr,
    /// Direction of the payload.
    pub op: Op,
    /// The number of bytes read or written.
    pub size: Bytes,
    /// Position in its file or on its device in bytes, if the protocol states it.
    pub offset: Option<u64>,
    /// Time at which all of it had arrived.
    pub arrived: Nanos,
    /// Time at which it was sent on to the server.
    pub sent: Nanos,
    /// Time of its answer.
    pub ended: Nanos,
}

/// Destination of finished requests.
#[derive(Debug)]
pub(super) struct RequestSink {
    receiver: Option<SyncSender<ProxiedRequest>>,
    /// Names of workloads by flow, shared by all their requests.
    names: BTreeMap<u32, Arc<str>>,
    refused: u64,
}

impl RequestSink {
    pub(super) fn new(receiver: Option<SyncSender<ProxiedRequest>>) -> Self {
        Self { receiver, names: BTreeMap::new(), refused: 0 }
    }

    /// Passes a request on, unless the receiver is behind or gone.
    pub(super) fn send(
        &mut self,
        flow: u32,
        request: &ProxyRequest,
        observed: Observation,
        names: &WorkloadNames,
    ) {
        let Some(receiver) = &self.receiver else { return };
        let name = || Arc::from(names.name(flow).unwrap_or(UNKNOWN_WORKLOAD));
        let workload = Arc::clone(self.names.entry(flow).or_insert_with(name));
        let Observation { op, size, intended, sent, outcome, .. } = observed;
        let RequestOutcome::Done(ended) = outcome else { return };
        let keys = u64::from(request.keys.max(1));
        let mut left = size.0;
        // A plan does not know keys: a lookup of several is a read of each.
        for others in (0..keys).rev() {
            let share = left / (others + 1);
            left -= share;
            let proxied = ProxiedRequest {
                workload: Arc::clone(&workload),
                client: request.client,
                op,
                size: Bytes(share),
                offset: request.position.map(|position| position.offset),
                arrived: intended,
                sent,
                ended,
            };
            self.refused += u64::from(receiver.try_send(proxied).is_err());
        }
    }

    /// Returns the number of requests that the receiver did not accept.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}
