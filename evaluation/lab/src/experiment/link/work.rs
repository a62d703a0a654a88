//! Cost of a request on the link and, if the tenant has its own disk, on that disk.
//!
//! Bytes on the link are those of frames, as the limiters count them. Of each TCP segment 66 bytes are headers (Ethernet,
//! IPv4, TCP with time stamps), 4.6 % of a full one. The head of an answer, the headers of its last segment and an
//! acknowledgement are less than 200 bytes.

use super::super::definition::{ExperimentTenant, LabExperiment, TenantServer};
use super::super::scaled_trace::ScaledTrace;
use crate::device::{LinearServiceTime, SsdModel};
use model::{Request, Stage};
use units::{Bytes, Nanos};
use workload::device::NetworkModel;

const NETWORK: NetworkModel =
    NetworkModel { header: Bytes(200), data_thousandths: 1050, other_thousandths: 50 };

/// Returns the time that the link takes for the answer to a request, seconds.
pub(super) fn link_time(request: &Request) -> f64 {
    NETWORK.work(Stage::NetworkOut, request).base_units() * 8.0 / LabExperiment::LINK_BITS_PER_S
}

/// The emulated disk of a tenant that has one. Its service time does not depend on the size of a request.
pub(super) fn tenant_disk(tenant: &ExperimentTenant, sent: &ScaledTrace) -> Option<SsdModel> {
    let TenantServer::Disk { busy } = tenant.server else { return None };
    let seconds = busy * sent.trace.period().as_secs() / sent.trace.items().len() as f64;
    let service_time = LinearServiceTime::new(Nanos::from_secs(seconds).unwrap_or(Nanos::ZERO), 0);
    Some(SsdModel { channels: 1, read: service_time, write: service_time, bandwidth: None })
}
