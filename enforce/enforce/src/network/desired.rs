//! The desired state of a network as plain data: the treatment of packets by every outgoing device.
//!
//! `translate` derives it from a policy; `configuration` expresses it for tc and nftables.

use super::packet_match::PacketMatch;
use crate::deployment::DeploymentHost;

/// Desired state of every host of a deployment, with warnings for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredNetwork {
    /// One entry for each host, in the order of the deployment.
    pub hosts: Vec<DesiredHost>,
    /// Parts of the policy that the network cannot honour, one sentence each.
    pub warnings: Vec<String>,
    /// Devices that have more to send than bounds count for their links, one sentence each.
    pub overloads: Vec<String>,
}

/// Desired state of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredHost {
    /// The host as the deployment describes it.
    pub host: DeploymentHost,
    /// Devices to shape, ordered by name; other devices are left alone.
    pub devices: Vec<DesiredDevice>,
}

/// Desired treatment of the packets that leave by a device.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredDevice {
    /// The name of the device on its host, such as `eth0`.
    pub name: String,
    /// The rate of the link in bytes per second, which the root class is limited to.
    pub link_bytes_per_s: f64,
    /// Burst of the link that the policy's bounds count, in seconds of its rate; `None` if they do not say.
    pub burst_s: Option<f64>,
    /// Traffic with queues of its own, in the order of the policy; all other traffic is served last.
    pub classes: Vec<TrafficClass>,
}

/// Traffic with a queue of its own on a device: the requests or the replies of a workload, or one level on a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficClass {
    /// A name that is unique on the device: `mail network-in`, or `level 3` on a switch.
    pub name: String,
    /// The priority level: 0 is served first, and all are below [`PRIORITY_LEVELS`](model::PRIORITY_LEVELS).
    pub level: usize,
    /// Token buckets, all of which apply at once; without any the class is not limited.
    pub buckets: Vec<FrameBucket>,
    /// Packets of the class: those that match any of these.
    pub matches: Vec<PacketMatch>,
    /// Differentiated services code point to set on its packets; `None` leaves them unchanged.
    pub mark: Option<u8>,
}

/// A token bucket whose tokens are bytes of frames, with the Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrameBucket {
    /// The fill rate in bytes per second.
    pub rate_bytes_per_s: f64,
    /// The size of the bucket in bytes.
    pub burst_bytes: f64,
}
