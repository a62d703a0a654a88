//! Finished requests on their way to whoever records them, on a thread of its own: the proxy never waits for a disk.

use super::flows::{UNKNOWN_WORKLOAD, WorkloadNames};
use super::request::ProxyRequest;
use model::{Observation, Op, RequestOutcome};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use units::{Bytes, Nanos};

/// A read or write that a proxy has finished. Times count from the start of the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedRequest {
    /// The name that the hosts file has for the client's workload, or [`UNKNOWN_WORKLOAD`].
    pub workload: Arc<str>,
    /// The address of the client.
    pub client: IpAddr,
    /// Direction of the payload.
    pub op: Op,
    /// The number of bytes read or written.
    pub size: Bytes,
    /// Position in its file or on its device in bytes, where the protocol says it.
    pub offset: Option<u64>,
    /// When all of it had come.
    pub arrived: Nanos,
    /// When it was sent on to the server.
    pub sent: Nanos,
    /// When it was answered.
    pub ended: Nanos,
}

/// Where finished requests go.
#[derive(Debug)]
pub(super) struct RequestSink {
    receiver: Option<SyncSender<ProxiedRequest>>,
    /// The names of workloads by flow, which all their requests share.
    names: BTreeMap<u32, Arc<str>>,
    refused: u64,
}

impl RequestSink {
    pub(super) fn new(receiver: Option<SyncSender<ProxiedRequest>>) -> Self {
        Self { receiver, names: BTreeMap::new(), refused: 0 }
    }

    /// Hands a request on, unless the receiver is behind or gone.
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
        let proxied = ProxiedRequest {
            workload,
            client: request.client,
            op,
            size,
            offset: request.position.map(|position| position.offset),
            arrived: intended,
            sent,
            ended,
        };
        self.refused += u64::from(receiver.try_send(proxied).is_err());
    }

    /// How many requests were not taken.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}
